"""JSON lines: a sentence with its candidates a line, or, in the long form, a hypothesis a line.

    {"id": 0, "source": "…", "references": ["…"], "candidates": [{"text": "…", "lm": -1.5}, …]}
    {"id": 0, "text": "…", "lm": -1.5}

`bpa_ppl.rows.records` says what becomes of the fields. Lines that have no other fields than those
before are decoded by msgspec into classes made for them; all others are read one by one, which
gives the same rows or says what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TextIO

import msgspec
import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.formats.base import NBestFormat, ReadOptions
from bpa_ppl.formats.json_blocks import BlockDecoder, example_of, strict_json
from bpa_ppl.formats.numbers import printed
from bpa_ppl.nbest import NBest
from bpa_ppl.rows import Rows
from bpa_ppl.rows.base import CANDIDATES, ID, OF_SENTENCE, REFERENCES, SOURCE, TEXT
from bpa_ppl.rows.records import NUMBER, RecordReader, kind_of, looks_numeric
from bpa_ppl.rows.writing import Written, written


class Jsonl(NBestFormat, frozen=True):
    """JSON lines, nested or long.

    Attributes:
        long: whether to write a hypothesis a line; read are both.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".jsonl", ".ndjson")

    long: bool = False

    def detect(self, first_line: bytes) -> bool:
        """Say whether the first line is an object with candidates, or with an id and a text.

        >>> Jsonl().detect(b'{"id": 0, "text": "a cat"}'), Jsonl().detect(b'{"LM0": 0.5}')
        (True, False)
        """
        if not first_line.lstrip().startswith(b"{"):
            return False
        try:
            keys = msgspec.json.decode(first_line, type=dict[str, msgspec.Raw]).keys()
        except (ValueError, RecursionError):
            return b'"candidates"' in first_line or (b'"text"' in first_line)
        return CANDIDATES in keys or {ID, TEXT} <= keys

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        r"""Yield the rows of each block of whole lines.

        Raises:
            DataError: with file, line and field, if a line is no JSON, has a key twice, or a
                field of another type than in the lines before.

        >>> lines = b'{"id": 7, "candidates": [{"text": "a cat", "scores": {"lm": -1}}]}\n'
        >>> rows = next(Jsonl().parse([lines], ReadOptions("dev")))
        >>> rows.names, rows.ids.tolist(), rows.features.tolist()
        (('scores.lm',), [7], [[-1.0]])
        """
        reader = RecordReader(options.origin, options.bad, options.first_id, nan_is_missing=False)
        fast: BlockDecoder | None = None
        example: Any = None
        first = 1
        for block in blocks:
            lines = block[:-1].split(b"\n")
            rows = None if fast is None else fast.rows(block, lines, first)
            if rows is None:
                layout = reader.layout
                for number, line in enumerate(lines, first):
                    if line.strip():
                        record = strict_json(line, options.origin, number)
                        before = reader.layout
                        reader.add(record, number)
                        if reader.layout is not before:
                            example = example_of(example, record)
                if reader.layout is not layout:
                    fast = BlockDecoder.of(example, reader)
                rows = reader.rows() if reader.layout is not None else None
            if rows is not None:
                yield rows
            first += len(lines)
        if reader.layout is None:
            raise DataError("empty: there are no n-best lists in it", options.origin)

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
    """Say whether a column of hypotheses reads back: numbers would be features."""
    if isinstance(values, np.ndarray):
        return False
    first = next((value for value in values if value not in (None, "")), None)
    if first is None or (isinstance(first, str) and looks_numeric(first)):
        return False
    numbers = any(value is not None and kind_of(value) == NUMBER for value in values)
    return not numbers and not _objects(values) and _is_json(values)


def _objects(values: Sequence[Any]) -> bool:
    return any(isinstance(value, dict) for value in values)


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
