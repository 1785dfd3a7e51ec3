"""Deciding: the settings of reranking, in one place for all of its entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from bpa_ppl.decoding.base import Rule
from bpa_ppl.errors import UsageError, one_of
from bpa_ppl.registry import RULES
from bpa_ppl.workers import check_backend, number_of

if TYPE_CHECKING:
    from bpa_ppl.features.recipes import Where
    from bpa_ppl.posterior import Draws

#: What competes in a list: each derivation, or each string with its derivations summed.
DERIVATIONS = ("separate", "summed")


class Options(TypedDict, total=False):
    """The keywords that set `Deciding`, of functions that pass them on."""

    rule: str | Rule | None
    derivations: str
    sure: float | None
    temperature: float | None
    confidence: bool
    defaults: Mapping[str, float] | None
    where: Where | None
    unchecked: bool
    jobs: int
    backend: str
    scheduler: str | None


@dataclass(frozen=True)
class Deciding:
    """How translations are chosen; the arguments of `rerank`, where they are explained.

    Raises:
        UsageError: if there is no such rule, treatment of derivations or backend, or a number is
            out of range.

    >>> import numpy as np
    >>> from bpa_ppl import Draws
    >>> draws = Draws({"weights": np.zeros((1, 2, 1))}, ("comet",), attrs={"rule": "mean"})
    >>> Deciding().rule_for(draws), Deciding(rule="mbr").rule_for(draws).criterion
    (Mean(), 'ter')
    """

    rule: str | Rule | None = None
    derivations: str = "separate"
    sure: float | None = None
    temperature: float | None = None
    confidence: bool = False
    defaults: Mapping[str, float] | None = None
    where: Where | None = None
    unchecked: bool = False
    jobs: int = 1
    backend: str = "local"
    scheduler: str | None = None

    def __post_init__(self) -> None:
        one_of(self.derivations, DERIVATIONS, "treatment of derivations")
        check_backend(self.backend, self.scheduler)
        number_of(self.jobs)
        if self.sure is not None and not 0 <= self.sure <= 1:
            raise UsageError(f"sure is a probability from 0 to 1, not {self.sure}")
        if self.temperature is not None and not 0 < self.temperature < float("inf"):
            raise UsageError(f"a temperature is a number above 0, not {self.temperature}")
        if self.rule is not None:
            RULES.resolve(self.rule)

    def rule_for(self, draws: Draws) -> Rule:
        """Return the rule with its settings: the one given, or recorded, or `predictive`."""
        recorded = draws.attrs.get("rule", "predictive")
        return RULES.resolve(recorded if self.rule is None else self.rule)
