"""Column: a column of the lists, such as COMET or a human judgement, as a metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import (
    Float64,
    Int64,
)
from bpa_ppl.errors import DataError
from bpa_ppl.gains.metric import Averaged, Lists, Metric, References
from bpa_ppl.lists.columns import read_column, select_marked
from bpa_ppl.lists.nbest import (
    NBest,
)


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


def select_judged(lists: NBest, gain: Metric) -> tuple[NBest, Int64]:
    """Return the lists of the candidates that a gain has a value for, and their rows.

    Of a column, lists with fewer than two of them are left out; of a gain that needs references,
    lists without any, if others have some.

    Raises:
        DataError: if no list is left.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b", "c"]], [[[0.0], [1.0], [2.0]]], ["LM0"])
    >>> gain = Column(column="mqm", negative=True)
    >>> kept, rows = select_judged(lists.with_extras(mqm=[-5, None, 0]), gain)
    >>> kept.sizes.tolist(), rows.tolist()
    ([2], [0, 2])
    """
    judged, rows = lists, np.arange(len(lists.features))
    having = [bool(references) for references in lists.references or ()]
    if "references" in gain.needs and any(having) and not all(having):
        rows = rows[np.repeat(having, lists.sizes)]
        judged = lists.select(np.flatnonzero(having))
    for name in gain.columns:
        judged, kept = select_marked(judged, np.isfinite(read_column(judged, name)))
        rows = rows[kept]
    if len(lists) and not len(judged):
        names = ", ".join(gain.columns)
        message = f"no list has two candidates with a value of {names}: judge two or more of a list"
        raise DataError(message, lists.origin, code="no-data")
    return judged, rows


def is_choice_of_two(gain: Metric, lists: NBest) -> bool:
    """Return whether a gain says which of two candidates was chosen, such as 1 and 0.

    There are two lists or more, each with two judged candidates, and two values in all of them; in
    a tie both candidates have the same one.

    Args:
        gain: its column.
        lists: the adaptation sentences.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"], ["c", "d"]], [[[0.0], [1.0]]] * 2, ["judge"])
    >>> chosen, graded = [[1, 0], [0, 1]], [[1, 0], [0, 2]]
    >>> lists = lists.with_extras(chosen=np.ravel(chosen), graded=np.ravel(graded))
    >>> [is_choice_of_two(Column(column=name), lists) for name in ("chosen", "graded")]
    [True, False]
    """
    columns = {*lists.feature_names, *lists.extras}
    if not isinstance(gain, Column) or gain.column not in columns:
        return False
    gains = read_column(lists, gain.column)
    judged, rows = select_marked(lists, np.isfinite(gains))
    return len(judged) > 1 and int(judged.sizes.max()) == 2 and len(np.unique(gains[rows])) == 2
