"""Blocks, which every format yields: columns of consecutive records, with line numbers.

Also the names that columns have in files, and how one file is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from bpa_ppl._runtime.arrays import Int64
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import MEMORY, DataError, locate, quote
from bpa_ppl.formats.roles import Roles
from bpa_ppl.formats.values import CONVERT, parse_finite
from bpa_ppl.lists.nbest import DROP, Which, take

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


@dataclass(frozen=True)
class ReadOptions:
    """How to read one file, and what has been seen in it.

    Attributes:
        origin: the name of the file, for messages.
        bad: "error", or "drop" to leave out a candidate with a value that is not a finite number.
        first_id: the id of the first sentence, for formats without ids.
        roles: of the columns, as the user names them.
        names: of columns in the file, by the usual ones; one with dots may be that of a field of
            an object.
        format: the name of the format, for messages.
        nan_is_missing: whether NaN is a missing number; otherwise it is a bad one.
        typed: whether the file distinguishes numbers from texts; in one that does not, ids of
            digits are integers.
        any_order: whether the candidates of a sentence need not be adjacent.
        divides_totals: whether the totals may be divided by a length.
        dropped: the records without candidates that were dropped, and why.
        seen: the columns of a file of which some have other names.
        replaced: those of them that are left out, since another one takes their place.

    Raises:
        DataError: if one column has two names.
    """

    origin: str = MEMORY
    bad: str = "error"
    first_id: int = 0
    roles: Roles = field(default_factory=Roles)
    names: Mapping[str, str] = field(default_factory=dict)
    format: str = ""
    nan_is_missing: bool = True
    typed: bool = True
    any_order: bool = True
    divides_totals: bool = False
    dropped: list[str] = field(default_factory=list, init=False)
    seen: dict[str, Any] = field(default_factory=dict, init=False)
    replaced: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        for usual, other in combinations(self.names, 2):
            if (name := self.names[usual]) == self.names[other]:
                problem = f"{usual} and {other} are both {quote(name)}: name a column for each"
                raise self.error(problem, code="duplicate", parameter="format")

    def rename(self, fields: Mapping[str, Any], *, of_candidate: bool = False) -> dict[str, Any]:
        """Return a table, or an object, with the usual names of its columns or fields.

        A column is left out, with a warning, if another one takes its place.

        Args:
            fields: the columns or fields. Those of a sentence with candidates have another text.
            of_candidate: whether they are of such a candidate: its text alone is renamed.

        >>> record = {"message": {"content": "a cat", "role": "assistant"}}
        >>> ReadOptions(names={"text": "message.content"}).rename(record)
        {'message': {'role': 'assistant'}, 'text': 'a cat'}
        """
        for name in self.names.values():
            if "." in name and name not in fields and (split := _split_field(fields, name)):
                fields = {**split[0], name: split[1]}
        names = dict(self.names)
        if of_candidate:
            names = {TEXT: names.get(TEXT, TEXT)}
        elif names.get(CANDIDATES, CANDIDATES) in fields:
            names.pop(TEXT, None)
        usual = {name: usual for usual, name in names.items()}
        if not self.seen.keys() >= fields.keys():
            self.seen.update(fields)
        replaced = {n for n, of in names.items() if of in self.seen} - usual.keys()
        for name in replaced.intersection(fields) - self.replaced:
            self.replaced.add(name)
            problem = f"the column {name} is left out: {quote(names[name])} takes its place"
            warn_user(f"{locate(self.origin)}{problem}")
        return {usual.get(n, n): value for n, value in fields.items() if n not in replaced}

    def require(self, required: Iterable[str], columns: Iterable[str], line: int | None) -> None:
        """Check that a file has some columns.

        Args:
            required: usual names.
            columns: the usual names of those that it has.
            line: where they are named, for the message.

        Raises:
            DataError: with the columns and the setting that names them, if one is missing.

        >>> ReadOptions("dev.csv", format="csv").require(["id", "text"], ["hyp", "lm"], 1)
        Traceback (most recent call last):
        bpa_ppl.errors.DataError: dev.csv:1: no columns id and text (the columns are 'hyp, lm'): ...
        """
        columns = list(columns)
        unseen = {usual for usual, name in self.names.items() if name not in self.seen}
        missing = [n for n in dict.fromkeys(required) if n not in columns or n in unseen]
        if not missing:
            return
        first, parameter = missing[0], "format" if self.origin != MEMORY else None
        name = self.names.get(first, first)
        shown = list(iter_field_names(self.seen)) or columns
        absent = " and ".join(self.names.get(usual, usual) for usual in missing)
        problem = f"no column{'s' * (len(missing) > 1)} {absent} (the columns are "
        problem += f"{quote(', '.join(shown), _SHOWN)})"
        others = [usual for usual, of in self.names.items() if of == name != self.names.get(first)]
        if others:
            problem = f"no {first}, since the column {name} is read as the {others[0]}"
            remedy, parameter = "name a column for each", "format"
        elif parameter is None:
            remedy = f"rename the columns, {', '.join(f'NAME to {usual}' for usual in missing)}"
        elif first in self.names:
            remedy = f"name another one, {self.setting(missing)}"
            if first in self.seen or first not in (ID, TEXT):
                remedy += f", or leave out {first}={name}"
        else:
            remedy = f"name the {' and the '.join(missing)} in the format, {self.setting(missing)}"
            if missing == [ID, TEXT] and not self.names:
                remedy += f", or preferred answers, {self.setting(('chosen', 'rejected'))} or "
                remedy += f"{self.setting(('response_a', 'response_b', 'winner'))}; "
                remedy += f"the first line of a table has the names of its columns; {CONVERT}"
        code = "missing-column"
        raise self.error(f"{problem}: {remedy}", line, code, parameter)

    def setting(self, missing: Iterable[str]) -> str:
        """Return the format with its settings, in which some columns have yet to be named.

        >>> ReadOptions("dev.csv", names={"id": "segment"}, format="csv").setting(["text"])
        'csv:id=segment,text=NAME'
        """
        names = {**self.names, **dict.fromkeys(missing, "NAME")}
        return f"{self.format}:" + ",".join(f"{usual}={name}" for usual, name in names.items())

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
