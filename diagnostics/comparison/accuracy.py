"""Is a sampler right? Its moments and quantiles against a long reference run, weight by weight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from bpa_ppl.diagnostics.comparison.multiple_testing import holm
from bpa_ppl.diagnostics.comparison.runs import Estimate, Runs
from bpa_ppl.nbest import Float64

QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class Discrepancy:
    """One property of one weight's marginal distribution, sampler against reference.

    Attributes:
        weight: the feature.
        quantity: `mean`, `sd`, or a quantile such as `q5`.
        value, reference: the two estimates, in units of the weight.
        bias: their difference in posterior standard deviations of the reference.
        z: the difference in Monte-Carlo standard errors, both runs' together.
        p_value: of z by Student's t, adjusted by Holm over all weights and quantities.
    """

    weight: str
    quantity: str
    value: float
    reference: float
    bias: float
    z: float
    p_value: float


class _Z(NamedTuple):
    value: float
    ess: float


class _Gap(NamedTuple):
    weight: str
    quantity: str
    value: float
    reference: float
    bias: float
    z: _Z


def discrepancies(sample: Runs, reference: Runs) -> tuple[Discrepancy, ...]:
    """Hold means, standard deviations and quantiles of each weight against a reference.

    Each is tested as the mean of a function that the reference fixes, whose Monte-Carlo error is
    known: of λ, of (λ − its reference mean)², and of whether λ is below a reference quantile.
    """
    gaps = [gap for k in range(len(reference.names)) for gap in _gaps(sample, reference, k)]
    # An error that is estimated with a window of 5 autocorrelation times has a relative variance
    # of 20/ESS (Sokal 1997, §3), and so has a χ² of ESS/10 degrees of freedom.
    freedom = [max(gap.z.ess / 10, 1.0) for gap in gaps]
    p_values = holm(2 * student.sf(np.abs([gap.z.value for gap in gaps]), freedom))
    return tuple(
        Discrepancy(*gap[:-1], gap.z.value, float(p)) for gap, p in zip(gaps, p_values, strict=True)
    )


def _gaps(sample: Runs, reference: Runs, k: int) -> Iterator[_Gap]:
    name, ours, theirs = reference.names[k], sample.values[..., k], reference.values[..., k]
    centre, sd = _mean_and_sd(reference, theirs)
    own_centre, own_sd = _mean_and_sd(sample, ours)
    z = _z(sample.mean(ours), reference.mean(theirs))
    yield _Gap(name, "mean", own_centre, centre, (own_centre - centre) / sd, z)
    z = _z(sample.mean((ours - centre) ** 2), reference.mean((theirs - centre) ** 2))
    yield _Gap(name, "sd", own_sd, sd, (own_sd - sd) / sd, z)
    wanted, found = _quantiles(reference, theirs), _quantiles(sample, ours)
    for p, cut, value in zip(QUANTILES, wanted, found, strict=True):
        z = _z(sample.share(ours <= cut, p), reference.share(theirs <= cut, p))
        yield _Gap(name, f"q{100 * p:g}", float(value), float(cut), (value - cut) / sd, z)


def _z(own: Estimate, other: Estimate) -> _Z:
    """Return the difference of two estimates in its standard errors, and the ESS that tells it."""
    value = (own.mean - other.mean) / np.hypot(own.error, other.error)
    return _Z(float(value), min(own.ess, other.ess))


def _mean_and_sd(sample: Runs, values: Float64) -> tuple[float, float]:
    mean = sample.mean(values).mean
    return mean, float(np.sqrt(sample.mean((values - mean) ** 2).mean))


def _quantiles(sample: Runs, values: Float64) -> Float64:
    if sample.weight is None:
        return np.quantile(values, QUANTILES)
    order = np.argsort(values, axis=None)
    below = np.cumsum(sample.weight.reshape(-1)[order])
    at = np.searchsorted(below, QUANTILES).clip(max=len(order) - 1)
    return np.asarray(values.reshape(-1)[order][at])
