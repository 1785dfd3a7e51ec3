"""Columns of candidates: reading and selecting them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import (
    FINITE,
    LARGEST,
    Float64,
    Int64,
    as_numbers,
    is_missing,
    read_number,
)
from bpa_ppl._runtime.values import RECIPE_PAGE
from bpa_ppl.errors import DataError, bad_value, list_names, suggest_name
from bpa_ppl.lists.nbest import NBest, describe_candidate, find_feature

_LISTED = 20  # columns in a message


def find_names(lists: NBest) -> str | None:
    """Return the column that the texts repeat, so that they are names and no answers; or None.

    Names occur in several lists: at most half as many are different as there are candidates.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["A", "B"]] * 2, [[[0.5], [1.5]]] * 2, ["lm"])
    >>> find_names(lists.with_extras(system=["A", "B", "A", "B"]))
    'system'
    """
    texts = [lists.text(row) for row in range(len(lists.features))]
    if not texts or 2 * len(set(texts)) > len(texts):
        return None
    return next((name for name, values in lists.extras.items() if list(values) == texts), None)


def require_answers(lists: NBest, source: str) -> None:
    """Refuse to compute features of texts that are names, as a source would.

    Raises:
        DataError: if the texts are names.
    """
    if (name := find_names(lists)) is not None:
        problem = f"the texts are the names in the column {name}, of which {source} says nothing: "
        problem += "name that column among the categorical ones (--categorical)"
        raise DataError(problem, lists.origin, parameter="add", code="mismatch")


def describe_singles(lists: NBest) -> str:
    """Return what is wrong if every list has one candidate; an empty text if one has several.

    Columns that repeat may name the lists, and others may be texts of systems.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a"], ["b"], ["c"]], [[[]]] * 3, [])
    >>> describe_singles(lists.with_extras(doc=["x", "x", "y"]))
    'every list has one candidate: give each candidate a row, and those of one sentence the ...
    """
    if not len(lists) or lists.sizes.max() > 1:
        return ""
    columns = {**lists.extras, **lists.sentence_extras, "source": lists.sources or ()}
    texts = {
        name: len(set(values))
        for name, values in columns.items()
        if len(values)
        and all(isinstance(value, str) for value in values)
        and (name not in lists.extras or read_extra(lists, name) is None)
    }
    problem = "every list has one candidate: give each candidate a row, and those of one sentence "
    problem += "the same id"
    repeated = [f"{n} ({of} different)" for n, of in texts.items() if 1 < of < len(lists)]
    if repeated:
        problem += f" (the columns of texts that repeat are {list_names(repeated)})"
    elif any(name in lists.extras for name in texts):
        problem += f", as {RECIPE_PAGE} shows for a column for each system"
    return problem


def is_absent(value: Any) -> bool:
    """Return whether a value is missing, or NaN.

    >>> is_absent(None), is_absent(np.nan), is_absent(0)
    (True, True, False)
    """
    return is_missing(value) or (isinstance(value, float) and value != value)


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
        message = f"no column {name}{suggest_name(name, present)}: {describe_numbers(lists)}"
        raise DataError(message, lists.origin, code="missing-column")
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
    where = f"{name} of {describe_candidate(lists, wrong[0])}"
    if (number := numbers[wrong[0]]) is not None:
        raise bad_value(
            where, number, FINITE, lists.origin, remedy="correct it, or divide by a constant"
        )
    raise bad_value(where, value, "a number", lists.origin, remedy="write numbers")


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


def describe_columns(columns: Mapping[str, Float64 | None]) -> str:
    """Return the columns of numbers with their ranges, for messages.

    Args:
        columns: the numbers of each, by name; None for a column of other values.

    >>> describe_columns({"lm": np.array([-1.5, -2]), "by": None})
    'the columns of numbers are lm (-2 to -1.5)'
    """
    ranges = [
        f"{name} ({np.nanmin(numbers):.4g} to {np.nanmax(numbers):.4g})"
        for name, numbers in columns.items()
        if numbers is not None and not np.isnan(numbers).all()
    ]
    if not ranges:
        return f"there are no columns of numbers, only {list_names(columns) or 'texts'}"
    more = f" and {len(ranges) - _LISTED} more" if len(ranges) > _LISTED else ""
    return f"the columns of numbers are {', '.join(ranges[:_LISTED])}{more}"


def select_marked(lists: NBest, marked: npt.NDArray[np.bool_]) -> tuple[NBest, Int64]:
    """Return the lists of the marked candidates, and the rows of these, (candidates,).

    Lists with fewer than two are left out.

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
