"""The check of draws: diagnostics, each with its limit and advice, and their report."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.messages import format_count
from bpa_ppl.diagnostics.check.convergence import RHat
from bpa_ppl.diagnostics.check.diagnostic import DIAGNOSTICS, REPORTED, Diagnostic, Run
from bpa_ppl.diagnostics.page import Outcome, Table
from bpa_ppl.errors import NotConverged, describe_missing_package, list_names
from bpa_ppl.posterior.arviz_data import as_draws
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.record import Figures, Finding, Record, SamplerRecord, Verdict, read_version
from bpa_ppl.posterior.selection import INFINITE

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_data import Posterior

#: What a posterior may be whose priors have no draws.
_IMPROPER = (
    "an improper prior (or a masked or scaled one, or one whose own draws are all the same), so "
    "that there is no group prior, and no check of draws can show that the posterior is proper"
)
#: Numbers that are hashed together.
_BLOCK = 1 << 20
#: Draws as large as these, under an improper prior, may have no limit.
_RUNAWAY = 1e8
#: The figures of the record that only the advice depends on.
_OF_ADVICE = ("modes", "jumps", "jump_sites", "tried")
_HEADER = ("diagnostic", "value", "limit", "", "worst at")


@dataclass(frozen=True)
class Report(Outcome):
    """All findings on one posterior; `str` gives the table, `bool` the verdict.

    Attributes:
        sampler: its name.
        shape: (chains, draws) kept.
        rows: the findings, of which those that explain others come first.
        burn_in: draws of each chain that were discarded; None if unknown.
        left_out: a sentence on each kind of variables that are not checked, and on improper priors.
        kind: of the draws: `chains`, `weighted` or `point`.

    >>> high = Finding("R-hat", 1.2, "LM0", "≤ 1.01", False, "raise warmup, then draws")
    >>> report = Report("rwm", (4, 1000), (high,), 50)
    >>> print(report)
    rwm, 4 chains × 1000 draws after a burn-in of 50: NOT converged
    diagnostic  value  limit           worst at
    R-hat       1.2    ≤ 1.01  FAILED  LM0
    - raise warmup, then draws
    >>> bool(report), report.passed, report.failures == (high,), report.as_dict()["draws"]
    (False, False, True, 1000)
    """

    sampler: str
    shape: tuple[int, int]
    rows: tuple[Finding, ...]
    burn_in: int | None = None
    left_out: tuple[str, ...] = ()
    kind: str = "chains"

    @property
    def passed(self) -> bool:
        return all(finding.passed for finding in self.rows)

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that are not within their limits."""
        return tuple(finding for finding in self.rows if not finding.passed)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        return {
            "sampler": self.sampler,
            "chains": self.shape[0],
            "draws": self.shape[1],
            "burn_in": self.burn_in,
            "passed": self.passed,
            "findings": [asdict(finding) for finding in self.rows],
            "left_out": list(self.left_out),
        }

    @property
    def title(self) -> str:
        """The sampler, the number of draws, and the verdict."""
        chains, draws = self.shape
        # Independent draws have no chains that could converge.
        verdict = "passed" if self.kind == "weighted" else "converged"
        verdict = verdict if self.passed else f"NOT {verdict}"
        discarded = "" if self.burn_in is None else f" after a burn-in of {self.burn_in}"
        size = f"{format_count(chains, 'chain')} × {draws} draws"
        return f"{self.sampler}, {size}{discarded}: {verdict}"

    def _summarise(self) -> tuple[str, Table, list[str]]:
        rows = [finding.cells for finding in self.rows]
        table = Table(_HEADER, rows, passed=[finding.passed for finding in self.rows])
        problems: dict[str, list[str]] = {}  # by their remedy
        for finding in self.failures:
            problem, _, remedy = finding.advice.rpartition(": ")
            problems.setdefault(remedy, []).append(problem)
        advice = [f"{'; '.join(filter(None, of))}: {remedy}" for remedy, of in problems.items()]
        notes = [f.advice for f in self.rows if f.limit == REPORTED and f.advice]
        lines = [line.removeprefix(": ") for line in advice]
        if self.shape[0] == 1 and any(finding.name == RHat.title for finding in self.rows):
            notes.append(
                "one chain: R-hat compares its halves, and cannot show whether chains from other "
                "starts agree: run at least two"
            )
        causes = [] if self.passed else [s for s in self.left_out if f"{INFINITE}: " in s]
        rest = [sentence for sentence in self.left_out if sentence not in causes]
        return self.title, table, [*causes, *lines, *notes, *rest]


def list_diagnostics(limits: Mapping[str, Any]) -> dict[str, Diagnostic]:
    """Return all diagnostics by name, with their limits, in the order of the table."""
    for name in limits:
        require_one_of(name, DIAGNOSTICS.titles, "diagnostic", "limits")
    settings = {name: {"limit": limit} for name, limit in limits.items()}
    return {
        name: kind.configured(f"diagnostic {name}", settings.get(name, {}))
        for name, kind in DIAGNOSTICS.load()
    }


def measure(
    draws: Draws, diagnostics: Mapping[str, Diagnostic], stored: Sequence[Finding] | None = None
) -> Report:
    """Return the report on draws.

    Args:
        draws: the draws.
        diagnostics: by name, in the order of the table.
        stored: the findings of a recorded verdict, which are not measured again.
    """
    kinds = diagnostics.values()
    covered, everything = Run(_select_covered(draws, diagnostics), kinds), Run(draws, kinds)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # of huge draws
        findings = everything.measure_each(one for one in kinds if not one.stored)
        if stored is None:
            findings |= covered.measure_each(one for one in kinds if one.stored)
        else:
            kept = {one.title for one in kinds if one.stored}
            findings |= {finding.name: finding for finding in stored if finding.name in kept}
    sampler, figures = draws.record.sampler.name or "unknown sampler", draws.record.figures
    if figures.chosen is not None:
        sampler += f" ({figures.chosen}: {figures.chosen_because})"
    warmup = next(iter(draws.warmup.values()), None)
    burn_in = None if warmup is None or draws.kind != "chains" else np.shape(warmup)[1]
    reported = tuple(findings[one.title] for one in kinds if one.title in findings)
    flat = (f"{format_count(of, 'value')} of {site}" for site, of in draws.record.flat.items())
    why = "constants that are not checked, because the density does not depend on them"
    left_out = [f"{of}: {why}" for of in flat]
    if improper := draws.record.improper:
        drawn = {name: draws.values[name] for name in improper if name in draws.values}
        reached = {name: float(np.abs(np.asarray(of)).max()) for name, of in drawn.items()}
        if runaway := [name for name, largest in reached.items() if not largest < _RUNAWAY]:
            advice = (
                f"the posterior may be improper, as draws reach {max(reached.values()):.1g} under "
                f"the improper prior of {list_names(runaway)}; use a proper prior"
            )
            reported = tuple(one if one.passed else replace(one, advice=advice) for one in reported)
        left_out.append(f"{list_names(improper)}: {_IMPROPER}")
    return Report(sampler, draws.shape, reported, burn_in, tuple(left_out), draws.kind)


def check_draws(draws: Draws, findings: Sequence[Finding] | None = None) -> Report:
    """Return the report on draws, with the default limits.

    Args:
        draws: the draws.
        findings: of an earlier check of the same draws, which are not measured again.
    """
    diagnostics = list_diagnostics({})
    try:
        return measure(draws, diagnostics, findings)
    except ModuleNotFoundError as error:
        problem = describe_missing_package("checking a posterior", error)
        raise ModuleNotFoundError(problem, name=error.name) from error


def make_verdict(draws: Draws, report: Report) -> Verdict:
    """Return the result of a check of draws as they record it, with a checksum of them."""
    return Verdict(report.passed, _hash_inputs(draws, list_diagnostics({})), report.rows)


def check_and_record(draws: Draws) -> tuple[Draws, Report]:
    """Return draws that record the verdict and the figures of their check, and the report on them.

    Draws that record it already are not checked again.

    >>> drawn = np.random.default_rng(0).normal(size=(4, 1000, 1))
    >>> from bpa_ppl.posterior.draws import name_array
    >>> recorded, report = check_and_record(name_array(drawn, ("LM0",)))
    >>> bool(report), str(recorded.record.verdict)
    (True, 'passed')
    """
    report = read_report(draws)
    if report is None:
        report = check_draws(draws)
        verdict = make_verdict(draws, report)
        draws = replace(draws, record=structs.replace(draws.record, verdict=verdict))
    return draws, report


def read_report(draws: Draws) -> Report | None:
    """Return the report that draws record, if they are those that were checked, else None.

    >>> drawn = np.random.default_rng(0).normal(size=(4, 1000, 1))
    >>> from bpa_ppl.posterior.draws import name_array
    >>> recorded, report = check_and_record(name_array(drawn, ("LM0",)))
    >>> read_report(recorded) == report
    True
    >>> read_report(replace(recorded, values={"values": drawn + 1}))
    """
    if (verdict := draws.record.verdict) is None:
        return None
    diagnostics = list_diagnostics({})
    if verdict.checksum != _hash_inputs(draws, diagnostics):
        return None
    return measure(draws, diagnostics, verdict.findings)


def _select_covered(draws: Draws, diagnostics: Mapping[str, Diagnostic]) -> Draws:
    """Return the part of draws that a recorded verdict depends on, and the sampler of the advice.

    It is all that the stored diagnostics see, so that none can read what the checksum leaves out.
    """
    names = {name for one in diagnostics.values() for name in one.figures}
    recorded = draws.record.figures
    figures = {name: getattr(recorded, name) for name in (*names, *_OF_ADVICE)}
    sampler = draws.record.sampler
    if recorded.chosen_settings is not None:
        sampler = SamplerRecord(name=recorded.chosen, settings=recorded.chosen_settings)
    return Draws(
        draws.values,
        draws.kind,
        draws.log_weight,
        statistics=draws.statistics,
        sampled=draws.sampled,
        main=draws.main,
        dims=draws.dims,
        coords=draws.coords,
        record=Record(
            sampler=sampler,
            figures=Figures(**figures),
            reparametrisations=draws.record.reparametrisations,
        ),
    )


def _hash_inputs(draws: Draws, diagnostics: Mapping[str, Diagnostic]) -> str:
    """Return a hash of what diagnostics read, of the version, and of those of other packages."""
    digest = hashlib.sha256(read_version("bpa_ppl").encode())
    covered = _select_covered(draws, diagnostics)
    names = {name for one in diagnostics.values() for name in one.figures}
    recorded = {name: getattr(covered.record.figures, name) for name in names}
    figures = {name: np.nan if value is None else value for name, value in recorded.items()}
    arrays = {**covered.statistics, **covered.values, "log_weight": covered.log_weight, **figures}
    for name, values in sorted(arrays.items()):
        if values is not None:
            array = np.asarray(values)
            digest.update(f"{name} {array.shape}".encode())
            numbers = array.reshape(-1) if array.flags.c_contiguous else array.flat
            for start in range(0, array.size, _BLOCK):
                digest.update(np.asarray(numbers[start : start + _BLOCK], np.float64).data)
    for name, one in diagnostics.items():
        if not (module := type(one).__module__).startswith("bpa_ppl."):
            digest.update(f"{module} {one} {DIAGNOSTICS.version_of(name)}".encode())
    return digest.hexdigest()


def refuse_unconverged(posterior: Posterior, name: str | Path = "") -> None:
    """Raise NotConverged, with the table of the check, if a posterior, called `name`, fails it.

    Draws that record their check, and have not changed since, are not checked again.

    Raises:
        NotConverged: if it fails.

    >>> stuck = np.repeat([[0.0], [9.0]], 100, axis=1)[..., None]
    >>> from bpa_ppl.posterior.draws import name_array
    >>> refuse_unconverged(name_array(stuck + np.linspace(0, 1, 100)[:, None], ("LM0",)))
    Traceback (most recent call last):
    bpa_ppl.errors.NotConverged: the posterior failed its check, so it is not used...
    """
    report = check_and_record(as_draws(posterior, finite=False))[1]
    if not report:
        title = f"the posterior {name}".rstrip()
        problem = f"{title} failed its check, so it is not used unless the check is skipped"
        raise NotConverged(problem, str(report), parameter="unchecked")


def find_shortage(report: Report) -> float:
    """Return how many times as many draws the failed diagnostics of a report call for.

    1 if none failed; infinite if one failed that more draws do not help.

    >>> few = Finding("bulk ESS", 200.0, "LM0", "≥ 400", False, "draw more")
    >>> find_shortage(Report("nuts", (4, 1000), (few,)))
    2.0
    """
    shortages = {one.title: one.shortage for one in list_diagnostics({}).values()}
    return max((shortages[one.name](one.value) for one in report.failures), default=1.0)
