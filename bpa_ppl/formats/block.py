"""Blocks, which every format yields: columns of consecutive records, with line numbers.

Also the names that columns have in files.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bpa_ppl._runtime.arrays import Int64
from bpa_ppl.lists.nbest import Which, take

#: Names of fields that are not features: of a candidate, and of its sentence.
TEXT, TOTAL, CANDIDATES = "text", "total", "candidates"
ID, SOURCE, REFERENCE, REFERENCES = "id", "source", "reference", "references"
#: The integer of a sentence whose id is a text, where it is not its place among the ids.
ID_NUMBER = "id_number"
#: Extras of a sentence that name candidates by their places.
PREFERENCES, TIES, RANKINGS = JUDGEMENTS = "preferences", "ties", "rankings"
#: Prefix of the names of sentence extras where each record is a candidate.
OF_SENTENCE = "sentence."


class Block(NamedTuple):
    """The columns of consecutive records of a file; see `bpa_ppl.formats.schema` for their meaning.

    A record is a candidate, or a sentence with its candidates. A column of candidates is an array
    of floats, in which NaN is missing, or a sequence of any values, in which None is missing.

    Attributes:
        candidates: by name, one value per candidate.
        sentences: by name, one value per record.
        parent: (candidates,) the record of each candidate, in ascending order; None where each
            record is a candidate.
        line: (records,) the line, or the number, of each record.
    """

    candidates: dict[str, Any]
    sentences: dict[str, Any]
    parent: Int64 | None
    line: Int64

    @property
    def parents(self) -> Int64:
        """The record of each candidate."""
        return np.arange(len(self.line)) if self.parent is None else self.parent

    @property
    def sizes(self) -> Int64:
        """The number of candidates of each record."""
        return np.bincount(self.parents, minlength=len(self.line))

    def select(self, records: Which, rows: Which) -> Block:
        """Return some records and some of their candidates, in the same order."""
        parent = self.parent
        if parent is not None:
            parent = np.searchsorted(np.arange(len(self.line))[records], parent[rows])
        return self._replace(
            candidates=take(self.candidates, rows),
            sentences=take(self.sentences, records),
            parent=parent,
            line=self.line[records],
        )

    def slice(self, start: int, stop: int | None = None) -> Block:
        """Return some consecutive records."""
        records = rows = slice(start, len(self.line) if stop is None else stop)
        if self.parent is not None:
            rows = slice(*np.searchsorted(self.parent, [records.start, records.stop]).tolist())
        return self.select(records, rows)
