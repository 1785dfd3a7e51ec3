"""JSON lines of preference data sets: see `bpa_ppl.rows.preference_pairs`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, TextIO

from bpa_ppl.errors import UsageError
from bpa_ppl.formats.base import NBestFormat, ReadOptions
from bpa_ppl.formats.jsonl import json_rows
from bpa_ppl.nbest import NBest
from bpa_ppl.rows import Rows
from bpa_ppl.rows.preference_pairs import CHOSEN, REJECTED


class PreferencePairs(NBestFormat, frozen=True):
    """Pairs of a chosen and a rejected answer."""

    required: ClassVar[tuple[tuple[str, ...], ...]] = ((CHOSEN, REJECTED),)

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        r"""Yield the rows of each block of whole lines.

        Raises:
            DataError: with file, line and field, if a line is not such a pair.

        >>> line = b'{"chosen": {"text": "a", "lm": 2}, "rejected": {"text": "b", "lm": 1}}\n'
        >>> rows = next(PreferencePairs().parse([line], ReadOptions("pairs.jsonl")))
        >>> rows.strings, rows.names, rows.features.tolist()
        (['a', 'b'], ('lm',), [[2.0], [1.0]])
        """
        return json_rows(blocks, options)

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Raise an error: lists of other sizes do not fit into pairs.

        Raises:
            UsageError: always.
        """
        problem = "lists cannot be written as preference pairs: write jsonl"
        raise UsageError(problem, parameter="format", code="not-supported")
