"""check: is this posterior fit to be used? Each kind of draws has diagnostics of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from bpa_ppl.diagnostics.checks.advice import Remedies
from bpa_ppl.diagnostics.checks.report import Finding, Report, Thresholds
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws, as_draws, kish
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.posterior.statistics import bfmi, ess, mcse, pareto_smoothed, r_hat

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

#: Squared length of the last Newton step in posterior standard deviations.
_DECREMENT = 1e-6
#: Effective draws for each degree of freedom of a Monte-Carlo error.
_WINDOW = 10.0


def check(posterior: Posterior, thresholds: Thresholds | None = None) -> Report:
    """Compare a posterior's diagnostics with their thresholds.

    Chains are looked at by rank-normalised split R-hat, bulk and tail ESS, MCSE and drift of every
    number that was sampled, the weights and all other sites, and by acceptance, divergences and
    BFMI, as far as the sampler recorded them; weighted samples by the effective sample size of
    their importance weights and Pareto k̂; a mode by the convergence of its search.

    Args:
        posterior: draws with a site `weights`, from this library or another.
        thresholds: limits other than the stated ones.

    Returns:
        a `Report`, true if every diagnostic keeps its threshold.

    Raises:
        DataError: if there are no draws of `weights`.

    >>> rng = np.random.default_rng(0)
    >>> draws = Draws({"weights": rng.normal(size=(4, 1000, 2))}, ("LM0", "WP0"))
    >>> bool(check(draws))
    True
    """
    draws, limits = as_draws(posterior, finite=False), thresholds or Thresholds()
    by_kind = {"chains": _of_chains, "weighted": _of_importance, "point": _of_optimum}
    sampler = str(draws.attrs.get("sampler", "unknown sampler"))
    if "chosen" in draws.attrs:
        why = draws.attrs.get("chosen_because", "it is not said why")
        sampler += f" ({draws.attrs['chosen']}: {why})"
    kind = "weighted" if draws.weighted else draws.kind
    return Report(sampler, draws.shape, tuple(by_kind[kind](draws, limits)))


def _of_chains(draws: Draws, limits: Thresholds) -> list[Finding]:
    return [
        *_of_components(draws, limits),
        *_of_acceptance(draws, limits),
        *_of_divergences(draws),
        *_of_energy(draws, limits),
    ]


def _of_components(draws: Draws, limits: Thresholds) -> list[Finding]:
    names, values = sampled_components(draws)
    least, remedies = limits.ess_per_chain * draws.shape[0], Remedies(draws)
    deviation = _deviation(values)
    error = mcse(values) / np.where(deviation > 0, deviation, np.nan)
    level = limits.drift / (2 * len(names))
    more, warm = remedies.more_draws(), remedies.longer_warmup()
    disagree = "the chains disagree ({value:.3f} for {where}): " + warm
    few = "{value:.0f} effective draws of {where}: " + more
    few_in_tails = "{value:.0f} effective draws in the tails: " + more
    uncertain = "the mean of {where} is uncertain by {value:.2f} posterior sd: " + more
    drifting = "the kept draws of {where} still drift: " + warm
    return [
        _worst("R-hat", r_hat(values), names, limits.r_hat, disagree),
        _worst("bulk ESS", ess(values), names, least, few, -1),
        _worst("tail ESS", ess(values, "tail"), names, least, few_in_tails, -1),
        _worst("MCSE / sd", error, names, limits.mcse, uncertain),
        _worst(
            "drift (|z|)", np.abs(drift(values, level)), names, float(norm.isf(level)), drifting
        ),
    ]


def sampled_components(draws: Draws) -> tuple[list[str], Float64]:
    """Return the names and draws, (C, D, components), of all that was sampled; NaN if not finite.

    A cell that is one and the same number in all draws, of a site whose other cells move, is left
    out: it is part of the site's form, as the ones of a correlation matrix are.

    >>> draws = Draws({"weights": np.ones((1, 2, 1)), "s": [[3, 4]]}, ("LM0",), sites=("s",))
    >>> sampled_components(draws)[0]
    ['LM0', 's']
    """
    found = draws.components()
    names = list(draws.features)
    for site in (site for site in draws.sites if site != WEIGHTS):
        own = replace(draws, sites=(site,)).components()
        cells = [name for name in own if name not in draws.features]
        moving = [name for name in cells if np.ptp(own[name]) != 0]
        names += moving or cells
    values = np.stack([found[name] for name in names], axis=-1)
    return names, np.where(np.isfinite(values), values, np.nan)


def drift(values: Float64, level: float = 0.005) -> Float64:
    """Return z of the difference between the halves of the kept draws, (C, D, …) ↦ (…).

    The difference of the means of the first and the second half, over all chains, in units of its
    Monte-Carlo standard error (after Geweke 1992, with ArviZ's MCSE for the spectral estimate).
    That error is itself an estimate, from a window of about ten autocorrelation times, so that the
    ratio is nearly Student's t with a tenth of the effective draws as degrees of freedom. It is
    shrunk by what its quantile is beyond that of a normal distribution.

    Args:
        values: the draws.
        level: of one side, at which quantiles are compared.
    """
    half = values.shape[1] // 2
    if half == 0:
        return np.full(values.shape[2:], np.nan)
    first, second = values[:, :half], values[:, -half:]
    errors = _error(first), _error(second)
    error = np.hypot(*errors)
    shift = second.mean(axis=(0, 1)) - first.mean(axis=(0, 1))
    z = shift / np.where(error > 0, error, np.nan)
    parts = zip((first, second), errors, strict=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.sum([(_deviation(part) / each) ** 2 for part, each in parts], axis=0)
    return np.asarray(z * norm.isf(level) / student.isf(level, np.fmax(effective / _WINDOW, 1.0)))


def _error(values: Float64) -> Float64:
    """Return the MCSE of each mean, at least that of independent draws.

    Chains whose draws alternate, as those of NUTS do, have an ESS beyond their number, but its
    estimate is then so noisy that one good chain in fifteen would seem to drift.
    """
    independent = _deviation(values) / np.sqrt(values.shape[0] * values.shape[1])
    result: Float64 = np.maximum(mcse(values), independent)
    return result


def _deviation(values: Float64) -> Float64:
    """Return the sample standard deviation of each component; a single draw has none."""
    if values.shape[0] * values.shape[1] == 1:
        return np.full(values.shape[2:], np.nan)
    return np.asarray(values.std(axis=(0, 1), ddof=1))


def _worst(
    name: str, values: Float64, names: Sequence[str], limit: float, advice: str, sign: int = 1
) -> Finding:
    """Compare the worst of some values with a limit: the largest, or for sign −1 the smallest."""
    # A chain that never moves has no variance, and no finite diagnostic: that is the worst of all.
    badness = np.where(np.isfinite(values), sign * values, np.inf)
    at = int(np.argmax(badness))
    value = float(values[at])
    passed = bool(np.isfinite(value) and sign * value <= sign * limit)
    text = advice.format(value=value, where=names[at])
    return Finding(name, value, names[at], f"{'≤' if sign > 0 else '≥'} {limit:.4g}", passed, text)


def _of_acceptance(draws: Draws, limits: Thresholds) -> list[Finding]:
    recorded = draws.statistics.get("acceptance_rate")
    if recorded is None:
        return []
    rates = np.asarray(recorded).mean(axis=1)
    # Only a sampler whose steps have a size to set can accept too much.
    setting = draws.attrs.get("step_setting")
    low, high = limits.acceptance_low, limits.acceptance_high if setting else 1.0
    worst = int(np.argmax(np.maximum(low - rates, rates - high)))
    rate = float(rates[worst])
    side = "large" if rate < low else "small"
    remedy = Remedies(draws).other_steps(larger=side == "small")
    advice = f"acceptance {rate:.2f}: the steps are too {side} for this posterior; {remedy}"
    limit = f"{low:g} to {high:g}"
    return [Finding("acceptance", rate, f"chain {worst}", limit, low <= rate <= high, advice)]


def _of_divergences(draws: Draws) -> list[Finding]:
    if "diverging" not in draws.statistics:
        return []
    count = int(np.sum(draws.statistics["diverging"]))
    advice = (
        f"{count} divergent transitions: {Remedies(draws).no_divergences()}; in a model of one's "
        "own, write what is scaled as scale × standard normal (non-centred)"
    )
    return [Finding("divergences", count, "", "= 0", count == 0, advice)]


def _of_energy(draws: Draws, limits: Thresholds) -> list[Finding]:
    if "energy" not in draws.statistics:
        return []
    fractions = bfmi(draws.statistics["energy"])
    worst = int(np.argmin(fractions))
    value = float(fractions[worst])
    remedy = Remedies(draws).longer_warmup()
    advice = f"BFMI {value:.2f}: the energy mixes slowly; {remedy}, or reparametrise the model"
    limit = f"≥ {limits.bfmi:g}"
    return [Finding("BFMI", value, f"chain {worst}", limit, value >= limits.bfmi, advice)]


def _of_importance(draws: Draws, limits: Thresholds) -> list[Finding]:
    """Return the findings on importance weights: Kish's effective sample size, Pareto k̂."""
    size, least = kish(draws.importance), limits.ess_per_chain
    log_weight = np.zeros(draws.shape) if draws.log_weight is None else draws.log_weight
    # Smoothed weights keep the k̂ of those that they were made of.
    k_hat = float(draws.attrs.get("pareto_k") or pareto_smoothed(log_weight)[1])
    remedies = Remedies(draws)
    few = (
        f"the importance weights rest on {size:.1f} of {len(draws.importance)} samples: "
        + remedies.more_samples()
    )
    heavy = (
        f"Pareto k̂ {k_hat:.2f}: the importance weights have so heavy a tail that their average is "
        f"not to be trusted; {remedies.markov_chain()}"
    )
    limit = f"≤ {limits.pareto_k:g}"
    return [
        Finding("ESS of the weights", size, "", f"≥ {least:g}", size >= least, few),
        Finding("Pareto k̂", k_hat, "", limit, k_hat <= limits.pareto_k, heavy),
    ]


def _of_optimum(draws: Draws, limits: Thresholds) -> list[Finding]:
    """Return the finding on the last step of the search for a mode; none recorded is a failure."""
    decrement = float(draws.attrs.get("newton_decrement", np.nan))
    advice = "the search for the mode did not converge: is the model's density smooth?"
    limit = f"≤ {_DECREMENT:g}"
    return [Finding("Newton decrement", decrement, "", limit, decrement <= _DECREMENT, advice)]
