"""Reference implementation of the method in NumPy and SciPy: float64, one list at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from bpa_ppl import NBest, from_lists
from bpa_ppl.extending import Oracles

Array = npt.NDArray[np.float64]


def given(*index: int) -> Oracles:
    """Return oracles with these positions, without scoring any candidate."""
    zeros = np.zeros(len(index))
    positions = np.array(index, np.int64)
    return Oracles(positions, zeros, positions * 0 + 1, "canonical", "ter", "given")


def pairs(differences: npt.ArrayLike, names: Sequence[str]) -> NBest:
    """Return lists of two candidates with these feature differences (sentences, features)."""
    tables = [[np.zeros(len(names)), row] for row in np.asarray(differences)]
    return from_lists([["oracle", "other"]] * len(tables), tables, names)


def log_choice(features: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
    """Return log p(e | f, λ) of the candidates of one list (candidates,)."""
    scores = np.asarray(features, np.float64) @ np.asarray(weights, np.float64)
    # SciPy's logsumexp is fifty times slower for so few numbers.
    return np.asarray(scores - np.logaddexp.reduce(scores))


def log_likelihood(pool: NBest, oracle: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
    """Return log p(e* | f, λ) of each sentence (sentences,)."""
    best = np.asarray(oracle)
    return np.array(
        [log_choice(pool.features[pool.rows(s)], weights)[best[s]] for s in range(len(pool))]
    )


def log_prior(weights: npt.ArrayLike, mean: npt.ArrayLike, variance: npt.ArrayLike) -> float:
    """Return log N(λ; λ_T, σ_T I)."""
    return float(norm.logpdf(weights, mean, np.sqrt(variance)).sum())


def predictive(
    pool: NBest, weights: Array, importance: npt.ArrayLike | None = None, power: float = 1.0
) -> list[Array]:
    """Return normalised Σ_λ w(λ) p(e | f, λ)^power of each list.

    It is Eq. 11 of Sanchis-Trilles & Casacuberta (2015), or Eq. 13 of 2015 where w is 1.
    """
    votes = np.ones(len(weights)) if importance is None else np.asarray(importance)
    out = []
    for sentence in range(len(pool)):
        scores = weights @ pool.features[pool.rows(sentence)].T.astype(np.float64)
        log_p = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        total = votes @ np.exp(power * log_p)
        out.append(total / total.sum())
    return out
