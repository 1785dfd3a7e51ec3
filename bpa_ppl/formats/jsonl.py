"""JSON lines: a sentence with its candidates on each line, or a candidate in the long form.

    {"id": 0, "source": "…", "references": ["…"],
     "candidates": [{"text": "…", "features": {"lm": -1.5}}, …]}
    {"id": 0, "text": "…", "features": {"lm": -1.5}}

See `bpa_ppl.formats.schema` for the meaning of the fields; or a line is two answers, of which one
is preferred, as in `bpa_ppl.formats.preference_rows`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, TextIO

import msgspec
import numpy as np

from bpa_ppl._runtime.streams import InputFile, count_lines
from bpa_ppl._runtime.values import format_numbers, json_object, parse_strictly
from bpa_ppl.formats.block import CANDIDATES, ID, REFERENCES, SOURCE, TEXT, TOTAL, Block
from bpa_ppl.formats.format import COLUMNS, NBestFormat
from bpa_ppl.formats.preference_rows import PAIRS
from bpa_ppl.formats.records import read_rows
from bpa_ppl.formats.roles import OF_FEATURES
from bpa_ppl.formats.schema import Schema
from bpa_ppl.formats.writing import Writable, select_writable
from bpa_ppl.lists.nbest import NBest

_DECODER = msgspec.json.Decoder()
_PIECE = 1 << 19  # bytes of lines that are decoded at once, which fit into the processor's cache


class Jsonl(NBestFormat, frozen=True):
    """JSON lines, nested or long; they are written nested."""

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")
    required: ClassVar[tuple[tuple[str, ...], ...]] = ((CANDIDATES,), (ID, TEXT), *PAIRS)
    nan_is_missing: ClassVar[bool] = True
    usual_names: ClassVar[tuple[str, ...]] = (*COLUMNS, CANDIDATES)

    def detect(self, first_line: bytes) -> bool:
        """Return whether the first line is an object with candidates, or with an id and a text.

        >>> Jsonl().detect(b'{"id": 0, "text": "a cat"}'), Jsonl().detect(b'{"LM0": 0.5}')
        (True, False)
        """
        if json_object(first_line) or not first_line.lstrip().startswith(b"{"):
            return super().detect(first_line)
        # Like a record, but not JSON: reading it says what is wrong.
        return b'"candidates"' in first_line or b'"text"' in first_line

    def blocks(self, file: InputFile, schema: Schema) -> Iterator[Block]:
        r"""Yield the columns of each block of lines.

        >>> file = InputFile(b'{"id": 7, "candidates": [{"text": "a cat", "scores": {"lm": -1}}]}')
        >>> next(Jsonl().blocks(file, Schema("dev"))).candidates
        {'text': ['a cat'], 'scores.lm': [-1]}
        """
        return read_rows(_read_values(file, schema.origin), schema)

    def write(self, lists: NBest, file: TextIO) -> None:
        """Write the lists.

        >>> from bpa_ppl import from_lists
        >>> import sys
        >>> lists = from_lists([["a cat"]], [[[-1.5]]], ["lm"], references=["the cat"])
        >>> Jsonl().write(lists, sys.stdout)
        {"id": 0, "references": ["the cat"], "candidates": [{"text": "a cat", "features": ...}]}
        """
        columns = select_writable(lists, False, _fits, _is_json)
        features = {n: format_numbers(values) for n, values in columns.features.items()}
        totals = None if columns.totals is None else format_numbers(columns.totals)
        ids = lists.ids
        for sentence in range(len(lists)):
            fields: dict[str, Any] = {ID: ids[sentence]}
            if lists.sources is not None:
                fields[SOURCE] = lists.sources[sentence]
            if lists.references is not None:
                fields[REFERENCES] = lists.references[sentence]
            fields |= {n: _plain(of)[sentence] for n, of in columns.sentence_extras.items()}
            candidates = ", ".join(_candidates(lists, columns, features, totals, sentence))
            whole = json.dumps(fields, ensure_ascii=False)[:-1]
            file.write(f'{whole}, "{CANDIDATES}": [{candidates}]}}\n')


def _fits(values: Sequence[Any]) -> bool:
    """Return whether a column of candidates reads back: fields of objects become columns."""
    if isinstance(values, np.ndarray):
        return values.ndim == 1 and values.dtype.kind in "biuf" and not np.isinf(values).any()
    return not any(isinstance(value, dict) for value in values) and _is_json(values)


def _is_json(values: Sequence[Any]) -> bool:
    try:
        json.dumps(_plain(values), allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _plain(values: Any) -> Any:
    """Return the values of an array as Python's, None in place of NaN; any others as they are."""
    if not isinstance(values, np.ndarray):
        return values
    plain = values.tolist()
    return [None if v != v else v for v in plain] if values.dtype.kind == "f" else plain


def _candidates(
    lists: NBest,
    columns: Writable,
    features: Mapping[str, Sequence[str]],
    totals: Sequence[str] | None,
    sentence: int,
) -> Iterator[str]:
    """Yield each candidate as JSON."""
    rows = lists.rows(sentence)
    dump = json.JSONEncoder(ensure_ascii=False).encode
    names = [f"{dump(name)}: " for name in features]
    extras = {f", {dump(name)}: ": _plain(of[rows]) for name, of in columns.extras.items()}
    for place, row in enumerate(range(rows.start, rows.stop)):
        fields = [f'"{TEXT}": {dump(lists.text(row))}']
        if features:
            numbers = [n + values[row] for n, values in zip(names, features.values(), strict=True)]
            fields.append(f'"{OF_FEATURES[:-1]}": {{{", ".join(numbers)}}}')
        if totals is not None:
            fields.append(f'"{TOTAL}": {totals[row]}')
        others = (name + dump(of[place]) for name, of in extras.items())
        yield f"{{{', '.join(fields)}{''.join(others)}}}"


def _read_values(file: InputFile, origin: str) -> Iterator[tuple[list[Any], Sequence[int]]]:
    """Yield the values of consecutive lines, and their numbers."""
    first = 1
    for block in file.chunks(_PIECE):
        values: list[Any] = []
        lines: Sequence[int] = range(first, first + count_lines(block))
        with suppress(ValueError, RecursionError):
            values = _DECODER.decode_lines(block)
        if len(values) != len(lines):
            values, lines = parse_strictly(block, origin, first)
        first += count_lines(block)
        if values:
            yield values, lines
