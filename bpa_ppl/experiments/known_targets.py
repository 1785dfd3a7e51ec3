"""Posteriors with known moments, and samplers compared with them.

The moments are exact, by quadrature: in up to three dimensions directly. In more dimensions the
posterior is a product of one-dimensional densities in rotated coordinates: each list varies along
one of these directions only, and the isotropic prior is the same in any rotation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag
from scipy.optimize import minimize
from scipy.special import softmax
from scipy.stats import norm
from scipy.stats import t as student

from bpa_ppl.arrays import Float64
from bpa_ppl.diagnostics.checks import check
from bpa_ppl.diagnostics.pages.page import Outcome, Table
from bpa_ppl.errors import UsageError, checked_seed, one_of
from bpa_ppl.experiments.comparison.comparison import (
    AGREES,
    DIFFERS,
    FAILED,
    INCONCLUSIVE,
    LEVEL,
    MAX_BIAS,
    NOT_CONVERGED,
)
from bpa_ppl.experiments.comparison.efficiency import cost_of, ratio, shown
from bpa_ppl.experiments.estimates import holm, mean_of, runs_together
from bpa_ppl.experiments.samplers import configured, in_one_line, run_samplers
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior import Draws
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.quality import Oracles
from bpa_ppl.sampling.adapting import problem_of
from bpa_ppl.sampling.options import AdaptOptions

#: Points of the grid in each dimension, by the number of dimensions, and its half width in standard
#: deviations of the Laplace approximation.
_POINTS = {1: 8_001, 2: 241, 3: 41}
_WIDTH = 12.0


@dataclass(frozen=True, eq=False)
class KnownTarget:
    """An adaptation problem and the exact moments of its posterior.

    `adapt(target.lists, target.weights, **target.options)` samples it.

    Attributes:
        name: of the target.
        purpose: what it tests, one sentence.
        lists: the adaptation sentences; the first hypothesis of each list is its oracle.
        weights: the canonical weights.
        options: of `adapt`: `oracle`, `likelihood`, `prior_variance`.
        mean: (Q,) posterior mean of each weight.
        covariance: (Q, Q) posterior covariance.

    >>> known = target("skewed")
    >>> known.lists.feature_names, known.mean.round(3), known.sd.round(3)
    (('LM0',), array([-2.448]), array([1.065]))
    """

    name: str
    purpose: str
    lists: NBest
    weights: dict[str, float]
    options: dict[str, Any]
    mean: Float64
    covariance: Float64

    @property
    def sd(self) -> Float64:
        """The posterior standard deviation of each weight, (Q,)."""
        return np.asarray(np.sqrt(np.diag(self.covariance)))


def target(name: str, seed: int = 0) -> KnownTarget:
    """Return a target with known moments.

    Args:
        name: one of `TARGETS`.
        seed: of its features; the exact moments are those of this seed.

    Raises:
        UsageError: if there is no such target, or the seed is invalid.

    >>> known = target("50-features")
    >>> known.mean.shape, known.purpose
    ((50,), 'Many weights: 50, of which the data determine some well and others hardly.')
    """
    build = TARGETS[one_of(name, TARGETS, "target")]
    return build(checked_seed(seed))


def _two_hypotheses(seed: int) -> KnownTarget:
    rng = np.random.default_rng(seed + 3)
    rows = rng.normal(size=(12, 2)) @ [[1.0, 0.8], [0.0, 0.6]] + [1.2, 0.0]
    return _small(
        "two-hypotheses",
        "Lists of two hypotheses, which are logistic regression: two correlated weights.",
        [row[None] for row in rows],
        {"LM0": 0.3, "WP0": -0.2},
        variance=2.0,
    )


def _lists(seed: int) -> KnownTarget:
    rng = np.random.default_rng(seed)
    return _small(
        "lists",
        "Lists of ten hypotheses, which are multinomial logistic regression: three weights.",
        list(rng.normal(0.4, 1.0, size=(15, 9, 3))),
        {"LM0": 0.3, "TM0": 0.1, "WP0": -0.2},
        variance=1.0,
    )


def _skewed(seed: int) -> KnownTarget:
    rows = np.random.default_rng(seed + 2).uniform(1, 4, (12, 1, 1))
    purpose = "An asymmetric posterior of one weight: the skewness is about −0.8."
    return _small("skewed", purpose, list(rows), {"LM0": 0.3}, variance=4.0)


def _separable(seed: int) -> KnownTarget:
    rows = np.random.default_rng(seed).normal(size=(8, 1, 2))
    rows[..., 0] = 0.5 + np.abs(rows[..., 0])
    return _small(
        "separable",
        "Some weights predict every oracle, so only the wide prior bounds the posterior.",
        list(rows),
        {"LM0": 0.0, "WP0": 0.0},
        variance=100.0,
    )


def _correlated(seed: int) -> KnownTarget:
    # Along direction k, the posterior standard deviation is about 2 / (√8 scale).
    scales = np.append(0.0, np.geomspace(1.5, 120.0, 9))
    return _rotated(
        "correlated",
        "Ten strongly correlated weights: the condition number of their covariance is above 10⁴.",
        scales,
        np.random.default_rng(seed),
        sentences=8,
    )


def _many(seed: int) -> KnownTarget:
    return _rotated(
        "50-features",
        "Many weights: 50, of which the data determine some well and others hardly.",
        np.geomspace(0.1, 10.0, 50),
        np.random.default_rng(seed),
        sentences=4,
    )


#: Name -> the function that makes the target from a seed.
TARGETS: Final[Mapping[str, Callable[[int], KnownTarget]]] = MappingProxyType(
    {
        "two-hypotheses": _two_hypotheses,
        "lists": _lists,
        "skewed": _skewed,
        "separable": _separable,
        "correlated": _correlated,
        "50-features": _many,
    }
)


def _small(
    name: str,
    purpose: str,
    differences: Sequence[Float64],
    weights: dict[str, float],
    variance: float,
) -> KnownTarget:
    """Return a target of at most three weights, integrated on a grid."""
    lists = _lists_of(differences, tuple(weights))
    stored = [lists.features[lists.rows(s)][1:].astype(np.float64) for s in range(len(lists))]
    moments = _moments(stored, np.array(list(weights.values())), variance)
    return KnownTarget(name, purpose, lists, weights, _options(lists, variance), *moments)


def _rotated(
    name: str, purpose: str, scales: npt.ArrayLike, rng: np.random.Generator, sentences: int
) -> KnownTarget:
    """Return a target of many weights: a product of one-dimensional ones in a random rotation.

    Args:
        name: of the target.
        purpose: what it tests.
        scales: (Q,) of the features along each direction.
        rng: for features and directions.
        sentences: for each direction; the oracle is better in every second one.
    """
    sizes = np.asarray(scales, np.float64)
    names = tuple(f"F{k}" for k in range(len(sizes)))
    canonical = rng.normal(0, 0.3, size=len(sizes))
    directions = np.linalg.qr(rng.normal(size=(len(sizes), len(sizes))))[0]
    signs = np.where(np.arange(sentences) % 2, -1.0, 1.0)
    rows = sizes[:, None] * signs * np.abs(rng.normal(1, 0.3, size=(len(sizes), sentences)))
    mean, variances = np.empty(len(sizes)), np.empty(len(sizes))
    for k, start in enumerate(canonical @ directions):
        one = _moments([x.reshape(1, 1) for x in rows[k]], np.array([start]), 1.0)
        mean[k], variances[k] = one[0][0], one[1][0, 0]
    differences = (rows[:, :, None] * directions.T[:, None, :]).reshape(-1, 1, len(sizes))
    lists = _lists_of(list(differences), names)
    weights = dict(zip(names, canonical.tolist(), strict=True))
    covariance = directions @ (variances[:, None] * directions.T)
    options = _options(lists, 1.0)
    return KnownTarget(name, purpose, lists, weights, options, directions @ mean, covariance)


def _lists_of(differences: Sequence[Float64], names: tuple[str, ...]) -> NBest:
    """Return lists whose first hypothesis has only zeros, and the others these features."""
    tables = [np.vstack([np.zeros((1, len(names))), rows]) for rows in differences]
    texts = [["oracle", *(f"other {k}" for k in range(1, len(rows)))] for rows in tables]
    return NBest.from_lists(texts, tables, names)


def _options(lists: NBest, variance: float) -> dict[str, Any]:
    """Return the options of `adapt`: the first hypothesis of each list is the oracle."""
    first = np.zeros(len(lists), np.int64)
    oracle = Oracles(first, np.zeros(len(lists)), first + 1, "canonical", "ter", "first hypothesis")
    return {"oracle": oracle, "likelihood": "oracle", "prior_variance": variance}


def _moments(
    differences: Sequence[Float64], centre: Float64, variance: float
) -> tuple[Float64, Float64]:
    """Return mean and covariance of the posterior, by the trapezoidal rule.

    The grid is in the coordinates of the Laplace approximation. For densities that vanish at its
    ends, the error of the rule falls faster than any power of the step.

    Args:
        differences: for each list, features of the other hypotheses minus those of the oracle,
            (others, Q).
        centre: (Q,) mean of the prior.
        variance: of the prior.
    """
    size = len(centre)
    rows = np.vstack(differences)
    blocks = block_diag(*[np.ones((1, len(one))) for one in differences])  # (lists, rows)

    def log_density(weights: Float64) -> Float64:
        """Return the log posterior of (points, Q) weights, up to a constant."""
        value = -0.5 * np.sum((weights - centre) ** 2, axis=1) / variance
        for one in differences:
            scores = np.pad(weights @ one.T, ((0, 0), (1, 0)))
            value = value - np.logaddexp.reduce(scores, axis=1)
        return np.asarray(value)

    def shares(weights: Float64) -> Float64:
        """Return the probability of each of the rows."""
        scores = rows @ weights
        top = np.maximum(np.max(np.where(blocks > 0, scores, -np.inf), axis=1), 0.0)
        odds = np.exp(scores - top @ blocks)
        return np.asarray(odds / ((blocks @ odds + np.exp(-top)) @ blocks))

    def gradient(weights: Float64) -> Float64:
        return np.asarray(rows.T @ shares(weights) + (weights - centre) / variance)

    def hessian(weights: Float64) -> Float64:
        share = shares(weights)
        means = blocks @ (share[:, None] * rows)
        return np.asarray(
            rows.T @ (share[:, None] * rows) - means.T @ means + np.eye(size) / variance
        )

    optimum = minimize(
        lambda x: -log_density(x[None])[0], centre, jac=gradient, hess=hessian, method="trust-exact"
    )
    factor = np.linalg.cholesky(np.linalg.inv(hessian(optimum.x)))
    axis = np.linspace(-_WIDTH, _WIDTH, _POINTS[size])
    standard = np.stack(np.meshgrid(*[axis] * size, indexing="ij"), axis=-1).reshape(-1, size)
    p = softmax(log_density(optimum.x + standard @ factor.T))
    mean = p @ standard
    deviations = standard - mean
    covariance = deviations.T @ (p[:, None] * deviations)
    return optimum.x + factor @ mean, factor @ covariance @ factor.T


_HEADER = (
    *("target", "sampler", "verdict", "checks", "bias of means", "bias of sds", "bound"),
    *("ESS/s", "ESS/evaluation"),
)
_CAPTION = (
    "Bias: the largest one over the weights, in posterior standard deviations, ± its Monte-Carlo "
    "standard error. Bound: with a probability of 95%, the bias of every mean is smaller. Checks: "
    "runs that pass `bpa check`. – is unknown."
)


#: Columns of a row of `TargetComparison`. `verdict`: `not converged` if a run fails its check;
#: `DIFFERS` if a mean or a standard deviation is significantly off; `inconclusive` if a bias of a
#: mean above 0.1 cannot be excluded; `failed` if the sampler raised an error; else `agrees`.
#: `reason` is one sentence or empty, `checked` the number of runs that pass their check. Biases are
#: in posterior standard deviations, of the weight where the bias is largest in absolute value, over
#: all runs. With a probability of 95 %, the bias of every mean is below `bound`. `p_value` is that
#: of the most significant mean or standard deviation, adjusted by Holm.
COLUMNS = (
    *("target", "sampler", "verdict", "reason", "runs", "checked"),
    *("mean_bias", "mean_bias_error", "sd_bias", "sd_bias_error", "bound", "p_value"),
    *("ess_per_second", "ess_per_evaluation"),
)


@dataclass(frozen=True)
class TargetComparison(Outcome):
    """The results of samplers on targets; `bool` is true if each agrees on each.

    Attributes:
        results: rows with `COLUMNS`, target by target, in the order of the samplers; values that
            are not known are None.
    """

    results: tuple[Mapping[str, Any], ...]

    @property
    def passed(self) -> bool:
        """Whether each sampler agrees with each target."""
        return all(result["verdict"] == AGREES for result in self.results)

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data, for JSON."""
        return {"passed": self.passed, "results": list(self.results)}

    def _shown(self) -> tuple[str, Table, list[str]]:
        """Return a row for each target and sampler, and the reasons of the verdicts."""

        def biased(row: Mapping[str, Any], name: str) -> str:
            bias, error = row[name], row[f"{name}_error"]
            return "–" if bias is None else f"{bias:+.3f} ± {error:.3f}"

        rows = [
            (
                *(r[name] for name in ("target", "sampler", "verdict")),
                f"{r['checked']} of {r['runs']}" if r["runs"] else "–",
                *(biased(r, name) for name in ("mean_bias", "sd_bias")),
                *(shown(r[name]) for name in ("bound", "ess_per_second", "ess_per_evaluation")),
            )
            for r in self.results
        ]
        passed = [{AGREES: True, DIFFERS: False}.get(r["verdict"]) for r in self.results]
        notes = [
            f"{r['target']}, {r['sampler']}: {r['reason']}" for r in self.results if r["reason"]
        ]
        return "", Table(_HEADER, rows, _CAPTION, passed), notes


def compare_on_targets(
    targets: str | Sequence[str],
    samplers: Sequence[str],
    *,
    runs: int = 4,
    seed: int = 0,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    progress: bool | Reporter = False,
) -> TargetComparison:
    """Run samplers on targets with known answers.

    Args:
        targets: names of `bpa_ppl.experiments.known_targets.TARGETS`, or `all`.
        samplers: their names.
        runs: the number of runs of each sampler on each target, with different seeds.
        seed: of the first run; the targets are always those of seed 0.
        settings: of each sampler, by its name.
        progress: True draws a bar on standard error.

    Raises:
        UsageError: if there is no such target or sampler, or a setting is invalid.

    >>> result = compare_on_targets("skewed", ["imh"], runs=2, settings={"imh": {"draws": 2000}})
    >>> row = result.results[0]
    >>> result.passed, row["verdict"], abs(row["mean_bias"]) < 0.1
    (True, 'agrees', True)
    """
    names = [targets] if isinstance(targets, str) else list(targets)
    chosen = [target(name) for name in (TARGETS if names == ["all"] else names)]
    if not chosen:
        raise UsageError("give at least one target", parameter="targets")
    configured(samplers, runs, settings)  # find mistakes before the long work
    results: list[dict[str, Any]] = []
    with reporter(progress, "compare") as report:
        for exact in chosen:
            problem = problem_of(exact.lists, exact.weights, AdaptOptions(**exact.options))
            for name in samplers:
                report(len(results), len(chosen) * len(samplers), f"{exact.name}, {name}")
                drawn = run_samplers(problem, [name], runs=runs, seed=seed, settings=settings)[name]
                if isinstance(drawn, Exception):
                    row = {"target": exact.name, "sampler": name, "verdict": FAILED}
                    row |= {"reason": in_one_line(drawn)}
                    results.append(dict.fromkeys(COLUMNS) | row)
                else:
                    results.append(judged(exact, name, drawn))
    return TargetComparison(tuple(results))


def judged(exact: KnownTarget, sampler: str, runs: Sequence[Draws]) -> dict[str, Any]:
    """Compare the runs of a sampler with the exact moments of a target; return `COLUMNS`.

    Estimates are means over runs. The variance is estimated around the exact mean, so that its
    Monte-Carlo error is that of a mean, (λ − E λ)². An error from an estimated ESS has about
    ESS / 10 degrees of freedom (Sokal 1997, §3).

    Args:
        exact: the target.
        sampler: the name of the sampler.
        runs: its draws.

    >>> exact = target("skewed")
    >>> draws = np.random.default_rng(0).normal(exact.mean, exact.sd, size=(4, 1000, 1))
    >>> result = judged(exact, "a Gaussian", [Draws({"weights": draws}, ("LM0",))])
    >>> result["verdict"], result["bound"] < 0.1
    ('agrees', True)
    """
    sd = exact.sd
    bias, error, ess = _estimates(exact, runs, 1)
    square, square_error, square_ess = _estimates(exact, runs, 2)
    sd_bias = np.sqrt(square) - 1
    sd_error = square_error / (2 * np.sqrt(square))
    errors = np.concatenate([error, square_error])
    z = np.abs(np.concatenate([bias, square - 1])) / np.where(errors > 0, errors, 1e-300)
    freedom = np.maximum(np.concatenate([ess, square_ess]) / 10, 1.0)
    p_value = float(holm(2 * student.sf(z, freedom)).min())
    # The bias of each of Q means is bounded with a probability of 1 − 0.05 / Q.
    bound = float(np.max(np.abs(bias) + norm.isf(0.025 / len(sd)) * error))
    reports, costs = [check(run) for run in runs], [cost_of(run) for run in runs]
    checked = sum(map(bool, reports))
    failures = sorted({failure.name for report in reports for failure in report.failures})
    at, sd_at = (int(np.argmax(np.abs(values))) for values in (bias, sd_bias))
    if checked < len(runs):
        verdict, reason = NOT_CONVERGED, f"the check fails: {', '.join(failures)}"
    elif p_value < LEVEL:
        worst = int(np.argmax(z))
        value, quantity = np.concatenate([bias, sd_bias])[worst], ("mean", "sd")[worst // len(sd)]
        verdict = DIFFERS
        name = exact.lists.feature_names[worst % len(sd)]
        reason = (
            f"the {quantity} of {name} is off by {value:+.3f} posterior sd (z = {z[worst]:.1f})"
        )
    elif bound > MAX_BIAS:
        verdict = INCONCLUSIVE
        reason = f"a bias of {bound:.2f} posterior sd is possible: raise draws or runs"
    else:
        verdict, reason = AGREES, ""
    return {
        "target": exact.name,
        "sampler": sampler,
        "verdict": verdict,
        "reason": reason,
        "runs": len(runs),
        "checked": checked,
        "mean_bias": float(bias[at]),
        "mean_bias_error": float(error[at]),
        "sd_bias": float(sd_bias[sd_at]),
        "sd_bias_error": float(sd_error[sd_at]),
        "bound": bound,
        "p_value": p_value,
        "ess_per_second": _mean([cost["ess_per_second"] for cost in costs]),
        "ess_per_evaluation": _mean([ratio(cost["ess"], cost["evaluations"]) for cost in costs]),
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def _estimates(exact: KnownTarget, runs: Sequence[Draws], power: int) -> Float64:
    """Return mean, error and ESS of the standardised weights to a power, (3, Q)."""
    estimates = []
    for run in runs:
        draws = runs_together([run]).reordered(exact.lists.feature_names)
        values = ((draws.weights - exact.mean) / exact.sd) ** power
        estimates.append([mean_of(draws, values[..., k]) for k in range(len(exact.mean))])
    mean, error, ess = np.moveaxis(np.array(estimates), -1, 0)  # each (runs, Q)
    total_error = np.sqrt(np.sum(error**2, axis=0)) / len(runs)
    return np.stack([mean.mean(axis=0), total_error, ess.sum(axis=0)])
