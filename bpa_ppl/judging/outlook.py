"""What the answers of a session have changed, and what further ones are expected to change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpa_ppl.judging.answers import ANSWERS, FIRST, TIE, Gaussian, probabilities
from bpa_ppl.judging.journal import RANDOM, REPEAT, Judgement
from bpa_ppl.judging.questions import Candidates, random_pairs
from bpa_ppl.nbest import Int64

#: Lists and draws that expectations are computed from, and further answers.
_LISTS, _DRAWS, _FURTHER = 200, 100, 10


class Outlook(NamedTuple):
    """The state of a session.

    Attributes:
        answers: how many, ties included, skipped ones not.
        lists: of how many the choices are.
        changed: how many choices differ from those of the prior.
        best: the mean probability that a choice is the best of its list.
        headroom: the expected share that the choices win of what exact weights would win over a
            random candidate. What the features do not see is not counted, so the share of the
            headroom by the rater is smaller.
        further: by how much ten further answers are expected to raise it.
        predicted: of the decided answers to random pairs, how many the weights before predicted.
        predicted_before: the same of the prior.
        random: how many such answers there are.
        repeated: pairs that were asked twice, and decided or not both times.
        agreed: how many of them were answered alike.

    >>> state = Outlook(30, 100, 40, 0.6, 0.7, 0.002, 12.0, 8.0, 15, 2, 2)
    >>> state.changed / state.lists, state.predicted > state.predicted_before
    (0.4, True)
    """

    answers: int
    lists: int
    changed: int
    best: float
    headroom: float
    further: float
    predicted: float
    predicted_before: float
    random: int
    repeated: int
    agreed: int


class Tally:
    """Counts of answers: to random pairs, that were predicted or not, and to repeated pairs.

    Attributes:
        answers: all but those that were skipped.
        random, predicted, predicted_before, repeated, agreed: as in `Outlook`.
    """

    def __init__(self) -> None:
        self.answers = self.random = self.repeated = self.agreed = 0
        self.predicted = self.predicted_before = 0.0
        self._winners: dict[tuple[int | str, frozenset[int]], int | None] = {}

    def add(self, judgement: Judgement, score_before: float) -> None:
        """Count an answer.

        Args:
            judgement: the answer.
            score_before: the score of its first candidate minus that of the second by the prior.
        """
        if judgement.answer not in ANSWERS:
            return
        self.answers += 1
        pair, winner = (judgement.id, frozenset(judgement.candidates)), _winner(judgement)
        if judgement.asked == REPEAT and pair in self._winners:
            self.repeated += 1
            self.agreed += self._winners[pair] == winner
        self._winners.setdefault(pair, winner)
        if judgement.asked == RANDOM and winner is not None:
            self.random += 1
            first = judgement.answer == FIRST
            predicted = 0.5 if judgement.predicted is None else judgement.predicted
            self.predicted += _hit(predicted - 0.5, first)
            self.predicted_before += _hit(score_before, first)


def outlook(
    candidates: Candidates, pool: Int64, choices_before: Int64, weights: Gaussian, tally: Tally
) -> Outlook:
    """Return what the answers of a session have changed, and what further ones would.

    Args:
        candidates: of all lists.
        pool: lists with candidates that differ.
        choices_before: (S,) those of the prior.
        weights: the posterior.
        tally: of the answers.
    """
    choices = candidates.choices(weights)
    rng = np.random.default_rng(0)
    table = candidates.lists(rng.choice(pool, min(_LISTS, len(pool)), replace=False))
    best, headroom, further = _expected(table, weights, rng)
    return Outlook(
        answers=tally.answers,
        lists=len(choices),
        changed=int((choices != choices_before).sum()),
        best=best,
        headroom=headroom,
        further=further,
        predicted=tally.predicted,
        predicted_before=tally.predicted_before,
        random=tally.random,
        repeated=tally.repeated,
        agreed=tally.agreed,
    )


def _winner(judgement: Judgement) -> int | None:
    """Return the position of the better candidate, or None for a tie."""
    if judgement.answer == TIE:
        return None
    return judgement.candidates[judgement.answer != FIRST]


def _hit(score: float, first: bool) -> float:
    """Return whether the sign of a score predicts the answer; a half if it is 0."""
    return 0.5 if score == 0 else float((score > 0) == first)


def _expected(
    table: Candidates, weights: Gaussian, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return P(best), the share of the headroom, and its growth by further answers.

    The growth is the expected value of sample information (Raiffa & Schlaifer 1961). The posterior
    mean after further answers is normal around the present one, and its covariance is what the
    posterior loses: S − (S⁻¹ + Σ v d dᵀ)⁻¹ for random pairs with differences d, where v is the
    expected curvature of the log-likelihood.
    """
    size, starts = len(weights.mean) - 1, table.offsets[:-1]
    now = weights.mean[None, :size]
    scores = table.scores(weights.sample(rng, _DRAWS)[:, :size])
    mean = table.scores(now)[:, 0]
    chosen = starts + table.best(mean[:, None])[:, 0]
    top = np.maximum.reduceat(scores, starts, axis=0)
    average = np.add.reduceat(scores, starts, axis=0) / np.diff(table.offsets)[:, None]
    total = float((top - average).mean(axis=1).sum())
    if total <= 0:
        return 1.0, 1.0, 0.0
    probability = float((scores[chosen] == top).mean())
    won = float((scores[chosen] - average).mean(axis=1).sum())
    lists = rng.integers(len(starts), size=_FURTHER)
    _, first, second = random_pairs(table, lists, rng)
    difference = table.features[first] - table.features[second]
    u = difference @ weights.mean[:size] + table.base[first] - table.base[second]
    p = probabilities(u, weights.mean[-1])
    curvature = 0.25 * (p[0] + p[1] - (p[0] - p[1]) ** 2)
    covariance = weights.covariance[:size, :size]
    gain = np.eye(len(u)) / curvature + difference @ covariance @ difference.T
    slope = covariance @ difference.T
    lost = Gaussian(weights.mean, np.zeros((size + 1,) * 2))
    lost.covariance[:size, :size] = slope @ np.linalg.solve(gain, slope.T)
    later = table.scores(lost.sample(rng, _DRAWS)[:, :size])
    growth = (np.maximum.reduceat(later, starts, axis=0) - later[chosen]).mean(axis=1).sum()
    return probability, won / total, float(growth) / total
