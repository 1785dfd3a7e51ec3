"""Columns of candidates: their types, their ranges, and examples of their values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, are_finite, as_numbers, is_missing
from bpa_ppl.errors import escape_controls, quote
from bpa_ppl.metrics.column import select_marked
from bpa_ppl.nbest import NBest, find_feature, measure_deviation

#: What the values of a column are.
NUMBER, TRUTH, TEXT, LIST, OTHER, EMPTY = "number", "true/false", "text", "list", "other", "empty"
_EXAMPLES = 3  # candidates
#: Characters of a text, and of other values, in an example; and columns in a line of one.
_OF_TEXT, _OF_VALUE, _SHOWN = 60, 30, 8


class ColumnSummary(NamedTuple):
    """A column of the candidates.

    Attributes:
        name: of the column.
        kind: "feature"; "gain", the column that is the gain; or "extra", which has no weight.
        minimum: the lowest number, with false as 0 and true as 1; NaN if there are no numbers.
        median: of all numbers.
        maximum: the highest number.
        within: the standard deviation within lists.
        missing: the number of candidates without a value.
        type: of the values: "number", "true/false", "text", "list", "other", or "empty", if all are
            missing.
        different: the number of different texts; None for other types.

    >>> from bpa_ppl import describe, from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5], [1.5]]], ["lm"])
    >>> describe(lists).columns[0].minimum
    0.5
    """

    name: str
    kind: str
    minimum: float
    median: float
    maximum: float
    within: float
    missing: int
    type: str
    different: int | None


class CandidateColumn(NamedTuple):
    """A column of the candidates with its values.

    Attributes:
        summary: of the column.
        values: as they are read.
        numbers: (candidates,) NaN where one is missing, true as 1; None for other values.
    """

    summary: ColumnSummary
    values: Sequence[Any] | npt.NDArray[Any]
    numbers: Float64 | None

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.summary.name

    @property
    def may_be_gain(self) -> bool:
        """Whether it is an extra of numbers, or of true and false, that vary within lists."""
        return self.summary.kind == "extra" and self.summary.within > 0  # not with NaN

    @property
    def like_gain(self) -> bool:
        """Whether it is true or false, or missing for some candidates, as judgements often are."""
        return self.summary.type == TRUTH or self.summary.missing > 0


def read_columns(lists: NBest, gain: Iterable[str] = ()) -> tuple[CandidateColumn, ...]:
    """Return the columns of the candidates with their types, features first.

    Args:
        lists: the lists.
        gain: the names of columns that are the gain.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.5], [1.5]]], ["lm"]).with_extras(by=["A", None])
    >>> [column.summary.type for column in read_columns(lists)]
    ['number', 'text']
    """
    # Lists without columns, whose judged candidates are selected for each column.
    plain = lists.without(*lists.feature_names, *lists.extras, *lists.sentence_extras)
    gain = frozenset(gain)
    return tuple(
        _read_column(lists, plain, name, gain) for name in (*lists.feature_names, *lists.extras)
    )


def _read_column(lists: NBest, plain: NBest, name: str, gain: frozenset[str]) -> CandidateColumn:
    feature = find_feature(lists, name)
    values = lists.extras[name] if feature is None else feature
    kind = "gain" if name in gain else "extra" if feature is None else "feature"
    of_type, numbers = _find_type(values, cells=name in lists.cells)
    different = None
    if numbers is None:
        missing = sum(map(is_absent, values))
        if of_type == TEXT:
            different = len({value for value in values if not is_absent(value)})
        range_ = (np.nan,) * 4
    else:
        missing = int(np.count_nonzero(np.isnan(numbers)))
        range_ = _measure(plain, numbers)
    summary = ColumnSummary(name, kind, *range_, missing, of_type, different)
    return CandidateColumn(summary, values, numbers)


def is_absent(value: Any) -> bool:
    """Return whether a value is missing, or NaN.

    >>> is_absent(None), is_absent(np.nan), is_absent(0)
    (True, True, False)
    """
    return is_missing(value) or (isinstance(value, float) and value != value)


def _find_type(
    values: Sequence[Any] | npt.NDArray[Any], *, cells: bool
) -> tuple[str, Float64 | None]:
    """Return the type of a column, and its numbers."""
    numbers = as_numbers(values, cells=cells)
    if numbers is not None:
        return NUMBER, numbers
    if isinstance(values, np.ndarray):
        is_truth = values.ndim == 1 and values.dtype.kind == "b"
        return (TRUTH if is_truth else LIST if values.ndim > 1 else OTHER), (
            values.astype(np.float64) if is_truth else None
        )
    kinds = {type(value) for value in values if not is_absent(value)}
    if not kinds:
        return EMPTY, None
    if all(issubclass(kind, bool | np.bool_) for kind in kinds):
        return TRUTH, as_numbers(values, truths=True)
    if all(issubclass(kind, str) for kind in kinds):
        return TEXT, None
    return (LIST if all(issubclass(kind, list | tuple) for kind in kinds) else OTHER), None


def _measure(plain: NBest, numbers: Float64) -> tuple[float, float, float, float]:
    """Return the minimum, the median, the maximum and the spread within lists of known numbers."""
    is_known = ~np.isnan(numbers)
    if not is_known.any():
        return np.nan, np.nan, np.nan, 0.0
    known = numbers[is_known]
    lists, rows = select_marked(plain, is_known)
    if is_known.all():  # lists of one, too, as in the spread that weights are scaled by
        lists, rows = plain, np.arange(len(numbers))
    within = np.nan
    if are_finite(known):
        within = measure_deviation(lists, numbers[rows]) if len(rows) else 0.0
    return float(known.min()), float(np.median(known)), float(known.max()), within


class Example(NamedTuple):
    """A candidate as an example.

    Attributes:
        id: of the list.
        text: of the candidate, shortened to a line.
        values: of its columns: numbers, true, false and None as they are, other values shortened.

    >>> print(Example(0, "a cat", {"lm": -2.0, "system": "A", "human": None}))
    list 0: "a cat" (lm -2, system A)
    """

    id: int | str
    text: str
    values: dict[str, Any]

    def __str__(self) -> str:
        shown = [
            f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
            for name, value in self.values.items()
            if value is not None
        ]
        shown = [*shown[:_SHOWN], "…"] if len(shown) > _SHOWN else shown
        return f'list {self.id}: "{self.text}"' + (f" ({', '.join(shown)})" if shown else "")


def read_examples(lists: NBest, columns: Sequence[CandidateColumn]) -> tuple[Example, ...]:
    """Return the first candidates of the first list that has several, else of the first list.

    Args:
        lists: the lists.
        columns: of their candidates.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a"], ["b", "c"]], [[[0.5]], [[1.5], [2.5]]], ["lm"])
    >>> read_examples(lists, read_columns(lists))[1]
    Example(id=1, text='c', values={'lm': 2.5})
    """
    sentence = int(np.argmax(lists.sizes > 1))
    rows = range(len(lists.features))[lists.rows(sentence)][:_EXAMPLES]
    return tuple(
        Example(
            lists.ids[sentence],
            _shorten(lists.text(row), _OF_TEXT),
            {column.name: _show_value(column, row) for column in columns},
        )
        for row in rows
    )


def _show_value(column: CandidateColumn, row: int) -> Any:
    """Return a value for an example."""
    if column.numbers is None:
        value = column.values[row]
        text = value if isinstance(value, str) else quote(value, _OF_VALUE)
        return None if is_absent(value) else _shorten(text, _OF_VALUE)
    number = float(column.numbers[row])
    if not math.isfinite(number):
        return None if math.isnan(number) else str(number)  # JSON has no infinite numbers
    return bool(number) if column.summary.type == TRUTH else number


def _shorten(text: str, length: int) -> str:
    r"""Return the beginning of a text as a line.

    >>> _shorten("a cat\nsat", 8)
    'a cat\\n…'
    """
    line = escape_controls(text[: 2 * length])
    return line if len(line) <= length else f"{line[: length - 1]}…"
