"""Which two candidates to compare next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpa_ppl.judging.answers import Gaussian, probabilities
from bpa_ppl.models.probabilities import entropy
from bpa_ppl.nbest import Float64, Int64

#: What an answer may inform about.
ABOUT = ("weights", "choices")
#: Draws of the weights, and lists whose choices the information is about.
_DRAWS, _LISTS = 200, 100
#: Pairs that are compared, from this number of lists.
_PAIRS, _LISTS_OF_PAIRS = 120, 20
#: Attempts to find a pair of texts that differ.
_ATTEMPTS = 200


class Candidates(NamedTuple):
    """The candidates of all lists (R candidates of S lists with K weighted features).

    Attributes:
        features: (R, K).
        base: (R,) the score of the features with a fixed weight.
        offsets: (S + 1,) the first candidate of each list, then R.
        text: (R,) the number of each candidate's text; texts that read alike have the same one.
    """

    features: Float64
    base: Float64
    offsets: Int64
    text: Int64

    def scores(self, weights: Float64) -> Float64:
        """Return the score of each candidate given each draw (D, K) of the weights, (R, D)."""
        return self.features @ weights.T + self.base[:, None]

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


def random_pairs(
    candidates: Candidates, lists: Int64, rng: np.random.Generator
) -> tuple[Int64, Int64, Int64]:
    """Return a random pair of each of some lists.

    Args:
        candidates: of all lists.
        lists: (n,) positions of lists with two candidates or more.
        rng: of the pairs.

    Returns:
        the lists and the rows of the two candidates, where their texts differ.
    """
    start, size = candidates.offsets[lists], np.diff(candidates.offsets)[lists]
    one = (rng.random(len(lists)) * size).astype(np.int64)
    other = (rng.random(len(lists)) * (size - 1)).astype(np.int64)
    other += other >= one
    first, second = start + one, start + other
    different = candidates.text[first] != candidates.text[second]
    return lists[different], first[different], second[different]


def random_pair(
    candidates: Candidates, pool: Int64, rng: np.random.Generator
) -> tuple[int, int, int]:
    """Return a list of a pool, and two of its candidates, at random."""
    for _ in range(_ATTEMPTS):
        lists, first, second = random_pairs(candidates, rng.choice(pool, 1), rng)
        if len(lists):
            return int(lists[0]), int(first[0]), int(second[0])
    # Nearly all candidates are alike: the first one, and one that differs from it.
    chosen = int(rng.choice(pool))
    start, end = candidates.offsets[chosen : chosen + 2]
    different = np.flatnonzero(candidates.text[start:end] != candidates.text[start])
    return chosen, int(start), int(start + rng.choice(different))


def informative_pair(
    candidates: Candidates,
    pool: Int64,
    weights: Gaussian,
    rng: np.random.Generator,
    slip: float = 0.0,
    about: str = "choices",
) -> tuple[int, int, int]:
    """Return a list, and two of its candidates whose comparison is expected to tell much.

    It is the best of random pairs from a few lists.

    Args:
        candidates: of all lists.
        pool: lists with candidates that differ.
        weights: their distribution now.
        rng: of the pairs and draws.
        slip: the probability of a random answer.
        about: what the answer is to inform about: the `weights`, or the best candidates of some
            other lists, their `choices`.
    """
    lists = rng.choice(pool, min(_LISTS_OF_PAIRS, len(pool)), replace=False)
    lists, first, second = random_pairs(candidates, rng.choice(lists, _PAIRS), rng)
    if not len(lists):
        return random_pair(candidates, pool, rng)
    draws = weights.sample(rng, _DRAWS)
    u = candidates.features[first] - candidates.features[second]
    base = candidates.base[first] - candidates.base[second]
    p = probabilities(u @ draws[:, :-1].T + base[:, None], draws[:, -1], slip)
    information = np.zeros(len(lists))
    if about == "choices":
        others = candidates.lists(rng.choice(pool, min(_LISTS, len(pool)), replace=False))
        best = others.best(others.scores(draws[:, :-1]))
        information = information_about_choices(p, best)
    if not information.any():  # also if no choice of these lists is in doubt
        information = entropy(p.mean(axis=-1)) - entropy(p).mean(axis=-1)
    chosen = int(np.argmax(information))
    return int(lists[chosen]), int(first[chosen]), int(second[chosen])


def information_about_choices(p: Float64, best: Int64) -> Float64:
    """Return the mutual information of an answer and the best candidate, summed over lists.

    It is H[answer] − E H[answer | best candidate of the list], over draws of the weights.

    Args:
        p: (3, n, D) the probabilities of the answers to n pairs given each draw.
        best: (S, D) the best candidate of each list given each draw.

    >>> p = np.array([[[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 0.0]]])  # one pair, two draws
    >>> information_about_choices(p, np.array([[0, 1], [0, 0]])).round(3).tolist()  # log 2
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
