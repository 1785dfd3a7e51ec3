"""What a reader yields: rows of hypotheses, with what is known of their sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.columns import references, references_by_id, take

# Features are stored as 32-bit floats, and numbers from here on are rounded to infinity: half a
# unit of the last place above the largest of them.
TOO_LARGE = np.float64((2.0 - 2.0**-24) * 2.0**127)
#: Names of fields that are not features: of a hypothesis, and of its sentence.
TEXT, TOTAL, CANDIDATES = "text", "total", "candidates"
ID, SOURCE, REFERENCE, REFERENCES = "id", "source", "reference", "references"
#: Prefix of the names of sentence extras where each record is a hypothesis.
OF_SENTENCE = "sentence."
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Rows(NamedTuple):
    """Consecutive hypotheses of a file.

    Other rows of the file may have more or fewer columns.

    Attributes:
        names: one feature name per column.
        ids: (rows,) int64, the sentence ids as printed.
        lines: (rows,) int64, the 1-based lines of the file.
        features: (rows, features) float32; NaN is missing.
        totals: (rows,) float32, or None where the file has none; NaN is missing.
        strings: hypothesis texts, not necessarily distinct unless `distinct` is true.
        string_index: (rows,) int32 into `strings`.
        dropped: the sentence ids of hypotheses left out for a bad value.
        extras: more columns by name, one value per row: arrays, or sequences in which None is
            missing.
        sources: the source text of the sentence of each row, or None.
        references: the tuple of references of the sentence of each row; empty or None where it
            has none.
        sentence_extras: more columns by name; all rows of a sentence have the same value.
        totals_normalised: whether the totals may be divided by a length.
        empty: the ids of sentences without candidates, and the source of each where it has one.
        any_order: whether the rows of a sentence need not be adjacent.
        counted: whether the ids number texts, the extra `id` of the sentences, as they appear.
        distinct: whether the strings are known to be distinct, and all used.
    """

    names: tuple[str, ...]
    ids: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    features: npt.NDArray[np.float32]
    totals: npt.NDArray[np.float32] | None
    strings: Sequence[str]
    string_index: npt.NDArray[np.int32]
    dropped: tuple[int, ...] = ()
    extras: Mapping[str, Sequence[Any]] = _NOTHING
    sources: Sequence[str | None] | None = None
    references: Sequence[tuple[str, ...] | None] | None = None
    sentence_extras: Mapping[str, Sequence[Any]] = _NOTHING
    totals_normalised: bool = False
    empty: tuple[tuple[int, str | None], ...] = ()
    any_order: bool = False
    counted: bool = False
    distinct: bool = False

    def part(self, start: int, stop: int | None = None) -> Rows:
        """Return consecutive rows."""
        if start == 0 and (stop is None or stop >= len(self.ids)):
            return self
        return self.select(slice(start, stop))

    def select(self, rows: slice | npt.NDArray[np.int64]) -> Rows:
        """Return some of the rows, in that order."""
        whole = {"names", "strings", "dropped", "empty", "totals_normalised", "any_order"}
        whole |= {"counted", "distinct"}
        fields = {n: v for n, v in self._asdict().items() if n not in whole}
        columns = {n: take(v, rows) for n, v in fields.items()}
        return self._replace(**columns, distinct=False)


class SentenceLines(NamedTuple):
    """One entry for each sentence of a whole text, or of some of it, such as its references.

    Attributes:
        lines: one entry per sentence; or entries by id, as `columns.id_key` returns it.
        origin: where they are from, for messages.
    """

    lines: Sequence[Any] | Mapping[Any, Any]
    origin: str

    @classmethod
    def of_references(cls, given: Any) -> SentenceLines:
        """Return references: a text or several for each sentence, or by id for some.

        Raises:
            UsageError: if they are anything else.
        """
        if isinstance(given, Mapping):
            return cls(references_by_id(given), "the references")
        return cls(references(given), "the text")
