"""Column: a column of the lists, such as COMET or a human judgement, as a metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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


class JudgedRows(NamedTuple):
    """The candidates that a gain may be computed of.

    Of a column they have a value, as does another one of their list; of a gain that needs
    references their list has one, if any has.

    Attributes:
        marked: (candidates,) which ones they are.
        values: (candidates,) of the column; None for another gain.
        of_two: whether the column says which of two candidates was chosen, such as 1 and 0: there
            are two lists or more, each with two of these candidates, and two values in all of them;
            in a tie both candidates have the same one.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"], ["c", "d"]], [[[0.0], [1.0]]] * 2, ["judge"])
    >>> chosen, graded = [[1, 0], [0, 1]], [[1, 0], [0, 2]]
    >>> lists = lists.with_extras(chosen=np.ravel(chosen), graded=np.ravel(graded))
    >>> [find_judged(lists, Column(column=name)).of_two for name in ("chosen", "graded")]
    [True, False]
    """

    marked: npt.NDArray[np.bool_]
    values: Float64 | None
    of_two: bool


def find_judged(lists: NBest, gain: Metric) -> JudgedRows:
    """Return the candidates that a gain may be computed of; its columns are read once, here.

    Args:
        lists: the lists.
        gain: a metric or a column.
    """
    marked, values, of_two = np.ones(len(lists.features), np.bool_), None, False
    having = [bool(references) for references in lists.references or ()]
    if "references" in gain.needs and any(having) and not all(having):
        marked = np.repeat(having, lists.sizes)
    columns = [read_column(lists, name) for name in gain.columns]
    if columns:
        marked = marked & np.isfinite(columns).all(axis=0)
        counts = np.diff(np.concatenate([[0], np.cumsum(marked)])[lists.offsets])
        marked = marked & np.repeat(counts > 1, lists.sizes)
    if isinstance(gain, Column):
        (values,) = columns
        several = np.sum(counts > 1) > 1 and counts.max() == 2
        of_two = bool(several and len(np.unique(values[marked])) == 2)
    return JudgedRows(marked, values, of_two)


def select_judged(
    lists: NBest, gain: Metric, found: JudgedRows | None = None
) -> tuple[NBest, Int64]:
    """Return the lists of the candidates that a gain has a value for, and their rows.

    Of a column, lists with fewer than two of them are left out; of a gain that needs references,
    lists without any, if others have some.

    Args:
        lists: the lists.
        gain: a metric or a column.
        found: from `find_judged`, of lists with the same candidates; None finds them.

    Raises:
        DataError: if no list is left.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b", "c"]], [[[0.0], [1.0], [2.0]]], ["LM0"])
    >>> gain = Column(column="mqm", negative=True)
    >>> kept, rows = select_judged(lists.with_extras(mqm=[-5, None, 0]), gain)
    >>> kept.sizes.tolist(), rows.tolist()
    ([2], [0, 2])
    """
    marked = (find_judged(lists, gain) if found is None else found).marked
    if gain.columns:
        judged, rows = select_marked(lists, marked)
    else:  # whole lists
        rows = np.flatnonzero(marked)
        is_whole = len(rows) == len(marked)
        judged = lists if is_whole else lists.select(np.flatnonzero(marked[lists.offsets[:-1]]))
    if len(lists) and not len(judged):
        names = ", ".join(gain.columns)
        message = f"no list has two candidates with a value of {names}: judge two or more of a list"
        raise DataError(message, lists.origin, code="no-data")
    return judged, rows
