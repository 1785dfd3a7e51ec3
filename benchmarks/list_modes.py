"""Modes of posteriors of graded lists by Newton's method in NumPy, for many priors and likelihoods.

Weights are of features divided by their standard deviation within the lists. The modes are those of
`bpa_ppl.adapt` with the sampler `map`, a hundred times faster on a few small lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numba
import numpy as np
from scipy.optimize import minimize
from scipy.special import log_expit, log_softmax, softmax

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.lists.candidate_columns import read_column
from bpa_ppl.lists.nbest import NBest, measure_deviation

#: As in `bpa_ppl`: the margin and κ, per standard deviation of the gain within the lists.
_GAMMA, _KAPPA = 2.0, 1.0
#: The standard deviation of log τ, and the scales that are tried first, in units of τ₀.
_DEVIATION, _GRID = 0.5, np.exp(np.arange(-1.5, 2.6, 0.5))


class Local(NamedTuple):
    """A log density at a point, and its derivatives.

    Attributes:
        value: the log density.
        gradient: (K,).
        precision: (K, K), minus the second derivative.
    """

    value: float
    gradient: Float64
    precision: Float64


LogDensity = Callable[[Float64], Local]


class JudgedLists:
    """Judged lists as arrays.

    Args:
        lists: with the gain as the column `gain`.

    Attributes:
        features: one (candidates, K) table for each list, divided by the spread.
        deficits: for each list how much worse its candidates are than the best one, divided by
            their standard deviation within the lists.
        spread: (K,) the standard deviations within the lists; infinite for constant features.
    """

    def __init__(self, lists: NBest) -> None:
        gain, starts = read_column(lists, "gain"), lists.offsets[1:-1]
        self.spread = np.where(lists.spread > 0, lists.spread, np.inf)
        self.features = np.split(lists.features / self.spread, starts)
        unit = measure_deviation(lists, gain) or 1.0
        self.deficits = [(part.max() - part) / unit for part in np.split(gain, starts)]
        self.size = lists.features.shape[1]
        better = [_find_better(part) for part in self.deficits]
        #: (pairs, K) features of the better candidate less those of the worse one.
        self.leads = np.concatenate(
            [table[i] - table[j] for table, (i, j) in zip(self.features, better, strict=True)]
        )
        parts = zip(self.deficits, better, strict=True)
        #: (pairs,) the differences in gain, and the numbers of candidates of their lists.
        self.differences = np.concatenate([part[j] - part[i] for part, (i, j) in parts])
        counts = [len(part) for part in self.deficits]
        self.candidates = np.repeat(counts, [len(i) for i, _ in better])


def _find_better(deficit: Float64) -> tuple[Int64, Int64]:
    """Return the candidates of all pairs of which one is better: the better and the worse one."""
    return np.nonzero(deficit[:, None] < deficit)


def choices(leads: Float64, weight: Float64 | float = 1.0) -> LogDensity:
    """Return the log likelihood Σ w log σ(λ·h) of choices between two candidates.

    Args:
        leads: (n, K) h, the features of the chosen candidate less those of the other one.
        weight: (n,) w.
    """

    def density(weights: Float64) -> Local:
        log_p = log_expit(leads @ weights)
        wrong = 1 - np.exp(log_p)
        curvature = (leads * (weight * wrong * (1 - wrong))[:, None]).T @ leads
        return Local((weight * log_p).sum(), leads.T @ (weight * wrong), curvature)

    return density


def pairs(lists: JudgedLists, exponent: float = 0.5, power: float = 0.0) -> LogDensity:
    """Return the log likelihood `pairs`."""
    return choices(lists.leads, 2 * exponent / lists.candidates * lists.differences**power)


def margin(lists: JudgedLists) -> LogDensity:
    """Return the log likelihood `margin`; ties between the best candidates are shared."""

    def density(weights: Float64) -> Local:
        value, gradient, precision = 0.0, np.zeros(lists.size), np.zeros((lists.size, lists.size))
        for table, deficit in zip(lists.features, lists.deficits, strict=True):
            best = (deficit == 0) / np.count_nonzero(deficit == 0)
            scores = table @ weights + _GAMMA * deficit
            p = softmax(scores)
            mean = p @ table
            value += best @ log_softmax(scores)
            gradient += best @ table - mean
            precision += (table * p[:, None]).T @ table - np.outer(mean, mean)
        return Local(value, gradient, precision)

    return density


def find_mode(
    density: LogDensity, precision: Float64, mean: Float64, start: Float64
) -> tuple[Float64, Float64]:
    """Return the mode with a Gaussian prior, and minus the second derivative there.

    Args:
        density: log-concave.
        precision: (K, K) of the prior.
        mean: (K,) of the prior.
        start: (K,) where the search begins.
    """

    def value(weights: Float64) -> float:
        difference = weights - mean
        return density(weights).value - difference @ precision @ difference / 2

    weights, here = start, value(start)
    for _ in range(100):
        local = density(weights)
        gradient = local.gradient - precision @ (weights - mean)
        step, length = np.linalg.solve(local.precision + precision, gradient), 1.0
        while (there := value(weights + length * step)) < here - 1e-12 and length > 1e-6:
            length /= 2
        weights, here = weights + length * step, there
        if np.abs(step).max() < 1e-7:
            break
    return weights, density(weights).precision + precision


def find_risk_mode(lists: JudgedLists, scale: float, mean: Float64, start: Float64) -> Float64:
    """Return the mode of `risk` near a point, with the prior N(mean, scale² I)."""

    def loss(weights: Float64) -> tuple[float, Float64]:
        value = ((weights - mean) ** 2).sum() / 2 / scale**2
        gradient = (weights - mean) / scale**2
        for table, deficit in zip(lists.features, lists.deficits, strict=True):
            p = softmax(table @ weights)
            risk = _KAPPA * (p @ deficit)
            value += risk
            gradient = gradient + table.T @ (p * (_KAPPA * deficit - risk))
        return value, gradient

    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x)


@numba.njit(cache=True)
def find_pairs_mode(
    leads: Float64, weight: Float64, mean: Float64, scale: float, start: Float64
) -> tuple[Float64, float]:
    """Return the mode of choices between two with the prior N(mean, scale² I), and its evidence.

    The same as `find_mode` of `choices`, compiled, for few features.

    Args:
        leads: (n, K) as for `choices`.
        weight: (n,) as for `choices`.
        mean: (K,) of the prior.
        scale: of the prior.
        start: (K,) where the search begins.

    Returns:
        the mode; and the logarithm of the evidence by Laplace's approximation, up to a constant.
    """
    count, size = leads.shape
    weights, step, length, before = start.copy(), np.zeros(size), 1.0, -np.inf
    for _ in range(100):
        value, gradient, hessian = 0.0, np.zeros(size), np.zeros((size, size))
        for n in range(count):
            score = 0.0
            for k in range(size):
                score += leads[n, k] * weights[k]
            p_wrong = 1 / (1 + np.exp(score))
            value += weight[n] * (min(score, 0.0) - np.log1p(np.exp(-abs(score))))
            for k in range(size):
                gradient[k] += weight[n] * p_wrong * leads[n, k]
                bend = weight[n] * p_wrong * (1 - p_wrong) * leads[n, k]
                for m in range(k + 1):
                    hessian[k, m] += bend * leads[n, m]
        for k in range(size):
            gradient[k] -= (weights[k] - mean[k]) / scale**2
            value -= ((weights[k] - mean[k]) / scale) ** 2 / 2
            hessian[k, k] += 1 / scale**2
            for m in range(k):
                hessian[m, k] = hessian[k, m]
        if value < before - 1e-12 and length > 1e-6:
            length /= 2
            weights = weights - length * step
            continue
        step, length, before = np.linalg.solve(hessian, gradient), 1.0, value
        weights = weights + step
        if np.abs(step).max() < 1e-7:
            break
    return weights, value - np.linalg.slogdet(hessian)[1] / 2 - size * np.log(scale)


def learn_scale(
    lists: JudgedLists, direction: Float64, factor: float, columns: Int64 | None = None
) -> tuple[float, float]:
    """Return the most probable τ, by the evidence of `pairs`, as `bpa_ppl` does.

    Args:
        lists: judged.
        direction: (K,) the prior mean in units of `factor` τ.
        factor: m.
        columns: (K,) of the features; None uses all.

    Returns:
        τ, and the logarithm of the evidence there times the prior of τ, up to a constant.
    """
    leads = lists.leads if columns is None else np.ascontiguousarray(lists.leads[:, columns])
    weight, size = 1 / lists.candidates, leads.shape[1]
    expected, start = np.sqrt(0.5 / size), np.zeros(size)

    def evidence(scale: float) -> float:
        nonlocal start
        start, log_p = find_pairs_mode(leads, weight, factor * scale * direction, scale, start)
        return float(log_p - (np.log(scale / expected) / _DEVIATION) ** 2 / 2)

    values = np.array([evidence(scale) for scale in expected * _GRID])
    k = int(np.clip(values.argmax(), 1, len(_GRID) - 2))
    before, best, after = values[k - 1 : k + 2]
    bend = before - 2 * best + after
    shift = np.clip((before - after) / 2 / bend, -1.0, 1.0) if bend < 0 else 0.0
    scale = float(expected * _GRID[k] * np.exp(shift * np.log(_GRID[1] / _GRID[0])))
    return scale, float(best + shift * (after - before) / 4)


def learn_sign(
    lists: JudgedLists,
    agreement: Float64,
    probability: float,
    factor: float,
    columns: Int64 | None = None,
) -> tuple[float, float]:
    """Return the most probable τ, and the sign of the prior mean that is more probable with it."""
    odds = np.log(probability / max(1 - probability, 1e-9))
    found = [learn_scale(lists, sign * agreement, factor, columns) for sign in (1.0, -1.0)]
    sign = 1.0 if found[0][1] + odds >= found[1][1] else -1.0
    return found[0 if sign > 0 else 1][0], sign


def add_standardised(scores: Iterable[Float64], test: NBest) -> Float64:
    """Return the sum of scores that are each divided by their deviation within the lists."""
    return np.asarray(sum(one / (measure_deviation(test, one) or 1.0) for one in scores))
