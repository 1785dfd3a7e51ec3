"""What a reader hands on: rows of hypotheses, and what is known of their sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from numbers import Integral
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, quoted

# Features are stored as 32-bit floats, and numbers from here on are rounded to infinity: half a
# unit of the last place above the largest of them.
TOO_LARGE = (2.0 - 2.0**-24) * 2.0**127
#: Fields that are no features: of a hypothesis, and of its sentence.
TEXT, TOTAL, CANDIDATES = "text", "total", "candidates"
ID, SOURCE, REFERENCE, REFERENCES = "id", "source", "reference", "references"
#: Before the names of sentence extras where each row stands for a hypothesis.
OF_SENTENCE = "sentence."
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_LARGEST_ID = 2**63 - 1


class Rows(NamedTuple):
    """Consecutive hypotheses of a file.

    Other rows of the file may have more columns, or fewer.

    Attributes:
        names: one feature name a column.
        ids: (rows,) int64, the sentence ids as printed.
        lines: (rows,) int64, the 1-based lines of the file.
        features: (rows, features) float32; NaN is missing.
        totals: (rows,) float32, or None where the file has none; NaN is missing.
        strings: hypothesis texts; equal ones may stand there more than once.
        string_index: (rows,) int32 into `strings`.
        dropped: the sentence ids of hypotheses left out for a bad value.
        extras: more columns by name, each with one value a row: arrays, or any sequences, where
            None is missing.
        sources: lists of what belongs to the sentences, too, have one value a row, which is the
            same in all rows of a sentence, or None: its source text,
        references: the tuple of its references, empty or None where it has none,
        sentence_extras: and more columns by name.
        totals_normalised: whether the totals may be divided by a length.
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

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of ours that are there: ids, features and perhaps totals."""
        columns: dict[str, Any] = {"ids": self.ids, "features": self.features}
        return columns if self.totals is None else {**columns, "totals": self.totals}

    def of_sentences(self) -> dict[str, Sequence[Any]]:
        """Return what belongs to sentences by name, one value a row; extras as `sentence.NAME`."""
        known = {SOURCE: self.sources, REFERENCE: self.references}
        extras = {OF_SENTENCE + name: values for name, values in self.sentence_extras.items()}
        return {**{name: values for name, values in known.items() if values is not None}, **extras}

    def part(self, start: int, stop: int | None = None) -> Rows:
        """Return some of the rows."""
        rows = slice(start, stop)
        columns: dict[str, Any] = {name: part[rows] for name, part in self.columns().items()}
        return self._replace(
            lines=self.lines[rows],
            string_index=self.string_index[rows],
            extras={name: values[rows] for name, values in self.extras.items()},
            sources=None if self.sources is None else self.sources[rows],
            references=None if self.references is None else self.references[rows],
            sentence_extras={name: values[rows] for name, values in self.sentence_extras.items()},
            **columns,
        )


def missing_numbers(present: Mapping[str, int], count: int) -> list[str]:
    """Return sentences on columns of numbers that lack some values.

    Args:
        present: how many values each has, by name.
        count: of the hypotheses.

    >>> missing_numbers({"lm": 300, "mqm": 180, "da": 180}, 300)
    ['mqm, da are missing for 120 of 300 candidates: kept as judgements (usable as the gain), ...']
    """
    groups: dict[int, list[str]] = {}
    for name, found in present.items():
        if found < count:
            groups.setdefault(found, []).append(name)
    return [
        f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} missing for "
        + (f"{count - found} of {count} candidates" if found else f"all {count} candidates")
        + ": kept as "
        + ("a judgement" if len(names) == 1 else "judgements")
        + f" (usable as the gain), not as {'a feature' if len(names) == 1 else 'features'}"
        for found, names in groups.items()
    ]


class SentenceLines(NamedTuple):
    """What a whole text has one of for each sentence.

    Attributes:
        lines: one entry a sentence.
        origin: where they are from, for messages.
    """

    lines: Sequence[Any]
    origin: str


class Identifiers:
    """Sentence ids as whole numbers: those that are texts are counted as they appear.

    Args:
        origin: the name of the file, for messages.
        first_id: the number of the first text.
        printed: whether all ids are texts, as in a text file; whole numbers among them count as
            such where the first id is one.

    >>> ids = Identifiers("dev.jsonl", 1)
    >>> [ids.number(text, 1) for text in ("doc-1:1", "doc-1:2", "doc-1:1")]
    [1, 2, 1]
    """

    def __init__(self, origin: str, first_id: int = 0, printed: bool = False):
        self.origin, self.first_id, self.printed = origin, first_id, printed
        self.texts: bool | None = None  # whether ids are texts, once the first is known
        self._numbers: dict[str, int] = {}

    def number(self, given: Any, line: int | None) -> int:
        """Return the number of a sentence.

        Raises:
            DataError: if it is neither a whole number nor a text, or not of the kind of the first.
        """
        value = given
        if self.printed and self.texts is not True and _WHOLE.fullmatch(str(given)):
            value = int(given)
        if not _is_identifier(value):
            raise self._error(
                f"sentence id {quoted(given)} is neither a whole number nor a text", line
            )
        if self.texts is None:
            self.texts = isinstance(value, str)
        if isinstance(value, str) is not self.texts:
            first = "texts" if self.texts else "whole numbers"
            raise self._error(
                f"sentence id {quoted(given)}, where the ids before are {first}: write all ids "
                "alike",
                line,
            )
        if isinstance(value, str):
            return self._numbers.setdefault(value, self.first_id + len(self._numbers))
        return int(value)

    def _error(self, message: str, line: int | None) -> DataError:
        return DataError(message, self.origin, line)


def _is_identifier(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value)
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and abs(int(value)) <= _LARGEST_ID
