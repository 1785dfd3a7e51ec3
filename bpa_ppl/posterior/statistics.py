"""Statistics of draws: those of ArviZ, for arrays, and what ArviZ lacks.

R-hat, effective sample sizes, Monte-Carlo errors, BFMI and Pareto k̂ are those of arviz_stats. Added
are the order of the axes, R-hat of a single chain, and k̂ where no tail can be fitted.

ArviZ is imported on first use, because importing it takes as long as two checks.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.posterior.arviz_functions import require_docstrings

#: Quantiles of the effective sample size of the tails (Vehtari et al. 2021).
TAILS = (0.05, 0.95)
#: Above it importance weights are unreliable (Vehtari et al. 2024).
POOR_PARETO_K = 0.7
#: Fourth powers of numbers beyond it, and of those below its inverse, are no numbers in float64.
LARGEST = 1e70
#: Draws of components whose statistics are computed together.
_BLOCK = 1 << 20
#: With fewer values, a tail cannot be fitted.
_MIN_WEIGHTS = 25
#: A draw is large if it makes up this share of the sum of absolute deviations, and this number over
#: the root of the number of draws: of draws of a Cauchy distribution one does in 19 of 20 sets of
#: 4000, of a mixture of normals that is as long-tailed in none.
_LARGE_SHARE, _LARGE_DEVIATION = 0.04, 2.0
#: Interquartile ranges from the median, within which all draws of a light tail are.
_FAR = 4.0
#: k of a light tail, and the share of posteriors with light tails alone that seem to have others.
_LIGHT, _LEVEL = 0.1, 0.01


@cache
def _arviz() -> Any:
    """Return ArviZ's functions of arrays.

    Raises:
        UsageError: if Python runs without docstrings, of which these functions change one.
    """
    require_docstrings()
    from arviz_stats.base import array_stats

    return array_stats


def ess(values: npt.ArrayLike, method: str = "bulk") -> Float64:
    """Return effective sample sizes, (C, D, …) ↦ (…); `bulk`, `tail` or `mean`.

    Those of Vehtari et al. (2021); the number of draws if they are constant, and NaN if a draw is
    NaN or there are fewer than four per chain.
    """
    tails = {"prob": TAILS} if method == "tail" else {}
    return _apply("ess", values, method=method, **tails)


def r_hat(values: npt.ArrayLike) -> Float64:
    """Return rank-normalised split R-hat, (C, D, …) ↦ (…) (Vehtari et al. 2021).

    A single chain, of which ArviZ has no R-hat, is taken as two, its halves, which are split again.
    """
    array = np.asarray(values, np.float64)
    if len(array) == 1 and (half := array.shape[1] // 2):
        array = np.concatenate([array[:, :half], array[:, -half:]])
    return _apply("rhat", array)


def mcse(values: npt.ArrayLike) -> Float64:
    """Return the Monte-Carlo standard error of the mean, (C, D, …) ↦ (…)."""
    return _apply("mcse", values)


def _apply(name: str, values: npt.ArrayLike, **options: Any) -> Float64:
    """Return a statistic of ArviZ of each component."""
    function = partial(getattr(_arviz(), name), chain_axis=0, draw_axis=1, **options)
    with np.errstate(all="ignore"):
        return by_blocks(function, np.asarray(values, np.float64))


def by_blocks(function: Callable[[Float64], Any], values: Float64) -> Float64:
    """Return a function of draws (C, D, …) that treats each component alone, such as ↦ (…).

    It has blocks of components, one after another: ranks, and other copies, of all together would
    need several times the memory of the draws.

    >>> by_blocks(lambda draws: draws.mean(axis=1), np.zeros((4, 100, 3))).shape
    (4, 3)
    """
    if values.ndim < 3 or values.size <= _BLOCK:
        return np.asarray(function(values))
    cells = values.reshape(*values.shape[:2], -1)
    width = max(1, _BLOCK // (values.shape[0] * values.shape[1]))
    starts = range(0, cells.shape[-1], width)
    joined = np.concatenate([function(cells[..., k : k + width]) for k in starts], axis=-1)
    return joined.reshape(*joined.shape[:-1], *values.shape[2:])


def autocorrelation(values: npt.ArrayLike, lags: int) -> Float64:
    """Return the autocorrelation of each chain up to a lag, (C, D) ↦ (C, lags + 1).

    >>> autocorrelation([[0.0, 1.0, 0.0, 1.0]], 2).round(2).tolist()
    [[1.0, -0.75, 0.5]]
    """
    with np.errstate(all="ignore"):
        values_at_lags = np.asarray(_arviz().autocorr(np.asarray(values, np.float64), axis=-1))
    return values_at_lags[:, : lags + 1]


def bfmi(energy: npt.ArrayLike) -> Float64:
    """Return the Bayesian fraction of missing information of each chain, (C, D) ↦ (C,).

    NaN for chains with a single draw or constant energy (Betancourt 2016).
    """
    if np.shape(energy)[1] < 2:
        return np.full(len(np.asarray(energy)), np.nan)
    return _apply("bfmi", energy)


def smooth_log_weights(log_ratio: npt.ArrayLike) -> tuple[Float64, float]:
    """Return Pareto-smoothed log weights, in the same shape, and k̂ (Vehtari et al. 2024).

    k̂ is infinite, and the weights are as they were, if there are too few weights to estimate it, if
    the largest are equal, or if zeros are in the tail that it describes, the largest 3 √D of D
    weights: ArviZ fits such a tail as if it were short.

    >>> smooth_log_weights(np.where(np.arange(4000) < 150, 0.0, -np.inf))[1]
    inf
    """
    flat = np.asarray(log_ratio, np.float64).reshape(-1)
    finite = np.where(np.isfinite(flat), flat, -np.inf)
    positive = int(np.isfinite(finite).sum())
    if len(finite) < _MIN_WEIGHTS or not positive:
        return np.zeros(np.shape(log_ratio)), np.inf
    result, k_hat = finite - np.logaddexp.reduce(finite), np.inf
    with suppress(ValueError), np.errstate(all="ignore"):  # the largest are equal
        smoothed, fitted = _arviz().psislw(-finite)
        if np.isfinite(fitted) and not np.isnan(smoothed).any():
            result, k_hat = smoothed, float(fitted)
    few = positive < min(len(finite) / 5, 3 * np.sqrt(len(finite)))
    return result.reshape(np.shape(log_ratio)), np.inf if few else k_hat


def estimate_tail_shapes(values: npt.ArrayLike, efficiency: Float64) -> tuple[Float64, Float64]:
    """Return Pareto k̂ of the heavier tail of each component, and of how many draws, (Q,) each.

    The generalised Pareto distribution is fitted to both tails, as to importance weights (Vehtari
    et al. 2024): k is 0 for the normal and the exponential distribution, 1 / ν for Student's t with
    ν degrees of freedom, 1 for the Cauchy distribution. Chains are thinned to their effective
    number: a visit to a tail is many draws, and would look like a tail of many independent ones. k̂
    is 0 where a tail is one number, there are too few draws, or all are within four interquartile
    ranges of the median: then no tail is heavy.

    Args:
        values: (C, D, Q) the draws.
        efficiency: (Q,) the number of effective draws per draw.

    >>> rng = np.random.default_rng(0)
    >>> values = np.stack([rng.normal(size=(4, 1000)), rng.standard_cauchy((4, 1000))], axis=-1)
    >>> estimate_tail_shapes(values, np.ones(2))[0].round(1).tolist()
    [0.0, 0.9]
    """
    cells = np.asarray(values, np.float64)
    shapes, counts = np.zeros(cells.shape[-1]), np.zeros(cells.shape[-1])
    for k in range(len(shapes)):
        column = _thin(cells[..., k], float(efficiency[k]))
        counts[k] = column.size
        low, middle, high = np.quantile(column, (0.25, 0.5, 0.75))
        if column.size < _MIN_WEIGHTS or np.abs(column - middle).max() <= _FAR * (high - low):
            continue
        for tail in ("left", "right"):
            with suppress(ValueError), np.errstate(all="ignore"):  # its values are equal
                k_hat = float(_arviz().pareto_khat(column, r_eff=1.0, tail=tail))
                shapes[k] = max(shapes[k], k_hat if np.isfinite(k_hat) else 0.0)
    return shapes, counts


def _thin(chains: Float64, share: float) -> Float64:
    """Return as many draws as are effective, (1, n), of chains (C, D)."""
    step = round(1 / min(share, 1.0)) if share > 0 else 1
    return chains[:, ::step].reshape(1, -1)


def have_large_draws(values: npt.ArrayLike, efficiency: Float64) -> npt.NDArray[np.bool_]:
    """Return whether one draw makes up much of the mean of each component, (C, D, Q) ↦ (Q,).

    It makes up 2 / √n, at least 4 %, of the sum of absolute deviations from the median: if the mean
    did not exist, one draw would (O'Brien 1980). A mixture of a narrow and a wide normal
    distribution has a large k̂, too, but its mean exists.
    """
    cells = np.asarray(values, np.float64)
    large = np.zeros(cells.shape[-1], bool)
    for k in range(len(large)):
        column = _thin(cells[..., k], float(efficiency[k]))
        deviations = np.abs(column - np.median(column))
        least = max(_LARGE_SHARE, _LARGE_DEVIATION / np.sqrt(column.size))
        large[k] = deviations.max() > least * deviations.sum()
    return large


def count_moments(shapes: Float64, counts: Float64) -> npt.NDArray[np.int64]:
    """Return how many moments seem to exist: 2, 1 without a variance, 0 without a mean, (Q,).

    From k = 1/2 on there is no variance, from 1 on no mean. The estimate must also be so large
    that of distributions whose k is at most 1/10, such as the normal, the exponential or Student's
    t with ten degrees of freedom, at most 1 % have such a component: k̂ of m draws of a tail has the
    standard error (1 + k) / √m, and is drawn to 1/2 as by ten draws (Vehtari et al. 2024).

    Args:
        shapes: (Q,) k̂ of each component, by `estimate_tail_shapes`.
        counts: (Q,) of how many draws.

    >>> count_moments(np.array([0.4, 0.6, 1.2, 0.6]), np.array([4000, 4000, 4000, 50])).tolist()
    [2, 1, 0, 2]
    """
    from scipy.special import ndtri

    of_tail = np.fmax(np.where(counts > 225, 3 * np.sqrt(counts), counts / 5), 1.0)
    expected = (_LIGHT * of_tail + 5) / (of_tail + 10)
    largest = expected - ndtri(_LEVEL / (2 * len(shapes))) * (1 + _LIGHT) / np.sqrt(of_tail)
    heavy = shapes >= np.fmax(0.5, largest)
    return np.where(heavy, np.where(shapes >= 1, 0, 1), 2)


def loo_log_weights(log_weight: Float64, log_likelihood: Float64) -> tuple[Float64, Float64]:
    """Return log weights (S, D) of draws for the posterior without each observation, and k̂ (S,).

    They are w / p(observation | draw) (Gelfand 1996), from (D,) and (S, D) logarithms, and
    Pareto-smoothed unless all are equal (Vehtari et al. 2017).

    >>> loo_log_weights(np.zeros(3), np.ones((1, 3)))
    (array([[-1., -1., -1.]]), array([0.]))
    """
    with np.errstate(invalid="ignore"):  # −∞ − (−∞): a draw of weight 0
        ratios = log_weight - log_likelihood
    pareto_k = np.zeros(len(ratios))
    for s, ratio in enumerate(ratios):
        if not (len(ratio) and (ratio == ratio[0]).all()):
            ratios[s], pareto_k[s] = smooth_log_weights(ratio)
    return ratios, pareto_k
