"""Efficiency of a sampler: what its draws cost, and what they are worth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, rankdata

from bpa_ppl.diagnostics.estimates import ess_of_each, largest_r_hat, mean_of
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws
from bpa_ppl.posterior.draws import WEIGHTS

#: Effective draws that rank-normalised diagnostics need (Vehtari et al. 2021).
ENOUGH = 400
_BULK = 0.95  # of the target, that a chain must reach


@dataclass(frozen=True)
class Efficiency:
    """The cost and quality of the draws of one sampler; None if a run does not record it.

    Attributes:
        runs: the number of runs.
        chains: per run.
        draws: kept draws per chain.
        acceptance: mean acceptance rate.
        r_hat: largest rank-normalised split R-hat over all chains of all runs.
        nested_r_hat: largest rank-normalised nested R-hat, each run a superchain: for many short
            chains (Margossian et al. 2024).
        bulk_ess: of the worst weight, mean over runs; of weighted draws Kish's.
        tail_ess: likewise.
        autocorrelation_time: kept draws per effective draw, of the worst weight.
        burn_in: steps until every chain has reached the bulk of the target.
        seconds: of a run, the median.
        ess_per_second: bulk ESS.
        seconds_to_enough: until 400 effective draws, with warm-up.
        evaluations: of the likelihood in a run, with or without gradient.
        ess_per_evaluation: bulk ESS.
        mcse: for each weight the Monte-Carlo standard error of its mean over all runs.
        missing: the names of what the runs did not record.
    """

    runs: int
    chains: int
    draws: int
    acceptance: float | None
    r_hat: float | None
    nested_r_hat: float | None
    bulk_ess: float
    tail_ess: float
    autocorrelation_time: float
    burn_in: int | None
    seconds: float | None
    ess_per_second: float | None
    seconds_to_enough: float | None
    evaluations: float | None
    ess_per_evaluation: float | None
    mcse: dict[str, float]
    missing: tuple[str, ...]


def efficiency(runs: Sequence[Draws], joint: Draws, target: Draws) -> Efficiency:
    """Return the cost and quality of the runs of a sampler.

    Args:
        runs: of the same sampler with different seeds.
        joint: all runs, as chains of one.
        target: draws of a reference run, or the same draws, that define the bulk of the posterior.
    """
    bulk, tail, mean = (
        float(np.mean([ess_of_each(run, method).min() for run in runs]))
        for method in ("bulk", "tail", "mean")
    )
    chains, draws = runs[0].shape
    markov = not joint.weighted
    # The schema of ArviZ has an attribute for the duration of the sampling.
    seconds = _median(run.attrs.get("sampling_time") for run in runs)
    evaluations = _median(map(_evaluations, runs))
    rates = [run.statistics.get("acceptance_rate") for run in runs]
    acceptance = _median(None if rate is None else float(np.mean(rate)) for rate in rates)
    warmup = _warmup(runs[0]).shape[1]
    seconds_needed = None  # seconds until 400 effective draws
    if seconds is not None and bulk:
        seconds_needed = seconds * (warmup + draws * ENOUGH / bulk) / (warmup + draws)
    costs = {"seconds": seconds, "evaluations": evaluations}
    if markov:
        costs = {"acceptance": acceptance, **costs}
    superchains = markov and len({run.shape for run in runs}) == 1
    target = target.reordered(runs[0].features)
    weights = joint.weights
    return Efficiency(
        runs=len(runs),
        chains=chains,
        draws=draws,
        acceptance=acceptance,
        r_hat=largest_r_hat(joint) if markov else None,
        nested_r_hat=nested_r_hat(np.stack([r.weights for r in runs])) if superchains else None,
        bulk_ess=bulk,
        tail_ess=tail,
        autocorrelation_time=_ratio(chains * draws, mean) or np.inf,
        burn_in=max(_arrival(run, target) for run in runs) if markov else None,
        seconds=seconds,
        ess_per_second=_ratio(bulk, seconds),
        seconds_to_enough=seconds_needed,
        evaluations=evaluations,
        ess_per_evaluation=_ratio(bulk, evaluations),
        mcse={n: mean_of(joint, weights[..., k]).error for k, n in enumerate(joint.features)},
        missing=tuple(name for name, value in costs.items() if value is None),
    )


def nested_r_hat(values: Float64) -> float | None:
    """Return the largest rank-normalised nested R-hat of a weight (Margossian et al. 2024).

    √(1 + B/W): B is the variance of the means of the superchains, W the mean over superchains of
    the variance inside them, between their chains and within each.

    Args:
        values: (superchains, chains, draws, features).

    Returns:
        None if there is one superchain.

    >>> draws = np.random.default_rng(0).normal(size=(8, 16, 5, 2))
    >>> 1.0 < nested_r_hat(draws) < 1.05
    True
    """
    if len(values) < 2:
        return None
    ranks = rankdata(values.reshape(-1, values.shape[-1]), axis=0)
    z = norm.ppf((ranks - 0.375) / (len(ranks) + 0.25)).reshape(values.shape)
    chain_means, chain_variances = z.mean(axis=2), _variance(z, 2)
    between_chains = _variance(chain_means, 1)
    within = (between_chains + chain_variances.mean(axis=1)).mean(axis=0)
    between = chain_means.mean(axis=1).var(axis=0, ddof=1)
    return float(np.sqrt(1 + np.max(between / np.where(within > 0, within, np.nan))))


def _variance(values: Float64, axis: int) -> Float64:
    """Return the sample variance along an axis, zero for a single value."""
    ddof = 1 if values.shape[axis] > 1 else 0
    return np.asarray(values.var(axis=axis, ddof=ddof))


def _thinning(run: Draws) -> int:
    """Return the number of steps of a chain between kept draws."""
    settings = run.attrs.get("settings")
    return int(settings.get("thinning", 1)) if isinstance(settings, dict) else 1


def _warmup(run: Draws) -> Float64:
    """Return the warm-up draws of the weights, (C, W, Q)."""
    return np.asarray(run.warmup.get(WEIGHTS, run.weights[:, :0]), np.float64)


def _evaluations(run: Draws) -> float | None:
    """Return the number of evaluations of the likelihood: one a step, unless it is recorded.

    The steps of the warm-up are not recorded: they are counted like those of the kept draws.
    """
    chains, draws = run.shape
    if run.weighted:
        return float(chains * draws)
    recorded = run.statistics.get("n_steps")
    if recorded is None and "settings" not in run.attrs:
        return None
    per_draw = _thinning(run) if recorded is None else float(np.mean(recorded))
    return float(chains * (draws + _warmup(run).shape[1]) * per_draw)


def _arrival(run: Draws, target: Draws) -> int:
    """Return the number of steps until each chain has been in the central 95% of the target.

    The centre is defined by the Mahalanobis distance from the mean; warm-up draws come first.
    """
    importance = target.importance if target.weighted else None
    centre = np.average(target.flat, axis=0, weights=importance)
    precision = np.linalg.pinv(np.atleast_2d(np.cov(target.flat.T, aweights=importance)))

    def distance(values: Float64) -> Float64:
        gap = values - centre
        return np.asarray(np.einsum("...i,ij,...j->...", gap, precision, gap))

    bound = np.quantile(distance(target.flat), _BULK)
    inside = distance(np.concatenate([_warmup(run), run.weights], axis=1)) <= bound
    first = np.where(inside.any(axis=1), inside.argmax(axis=1), inside.shape[1])
    return int(first.max() * _thinning(run))


def _ratio(size: float, cost: float | None) -> float | None:
    return size / cost if cost else None


def _median(values: Iterable[float | None]) -> float | None:
    recorded = [value for value in values if value is not None]
    return float(np.median(recorded)) if recorded else None
