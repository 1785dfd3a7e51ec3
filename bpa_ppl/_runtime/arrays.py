"""Types of arrays, and arguments of users as arrays, sequences and plain values."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from decimal import Decimal
from itertools import chain, count
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, NoSuchSentence, quote, wrong_type

K = TypeVar("K", bound=Hashable)
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
#: The largest feature, total or gain: its fourth power is finite.
LARGEST = 1e60
FINITE = "a finite number of at most 1e60"
#: What is wrong with a text that has a NUL character, for messages.
NUL_IN_TEXT = "a NUL character, which is not text: remove it"
#: Types of values that remain as they are: of single ones, and of all.
_SCALARS = {str, float, int, bool, type(None)}
PLAIN = {*_SCALARS, dict, list, tuple}
_SCALARS_OR_DICT = {*_SCALARS, dict}
# Frequent scalar types in NumPy.
_NUMPY = {np.float32, np.float64, np.int32, np.int64}
#: Types of texts and single numbers.
SINGLE = _SCALARS | _NUMPY
#: A decimal or scientific literal, as a cell of a text file prints a number.
_LITERAL = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")
# What pandas calls its missing values, and the missing time.
_MISSING_TYPES = ("NAType", "NaTType")


def are_finite(values: npt.NDArray[Any]) -> bool:
    """Return whether all numbers of an array are finite and at most `LARGEST`, in either direction.

    >>> are_finite(np.array([1.0, -1e60])), are_finite(np.array([1e61])), are_finite(np.array([]))
    (True, False, True)
    """
    # Not with NaN.
    return bool(values.max(initial=0) <= LARGEST and values.min(initial=0) >= -LARGEST)


def to_floats(values: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    """Return an argument that is an array of numbers, in float64.

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
        if kind is None or not array.size:
            return array if kind is None else np.zeros(array.shape, kind)
        if array.dtype.kind == "O" and not whole:
            numbers = map(_real, array.ravel().tolist())
            array = np.fromiter(numbers, np.float64, array.size).reshape(array.shape)
        if array.dtype.kind not in ("iu" if whole else "iufb"):
            raise TypeError("not integers, or not real numbers")
        if whole:
            limits = np.iinfo(np.dtype(kind))
            if int(array.max()) > limits.max or int(array.min()) < limits.min:
                raise OverflowError
        with np.errstate(over="ignore"):  # infinite values are reported with their places
            return np.asarray(array, kind)
    except (TypeError, ValueError, OverflowError) as error:
        raise wrong_type(rule, values, name) from error


def _real(value: Any) -> float:
    """Return a number, or a truth value, as a float, and NaN for a missing one."""
    value = to_plain_value(value)
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


def make_freezer(
    kind: type[np.generic] | None, name: str = "values"
) -> Callable[[npt.ArrayLike], npt.NDArray[Any]]:
    """Return a function that makes arrays of one type, or any, that cannot be written to.

    The argument is not changed: the result is a view of it where it has that type. The function
    raises a UsageError with the name of the parameter for values that have no such type.

    >>> make_freezer(np.float64)([1, 2]).flags.writeable
    False
    """

    def convert(values: npt.ArrayLike) -> npt.NDArray[Any]:
        view = to_array(values, kind, name).view()
        view.flags.writeable = False
        return view

    return convert


def to_members(values: Any, name: str, rule: str = "") -> list[Any]:
    """Return the members of an argument that is a sequence.

    Args:
        values: the argument.
        name: of the parameter.
        rule: what it must be, for the message; by default that it must be a sequence.

    Raises:
        UsageError: if it is something else, such as a text or a collection without order.

    >>> to_members(("a", "b"), "texts")
    ['a', 'b']
    """
    if type(values) in (list, tuple):
        return list(values)
    is_sequence = isinstance(values, Iterable) and not isinstance(
        values, str | bytes | Mapping | Set
    )
    if not is_sequence or (isinstance(values, np.ndarray) and not values.ndim):
        raise wrong_type(rule or f"{name} must be a sequence", values, name)
    return list(values)


def to_texts(values: Any, name: str = "sources", each: str = "sentence") -> tuple[str, ...]:
    """Return an argument that has one text for each sentence, or for each candidate.

    Raises:
        DataError: if a text has a NUL character.
        UsageError: if the values are anything else, such as a single text.

    >>> to_texts(["un chat"])
    ('un chat',)
    """
    rule = f"{name} must be one text for each {each}"
    kept = to_members(values, name, rule)
    if not {str}.issuperset(map(type, kept)):
        if not all(isinstance(text, str) for text in kept):
            raise wrong_type(rule, values, name)
        kept = list(map(str, kept))  # of subclasses, such as those of NumPy
    refuse_nul(kept, name)
    return tuple(kept)


def refuse_nul(texts: Iterable[str], name: str) -> None:
    """Raise a DataError if one of the texts of a parameter has a NUL character."""
    place = next((place for place, text in enumerate(texts) if "\0" in text), None)
    if place is not None:
        problem = f"{name}[{place}] has {NUL_IN_TEXT}"
        raise DataError(problem, parameter=name, code="bad-encoding")


def to_positions(sentences: npt.ArrayLike, count: int) -> npt.NDArray[np.int64]:
    """Return the positions of some sentences: from the end if negative, or by a mask.

    Raises:
        NoSuchSentence: if a position is out of range.
        UsageError: if they are neither positions nor a mask of all sentences.

    >>> to_positions([-1, 0], 3).tolist(), to_positions([True, False], 2).tolist()
    ([2, 0], [0])
    """
    array = to_array(sentences, None, "sentences")
    index = array.reshape(-1)
    if not index.size:
        return np.zeros(0, np.int64)
    huge = index.dtype.kind == "O" and all(type(place) is int for place in index.tolist())
    mask = index.dtype == bool and array.ndim and len(index) == count
    if index.dtype.kind not in "iu" and not mask and not huge:
        rule = "lists are selected by position: an integer, a slice, a sequence of integers, or "
        raise wrong_type(f"{rule}a mask of {count} values", sentences, "sentences")
    try:
        return np.asarray(np.arange(count)[index])
    except IndexError as error:
        allowed = f"positions run from 0 to {count - 1}"
        shown = quote(array.tolist())
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
        rule = "the ends and the step of a slice must be integers"
        raise wrong_type(rule, part, "sentences") from error


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


def as_numbers(
    values: Any, *, cells: bool = False, truths: bool = False
) -> npt.NDArray[np.float64] | None:
    """Return a column as numbers, NaN where one is missing.

    None for a column that has other values, or only missing ones.

    Args:
        values: of the column.
        cells: whether its texts are cells of a text file: one that prints a number is a number,
            and an empty one is missing.
        truths: whether true and false are 1 and 0.

    >>> as_numbers((1, None, 2.5)), as_numbers(("1", "b")), as_numbers((None, None))
    (array([1. , nan, 2.5]), None, None)
    >>> as_numbers(("1e-3", ""), cells=True), as_numbers((True, False), truths=True)
    (array([0.001,   nan]), array([1., 0.]))
    """
    if isinstance(values, np.ndarray):
        numeric = values.ndim == 1 and values.dtype.kind in ("biuf" if truths else "iuf")
        return values.astype(np.float64) if numeric else None
    numbers = [read_number(value, cells=cells, truths=truths) for value in values]
    if None in numbers or (numbers and all(number != number for number in numbers)):
        return None
    return np.array(numbers, np.float64)


def read_number(value: Any, *, cells: bool = False, truths: bool = False) -> float | None:
    """Return a value as a number, NaN if it is missing; None for any other value.

    Args:
        value: of a column.
        cells: as for `as_numbers`.
        truths: as for `as_numbers`.

    >>> read_number("-1.5", cells=True), read_number("-1.5"), read_number("1_0", cells=True)
    (-1.5, None, None)
    """
    if isinstance(value, str):
        if not cells:
            return None
        return float(value) if _LITERAL.fullmatch(value) else None if value else np.nan
    if is_missing(value):
        return np.nan
    if truths and isinstance(value, bool | np.bool_):
        return float(value)
    return to_float(value) if is_number(value) else None


def to_plain_value(value: Any) -> Any:
    """Return a scalar of NumPy, JAX, PyTorch, Arrow or pandas as a Python value.

    Missing ones (a masked element, NA) become None, and exact numbers floats; other values, and
    numbers with a unit of time, remain.

    >>> to_plain_value(np.float32(0.5)), to_plain_value(np.array(2)), to_plain_value(np.ma.masked)
    (0.5, 2, None)
    >>> to_plain_value(Decimal("0.5")), to_plain_value("a")
    (0.5, 'a')
    """
    if type(value) in PLAIN:
        return value
    if is_missing(value):
        return None if not isinstance(value, str) else str(value)
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "as_py"):
        return to_plain_value(value.as_py())
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        if isinstance(value, np.datetime64 | np.timedelta64):
            return value
        item = value.item()
        return to_plain_value(item) if type(item) is not type(value) else to_float(item)
    if is_number(value):
        return int(value) if isinstance(value, Integral) else to_float(value)
    return value


def to_plain_values(value: Any) -> Any:
    """Return a value, and all values in it, as JSON lines would have them.

    >>> to_plain_values({"text": ("a", "b"), "lm": np.array([0.5, 1.0]), "by": {"x": Decimal(2)}})
    {'text': ('a', 'b'), 'lm': [0.5, 1.0], 'by': {'x': 2.0}}
    """
    kind = type(value)
    if kind in _NUMPY:
        return value.item()
    if kind is dict and _SCALARS.issuperset(map(type, value.values())):
        return value
    if kind is dict or isinstance(value, Mapping):
        return {n: of if type(of) in _SCALARS else to_plain_values(of) for n, of in value.items()}
    if isinstance(value, list | tuple):
        plain = kind not in PLAIN or _SCALARS.issuperset(map(type, value))
        return value if plain else kind(map(to_plain_values, value))
    if hasattr(value, "__array__") and np.ndim(value):
        array = as_array(value)
        return list(map(to_plain_values, array if array.dtype.kind in "mM" else array.tolist()))
    return to_plain_value(value)


def to_plain_members(values: list[Any]) -> list[Any]:
    """Return the values of a column as `to_plain_values` does, except those inside dictionaries.

    >>> to_plain_members([np.float32(0.5), None]), to_plain_members([{"lm": np.float32(0.5)}])
    ([0.5, None], [{'lm': np.float32(0.5)}])
    """
    if _SCALARS_OR_DICT.issuperset(map(type, values)):
        return values
    return list(map(to_plain_values, values))


def flatten(
    lists: Sequence[Any], sizes: Sequence[int], name: str
) -> npt.NDArray[Any] | tuple[Any, ...]:
    """Return a column from one sequence per sentence; an array if all of them are arrays.

    Args:
        lists: one per sentence.
        sizes: the number of candidates of each sentence.
        name: of the column.

    Raises:
        DataError: if they do not have these sizes.
        UsageError: if they are not sequences.

    >>> flatten([["a"], ["b", "c"]], [1, 2], "system")
    ('a', 'b', 'c')
    """
    parts = [
        as_array(part) if hasattr(part, "__array__") and np.ndim(part) else part
        for part in to_members(lists, name)
    ]
    arrays = all(isinstance(part, np.ndarray) and part.ndim for part in parts)
    kept = parts if arrays else [to_members(part, name) for part in parts]
    if list(map(len, kept)) != list(sizes):
        problem = f"{name} must have one value for each candidate of each sentence"
        raise DataError(problem, parameter=name, code="wrong-length")
    if arrays and len({part.shape[1:] for part in parts}) == 1:
        return np.concatenate(parts)
    return tuple(chain.from_iterable(kept))


def intern(values: Iterable[K]) -> tuple[tuple[K, ...], npt.NDArray[np.int32]]:
    """Return the distinct values, in order of first appearance, and the index of each into them.

    >>> strings, index = intern(["b", "a", "b"])
    >>> strings, index.tolist()
    (('b', 'a'), [0, 1, 0])
    """
    numbers = defaultdict[K, int](count().__next__)  # a new value has the next number
    index = np.fromiter(map(numbers.__getitem__, values), np.int32)
    return tuple(numbers), index
