"""The outcome of a check: one finding a diagnostic, and a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One diagnostic held against its threshold.

    Attributes:
        name: the diagnostic.
        value: its worst value.
        where: the weight that has it, or an empty text.
        limit: the threshold in words, such as `≤ 1.01`.
        passed: whether the value keeps it.
        advice: what to do if not, one sentence.
    """

    name: str
    value: float
    where: str
    limit: str
    passed: bool
    advice: str


@dataclass(frozen=True)
class Report:
    """All findings on one posterior; `str` gives the table, `bool` the verdict.

    Attributes:
        sampler: what drew the posterior.
        shape: (chains, draws) kept.
        findings: in the order of the table.
    """

    sampler: str
    shape: tuple[int, int]
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether every finding keeps its threshold."""
        return all(finding.passed for finding in self.findings)

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that do not."""
        return tuple(finding for finding in self.findings if not finding.passed)

    def __bool__(self) -> bool:
        return self.passed

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        return {
            "sampler": self.sampler,
            "chains": self.shape[0],
            "draws": self.shape[1],
            "passed": self.passed,
            "findings": [asdict(finding) for finding in self.findings],
        }

    def __str__(self) -> str:
        rows = [
            (f.name, f"{f.value:.4g}", f.limit, "ok" if f.passed else "FAILED", f.where)
            for f in self.findings
        ]
        header = ("diagnostic", "value", "limit", "", "worst at")
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
        table = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in [header, *rows]
        ]
        chains, draws = self.shape
        verdict = "converged" if self.passed else "NOT converged"
        title = f"{self.sampler}, {chains} chains × {draws} draws: {verdict}"
        advice = [f"- {finding.advice}" for finding in self.failures]
        return "\n".join([title, *table, *advice])
