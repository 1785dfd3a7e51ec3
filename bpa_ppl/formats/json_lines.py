"""Lines of JSON, decoded and checked: what all formats of JSON lines share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from bpa_ppl.errors import DataError, quoted
from bpa_ppl.formats.base import ReadOptions
from bpa_ppl.formats.streams import decoded, line_count
from bpa_ppl.labels import repeated
from bpa_ppl.rows import Rows
from bpa_ppl.rows.readers import RecordReader
from bpa_ppl.rows.schema import SchemaReader

_LONG = 4096  # bytes from which NumPy counts keys faster than `bytes.count`
_DECODER = msgspec.json.Decoder()


def json_keys(line: bytes) -> set[str]:
    """Return the keys of a line that is an object of JSON; nothing for any other line.

    >>> json_keys(b'{"id": 0}'), json_keys(b"id,text")
    ({'id'}, set())
    """
    if not line.lstrip().startswith(b"{"):
        return set()
    try:
        return set(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
    except (ValueError, RecursionError):
        return set()


def json_rows(
    blocks: Iterable[bytes],
    options: ReadOptions,
    change: Callable[[Any, int], Any] = lambda record, line: record,
) -> Iterator[Rows]:
    r"""Yield the rows of each block of lines with records, as `bpa_ppl.rows.readers` has them.

    Args:
        blocks: of whole lines.
        options: how to read.
        change: makes a record of what a line says, and of its number.

    Raises:
        DataError: with file, line and field, if a line is not JSON, has a key twice, or is not
            as the schema says; or if there are no records.

    >>> block = b'{"id": 7, "text": "a cat", "lm": -1}\n'
    >>> next(json_rows([block], ReadOptions("dev"))).names
    ('lm',)
    """
    schema = SchemaReader(options.origin, options.bad, options.first_id, nan_is_missing=False)
    reader = RecordReader(schema)
    empty = True
    for block, records, lines in json_values(blocks, options.origin):
        empty = False
        changed = [change(record, line) for record, line in zip(records, lines, strict=True)]
        rows = reader.rows(changed, lines)
        if reader.keys != _key_count(block):  # msgspec keeps the last of equal keys
            strict_values(block, options.origin, lines[0])
        yield rows
    if empty:
        raise options.error("empty: there are no n-best lists in it", code="no-data")


def json_values(
    blocks: Iterable[bytes], origin: str
) -> Iterator[tuple[bytes, Sequence[Any], Sequence[int]]]:
    r"""Yield each block with what its lines say, and their numbers; blank lines are left out.

    Args:
        blocks: of whole lines.
        origin: the name of the file, for messages.

    Raises:
        DataError: with file and line, if one is not JSON.

    >>> [found[1:] for found in json_values([b'{"a": 1}\n\n[2]\n'], "dev.jsonl")]
    [([{'a': 1}, [2]], [1, 3])]
    """
    first = 1
    for block in blocks:
        count = line_count(block)
        lines: Sequence[int] = range(first, first + count)
        try:
            values: list[Any] = _DECODER.decode_lines(block)
        except (ValueError, RecursionError):
            values = []
        if len(values) != count:
            values, lines = strict_values(block, origin, first)
        if values:
            yield block, values, lines
        first += count


def strict_values(block: bytes, origin: str, first: int) -> tuple[list[Any], list[int]]:
    r"""Return what each line says, and its number; NaN and Infinity are numbers.

    Raises:
        DataError: with file and line, if one is not JSON, or an object has a key twice.

    >>> strict_values(b'{"a": 1, "a": 2}\n', "dev.jsonl", 3)
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: dev.jsonl:3: the field 'a' occurs twice in one object: rename one
    """
    lines = [(n, line) for n, line in enumerate(block[:-1].split(b"\n"), first) if line.strip()]
    return [_strict_value(line, origin, n) for n, line in lines], [n for n, _ in lines]


def _strict_value(line: bytes, origin: str, number: int) -> Any:
    text = decoded(line, origin, number)
    code, parameter = "bad-line", None
    try:
        value = json.loads(text, object_pairs_hook=_unique)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # fails at half a surrogate pair
        return value
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} (column {error.colno}): correct the line"
        parameter = "format"
    except UnicodeEncodeError:
        message = "a \\u escape is half a surrogate pair: write the text as UTF-8"
        code = "bad-encoding"
    except RecursionError:
        message = "objects or lists inside one another without an end"
    except KeyError as error:
        message = f"the field {quoted(error.args[0])} occurs twice in one object: rename one"
        code = "duplicate"
    except ValueError:  # Python reads no integers of thousands of digits
        message = "an integer has more than 4,000 digits: correct it"
        code = "bad-number"
    raise DataError(message, origin, number, parameter=parameter, code=code)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON.

    Raises:
        KeyError: with a key that occurs twice.
    """
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise KeyError(repeated(name for name, _ in pairs)[0])
    return fields


def _key_count(data: bytes) -> int:
    """Return the number of keys in JSON: inside a text a quotation mark is escaped."""
    if len(data) < _LONG:
        return data.count(b'":') - data.count(b'\\":')
    codes = np.frombuffer(data, np.uint8)
    keys = (codes[2:] == ord(":")) & (codes[1:-1] == ord('"'))
    if b"\\" in data:
        keys &= codes[:-2] != ord("\\")
    return int(np.count_nonzero(keys))
