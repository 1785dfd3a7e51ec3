"""JSON lines: one sentence with its candidates per line, or, in the long form, one hypothesis.

    {"id": 0, "source": "…", "references": ["…"], "candidates": [{"text": "…", "lm": -1.5}, …]}
    {"id": 0, "text": "…", "lm": -1.5}

See `bpa_ppl.rows.schema` for the meaning of the fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, TextIO

import msgspec
import numpy as np

from bpa_ppl.errors import DataError, quoted
from bpa_ppl.formats.base import ReadOptions, TableFormat, json_keys
from bpa_ppl.formats.numbers import printed
from bpa_ppl.formats.streams import decoded, line_count
from bpa_ppl.formats.uniform_lines import UniformLines
from bpa_ppl.labels import repeated
from bpa_ppl.nbest import NBest
from bpa_ppl.rows import Rows
from bpa_ppl.rows.base import CANDIDATES, ID, OF_SENTENCE, REFERENCES, SOURCE, TEXT
from bpa_ppl.rows.names import ColumnNames
from bpa_ppl.rows.readers import RecordReader, key_count
from bpa_ppl.rows.schema import NUMBER, SchemaReader, kind_of, looks_numeric
from bpa_ppl.rows.writing import Written, written

_DECODER = msgspec.json.Decoder()
_PIECE = 1 << 17  # bytes of lines that are decoded at once


class Jsonl(TableFormat, frozen=True):
    """JSON lines, nested or long.

    Attributes:
        candidates: the field of the candidates, in a file that is read; the names of other fields
            are those of `TableFormat`.
        long: whether to write one hypothesis per line; both forms are read.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")
    required: ClassVar[tuple[tuple[str, ...], ...]] = ((CANDIDATES,), (ID, TEXT))

    candidates: str = CANDIDATES
    long: bool = False

    def detect(self, first_line: bytes) -> bool:
        """Return whether the first line is an object with candidates, or with an id and a text.

        >>> Jsonl().detect(b'{"id": 0, "text": "a cat"}'), Jsonl().detect(b'{"LM0": 0.5}')
        (True, False)
        """
        if json_keys(first_line) or not first_line.lstrip().startswith(b"{"):
            return super().detect(first_line)
        # Like a record, but not JSON: reading it says what is wrong.
        return b'"candidates"' in first_line or b'"text"' in first_line

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        r"""Yield the rows of each block of whole lines.

        Raises:
            DataError: with file, line and field, if a line is not JSON, has a key twice, or has a
                field of another type than the lines before.

        >>> lines = b'{"id": 7, "candidates": [{"text": "a cat", "scores": {"lm": -1}}]}\n'
        >>> rows = next(Jsonl().parse([lines], ReadOptions("dev")))
        >>> rows.names, rows.ids.tolist(), rows.features.tolist()
        (('scores.lm',), [7], [[-1.0]])
        """
        return json_rows(blocks, options, names=self.names(options.origin))

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists.

        Raises:
            DataError: if a name is that of a field with another meaning.

        >>> import sys
        >>> lists = NBest.from_lists([["a cat"]], [[[-1.5]]], ["lm"], references=["the cat"])
        >>> Jsonl().write(lists, sys.stdout)
        {"id": 0, "references": ["the cat"], "candidates": [{"text": "a cat", "lm": -1.5}]}
        """
        columns = written(nbest, self.long, _fits, _is_json)
        printed_columns = {n: printed(v, missing="null") for n, v in columns.numbers.items()}
        for sentence in range(len(nbest)):
            whole = _sentence(columns, sentence, self.long)
            hypotheses = _hypotheses(nbest, columns, printed_columns, sentence)
            if self.long:
                file.writelines(f"{{{whole}, {fields}}}\n" for fields in hypotheses)
            else:
                inside = ", ".join(f"{{{fields}}}" for fields in hypotheses)
                file.write(f'{{{whole}, "{CANDIDATES}": [{inside}]}}\n')


def _fits(values: Sequence[Any]) -> bool:
    """Return whether a column of hypotheses reads back: numbers would be features."""
    if isinstance(values, np.ndarray):
        return False
    first = next((value for value in values if value not in (None, "")), None)
    if first is None or (isinstance(first, str) and looks_numeric(first)):
        return False
    other = any(isinstance(v, dict) or (v is not None and kind_of(v) == NUMBER) for v in values)
    return not other and _is_json(values)


def _is_json(values: Sequence[Any]) -> bool:
    try:
        json.dumps(_plain(values), allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _plain(values: Any) -> Any:
    return values.tolist() if isinstance(values, np.ndarray) else values


def _sentence(columns: Written, sentence: int, long: bool) -> str:
    """Return the fields of a sentence, without braces."""
    prefix = OF_SENTENCE if long else ""
    fields: dict[str, Any] = {ID: columns.ids[sentence]}
    if columns.sources is not None:
        fields[SOURCE] = columns.sources[sentence]
    if columns.references is not None:
        fields[REFERENCES] = columns.references[sentence]
    extras = columns.sentence_extras.items()
    fields |= {prefix + name: _plain(values)[sentence] for name, values in extras}
    return json.dumps(fields, ensure_ascii=False)[1:-1]


def _hypotheses(
    nbest: NBest, columns: Written, numbers: Mapping[str, Sequence[str]], sentence: int
) -> Iterator[str]:
    """Yield the fields of each hypothesis, without braces."""
    rows = nbest.rows(sentence)
    names = [f", {json.dumps(name, ensure_ascii=False)}: " for name in numbers]
    dump = json.JSONEncoder(ensure_ascii=False).encode
    for row in range(rows.start, rows.stop):
        values = [name + values[row] for name, values in zip(names, numbers.values(), strict=True)]
        extras = [f", {dump(n)}: {dump(of[row])}" for n, of in columns.extras.items()]
        yield f'"{TEXT}": {dump(nbest.text(row))}{"".join(values)}{"".join(extras)}'


def json_rows(
    blocks: Iterable[bytes],
    options: ReadOptions,
    names: ColumnNames | None = None,
) -> Iterator[Rows]:
    r"""Yield the rows of each block of lines with records, as `bpa_ppl.rows.readers` has them.

    Args:
        blocks: of whole lines.
        options: how to read.
        names: of the fields, if they differ from the usual ones.

    Raises:
        DataError: with file, line and field, if a line is not JSON, has a key twice, or is not
            as the schema says; or if there are no records.

    >>> block = b'{"id": 7, "text": "a cat", "lm": -1}\n'
    >>> next(json_rows([block], ReadOptions("dev"))).names
    ('lm',)
    """
    schema = SchemaReader(
        options.origin, options.bad, options.first_id, nan_is_missing=False, names=names
    )
    reader = RecordReader(schema)
    uniform: UniformLines | None = None
    first = 1
    for block in pieces_of(blocks):
        numbers = range(first, first + line_count(block))
        if first == 1 and not schema.names.names:
            uniform = _uniform_lines(block)
        first = numbers.stop
        if uniform is not None:
            fields = uniform.fields(block, numbers)
            if fields is not None and uniform.keys == _key_count(block):
                yield schema.rows(fields)
                continue
            reader.nested, uniform = uniform.nested, None
        records, lines = _values(block, numbers, options.origin)
        if not records:
            continue
        rows = reader.rows(records, lines)
        if reader.keys != _key_count(block):  # msgspec keeps the last of equal keys
            strict_values(block, options.origin, lines[0])
        yield rows
    if not schema.records:
        raise options.error("empty: there are no n-best lists in it", code="no-data")


def _uniform_lines(block: bytes) -> UniformLines | None:
    """Return a decoder of lines like the first one, if there can be one."""
    try:
        return UniformLines(_DECODER.decode(block[: block.index(b"\n")]))
    except (ValueError, RecursionError, TypeError):
        return None


def json_values(
    blocks: Iterable[bytes], origin: str
) -> Iterator[tuple[bytes, Sequence[Any], Sequence[int]]]:
    r"""Yield each block with what its lines say, and their numbers; blank lines are left out.

    Args:
        blocks: of whole lines.
        origin: the name of the file, for messages.

    Raises:
        DataError: with file and line, if one is not JSON, or an object has a key twice.

    >>> [found[1:] for found in json_values([b'{"a": 1}\n\n[2]\n'], "dev.jsonl")]
    [([{'a': 1}, [2]], [1, 3])]
    """
    first = 1
    for block in blocks:
        count = line_count(block)
        values, lines = _values(block, range(first, first + count), origin)
        if values:
            if not has_all_keys(block, values):
                strict_values(block, origin, lines[0])
            yield block, values, lines
        first += count


def _values(block: bytes, lines: range, origin: str) -> tuple[list[Any], Sequence[int]]:
    with suppress(ValueError, RecursionError):
        values: list[Any] = _DECODER.decode_lines(block)
        if len(values) == len(lines):
            return values, lines
    return strict_values(block, origin, lines[0])


def pieces_of(blocks: Iterable[bytes]) -> Iterator[bytes]:
    r"""Yield blocks of whole lines in smaller ones, whose values fit into the processor's cache.

    >>> [len(piece) for piece in pieces_of([b'{"a": 1}\n' * 30_000])]
    [131076, 131076, 7848]
    """
    for block in blocks:
        end = 0
        while end < len(block):
            start, end = end, block.find(b"\n", end + _PIECE) + 1 or len(block)
            yield block[start:end]


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
        value = json.loads(text, object_pairs_hook=unique_fields)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # fails at half a surrogate pair
        return value
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} (column {error.colno}): correct the line"
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
            message = "not JSON: the line is cut off within an object: remove it, or create the "
            message += "file again"
        parameter = "format"
    except UnicodeEncodeError:
        message = "a \\u escape is half a surrogate pair: write the text as UTF-8"
        code = "bad-encoding"
    except RecursionError:
        message = "objects or lists inside one another without an end"
    except DataError as error:
        message, code = error.message, error.code
    except ValueError:  # Python reads no integers of thousands of digits
        message = "an integer has more than 4,000 digits: correct it"
        code = "bad-number"
    raise DataError(message, origin, number, parameter=parameter, code=code)


def unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, for `json.loads`.

    Raises:
        DataError: with a key that occurs twice.

    >>> json.loads('{"a": 1, "b": 2}', object_pairs_hook=unique_fields)
    {'a': 1, 'b': 2}
    """
    fields = dict(pairs)
    if len(fields) != len(pairs):
        name = quoted(repeated(name for name, _ in pairs)[0])
        problem = f"the field {name} occurs twice in one object: rename one"
        raise DataError(problem, code="duplicate")
    return fields


def has_all_keys(data: bytes, values: Any) -> bool:
    """Return whether values have all keys of their JSON: of equal keys msgspec keeps the last.

    It may return false because of blanks before colons.

    >>> has_all_keys(b'[{"a": 1}, {"b": 2}]', [{"a": 1}, {"b": 2}])
    True
    >>> has_all_keys(b'{"a": 1, "a": 2}', {"a": 2})
    False
    """
    return key_count(values) == _key_count(data)


def _key_count(data: bytes) -> int:
    """Return the number of keys in JSON: inside a text a quotation mark is escaped."""
    codes = np.frombuffer(data, np.uint8)
    keys = (codes[2:] == ord(":")) & (codes[1:-1] == ord('"'))
    if b"\\" in data:
        keys &= codes[:-2] != ord("\\")
    return int(np.count_nonzero(keys))
