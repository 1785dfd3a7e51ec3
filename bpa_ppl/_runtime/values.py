"""Numbers and JSON as text files print them, and Arrow columns as arrays."""

from __future__ import annotations

import json
import reprlib
from codecs import BOM_UTF8
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import FINITE, LARGEST, are_finite
from bpa_ppl._runtime.streams import decode
from bpa_ppl.errors import DataError, quote

if TYPE_CHECKING:
    import pyarrow as pa

#: How files of other programs are read.
RECIPE_PAGE = "docs/how-to/other-files.md"
RECIPES = f"convert the file as {RECIPE_PAGE} shows"
_JSON_NAMES = {True: "true", False: "false", None: "null"}
TOO_DEEP = "objects nest too deeply, or an integer has more than 4,000 digits: correct it"
_AT_ONCE = 1 << 30  # bytes that Arrow reads at once
_CHARACTERS_SHOWN = 80  # characters of a value in a message


def parse_finite(token: str | bytes) -> float:
    """Return the number that a token prints.

    Raises:
        ValueError: if it is not a number, not finite or too large; the text says which, for a
            message that names file and line.

    >>> parse_finite("-3.98253"), parse_finite(b"1e-05")
    (-3.98253, 1e-05)
    >>> parse_finite("1_000")
    Traceback (most recent call last):
    ValueError: '1_000' is not a number
    """
    printed = token.encode() if isinstance(token, str) else token
    try:
        value = float(printed)
    except ValueError:
        value = None
    if value is not None and abs(value) <= LARGEST and b"_" not in printed:
        return value
    wrong = "a number" if value is None or b"_" in printed else FINITE
    raise ValueError(f"{quote(printed)} is not {wrong}")


def read_number_lines(data: bytes, width: int) -> npt.NDArray[np.float64] | None:
    r"""Return (lines, width) the numbers in lines of text, read by PyArrow.

    None if they are not separated by single spaces, or one is not finite or too large.

    >>> read_number_lines(b"-1.5 2\n3 1e-05\n", 2)
    array([[-1.5e+00,  2.0e+00],
           [ 3.0e+00,  1.0e-05]])
    """
    import pyarrow as pa

    try:
        columns = read_csv_columns(data, dict.fromkeys(map(str, range(width)), pa.float64()))
    except (pa.ArrowException, ValueError):
        return None
    values = np.stack(list(map(to_numpy, columns)), axis=1)
    return values if are_finite(values) else None


def read_csv_columns(
    data: Any, types: Mapping[str, Any], delimiter: str = " ", *, quoted: bool = False
) -> list[Any]:
    r"""Return the columns of a table in Arrow types, read by PyArrow.

    Args:
        data: whole lines, as bytes or as an Arrow buffer.
        types: names and types of the columns.
        delimiter: between cells.
        quoted: whether cells may be quoted, and may then have line breaks.

    Raises:
        pyarrow.ArrowException: if a line has another number of cells, or a cell another type.

    >>> import pyarrow as pa
    >>> read_csv_columns(b"1 2\n", {"a": pa.int64(), "b": pa.int64()})[1].to_pylist()
    [2]
    """
    import pyarrow as pa
    from pyarrow import csv

    if isinstance(data, bytes):
        # An Arrow thread that holds an object of Python when the program ends aborts it. Arrow
        # removes a byte-order mark; one inside a file is a part of its text.
        text = BOM_UTF8 + data if data.startswith(BOM_UTF8) else data
        data = pa.allocate_buffer(len(text))
        np.frombuffer(data, np.uint8)[:] = np.frombuffer(text, np.uint8)
    table = csv.read_csv(
        pa.BufferReader(data),
        csv.ReadOptions(
            column_names=list(types),
            use_threads=False,
            block_size=min(len(data) + 1, _AT_ONCE),
        ),
        csv.ParseOptions(
            delimiter=delimiter,
            quote_char='"' if quoted else False,
            newlines_in_values=quoted,
            ignore_empty_lines=False,
        ),
        csv.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
    )
    return [column.combine_chunks() for column in table.columns]


def format_shortest(value: float) -> str:
    """Return the shortest decimal that reads back as the same number.

    >>> format_shortest(0.1), format_shortest(-6.0)
    ('0.1', '-6')
    """
    return str(value).removesuffix(".0")


def format_numbers(values: npt.ArrayLike, missing: str = "nan", json: bool = True) -> list[str]:
    """Return the shortest decimals that read back as the same numbers.

    Args:
        values: (n,) numbers.
        missing: the text for NaN.
        json: whether −0 must keep its sign in JSON, which reads `-0` as an integer.

    >>> format_numbers(np.array([0.1, -6, 0.0, -0.0, np.nan]), missing="null")
    ['0.1', '-6', '0.0', '-0.0', 'null']
    """
    # As integers, so that −0 keeps its sign.
    bits = np.ascontiguousarray(values, np.float64).view(np.int64)
    distinct, index = np.unique(bits, return_inverse=True)
    texts = [
        missing if value != value else str(value) if json and not value else format_shortest(value)
        for value in distinct.view(np.float64).tolist()
    ]
    return [texts[i] for i in index.tolist()]


def looks_numeric(text: str | bytes) -> bool:
    """Return whether a text prints a number.

    >>> looks_numeric("-1.5"), looks_numeric("one")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True


def abbreviate(value: Any) -> str:
    """Return a value as JSON writes it, abbreviated to 80 characters.

    >>> abbreviate(True), abbreviate("word")
    ('true', "'word'")
    """
    if value is None or isinstance(value, bool):
        return _JSON_NAMES[value]
    value = value.item() if isinstance(value, np.generic) else value
    text = reprlib.repr(value)
    return text if len(text) <= _CHARACTERS_SHOWN else f"{text[: _CHARACTERS_SHOWN - 1]}…"


def combine_chunks(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array.

    >>> import pyarrow as pa
    >>> combine_chunks(pa.chunked_array([[1], [2]])).to_pylist()
    [1, 2]
    """
    import pyarrow as pa

    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)])


def is_arrow(values: Any) -> bool:
    """Return whether a column is one of Arrow.

    >>> is_arrow([1.5]), is_arrow(np.ones(1))
    (False, False)
    """
    return hasattr(values, "to_pylist")


def from_arrow(column: Any, *, numbers: bool = False) -> Any:
    """Return a column of Arrow as a list of values of Python, in which equal texts are one object.

    Args:
        column: of any type; one that is not of Arrow is returned as it is.
        numbers: whether numbers become an array instead, in which NaN is missing.

    >>> import pyarrow as pa
    >>> from_arrow(pa.array([1, None])), from_arrow(pa.array([1, None]), numbers=True)
    ([1, None], array([ 1., nan]))
    """
    if not is_arrow(column):
        return column
    import pyarrow as pa

    types, column = pa.types, combine_chunks(column)
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if numbers and has_numbers(column):
        floats = types.is_float32(kind) or types.is_float64(kind)
        return to_numpy(column.cast(kind if floats else pa.float64(), safe=False))
    if types.is_integer(kind) and not column.null_count:
        return list(to_numpy(column.cast(kind)).tolist())
    if types.is_string_view(kind):
        if types.is_dictionary(column.type):
            texts = column.dictionary.cast(pa.string())
            column = pa.DictionaryArray.from_arrays(column.indices, texts)
        column, kind = column.cast(pa.string()), pa.string()
    if not (types.is_string(kind) or types.is_large_string(kind)):
        return list(column.to_pylist())
    encoded = column.cast(kind).dictionary_encode()
    strings = [*encoded.dictionary.to_pylist(), None]
    return [strings[i] for i in to_numpy(encoded.indices, missing=-1).tolist()]


def has_numbers(column: Any) -> bool:
    """Return whether a column is an array, or one of Arrow with integers, floats or decimals.

    >>> import pyarrow as pa
    >>> has_numbers(pa.array([1])), has_numbers(pa.array(["1"])), has_numbers([1])
    (True, False, False)
    """
    if not is_arrow(column):
        return isinstance(column, np.ndarray)
    import pyarrow as pa

    types = pa.types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def parse_cells(column: pa.Array) -> npt.NDArray[np.float64] | None:
    """Return the numbers that cells of text print, NaN for empty ones; None if one prints none.

    >>> import pyarrow as pa
    >>> parse_cells(pa.array(["1e3", ""])), parse_cells(pa.array(["a"]))
    (array([1000.,   nan]), None)
    """
    import pyarrow as pa

    try:
        numbers = without_empty(column).cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    return to_numpy(numbers) if are_finite(to_numpy(numbers, missing=0)) else None


def without_empty(column: pa.Array) -> pa.Array:
    """Return a column of cells of text with null in place of empty ones.

    >>> import pyarrow as pa
    >>> without_empty(pa.array(["a", ""])).to_pylist()
    ['a', None]
    """
    import pyarrow as pa
    from pyarrow import compute

    filled = compute.binary_length(column).cast(pa.bool_())
    return compute.if_else(filled, column, pa.nulls(len(column), pa.string()))


def to_numpy(column: pa.Array | pa.ChunkedArray, missing: Any = np.nan) -> npt.NDArray[Any]:
    """Return (rows,) the numbers of a column, perhaps read-only.

    Without a scalar of Arrow, which imports pandas wherever it is installed.

    Args:
        column: of integers or of floats.
        missing: the value for null.

    >>> import pyarrow as pa
    >>> to_numpy(pa.array([1.5, None])), to_numpy(pa.array([2, None])[:1])
    (array([1.5, nan]), array([2]))
    """
    import pyarrow as pa

    array = combine_chunks(column)
    if not array.null_count:
        return np.from_dlpack(array)
    if np.isnan(missing) and pa.types.is_integer(array.type):
        array = array.cast(pa.float64(), safe=False)
    present = np.from_dlpack(array.drop_null())
    values = np.full(len(array), missing, present.dtype)
    values[np.from_dlpack(array.is_valid().cast(pa.uint8())).astype(bool)] = present
    return values


def parse_strictly(
    block: bytes, origin: str, first: int, parameter: str = "format"
) -> tuple[list[Any], list[int]]:
    r"""Return what each line says, and its number; NaN and Infinity are numbers.

    Raises:
        DataError: with file and line, if one is not JSON.

    >>> parse_strictly(b'{"a": NaN}\n', "dev.jsonl", 3)
    ([{'a': nan}], [3])
    """
    lines = block[:-1].split(b"\n")
    numbers = [number for number, line in enumerate(lines, first) if line.strip()]
    values = []
    for number in numbers:
        text = decode(lines[number - first], origin, number)
        try:
            values.append(parse_json(text, origin, number, parameter))
        except DataError as error:
            begun, rest = text.strip(), b"\n".join(lines[number - first :]).decode(errors="ignore")
            end = 0
            with suppress(ValueError, RecursionError):
                _, end = json.JSONDecoder().raw_decode(rest.strip())
            several = end > 0 and begun[end:].lstrip()[:1] == "{"
            if end <= len(begun) and begun not in ("{", "[") and not several:
                raise
            problem = "several objects in a line" if several else "JSON on several lines"
            problem += f": write an object on each line, or {RECIPES}"
            raise DataError(
                problem, origin, number, parameter=parameter, code="bad-line"
            ) from error
    return values, numbers


def parse_json(text: str, origin: str, first: int = 1, parameter: str | None = None) -> Any:
    """Return the value of a text of JSON, or name the line.

    Args:
        text: the text.
        origin: the name of its file, for messages.
        first: the line of the file at which it begins.
        parameter: that named the file or its format, for errors.

    Raises:
        DataError: with file and line, if it is not JSON, or as `load_json`.

    >>> parse_json('{"mu": [1, 2]}', "data.json")
    {'mu': [1, 2]}
    """
    line, code = first, "bad-line"
    try:
        return load_json(text)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} (column {error.colno}): correct the line, or create the "
        message += "file again if the line is cut off"
        line += error.lineno - 1
    except DataError as error:
        message, code, parameter = error.message, error.code, None
    except (RecursionError, ValueError):  # Python reads no integers of thousands of digits
        message, parameter = TOO_DEEP, None
    raise DataError(message, origin, line, parameter=parameter, code=code)


def load_json(text: str) -> Any:
    r"""Return the value of a text of JSON.

    Raises:
        DataError: if a text has half a surrogate pair.
        ValueError: if it is not JSON, or an integer has thousands of digits.
        RecursionError: if objects nest too deeply.

    >>> load_json('{"mu": "\\ud800"}')
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: a \u escape is half a surrogate pair: write the text as UTF-8
    """
    value = json.loads(text)
    check_escapes(text, value)
    return value


def check_escapes(text: str, value: Any) -> None:
    """Refuse the value of a text of JSON in which an escape is half a surrogate pair.

    Raises:
        DataError: if there is such an escape.
    """
    try:
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        problem = "a \\u escape is half a surrogate pair: write the text as UTF-8"
        raise DataError(problem, code="bad-encoding") from error


def json_object(line: bytes) -> dict[str, Any]:
    r"""Return a line that is a JSON object; an empty one for any other line.

    >>> json_object(b'{"id": 0}'), json_object(b'{"id": "\\xe9"}'), json_object(b"id,text")
    ({'id': 0}, {}, {})
    """
    if line.lstrip().startswith(b"{"):
        with suppress(ValueError, RecursionError):
            return dict(json.loads(line))
    return {}
