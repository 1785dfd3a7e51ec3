"""Diagnostics of importance weights."""

from __future__ import annotations

import numpy as np

from bpa_ppl.components import Positive
from bpa_ppl.diagnostics.check.diagnostic import REPORTED, Diagnostic, Run
from bpa_ppl.posterior.draws import kish
from bpa_ppl.posterior.record import Finding
from bpa_ppl.posterior.statistics import POOR_PARETO_K


class ImportanceESS(Diagnostic, frozen=True):
    """The effective sample size of importance weights (Kish 1965).

    Args:
        limit: its least sound value.
    """

    title = "ESS of the weights"
    figures = ("pareto_k",)
    limit: Positive = 100.0

    def applies(self, run: Run) -> bool:
        return run.draws.weighted

    def measure(self, run: Run) -> Finding:
        importance = run.draws.importance
        size = kish(importance)
        if not np.ptp(importance) and size >= self.limit:
            note = (
                "independent draws: there is no R-hat and no burn-in, and nothing here shows how "
                "close an approximation is to the posterior"
            )
            return self.finding(size, REPORTED, True, note)
        # More draws from too narrow a distribution have as heavy a tail.
        shortage = self.limit / size if run.pareto_k <= run.find(ParetoK).limit else np.inf
        of_all = f"{size:.1f} effective samples of {len(importance)} weighted ones"
        advice = f"{of_all}: {run.advice.more_samples(shortage)}"
        return self.finding(size, f"≥ {self.limit:g}", size >= self.limit, advice)


#: Share of effective samples from which on weights differ too little for a tail to matter.
_EVEN = 0.99


class ParetoK(Diagnostic, frozen=True):
    """Pareto k̂ of importance weights (Vehtari et al. 2024).

    It does not matter where the weights are almost equal, and 99% of the samples effective.

    Args:
        limit: its largest sound value; beyond it, means need too many draws, or do not exist.
    """

    title = "Pareto k̂"
    figures = ("pareto_k",)
    limit: Positive = POOR_PARETO_K

    def applies(self, run: Run) -> bool:
        return run.draws.weighted and bool(np.ptp(run.draws.importance))

    def measure(self, run: Run) -> Finding:
        """Return k̂, or that of the weights before they were smoothed if it is larger."""
        k_hat, importance = run.pareto_k, run.draws.importance
        limit, passed = f"≤ {self.limit:g}", k_hat <= self.limit
        if not passed and kish(importance) >= _EVEN * len(importance):
            limit, passed = f"or ESS ≥ {_EVEN:.0%}", True
        advice = (
            f"Pareto k̂ {k_hat:.2f}, so heavy a tail of the importance weights that averages are "
            f"unreliable: {run.advice.lighter_tails()}"
        )
        return self.finding(k_hat, limit, passed, advice)
