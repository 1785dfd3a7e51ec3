"""Statistics of a sampler: agreement with a long reference run, and efficiency."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import norm, rankdata
from scipy.stats import t as student

from bpa_ppl.diagnostics.estimates import (
    Estimate,
    ess_of_each,
    holm,
    independent,
    independent_count,
    largest_r_hat,
    mean_of,
    share_of,
)
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws, quantiles
from bpa_ppl.posterior.draws import WEIGHTS

QUANTILES = (0.05, 0.5, 0.95)
#: Of the null distribution; the smallest p-value is 1 / (splits + 1).
SPLITS = 499
_DIRECTIONS = 100
_MAX_DRAWS = 2000
_MIN_DRAWS = 20


@dataclass(frozen=True)
class Discrepancy:
    """The difference of one property of one weight between a sampler and the reference.

    Attributes:
        weight: the feature.
        quantity: `mean`, `sd`, or a quantile such as `q5`.
        value: the estimate of the sampler, in units of the weight.
        reference: the estimate of the reference.
        bias: their difference in posterior standard deviations of the reference.
        z: the difference in Monte-Carlo standard errors of both runs.
        p_value: of z by Student's t, adjusted by Holm over all weights and quantities.
    """

    weight: str
    quantity: str
    value: float
    reference: float
    bias: float
    z: float
    p_value: float


def discrepancies(draws: Draws, reference: Draws) -> tuple[Discrepancy, ...]:
    """Compare means, standard deviations and quantiles of each weight with a reference.

    Each is tested as the mean of a function that the reference determines, whose Monte-Carlo
    error is known: λ, (λ − its reference mean)², and whether λ is below a reference quantile.

    Args:
        draws: of a sampler, with the features of the reference in the same order.
        reference: draws of a long run.
    """
    features = range(len(reference.features))
    results = [d for k in features for d in _unadjusted(draws, reference, k)]
    # An error estimated with a window of 5 autocorrelation times has a relative variance of 20/ESS
    # (Sokal 1997, §3), like a χ² distribution with ESS/10 degrees of freedom.
    freedom = [max(size / 10, 1.0) for _, size in results]
    p_values = holm(2 * student.sf(np.abs([d.z for d, _ in results]), freedom))
    return tuple(replace(d, p_value=float(p)) for (d, _), p in zip(results, p_values, strict=True))


def _unadjusted(draws: Draws, reference: Draws, k: int) -> Iterator[tuple[Discrepancy, float]]:
    """Yield the discrepancies of one weight, with NaN as p-value, each with its smaller ESS."""
    name, x, y = (reference.features[k], draws.weights[..., k], reference.weights[..., k])
    centre, sd = _mean_and_sd(reference, y)
    own_centre, own_sd = _mean_and_sd(draws, x)

    def compared(
        quantity: str, values: tuple[float, float], estimates: tuple[Estimate, Estimate]
    ) -> tuple[Discrepancy, float]:
        (value, target), (a, b) = values, estimates
        z = float((a.mean - b.mean) / np.hypot(a.error, b.error))
        bias = (value - target) / sd
        result = Discrepancy(name, quantity, float(value), float(target), float(bias), z, np.nan)
        return result, min(a.ess, b.ess)

    means = mean_of(draws, x), mean_of(reference, y)
    yield compared("mean", (own_centre, centre), means)
    squares = (mean_of(draws, (x - centre) ** 2), mean_of(reference, (y - centre) ** 2))
    yield compared("sd", (own_sd, sd), squares)
    cuts, own_cuts = _quantiles(reference, y), _quantiles(draws, x)
    for p, cut, own_cut in zip(QUANTILES, cuts, own_cuts, strict=True):
        shares = share_of(draws, x <= cut, p), share_of(reference, y <= cut, p)
        yield compared(f"q{100 * p:g}", (own_cut, cut), shares)


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
        null: between random parts of the other half of the reference and the first half, sorted.
        p_value: the share of those that are at least as large.
        draws: the number of nearly independent draws that were compared.
    """

    value: float
    null: tuple[float, ...]
    p_value: float
    draws: int


def sliced_wasserstein(draws: Draws, reference: Draws, seed: int = 0) -> Distance:
    """Return the distance of the joint distributions, with its null distribution.

    It is the mean over random directions of the 1-Wasserstein distance of the projected draws
    (Bonneel et al. 2015), in coordinates in which the covariance of the reference is the identity.
    The draws are thinned to half their ESS, so that they are nearly independent.

    Raises:
        DataError: if the reference has too few effective draws to be split.
    """
    rng = np.random.default_rng(seed)
    reference_draws = independent(reference, independent_count(reference), rng)
    if len(reference_draws) < 4 * _MIN_DRAWS:
        count = len(reference_draws)
        message = f"{count} nearly independent draws of the reference are too few: draw more"
        raise DataError(message, code="wrong-length")
    count = max(1, min(independent_count(draws), len(reference_draws) // 4, _MAX_DRAWS))
    # The matrix that makes the covariance of the reference the identity, and random directions.
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(reference_draws.T)))
    whitening = vectors / np.sqrt(np.maximum(values, 1e-12 * values.max()))
    directions = rng.normal(size=(reference_draws.shape[1], _DIRECTIONS))
    projection = whitening @ (directions / np.linalg.norm(directions, axis=0))
    half, rest = np.array_split(reference_draws @ projection, 2)
    marks = np.quantile(half, (np.arange(count) + 0.5) / count, axis=0)
    parts = (rng.choice(len(rest), count, replace=False) for _ in range(SPLITS))
    null = [_far(rest[part], marks) for part in parts]
    value = _far(independent(draws, count, rng) @ projection, marks)
    p_value = (1 + np.sum(np.array(null) >= value)) / (SPLITS + 1)
    return Distance(value, tuple(sorted(null)), float(p_value), count)


def _far(projected: Float64, marks: Float64) -> float:
    return float(np.abs(np.sort(projected, axis=0) - marks).mean())


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
