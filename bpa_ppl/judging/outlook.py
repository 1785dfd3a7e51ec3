"""What the answers of a session have changed, and what further ones are expected to change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpa_ppl.judging.answers import Gaussian
from bpa_ppl.judging.questions import Candidates

#: Draws that expectations are computed from, and further answers.
_DRAWS, _FURTHER = 100, 10


class Outlook(NamedTuple):
    """The state of a session.

    Attributes:
        answers: how many, ties included, skipped ones not.
        lists: of how many the choices are.
        changed: how many choices differ from those of the prior.
        best: the mean probability that a choice has the highest score of its list under the exact
            weights; not the share of choices that the rater finds best.
        headroom: the expected share that the choices win of what exact weights would win over a
            random candidate. What the features do not see is not counted, so the share of the
            headroom by the rater is smaller.
        least: what that share is at least with a probability of 95 %, by the uncertainty of the
            weights.
        further: by how much ten further answers are expected to raise it.
        predicted: of the answers to random questions that name a best candidate, how many the
            weights before predicted.
        predicted_before: the same of the prior.
        random: how many such answers there are; a guess predicts half of them.
        repeated: questions that were asked twice.
        agreed: how many of them were answered alike.

    >>> state = Outlook(30, 100, 40, 0.6, 0.7, 0.5, 0.002, 12.0, 8.0, 15, 2, 2)
    >>> state.changed / state.lists, state.predicted > state.predicted_before
    (0.4, True)
    """

    answers: int
    lists: int
    changed: int
    best: float
    headroom: float
    least: float
    further: float
    predicted: float
    predicted_before: float
    random: int
    repeated: int
    agreed: int


def estimate_outlook(
    table: Candidates, weights: Gaussian, rng: np.random.Generator
) -> tuple[float, float, float, float]:
    """Return P(best), the share of the headroom, its low quantile, and its growth by answers.

    The growth is the expected value of sample information (Raiffa & Schlaifer 1961). The posterior
    mean after further answers is normal around the present one, and its covariance is what the
    posterior loses: S − (S⁻¹ + I)⁻¹ = (1 + S I)⁻¹ S I S, where I is the expected information of
    the answers to random questions.
    """
    starts = table.offsets[:-1]
    scores = table.scores(weights.sample(rng, _DRAWS)[:, :-1])
    chosen = starts + table.choices(weights)
    top = np.maximum.reduceat(scores, starts, axis=0)
    average = np.add.reduceat(scores, starts, axis=0) / np.diff(table.offsets)[:, None]
    # By each draw, over all lists: (D,) what exact weights would win, and what the choices do.
    total = (top - average).sum(axis=0)
    won = (scores[chosen] - average).sum(axis=0)
    mean = float(total.mean())
    if mean <= 0:
        return 1.0, 1.0, 1.0, 0.0
    probability = float((scores[chosen] == top).mean())
    share = np.divide(won, total, out=np.ones_like(won), where=total > 0)
    information = np.zeros_like(weights.covariance)
    for sentence in rng.integers(len(starts), size=_FURTHER):
        question = table.alternatives(table.random_pair(sentence, rng))
        information += question.information(weights.mean)
    told = weights.covariance @ information
    lost = np.linalg.solve(np.eye(len(told)) + told, told @ weights.covariance)
    later = table.scores(Gaussian(weights.mean, (lost + lost.T) / 2).sample(rng, _DRAWS)[:, :-1])
    growth = (np.maximum.reduceat(later, starts, axis=0) - later[chosen]).mean(axis=1).sum()
    least = float(np.quantile(share, 0.05))
    return probability, float(won.mean()) / mean, least, float(growth) / mean
