"""Moments and quantiles of a sampler and of a reference run, with their Monte-Carlo errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import t as student

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.diagnostics.samplers.efficiency import Row, smallest_ess
from bpa_ppl.posterior.draws import Draws, kish, quantiles
from bpa_ppl.posterior.statistics import ess

#: What is compared, and the probabilities of the quantiles.
_QUANTITIES, _PROBABILITIES = ("mean", "sd", "q5", "q50", "q95"), (0.05, 0.5, 0.95)
_COLUMNS = ("variable", "quantity", "value", "reference", "bias", "z", "p_value")
#: The probability that the bound of the bias holds.
PROBABILITY = 0.95


class Estimate(NamedTuple):
    """Means of functions of draws, their Monte-Carlo errors, and effective sample sizes."""

    mean: Float64
    error: Float64
    ess: Float64


def score_heavy(draws: Draws, standard: Draws, heavy: Sequence[str]) -> Draws:
    """Return draws with normal scores of some cells: of their ranks among those of a standard.

    Scores have a mean and a variance where the values have none, and the same order. The cells are
    named after it.

    >>> from bpa_ppl.posterior.draws import name_array
    >>> draws = name_array(np.array([[[-9.0], [0.0], [1e9]]]), ("x",))
    >>> scored = score_heavy(draws, draws, ["x"])
    >>> scored.names, scored.flat.round(2).ravel().tolist()
    (('the normal score of x',), [-0.97, 0.0, 0.97])
    """
    if not heavy:
        return draws
    values = np.array(draws.array)
    for name in heavy:
        k, ordered = draws.names.index(name), np.sort(standard.flat[:, standard.names.index(name)])
        sides = [np.searchsorted(ordered, values[..., k], side) for side in ("left", "right")]
        share = np.mean(sides, axis=0) / len(ordered)
        values[..., k] = ndtri(np.clip(share, 0.5 / len(ordered), 1 - 0.5 / len(ordered)))
    names = tuple(f"the normal score of {n}" if n in heavy else n for n in draws.names)
    return replace(draws, values={"values": values}, coords={"name": names})


def compare_moments(draws: Draws, reference: Draws, heavy: Sequence[str] = ()) -> tuple[Row, ...]:
    """Compare means, standard deviations and quantiles of each weight with a reference.

    Each is tested as the mean of a function that the reference determines, whose Monte-Carlo
    error is known: λ, (λ − its mean)², and whether λ is above a reference quantile.

    Args:
        draws: of a sampler, with the variables of the reference in the same order.
        reference: draws of a long run.
        heavy: cells without a variance, of which only quantiles are compared: their unit is not the
            standard deviation, but the distance of the outer quantiles over that of the normal
            distribution.

    Returns:
        the `variable`; the `quantity`: `mean`, `sd`, or a quantile such as `q5`; its `value` for
        the sampler and for the `reference`, in its units; the `bias`, their difference in
        posterior standard deviations of the reference; `z`, the difference in Monte-Carlo standard
        errors of both runs, of a quantile that of the share of draws above the reference's; the
        `p_value` of z by Student's t, adjusted by Holm over all rows.

    >>> rng = np.random.default_rng(0)
    >>> from bpa_ppl.posterior.draws import name_array
    >>> reference = name_array(rng.normal(7.0, 10.0, size=(4, 500, 1)), ("LM0",))
    >>> max(abs(row["z"]) for row in compare_moments(reference, reference))
    0.0
    >>> shifted = name_array(reference.array + 5.0, ("LM0",))
    >>> row = compare_moments(shifted, reference)[0]
    >>> row["quantity"], round(row["bias"], 2)
    ('mean', 0.5)
    """
    values, targets = _compute_moments(draws), _compute_moments(reference)
    ours, theirs = (_estimate(one, targets[2:]) for one in (draws, reference))
    light = ~np.isin(reference.names, heavy)
    spread = (targets[-1] - targets[2]) / (2 * ndtri(_PROBABILITIES[-1]))
    bias = (values - targets) / np.where(light, reference.deviation, spread)
    z = (ours.mean - theirs.mean) / np.hypot(ours.error, theirs.error)
    p = 2 * student.sf(np.abs(z), _degrees_of_freedom(np.minimum(ours.ess, theirs.ess)))
    compared = np.ones(p.shape, bool)
    compared[:2, ~light] = False
    p[compared] = holm(p[compared])
    columns = values, targets, bias, z, p
    rows = zip(*(column.T.reshape(-1).tolist() for column in columns), strict=True)
    cells = product(reference.names, _QUANTITIES)
    return tuple(
        dict(zip(_COLUMNS, (*cell, *row), strict=True))
        for cell, row, shown in zip(cells, rows, compared.T.reshape(-1), strict=True)
        if shown
    )


def _compute_moments(draws: Draws) -> Float64:
    """Return the mean, standard deviation and quantiles of each weight, (5, Q)."""
    if draws.weighted:
        cuts = quantiles(draws.flat, _PROBABILITIES, draws.importance)
    else:
        cuts = np.quantile(draws.flat, _PROBABILITIES, axis=0)
    return np.stack([draws.mean, draws.deviation, *cuts])


def _estimate(draws: Draws, cuts: Float64) -> Estimate:
    """Estimate the means of the functions that are tested, (5, Q), given reference quantiles."""
    x = draws.array
    above = (
        estimate_share(draws, x > cut, 1 - p) for p, cut in zip(_PROBABILITIES, cuts, strict=True)
    )
    parts = estimate_mean(draws, x), estimate_mean(draws, (x - draws.mean) ** 2), *above
    return Estimate(*map(np.stack, zip(*parts, strict=True)))


def _degrees_of_freedom(size: Float64) -> Float64:
    """Return ESS/10, the degrees of freedom of a mean divided by its error.

    With a window of 5 autocorrelation times, its relative variance is 20/ESS (Sokal 1997, §3).
    """
    return np.maximum(size / 10, 1.0)


def bound_bias(draws: Draws, reference: Draws) -> tuple[float, str]:
    """Return a bound of the absolute bias of all means (95%), and the weight with the largest one.

    It is in posterior standard deviations of the reference. For each weight, it is the difference
    of the means plus the quantile of Student's t times the errors of both. The largest holds for
    all variables at once (an intersection-union test, Berger 1982).

    >>> from bpa_ppl.posterior.draws import name_array
    >>> def draws(seed, count):
    ...     rng = np.random.default_rng(seed)
    ...     return name_array(rng.normal(size=(4, count, 2)), ("LM0", "WP0"))
    >>> few, many = (bound_bias(draws(1, count), draws(2, 5000))[0] for count in (100, 5000))
    >>> few > 0.1 > many
    True
    """
    a, b = (estimate_mean(one, one.array) for one in (draws, reference))
    quantile = student.ppf(PROBABILITY, _degrees_of_freedom(np.minimum(a.ess, b.ess)))
    bounds = (abs(a.mean - b.mean) + quantile * np.hypot(a.error, b.error)) / reference.deviation
    bounds = np.where(np.isfinite(bounds), bounds, np.inf)  # the squares of draws may overflow
    worst = int(bounds.argmax())
    return float(bounds[worst]), reference.names[worst]


def estimate_mean(draws: Draws, function_values: npt.ArrayLike) -> Estimate:
    """Return the means of functions of the draws, given their values, (C, D, …) ↦ (…).

    The error for chains is the standard deviation over √ESS (Vehtari et al. 2021), for importance
    samples that of a self-normalised sum (Owen 2013, §9.2). A constant has no error, and of chains
    no effective draws.

    >>> draws = Draws({"mu": np.zeros((1, 2))}, kind="weighted", log_weight=np.log([[1, 3]]))
    >>> estimate_mean(draws, [[0.0, 1.0]]).mean.round(2)
    np.float64(0.75)
    """
    x = np.asarray(function_values, np.float64)
    flat = x.reshape(-1, *x.shape[2:])
    if draws.weighted:
        share = draws.importance
        mean = np.tensordot(share, flat, 1)
        error = np.sqrt(np.tensordot(share**2, (flat - mean) ** 2, 1))
        return Estimate(mean, error, np.full(mean.shape, kish(share)))
    size = np.where(np.ptp(flat, axis=0) > 0, ess(x, "mean"), 0.0)
    error = flat.std(axis=0, ddof=1) / np.sqrt(np.where(size > 0, size, np.inf))
    return Estimate(flat.mean(axis=0), error, size)


def estimate_share(draws: Draws, beyond: npt.ArrayLike, expected: float) -> Estimate:
    """Return the shares of draws beyond quantiles, with the error of the expected share.

    Few draws are beyond an outer quantile, so their own share says too little about the error.
    """
    share, _, size = estimate_mean(draws, beyond)
    if not size.all():  # all draws are on one side
        size = np.where(size > 0, size, smallest_ess(draws))
    with np.errstate(divide="ignore"):
        return Estimate(share, np.sqrt(expected * (1 - expected) / size), size)


def holm(p_values: npt.ArrayLike) -> Float64:
    """Return p-values adjusted by the step-down method of Holm (1979), in the same order.

    Rejecting where an adjusted value is at most α controls the family-wise error rate at α under
    any dependence.

    Args:
        p_values: (tests,) in [0, 1].

    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p)
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
