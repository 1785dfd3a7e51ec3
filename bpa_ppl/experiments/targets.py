"""Run samplers on targets with known answers, and compare their draws with the exact moments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from bpa_ppl.arrays import Float64
from bpa_ppl.diagnostics.checks import check
from bpa_ppl.diagnostics.pages.page import Outcome, Table
from bpa_ppl.errors import UsageError
from bpa_ppl.experiments.comparison.comparison import (
    AGREES,
    DIFFERS,
    FAILED,
    INCONCLUSIVE,
    LEVEL,
    MAX_BIAS,
    NOT_CONVERGED,
)
from bpa_ppl.experiments.comparison.efficiency import cost_of, ratio
from bpa_ppl.experiments.estimates import holm, mean_of, runs_together
from bpa_ppl.experiments.known_targets import TARGETS, KnownTarget, target
from bpa_ppl.experiments.samplers import configured, in_one_line, run_samplers
from bpa_ppl.posterior import Draws
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.sampling.adapting import problem_of
from bpa_ppl.sampling.options import AdaptOptions

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

        def number(value: float | None) -> str:
            return "–" if value is None else f"{value:.3g}"

        rows = [
            (
                *(r[name] for name in ("target", "sampler", "verdict")),
                f"{r['checked']} of {r['runs']}" if r["runs"] else "–",
                *(biased(r, name) for name in ("mean_bias", "sd_bias")),
                *(number(r[name]) for name in ("bound", "ess_per_second", "ess_per_evaluation")),
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
