"""Decider: chooses from each list by the draws of a posterior."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float32, Float64, Int64
from bpa_ppl.decoding.rules import RULES, AlignedDraws, Rule
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior.draws import Draws

_CHUNK = 16  # lists per call in a thread
_THREADS = 8  # at most
_SMALL = 1_000_000  # candidates times draws up to which threads take longer than they save
#: Draws that rules which average use by default, moved to the mean and covariance of all.
FEW_DRAWS = 800
#: Up to this relative difference of the two highest probabilities, all draws decide.
_TIE = 0.02


class Decisions(NamedTuple):
    """Choices from S lists with H hypotheses.

    Attributes:
        choice: (S,) the position of the choice from each list.
        canonical: (S,) the position of the first-best under the canonical weights.
        probability: (H,) of each derivation.
        support: (H,) of the string of each derivation, where equal strings are summed.
    """

    choice: Int64
    canonical: Int64
    probability: Float64
    support: Float64


@dataclass(frozen=True, eq=False)
class Decider:
    """The draws of a posterior, in the order of certain columns, and the rule that chooses by them.

    Attributes:
        rule: the decision rule.
        draws: the draws.
        every_draw: the draws that decide between candidates of nearly equal probability, if they
            are not `draws`.
        canonical: (K,) the canonical weights, or None where they are not known.
        derivations: `separate` or `summed`.
    """

    rule: Rule
    draws: AlignedDraws
    every_draw: AlignedDraws | None = None
    canonical: Float64 | None = None
    derivations: str = "separate"

    @classmethod
    def of(
        cls, draws: Draws, lists: NBest, rule: Rule, count: int | str | None = None, **options: Any
    ) -> Decider:
        """Return the decider for lists with these columns.

        Args:
            draws: of a posterior.
            lists: with the columns.
            rule: the decision rule.
            count: how many draws to use, or `all`; None takes what the rule needs.
            **options: the other attributes.

        Raises:
            DataError: if lists and posterior do not have the same features, or the rule needs
                what the posterior does not record.
        """
        if rule.needs_density and draws.log_weight is None and draws.log_density is None:
            raise DataError(
                f"the rule {RULES.name_of(rule)} needs the density of each draw (lp), which this "
                "posterior does not record: use the rule predictive",
                parameter="rule",
                code="not-supported",
            )
        aligned, every_draw = rule.align(draws, lists), None
        if count is None and rule.averages and len(aligned.weights) > FEW_DRAWS:
            count, every_draw = FEW_DRAWS, aligned
        if isinstance(count, Integral):
            few = aligned.thinned(count)
            aligned = few if rule.needs_density else few.with_moments_of(aligned)
        canonical = None
        if draws.canonical is not None:
            canonical = draws.aligned(lists, draws.canonical[None])[0]
        return cls(rule, aligned, every_draw, canonical, **options)

    def stripped(self, lists: NBest) -> NBest:
        """Return lists with no more than the decider uses, to be sent to a worker process."""
        extras = *lists.extras, *lists.sentence_extras
        lists = lists.without("totals", "references", "sources", *extras)
        if self.rule.needs_texts:
            return lists
        return replace(lists, strings=("",) * len(lists.strings))

    def decide(
        self, features: Float32, strings: npt.NDArray[np.integer]
    ) -> tuple[int, Float64, Float64]:
        """Return the choice from one list, and two probabilities of each candidate.

        These are that of its derivation, (N,), and, where equal strings are summed, that of its
        string, (N,).

        Args:
            features: (N, K) of the candidates.
            strings: (N,) numbers that are equal for equal strings.
        """
        choice, p, support = self._decided(features, strings, self.draws)
        if self.every_draw is not None:
            best = support[choice]
            if support[support < best].max(initial=0.0) > (1 - _TIE) * best:
                return self._decided(features, strings, self.every_draw)
        return choice, p, support

    def _decided(
        self, features: Float32, strings: npt.NDArray[np.integer], draws: AlignedDraws
    ) -> tuple[int, Float64, Float64]:
        # The bits of a product depend on the order of its arrays in memory.
        scores = self.rule.log_scores(np.ascontiguousarray(features, np.float64), draws)
        p = np.exp(scores - scores.max())
        p /= p.sum()
        if self.derivations == "separate":
            return int(p.argmax()), p, p
        group = np.unique(strings, return_inverse=True)[1]
        support: Float64 = np.bincount(group, weights=p)[group].astype(np.float64)
        # The best derivation of the winning string represents it.
        return int(np.where(support == support.max(), p, -1.0).argmax()), p, support

    def choose(self, lists: NBest, *, threads: int = _THREADS) -> Decisions:
        """Return the choice from each list.

        Args:
            lists: some lists.
            threads: how many compute at once, at most.
        """
        if self.rule.needs_texts:
            lists = self.stripped(lists)
        threads = min(threads, os.cpu_count() or 1)
        small = len(lists.features) * len(self.draws.weights) <= _SMALL
        if small or threads == 1 or len(lists) <= _CHUNK:
            return self._of_chunk(lists)
        with ThreadPoolExecutor(threads) as pool:
            parts = zip(*pool.map(self._of_chunk, lists.chunks(_CHUNK)), strict=True)
            return Decisions(*map(np.concatenate, parts))

    def _of_chunk(self, lists: NBest) -> Decisions:
        p, support = np.empty((2, len(lists.features)))
        choice = np.empty(len(lists), np.int64)
        for s in range(len(lists)):
            rows = lists.rows(s)
            decided = self.decide(lists.features[rows], lists.string_index[rows])
            choice[s], p[rows], support[rows] = decided
        if self.rule.needs_texts:
            choice = self.rule.decide(lists, p)
        canonical = np.zeros(len(lists), np.int64)
        if self.canonical is not None:
            canonical = lists.best(lists.scores(self.canonical))
        return Decisions(choice, canonical, p, support)
