"""The base class of diagnostics, and the statistics of a run that they share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.components import Component, Registry
from bpa_ppl.diagnostics.check.advice import Advice, find_advice
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.record import Finding
from bpa_ppl.posterior.statistics import (
    LARGEST,
    by_blocks,
    count_moments,
    ess,
    estimate_tail_shapes,
    have_large_draws,
    mcse,
    r_hat,
    smooth_log_weights,
)

#: Draws per chain, whose halves have a variance.
FEWEST = 4
#: The limit of what is reported, and never fails.
REPORTED = "reported"
#: Chains are at different modes if R-hat is above the first value, and each of them agrees with
#: itself, with an R-hat of its four parts of at most the second one.
_APART, _TOGETHER = 1.2, 1.1

D = TypeVar("D", bound="Diagnostic")


class Run:
    """Draws that are checked, with the statistics that several diagnostics read, computed once.

    Args:
        draws: the draws.
        diagnostics: all diagnostics of the check, with their limits.

    >>> values = np.random.default_rng(0).normal(size=(4, 100, 1))
    >>> from bpa_ppl.posterior.draws import name_array
    >>> run = Run(name_array(values, ("LM0",)))
    >>> run.usable, run.names, run.values.shape, run.chain_labels[:2]
    (True, ['LM0'], (4, 100, 1), ['chain 0', 'chain 1'])
    """

    def __init__(self, draws: Draws, diagnostics: Iterable[Diagnostic] = ()):
        self.draws, self.diagnostics = draws, tuple(diagnostics)
        self._findings: dict[str, Finding | None] = {}

    @property
    def names(self) -> list[str]:
        """The names of all components of all sites."""
        return self._components[0]

    @property
    def values(self) -> Float64:
        """(C, D, components): their draws; NaN if not finite."""
        return self._components[1]

    @property
    def main(self) -> Float64:
        """(C, D, components): the draws of the main sites; of all if there are none."""
        of_main = np.isin(self.draws.cells.sites, self.draws.main)
        return self.draws.array.compress(of_main, axis=-1) if self.draws.main else self.values

    @cached_property
    def _components(self) -> tuple[list[str], Float64]:
        return list_components(self.draws)

    @property
    def chain_labels(self) -> list[str]:
        """(C,) the chains, as the column `worst at` names them."""
        return [f"chain {c}" for c in range(self.draws.shape[0])]

    @cached_property
    def advice(self) -> Advice:
        """The advice of the sampler."""
        return find_advice(self.draws)

    def measure(self, diagnostic: Diagnostic) -> Finding | None:
        """Return the finding of a diagnostic, which is measured once; None if it does not apply."""
        if diagnostic.title not in self._findings:
            applies = diagnostic.applies(self)
            self._findings[diagnostic.title] = diagnostic.measure(self) if applies else None
        return self._findings[diagnostic.title]

    def measure_each(self, diagnostics: Iterable[Diagnostic]) -> dict[str, Finding]:
        """Return the findings of diagnostics that apply, by title."""
        findings = {one.title: self.measure(one) for one in diagnostics}
        return {title: found for title, found in findings.items() if found is not None}

    def find(self, kind: type[D]) -> D:
        """Return the diagnostic of a class, with its limit in this check."""
        found = next((one for one in self.diagnostics if isinstance(one, kind)), None)
        return kind() if found is None else found

    @cached_property
    def not_finite(self) -> Int64:
        """(components,) the number of draws that are NaN, infinite or too large to be squared."""
        return np.asarray(np.isnan(self.values).sum(axis=(0, 1)))

    @cached_property
    def constant(self) -> Int64:
        """The indices of the components whose draws are all equal, or too small to be squared."""
        return np.flatnonzero(np.ptp(self.values, axis=(0, 1)) < 1 / LARGEST)

    @cached_property
    def usable(self) -> bool:
        """Whether they are chains of finite draws that are not constant, and not very few."""
        if self.draws.kind != "chains" or self.draws.shape[1] < FEWEST:
            return False
        return not (self.not_finite.any() or self.constant.size)

    @cached_property
    def r_hat(self) -> Float64:
        """(components,) rank-normalised split R-hat."""
        return r_hat(self.values)

    @cached_property
    def bulk_ess(self) -> Float64:
        """(components,) the effective sample size of the bulk."""
        return ess(self.values)

    @cached_property
    def tail_ess(self) -> Float64:
        """(components,) the effective sample size of the tails."""
        return ess(self.values, "tail")

    @cached_property
    def error(self) -> Float64:
        """(components,) the Monte-Carlo error of the mean, in posterior standard deviations."""
        deviation = by_blocks(lambda draws: draws.std(axis=(0, 1), ddof=1), self.values)
        return np.asarray(mcse(self.values) / np.where(deviation > 0, deviation, np.nan))

    @cached_property
    def settled(self) -> bool:
        """Whether R-hat of the second half of the draws is less than half as far above 1."""
        second = r_hat(self.values[:, self.draws.shape[1] // 2 :])
        return bool(2 * (second.max() - 1) < self.r_hat.max() - 1)

    @cached_property
    def shortage(self) -> float:
        """How many times as many effective draws the diagnostics together call for."""
        shortages = [one.shortage_of(self) for one in self.diagnostics]
        # A chain that never moves has no finite diagnostic: no number of draws is enough.
        return max(np.inf if np.isnan(one) else one for one in shortages if one is not None)

    @cached_property
    def at_several_modes(self) -> bool:
        """Whether a search found several modes, or each chain stays at one of its own.

        The posterior of the weights of lists mostly has one. Where the density jumps, chains stay
        at one side of the jump.
        """
        if self.draws.main or self.draws.record.figures.jumps:
            return False
        if (self.draws.record.figures.modes or 1) > 1:
            return True
        worst = int(np.argmax(self.r_hat))
        if len(self.values) < 2 or not self.r_hat[worst] > _APART:
            return False
        alone = [r_hat(chain[None, :, worst]) for chain in self.values]
        return bool(np.max(alone) <= _TOGETHER)

    @cached_property
    def tail_shapes(self) -> Float64:
        """Pareto k̂ of the tails of the weights, or of all components without weights.

        Of weights it is 0 where no draw makes up much of the mean: then the mean exists.
        """
        if not self.draws.main:
            return self._tails[0]
        share = np.fmin(self.bulk_ess, self.tail_ess) / np.prod(self.draws.shape)
        return np.where(have_large_draws(self.main, share), self._tails[0], 0.0)

    @cached_property
    def moments(self) -> Int64:
        """(components,) 2, or 1 without a variance, or 0 without a mean; 2 of weights of lists."""
        if self.draws.main:
            return np.full(len(self.names), 2)
        return count_moments(*self._tails)

    @cached_property
    def _tails(self) -> tuple[Float64, Float64]:
        share = np.fmin(self.bulk_ess, self.tail_ess) / np.prod(self.draws.shape)
        return estimate_tail_shapes(self.main, share)

    @cached_property
    def pareto_k(self) -> float:
        """Pareto k̂ of the importance weights, or of those before they were smoothed if larger."""
        computed = smooth_log_weights(np.asarray(self.draws.log_weight))[1]
        recorded = self.draws.record.figures.pareto_k
        return computed if recorded is None else float(np.fmax(recorded, computed))


class Diagnostic(Component, frozen=True):
    """A figure of draws that is compared with a limit; its fields are its settings.

    The setting `limit` is the limit, which `check` can replace; diagnostics of what must not occur
    at all have none.

    Attributes:
        title: its name in tables.
        least: whether the limit is the least sound value, not the largest.
        figures: the figures of the record (`Figures`) that it reads.
        stored: whether a recorded verdict keeps its finding. Such a diagnostic reads the values,
            statistics and importance weights of the draws, the record of the sampler and its
            `figures`; the rest is missing in `run.draws`. With other values a recorded verdict is
            not used. A diagnostic that is not stored may read everything, and has to be quick,
            because it is measured again whenever a verdict is read.

    >>> DIAGNOSTICS.resolve("bulk-ess", {"limit": 120}).settings()
    {'limit': 120}
    """

    main = "limit"
    title: ClassVar[str] = ""
    least: ClassVar[bool] = False
    figures: ClassVar[tuple[str, ...]] = ()
    stored: ClassVar[bool] = True

    def applies(self, run: Run) -> bool:
        """Return whether the diagnostic applies: by default to chains that are usable."""
        return run.usable

    def measure(self, run: Run) -> Finding | None:
        """Return the finding on draws to which it applies; None if there is nothing to report."""
        raise NotImplementedError(f"{type(self).__name__} measures nothing")

    def shortage(self, value: float) -> float:
        """Return by how much to multiply the effective draws; infinite if more do not help."""
        return np.inf

    def shortage_of(self, run: Run) -> float | None:
        """Return the shortage of its worst value; None if it does not count effective draws."""
        return None

    def finding(
        self, value: float, limit: str, passed: bool, advice: str, where: str = ""
    ) -> Finding:
        """Return a finding with the title of the diagnostic, and `where` its worst value is."""
        return Finding(self.title, value, where, limit, passed, advice.removesuffix(": "))

    def find_worst(
        self, values: Float64, names: Sequence[str], limit: float, advice: str
    ) -> Finding:
        """Return the finding on the worst of several values; one that is not finite is the worst.

        Args:
            values: (n,) the values.
            names: (n,) the components or chains.
            limit: the largest sound value, or the least one (`least`).
            advice: as for `finding`; `{value}` and `{where}` are replaced.
        """
        k, sign = self.index_worst(values), -1 if self.least else 1
        value = float(values[k])
        passed = bool(np.isfinite(value) and sign * value <= sign * limit)
        text = advice.format(value=value, where=names[k])
        words = f"{'≥' if self.least else '≤'} {limit:.4g}"
        return self.finding(value, words, passed, text, names[k])

    def index_worst(self, values: Float64) -> int:
        """Return the index of the worst value: one that is not finite, else the largest or least.

        A chain that never moves has no finite value.
        """
        badness = -values if self.least else values
        return int(np.argmax(np.where(np.isfinite(values), badness, np.inf)))


def list_components(draws: Draws) -> tuple[list[str], Float64]:
    """Return the names and draws, (C, D, components), of all components.

    Draws that are not finite, or beyond `LARGEST`, are NaN.

    A constant component of a site whose other components vary is left out, unless it is a main
    site: it is structural, such as the diagonal of a correlation matrix.

    >>> from bpa_ppl.posterior.draws import Draws
    >>> diagonal = np.array([[[3.0, 1.0], [4.0, 1.0]]])
    >>> list_components(Draws({"s": diagonal, "c": np.ones((1, 2))}, sampled=("s", "c")))[0]
    ['s[0]', 'c']
    """
    sites, names, values = draws.cells
    moves = np.ptp(values, axis=(0, 1)) != 0
    moving = {site for site, one in zip(sites, moves, strict=True) if one}
    kept = [
        k for k, site in enumerate(sites) if moves[k] or site in draws.main or site not in moving
    ]
    if len(kept) < len(names) or not values.flags.c_contiguous:
        values = values.take(kept, axis=-1)  # in C order, as sums depend on it in the last digits
    if not (values.max(initial=0) <= LARGEST and values.min(initial=0) >= -LARGEST):
        values = np.where(np.abs(values) <= LARGEST, values, np.nan)
    return [names[k] for k in kept], values


#: In the order of the table: those that explain others come first.
DIAGNOSTICS: Registry[Diagnostic] = Registry(
    "diagnostic",
    "bpa_ppl.diagnostics",
    Diagnostic,
    {
        "draws-per-chain": "bpa_ppl.diagnostics.check.usable:DrawsPerChain",
        "not-finite": "bpa_ppl.diagnostics.check.usable:NotFinite",
        "constant": "bpa_ppl.diagnostics.check.usable:Constant",
        "independent-chains": "bpa_ppl.diagnostics.check.independence:IndependentChains",
        "log-density": "bpa_ppl.diagnostics.check.usable:LogDensity",
        "equal-draws": "bpa_ppl.diagnostics.check.convergence:EqualDraws",
        "divergences": "bpa_ppl.diagnostics.check.of_samplers:Divergences",
        "bfmi": "bpa_ppl.diagnostics.check.of_samplers:BFMI",
        "tree-depth": "bpa_ppl.diagnostics.check.of_samplers:TreeDepth",
        "acceptance": "bpa_ppl.diagnostics.check.of_samplers:Acceptance",
        "burn-in": "bpa_ppl.diagnostics.check.convergence:BurnIn",
        "r-hat": "bpa_ppl.diagnostics.check.convergence:RHat",
        "bulk-ess": "bpa_ppl.diagnostics.check.convergence:BulkESS",
        "tail-ess": "bpa_ppl.diagnostics.check.convergence:TailESS",
        "mcse": "bpa_ppl.diagnostics.check.convergence:MCSE",
        "chain-means": "bpa_ppl.diagnostics.check.convergence:ChainMeans",
        "tails": "bpa_ppl.diagnostics.check.convergence:Tails",
        "prior-draws": "bpa_ppl.diagnostics.check.prior:PriorDraws",
        "importance-ess": "bpa_ppl.diagnostics.check.importance:ImportanceESS",
        "pareto-k": "bpa_ppl.diagnostics.check.importance:ParetoK",
        "newton-decrement": "bpa_ppl.diagnostics.check.of_samplers:NewtonDecrement",
    },
)
