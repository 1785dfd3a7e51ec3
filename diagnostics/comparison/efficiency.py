"""What a sampler gives for its time: acceptance, R-hat, ESS, burn-in and their cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm, rankdata

from bpa_ppl.diagnostics.comparison.runs import Runs, ess_of_each, runs_of
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import statistic

if TYPE_CHECKING:
    from arviz import InferenceData

#: Effective draws that rank-normalised diagnostics ask for (Vehtari et al. 2021).
ENOUGH = 400
_ARRIVED = 0.95


@dataclass(frozen=True)
class Efficiency:
    """The cost and worth of the draws of one sampler; None where a run does not tell.

    Attributes:
        runs, chains, draws: how many runs, chains a run, and kept draws a chain.
        acceptance: mean acceptance rate.
        r_hat: largest rank-normalised split R-hat over all chains of all runs.
        nested_r_hat: largest rank-normalised nested R-hat, each run a superchain: for many short
            chains (Margossian et al. 2024).
        bulk_ess, tail_ess: of the worst weight, mean over runs; of weighted draws Kish's.
        autocorrelation_time: kept draws per effective draw, of the worst weight.
        burn_in: steps until every chain has first come where the kept draws are.
        seconds: of a run, the median.
        ess_per_second: bulk ESS.
        seconds_to_enough: until 400 effective draws, warm-up included.
        evaluations: of the likelihood in a run, with or without its gradient.
        ess_per_evaluation: bulk ESS.
        mcse: for each weight the Monte-Carlo standard error of its mean over all runs.
        missing: what the runs did not record.
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


def efficiency(runs: Sequence[InferenceData], pooled: Runs, target: Runs) -> Efficiency:
    """Return what a sampler's runs give for their cost.

    Args:
        runs: posteriors of the same sampler from different seeds.
        pooled: their draws together.
        target: the draws that tell where the posterior is: a reference run's, or the same.
    """
    singles = [runs_of([run]) for run in runs]
    bulk, tail, mean = (_worst_ess(singles, method) for method in ("bulk", "tail", "mean"))
    chains, draws = singles[0].values.shape[:2]
    markov = pooled.weight is None
    seconds, evaluations = _median(map(_seconds, runs)), _median(map(_evaluations, runs))
    acceptance = _median(map(_acceptance, runs))
    told = {"acceptance": acceptance, "seconds": seconds, "evaluations": evaluations}
    if not markov:
        told.pop("acceptance")
    return Efficiency(
        runs=len(runs),
        chains=chains,
        draws=draws,
        acceptance=acceptance,
        r_hat=pooled.largest_r_hat() if markov else None,
        nested_r_hat=nested_r_hat(np.stack([s.values for s in singles])) if markov else None,
        bulk_ess=bulk,
        tail_ess=tail,
        autocorrelation_time=_ratio(chains * draws, mean) or np.inf,
        burn_in=max(_arrival(run, target) for run in runs) if markov else None,
        seconds=seconds,
        ess_per_second=_ratio(bulk, seconds),
        seconds_to_enough=_seconds_to_enough(runs[0], seconds, bulk),
        evaluations=evaluations,
        ess_per_evaluation=_ratio(bulk, evaluations),
        mcse={n: pooled.mean(pooled.values[..., k]).error for k, n in enumerate(pooled.names)},
        missing=tuple(name for name, value in told.items() if value is None),
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


def _worst_ess(singles: Sequence[Runs], method: str) -> float:
    return float(np.mean([ess_of_each(s.values, s.weight, method).min() for s in singles]))


def _acceptance(run: InferenceData) -> float | None:
    rate = statistic(run, "acceptance_rate")
    return None if rate is None else float(rate.mean())


def _seconds(run: InferenceData) -> float | None:
    """Return how long the sampling took: ArviZ's schema has an attribute for it."""
    seconds = run["posterior"].attrs.get("sampling_time")
    return None if seconds is None else float(seconds)


def _settings(run: InferenceData) -> dict[str, Any]:
    return json.loads(run.attrs.get("settings", "{}"))


def _warmup(run: InferenceData) -> int:
    return run["warmup_posterior"].sizes["draw"] if "warmup_posterior" in run else 0


def _evaluations(run: InferenceData) -> float | None:
    """Return how often the likelihood was computed: once a step, or as the sampler recorded.

    The steps of a warm-up are not recorded and are counted like those of the kept draws.
    """
    chains, draws = run["posterior"]["weights"].shape[:2]
    if statistic(run, "log_weight") is not None:
        return float(chains * draws)
    recorded = statistic(run, "n_steps")
    if recorded is None and "settings" not in run.attrs:
        return None
    a_draw = _settings(run).get("thinning", 1) if recorded is None else float(recorded.mean())
    return float(chains * (draws + _warmup(run)) * a_draw)


def _seconds_to_enough(run: InferenceData, seconds: float | None, ess: float) -> float | None:
    if seconds is None or not ess:
        return None
    draws, warmup = run["posterior"].sizes["draw"], _warmup(run)
    return seconds * (warmup + draws * ENOUGH / ess) / (warmup + draws)


def _arrival(run: InferenceData, target: Runs) -> int:
    """Return the steps until each chain has first been among the inner 95% of the target.

    Nearness is the Mahalanobis distance from the target's mean; warm-up draws come first.
    """
    centre, spread = _moments(target)
    shape = np.linalg.pinv(spread)

    def distance(values: Float64) -> Float64:
        gap = values - centre
        return np.einsum("...i,ij,...j->...", gap, shape, gap)

    near = np.quantile(distance(target.draws), _ARRIVED)
    parts = [run[g]["weights"].values for g in ("warmup_posterior", "posterior") if g in run]
    inside = distance(np.concatenate(parts, axis=1)) <= near
    first = np.where(inside.any(axis=1), inside.argmax(axis=1), inside.shape[1])
    return int(first.max() * _settings(run).get("thinning", 1))


def _moments(sample: Runs) -> tuple[Float64, Float64]:
    """Return mean and covariance of all draws."""
    weight = None if sample.weight is None else sample.weight.reshape(-1)
    mean = np.average(sample.draws, axis=0, weights=weight)
    return mean, np.atleast_2d(np.cov(sample.draws.T, aweights=weight))


def _ratio(worth: float, cost: float | None) -> float | None:
    return worth / cost if cost else None


def _median(values: Any) -> float | None:
    told = [value for value in values if value is not None]
    return float(np.median(told)) if told else None
