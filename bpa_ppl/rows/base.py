"""What a reader yields: columns of hypotheses and their sentences; and how it reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.columns import references, references_by_id
from bpa_ppl.errors import DataError, quoted
from bpa_ppl.rows.names import ColumnNames

# Features are stored as 32-bit floats, and numbers from here on are rounded to infinity: half a
# unit of the last place above the largest of them.
TOO_LARGE = np.float64((2.0 - 2.0**-24) * 2.0**127)


class Columns(NamedTuple):
    """The columns of consecutive records of a file; see `bpa_ppl.rows.schema` for their meaning.

    A column of hypotheses is an array of floats, in which NaN is missing, or a sequence of any
    values, in which None is missing.

    Attributes:
        hypotheses: by name, one value per hypothesis.
        sentences: by name, one value per record.
        parents: (hypotheses,) the record of each hypothesis, in ascending order.
        lines: (records,) the line, or the number, of each record.
        nested: whether a record is a sentence with its candidates.
        any_order: whether the hypotheses of a sentence need not be adjacent.
        strings: distinct texts, if the column `text` of the hypotheses has their numbers.
        normalised: whether the totals may be divided by a length.
    """

    hypotheses: dict[str, Any]
    sentences: dict[str, Any]
    parents: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    nested: bool = False
    any_order: bool = True
    strings: Sequence[str] | None = None
    normalised: bool = False


class ReadOptions(NamedTuple):
    """How to read one file.

    Attributes:
        origin: the name of the file, for messages.
        bad: "error", or "drop" to leave out a hypothesis with a value that is not a finite number.
        first_id: the id of the first sentence, for formats without ids.
        names: of the columns in the file, if they differ from the usual ones.
    """

    origin: str
    bad: str = "error"
    first_id: int = 0
    names: ColumnNames = ColumnNames({}, "")

    def error(
        self,
        message: str,
        line: Any = None,
        code: str = "bad-line",
        parameter: str | None = None,
    ) -> DataError:
        """Return the error that names the file, and one of its lines."""
        number = None if line is None else int(line)
        return DataError(message, self.origin, number, parameter=parameter, code=code)

    def number(
        self, token: str | bytes, line: int, what: str = "", remedy: str = "correct it"
    ) -> float:
        """Return the number that a token prints; infinity for a bad one if `bad` is "drop".

        Args:
            token: as printed.
            line: the number of the line.
            what: words before the message of the error.
            remedy: words after it.

        Raises:
            DataError: with file and line, if it is not a finite number and `bad` is "error".

        >>> ReadOptions("dev", bad="drop").number("nan", 1)
        inf
        """
        try:
            return finite(token)
        except ValueError as error:
            if self.bad == "drop":
                return math.inf
            advice = f"{remedy}, or drop such hypotheses (bad: drop)"
            raise self.error(f"{what}{error}: {advice}", line, "bad-number", "bad") from error


def finite(token: str | bytes) -> float:
    """Return the number that a token prints.

    Raises:
        ValueError: if it is not a number, not finite or too large for a 32-bit float; the text
            says which, for a message that names file and line.

    >>> finite("-3.98253"), finite(b"1e-05")
    (-3.98253, 1e-05)
    >>> finite("1_000")
    Traceback (most recent call last):
    ValueError: '1_000' is not a number
    """
    printed = token.encode() if isinstance(token, str) else token
    try:
        value = float(printed)
    except ValueError:
        value = None
    if value is not None and abs(value) < TOO_LARGE and b"_" not in printed:
        return value
    wrong = "a number" if value is None or b"_" in printed else "a finite 32-bit number"
    raise ValueError(f"{quoted(printed)} is not {wrong}")


class SentenceLines(NamedTuple):
    """One entry for each sentence of a whole text, or of some of it, such as its references.

    Attributes:
        lines: one entry per sentence; or entries by id, as `columns.id_key` returns it.
        origin: where they are from, for messages.
    """

    lines: Sequence[Any] | Mapping[Any, Any]
    origin: str

    @classmethod
    def of_references(cls, value: Any) -> SentenceLines:
        """Return references: a text or several for each sentence, or by id for some.

        Raises:
            UsageError: if they are anything else.
        """
        if isinstance(value, Mapping):
            return cls(references_by_id(value), "the references")
        return cls(references(value), "the text")
