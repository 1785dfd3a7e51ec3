"""Compare samplers of one posterior, each with a long reference run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bpa_ppl._runtime.messages import format_signed
from bpa_ppl.diagnostics.check.check import check
from bpa_ppl.diagnostics.check.convergence import BulkESS, RHat
from bpa_ppl.diagnostics.check.independence import find_common_draws, find_dependence
from bpa_ppl.diagnostics.check.prior import PriorDraws
from bpa_ppl.diagnostics.check.report import Report
from bpa_ppl.diagnostics.page import Outcome, Table
from bpa_ppl.diagnostics.samplers.efficiency import (
    Row,
    format_value,
    largest_r_hat,
    measure_efficiency,
    measure_running_error,
    smallest_ess,
)
from bpa_ppl.diagnostics.samplers.joint_test import Distance, measure_joint_distance
from bpa_ppl.diagnostics.samplers.moments import (
    PROBABILITY,
    bound_bias,
    compare_moments,
    score_heavy,
)
from bpa_ppl.diagnostics.samplers.runs import concatenate_runs
from bpa_ppl.diagnostics.samplers.same_posterior import check_same_posterior
from bpa_ppl.diagnostics.samplers.variables import select_comparable
from bpa_ppl.errors import DataError, UsageError, list_names, wrong_type, wrong_value
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.opening import is_arrays
from bpa_ppl.posterior.selection import INFINITE

#: The level at which a correct sampler is found to differ (13 of 900 were). Half of it is for the
#: marginal distributions of the variables together, half for their joint distribution.
LEVEL = 0.01
#: A sampler agrees if the bias of every mean is below this, in posterior standard deviations; a
#: smaller one may be asked for.
MAX_BIAS = 0.1
AGREES, DIFFERS = "agrees", "DIFFERS"
INCONCLUSIVE, NOT_CONVERGED = "inconclusive", "not converged"
FAILED, NOT_RUN = "failed", "not run"  # it raised an error; the runs ended before
_REFERENCE = "the reference"
#: What to do if draws that are not a reference disagree.
_FIND_WRONG = "draw more, or give a reference if these disagree among themselves"
#: The description of the reference if there is none.
_POOLED = "the draws of all others, pooled"
#: Verdicts of samplers that are not ranked by their cost.
_UNRANKED = (DIFFERS, NOT_CONVERGED, FAILED, NOT_RUN)
_HEADER = (
    *("sampler", "verdict", "bias ≤", "R-hat"),
    *("ESS", "ESS/s", "95% interval", "ESS/evaluation"),
)
_COLUMNS_SHOWN = ("r_hat", "ess", "ess_per_second", "ess_per_second_interval", "ess_per_evaluation")
_NOTE = (
    "bias: of every mean, in posterior sd, with 95% confidence; ESS: effective draws for the "
    "posterior mean of the worst variable; ESS/s: without compilation; interval: of the spread "
    "over runs; in brackets: not ranked, because of the verdict"
)


class _Standard(NamedTuple):
    """What a sampler is compared with.

    Attributes:
        name: in words.
        draws: of the reference, or of all others.
        problem: why they cannot be a reference; empty if they can.
        note: follows the reason of the verdict.
    """

    name: str
    draws: Draws
    problem: str = ""
    note: str = ""


@dataclass(frozen=True)
class SamplerResult:
    """The result of the comparison for one sampler.

    Attributes:
        sampler: its name.
        efficiency: cost and quality of its draws, with the `COLUMNS` of `measure_efficiency`.
        verdict: `agrees`, `DIFFERS`, `inconclusive`, `not converged`, `failed` if it raised an
            error, or `not run` if time was over; empty if it was compared with nothing.
        reason: of the verdict, one sentence.
        bound: that no mean's absolute bias exceeds, with a probability of 95%, in posterior
            standard deviations; None without a reference, or if the sampler has not converged.
        discrepancies: of each property of each variable from the reference.
        distance: of the joint distributions.
        draws: all of its runs as chains.
        running_error: of its means, by the evaluations that are spent, see `measure_running_error`.

    >>> SamplerResult("nuts", {}, "agrees", bound=0.08).verdict
    'agrees'
    """

    sampler: str
    efficiency: Row
    verdict: str = ""
    reason: str = ""
    bound: float | None = None
    discrepancies: tuple[Row, ...] = ()
    distance: Distance | None = None
    draws: Draws | None = field(default=None, repr=False)
    running_error: tuple[Row, ...] = field(default=(), repr=False)

    @property
    def ranked(self) -> bool:
        """Whether its cost is comparable: its draws are not known to be of another distribution."""
        return self.verdict not in _UNRANKED

    @property
    def agrees(self) -> bool | None:
        """Whether it agrees with the reference, or None if unknown."""
        return {AGREES: True, DIFFERS: False}.get(self.verdict)


@dataclass(frozen=True)
class Comparison(Outcome):
    """The results of all samplers; `bool` is true if each agrees with the reference.

    Attributes:
        samplers: in the order given.
        reference: a description of the reference run, or of the others that each sampler is
            compared with; empty if there was nothing to compare with.
        left_out: a sentence on each kind of variables that are not compared.
        truth: the draws of the reference; None without one.
        bias: that every mean of a sampler that agrees is below, in posterior standard deviations.
        stopped: why not all runs of samplers have ended; empty if they have.

    >>> drawn = np.random.default_rng(0).normal(size=(4, 500, 1))
    >>> from bpa_ppl.posterior.draws import name_array
    >>> result = compare({"a": [name_array(drawn, ("LM0",))]})  # no reference, no verdict
    >>> result.passed, result["a"].verdict, list(result.as_dict()["samplers"])
    (True, '', ['a'])
    """

    samplers: tuple[SamplerResult, ...]
    reference: str = ""
    left_out: tuple[str, ...] = ()
    truth: Draws | None = field(default=None, repr=False)
    bias: float = MAX_BIAS
    stopped: str = ""

    @property
    def passed(self) -> bool:
        """Whether every sampler agrees; true for one without a reference, as it has no verdict."""
        return all(result.verdict in (AGREES, "") for result in self.samplers)

    @property
    def rows(self) -> list[Row]:
        """One row for each sampler: its verdict, and the cost and quality of its draws."""
        return [
            {"sampler": r.sampler, "verdict": r.verdict, "bound": r.bound, **r.efficiency}
            for r in self.samplers
        ]

    def __getitem__(self, sampler: str) -> SamplerResult:
        return {result.sampler: result for result in self.samplers}[sampler]

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data, for JSON."""
        samplers = {r.sampler: asdict(replace(r, draws=None)) for r in self.samplers}
        for result in samplers.values():
            del result["draws"]
        head = {"reference": self.reference, "passed": self.passed, "level": LEVEL}
        head["bias"] = self.bias
        head["stopped"] = self.stopped
        return head | {"left_out": list(self.left_out), "samplers": samplers}

    def _summarise(self) -> tuple[str, Table, list[str]]:
        rows = []
        for r in self.samplers:
            cells = [format_value(r.efficiency[name]) for name in _COLUMNS_SHOWN]
            if not r.ranked and r.efficiency["ess_per_second"] is not None:
                cells[2] = f"({cells[2]})"
            bound = "–" if r.bound is None else format_bound(r.bound)
            rows.append((r.sampler, r.verdict, bound, *cells))
        table = Table(_HEADER, rows, passed=[result.agrees for result in self.samplers])
        reasons = [f"{r.sampler}: {r.reason}" for r in self.samplers if r.reason]
        stopped = [f"not all samplers have all runs: {self.stopped}"] if self.stopped else []
        return "", table, [*reasons, *stopped, *self.left_out, _NOTE]


def compare(
    posteriors: Any,
    reference: Any = None,
    *,
    var_names: Sequence[str] | None = None,
    log_weights: str | None = None,
    bias: float = MAX_BIAS,
    seed: int = 0,
) -> Comparison:
    """Compare draws with reference draws, or with another run, and say whether they agree.

    All continuous variables that the posteriors have in common are compared, of those of `sample`
    and `adapt` the sampled ones; of variables without a variance only the quantiles.
    `docs/how-to/is-my-sampler-right.md` explains the tests. The verdict is

    * `not converged` if all runs together fail `check`, or those of the reference do, which needs
      as many effective draws of importance weights as of chains;
    * `DIFFERS` if there is a significant difference, at a level of 1%;
    * `agrees` if there is none, and the absolute bias of every mean is below `bias` posterior
      standard deviations, with a probability of 95%;
    * `inconclusive` otherwise: more draws are needed, or there are variables that only some of the
      posteriors have.

    Args:
        posteriors: a posterior in any form that `read_posterior` takes, which is called `a` in the
            result, unless it is a file; or a dictionary of several by their names, each a posterior
            or a list of runs with different seeds. An attribute `sampling_time` of the group
            `posterior`, in seconds, gives the statistics per second.
        reference: long reference runs: a posterior, or a list of several. If it is None, each of
            several posteriors is compared with the others, pooled: they may share an error, and if
            one is wrong, others differ from the pool, too.
        var_names: the variables to compare.
        log_weights: the variable, (chains, draws), with the importance weights of draws, of the sum
            1, or their logarithms up to a constant.
        bias: in posterior standard deviations, at most 0.1. A smaller one takes more draws.
        seed: of permutations and resamples.

    Raises:
        DataError: if a sampler has no run, the same draws are given twice, there is no common
            variable, its shapes or labels differ, a posterior records other data or another model
            than the reference, or a variable may have importance weights, and is not named.
        UsageError: if something is not a posterior, or does not have a variable of `var_names`, or
            none has `log_weights`, or `bias` is not a number above 0 and at most 0.1.

    >>> rng = np.random.default_rng(0)
    >>> def draws(shift, count):
    ...     mu, theta = rng.normal(shift, 1.0, (4, count)), rng.normal(size=(4, count, 8))
    ...     return {"mu": mu, "theta": theta}
    >>> result = compare(draws(0.0, 1000), draws(0.0, 4000))
    >>> result["a"].verdict, result["a"].reason
    ('agrees', 'with 95% confidence, no posterior mean is biased by more than 0.05 sd')
    >>> result = compare({"low": draws(-0.2, 1000), "high": draws(0.2, 1000)}, draws(0.0, 4000))
    >>> result["low"].verdict, result["high"].verdict
    ('DIFFERS', 'DIFFERS')
    """
    check_bias(bias)
    several, standard_name = _group_runs(posteriors, "a"), None
    if reference is not None:
        standard_name, several[standard_name] = _name_reference(reference, several)
    if empty := [name for name, runs in several.items() if not runs]:
        message = f"no run to compare for {empty[0]}: give at least one"
        raise DataError(message, code="no-data")
    first = standard_name or next(iter(several))
    selection = select_comparable(several, first, var_names, log_weights=log_weights)
    expected = selection.recorded[first][0]
    for name, of_sampler in selection.recorded.items():
        for run in of_sampler:
            check_same_posterior(name, run, expected)
    runs, order, heavy = dict(selection.runs), selection.runs[first][0].names, selection.heavy
    reports = {name: check(concatenate_runs(of)) for name, of in selection.recorded.items()}
    scale = concatenate_runs(runs[first])
    standard, description = None, _POOLED if len(runs) > 1 else ""
    if standard_name is not None:
        draws = concatenate_runs(runs.pop(standard_name))
        sampler = expected.record.sampler
        made_by = sampler.name or sampler.library or standard_name
        problem = reference_problem(draws, standard_name, report=reports[standard_name])
        checked = "which fail the check of the samplers" if problem else "which pass the same check"
        size = f"{len(draws.flat)} draws, {smallest_ess(draws):.0f} effective"
        description = f"{made_by}, {size}, {checked}"
        standard = _Standard(standard_name, draws, problem)
    results = []
    for name, of_sampler in runs.items():
        draws = concatenate_runs(of_sampler).reordered(order)
        scored = [score_heavy(run, scale, heavy) for run in of_sampler]
        cost = measure_efficiency(scored, score_heavy(draws, scale, heavy))
        result = SamplerResult(name, cost, draws=draws)
        if description:
            against = standard or _pool_others(name, runs, order, reports)
            result = _judge(result, draws, against, reports[name], bias, seed, heavy)
            result = _qualify(result, against.note, selection.incomplete)
            running_error = measure_running_error(scored, score_heavy(against.draws, scale, heavy))
            result = replace(result, running_error=running_error)
        results.append(result)
    truth = standard.draws if standard else None
    return Comparison(tuple(results), description, selection.left_out, truth, bias)


def _name_reference(reference: Any, several: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """Return the name of the reference, and its runs.

    Raises:
        UsageError: if it is several posteriors, or another one is called the reference.
    """
    (name, runs), *more = _group_runs(reference, _REFERENCE).items()
    if more:
        rule = "the reference is one posterior, or arrays by name, or runs of one"
        raise wrong_type(rule, [name, *more], "reference")
    name = _REFERENCE if name in several else name
    if name in several:
        problem = f"a posterior that is compared is called {name}: choose another name"
        raise UsageError(problem, parameter="posteriors", code="duplicate")
    return name, runs


def _pool_others(
    name: str,
    runs: Mapping[str, Sequence[Draws]],
    order: tuple[str, ...],
    reports: Mapping[str, Report],
) -> _Standard:
    """Return the draws of all other samplers that pass their check, pooled.

    Args:
        name: of the sampler that is compared with them.
        runs: of each sampler.
        order: of the variables.
        reports: of the check of each sampler.

    Raises:
        DataError: if only some have importance weights.
    """
    if len({run.weighted for of in runs.values() for run in of}) > 1:
        problem = "only some posteriors have importance weights, and cannot be pooled"
        raise DataError(f"{problem}: give one of them as the reference", code="mismatch")
    others = [other for other in runs if other != name]
    *most, last = others = [other for other in others if reports[other]] or others
    words = f"{', '.join(most)} and {last} pooled" if most else last
    pool = concatenate_runs([run.reordered(order) for other in others for run in runs[other]])
    problem = reference_problem(pool, words, _FIND_WRONG, reports[last])
    return _Standard(words, pool, problem, f"; compared with {words}, without a reference")


def _qualify(result: SamplerResult, note: str, incomplete: str) -> SamplerResult:
    """Return a result whose reason has a note, and says what was not compared.

    Args:
        result: with its verdict.
        note: follows the reason.
        incomplete: which variables were not compared; then the sampler does not agree.
    """
    reason = f"{result.reason}{note}"
    if not incomplete:
        return replace(result, reason=reason)
    verdict = INCONCLUSIVE if result.verdict == AGREES else result.verdict
    if INFINITE in incomplete and verdict == NOT_CONVERGED:
        return replace(result, reason=f"{incomplete}; {reason}")
    remedy = "give these the same names, or choose what to compare by var_names"
    return replace(result, verdict=verdict, reason=f"{reason}; {incomplete}: {remedy}")


def check_bias(bias: float) -> None:
    """Refuse a bias that a comparison cannot ask for.

    >>> check_bias(0.2)
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: bias must be above 0 and at most 0.1 posterior sd, not 0.2
    """
    if not 0 < bias <= MAX_BIAS:
        raise wrong_value(
            f"bias must be above 0 and at most {MAX_BIAS:g} posterior sd",
            bias,
            "bias",
            code="invalid-setting",
        )


def format_bound(bound: float) -> str:
    """Return a bound of the bias with three decimals, rounded up, because it is a bound.

    >>> format_bound(0.0501), format_bound(np.inf)
    ('0.051', '∞')
    """
    if not np.isfinite(bound):
        return "∞"
    return f"{math.ceil(1000 * bound) / 1000:g}"


def reference_problem(
    draws: Draws, name: str, remedy: str = "draw more", report: Report | None = None
) -> str:
    """Return in a sentence why draws cannot be a reference; empty if they can.

    They have to pass the check that samplers have to pass; and importance weights, of which fewer
    effective draws pass it, need as many as chains do.

    Args:
        draws: the draws.
        name: of the draws.
        remedy: what to do about too few draws.
        report: of their check.

    >>> from bpa_ppl.posterior.draws import name_array
    >>> reference_problem(name_array(np.eye(20)[None, :, :1], ("mu",)), "b")
    'b has 20 effective draws and R-hat 1.000, and needs at least 400 and at most 1.01: draw more'
    """
    size, r_hat = smallest_ess(draws), largest_r_hat(draws)
    least, largest = BulkESS().limit, RHat().limit
    if draws.kind == "chains" and (found := find_dependence(draws.array, draws.names)):
        return f"{name} has chains that depend on each other: {found.problem}"
    if r_hat <= largest and size >= least:
        if report is None or report:
            return ""
        return f"{name} fails the check, as a sampler would: {report.failures[0].advice}"
    reached = f"{name} has {size:.0f} effective draws and R-hat {r_hat:.3f}"
    return f"{reached}, and needs at least {least:g} and at most {largest:g}: {remedy}"


def _group_runs(posteriors: Any, name: str) -> dict[str, list[Any]]:
    """Return the runs of each sampler; one without a name has that of its file, or the given."""
    if isinstance(posteriors, dict) and not is_arrays(posteriors):
        items = posteriors.items()
        return {key: list(x) if isinstance(x, list | tuple) else [x] for key, x in items}
    runs = list(posteriors) if isinstance(posteriors, list | tuple) else [posteriors]
    return {str(runs[0]) if runs and isinstance(runs[0], str | Path) else name: runs}


def _judge(
    result: SamplerResult,
    draws: Draws,
    standard: _Standard,
    report: Report,
    bias: float,
    seed: int,
    heavy: Sequence[str],
) -> SamplerResult:
    """Return the result with its verdict, and with the differences that it is based on.

    Args:
        result: without a verdict.
        draws: of the sampler.
        standard: the draws that they are compared with.
        report: the check of the sampler.
        bias: that every mean must be below.
        seed: of the permutations.
        heavy: the cells without a variance, of which only quantiles are compared.

    Raises:
        DataError: if both have the same draws.
    """
    truth = standard.draws
    chains = [*draws.array, *truth.array]
    if find_common_draws(chains, draws.names, first=len(draws.array)):
        same = f"{result.sampler} has the draws of {standard.name}, or its random key"
        raise DataError(f"{same}: pass other runs", code="duplicate")
    if standard.problem:
        return replace(result, verdict=NOT_CONVERGED, reason=standard.problem)
    properties = compare_moments(draws, truth, heavy)
    scored = score_heavy(draws, truth, heavy), score_heavy(truth, truth, heavy)
    distance = measure_joint_distance(*scored, seed)
    differences = "; ".join(_describe_differences(properties, distance))
    bound, weight = bound_bias(*scored)
    mean = "posterior mean, and no mean of normal scores of ranks," if heavy else "posterior mean"
    size = format_bound(bound)
    # Draws that differ from those of the prior are of another distribution, if that is seen here.
    failures = [one for one in report.failures if one.name != PriorDraws.title or not differences]
    if failures:
        d = max(properties, key=lambda d: abs(d["bias"]))
        by = format_signed(d["bias"], 2)
        status = f"{d['quantity']} of {d['variable']} is now off by {by} posterior sd"
        first, *others = failures
        more = f"; {list_names(one.name for one in others)} failed, too" if others else ""
        verdict, reason = NOT_CONVERGED, f"{first.advice}{more} (the {status})"
    elif differences:
        rounded = (
            f"the values of {list_names(cells)} in {name} are rounded: write all their digits; "
            for name, one in ((result.sampler, draws), (standard.name, truth))
            if (cells := _find_rounded(one))
        )
        verdict, reason = DIFFERS, f"{''.join(rounded)}{differences}"
    elif not np.isfinite(bound):
        problem = f"the draws of {weight} are too large for their mean to be compared"
        verdict, reason = INCONCLUSIVE, f"{problem}: look at its trace"
    elif bound <= bias:
        verdict, confidence = AGREES, f"with {PROBABILITY:.0%} confidence"
        reason = f"{confidence}, no {mean} is biased by more than {size} sd"
    else:
        verdict, times = INCONCLUSIVE, math.ceil((bound / bias) ** 2)
        ours, theirs = (times * len(one.flat) for one in (draws, truth))
        reason = (
            f"no difference was found, but the mean of {weight} may be biased by up to {size} sd "
            f"({PROBABILITY:.0%}), more than {bias:g}; if there is no bias, {times} times as many "
            f"draws are enough: {ours} of {result.sampler} and {theirs} of {standard.name}"
        )
    return replace(
        result,
        verdict=verdict,
        reason=reason,
        bound=None if verdict == NOT_CONVERGED else bound,
        discrepancies=properties,
        distance=distance,
    )


def _find_rounded(draws: Draws) -> list[str]:
    """Return the cells whose values are the numbers of a coarse grid.

    Between the quartiles, all steps from a value to the next one are then about equal. Of n other
    values, the smallest step is about a square of n smaller than all together.

    >>> x = np.random.default_rng(0).normal(size=(4, 1000))
    >>> from bpa_ppl.posterior.draws import name_array
    >>> _find_rounded(name_array(np.stack([x, x.round(2)], axis=-1), ("exact", "rounded")))
    ['rounded']
    """
    rounded = []
    for name, values in zip(draws.names, draws.flat.T, strict=True):
        low, high = np.quantile(values, (0.25, 0.75))
        distinct = np.unique(values[(low <= values) & (values <= high)])
        if len(distinct) > 1 and np.diff(distinct).min() * len(distinct) > (high - low) / 2:
            rounded.append(name)
    return rounded


def _describe_differences(properties: Sequence[Row], distance: Distance) -> Iterator[str]:
    """Yield in words the significant differences from the reference."""
    significant = [d for d in properties if d["p_value"] < LEVEL / 2]
    if significant:
        d = max(properties, key=lambda d: abs(d["z"]))
        yield (
            f"{len(significant)} of {len(properties)} marginal properties are off, most of all the "
            f"{d['quantity']} of {d['variable']}: by {format_signed(d['bias'], 2)} posterior sd "
            f"(z = {format_signed(d['z'], 1)}, p = {d['p_value']:.2g} after Holm)"
        )
    if distance.p_value < LEVEL / 2:
        parts = [f"the joint distribution is off (p = {distance.p_value:.2g})"]
        if distance.moment_p_value < LEVEL / 2:
            parts[0] += (
                f", most of all {distance.moment}: by {format_signed(distance.difference, 2)}"
            )
        if distance.distance_p_value < LEVEL / 2:
            random = f"at most {distance.largest_null:.3f} for random splits"
            parts.append(f"the energy distance is {distance.value:.3f}, and {random}")
        if distance.neighbours_p_value < LEVEL / 2:
            share = f"{distance.neighbours:.1%} of the nearest neighbours"
            parts.append(f"{share} are draws of the same run, more than for random splits")
        yield "; ".join(parts)
