"""JSON lines of preference data sets: see `bpa_ppl.rows.preference_pairs`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from bpa_ppl.formats.base import NBestFormat
from bpa_ppl.formats.jsonl import json_columns
from bpa_ppl.formats.streams import InputFile
from bpa_ppl.rows import Columns, ReadOptions
from bpa_ppl.rows.preference_pairs import CHOSEN, REJECTED


class PreferencePairs(NBestFormat, frozen=True):
    """Pairs of a chosen and a rejected answer."""

    required: ClassVar[tuple[tuple[str, ...], ...]] = ((CHOSEN, REJECTED),)

    def columns(self, file: InputFile, options: ReadOptions) -> Iterator[Columns]:
        r"""Yield the columns of each block of lines.

        Raises:
            DataError: with file, line and field, if a line is not such a pair.

        >>> line = b'{"chosen": {"text": "a", "lm": 2}, "rejected": {"text": "b", "lm": 1}}'
        >>> columns = next(PreferencePairs().columns(InputFile(line), ReadOptions("pairs.jsonl")))
        >>> columns.hypotheses
        {'text': ['a', 'b'], 'lm': array([2., 1.])}
        """
        return json_columns(file.blocks(), options)
