"""Function: a Python function as a metric."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from bpa_ppl._runtime.arrays import Float64, are_finite, to_floats
from bpa_ppl.errors import UsageError, bad_value, wrong_type
from bpa_ppl.gains.metric import Averaged, Lists, References

_TAKES = ("candidates", "references", "sources")


class Function(Averaged, frozen=True):
    """A Python function of (candidates[, references[, sources]]) as a metric; higher is better.

    The function gets lists of equal length: texts, tuples of references, and sources. The metric
    needs references or sources if the function has parameters for them.

    Args:
        function: the function; it returns one number per candidate.

    Raises:
        UsageError: if `function` is not a function of one to three lists.

    >>> Function(function=lambda candidates: [len(text) for text in candidates]).needs
    frozenset()
    """

    function: Any

    def __post_init__(self) -> None:
        if not callable(self.function) or not 1 <= self._takes <= len(_TAKES):
            rule = "a custom metric is a function of (candidates[, references[, sources]])"
            raise wrong_type(rule, self.function, "gain")

    @property
    def key(self) -> str:  # type: ignore[override]
        """The name of the function."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return str(name).strip("<>")

    @property
    def title(self) -> str:
        return self.key

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(_TAKES[1 : self._takes])

    def signature(self, references: References, *, sentence: bool = False) -> str:
        return f"function:{self.key}"

    def sentences(
        self,
        lists: Lists,
        references: References,
        *,
        sources: Sequence[str] | None = None,
        **more: Any,
    ) -> Float64:
        candidates = list(chain.from_iterable(lists))
        arguments = [
            candidates,
            _repeat_values(references, lists),
            _repeat_values(sources or (), lists),
        ]
        scores = self.function(*arguments[: self._takes])
        try:
            values = to_floats(scores, self.key)
        except UsageError:
            values = np.empty(0)
        if values.shape != (len(candidates),) or not are_finite(values):
            expected = f"one finite number for each of {len(candidates)} candidates, at most 1e60"
            raise bad_value(f"what the metric {self.key} returns", scores, expected)
        return values

    @property
    def _takes(self) -> int:
        """The number of lists that the function takes."""
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):  # the signature of a builtin may be unknown
            return 2
        if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
            return len(_TAKES)
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        required = [p for p in parameters if p.kind in positional and p.default is p.empty]
        accepted = [p for p in parameters if p.kind in positional and p.name in _TAKES]
        return max(len(required), len(accepted))


def _repeat_values(values: Sequence[Any], lists: Lists) -> list[Any]:
    """Return the value of each sentence once for each of its candidates."""
    pairs = zip(values, lists, strict=False)
    return list(chain.from_iterable(repeat(value, len(texts)) for value, texts in pairs))
