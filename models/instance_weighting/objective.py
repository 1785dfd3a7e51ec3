"""The log-likelihood of a weighted mixture and its gradient, compiled (Foster et al. 2010, Eq. 7).

For pairs (x, y), of which x is predicted from y, and the OUT pairs r of y with counts c_r:

    p(x | y) = α_y p_I(x | y) + (1 − α_y) p_o(x | y)
    p_o(x | y) = (w_x + γ u) / (κ_y Σ_r w_r + γ)
    w_r = c_r · logistic(λ · f_r)

The uniform u is over the x that OUT has with y, 1 / (κ_y n_y) for n_y rows. κ_y is 1 where all
pairs of y are in the table. Where some are missing, because the table is a part of a larger one,
c_o(y) of the whole is known: the missing mass is given the mean weight of the pairs that are
there, so that the sum over all pairs of y is κ_y Σ_r w_r, κ_y = c_o(y) / Σ_r c_r.

Where only one of the tables knows y, it has all the weight, α_y = 1 or 0, unless the variant is not
complete: p(· | y) sums to one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from bpa_ppl.models.instance_weighting.problem import Problem
from bpa_ppl.models.instance_weighting.variants import Phi, Variant, constrained
from bpa_ppl.nbest import Float32, Float64, Int64

#: λ·f beyond which a factor changes no more: e^±300 is still far inside of what a float holds.
BOUND = 300.0


@njit(nogil=True, cache=True)
def _factors(
    features: Float32, count: Float64, weights: Float64, logistic: bool
) -> tuple[Float64, Float64]:
    """Return the weighted count w of each row, and its derivative by λ·f, (R,) each."""
    rows, columns = features.shape
    weighted, slope = np.empty(rows), np.empty(rows)
    for r in range(rows):
        eta = 0.0
        for k in range(columns):
            eta += weights[k] * features[r, k]
        inner = abs(eta) < BOUND
        eta = min(max(eta, -BOUND), BOUND)
        if logistic:
            factor = 1.0 / (1.0 + np.exp(-eta))
            # 1 − factor loses its digits where the factor is nearly 1.
            change = factor / (1.0 + np.exp(eta))
        else:
            factor = change = np.exp(eta)
        weighted[r] = count[r] * factor
        slope[r] = count[r] * change if inner else 0.0
    return weighted, slope


@njit(nogil=True, cache=True)
def _sums(values: Float64, starts: Int64) -> Float64:
    """Return the sum of the rows of each group, (G,)."""
    total = np.zeros(len(starts) - 1)
    for g in range(len(total)):
        for r in range(starts[g], starts[g + 1]):
            total[g] += values[r]
    return total


@njit(nogil=True, cache=True)
def _pulled_back(
    features: Float32, slope: Float64, group: Int64, by_row: Float64, by_group: Float64
) -> Float64:
    """Return Σ_r (by_row + by_group of its group) · slope · f_r, (Q,)."""
    gradient = np.zeros(features.shape[1])
    for r in range(len(slope)):
        factor = (by_row[r] + by_group[group[r]]) * slope[r]
        if factor != 0.0:
            for k in range(features.shape[1]):
                gradient[k] += factor * features[r, k]
    return gradient


class Mixed(NamedTuple):
    """The probabilities of the asked pairs (D), and what they were computed from.

    Attributes:
        probability: (D,) p(x | y).
        outer: (D,) p_o(x | y), 0 where OUT does not have the pair.
        share: (G,) α_y.
        divisor: (G,) the denominator of p_o.
        uniform: (G,) u(x | y).
        slope: (R,) the derivative of each weighted count by λ·f.
    """

    probability: Float64
    outer: Float64
    share: Float64
    divisor: Float64
    uniform: Float64
    slope: Float64


def mixed(problem: Problem, variant: Variant, phi: Phi) -> Mixed:
    """Return p(x | y; φ) of the asked pairs of a problem, (D,), and what it is made of.

    Args:
        problem: as `prepared` for the variant.
        variant: the form of the mixture.
        phi: its parameters.
    """
    if variant.weighted:
        logistic = variant.link == "logistic"
        weighted, slope = _factors(problem.features, problem.count, phi.weights, logistic)
    else:
        weighted, slope = problem.count, np.zeros_like(problem.count)
    rows, known = np.diff(problem.starts), problem.outside
    divisor = np.where(known, problem.missing * _sums(weighted, problem.starts) + phi.gamma, 1.0)
    uniform = known / np.maximum(problem.missing * rows, 1.0)
    share = shares(problem, variant, phi)
    group, at = problem.asked_group, problem.asked_row
    own = np.append(weighted, 0.0)[at]
    outer = np.where(at < 0, 0.0, (own + phi.gamma * uniform[group]) / divisor[group])
    inner = share[group] * problem.asked_in
    return Mixed(inner + (1 - share[group]) * outer, outer, share, divisor, uniform, slope)


def shares(problem: Problem, variant: Variant, phi: Phi) -> Float64:
    """Return α_y of each y, (G,)."""
    if variant.mixture == "map":
        share: Float64 = problem.in_total / (problem.in_total + phi.mixing)
    else:
        share = np.full(len(problem.in_total), phi.mixing)
    if not variant.complete:
        return share
    return np.where(problem.outside, np.where(problem.in_total > 0, share, 0.0), 1.0)


def log_likelihood(problem: Problem, variant: Variant, z: Float64) -> tuple[float, Float64]:
    """Return Σ n(x, y) log p(x | y; φ) over the asked pairs with support, and its gradient.

    Args:
        problem: as `prepared` for the variant.
        variant: the form of the mixture.
        z: (d,) the unconstrained values of φ.

    Returns:
        The value, in nats, and the gradient by z, (d,).
    """
    phi = constrained(variant, z)
    found = mixed(problem, variant, phi)
    seen = problem.supported & (problem.weight > 0)
    probability = np.where(seen, found.probability, 1.0)
    with np.errstate(divide="ignore"):
        value = float(problem.weight[seen] @ np.log(probability[seen]))
    by_probability = np.where(seen, problem.weight / np.maximum(probability, 1e-300), 0.0)
    group, at, groups = problem.asked_group, problem.asked_row, len(found.share)
    by_share = _summed(group, by_probability * (problem.asked_in - found.outer), groups)
    # By the numerator of p_o, and by its denominator.
    by_outer = by_probability * (1 - found.share[group]) / found.divisor[group] * (at >= 0)
    by_divisor = _summed(group, -by_outer * found.outer, groups)
    gradient = [_by_mixing(problem, variant, found.share, by_share)]
    if variant.smoothed:
        by_uniform = _summed(group, by_outer, groups) * found.uniform
        gradient.append(phi.gamma * float((by_uniform + by_divisor).sum()))
    if variant.weighted:
        by_row = _summed(at[at >= 0], by_outer[at >= 0], len(problem.count))
        by_group = by_divisor * problem.missing
        gradient.extend(
            _pulled_back(problem.features, found.slope, problem.group, by_row, by_group)
        )
    return value, np.array(gradient)


def _summed(index: Int64, values: Float64, size: int) -> Float64:
    """Return the sum of the values of each index from 0 on, (size,)."""
    return np.bincount(index, values, size).astype(np.float64)


def _by_mixing(problem: Problem, variant: Variant, share: Float64, by_share: Float64) -> float:
    """Return the derivative by logit α or log β; where a share is fixed, it is 0 or 1."""
    fixed = variant.complete & (~problem.outside | (problem.in_total == 0))
    change = np.where(fixed, 0.0, share * (1 - share))
    return float(by_share @ change) * (1 if variant.mixture == "linear" else -1)
