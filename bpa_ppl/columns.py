"""Columns of a ragged table: arrays, or tuples of any objects."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from decimal import Decimal
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
#: Types of values that remain as they are: of single ones, and of all.
_SCALARS = {str, float, int, bool, type(None)}
_PLAIN = {*_SCALARS, dict, list, tuple}
_FIELDS = {*_SCALARS, dict}
# Frequent scalar types of NumPy.
_NUMPY = {np.float32, np.float64, np.int32, np.int64}
#: Types of texts and single numbers.
SINGLE = _SCALARS | _NUMPY
# What pandas calls its missing values, and the missing time.
_MISSING_TYPES = ("NAType", "NaTType")
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
    if not {str}.issuperset(map(type, kept)):
        if not all(isinstance(text, str) for text in kept):
            raise _wrong_type(rule, values, name)
        kept = list(map(str, kept))  # of subclasses, such as those of NumPy
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
    kept = []
    for entry in tuples:
        several = entry.tolist() if isinstance(entry, np.ndarray) else entry
        if not isinstance(several, tuple | list) or not all(isinstance(t, str) for t in several):
            raise _wrong_type(rule, entry, "references")
        kept.append(tuple(map(str, several)))
    return tuple(kept)


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
        key = id_key(identifier)
        if isinstance(key, bool) or not isinstance(key, int | str):
            rule = "the id of a reference must be an integer or a text"
            raise _wrong_type(rule, identifier, "references")
        if other := other_form(forms, key, identifier):
            problem = f"two references: {one_number(identifier, other)}"
            raise UsageError(problem, parameter="references", code="duplicate")
        found[key] = (*found.get(key, ()), *references([entry])[0])
    return found


def id_key(value: Any) -> Any:
    """Return the id of a sentence; an integer is the same id however it is written.

    >>> id_key("07"), id_key(2.0), id_key("2.0"), id_key("doc-7"), id_key(Decimal(7))
    (7, 2, 2, 'doc-7', 7)
    """
    if isinstance(value, str):
        number = _INTEGER.fullmatch(value)
        return value if number is None else int(number[1])
    whole = is_number(value) and math.isfinite(value) and value == int(value)
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
    """Return read-only columns by name: arrays of numbers remain arrays, all else becomes a tuple.

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
        array = as_array(values)
        if array.ndim > 1 or array.dtype.kind not in "OUS":
            return frozen(None)(array)
        values = array.tolist()
    kept = members(values, name, f"the column {name} must be a sequence of values")
    return tuple(kept if _PLAIN.issuperset(map(type, kept)) else map(plain_value, kept))


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
    if any(isinstance(column, tuple) for column in parts):
        parts = [_without_numbers(column) for column in parts]
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


def _without_numbers(column: Column) -> Column:
    """Return a column of missing numbers alone as a column of missing values of any kind."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "f" and np.isnan(column).all():
        return (None,) * len(column)
    return column


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
    """Return a column as numbers, NaN where one is missing: see `is_missing`.

    None for a column that has other values, or only missing ones.

    >>> as_numbers((1, None, 2.5)), as_numbers(("a", "b")), as_numbers((None, ""))
    (array([1. , nan, 2.5]), None, None)
    """
    if isinstance(values, np.ndarray):
        numeric = values.ndim == 1 and values.dtype.kind in "iuf"
        return values.astype(np.float64) if numeric else None
    present = [value for value in values if not is_missing(value)]
    if not all(map(is_number, present)) or (len(values) and not present):
        return None
    return np.array([np.nan if is_missing(v) else to_float(v) for v in values], np.float64)


def is_number(value: Any) -> bool:
    """Return whether a value is one real number: true and false, and spans of time, are not.

    >>> is_number(1.5), is_number(Decimal("1.5")), is_number(True), is_number(1j)
    (True, True, False, False)
    """
    real = isinstance(value, Real | Decimal)  # NumPy's spans of time count as integers
    return real and not isinstance(value, bool | np.timedelta64)


def to_float(number: Any) -> float:
    """Return a number in float64, infinite if it is too large for one.

    >>> to_float(Decimal("0.5")), to_float(-(10**400))
    (0.5, -inf)
    """
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def plain_value(value: Any) -> Any:
    """Return a value of a scalar type of NumPy, JAX, PyTorch, Arrow or pandas as one of Python.

    Missing ones (a masked element, NA) become None, and exact numbers floats; other values, and
    numbers with a unit of time, remain.

    >>> plain_value(np.float32(0.5)), plain_value(np.array(2)), plain_value(np.ma.masked)
    (0.5, 2, None)
    >>> plain_value(Decimal("0.5")), plain_value("a")
    (0.5, 'a')
    """
    if type(value) in _PLAIN:
        return value
    if is_missing(value):
        return None if not isinstance(value, str) else str(value)
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "as_py"):
        return plain_value(value.as_py())
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        if isinstance(value, np.datetime64 | np.timedelta64):
            return value
        item = value.item()
        return plain_value(item) if type(item) is not type(value) else to_float(item)
    if is_number(value):
        return int(value) if isinstance(value, Integral) else to_float(value)
    return value


def plain_values(value: Any) -> Any:
    """Return a value, and all values in it, as lines of JSON would have them.

    >>> plain_values({"text": ("a", "b"), "lm": np.array([0.5, 1.0]), "by": {"x": Decimal(2)}})
    {'text': ('a', 'b'), 'lm': [0.5, 1.0], 'by': {'x': 2.0}}
    """
    kind = type(value)
    if kind in _NUMPY:
        return value.item()
    if kind is dict or isinstance(value, Mapping):
        return {n: of if type(of) in _SCALARS else plain_values(of) for n, of in value.items()}
    if isinstance(value, list | tuple):
        plain = kind not in _PLAIN or _SCALARS.issuperset(map(type, value))
        return value if plain else kind(map(plain_values, value))
    if hasattr(value, "__array__") and np.ndim(value):
        array = as_array(value)
        return list(map(plain_values, array if array.dtype.kind in "mM" else array.tolist()))
    return plain_value(value)


def values_in(records: list[Any]) -> Iterable[Any]:
    """Return the values of all fields of dictionaries.

    >>> list(values_in([{"text": "a"}, {"text": "b", "lm": -1.5}]))
    ['a', 'b', -1.5]
    """
    return chain.from_iterable(map(dict.values, records))


def plain_members(values: list[Any]) -> list[Any]:
    """Return the values of a column as `plain_values` does, except those inside dictionaries.

    >>> plain_members([np.float32(0.5), None]), plain_members([{"lm": np.float32(0.5)}])
    ([0.5, None], [{'lm': np.float32(0.5)}])
    """
    return values if _FIELDS.issuperset(map(type, values)) else list(map(plain_values, values))


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

    >>> to_array([[1], [2, 3]], np.int64, "sizes")
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: sizes must be an array of integers of 64 bits, not [[1], [2, 3]]
    """
    whole = kind is not None and issubclass(kind, np.integer)
    rule = f"{name} must be an array of {'integers of 64 bits' if whole else 'numbers'}"
    try:
        array = as_array(values)
        if kind is None:
            return array
        if array.dtype.kind == "O" and not whole:
            numbers = map(_real, array.ravel().tolist())
            array = np.fromiter(numbers, np.float64, array.size).reshape(array.shape)
        if array.dtype.kind not in ("iu" if whole else "iufb") and array.size:
            raise TypeError("not integers, or not real numbers")
        if whole and array.size:
            limits = np.iinfo(np.dtype(kind))
            if int(array.max()) > limits.max or int(array.min()) < limits.min:
                raise OverflowError
        with np.errstate(over="ignore"):  # infinite values are reported with their places
            return np.asarray(array, kind)
    except (TypeError, ValueError, OverflowError) as error:
        raise _wrong_type(rule, values, name) from error


def _real(value: Any) -> float:
    """Return a number, or a truth value, as a float, and NaN for a missing one."""
    value = plain_value(value)
    if not (value is None or isinstance(value, bool) or is_number(value)):
        raise TypeError("not a number")
    return math.nan if value is None else to_float(value)


def as_array(values: Any) -> npt.NDArray[Any]:
    """Return an argument as an array; a masked number is NaN, any other masked value None.

    Raises:
        ValueError: if rows differ in length.

    >>> as_array(np.ma.masked_array([1, 2], mask=[False, True])), as_array([1, 2])
    (array([ 1., nan]), array([1, 2]))
    """
    return np.asarray(_without_masks(values))


def _without_masks(values: Any) -> Any:
    """Return an argument in which masked values are NaN among numbers, and None elsewhere."""
    if isinstance(values, np.ma.MaskedArray):
        if not np.ma.is_masked(values):
            return values.data
        numeric = values.dtype.kind in "iuf"
        kind = values.dtype if values.dtype.kind == "f" else np.float64 if numeric else object
        converted = np.array(values.data, kind)
        converted[np.ma.getmaskarray(values)] = np.nan if numeric else None
        return converted
    if isinstance(values, list | tuple):
        types = set(map(type, values)).difference(_SCALARS)
        if any(issubclass(kind, list | tuple | np.ma.MaskedArray) for kind in types):
            return [_without_masks(value) for value in values]
    return values


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
    if type(values) in (list, tuple):
        return list(values)
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
    """Return whether a value is missing: None, an empty text, a masked element, or pandas' NA.

    >>> is_missing(None), is_missing(""), is_missing(0), is_missing(np.ma.masked)
    (True, True, False, True)
    """
    if value is None or value is np.ma.masked:
        return True
    if isinstance(value, str):
        return not value
    return type(value).__name__ in _MISSING_TYPES


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
    parts = [
        as_array(part) if hasattr(part, "__array__") and np.ndim(part) else part
        for part in members(lists, name)
    ]
    arrays = all(isinstance(part, np.ndarray) for part in parts)
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
    array = to_array(sentences, None, "sentences")
    index = array.reshape(-1)
    if not index.size:
        return np.zeros(0, np.int64)
    huge = index.dtype.kind == "O" and all(type(place) is int for place in index.tolist())
    mask = index.dtype == bool and array.ndim and len(index) == count
    if index.dtype.kind not in "iu" and not mask and not huge:
        problem = "lists are selected by position: an integer, a slice, a sequence of integers, or "
        problem += f"a mask of {count} values, not {quoted(sentences)}"
        raise UsageError(problem, parameter="sentences", code="wrong-type")
    try:
        return np.asarray(np.arange(count)[index])
    except IndexError as error:
        allowed = f"positions run from 0 to {count - 1}"
        shown = quoted(array.tolist())
        raise NoSuchSentence(f"no sentence at one of {shown}: {allowed}") from error


def slice_indices(part: slice, count: int) -> tuple[int, int, int]:
    """Return start, stop and step of a slice of `count` lists.

    Raises:
        UsageError: if one of them is not an integer.

    >>> slice_indices(slice(-2, None), 5)
    (3, 5, 1)
    """
    try:
        return part.indices(count)
    except (TypeError, ValueError) as error:
        problem = f"the ends and the step of a slice must be integers, not {quoted(part)}"
        raise UsageError(problem, parameter="sentences", code="wrong-type") from error


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
