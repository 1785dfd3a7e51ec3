"""Options of reranking: one class for Python, the command line and studies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

from bpa_ppl.decoding.rules import RULES
from bpa_ppl.errors import UsageError, one_of, quoted
from bpa_ppl.workers import worker_count

if TYPE_CHECKING:
    from bpa_ppl.decoding.rules import Rule
    from bpa_ppl.features.recipe import MovedFiles
    from bpa_ppl.posterior.draws import Draws
    from bpa_ppl.progress import Reporter
else:
    # The command line reads the types of the fields; these take objects, not texts.
    Draws = MovedFiles = Reporter = Rule = Any

#: The candidates of a list: derivations, or strings with their derivations summed.
DERIVATIONS: Final = ("separate", "summed")


@dataclass(frozen=True, kw_only=True)
class RerankOptions:
    """How candidates are chosen: the keyword arguments of `rerank`.

    Args:
        rule: `predictive` (Eq. 11 for weighted samples, Eq. 13 for Markov chains), `viterbi`
            (the best pair of weights and candidate), `map` or `mean` (one weight vector), `mbr`
            (the candidate with the highest expected gain), or a rule with its settings. None
            takes what the posterior records, else `predictive`: `adapt` records `mean` where there
            were no canonical weights.
        derivations: How equal strings are scored: `separate`, each derivation separately, as
            published, or `summed`.
        draws: Number of draws to use, or `all`. They are taken evenly, then moved and stretched so
            that their mean and covariance are those of all. By default the rules that average over
            draws, `predictive` and `mbr`, use 800, and all where the two highest probabilities
            differ by less than 2 %; the other rules use all.
        defaults: Weights of features that the posterior does not know, such as one that was
            fixed when somebody else made it.
        moved_files: new paths of files that features are computed from, by the label of the feature
            source, where they have moved since the adaptation: `{"lm": "texts/domain.txt"}`.
        without: A feature of the posterior, or the label of several, that some lists lack: its
            weight is left out. By default that is an error.
        unchecked: Use the posterior although it fails its check.
        jobs: Processes that rerank; -1 uses every core. Few lists are reranked in this process, and
            the choices are the same.
        progress: True draws a bar on standard error.

    Raises:
        UsageError: if there is no such rule or treatment of derivations, or a number is out of
            range.

    >>> import numpy as np
    >>> from bpa_ppl import Draws
    >>> draws = Draws({"weights": np.zeros((1, 2, 1))}, ("comet",), attrs={"rule": "mean"})
    >>> RerankOptions().rule_for(draws), RerankOptions(rule="mbr").rule_for(draws)
    (Mean(), Mbr(gain='ter'))
    """

    rule: str | Rule | None = None
    derivations: str = "separate"
    draws: int | str | None = None
    defaults: Mapping[str, float] | None = None
    moved_files: MovedFiles | None = None
    without: Iterable[str] | None = None
    unchecked: bool = False
    jobs: int = 1
    progress: bool | Reporter = False

    def __post_init__(self) -> None:
        one_of(self.derivations, DERIVATIONS, "treatment of derivations", "derivations")
        worker_count(self.jobs)
        if isinstance(self.draws, str) and self.draws.isdecimal():  # from the command line
            object.__setattr__(self, "draws", int(self.draws))
        named = self.draws is None or (isinstance(self.draws, str) and self.draws == "all")
        if not named and not (isinstance(self.draws, Integral) and self.draws >= 1):
            problem = f"draws must be an integer ≥ 1, or all, not {quoted(self.draws)}"
            raise UsageError(problem, parameter="draws")
        if self.rule is not None:
            RULES.resolve(self.rule)

    def rule_for(self, draws: Draws) -> Rule:
        """Return the rule with its settings: the one given, or recorded, or `predictive`."""
        if self.rule is None:
            return RULES.recorded(draws.attrs.get("rule", "predictive"))
        return RULES.resolve(self.rule)
