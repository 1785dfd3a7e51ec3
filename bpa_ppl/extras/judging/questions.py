"""Which candidates to compare next, and what further answers are expected to change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.extras.judging.answers import Alternatives, Gaussian
from bpa_ppl.posterior.probabilities import entropy

#: What an answer may inform about.
ABOUT = ("weights", "choices")
#: Draws of the weights, and lists whose choices the information is about.
_MOST_DRAWS, _MOST_LISTS = 200, 100
#: Questions that are compared. The best of many is about unusual candidates, which misleads where
#: the features explain little: with systems as features, 120 were worse than random questions.
_QUESTIONS = 8
#: Draws that the outlook is computed from, pairs whose answers they give, and further answers.
_OUTLOOK_DRAWS, _PAIRS, _FURTHER = 200, 100, 10


class Candidates(NamedTuple):
    """The candidates of all lists (R candidates of S lists with K weighted features).

    Attributes:
        features: (R, K), relative to the first candidate of each list.
        base: (R,) the score of the features with a fixed weight, also relative.
        offsets: (S + 1,) the first candidate of each list, then R.
        text: (R,) the number of each candidate's text; texts that look equal have the same one.
    """

    features: Float64
    base: Float64
    offsets: Int64
    text: Int64

    def scores(self, weights: Float64) -> Float64:
        """Return the score of each candidate given each draw (D, K) of the weights, (R, D)."""
        return self.features @ weights.T + self.base[:, None]

    def alternatives(self, rows: Int64) -> Alternatives:
        """Return the possible answers to questions about two candidates each, rows (…, 2)."""
        return Alternatives.of(self.features[rows], self.base[rows])

    def lists(self, chosen: Int64) -> Candidates:
        """Return some of the lists."""
        sizes = np.diff(self.offsets)[chosen]
        ends = np.cumsum(sizes)
        rows = np.repeat(self.offsets[:-1][chosen] - (ends - sizes), sizes) + np.arange(sizes.sum())
        offsets = np.append(0, ends)
        return Candidates(self.features[rows], self.base[rows], offsets, self.text[rows])

    def choices(self, weights: Gaussian) -> Int64:
        """Return the position of the candidate of each list that the mean weights choose, (S,)."""
        return self.best(self.scores(weights.mean[None, :-1]))[:, 0]

    def best(self, scores: Float64) -> Int64:
        """Return the position of the first best candidate of each list by each draw, (S, D)."""
        sizes = np.diff(self.offsets)
        top = np.maximum.reduceat(scores, self.offsets[:-1], axis=0)
        position = np.arange(len(scores)) - np.repeat(self.offsets[:-1], sizes)
        where = np.where(scores == np.repeat(top, sizes, axis=0), position[:, None], len(scores))
        return np.asarray(np.minimum.reduceat(where, self.offsets[:-1], axis=0))

    def random_pair(self, sentence: int, rng: np.random.Generator) -> Int64:
        """Return the rows of two random candidates of a list whose texts differ.

        Args:
            sentence: the position of the list, which has two different texts.
            rng: of the candidates.
        """
        start, end = self.offsets[sentence : sentence + 2]
        order = start + rng.permutation(end - start)
        _, first = np.unique(self.text[order], return_index=True)
        return np.asarray(order[np.sort(first)[:2]])


def choose_informative(
    candidates: Candidates,
    pool: Int64,
    weights: Gaussian,
    rng: np.random.Generator,
    slip: float = 0.0,
    about: str = "choices",
) -> tuple[int, Int64]:
    """Return a list, and rows of two candidates whose comparison is expected to be informative.

    It is the best of a few random questions.

    Args:
        candidates: of all lists.
        pool: lists with candidates that differ.
        weights: their distribution now.
        rng: of the questions and draws.
        slip: the probability of a random answer.
        about: what the answer is to inform about: the `weights`, or the best candidates of some
            other lists, their `choices`.
    """
    lists = rng.choice(pool, _QUESTIONS)
    questions = np.array([candidates.random_pair(sentence, rng) for sentence in lists])
    draws = weights.sample(rng, _MOST_DRAWS)
    p = candidates.alternatives(questions).probabilities(draws, slip).swapaxes(0, 1)
    information = np.zeros(len(lists))
    if about == "choices":
        others = candidates.lists(rng.choice(pool, min(_MOST_LISTS, len(pool)), replace=False))
        best = others.best(others.scores(draws[:, :-1]))
        information = measure_information(p, best)
    if not information.any():  # also if no choice of these lists is in doubt
        information = entropy(p.mean(axis=-1)) - entropy(p).mean(axis=-1)
    chosen = int(np.argmax(information))
    return int(lists[chosen]), questions[chosen]


def measure_information(p: Float64, best: Int64) -> Float64:
    """Return the mutual information of an answer and the best candidate, summed over lists.

    It is H[answer] − E H[answer | best candidate of the list], over draws of the weights.

    Args:
        p: (A, n, D) the probabilities of the answers to n questions given each draw.
        best: (S, D) the best candidate of each list given each draw.

    >>> p = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 0.0]]])  # one pair, two draws
    >>> measure_information(p, np.array([[0, 1], [0, 0]])).round(3).tolist()  # log 2
    [0.693]
    """
    doubtful = best[(best != best[:, :1]).any(axis=1)]
    groups = [np.unique(row, return_inverse=True) for row in doubtful]
    if not groups:
        return np.zeros(p.shape[1])
    members = np.concatenate([np.arange(len(v))[:, None] == inverse for v, inverse in groups])
    count = members.sum(axis=1)
    mean = np.einsum("gd,and->agn", members / count[:, None], p, optimize=True)
    conditional = count / p.shape[-1] @ entropy(mean)
    return np.asarray(len(groups) * entropy(p.mean(axis=-1)) - conditional)


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
        further: by how much ten answers to random questions are expected to raise it.
        predicted: of the answers to random questions that name a best candidate, how many the
            weights before predicted.
        predicted_before: the same of the prior.
        random: how many such answers there are; a guess predicts half of them.
        repeated: questions that were asked twice.
        agreed: how many of them got the same answer.

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
    table: Candidates, weights: Gaussian, rng: np.random.Generator, slip: float = 0.0
) -> tuple[float, float, float, float]:
    """Return P(best), the share of the headroom, its low quantile, and its growth by answers.

    The growth is the expected value of sample information (Raiffa & Schlaifer 1961). The answers to
    random questions are simulated, each time by another draw of the weights, and the draws weighted
    by their likelihood are the posterior.

    Args:
        table: the candidates of some lists.
        weights: their distribution now.
        rng: of the draws, the questions and the answers.
        slip: the probability of a random answer.
    """
    starts = table.offsets[:-1]
    draws = weights.sample(rng, _OUTLOOK_DRAWS)
    scores = table.scores(draws[:, :-1])
    top = np.maximum.reduceat(scores, starts, axis=0)
    average = np.add.reduceat(scores, starts, axis=0) / np.diff(table.offsets)[:, None]
    total = (top - average).sum(axis=0)  # what each draw would win
    if not total.all():
        return 1.0, 1.0, 1.0, 0.0
    chosen = starts + table.choices(weights)
    probability = float((scores[chosen] == top).mean())
    # By each draw, the share of its total that a candidate wins: (R, D).
    scores -= np.repeat(average, np.diff(table.offsets), axis=0)
    scores /= total
    share = scores[chosen].sum(axis=0)
    pairs = np.array([table.random_pair(s, rng) for s in rng.integers(len(starts), size=_PAIRS)])
    p = table.alternatives(pairs).probabilities(draws, slip)
    asked = rng.integers(_PAIRS, size=(_OUTLOOK_DRAWS, _FURTHER))
    # The answers by each draw to its questions, and the posterior of all draws given them: (D, D).
    cumulative = p[asked, :, np.arange(_OUTLOOK_DRAWS)[:, None]].cumsum(axis=-1)
    answers = (rng.random((*asked.shape, 1)) > cumulative[..., :2]).sum(axis=-1)
    posterior = p[asked, answers].prod(axis=1)
    posterior /= posterior.sum(axis=1, keepdims=True)
    later = scores @ posterior.T
    raised = (np.maximum.reduceat(later, starts, axis=0) - later[chosen]).sum()
    left, headroom = (posterior * (1 - share)).sum(), float(share.mean())
    further = float(raised / left) * (1 - headroom) if left > 0 else 0.0
    return probability, headroom, float(np.quantile(share, 0.05)), further
