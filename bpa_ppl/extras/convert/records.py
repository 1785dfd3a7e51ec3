"""Records of other tools, with their places in files, checked against declared types."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn, TypeVar

import msgspec

from bpa_ppl.errors import MEMORY, DataError, bad_value, missing_data
from bpa_ppl.formats.streams import AnyPath, atomic_writer, origin_name, read_lines, read_text
from bpa_ppl.formats.values import is_strict_json, parse_json

#: What all kinds return: records of lists, as JSON lines have them.
Lists = list[dict[str, Any]]

_REMEDY = "`bpa convert --help` names the kinds of files"
T = TypeVar("T")


class LocatedRecord(NamedTuple):
    """A record and where it is from.

    Attributes:
        value: the record.
        origin: the name of its file.
        line: of the file; or the number of a record in memory; None in a value on several lines.
        number: of the record in such a value.
    """

    value: Any
    origin: str = MEMORY
    line: int | None = 1
    number: int | None = None

    def error(
        self, problem: str, code: str = "bad-line", parameter: str | None = None
    ) -> DataError:
        """Return the error of this record."""
        problem = problem if self.number is None else f"record {self.number}: {problem}"
        return DataError(problem, self.origin, self.line, parameter=parameter, code=code)

    def refuse(self, what: str, problem: str) -> NoReturn:
        """Raise the error of a record that is not of its kind."""
        raise self.error(f"not {what}: {problem}: {_REMEDY}")

    def has(self, *names: str) -> bool:
        """Return whether the record is an object with all of some fields."""
        return isinstance(self.value, Mapping) and all(name in self.value for name in names)

    def get(self, name: str) -> LocatedRecord:
        """Return the value of a field, None where there is none, at the same place."""
        return self._replace(value=self.value.get(name) if self.has(name) else None)

    def parse(self, kind: type[T], what: str) -> T:
        """Return the record as a type.

        Args:
            kind: a `msgspec.Struct`; other fields are left out.
            what: the record should be, for the message.

        Raises:
            DataError: with file and line, if it lacks a field, or one has another type.

        >>> class Pair(msgspec.Struct):
        ...     label: bool
        >>> LocatedRecord({"label": "yes"}, "a.jsonl", 7).parse(Pair, "a row of KTO")
        Traceback (most recent call last):
        bpa_ppl.errors.DataError: a.jsonl:7: not a row of KTO: Expected `bool`, got `str` - at ...
        """
        try:
            return msgspec.convert(self.value, kind)
        except (msgspec.ValidationError, RecursionError, OverflowError) as error:
            self.refuse(what, str(error))


def iter_records(records: Iterable[Any]) -> Iterator[LocatedRecord]:
    """Yield records with their places; those in memory are numbered from 1.

    Raises:
        DataError: if there are none.

    >>> [record.line for record in iter_records([{}, LocatedRecord({}, "a.jsonl", 7)])]
    [1, 7]
    """
    record = None
    for number, one in enumerate(records, 1):
        record = one if isinstance(one, LocatedRecord) else LocatedRecord(one, MEMORY, number)
        yield record
    if record is None:
        raise missing_data("record", "give at least one", parameter="records")


def read_json(path: AnyPath) -> Iterator[LocatedRecord]:
    """Yield the values of a file of JSON lines, or of one value; those of an array one by one.

    Raises:
        DataError: with file and line, if it is not JSON, an object has a key twice, or a number is
            not finite; or if there are no values.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = file.write('{"a": 1}' + chr(10) + '[{"a": 2}]'), file.flush()
    ...     [(record.value, record.line) for record in read_json(file.name)]
    [({'a': 1}, 1), ({'a': 2}, 2)]
    """
    text, origin = read_text(path), origin_name(path)
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    several = len(lines) > 1 and not _is_json(lines[0][1])  # of one value
    values = [(None, _parse(text, origin, 1))] if several else None
    record = None
    for line, value in values or ((n, _parse(line, origin, n)) for n, line in lines):
        for number, one in enumerate(value if isinstance(value, list) else [value], 1):
            record = LocatedRecord(one, origin, line, number if several else None)
            yield record
    if record is None:
        raise missing_data("record", "give at least one", origin)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _parse(text: str, origin: str, line: int) -> Any:
    """Return the value of a text of JSON, which begins at a line of a file."""
    with suppress(ValueError, RecursionError):
        value = msgspec.json.decode(text)
        if is_strict_json(text.encode(), value):
            return value
    value = parse_json(text, origin, line)
    try:
        json.loads(text, parse_float=_parse_float, parse_constant=_parse_float)
    except DataError as error:
        raise DataError(error.message, origin, line, code=error.code) from error
    return value


def _parse_float(text: str) -> float:
    """Return the number that a text of JSON prints, which must be finite."""
    value = float(text.replace("Infinity", "inf"))
    if not math.isfinite(value):
        raise bad_value("a value", text, "a finite number", remedy="write null if there is none")
    return value


def read_text_lines(path: AnyPath) -> Iterator[LocatedRecord]:
    """Yield the lines of a file of text that are not blank.

    Raises:
        DataError: if there are none.
    """
    lines = [(n, line) for n, line in enumerate(read_lines(path), 1) if line.strip()]
    if not lines:
        raise missing_data("record", "give at least one", origin_name(path))
    for number, line in lines:
        yield LocatedRecord(line, origin_name(path), number)


def write_lists(lists: Iterable[Mapping[str, Any]], path: AnyPath) -> None:
    """Write lists as JSON lines, to a file that appears when it is complete.

    Raises:
        DataError: if the file cannot be written.

    >>> write_lists([{"id": 0, "candidates": [{"text": "a cat"}]}], "-")
    {"id": 0, "candidates": [{"text": "a cat"}]}
    """
    with atomic_writer(path) as file:
        for of_list in lists:
            file.write(json.dumps(of_list, ensure_ascii=False, allow_nan=False) + "\n")


def drop_missing(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields without those that are None.

    >>> drop_missing({"id": 0, "source": None})
    {'id': 0}
    """
    return {name: value for name, value in fields.items() if value is not None}


def make_judgement(place: int | None) -> dict[str, Any]:
    """Return the judgement of the first two candidates of a list: 0, 1, or None for a tie.

    >>> make_judgement(1), make_judgement(None)
    ({'preferences': [[1, 0]]}, {'ties': [[0, 1]]})
    """
    return {"ties": [[0, 1]]} if place is None else {"preferences": [[place, 1 - place]]}


class Turn(msgspec.Struct):
    """A turn of a conversation."""

    role: str
    content: str


def find_last_text(turns: str | Sequence[Turn] | None) -> str | None:
    """Return a text, or that of the last turn of a conversation.

    >>> find_last_text([Turn("user", "Hello"), Turn("assistant", "Hi")])
    'Hi'
    """
    if turns is None or isinstance(turns, str):
        return turns
    return turns[-1].content if turns else None
