"""What every reader of n-best lists hands on: some rows of the table, and how to read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bpa_ppl.nbest import Float32, Int32, Int64


class ReadOptions(NamedTuple):
    """How to read one file.

    Attributes:
        source: the name of the file, for messages.
        bad: "error", or "drop" to leave out a hypothesis with a value that is no finite number.
        strict: whether fields that would be left out with a warning are an error.
    """

    source: str
    bad: str = "error"
    strict: bool = False


class Rows(NamedTuple):
    """Consecutive hypotheses of a file.

    Attributes:
        names: one feature name a column.
        ids: (rows,) int64, the sentence ids as printed.
        lines: (rows,) int64, the 1-based lines of the file.
        features: (rows, features) float32.
        totals: (rows,) float32, or None where the file has none.
        strings: distinct hypothesis texts.
        string_index: (rows,) int32 into `strings`.
        dropped: the sentence ids of hypotheses left out for a bad value.
    """

    names: tuple[str, ...]
    ids: Int64
    lines: Int64
    features: Float32
    totals: Float32 | None
    strings: Sequence[str]
    string_index: Int32
    dropped: tuple[int, ...] = ()

    def part(self, start: int, stop: int | None = None) -> Rows:
        """Return some of the rows."""
        rows = slice(start, stop)
        return self._replace(
            ids=self.ids[rows],
            lines=self.lines[rows],
            features=self.features[rows],
            totals=None if self.totals is None else self.totals[rows],
            string_index=self.string_index[rows],
        )
