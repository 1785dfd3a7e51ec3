"""Column: a column of the lists, such as COMET or a human judgement, as a metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import suggest_name
from bpa_ppl._runtime.arrays import (
    LARGEST,
    Float64,
    Int64,
    as_numbers,
    read_number,
)
from bpa_ppl._runtime.messages import format_count
from bpa_ppl.errors import DataError, quote
from bpa_ppl.formats.roles import describe_columns
from bpa_ppl.metrics.metric import Averaged, Lists, Metric, References
from bpa_ppl.nbest import (
    NBest,
    centre,
    describe_candidate,
    describe_number,
    find_feature,
    subtract_first,
)

#: An outlier is so many times as far from the median of its list as this share of the others.
_FAR, _NEAR = 10.0, 0.9
_INFLATED = 3.0  # the spread with outliers over that without them, from which they are reported


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
        """Whether lower is better."""
        return self.negative

    @property
    def title(self) -> str:
        """The name of the column."""
        return self.column

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """The column."""
        return (self.column,)

    def signature(self, references: References, *, sentence: bool = False) -> str:
        """Return the name and the direction of the column."""
        return f"column:{self.column}|better:{'lower' if self.negative else 'higher'}"

    def sentences(
        self,
        lists: Lists,
        references: References,
        *,
        columns: Mapping[str, npt.ArrayLike] | None = None,
        **more: Any,
    ) -> Float64:
        """Return the values of the column, one list after the other; NaN where one is missing."""
        return np.asarray((columns or {})[self.column], np.float64)

    def details_of(self, sums: Float64) -> dict[str, float]:
        """Return how many of the choices have a value."""
        return {f"{self.column}.judged": float(sums[1])}


def numeric_columns(lists: NBest) -> tuple[str, ...]:
    """Return the names of the features, then of the extras of numbers, partly missing ones too.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[1.0], [2.0]]], ["LM0"])
    >>> numeric_columns(lists.with_extras(system=["A", "B"], mqm=np.array([-5.0, np.nan])))
    ('LM0', 'mqm')
    """
    extras = [name for name in lists.extras if read_extra(lists, name) is not None]
    return (*lists.feature_names, *extras)


def read_extra(lists: NBest, name: str, *, truths: bool = False) -> Float64 | None:
    """Return an extra as numbers, NaN where one is missing; None if it has other values.

    Args:
        lists: the lists.
        name: of the extra.
        truths: whether true and false are 1 and 0.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[1.0], [2.0]]], ["LM0"])
    >>> lists = lists.with_extras(right=[True, None])
    >>> read_extra(lists, "right"), read_extra(lists, "right", truths=True)
    (None, array([ 1., nan]))
    """
    return as_numbers(lists.extras[name], cells=name in lists.cells, truths=truths)


def read_column(lists: NBest, name: str) -> Float64:
    """Return the values of a feature or an extra, (candidates,); NaN where one is missing.

    True and false are 1 and 0.

    Raises:
        DataError: if there is no such column, or one of its values is neither a finite number nor
            missing: NaN, None, or an empty cell of a text file.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[1.0], [0.5]]], ["LM0"])
    >>> read_column(lists, "LM0").tolist()
    [1.0, 0.5]
    >>> read_column(lists.with_extras(mqm=[-5, None]), "mqm").tolist()
    [-5.0, nan]
    """
    if (feature := find_feature(lists, name)) is not None:
        return feature.copy()
    if name not in lists.extras:
        present = (*lists.feature_names, *lists.extras)
        problem = f"the lists have no column {name}; {describe_numbers(lists)}"
        problem += suggest_name(name, present)
        raise DataError(problem, lists.origin, code="missing-column")
    values = read_extra(lists, name, truths=True)
    if values is not None and not (np.abs(values) > LARGEST).any():
        return values
    column, cells = lists.extras[name], name in lists.cells
    numbers = [read_number(value, cells=cells, truths=True) for value in column]
    wrong = [k for k, number in enumerate(numbers) if number is None or abs(number) > LARGEST]
    if not wrong:  # all are missing
        return np.full(len(column), np.nan)
    value: Any = column[wrong[0]]
    value = value.item() if isinstance(value, np.generic) else value
    what = f"{quote(value)}, not a number: write numbers"
    if (number := numbers[wrong[0]]) is not None:
        what = describe_number(number)
    where = describe_candidate(lists, wrong[0])
    raise DataError(f"{name} of {where} is {what}", lists.origin, code="bad-number")


def describe_numbers(lists: NBest) -> str:
    """Return the columns of numbers of lists with their ranges, for messages.

    >>> from bpa_ppl import from_lists
    >>> describe_numbers(from_lists([["a", "b"]], [[[1.0], [0.5]]], ["LM0"]))
    'the columns of numbers are LM0 (0.5 to 1)'
    """
    features = dict(zip(lists.feature_names, lists.features.T, strict=True))
    return describe_columns(
        {**features, **{name: read_extra(lists, name) for name in lists.extras}}
    )


def describe_outliers(lists: NBest, name: str) -> str:
    """Return which values decide the spread of a column within lists, else an empty text.

    They are more than ten times as far from the median of their list as nine tenths of the values
    that differ from it, and the spread without them is less than a third.

    Args:
        lists: the lists.
        name: of a feature or an extra; missing values do not count.

    >>> from bpa_ppl import from_lists
    >>> table = np.random.default_rng(0).normal(size=(40, 3, 1))
    >>> describe_outliers(from_lists([["a", "b", "c"]] * 40, table.tolist(), ["qe"]), "qe")
    ''
    >>> table[17, 2] = 10_000
    >>> describe_outliers(from_lists([["a", "b", "c"]] * 40, table.tolist(), ["qe"]), "qe")
    'the spread of qe within lists is 745, but 0.763 without 1 value (10000 of candidates[2] of ...
    """
    values = read_column(lists, name)
    judged, rows = select_marked(lists, np.isfinite(values))
    values = values[rows]
    distance = measure_distances(values, judged.sizes)
    differing = distance[distance > 0]
    if not len(differing):
        return ""
    is_near = distance <= _FAR * np.quantile(differing, _NEAR, method="inverted_cdf")
    if is_near.all():
        return ""
    # The median of a list is near, so that none becomes empty.
    left = np.add.reduceat(is_near.astype(np.int64), judged.offsets[:-1])
    columns = (values, judged.sizes), (values[is_near], left)
    spread, rest = (float(np.sqrt(np.mean(centre(*column) ** 2))) for column in columns)
    if spread <= _INFLATED * rest:
        return ""
    number, farthest = int(np.count_nonzero(~is_near)), int(np.argmax(distance))
    example = f"{values[farthest]:g} of {describe_candidate(lists, int(rows[farthest]))}"
    example = f"({example})" if number == 1 else f"such as {example}"
    return (
        f"the spread of {name} within lists is {spread:.3g}, but {rest:.3g} without "
        f"{format_count(number, 'value')} {example}: correct what is wrong there, or leave out "
        "these candidates"
    )


def measure_distances(values: Float64, sizes: Int64) -> Float64:
    """Return the distance of each value from the (lower) median of its list.

    >>> measure_distances(np.array([1.0, 4.0, 2.0, 7.0]), np.array([3, 1])).tolist()
    [1.0, 2.0, 0.0, 0.0]
    """
    result, starts = np.empty_like(values), np.cumsum(sizes) - sizes
    for size in np.unique(sizes).tolist():
        rows = starts[sizes == size, None] + np.arange(size)
        middle = (size - 1) // 2
        medians = np.partition(values[rows], middle, axis=1)[:, middle, None]
        result[rows] = np.abs(values[rows] - medians)
    return result


def select_marked(lists: NBest, marked: npt.NDArray[np.bool_]) -> tuple[NBest, Int64]:
    """Return the lists of the marked candidates; those with fewer than two are left out.

    Args:
        lists: the lists.
        marked: (candidates,) which of them are judged.

    Returns:
        The lists, with all features and other columns, and (candidates,) the rows of their
        candidates in `lists`.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b", "c"], ["d", "e"]], [[[0]] * 3, [[0]] * 2], ["LM0"])
    >>> kept, rows = select_marked(lists, np.array([True, False, True, True, False]))
    >>> kept.texts(0), rows.tolist()
    (['a', 'c'], [0, 2])
    """
    sizes = np.diff(np.concatenate([[0], np.cumsum(marked)])[lists.offsets])
    several = sizes > 1
    rows = np.flatnonzero(marked & np.repeat(several, lists.sizes))
    if len(rows) == len(lists.features):
        return lists, rows
    return lists.regroup(np.flatnonzero(several), rows, sizes[several]), rows


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


def headroom_won(lists: NBest, choices: Int64, column: str) -> float:
    """Return the share of the headroom that choices win.

    It is (mean of the chosen candidates − mean of all) / (mean of the best − mean of all), averaged
    over the lists before the division.

    Raises:
        DataError: if a candidate has no number, or all candidates of each list are equal.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> lists = lists.with_extras(quality=[3.0, 5.0])
    >>> [headroom_won(lists, np.array([choice]), "quality") for choice in (1, 0)]
    [1.0, -1.0]
    """
    values = read_column(lists, column)
    if not np.isfinite(values).all():
        problem = f"{column} is missing for some candidates: give lists that are fully judged"
        raise DataError(problem, lists.origin, code="no-data")
    starts, values = lists.offsets[:-1], subtract_first(values, lists.sizes)
    average = (np.add.reduceat(values, starts) / lists.sizes).mean()
    best = np.maximum.reduceat(values, starts).mean()
    if best <= average:
        raise DataError(f"all candidates have the same {column}", lists.origin, code="no-data")
    return float((values[starts + choices].mean() - average) / (best - average))


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
