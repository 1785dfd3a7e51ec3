"""WER and CER, the error rates of speech recognition.

Without settings they equal those of the package JiWER with its default transformations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.errors import DataError
from bpa_ppl.gains.metric import Lists, Metric, References
from bpa_ppl.text.words import Ragged, Vocabulary, find_starts

_BLANKS = re.compile(r"\s\s+")


class WER(Metric, frozen=True):
    """The word error rate: insertions, deletions and substitutions, in percent of the reference.

    Words are separated by spaces, or by two and more blanks of any kind, and are not changed
    otherwise. Each sentence has one reference. The counts of a candidate are its edits and the
    length of the reference in words. Without a reference word, the value is 100 for each edit.

    Args:
        case_sensitive: distinguish upper and lower case.

    Raises:
        DataError: on use, if a sentence has several references.

    >>> WER(case_sensitive=False)
    WER(case_sensitive=False)
    >>> WER().value(np.array([[3.0, 12.0], [2.0, 0.0]])).tolist()
    [25.0, 200.0]
    """

    key: ClassVar[str] = "wer"
    lower_is_better: ClassVar[bool] = True
    reported: ClassVar[bool] = False
    case_sensitive: bool = True

    width = 2

    def units(self, texts: Sequence[str]) -> Ragged:
        """Return the sequences that are compared: each word is an integer."""
        spaced = (_BLANKS.sub(" ", text).strip() for text in map(self._fold_case, texts))
        return Vocabulary().number([list(filter(None, text.split(" "))) for text in spaced])

    def counts(self, lists: Lists, references: References) -> Float64:
        from bpa_ppl.gains.levenshtein import edit_distances

        parts = [np.empty((0, self.width))]
        for texts, refs in zip(lists, references, strict=True):
            if len(refs) != 1:
                message = f"{len(refs)} references, but {self.title} takes one: use the metric ter"
                raise DataError(message, parameter="references", code="not-supported")
            units, starts = self.units([refs[0], *texts])
            edits = edit_distances(units, starts, np.arange(1, len(starts) - 1), np.arange(1))
            parts.append(np.column_stack([edits, np.full(len(edits), starts[1])]))
        return np.concatenate(parts)

    def value(self, sums: Float64) -> Float64:
        return np.asarray(100 * sums[..., 0] / np.maximum(sums[..., 1], 1))

    def details_of(self, sums: Float64) -> dict[str, float]:
        """Return the edits and the length of the references."""
        return {"edits": float(sums[0]), "reference_length": float(sums[1])}

    def gain(self, counts: Float64) -> Float64:
        return 0.0 - counts[..., 0]  # 0, not −0, for no edits

    def _fold_case(self, text: str) -> str:
        return text if self.case_sensitive else text.lower()


class CER(WER, frozen=True):
    """The character error rate: as `WER`, of characters, including single blanks between words.

    The counts, and the gain, are in characters.

    Args:
        case_sensitive: distinguish upper and lower case.

    >>> CER().signature([("a",)]), CER.lower_is_better
    ('cer|nrefs:1|case_sensitive:True', True)
    """

    key: ClassVar[str] = "cer"

    def units(self, texts: Sequence[str]) -> Ragged:
        """Return the code points of the texts without blanks at their ends."""
        compared = [self._fold_case(text).strip() for text in texts]
        encoded = "".join(compared).encode("utf-32-le", "surrogatepass")
        return np.frombuffer(encoded, "<i4").astype(np.int32), find_starts(compared)
