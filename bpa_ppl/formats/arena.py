"""Tables of arenas, as CSV, TSV or JSON lines: see `bpa_ppl.rows.preference_pairs`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, ClassVar

from bpa_ppl.formats.base import NBestFormat, json_keys
from bpa_ppl.formats.jsonl import json_columns
from bpa_ppl.formats.numbers import csv_table
from bpa_ppl.formats.separated import header_cells, separator_of
from bpa_ppl.formats.streams import InputFile, decoded
from bpa_ppl.rows import Columns, ReadOptions
from bpa_ppl.rows.preference_pairs import ANSWERS, MODEL_A, MODEL_B, PROMPT, WINNER
from bpa_ppl.rows.readers import table_columns

_SEPARATORS = ",;\t"


class Arena(NBestFormat, frozen=True):
    """Battles of two models: `model_a`, `model_b` and the `winner`."""

    required: ClassVar[tuple[tuple[str, ...], ...]] = ((MODEL_A, MODEL_B, WINNER),)

    def field_names(self, first_line: bytes) -> list[str]:
        """Return the names of the fields of a first line: an object of JSON, or a header.

        >>> Arena().field_names(b"model_a,model_b,winner")
        ['model_a', 'model_b', 'winner']
        """
        separator = separator_of(first_line, _SEPARATORS)
        return json_keys(first_line) or header_cells(first_line, separator)

    def columns(self, file: InputFile, options: ReadOptions) -> Iterator[Columns]:
        r"""Yield the columns of each block of lines, or of the whole table.

        Raises:
            DataError: with file, line and field, if a line is not such a battle.

        >>> file = InputFile(b"model_a,model_b,winner,rm_a,rm_b\nX,Y,model_b,1.5,2")
        >>> columns = next(Arena().columns(file, ReadOptions("arena.csv")))
        >>> columns.hypotheses["system"], columns.hypotheses["rm"].tolist()
        (['X', 'Y'], [1.5, 2.0])
        >>> columns.sentences["preferences"]
        [[[1, 0]]]
        """
        blocks = file.blocks()
        first = next(blocks, b"")
        if first.lstrip()[:1] == b"{":
            yield from json_columns(chain([first], blocks), options)
            return
        import pyarrow as pa

        separator = separator_of(first.partition(b"\n")[0], _SEPARATORS)
        texts = (PROMPT, WINNER, *(f"{name}_{side}" for name in ANSWERS for side in "ab"))
        data = first + b"".join(blocks)
        decoded(data, options.origin, 1)  # raises if it is not UTF-8
        try:
            types = dict.fromkeys(texts, pa.string())
            parsing: dict[str, Any] = {"missing": None, "ignore_empty_lines": True}
            table = csv_table(data, separator, types, quoted=True, header=True, **parsing)
        except pa.ArrowException as error:
            reason = str(error).splitlines()[0].removeprefix("CSV parse error: ")
            row = re.match(r"Row #(\d+): ", reason)
            problem = f"not a table ({reason[row.end() :] if row else reason})"
            remedy = f"give each row the cells of the header, and quote texts with {separator!r}"
            raise options.error(f"{problem}: {remedy}", int(row[1]) if row else None) from error
        if not len(table):
            raise options.error("empty: there are no battles in it", code="no-data")
        yield table_columns(options, table, first=2)
