"""JSON lines: one sentence with its candidates per line, or, in the long form, one hypothesis.

    {"id": 0, "source": "…", "references": ["…"], "candidates": [{"text": "…", "lm": -1.5}, …]}
    {"id": 0, "text": "…", "lm": -1.5}

See `bpa_ppl.rows.schema` for the meaning of the fields; or a line is two answers, of which one is
preferred, as in `bpa_ppl.rows.preference_pairs`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, ClassVar, TextIO

import msgspec
import numpy as np

from bpa_ppl.errors import DataError, quoted
from bpa_ppl.formats.base import PAIRS, TableFormat, json_keys
from bpa_ppl.formats.numbers import printed
from bpa_ppl.formats.streams import InputFile, decoded, line_count
from bpa_ppl.formats.uniform_lines import key_count, uniform_columns
from bpa_ppl.labels import repeated
from bpa_ppl.nbest import NBest
from bpa_ppl.rows.base import Columns, ReadOptions
from bpa_ppl.rows.names import CANDIDATES, ID, REFERENCES, SOURCE, TEXT
from bpa_ppl.rows.readers import RecordReader
from bpa_ppl.rows.schema import NUMBER, kind_of, looks_numeric
from bpa_ppl.rows.writing import Written, written

_DECODER = msgspec.json.Decoder()
_PIECE = 1 << 17  # bytes of lines that are decoded at once


class Jsonl(TableFormat, frozen=True):
    """JSON lines, nested or long; they are written nested.

    Attributes:
        candidates: the field of the candidates, in a file that is read; the names of other fields
            are those of `TableFormat`.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")
    required: ClassVar[tuple[tuple[str, ...], ...]] = ((CANDIDATES,), (ID, TEXT), *PAIRS)

    candidates: str = CANDIDATES

    def detect(self, first_line: bytes) -> bool:
        """Return whether the first line is an object with candidates, or with an id and a text.

        >>> Jsonl().detect(b'{"id": 0, "text": "a cat"}'), Jsonl().detect(b'{"LM0": 0.5}')
        (True, False)
        """
        if json_keys(first_line) or not first_line.lstrip().startswith(b"{"):
            return super().detect(first_line)
        # Like a record, but not JSON: reading it says what is wrong.
        return b'"candidates"' in first_line or b'"text"' in first_line

    def columns(self, file: InputFile, options: ReadOptions) -> Iterator[Columns]:
        r"""Yield the columns of each block of lines.

        Lines that all have the fields of the first one are decoded in less time.

        Raises:
            DataError: with file, line and field, if a line is not JSON, has a key twice, or has a
                field of another type than the lines before.

        >>> file = InputFile(b'{"id": 7, "candidates": [{"text": "a cat", "scores": {"lm": -1}}]}')
        >>> next(Jsonl().columns(file, ReadOptions("dev"))).hypotheses
        {'text': ['a cat'], 'scores.lm': array([-1.])}
        """
        reader, first = RecordReader(options), 1
        uniform = None
        for block in pieces_of(file.blocks()):
            lines = range(first, first + line_count(block))
            if first == 1 and not options.names.names:
                with suppress(ValueError, RecursionError, TypeError):
                    uniform = uniform_columns(_DECODER.decode(block[: block.index(b"\n")]))
            first = lines.stop
            columns = None if uniform is None else uniform(block, lines)
            if columns is None:
                uniform = None
                records, numbers = _values(block, lines, options.origin)
                columns = reader.columns(records, numbers) if records else None
            if columns is not None:
                reader.nested = columns.nested
                yield columns

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists.

        Raises:
            DataError: if a name is that of a field with another meaning.

        >>> from bpa_ppl import from_lists
        >>> import sys
        >>> lists = from_lists([["a cat"]], [[[-1.5]]], ["lm"], references=["the cat"])
        >>> Jsonl().write(lists, sys.stdout)
        {"id": 0, "references": ["the cat"], "candidates": [{"text": "a cat", "lm": -1.5}]}
        """
        columns = written(nbest, False, _fits, _is_json)
        printed_columns = {n: printed(v, missing="null") for n, v in columns.numbers.items()}
        ids = nbest.ids
        for sentence in range(len(nbest)):
            fields: dict[str, Any] = {ID: ids[sentence]}
            if nbest.sources is not None:
                fields[SOURCE] = nbest.sources[sentence]
            if nbest.references is not None:
                fields[REFERENCES] = nbest.references[sentence]
            fields |= {n: _plain(of)[sentence] for n, of in columns.sentence_extras.items()}
            hypotheses = ", ".join(_hypotheses(nbest, columns, printed_columns, sentence))
            whole = json.dumps(fields, ensure_ascii=False)[:-1]
            file.write(f'{whole}, "{CANDIDATES}": [{hypotheses}]}}\n')


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


def _hypotheses(
    nbest: NBest, columns: Written, numbers: Mapping[str, Sequence[str]], sentence: int
) -> Iterator[str]:
    """Yield each hypothesis as JSON."""
    rows = nbest.rows(sentence)
    names = [f", {json.dumps(name, ensure_ascii=False)}: " for name in numbers]
    dump = json.JSONEncoder(ensure_ascii=False).encode
    for row in range(rows.start, rows.stop):
        values = [name + values[row] for name, values in zip(names, numbers.values(), strict=True)]
        extras = [f", {dump(n)}: {dump(of[row])}" for n, of in columns.extras.items()]
        yield f'{{"{TEXT}": {dump(nbest.text(row))}{"".join(values)}{"".join(extras)}}}'


def _values(block: bytes, lines: range, origin: str) -> tuple[list[Any], Sequence[int]]:
    with suppress(ValueError, RecursionError):
        values: list[Any] = _DECODER.decode_lines(block)
        if len(values) == len(lines) and has_all_keys(block, values):
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


def strict_values(
    block: bytes, origin: str, first: int, parameter: str = "format"
) -> tuple[list[Any], list[int]]:
    r"""Return what each line says, and its number; NaN and Infinity are numbers.

    Args:
        block: the lines.
        origin: the name of the file.
        first: the number of the first line.
        parameter: that lines which are not JSON are an error of.

    Raises:
        DataError: with file and line, if one is not JSON, or an object has a key twice.

    >>> strict_values(b'{"a": 1, "a": 2}\n', "dev.jsonl", 3)
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: dev.jsonl:3: the field 'a' occurs twice in one object: rename one
    """
    lines = [(n, line) for n, line in enumerate(block[:-1].split(b"\n"), first) if line.strip()]
    values = [_strict_value(line, origin, n, parameter) for n, line in lines]
    return values, [n for n, _ in lines]


def _strict_value(line: bytes, origin: str, number: int, parameter_of_lines: str) -> Any:
    text = decoded(line, origin, number)
    code, parameter = "bad-line", None
    try:
        value = json.loads(text, object_pairs_hook=unique_fields)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # fails at half a surrogate pair
        return value
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} (column {error.colno}): correct the line, or create the "
        message += "file again if the line is cut off"
        parameter = parameter_of_lines
    except UnicodeEncodeError:
        message = "a \\u escape is half a surrogate pair: write the text as UTF-8"
        code = "bad-encoding"
    except DataError as error:
        message, code = error.message, error.code
    except (RecursionError, ValueError):  # Python reads no integers of thousands of digits
        message = "objects nest too deeply, or an integer has more than 4,000 digits: correct it"
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


def require_unique_fields(data: bytes, values: Any, *, lines: bool = False) -> None:
    """Refuse JSON in which an object has a key twice.

    Args:
        data: what was decoded.
        values: what it says.
        lines: whether each line is a value.

    Raises:
        DataError: with the key.
        ValueError: if an integer has thousands of digits.

    >>> require_unique_fields(b'{"a": 1, "a": 2}', {"a": 2})
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: the field 'a' occurs twice in one object: rename one
    """
    if not has_all_keys(data, values):
        for text in filter(bytes.strip, data.split(b"\n") if lines else [data]):
            json.loads(text, object_pairs_hook=unique_fields)


def has_all_keys(data: bytes, values: Any) -> bool:
    """Return whether values have all keys of their JSON: of equal keys msgspec keeps the last.

    It may return false because of blanks before colons.

    >>> has_all_keys(b'[{"a": 1}, {"b": 2}]', [{"a": 1}, {"b": 2}])
    True
    >>> has_all_keys(b'{"a": 1, "a": 2}', {"a": 2})
    False
    """
    keys, level = 0, [values]
    while not {dict, list}.isdisjoint(map(type, level)):
        objects = [value for value in level if type(value) is dict]
        lists = [value for value in level if type(value) is list]
        keys += sum(map(len, objects))
        level = list(chain.from_iterable([*map(dict.values, objects), *lists]))
    return keys == key_count(data)
