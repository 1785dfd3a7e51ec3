"""Column: a score that the lists bring along, such as COMET or a human judgement, as a metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl.columns import as_numbers, is_missing
from bpa_ppl.errors import DataError, UsageError, quoted
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.quality.base import Averaged, Lists, Metric, References
from bpa_ppl.quality.scoreboard import judged_key
from bpa_ppl.registry import METRICS


class Column(Averaged, frozen=True):
    """A column of the lists: the gain of a hypothesis is its value there, NaN where it is missing.

    The corpus score of a choice is the mean over the sentences whose choice has a value; the detail
    `NAME.judged` of the score is their number.

    Args:
        column: the name of a feature, or of an extra of numbers.
        negative: whether less is better, as of TER.

    >>> Column(column="comet").key, Column(column="ter", negative=True).key
    ('comet', '-ter')
    """

    column: str
    negative: bool = False

    needs = frozenset({"columns"})
    kept = False

    @property
    def key(self) -> str:  # type: ignore[override]
        """The name by which the column is asked for."""
        return f"-{self.column}" if self.negative else self.column

    @property
    def lower_is_better(self) -> bool:  # type: ignore[override]
        """Whether less is better."""
        return self.negative

    @property
    def title(self) -> str:
        """The name of the column."""
        return self.column

    @property
    def columns(self) -> tuple[str, ...]:
        """The column."""
        return (self.column,)

    def signature(self, references: References, *, sentence: bool = False) -> str:
        """Return that it is a column of the lists, and which."""
        return f"column:{self.column}|better:{'lower' if self.negative else 'higher'}"

    def sentences(
        self,
        lists: Lists,
        references: References,
        *,
        only_best: bool,
        columns: Mapping[str, npt.ArrayLike] | None = None,
    ) -> Float64:
        """Return the values of the column, one list after the other; NaN where one is missing."""
        return np.asarray((columns or {})[self.column], np.float64)

    def counts(self, lists: Lists, references: References, **more: Any) -> Float64:
        """Return (hypotheses, 2) the score and 1, and 0 and 0 where it is missing."""
        scores = self.sentences(lists, references, only_best=False, **more)
        there = np.isfinite(scores)
        return np.column_stack([np.where(there, scores, 0.0), there])

    def value(self, sums: Float64) -> Float64:
        """Return means over what is there, (…, 2) ↦ (…); NaN of nothing."""
        mean = sums[..., 0] / np.maximum(sums[..., 1], 1)
        return np.asarray(np.where(sums[..., 1] > 0, mean, np.nan))

    def details_of(self, sums: Float64) -> dict[str, float]:
        """Return how many of the choices have a value."""
        return {judged_key(self.column): float(sums[1])}


def named_column(name: str, nbest: NBest | None = None) -> Metric:
    """Return the metric of a column by its name, or by `-NAME` where less is better.

    Args:
        name: of the column.
        nbest: the lists that have it; None has no columns.

    Raises:
        UsageError: if they do not; the message names metrics and columns.

    >>> lists = NBest.from_lists([["a", "b"]], [[[0.5], [0.7]]], ["comet"])
    >>> named_column("-comet", lists)
    Column(column='comet', negative=True)
    """
    there = () if nbest is None else numeric_columns(nbest)
    if name in there:
        return Column(column=name)
    bare = name.removeprefix("-")
    if name.startswith("-") and bare in there:
        return Column(column=bare, negative=True)
    if nbest is not None and any(isinstance(v, int | float) for v in nbest.extras.get(bare, ())):
        column_of(nbest, bare)  # raises an error that names the value that is no number
    known = ", ".join(metric for metric in METRICS if metric != "column")
    columns = f", or a column of the lists: {', '.join(there)}" if there else ""
    raise UsageError(f"unknown metric {name!r}: choose one of {known}{columns}")


def by_name(name: str) -> Metric:
    """Return a metric by its name, where no lists are at hand: what is not registered is a column.

    >>> by_name("-ter"), by_name("ter").key
    (Column(column='ter', negative=True), 'ter')
    """
    if name in METRICS:
        return METRICS.resolve(name)
    return Column(column=name.removeprefix("-"), negative=name.startswith("-"))


def numeric_columns(nbest: NBest) -> tuple[str, ...]:
    """Return the names of the features, then of the extras of numbers, also of partly missing ones.

    >>> lists = NBest.from_lists([["a", "b"]], [[[1.0], [2.0]]], ["LM0"])
    >>> numeric_columns(lists.with_extras(system=["A", "B"], mqm=np.array([-5.0, np.nan])))
    ('LM0', 'mqm')
    """
    extras = (name for name, values in nbest.extras.items() if as_numbers(values) is not None)
    return (*nbest.feature_names, *extras)


def column_of(nbest: NBest, name: str) -> Float64:
    """Return the values of a feature or an extra, (hypotheses,); NaN where one is missing.

    Raises:
        DataError: if there is no such column, or one of its values is neither a finite number nor
            missing (NaN, None or an empty text).

    >>> lists = NBest.from_lists([["a", "b"]], [[[1.0], [0.5]]], ["LM0"])
    >>> column_of(lists, "LM0").tolist()
    [1.0, 0.5]
    >>> column_of(lists.with_extras(mqm=[-5, None]), "mqm").tolist()
    [-5.0, nan]
    """
    if name in nbest.feature_names:
        return nbest.features[:, nbest.feature_names.index(name)].astype(np.float64)
    if name not in nbest.extras:
        there = ", ".join(numeric_columns(nbest)) or "none"
        raise DataError(
            f"the lists have no column of numbers {name}: they have {there}", nbest.origin
        )
    column = nbest.extras[name]
    values = as_numbers(column)
    if values is not None:
        wrong = np.flatnonzero(np.isinf(values)).tolist()
    else:
        values = np.full(len(nbest.features), np.nan)
        wrong = [
            row
            for row, value in enumerate(column)
            if not is_missing(value) and as_numbers((value,)) is None
        ]
    if wrong:
        sentence = int(np.searchsorted(nbest.offsets, wrong[0], side="right")) - 1
        value: Any = column[wrong[0]]
        value = value.item() if isinstance(value, np.generic) else value
        raise DataError(
            f"{name} of hypothesis {wrong[0] - nbest.offsets[sentence]} of sentence "
            f"{nbest.sentence_ids[sentence]} is {quoted(value)}, not a finite number: "
            "correct it, or remove it where there is no judgement",
            nbest.origin,
        )
    return values


def judged(nbest: NBest, name: str) -> npt.NDArray[np.bool_]:
    """Return which hypotheses have a value in a column of numbers, (hypotheses,) bool.

    Args:
        nbest: the lists.
        name: of a feature, or of an extra of numbers.

    Raises:
        DataError: as `column_of`.

    >>> lists = NBest.from_lists([["a", "b"]], [[[1.0], [0.5]]], ["LM0"])
    >>> judged(lists.with_extras(mqm=[-5, None]), "mqm").tolist()
    [True, False]
    """
    return np.isfinite(column_of(nbest, name))


def only_judged(nbest: NBest, name: str) -> tuple[NBest, Int64]:
    """Return the lists of the hypotheses that have a value in a column of numbers.

    Lists with fewer than two of them are left out: there is nothing to choose.

    Args:
        nbest: the lists.
        name: of a feature, or of an extra of numbers.

    Returns:
        the lists, with all features and other columns, and (hypotheses,) the row of each of their
        hypotheses in the lists given.

    Raises:
        DataError: as `column_of`.

    >>> lists = NBest.from_lists([["a", "b", "c"], ["d", "e"]], [[[0]] * 3, [[0]] * 2], ["LM0"])
    >>> kept, rows = only_judged(lists.with_extras(mqm=[-5, None, 0, -1, None]), "mqm")
    >>> kept.texts(0), kept.sentence_ids.tolist(), rows.tolist()
    (['a', 'c'], [0], [0, 2])
    """
    return with_judged(nbest, judged(nbest, name))


def with_judged(nbest: NBest, marked: npt.NDArray[np.bool_]) -> tuple[NBest, Int64]:
    """Return the lists of the marked hypotheses, where a list has two or more; see `only_judged`.

    Args:
        nbest: the lists.
        marked: (hypotheses,) which of them are judged.

    >>> lists = NBest.from_lists([["a", "b", "c"], ["d", "e"]], [[[0]] * 3, [[0]] * 2], ["LM0"])
    >>> kept, rows = with_judged(lists, np.array([True, False, True, True, False]))
    >>> kept.texts(0), rows.tolist()
    (['a', 'c'], [0, 2])
    """
    sizes = np.diff(np.concatenate([[0], np.cumsum(marked)])[nbest.offsets])
    enough = sizes > 1
    rows = np.flatnonzero(marked & np.repeat(enough, nbest.sizes))
    if len(rows) == len(nbest.features):
        return nbest, rows
    return nbest.regroup(np.flatnonzero(enough), rows, sizes[enough]), rows
