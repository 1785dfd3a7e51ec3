"""Means over several judgements of a candidate: in rows of a table, or in JSON arrays.

id,text,worker,rating               {"id": 0, "text": "a cat", "ratings": [4, 5]}
0,a cat,w1,4                        {"id": 0, "text": "a cat", "by": [{"rating": 4}, …]}
0,a cat,w2,5
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64, as_numbers, is_number, to_float
from bpa_ppl.errors import DataError, list_names, quote
from bpa_ppl.formats.schema import Rows
from bpa_ppl.formats.values import as_verdicts, is_finite_number, parse_units
from bpa_ppl.nbest import NBest

#: Columns that distinguish candidates of one text.
_ORIGINS = ("system", "model")
# Of the tables of MQM, in which each row has the text with one of its errors.
_MARKED = """texts mark errors by <v>…</v>, so the rows of a candidate differ: remove the marks
(`sed -E 's,</?v>,,g'`), and give each candidate one row, such as their sum""".replace("\n", " ")
_NUMBER = r"\s*-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?\s*"
_NUMBERS = re.compile(rf"\s*\[(\s*|{_NUMBER}(,{_NUMBER})*)\]\s*")
#: In the names of columns of raters.
_RATER = re.compile(r"(?i)rater|annotator|worker|assessor|evaluator|participant")
#: The name of a column of one of several raters: what is before and after the number or letter.
_ONE_RATER = re.compile(
    rf"(?i)(.*(?:{_RATER.pattern[4:]}|expert|human|rating)s?(?:[-_. ]?(?=[0-9])|[-_. ]))"
    r"(?:[0-9]+|[a-z])((?:[-_. ].*)?)"
)


def with_means(rows: Rows, name: str, error: Callable[..., DataError]) -> Rows | None:
    """Return rows with means over a column; None if it has neither raters nor lists of numbers.

    If it has lists, their numbers are averaged, as NAME.mean, or field by field those of objects in
    them, as NAME.FIELD. Otherwise rows that agree in id, text, system and model become one, with
    the mean of each column of numbers, or of true as 1 and false as 0; the column then has a list
    of what differed between them. A pattern such as `rater_*` names columns, one for each rater,
    which become lists of numbers in one column `rater`.

    Args:
        rows: all rows of some lists.
        name: of the column.
        error: makes an error of a message and a line.

    Raises:
        DataError: if one candidate has two rows with the same value of the column.
    """
    if "*" in name:
        rows, name = _join_columns(rows, name)
    raters: Any = parse_lists(rows.extras.get(name))
    if raters is None:
        raters = _to_numbers(rows.numbers.get(name, np.empty(0)))
    if any(isinstance(value, list | tuple) for value in raters):
        means = average_lists(name, raters)
        return rows._replace(numbers={**rows.numbers, **means}) if means else None
    odd = any(isinstance(value, float) and not value.is_integer() for value in raters)
    odd |= any(isinstance(value, str) and value[:1] in ("[", "{") for value in raters)
    if odd or all(value is None for value in raters):
        return None
    places = _group_rows(rows, name)
    columns = _find_differences(rows, places)
    if name in rows.numbers and [*columns] == [name]:
        return None  # the judgements themselves
    columns[name] = raters
    for of in places:
        names = [raters[row] for row in of]
        for row, rater in zip(of, names, strict=True):
            if rater in names[: of.index(row)]:
                problem = f"a second row of {name} {quote(rater)} for one candidate: give it one "
                raise error(f"{problem}row, such as their sum or mean", rows.lines[row])
    kept = rows.select(np.array([of[0] for of in places]))
    numbers = {column: of for column, of in kept.numbers.items() if column != name}
    for column in filter(name.__ne__, columns):
        values = _read_texts(columns[column])
        means = average_lists(column, [[values[row] for row in of] for of in places])
        if f"{column}.mean" in means:
            numbers[column] = means[f"{column}.mean"]
    extras = {column: of for column, of in kept.extras.items() if column not in columns}
    extras[name] = [[{n: by[row] for n, by in columns.items()} for row in of] for of in places]
    return kept._replace(numbers=numbers, extras=extras)


def _join_columns(rows: Rows, pattern: str) -> tuple[Rows, str]:
    """Return rows with the columns that a pattern names in one column of lists, and its name."""
    columns = {name: _to_numbers(of) for name, of in rows.numbers.items()}
    columns |= {name: _read_texts(of) for name, of in rows.extras.items()}
    matching = {name: of for name, of in columns.items() if fnmatchcase(name, pattern)}
    matching = {n: of for n, of in matching.items() if not any(of) or as_numbers(of) is not None}
    numbers = {name: of for name, of in rows.numbers.items() if name not in matching}
    extras = {name: of for name, of in rows.extras.items() if name not in matching}
    lists = list(map(list, zip(*matching.values(), strict=True)))
    name = re.sub(r"[-_. ]*\*", "", pattern).strip("-_. ")
    name = pattern if name in ("", *numbers, *extras) else name
    return rows._replace(numbers=numbers, extras={**extras, name: lists}), name


def _read_texts(values: Any) -> Any:
    """Return verdicts, and numbers with a unit, as numbers; and any other column as it is."""
    numbers = parse_units(values) if (verdicts := as_verdicts(values)) is None else verdicts
    return values if numbers is None else _to_numbers(numbers)


def parse_lists(values: Any) -> Any:
    """Return a column of texts that are lists of numbers, as tables have them, as lists.

    Any other column is returned as it is.

    >>> parse_lists(["[4, 5]", ""]), parse_lists(["[1]", "a"])
    ([[4, 5], ''], ['[1]', 'a'])
    """
    texts = [] if values is None else [of for of in values if isinstance(of, str) and of]
    if not texts or not all(map(_NUMBERS.fullmatch, texts)):
        return values
    return [json.loads(of) if isinstance(of, str) and of else of for of in values]


def average_lists(name: str, values: Iterable[Any]) -> dict[str, Float64]:
    """Return the means of the numbers in lists, or in each field of the objects in them.

    >>> average_lists("by", [[{"fluency": 4}, {"fluency": 5}], None])
    {'by.fluency': array([4.5, nan])}
    """
    means: dict[str, Float64] = {}
    values = list(values)
    for row, value in enumerate(values):
        numbers: dict[str, list[float]] = {}
        for entry in value if isinstance(value, list | tuple) else ():
            for field, one in (entry if isinstance(entry, dict) else {"mean": entry}).items():
                if isinstance(one, bool) or is_finite_number(one):
                    numbers.setdefault(f"{name}.{field}", []).append(to_float(one))
        for column, of in numbers.items():
            empty = np.full(len(values), np.nan)
            means.setdefault(column, empty)[row] = sum(of) / len(of)
    return means


def unpack_lists(name: str, values: Sequence[Any]) -> Float64 | None:
    """Return what is in lists of one number, such as [0.5]; None for any other column.

    >>> unpack_lists("rm", ("[0.5]", None)), unpack_lists("rm", ([0.5], [1, 2]))
    (array([0.5, nan]), None)
    """
    values = parse_lists(values)
    lists = (of for of in values if of is not None and of != "")
    if all(isinstance(of, list | tuple) and len(of) == 1 and is_number(of[0]) for of in lists):
        return average_lists(name, values).get(f"{name}.mean")
    return None


def describe_raters(names: Iterable[str], origin: str) -> str:
    """Return a note on columns that seem to be of several raters, or an empty text.

    Args:
        names: of columns of numbers.
        origin: where they are from.

    >>> describe_raters(["lm", "rater_1", "rater_2"], "dev.csv")
    'rater_1, rater_2 seem to be of several raters: mean_over=rater_* in the format reads ...'
    """
    patterns: dict[str, list[str]] = {}
    for name in names:
        if match := _ONE_RATER.fullmatch(name):
            patterns.setdefault("*".join(match.groups()), []).append(name)
    patterns = {pattern: of for pattern, of in patterns.items() if len(of) > 1}
    if not patterns:
        return ""
    remedy = "replace them by their mean"
    if origin != NBest.origin:
        remedy = f"mean_over={','.join(patterns)} in the format reads their mean, for the gain"
    columns = [name for names in patterns.values() for name in names]
    return f"{list_names(columns)} seem to be of several raters: {remedy}"


def describe_repeats(rows: Rows, origin: str) -> str:
    """Return a note on rows that seem to be several judgements of one candidate, or an empty text.

    They are where the same names, as of raters or of errors, are in rows of several candidates.

    Args:
        rows: all rows of some lists.
        origin: where they are from.
    """
    count, texts = len(rows.ids), len(rows.strings)
    first = rows.strings[:100] if rows.extras else ()
    if 10 * sum("<v>" in text for text in first) > len(first):
        return _MARKED
    if texts == count:
        return ""
    keys = rows.ids * texts + rows.string_index
    order = np.argsort(keys, kind="stable")
    same = np.append(np.diff(keys[order]) == 0, False)
    least = count / 2 if not any(map(_RATER.search, (*rows.extras, *rows.numbers))) else 1
    if np.count_nonzero(same | np.roll(same, 1)) < least or not _may_have_raters(
        rows, order[:-1][same[:-1]], order[1:][same[:-1]]
    ):
        return ""
    places = _group_rows(rows)
    repeated = sum(len(of) for of in places if len(of) > 1)
    columns, raters, names = _find_differences(rows, places), [], []
    for name, values in columns.items():
        if not all(isinstance(v, str) or (isinstance(v, float) and v.is_integer()) for v in values):
            continue
        of_candidates = {(n, values[row]) for n, of in enumerate(places) for row in of}
        if len(of_candidates) > len(set(zip(rows.ids.tolist(), values, strict=True))):
            raters += [name] if len(of_candidates) == count else []
            names += [name] if name in rows.extras else []
    if repeated < least or not (raters or names):
        return ""
    remedy = "give each candidate one row, such as their sum or mean"
    likely = list(filter(_RATER.search, raters)) or [n for n in raters if n in names] or raters
    if raters and origin != NBest.origin:
        rater = likely[0] if len(likely) == 1 else "NAME"
        remedy = f"name that of the raters in the format, mean_over={rater}, which reads means"
    return (
        f"{repeated} of {count} rows repeat the text of another row of their list, and differ in "
        f"{list_names(columns)}: if these are columns of judgements of one candidate, {remedy}"
    )


def _may_have_raters(rows: Rows, first: Int64, second: Int64) -> bool:
    """Return whether a column may name raters: of texts, or whole numbers that differ.

    Args:
        rows: all rows.
        first: rows that are followed by another one of the same candidate.
        second: the following ones.
    """
    others = (of for name, of in rows.extras.items() if name not in _ORIGINS)
    if any(isinstance(value, str) for of in others for value in of):
        return True
    return any(
        not (of[first] == of[second]).any() and (of == np.floor(of)).all()
        for of in rows.numbers.values()
    )


def _group_rows(rows: Rows, raters: str = "") -> list[list[int]]:
    """Return the rows of each candidate, in the order of their first ones."""
    origins = [rows.extras[n] for n in _ORIGINS if n in rows.extras and n != raters]
    places: dict[Any, list[int]] = {}
    keys = zip(rows.ids.tolist(), rows.string_index.tolist(), *origins, strict=True)
    for row, key in enumerate(keys):
        places.setdefault(str(key), []).append(row)
    return list(places.values())


def _find_differences(rows: Rows, places: Sequence[Sequence[int]]) -> dict[str, Sequence[Any]]:
    """Return the columns in which rows of one candidate differ."""
    numbers = {name: _to_numbers(numbers) for name, numbers in rows.numbers.items()}
    columns: dict[str, Any] = {**numbers, **rows.extras}
    return {
        name: values
        for name, values in columns.items()
        if any(values[row] != values[of[0]] for of in places for row in of[1:])
    }


def _to_numbers(numbers: Float64) -> list[float | None]:
    """Return numbers as Python has them, None where one is missing."""
    return [None if number != number else number for number in numbers.tolist()]
