"""Columns of a ragged table: arrays, or tuples of any objects."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from itertools import chain, count
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, NoSuchSentence, UsageError, listed, quoted

K = TypeVar("K", bound=Hashable)
#: An array whose first dimension is the rows, or a tuple of any objects, one per row.
Column: TypeAlias = npt.NDArray[Any] | tuple[Any, ...]
#: References: a text, or several, for each sentence, or by id for some of them.
AnyReferences: TypeAlias = Iterable[str | Sequence[str]] | Mapping[Any, str | Sequence[str]]
#: Which rows: a slice gives a view of an array, positions a copy.
Which: TypeAlias = slice | npt.NDArray[np.int64]
_INTEGER = re.compile(r"(-?[0-9]{1,18})(?:\.0*)?")


def frozen(
    kind: type[np.generic] | None, name: str = "values"
) -> Callable[[npt.ArrayLike], npt.NDArray[Any]]:
    """Return a function that makes arrays of one type, or any, that cannot be written to.

    The argument is not changed: the result is a view of it where it has that type. The function
    raises a UsageError with the name of the parameter for values that have no such type.

    >>> frozen(np.float32)([1, 2]).flags.writeable
    False
    """

    def convert(values: npt.ArrayLike) -> npt.NDArray[Any]:
        view = to_array(values, kind, name).view()
        view.flags.writeable = False
        return view

    return convert


def texts(values: Any, name: str = "sources", each: str = "sentence") -> tuple[str, ...]:
    """Return an argument that has one text for each sentence, or for each hypothesis.

    Raises:
        UsageError: if the values are anything else, such as a single text.

    >>> texts(["un chat"])
    ('un chat',)
    """
    rule = f"{name} must be one text for each {each}"
    kept = members(values, name, rule)
    if not all(isinstance(text, str) for text in kept):
        raise _wrong_type(rule, values, name)
    return tuple(kept)


def references(values: Any) -> tuple[tuple[str, ...], ...]:
    """Return a tuple of references for each sentence; a single text is one reference.

    Raises:
        UsageError: if the values are anything else.

    >>> references(["the cat", ["a dog", "one dog"]])
    (('the cat',), ('a dog', 'one dog'))
    """
    rule = "references must be one text, or a tuple of texts, for each sentence"
    entries = members(values, "references", rule)
    tuples = [(entry,) if isinstance(entry, str) else entry for entry in entries]
    for entry in tuples:
        if not isinstance(entry, tuple | list) or not all(isinstance(text, str) for text in entry):
            raise _wrong_type(rule, entry, "references")
    return tuple(map(tuple, tuples))


def references_by_id(values: Mapping[Any, Any]) -> dict[int | str, tuple[str, ...]]:
    """Return the references of some sentences by the keys of their ids.

    Raises:
        UsageError: if a key is no id, two are one number written in two ways, or a value is
            neither a text nor several.

    >>> references_by_id({"7": "the cat", "doc-1": ["a dog", "one dog"]})
    {7: ('the cat',), 'doc-1': ('a dog', 'one dog')}
    """
    found: dict[int | str, tuple[str, ...]] = {}
    forms: dict[Any, str] = {}
    for identifier, entry in values.items():
        if not isinstance(key := id_key(identifier), int | str):
            rule = "the id of a reference must be an integer or a text"
            raise _wrong_type(rule, identifier, "references")
        if other := other_form(forms, key, identifier):
            problem = f"two references: {one_number(identifier, other)}"
            raise UsageError(problem, parameter="references", code="duplicate")
        found[key] = (*found.get(key, ()), *references([entry])[0])
    return found


def id_key(value: Any) -> Any:
    """Return the id of a sentence; an integer is the same id however it is written.

    >>> id_key("07"), id_key(2.0), id_key("2.0"), id_key("doc-7")
    (7, 2, 2, 'doc-7')
    """
    if isinstance(value, str):
        number = _INTEGER.fullmatch(value)
        return value if number is None else int(number[1])
    whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer())
    return int(value) if whole else value


def other_form(forms: dict[Any, str], key: Any, value: Any) -> str | None:
    """Return another text of the same integer among the ids before, and enter that of this one.

    Such ids, `0` and `00`, are those of two sentences, or a mistake, and are never joined.

    Args:
        forms: the texts of ids by key; entered here.
        key: of the id, as `id_key` returns it.
        value: the id.

    >>> forms = {}
    >>> [other_form(forms, id_key(value), value) for value in ("7", "07", 7, "doc-7")]
    [None, '7', None, None]
    """
    text = value if isinstance(value, str) else str(key)
    before = forms.setdefault(key, text)
    return None if before == text else before


def one_number(value: Any, other: str) -> str:
    """Return the end of a message about two ids that `other_form` has found.

    >>> one_number("07", "7")
    "the ids '07' and '7' are the same number: write an id in one way, or rename one of two"
    """
    problem = f"the ids {quoted(str(value))} and {quoted(other)} are the same number"
    return f"{problem}: write an id in one way, or rename one of two"


def no_common_id(origin: str | None, references: str, by_id: Mapping[Any, Any]) -> DataError:
    """Return the error of lists of which none has a reference.

    >>> print(no_common_id("dev.jsonl", "dev.tsv", {"doc-1": ("a",)}))
    dev.jsonl: none of its ids is in dev.tsv, which has 'doc-1': give the references of the same ...
    """
    has = f", which has {quoted(next(iter(by_id)))}" if by_id else ""
    problem = f"none of its ids is in {references}{has}: give the references of the same ids"
    problem += ", or write the tabs of plain text as spaces"
    return DataError(problem, origin, parameter="references", code="mismatch")


def natural_order(text: str) -> list[Any]:
    """Return a key that sorts texts by the numbers in them.

    >>> sorted(["d10", "d2", "d1"], key=natural_order)
    ['d1', 'd2', 'd10']
    """
    parts = re.split(r"0*([0-9]+)", text)
    # Longer numbers are larger. Python does not convert thousands of digits.
    return [(len(part), part) if place % 2 else part for place, part in enumerate(parts)]


def named(columns: Any) -> Mapping[str, Column]:
    """Return read-only columns by name: arrays remain arrays, all else becomes a tuple.

    Raises:
        UsageError: if they are not given by name, or one is not a sequence.

    >>> dict(named({"domain": ["news", "web"]}))
    {'domain': ('news', 'web')}
    """
    if not isinstance(columns, Mapping):
        raise _wrong_type("columns must be given by name, as {name: values}", columns, None)
    return MappingProxyType({name: _column(name, values) for name, values in columns.items()})


def _column(name: str, values: Any) -> Column:
    if not isinstance(name, str):
        raise _wrong_type("the name of a column must be a text", name, None)
    if hasattr(values, "__array__") and np.ndim(values):
        return frozen(None)(values)
    return tuple(members(values, name, f"the column {name} must be a sequence of values"))


def take(part: Any, which: Which) -> Any:
    """Return some rows of a column, or of each of several; None of none.

    >>> take(("a", "b", "c"), np.array([2, 0])), take({"n": np.arange(3)}, slice(1, 3))
    (('c', 'a'), {'n': array([1, 2])})
    """
    if part is None:
        return None
    if isinstance(part, Mapping):
        return {name: take(column, which) for name, column in part.items()}
    if isinstance(which, slice) or isinstance(part, np.ndarray):
        return part[which]
    return tuple(map(part.__getitem__, which.tolist()))


def joined(
    name: str,
    parts: Sequence[Any],
    origins: Sequence[str],
    sizes: Sequence[int] | None = None,
) -> Any:
    """Return columns of several tables, one after the other.

    Args:
        name: of the column, for messages.
        parts: one per table: a column, several of them by name, or None.
        origins: where each table is from, for messages.
        sizes: the number of values of each table, where a column that it lacks is missing: NaN
            among numbers, an empty tuple among tuples, else None. By default that is an error.

    Raises:
        DataError: if a table lacks a column that another one has, or shapes differ.

    >>> joined("domain", [("news",), ("web", "web")], ["a", "b"])
    ('news', 'web', 'web')
    >>> joined("lm", [np.array([0.5]), None], ["a", "b"], [1, 2])
    array([0.5, nan, nan])
    """
    if isinstance(parts[0], Mapping):
        names = dict.fromkeys(chain.from_iterable(parts))
        columns = {n: [group.get(n) for group in parts] for n in names}
        return {n: joined(n, column, origins, sizes) for n, column in columns.items()}
    present = [part for part in parts if part is not None]
    if not present:
        return None
    if len(present) < len(parts) and sizes is not None:
        missing = _missing_like(present[0])
        parts = [
            missing(size) if part is None else part for part, size in zip(parts, sizes, strict=True)
        ]
    elif len(present) < len(parts):
        lacking, having = (
            next(o for o, part in zip(origins, parts, strict=True) if (part is None) is absent)
            for absent in (True, False)
        )
        problem = f"no {name}, which {having} has: add it, use without({name!r}), or concatenate "
        raise DataError(f"{problem}with fill_missing=True", lacking, code="missing-column")
    arrays = [column for column in parts if isinstance(column, np.ndarray)]
    if not arrays:
        return tuple(chain.from_iterable(parts))
    if len(arrays) < len(parts) or len({array.shape[1:] for array in arrays}) > 1:
        problem = f"the columns {name} differ in shape: give each table the same"
        raise DataError(problem, origins[1], code="mismatch")
    return np.concatenate(arrays)


def joined_strings(
    parts: Sequence[tuple[npt.NDArray[np.int32], Sequence[str]]],
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return the texts of several tables, one after the other, as an index into distinct strings.

    Args:
        parts: the index of each table, and the strings that it refers to.

    >>> index, strings = joined_strings([(np.array([1, 0]), ("a", "b")), (np.array([0]), ("b",))])
    >>> index.tolist(), strings
    ([1, 0, 1], ('a', 'b'))
    """
    used = [compact_strings(index, tuple(strings)) for index, strings in parts]
    strings, numbers = intern(chain.from_iterable(strings for _, strings in used))
    starts = offsets_of([len(strings) for _, strings in used])
    index = [numbers[start + index] for start, (index, _) in zip(starts, used, strict=False)]
    return np.concatenate(index), strings


def _missing_like(column: Column) -> Callable[[int], Column]:
    """Return a function that makes columns of missing values like those of another column."""
    if isinstance(column, np.ndarray):
        kind = column.dtype if column.dtype.kind == "f" else np.float64
        return lambda size: np.full((size, *column.shape[1:]), np.nan, kind)
    value = () if column and all(isinstance(one, tuple) for one in column) else None
    return lambda size: (value,) * size


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "sentence"), counted(250_000, "hypothesis")
    ('1 sentence', '250,000 hypotheses')
    """
    plural = noun.removesuffix("is") + "es" if noun.endswith("is") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def intern(values: Iterable[K]) -> tuple[tuple[K, ...], npt.NDArray[np.int32]]:
    """Return the distinct values, in order of first appearance, and the index of each into them.

    >>> strings, index = intern(["b", "a", "b"])
    >>> strings, index.tolist()
    (('b', 'a'), [0, 1, 0])
    """
    numbers = defaultdict[K, int](count().__next__)  # a new value has the next number
    index = np.fromiter(map(numbers.__getitem__, values), np.int32)
    return tuple(numbers), index


def offsets_of(sizes: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the first row of each list, then the number of rows.

    >>> offsets_of([2, 3]).tolist()
    [0, 2, 5]
    """
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def as_numbers(values: Column) -> npt.NDArray[np.float64] | None:
    """Return a column as numbers, NaN where one is missing: None, or an empty text.

    None for a column that has other values, or only missing ones.

    >>> as_numbers((1, None, 2.5)), as_numbers(("a", "b")), as_numbers((None, ""))
    (array([1. , nan, 2.5]), None, None)
    """
    if isinstance(values, np.ndarray):
        numeric = values.ndim == 1 and values.dtype.kind in "iuf"
        return values.astype(np.float64) if numeric else None
    present = [value for value in values if not is_missing(value)]
    numeric = all(isinstance(v, Real) and not isinstance(v, bool) for v in present)
    if not numeric or (len(values) and not present):
        return None
    return np.array([np.nan if is_missing(v) else v for v in values], np.float64)


def to_floats(values: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    """Return an argument that is an array of numbers, in float64.

    Args:
        values: the argument.
        name: of the parameter.

    Raises:
        UsageError: if it is something else.

    >>> to_floats([1, 2], "oracle").tolist()
    [1.0, 2.0]
    """
    return to_array(values, np.float64, name)


def to_array(values: npt.ArrayLike, kind: type[np.generic] | None, name: str) -> npt.NDArray[Any]:
    """Return an argument as an array of some type, or of any.

    Args:
        values: the argument.
        kind: the type; None keeps that of the values.
        name: of the parameter.

    Raises:
        UsageError: if it has no such type, or rows of different lengths.

    >>> to_array([[1], [2, 3]], None, "sizes")
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: sizes must be an array of numbers, not [[1], [2, 3]]
    """
    try:
        array = np.asarray(values)
        whole = kind is not None and issubclass(kind, np.integer)
        if array.dtype.kind == "c" or (whole and array.size and array.dtype.kind not in "iu"):
            raise TypeError("not integers, or not real numbers")
        with np.errstate(over="ignore"):  # infinite values are reported with their places
            return np.asarray(array, kind)
    except (TypeError, ValueError, OverflowError) as error:
        raise _wrong_type(f"{name} must be an array of numbers", values, name) from error


def members(values: Any, name: str, rule: str = "") -> list[Any]:
    """Return the members of an argument that is a sequence.

    Args:
        values: the argument.
        name: of the parameter.
        rule: what it must be, for the message; by default that it must be a sequence.

    Raises:
        UsageError: if it is something else, such as a text or a collection without order.

    >>> members(("a", "b"), "texts")
    ['a', 'b']
    """
    is_sequence = isinstance(values, Iterable) and not isinstance(
        values, str | bytes | Mapping | Set
    )
    if not is_sequence or (isinstance(values, np.ndarray) and not values.ndim):
        raise _wrong_type(rule or f"{name} must be a sequence", values, name)
    return list(values)


def _wrong_type(rule: str, values: Any, parameter: str | None) -> UsageError:
    problem = f"{rule}, not {quoted(values)}"
    return UsageError(problem, parameter=parameter, code="wrong-type")


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, or an empty text.

    >>> is_missing(None), is_missing(""), is_missing(0)
    (True, True, False)
    """
    return value is None or (isinstance(value, str) and not value)


def missing_value_notes(present: Mapping[str, int], count: int) -> list[str]:
    """Return notes on columns of numbers that lack some values.

    Args:
        present: the number of values of each, by name.
        count: the number of hypotheses.

    >>> missing_value_notes({"lm": 300, "mqm": 180, "da": 180}, 300)
    ['mqm, da are missing for 120 of 300 candidates: kept as judgements (usable as the gain), ...']
    """
    groups: dict[int, list[str]] = {}
    for name, available in present.items():
        if available < count:
            groups.setdefault(available, []).append(name)
    notes = []
    for available, names in groups.items():
        are, kept, features = "are", "judgements", "features"
        if len(names) == 1:
            are, kept, features = "is", "a judgement", "a feature"
        share = f"{count - available} of {count}" if available else f"all {count}"
        missing = f"{listed(names)} {are} missing for {share} candidates"
        notes.append(f"{missing}: kept as {kept} (usable as the gain), not as {features}")
    return notes


def flat(lists: Sequence[Any], sizes: Sequence[int], name: str) -> Column:
    """Return a column from one sequence per sentence; an array if all of them are arrays.

    Args:
        lists: one per sentence.
        sizes: the number of hypotheses of each sentence.
        name: of the column.

    Raises:
        DataError: if they do not have these sizes.
        UsageError: if they are not sequences.

    >>> flat([["a"], ["b", "c"]], [1, 2], "system")
    ('a', 'b', 'c')
    """
    parts = members(lists, name)
    arrays = all(isinstance(part, np.ndarray) and part.ndim for part in parts)
    kept = parts if arrays else [members(part, name) for part in parts]
    if list(map(len, kept)) != list(sizes):
        problem = f"{name} must have one value for each hypothesis of each sentence"
        raise DataError(problem, parameter=name, code="wrong-length")
    if arrays and len({part.shape[1:] for part in parts}) == 1:
        return np.concatenate(parts)
    return tuple(chain.from_iterable(kept))


def positions_of(sentences: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
    """Return the positions of some sentences: from the end if negative, or by a mask.

    Raises:
        NoSuchSentence: if a position is out of range.
        UsageError: if they are neither positions nor a mask of all sentences.

    >>> positions_of([-1, 0], 3).tolist(), positions_of([True, False], 2).tolist()
    ([2, 0], [0])
    """
    index = to_array(sentences, None, "sentences").reshape(-1)
    if not index.size:
        return np.zeros(0, np.int64)
    if index.dtype.kind not in "iu" and (index.dtype != bool or len(index) != count):
        problem = f"sentences must be selected by integer positions, or by a mask of {count} values"
        raise UsageError(problem, parameter="sentences", code="wrong-type")
    try:
        return np.asarray(np.arange(count)[index])
    except IndexError as error:
        allowed = f"positions run from 0 to {count - 1}"
        raise NoSuchSentence(f"no sentence at one of {quoted(sentences)}: {allowed}") from error


def rows_of(starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the row numbers of consecutive runs that begin at `starts`.

    >>> rows_of(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    result: npt.NDArray[np.int64] = np.arange(total) + np.repeat(starts - (ends - sizes), sizes)
    return result


def compact_strings(
    index: npt.NDArray[np.int32], strings: tuple[str, ...]
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return an index without unused strings, and the strings that remain, in their order.

    >>> compact_strings(np.array([2, 0, 2], np.int32), ("a", "b", "c"))[1]
    ('a', 'c')
    """
    if not len(index):
        return index, ()
    first = int(index.min())
    present = np.zeros(int(index.max()) - first + 1, dtype=bool)
    present[index - first] = True
    kept = np.flatnonzero(present)
    if len(kept) == len(strings):
        return index, strings
    numbers = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return numbers[index - first], tuple(map(strings.__getitem__, (kept + first).tolist()))
