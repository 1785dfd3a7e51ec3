"""What a check compares a posterior with, and what it finds: thresholds, findings, a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from bpa_ppl.tables import text_table

_HEADER = ("diagnostic", "value", "limit", "", "worst at")


@dataclass(frozen=True)
class Thresholds:
    """What a posterior must reach.

    Attributes:
        r_hat: largest rank-normalised split R-hat (Vehtari et al. 2021).
        ess_per_chain: smallest bulk and tail effective sample size: 100 a chain, 400 for four
            chains (Vehtari et al. 2021); importance samples need 100.
        mcse: largest Monte-Carlo standard error of a mean, in posterior standard deviations.
        acceptance_low: lower bound on the acceptance rate; a random walk in many dimensions is
            best near 0.234 (Roberts, Gelman & Gilks 1997), and NUTS near its target.
        acceptance_high: upper bound on the acceptance rate.
        bfmi: smallest Bayesian fraction of missing information (Betancourt 2016).
        pareto_k: largest Pareto k̂ of importance weights (Vehtari et al. 2024).
        drift: level of the test that the first and second half of the kept draws have the same
            mean (after Geweke 1992), corrected for the number of components (Bonferroni). It is
            half of the 1% of good posteriors that all diagnostics together may fail.

    >>> import numpy as np
    >>> from bpa_ppl import Draws, check
    >>> drawn = np.random.default_rng(0).normal(size=(4, 50, 1))
    >>> draws = Draws({"weights": drawn}, ("LM0",))
    >>> bool(check(draws)), bool(check(draws, Thresholds(ess_per_chain=30)))
    (False, True)
    """

    r_hat: float = 1.01
    ess_per_chain: float = 100.0
    mcse: float = 0.1
    acceptance_low: float = 0.1
    acceptance_high: float = 0.9
    bfmi: float = 0.3
    pareto_k: float = 0.7
    drift: float = 0.005


@dataclass(frozen=True)
class Finding:
    """One diagnostic against its threshold.

    Attributes:
        name: the diagnostic.
        value: its worst value.
        where: what has it: a feature, a cell of another site such as `raw[2]`, a chain, or an
            empty text.
        limit: the threshold in words, such as `≤ 1.01`.
        passed: whether the value keeps it.
        advice: what to do if not, one sentence.

    >>> Finding("R-hat", 1.2, "LM0", "≤ 1.01", False, "raise draws").cells
    ('R-hat', '1.2', '≤ 1.01', 'FAILED', 'LM0')
    """

    name: str
    value: float
    where: str
    limit: str
    passed: bool
    advice: str

    @property
    def cells(self) -> tuple[str, ...]:
        """A row of the table of findings: name, value, limit, verdict, where."""
        verdict = "ok" if self.passed else "FAILED"
        return self.name, f"{self.value:.4g}", self.limit, verdict, self.where


@dataclass(frozen=True)
class Report:
    """All findings on one posterior; `str` gives the table, `bool` the verdict.

    Attributes:
        sampler: what drew the posterior.
        shape: (chains, draws) kept.
        findings: in the order of the table.

    >>> high = Finding("R-hat", 1.2, "LM0", "≤ 1.01", False, "raise warmup, then draws")
    >>> report = Report("rwm", (4, 1000), (high,))
    >>> print(report)
    rwm, 4 chains × 1000 draws: NOT converged
    diagnostic  value  limit           worst at
    R-hat       1.2    ≤ 1.01  FAILED  LM0
    - raise warmup, then draws
    >>> bool(report), report.passed, report.failures == (high,), report.as_dict()["draws"]
    (False, False, True, 1000)
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

    @property
    def _title(self) -> str:
        chains, draws = self.shape
        verdict = "converged" if self.passed else "NOT converged"
        return f"{self.sampler}, {chains} chains × {draws} draws: {verdict}"

    def __str__(self) -> str:
        table = text_table([finding.cells for finding in self.findings], _HEADER)
        advice = [f"- {finding.advice}" for finding in self.failures]
        return "\n".join([self._title, table, *advice])

    def _repr_html_(self) -> str:
        from bpa_ppl.diagnostics.pages.page import Items, Table, Text

        rows = [finding.cells for finding in self.findings]
        table = Table(_HEADER, rows, passed=[finding.passed for finding in self.findings])
        advice = Items([finding.advice for finding in self.failures])
        return Text(self._title).html() + table.html() + (advice.html() if self.failures else "")
