"""Checks of Markov chains, by ArviZ."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from bpa_ppl.diagnostics.checks.report import Finding
from bpa_ppl.diagnostics.checks.thresholds import Thresholds
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import feature_names, import_arviz, statistic

if TYPE_CHECKING:
    from arviz import InferenceData
    from xarray import Dataset

#: Random walk -> what sets the size of its steps; the other samplers may accept everything.
_STEPS = {"rwm": "scale", "rwm-isotropic": "proposal_variance"}


def findings(posterior: InferenceData, limits: Thresholds) -> list[Finding]:
    """Return the findings on the kept draws of the weights and on the sampler's statistics."""
    chains = posterior["posterior"]["weights"].shape[0]
    return [
        *_of_weights(posterior, limits, chains),
        *_of_acceptance(posterior, limits),
        *_of_divergences(posterior),
        *_of_energy(posterior, limits),
    ]


def _of_weights(posterior: InferenceData, limits: Thresholds, chains: int) -> list[Finding]:
    names = feature_names(posterior)
    ess = limits.ess_per_chain * chains
    bulk, tail = each(posterior, "ess", method="bulk"), each(posterior, "ess", method="tail")
    mcse = each(posterior, "mcse", method="mean") / _deviation(posterior)
    more = "draw more (draws), or use a sampler that mixes better (nuts)"
    return [
        _worst(
            "R-hat",
            each(posterior, "rhat", method="rank"),
            names,
            limits.r_hat,
            "the chains disagree ({value:.3f} for {where}): raise warmup, then draws",
        ),
        _worst("bulk ESS", bulk, names, ess, "{value:.0f} effective draws of {where}: " + more, -1),
        _worst(
            "tail ESS", tail, names, ess, "{value:.0f} effective draws in the tails: " + more, -1
        ),
        _worst(
            "MCSE / sd",
            mcse,
            names,
            limits.mcse,
            "the mean of {where} is uncertain by {value:.2f} posterior sd: " + more,
        ),
        _worst(
            "drift (|z|)",
            np.abs(drift(posterior)),
            names,
            float(norm.isf(limits.drift / (2 * len(names)))),
            "the kept draws of {where} still drift: raise warmup (burn-in)",
        ),
    ]


def drift(posterior: InferenceData) -> Float64:
    """Return z of the difference between the halves of the kept draws, (features,).

    The difference of the means of the first and the second half, over all chains, in units of its
    Monte-Carlo standard error (after Geweke 1992, with ArviZ's MCSE for the spectral estimate).
    """
    weights = posterior["posterior"][["weights"]]
    half = weights.sizes["draw"] // 2
    first, second = weights.isel(draw=slice(half)), weights.isel(draw=slice(-half, None))
    error = np.hypot(_error(first), _error(second))
    shift = second["weights"].mean(("chain", "draw")) - first["weights"].mean(("chain", "draw"))
    return np.asarray(shift.values) / np.where(error > 0, error, np.nan)


def _error(weights: Dataset) -> Float64:
    """Return the MCSE of each mean, at least that of independent draws, (features,).

    Chains whose draws alternate, as those of NUTS do, have an ESS beyond their number, but its
    estimate is then so noisy that one good chain in fifteen would seem to drift.
    """
    draws = weights["weights"]
    independent = draws.std(("chain", "draw"), ddof=1) / np.sqrt(draws[..., 0].size)
    return np.maximum(each(weights, "mcse", method="mean"), np.asarray(independent.values))


def _of_acceptance(posterior: InferenceData, limits: Thresholds) -> list[Finding]:
    recorded = statistic(posterior, "acceptance_rate")
    if recorded is None:
        return []
    rates = recorded.mean(axis=1)
    low, high = limits.acceptance_low, limits.acceptance_high
    setting = _STEPS.get(str(posterior.attrs.get("sampler")))
    if setting is None:
        high = 1.0
    outside = np.maximum(low - rates, rates - high)
    worst = int(np.argmax(outside))
    rate = float(rates[worst])
    side = "large" if rate < low else "small"
    change = "lower" if rate < low else "raise"
    remedy = "use nuts" if setting is None else f"{change} {setting}, or use nuts"
    advice = f"acceptance {rate:.2f}: the steps are too {side} for this posterior; {remedy}"
    where = f"chain {worst}"
    return [Finding("acceptance", rate, where, f"{low:g} to {high:g}", low <= rate <= high, advice)]


def _of_divergences(posterior: InferenceData) -> list[Finding]:
    diverging = statistic(posterior, "diverging")
    if diverging is None:
        return []
    count = int(diverging.sum())
    advice = f"{count} divergent transitions: raise target_accept, for example to 0.95"
    return [Finding("divergences", count, "", "= 0", count == 0, advice)]


def _of_energy(posterior: InferenceData, limits: Thresholds) -> list[Finding]:
    if statistic(posterior, "energy") is None:
        return []
    fractions = np.asarray(import_arviz().bfmi(posterior))
    worst = int(np.argmin(fractions))
    value = float(fractions[worst])
    advice = f"BFMI {value:.2f}: the energy mixes slowly; raise warmup or reparametrise the model"
    limit = f"≥ {limits.bfmi:g}"
    return [Finding("BFMI", value, f"chain {worst}", limit, value >= limits.bfmi, advice)]


def _worst(
    name: str, values: Float64, names: tuple[str, ...], limit: float, advice: str, sign: int = 1
) -> Finding:
    """Hold the worst of some values against a limit: the largest, or for sign −1 the smallest."""
    # A chain that never moves has no variance, and no finite diagnostic: that is the worst of all.
    badness = np.where(np.isfinite(values), sign * values, np.inf)
    at = int(np.argmax(badness))
    value = float(values[at])
    passed = bool(np.isfinite(value) and sign * value <= sign * limit)
    text = advice.format(value=value, where=names[at])
    return Finding(name, value, names[at], f"{'≤' if sign > 0 else '≥'} {limit:.4g}", passed, text)


def each(draws: InferenceData | Dataset, statistic_name: str, **options: str) -> Float64:
    """Return one of ArviZ's statistics for each weight, (features,)."""
    function: Callable = getattr(import_arviz(), statistic_name)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(function(draws, var_names=["weights"], **options)["weights"].values)


def _deviation(posterior: InferenceData) -> Float64:
    deviation = np.asarray(posterior["posterior"]["weights"].std(("chain", "draw"), ddof=1).values)
    return np.where(deviation > 0, deviation, np.nan)
