"""Function: a metric that is a function from Python."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.nbest import Float64
from bpa_ppl.quality.base import Averaged, Lists, References

_TAKES = ("hypotheses", "references", "sources")


class Function(Averaged, frozen=True):
    """Scores of a function of (hypotheses[, references[, sources]]), higher is better.

    The function gets lists as long as each other: texts, tuples of references, sources. How many
    of them it takes says what the metric needs. Scores are never kept on disk.

    Args:
        function: the function; it returns one number a hypothesis.

    Raises:
        UsageError: if it is no function of one to three lists.

    >>> Function(function=lambda hypotheses: [len(text) for text in hypotheses]).needs
    frozenset()
    """

    function: Any

    kept = False

    def __post_init__(self) -> None:
        if not callable(self.function) or not 1 <= self._takes <= len(_TAKES):
            raise UsageError(
                "a metric of your own is a function of (hypotheses), (hypotheses, references) or "
                f"(hypotheses, references, sources), not {self.function!r}"
            )

    @property
    def key(self) -> str:  # type: ignore[override]
        """The name of the function."""
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return str(name).strip("<>")

    @property
    def title(self) -> str:
        """The name of the function."""
        return self.key

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        """References and sources, as far as the function takes them."""
        return frozenset(_TAKES[1 : self._takes])

    def signature(self, references: References, *, sentence: bool = False) -> str:
        """Return the name of the function: what it computes nobody else can know."""
        return f"function:{self.key}"

    def sentences(
        self,
        lists: Lists,
        references: References,
        *,
        only_best: bool,
        sources: Sequence[str] | None = None,
    ) -> Float64:
        """Return what the function says of each hypothesis, one list after the other.

        Raises:
            DataError: if that is not one finite number each.
        """
        hypotheses = list(chain.from_iterable(lists))
        given = [hypotheses, _each(references, lists), _each(sources or (), lists)]
        scores = self.function(*given[: self._takes])
        try:
            values = np.asarray(scores, np.float64)
        except (TypeError, ValueError) as error:
            raise self._wrong(hypotheses, scores) from error
        if values.shape != (len(hypotheses),) or not np.isfinite(values).all():
            raise self._wrong(hypotheses, scores)
        return values

    @property
    def _takes(self) -> int:
        try:
            parameters = inspect.signature(self.function).parameters.values()
        except (TypeError, ValueError):  # a builtin may not say
            return 2
        if any(one.kind is one.VAR_POSITIONAL for one in parameters):
            return len(_TAKES)
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        required = [p for p in parameters if p.kind in positional and p.default is p.empty]
        named = [p for p in parameters if p.kind in positional and p.name in _TAKES]
        return max(len(required), len(named))

    def _wrong(self, hypotheses: list[str], scores: Any) -> DataError:
        return DataError(
            f"the metric {self.key} must return one finite number for each of "
            f"{len(hypotheses)} hypotheses, not {reprlib.repr(scores)}"
        )


def _each(values: Sequence[Any], lists: Lists) -> list[Any]:
    """Return what belongs to a sentence once for each of its hypotheses."""
    pairs = zip(values, lists, strict=False)
    return list(chain.from_iterable(repeat(value, len(texts)) for value, texts in pairs))
