"""Statistics of draws: those of ArviZ, for arrays, and what ArviZ lacks.

R-hat, effective sample sizes, Monte-Carlo errors, BFMI and Pareto k̂ are those of arviz_stats. Added
are the order of the axes, R-hat of a single chain, k̂ where no tail can be fitted, and
`find_copied_chains`, which ArviZ lacks: chains with the same draws agree, so R-hat cannot find
them.

ArviZ is imported on first use, because importing it takes as long as two checks.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import combinations
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
#: With fewer values, a tail cannot be fitted.
_MIN_WEIGHTS = 25
#: A tail is fitted if one draw makes up this share of the sum of absolute deviations, and this
#: number over the root of the number of draws: of draws of a Cauchy distribution it does in 19 of
#: 20 sets of 4000, of a mixture of normals that is as long-tailed in none.
_LARGE_SHARE, _LARGE_DEVIATION = 0.04, 2.0
#: Chains are copies if they have this share of their draws in common, of at least so many.
_COPIED, _MIN_DIFFERENT = 0.25, 10
#: Draws closer than this, in local distances between draws, count as equal; copies in single
#: precision differ by less. The local distance is the mean over this many draws per chain on both
#: sides.
_EQUAL_DISTANCE, _NEIGHBOURS = 0.02, 5
#: Values are discrete if this share of the distances between neighbouring ones are the smallest
#: one, or if there are no more of them than this share of the draws; up to noise, in standard
#: deviations.
_EVEN, _MAX_SHARE, _NOISE = 0.2, 0.1, 1e-5
#: Nine of ten distances between discrete values are smaller than this number of the smallest one.
_NEARER = 100.0


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
    array = np.asarray(values, np.float64)
    with np.errstate(all="ignore"):
        return np.asarray(getattr(_arviz(), name)(array, chain_axis=0, draw_axis=1, **options))


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


def find_copied_chains(chains: Iterable[Float64]) -> list[tuple[int, int]]:
    """Return the pairs of chains that have at least a quarter of the shorter one in common.

    Draws, (D, Q) in each chain, are compared at all places of the chain, so that a run is
    recognised after thinning or with another warm-up. Two draws are one if they are nearer than a
    fiftieth of the local distance between draws, so that a run is recognised in single precision
    and after small noise. Draws of discrete values (integers, rounded numbers) coincide by chance;
    of these chains a quarter has to be the same sequence, forwards or backwards. A chain that
    returns to its own draws is a pair with itself; equal draws in succession, as after rejected
    proposals, are one. Chains with fewer than ten different draws are left out: they may not have
    left a common start.

    >>> chains = np.random.default_rng(0).normal(size=(2, 20, 1))
    >>> find_copied_chains(chains[[0, 1, 0]]), find_copied_chains(np.tile(chains[:1], (1, 2, 1)))
    ([(0, 2)], [(0, 0)])
    >>> find_copied_chains(np.random.default_rng(0).poisson(3.0, (4, 1000, 1)))
    []
    """
    chains = [np.asarray(chain, np.float64) for chain in chains]
    flat = np.concatenate(chains)
    # The deviation of numbers below 1e-160 is 0, and that of equal ones may be above it.
    columns = flat[:, (np.ptp(flat, axis=0) > 0) & (flat.std(axis=0) > 0)]
    if not columns.size:
        return []
    ends = np.cumsum([len(chain) for chain in chains])[:-1]
    moved = (np.diff(columns, axis=0, prepend=np.nan) != 0).any(axis=1)
    moved[ends] = True
    if (discrete := _discrete_labels(columns, moved)) is not None:
        sequences = np.split(discrete, ends)
        pairs = [(c, c) for c in range(len(chains))] + list(combinations(range(len(chains)), 2))
        return [(i, j) for i, j in pairs if _has_same_sequence(sequences[i], sequences[j], i == j)]
    # On a line in a random direction, draws that are not copies are farther apart.
    direction = np.random.default_rng(0).normal(size=columns.shape[1])
    line = ((columns - np.median(columns, axis=0)) / columns.std(axis=0)) @ direction
    label = np.full(len(line), -1)
    label[moved] = _label_nearby(line[moved], _NEIGHBOURS * len(chains))
    parts = [part[part >= 0] for part in np.split(label, ends)]
    counts = [np.unique(_label_visits(part), return_counts=True) for part in parts]
    sets = [set(values.tolist()) for values, _ in counts]
    long = [c for c, values in enumerate(sets) if len(values) >= _MIN_DIFFERENT]
    again = [(c, c) for c in long if np.mean(counts[c][1] > 1) >= _COPIED]
    return again + [
        (i, j)
        for i, j in combinations(long, 2)
        if len(sets[i] & sets[j]) >= _COPIED * min(len(sets[i]), len(sets[j]))
    ]


def _label_visits(labels: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the labels of successive different draws, without returns to the last but one.

    Proposals in pairs, as those of `imh`, may return from one of a pair to the draw before it.
    """
    visits = labels[np.diff(labels, prepend=-1) != 0]
    returns = np.zeros(len(visits), bool)
    returns[2:] = visits[2:] == visits[:-2]
    return np.asarray(visits[~returns])


def _discrete_labels(
    columns: Float64, moved: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64] | None:
    """Return labels of draws whose components all have discrete values, else None.

    Values are discrete if neighbouring ones often have the same distance, up to noise of 1e-5
    standard deviations, or if each occurs ten times.

    Args:
        columns: (N, Q) components of the draws.
        moved: (N,) whether a draw differs from the one before it.
    """
    labels = np.zeros(len(columns), np.int64)
    for column in columns.T:
        order = np.argsort(column)
        gaps = np.diff(column[order], prepend=-np.inf)
        for least in (_NOISE * column.std(), 4 * np.spacing(np.abs(column).max())):
            apart = gaps[1:][gaps[1:] > least]
            even = apart.size and np.mean(apart <= apart.min() + least) >= _EVEN
            # A copy with an offset is at the same distance from every draw, but much nearer.
            near = even and np.quantile(apart, 0.9) > _NEARER * apart.min()
            if even and apart.min() > 10 * least and not near:
                break
            if np.count_nonzero(gaps) < _MAX_SHARE * np.count_nonzero(moved):
                break
        else:
            return None
        values = np.empty_like(labels)
        values[order] = np.cumsum(gaps > least)
        labels = np.unique(labels * (values.max() + 1) + values, return_inverse=True)[1]
    return labels


def _has_same_sequence(
    first: npt.NDArray[np.int64], second: npt.NDArray[np.int64], itself: bool
) -> bool:
    """Return whether a quarter of the shorter sequence of labels occurs in the other one.

    All sequences of that length are found that are a part of 3/8 of the shorter one.
    """
    if len(first) > len(second):
        first, second = second, first
    length = int(_COPIED * len(first))
    texts = [labels.tobytes() for labels in (second, second[::-1])]
    for start in range(0, len(first) - length + 1, max(length // 2, 1)):
        part = first[start : start + length]
        # Sequences with few changes are equal by chance.
        if np.count_nonzero(np.diff(part)) < _MIN_DIFFERENT:
            continue
        after = part.itemsize * (start + length) if itself else 0
        if texts[0].find(part.tobytes(), after) >= 0 or (
            not itself and texts[1].find(part.tobytes()) >= 0
        ):
            return True
    return False


def _label_nearby(line: Float64, neighbours: int) -> npt.NDArray[np.int64]:
    """Return labels of points on a line; the same for points much nearer than their neighbours.

    Of independent draws, a fiftieth has another one as near, for any distribution.
    """
    order = np.argsort(line)
    sorted_line = line[order]
    position = np.arange(len(line))
    low = np.maximum(position - neighbours, 0)
    high = np.minimum(position + neighbours, len(line) - 1)
    spacing = (sorted_line[high] - sorted_line[low]) / np.maximum(high - low, 1)
    apart = np.diff(sorted_line, prepend=-np.inf) > _EQUAL_DISTANCE * spacing
    label = np.empty(len(line), np.int64)
    label[order] = np.cumsum(apart)
    return label


def estimate_tail_shapes(values: npt.ArrayLike, efficiency: Float64) -> Float64:
    """Return the Pareto k̂ of the heavier tail of each component, (C, D, Q) ↦ (Q,).

    The generalised Pareto distribution is fitted to both tails, as to importance weights. The mean
    is unreliable above 0.7 (Vehtari et al. 2024, Section 4): k is 0 for the normal distribution, 1
    / ν for Student's t with ν degrees of freedom, 1 for the Cauchy distribution. Chains are thinned
    to their effective number n: a visit to a tail is many draws, and would look like a tail of many
    independent ones. k̂ is 0 where a tail is one number, there are too few draws, or no draw makes
    up 2 / √n, at least 4 %, of the sum of absolute deviations from the median: if the mean did
    not exist, one would (O'Brien 1980). A mixture of a narrow and a wide normal distribution has a
    large k̂, too, but its mean exists.

    Args:
        values: the draws.
        efficiency: (Q,) the number of effective draws per draw.

    >>> rng = np.random.default_rng(0)
    >>> values = np.stack([rng.normal(size=(4, 1000)), rng.standard_cauchy((4, 1000))], axis=-1)
    >>> estimate_tail_shapes(values, np.ones(2)).round(1).tolist()
    [0.0, 0.9]
    """
    cells = np.asarray(values, np.float64)
    shapes = np.zeros(cells.shape[-1])
    for k in range(len(shapes)):
        share = float(efficiency[k])
        step = round(1 / min(share, 1.0)) if share > 0 else 1
        column = cells[:, ::step, k].reshape(1, -1)
        deviations = np.abs(column - np.median(column))
        least = max(_LARGE_SHARE, _LARGE_DEVIATION / np.sqrt(column.size))
        if column.size < _MIN_WEIGHTS or not deviations.max() > least * deviations.sum():
            continue
        for tail in ("left", "right"):
            with suppress(ValueError), np.errstate(all="ignore"):  # its values are equal
                k_hat = float(_arviz().pareto_khat(column, r_eff=1.0, tail=tail))
                shapes[k] = max(shapes[k], k_hat if np.isfinite(k_hat) else 0.0)
    return shapes


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
