"""Column: a column of the lists, such as COMET or a human judgement, as a metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.gains.metric import Averaged, Lists, References


class Column(Averaged, frozen=True):
    """A column of the lists: the gain of a candidate is its value, NaN where it is missing.

    The corpus score of a choice is the mean over the sentences whose choice has a value; the detail
    `NAME.judged` of the score is their number.

    Args:
        column: the name of a feature, or of an extra of numbers.
        negative: whether lower is better, as for TER.

    >>> Column(column="comet").key, Column(column="ter", negative=True).key
    ('comet', '-ter')
    """

    column: str
    negative: bool = False

    needs = frozenset({"columns"})

    @property
    def key(self) -> str:  # type: ignore[override]
        """The name of the metric: that of the column, with a minus if lower is better."""
        return f"-{self.column}" if self.negative else self.column

    @property
    def lower_is_better(self) -> bool:  # type: ignore[override]
        return self.negative

    @property
    def title(self) -> str:
        return self.column

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.column,)

    def signature(self, references: References, *, sentence: bool = False) -> str:
        return f"column:{self.column}|better:{'lower' if self.negative else 'higher'}"

    def sentences(
        self,
        lists: Lists,
        references: References,
        *,
        columns: Mapping[str, npt.ArrayLike] | None = None,
        **more: Any,
    ) -> Float64:
        return np.asarray((columns or {})[self.column], np.float64)

    def details_of(self, sums: Float64) -> dict[str, float]:
        """Return how many of the choices have a value."""
        return {f"{self.column}.judged": float(sums[1])}
