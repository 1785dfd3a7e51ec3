"""Blocks, which every format yields: columns of consecutive records, with line numbers.

Also the names that columns have in files, and how one file is read.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Int64
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import DataError, locate, quote
from bpa_ppl.formats.roles import Roles
from bpa_ppl.formats.values import CONVERT, parse_finite
from bpa_ppl.lists.nbest import DROP, NBest, take

#: Names of fields that are not features: of a candidate, and of its sentence.
TEXT, TOTAL, CANDIDATES = "text", "total", "candidates"
ID, SOURCE, REFERENCE, REFERENCES = "id", "source", "reference", "references"
#: The integer of a sentence whose id is a text, where it is not its place among the ids.
ID_NUMBER = "id_number"
#: Extras of a sentence that name candidates by their places.
PREFERENCES, TIES, RANKINGS = JUDGEMENTS = "preferences", "ties", "rankings"
#: Prefix of the names of sentence extras where each record is a candidate.
OF_SENTENCE = "sentence."

_SHOWN = 400  # characters of the names of columns in a message


class ColumnNames:
    """The names that columns have in one file; one with dots may be that of a field of an object.

    Args:
        names: of columns that have another name than usual, by the usual one.
        origin: the name of the file, for messages.
        format: the name of the format, for messages.

    Raises:
        DataError: if one column has two names.

    >>> names = ColumnNames({"id": "segment", "text": "output"}, "dev.csv")
    >>> names.usual(["segment", "output", "lm"])
    {'segment': 'id', 'output': 'text', 'lm': 'lm'}
    """

    def __init__(self, names: Mapping[str, str], origin: str, format: str = ""):
        self.names, self._origin, self._format = names, origin, format
        self._usual = {name: usual for usual, name in names.items()}
        self._dotted = [name for name in self._usual if "." in name]
        self._replaced: set[str] = set()
        self._present: set[str] = set()  # columns with another name, once they have been seen
        self._columns: dict[Any, Any] = {}  # those seen, with a value where it may be an object
        for usual, name in names.items():
            if (other := self._usual[name]) != usual:
                problem = f"{usual} and {other} are both {quote(name)}: name a column for each"
                raise DataError(problem, origin, parameter="format", code="duplicate")

    def usual(self, names: Collection[str]) -> dict[str, str]:
        """Return the usual name of each column of a file, or of each field of an object.

        A column is left out, with a warning, if another one takes its place.
        """
        present = [name for name in self._usual if name in names]
        self._present.update(present)
        if self.names and not self._columns.keys() >= set(names):
            self._columns |= names if isinstance(names, dict) else dict.fromkeys(names)
        replaced = {self._usual[name] for name in present}
        for name in replaced.intersection(names).difference(self._usual, self._replaced):
            self._replaced.add(name)
            problem = f"the column {name} is left out: {quote(self.names[name])} takes its place"
            warn_user(f"{locate(self._origin)}{problem}")
        kept = (name for name in names if name in self._usual or name not in replaced)
        return {name: self._usual.get(name, name) for name in kept}

    def fields(self, record: Mapping[Any, Any], *, of_candidate: bool = False) -> dict[str, Any]:
        """Return an object with the usual names of its fields.

        Args:
            record: the object.
            of_candidate: whether its text is that of a candidate, if only the text of the sentence
                has another name.

        >>> record = {"message": {"content": "a cat", "role": "assistant"}}
        >>> ColumnNames({"text": "message.content"}, "dev.jsonl").fields(record)
        {'message': {'role': 'assistant'}, 'text': 'a cat'}
        """
        for name in self._dotted:
            if name not in record and (found := _split_field(record, name)):
                record = {**found[0], name: found[1]}
        usual = self.usual(record)
        if of_candidate and TEXT in usual and TEXT not in self.names:
            usual[TEXT] = TEXT
        return {usual[name]: record[name] for name in usual}

    def require_all(self) -> None:
        """Check that a file that has been read has each column with another name.

        Raises:
            DataError: with the columns, if one has never been seen.
        """
        missing = (usual for usual, name in self.names.items() if name not in self._present)
        self.require(missing if self._columns else (), self._columns, None)

    def require(self, required: Iterable[str], columns: Iterable[str], line: int | None) -> None:
        """Check that a file has some columns.

        Args:
            required: usual names.
            columns: the usual names of those that it has.
            line: where they are named, for the message.

        Raises:
            DataError: with the columns and the setting that names them, if one is missing.

        >>> ColumnNames({}, "dev.csv", format="csv").require(["id", "text"], ["hyp", "lm"], 1)
        Traceback (most recent call last):
        bpa_ppl.errors.DataError: dev.csv:1: no columns id and text (the columns are 'hyp, lm'): ...
        """
        columns = list(columns)
        present = {usual: name for usual, name in self.names.items() if name in self._present}
        missing = [
            usual
            for usual in dict.fromkeys(required)
            if usual not in columns or self.names.get(usual, usual) != present.get(usual, usual)
        ]
        if not missing:
            return
        first, parameter = missing[0], "format" if self._origin != NBest.origin else None
        name = self.names.get(first, first)
        names = list(iter_field_names(self._columns)) or columns
        absent = " and ".join(self.names.get(usual, usual) for usual in missing)
        problem = f"no column{'s' * (len(missing) > 1)} {absent} (the columns are "
        problem += f"{quote(', '.join(names), _SHOWN)})"
        if (other := self._usual.get(name, first)) != first:
            problem = f"no {first}, since the column {name} is read as the {other}"
            remedy, parameter = "name a column for each", "format"
        elif parameter is None:
            remedy = f"rename the columns, {', '.join(f'NAME to {usual}' for usual in missing)}"
        else:
            remedy = f"name the {' and the '.join(missing)} in the format, {self.setting(missing)}"
            if missing == [ID, TEXT] and not self.names:
                remedy += f", or preferred answers, {self.setting(('chosen', 'rejected'))} or "
                remedy += f"{self.setting(('response_a', 'response_b', 'winner'))}; "
                remedy += f"the first line of a table has the names of its columns; {CONVERT}"
            if first in self.names:
                remedy = f"name another one, {self.setting(missing)}"
                if first in columns or first not in (ID, TEXT):
                    remedy += f", or leave out {first}={name}"
        code = "missing-column"
        raise DataError(f"{problem}: {remedy}", self._origin, line, parameter=parameter, code=code)

    def setting(self, missing: Iterable[str]) -> str:
        """Return the format with its settings, in which some columns have yet to be named.

        >>> ColumnNames({"id": "segment"}, "dev.csv", format="csv").setting(["text"])
        'csv:id=segment,text=NAME'
        """
        names = {**self.names, **dict.fromkeys(missing, "NAME")}
        return f"{self._format}:" + ",".join(f"{usual}={name}" for usual, name in names.items())


def _split_field(record: Mapping[Any, Any], name: str) -> tuple[dict[Any, Any], Any] | None:
    """Return an object without the field that a name with dots leads to, and its value."""
    first, _, rest = name.partition(".")
    inside = record.get(first)
    if not (rest and isinstance(inside, dict)):
        return None
    found = _split_field(inside, rest)
    if rest in inside:
        found = {key: value for key, value in inside.items() if key != rest}, inside[rest]
    if found is None:
        return None
    others = {key: value for key, value in record.items() if key != first}
    return others | ({first: found[0]} if found[0] else {}), found[1]


def iter_field_names(fields: Mapping[Any, Any], prefix: str = "") -> Iterator[str]:
    """Yield the names of fields, with dots those of objects in them.

    >>> list(iter_field_names({"id": 0, "message": {"role": "user", "content": "a cat"}}))
    ['id', 'message.role', 'message.content']
    """
    for name, value in fields.items():
        if isinstance(value, dict) and value:
            yield from iter_field_names(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


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
        strings: distinct texts, if the column `text` of the candidates has their numbers.
        dropped: the records without candidates that were dropped, and why.
        ids: (records,) the ids of the sentences as integers, once these are checked.
    """

    candidates: dict[str, Any]
    sentences: dict[str, Any]
    parent: Int64 | None
    line: Int64
    strings: Sequence[str] | None = None
    dropped: Sequence[str] = ()
    ids: Int64 = np.empty(0, np.int64)

    @property
    def parents(self) -> Int64:
        """The record of each candidate."""
        return np.arange(len(self.line)) if self.parent is None else self.parent

    @property
    def sizes(self) -> Int64:
        """The number of candidates of each record."""
        return np.bincount(self.parents, minlength=len(self.line))

    def without(self, bad: npt.NDArray[np.bool_]) -> Block:
        """Return a block without some candidates, and without records that lose all of theirs."""
        rows = np.flatnonzero(~bad)
        rest = np.bincount(self.parents[rows], minlength=len(self.line))
        kept = (rest > 0) | (self.sizes == 0)
        numbers, records = np.cumsum(kept) - 1, np.flatnonzero(kept)
        return self._replace(
            candidates=take(self.candidates, rows),
            sentences=take(self.sentences, records),
            parent=None if self.parent is None else numbers[self.parent[rows]],
            line=self.line[records],
            ids=take(self.ids, records),
        )

    def slice(self, start: int, stop: int | None = None) -> Block:
        """Return some consecutive records."""
        records = rows = slice(start, len(self.line) if stop is None else stop)
        parent = self.parent
        if parent is not None:
            rows = slice(*np.searchsorted(parent, [records.start, records.stop]).tolist())
            parent = parent[rows] - start
        return self._replace(
            candidates=take(self.candidates, rows),
            sentences=take(self.sentences, records),
            parent=parent,
            line=self.line[records],
            ids=take(self.ids, records),
        )


class ReadOptions(NamedTuple):
    """How to read one file.

    Attributes:
        origin: the name of the file, for messages.
        bad: "error", or "drop" to leave out a candidate with a value that is not a finite number.
        first_id: the id of the first sentence, for formats without ids.
        names: of the columns in the file, if they differ from the usual ones.
        roles: of the columns, as the user names them.
        nan_is_missing: whether NaN is a missing number; otherwise it is a bad one.
        typed: whether the file distinguishes numbers from texts; in one that does not, ids of
            digits are integers.
        any_order: whether the candidates of a sentence need not be adjacent.
        divides_totals: whether the totals may be divided by a length.
    """

    origin: str
    bad: str = "error"
    first_id: int = 0
    names: ColumnNames = ColumnNames({}, "")
    roles: Roles = Roles()
    nan_is_missing: bool = True
    typed: bool = True
    any_order: bool = True
    divides_totals: bool = False

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
            what: the beginning of the message.
            remedy: its end, which says what to do.

        Raises:
            DataError: with file and line, if it is not a finite number and `bad` is "error".

        >>> ReadOptions("dev", bad="drop").number("nan", 1)
        inf
        """
        try:
            return parse_finite(token)
        except ValueError as error:
            if self.bad == "drop":
                return math.inf
            advice = f"{remedy}, or drop such candidates {DROP}"
            raise self.error(f"{what}{error}: {advice}", line, "bad-number", "bad") from error
