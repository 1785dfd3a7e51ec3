"""Diagnostics of what a sampler records about its run."""

from __future__ import annotations

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import format_count
from bpa_ppl.components import Positive
from bpa_ppl.diagnostics.check.advice import LEAST_BFMI
from bpa_ppl.diagnostics.check.convergence import BulkESS, RHat
from bpa_ppl.diagnostics.check.diagnostic import REPORTED, Diagnostic, Run
from bpa_ppl.posterior.record import Finding
from bpa_ppl.posterior.statistics import bfmi, ess, r_hat


class Divergences(Diagnostic, frozen=True):
    """The number of divergent transitions of a Hamiltonian sampler (Betancourt 2016)."""

    title = "divergences"

    def applies(self, run: Run) -> bool:
        return run.draws.kind == "chains" and "diverging" in run.draws.statistics

    def measure(self, run: Run) -> Finding:
        count = int(np.sum(run.draws.statistics["diverging"]))
        diverged = f"{format_count(count, 'divergent transition')}"
        advice = f"{diverged}: {run.advice.fewer_divergences()}"
        return self.finding(count, "= 0", count == 0, advice)


class BFMI(Diagnostic, frozen=True):
    """The Bayesian fraction of missing information of each chain (Betancourt 2016).

    It is low where the energy varies more than a new momentum changes it: in a narrow part of the
    posterior, which chains may not enter, but also in tails as heavy as those of a Cauchy
    distribution, of which it is 0.26 however many draws there are. Where the draws of a variable
    have such tails (`count_moments`), nothing diverges, and the energy has enough effective draws,
    it is reported and does not fail.

    Args:
        limit: its least sound value.
    """

    title = "BFMI"
    least = True
    limit: Positive = LEAST_BFMI

    def applies(self, run: Run) -> bool:
        return run.draws.kind == "chains" and "energy" in run.draws.statistics

    def measure(self, run: Run) -> Finding | None:
        """Return the finding on the chains whose energy varies; None if it is constant in all."""
        energy = np.asarray(run.draws.statistics["energy"], np.float64)
        moves = np.ptp(energy, axis=1) != 0
        if not moves.any():
            return None
        remedy = run.advice.mixing_energy()
        slow = f"the energy mixes slowly (BFMI {{value:.2f}}): {remedy}"
        labels = [label for label, moving in zip(run.chain_labels, moves, strict=True) if moving]
        finding = self.find_worst(bfmi(energy[moves]), labels, self.limit, slow)
        if finding.passed or not moves.all() or not self._is_of_tails(run, energy):
            return finding
        return self.finding(finding.value, REPORTED, True, "", finding.where)

    def _is_of_tails(self, run: Run, energy: Float64) -> bool:
        """Return whether heavy tails make an energy vary whose effective draws are enough."""
        if not run.usable or (run.moments == 2).all():
            return False
        if np.any(run.draws.statistics.get("diverging", False)):
            return False
        effective = min(float(ess(energy, method)) for method in ("bulk", "tail"))
        enough = effective >= run.find(BulkESS).limit
        return enough and float(r_hat(energy)) <= run.find(RHat).limit


class TreeDepth(Diagnostic, frozen=True):
    """The largest depth of the trees of NUTS; it never fails.

    A run with many trees of the largest depth that its program allows, usually 10, is slow but not
    wrong (Hoffman & Gelman 2014).
    """

    title = "tree depth"

    def applies(self, run: Run) -> bool:
        return run.draws.kind == "chains" and "tree_depth" in run.draws.statistics

    def measure(self, run: Run) -> Finding:
        depth = float(np.max(run.draws.statistics["tree_depth"], initial=0))
        return self.finding(depth, REPORTED, True, "")


class Acceptance(Diagnostic, frozen=True):
    """The acceptance rate of each chain.

    Args:
        limit: the least and the largest sound rate; None takes those of the sampler
            (`Advice.sound_acceptance`).
    """

    title = "acceptance"
    limit: tuple[float, float] | None = None

    def applies(self, run: Run) -> bool:
        return run.draws.kind == "chains" and "acceptance_rate" in run.draws.statistics

    def measure(self, run: Run) -> Finding:
        rates = np.asarray(run.draws.statistics["acceptance_rate"]).mean(axis=1)
        low, high = self.limit or run.advice.sound_acceptance
        worst = int(np.argmax(np.maximum(low - rates, rates - high)))
        rate = float(rates[worst])
        side = "large" if rate < low else "small"
        remedy = run.advice.other_steps(larger=side == "small")
        advice = f"acceptance {rate:.2g}, as steps are too {side} for this posterior: {remedy}"
        where = run.chain_labels[worst]
        return self.finding(rate, f"{low:g} to {high:g}", low <= rate <= high, advice, where)


class NewtonDecrement(Diagnostic, frozen=True):
    """The squared length of the last Newton step in the search for a mode.

    Args:
        limit: its largest sound value, in posterior standard deviations.
    """

    title = "Newton decrement"
    figures = ("newton_decrement",)
    limit: Positive = 1e-6

    def applies(self, run: Run) -> bool:
        return run.draws.kind == "point"

    def measure(self, run: Run) -> Finding:
        """Return the recorded value; NaN if it is not recorded."""
        recorded = run.draws.record.figures.newton_decrement
        decrement = np.nan if recorded is None else recorded
        advice = "the optimisation did not converge: is the density of the model smooth?"
        passed = 0 <= decrement <= self.limit
        return self.finding(decrement, f"≤ {self.limit:g}", passed, advice)
