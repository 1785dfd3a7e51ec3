"""Statistics of a sampler: agreement with a long reference run, and efficiency."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import norm, rankdata
from scipy.stats import t as student

from bpa_ppl.diagnostics.estimates import (
    Estimate,
    as_independent,
    ess_of_each,
    independent,
    largest_r_hat,
    mean_of,
    share_of,
)
from bpa_ppl.diagnostics.significance import holm
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws, quantiles
from bpa_ppl.posterior.draws import WEIGHTS

QUANTILES = (0.05, 0.5, 0.95)
#: Of the null distribution; the smallest p-value is 1 / (splits + 1).
SPLITS = 499
_DIRECTIONS = 100
_MOST = 2000
_FEWEST = 20


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


def discrepancies(draws: Draws, reference: Draws) -> tuple[Discrepancy, ...]:
    """Compare means, standard deviations and quantiles of each weight with a reference.

    Each is tested as the mean of a function that the reference fixes, whose Monte-Carlo error is
    known: of λ, of (λ − its reference mean)², and of whether λ is below a reference quantile.

    Args:
        draws: of some sampler, with the features of the reference in the same order.
        reference: of a long run.
    """
    gaps = [gap for k in range(len(reference.features)) for gap in _gaps(draws, reference, k)]
    # An error that is estimated with a window of 5 autocorrelation times has a relative variance
    # of 20/ESS (Sokal 1997, §3), and so has a χ² of ESS/10 degrees of freedom.
    freedom = [max(gap.z.ess / 10, 1.0) for gap in gaps]
    p_values = holm(2 * student.sf(np.abs([gap.z.value for gap in gaps]), freedom))
    return tuple(
        Discrepancy(*gap[:-1], gap.z.value, float(p)) for gap, p in zip(gaps, p_values, strict=True)
    )


def _gaps(draws: Draws, reference: Draws, k: int) -> Iterator[_Gap]:
    name, ours, theirs = reference.features[k], draws.weights[..., k], reference.weights[..., k]
    centre, sd = _mean_and_sd(reference, theirs)
    own_centre, own_sd = _mean_and_sd(draws, ours)
    z = _z(mean_of(draws, ours), mean_of(reference, theirs))
    yield _Gap(name, "mean", own_centre, centre, (own_centre - centre) / sd, z)
    z = _z(mean_of(draws, (ours - centre) ** 2), mean_of(reference, (theirs - centre) ** 2))
    yield _Gap(name, "sd", own_sd, sd, (own_sd - sd) / sd, z)
    wanted, found = _quantiles(reference, theirs), _quantiles(draws, ours)
    for p, cut, value in zip(QUANTILES, wanted, found, strict=True):
        z = _z(share_of(draws, ours <= cut, p), share_of(reference, theirs <= cut, p))
        yield _Gap(name, f"q{100 * p:g}", float(value), float(cut), (value - cut) / sd, z)


def _z(own: Estimate, other: Estimate) -> _Z:
    """Return the difference of two estimates in its standard errors, and the smaller ESS."""
    value = (own.mean - other.mean) / np.hypot(own.error, other.error)
    return _Z(float(value), min(own.ess, other.ess))


def _mean_and_sd(draws: Draws, values: Float64) -> tuple[float, float]:
    mean = mean_of(draws, values).mean
    return mean, float(np.sqrt(mean_of(draws, (values - mean) ** 2).mean))


def _quantiles(draws: Draws, values: Float64) -> Float64:
    if not draws.weighted:
        return np.quantile(values, QUANTILES)
    return quantiles(values.reshape(-1, 1), QUANTILES, draws.importance)[:, 0]


@dataclass(frozen=True)
class Distance:
    """A sliced Wasserstein distance in units of the posterior standard deviation.

    Attributes:
        value: between the sampler and one half of the reference.
        null: the same for random parts of the reference's other half, sorted.
        p_value: how many of those are at least as far.
        draws: as good as independent ones that were compared; few cannot tell much.
    """

    value: float
    null: tuple[float, ...]
    p_value: float
    draws: int


def sliced_wasserstein(draws: Draws, reference: Draws, seed: int = 0) -> Distance:
    """Return the distance of the joint distributions, with its null distribution.

    The mean over random directions of the 1-Wasserstein distance of what the draws are along them
    (Bonneel et al. 2015), after the reference's covariance has been made the identity. The draws
    are thinned to half their ESS, so that they are as good as independent.

    Raises:
        DataError: if the reference has too few effective draws to be split.
    """
    rng = np.random.default_rng(seed)
    theirs = independent(reference, as_independent(reference), rng)
    if len(theirs) < 4 * _FEWEST:
        raise DataError(
            f"the reference has {len(theirs)} draws as good as independent, and {4 * _FEWEST} are "
            "needed: make the reference run longer"
        )
    count = max(1, min(as_independent(draws), len(theirs) // 4, _MOST))
    along = _whitening(theirs) @ _directions(theirs.shape[1], rng)
    half, rest = np.array_split(theirs @ along, 2)
    marks = np.quantile(half, (np.arange(count) + 0.5) / count, axis=0)
    null = [_far(rng.choice(rest, count, replace=False), marks) for _ in range(SPLITS)]
    value = _far(independent(draws, count, rng) @ along, marks)
    p_value = (1 + np.sum(np.array(null) >= value)) / (SPLITS + 1)
    return Distance(value, tuple(sorted(null)), float(p_value), count)


def _far(projected: Float64, marks: Float64) -> float:
    return float(np.abs(np.sort(projected, axis=0) - marks).mean())


def _whitening(draws: Float64) -> Float64:
    """Return the matrix that makes the covariance of draws the identity."""
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(draws.T)))
    return vectors / np.sqrt(np.maximum(values, 1e-12 * values.max()))


def _directions(features: int, rng: np.random.Generator) -> Float64:
    """Return random unit vectors, (features, directions)."""
    vectors = rng.normal(size=(features, _DIRECTIONS))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=0))


#: Effective draws that rank-normalised diagnostics ask for (Vehtari et al. 2021).
ENOUGH = 400
_ARRIVED = 0.95


@dataclass(frozen=True)
class Efficiency:
    """The cost and worth of the draws of one sampler; None where a run does not record it.

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


def efficiency(runs: Sequence[Draws], together: Draws, target: Draws) -> Efficiency:
    """Return what a sampler's runs give for their cost.

    Args:
        runs: of the same sampler from different seeds.
        together: all of them, as chains side by side.
        target: draws that show where the posterior is: a reference run's, or the same.
    """
    bulk, tail, mean = (_worst_ess(runs, method) for method in ("bulk", "tail", "mean"))
    chains, draws = runs[0].shape
    markov = not together.weighted
    seconds, evaluations = _median(map(_seconds, runs)), _median(map(_evaluations, runs))
    acceptance = _median(map(_acceptance, runs))
    wanted = {"seconds": seconds, "evaluations": evaluations}
    if markov:
        wanted = {"acceptance": acceptance, **wanted}
    superchains = markov and len({run.shape for run in runs}) == 1
    where = target.reordered(runs[0].features)
    weights = together.weights
    return Efficiency(
        runs=len(runs),
        chains=chains,
        draws=draws,
        acceptance=acceptance,
        r_hat=largest_r_hat(together) if markov else None,
        nested_r_hat=nested_r_hat(np.stack([r.weights for r in runs])) if superchains else None,
        bulk_ess=bulk,
        tail_ess=tail,
        autocorrelation_time=_ratio(chains * draws, mean) or np.inf,
        burn_in=max(_arrival(run, where) for run in runs) if markov else None,
        seconds=seconds,
        ess_per_second=_ratio(bulk, seconds),
        seconds_to_enough=_seconds_to_enough(runs[0], seconds, bulk),
        evaluations=evaluations,
        ess_per_evaluation=_ratio(bulk, evaluations),
        mcse={n: mean_of(together, weights[..., k]).error for k, n in enumerate(together.features)},
        missing=tuple(name for name, value in wanted.items() if value is None),
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


def _worst_ess(runs: Sequence[Draws], method: str) -> float:
    return float(np.mean([ess_of_each(run, method).min() for run in runs]))


def _acceptance(run: Draws) -> float | None:
    rate = run.statistics.get("acceptance_rate")
    return None if rate is None else float(np.mean(rate))


def _seconds(run: Draws) -> float | None:
    """Return how long the sampling took: ArviZ's schema has an attribute for it."""
    seconds = run.attrs.get("sampling_time")
    return None if seconds is None else float(seconds)


def _thinning(run: Draws) -> int:
    """Return the steps of a chain from one draw to the next."""
    settings = run.attrs.get("settings")
    return int(settings.get("thinning", 1)) if isinstance(settings, dict) else 1


def _warmup(run: Draws) -> Float64:
    """Return the draws of the weights before those kept, (C, W, Q)."""
    return np.asarray(run.warmup.get(WEIGHTS, run.weights[:, :0]), np.float64)


def _evaluations(run: Draws) -> float | None:
    """Return how often the likelihood was computed: once a step, or as the sampler recorded.

    The steps of a warm-up are not recorded and are counted like those of the kept draws.
    """
    chains, draws = run.shape
    if run.weighted:
        return float(chains * draws)
    recorded = run.statistics.get("n_steps")
    if recorded is None and "settings" not in run.attrs:
        return None
    a_draw = _thinning(run) if recorded is None else float(np.mean(recorded))
    return float(chains * (draws + _warmup(run).shape[1]) * a_draw)


def _seconds_to_enough(run: Draws, seconds: float | None, ess: float) -> float | None:
    if seconds is None or not ess:
        return None
    draws, warmup = run.shape[1], _warmup(run).shape[1]
    return seconds * (warmup + draws * ENOUGH / ess) / (warmup + draws)


def _arrival(run: Draws, target: Draws) -> int:
    """Return the steps until each chain has first been among the inner 95% of the target.

    Nearness is the Mahalanobis distance from the target's mean; warm-up draws come first.
    """
    importance = target.importance if target.weighted else None
    centre = np.average(target.flat, axis=0, weights=importance)
    precision = np.linalg.pinv(np.atleast_2d(np.cov(target.flat.T, aweights=importance)))

    def distance(values: Float64) -> Float64:
        gap = values - centre
        return np.einsum("...i,ij,...j->...", gap, precision, gap)

    near = np.quantile(distance(target.flat), _ARRIVED)
    inside = distance(np.concatenate([_warmup(run), run.weights], axis=1)) <= near
    first = np.where(inside.any(axis=1), inside.argmax(axis=1), inside.shape[1])
    return int(first.max() * _thinning(run))


def _ratio(worth: float, cost: float | None) -> float | None:
    return worth / cost if cost else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None
