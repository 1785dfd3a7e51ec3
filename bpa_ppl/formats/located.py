"""Records with their places in files: objects of JSON, or values in memory."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import Any, NamedTuple, NoReturn

import msgspec

from bpa_ppl._runtime.streams import decode
from bpa_ppl._runtime.values import RECIPES, abbreviate, parse_json
from bpa_ppl.errors import MEMORY, DataError, Remedy, bad_value

_STEP = re.compile(r"([\w-]+)(\??)(\[(?:(\w+)=(\w+))?\])?")
_CAMEL = re.compile("(?<=[a-z])([A-Z])")


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
        self,
        problem: str,
        code: str = "bad-line",
        parameter: str | None = None,
        remedies: Sequence[str | Remedy] = (),
    ) -> DataError:
        """Return the error of this record."""
        problem = problem if self.number is None else f"record {self.number}: {problem}"
        details: Any = {"parameter": parameter, "code": code, "remedies": remedies}
        return DataError(problem, self.origin, self.line, **details)

    def refuse(self, what: str, problem: str) -> NoReturn:
        """Raise the error of a record that is not of its kind."""
        raise self.error(f"not {what}: {problem}: {RECIPES}")

    def has(self, *names: str) -> bool:
        """Return whether the record is an object with all of some fields."""
        return isinstance(self.value, Mapping) and all(name in self.value for name in names)

    def get(self, name: str) -> LocatedRecord:
        """Return the value of a field, None where there is none, at the same place."""
        return self._replace(value=self.value.get(name) if self.has(name) else None)

    def read(self, what: str, kinds: Mapping[str, Any]) -> list[Any]:
        """Return fields of the record.

        Args:
            what: the record should be, for the message.
            kinds: the types of the fields, by the paths to them: see `find`.

        Returns:
            A value for each path; None where a field that may be absent is.

        Raises:
            DataError: with file and line, if it lacks a field, or one has another type.

        >>> LocatedRecord({"text": "a"}).read("an answer", {"text": str, "model?": str})
        ['a', None]
        >>> LocatedRecord({"label": "yes"}, "a.jsonl", 7).read("a row of KTO", {"label": bool})
        Traceback (most recent call last):
        bpa_ppl.errors.DataError: a.jsonl:7: not a row of KTO: `label`: Expected `bool`, got ...
        """
        values = []
        for path, kind in kinds.items():
            try:
                values_at = find(self.value, path)
                values.append(msgspec.convert(values_at[0], kind) if values_at else None)
            except LookupError as error:
                self.refuse(what, str(error.args[0]))
            except (msgspec.ValidationError, RecursionError, OverflowError) as error:
                name = path.replace("?", "")
                problem = str(error).replace("`$", f"`{name}")
                self.refuse(what, problem if "- at `" in problem else f"`{name}`: {problem}")
        return values


@cache
def _steps(path: str) -> list[tuple[str, bool, bool, str | None, str | None]]:
    """Return the steps of a path: name, whether it may be absent, is a list, and its members."""
    matches = (re.fullmatch(_STEP, step) for step in path.split("."))
    return [(m[1], bool(m[2]), bool(m[3]), m[4], m[5]) for m in matches if m]


def find(value: Any, path: str, *, server: bool = False) -> list[Any]:
    """Return what is at a path; the value itself if it is empty.

    Args:
        value: an object of JSON.
        path: names that are separated by dots; `[]` is each member of a list, `[type=message]` each
            of this type, and `?` follows a field that may be absent.
        server: whether it is of a server of LLMs: names in camel case may be written as Python's
            packages do, and thoughts are left out.

    Raises:
        LookupError: if a field is missing, or is not the object or list that the path says.

    >>> message = {"content": [{"text": "a "}, {"type": "tool"}, {"text": "cat"}]}
    >>> find(message, "content[].text?")
    ['a ', 'cat']
    """
    values, where = [value], "it"
    for path_name, optional, is_list, kind, kind_value in _steps(path):
        outer, values = values, []
        for one in outer:
            if not isinstance(one, dict):
                problem = f"is {abbreviate(one)}, not an object with a field `{path_name}`"
                raise LookupError(f"{where} {problem}")
            name = path_name
            if server and name not in one:
                name = _CAMEL.sub(r"_\1", name).lower()
            if name not in one and not optional:
                raise LookupError(f"no field `{path_name}`")
            inner = one.get(name)
            if not is_list:
                values += [] if inner is None and optional else [inner]
            elif isinstance(inner, list):
                for member in inner:
                    fields = member if isinstance(member, dict) else {}
                    is_thought = server and fields.get("thought")
                    if not is_thought and (kind is None or fields.get(kind) == kind_value):
                        values.append(member)
            elif server and isinstance(inner, str):  # a text in place of its parts
                values.append({"text": inner})
            elif inner is not None:
                raise LookupError(f"`{name}` is {abbreviate(inner)}, not a list")
        where = f"`{path_name}`"
    return values


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
        raise DataError("no record: give at least one", parameter="records", code="no-data")


def iter_json(
    blocks: Iterable[bytes], origin: str, *, finite: bool = True
) -> Iterator[LocatedRecord]:
    r"""Yield the values of JSON lines, one after another, or of one value; of arrays the members.

    Args:
        blocks: of whole lines.
        origin: the name of the file.
        finite: whether NaN and infinite numbers are errors.

    Raises:
        DataError: with file and line, if it is not JSON, or a number is not finite.

    >>> blocks = [b'{"a": 1}\n[{"a": 2}]\n']
    >>> [(record.value, record.line) for record in iter_json(blocks, "a.json")]
    [({'a': 1}, 1), ({'a': 2}, 2)]
    """
    blocks, begun, shown = iter(blocks), list[bytes](), list[bytes]()
    for block in blocks:
        begun.append(block)
        shown += [line for line in block.split(b"\n") if line.strip()]
        if len(shown) > 1:
            break
    first, *others = shown[:2] or [b""]
    # The lines of one value are no objects, unless the first one is the bracket of an array.
    others = [line for line in others if first.strip() == b"[" or not _is_json(line, dict)]
    if others and not _is_json(first, object):
        value = _parse(b"".join([*begun, *blocks]), origin, 1, finite)
        for number, one in enumerate(value if isinstance(value, list) else [value], 1):
            yield LocatedRecord(one, origin, None, number)
        return
    lines = (line for block in chain(begun, blocks) for line in block[:-1].split(b"\n"))
    for line, text in enumerate(lines, 1):
        if text.strip():
            value = _parse(text, origin, line, finite)
            for one in value if isinstance(value, list) else [value]:
                yield LocatedRecord(one, origin, line)


def _is_json(text: bytes, kind: type) -> bool:
    try:
        return isinstance(json.loads(text), kind)
    except (ValueError, RecursionError):
        return False


def _parse(data: bytes, origin: str, line: int, finite: bool) -> Any:
    """Return the value of a text of JSON, which begins at a line of a file."""
    with suppress(ValueError, RecursionError):
        return msgspec.json.decode(data)
    text = decode(data, origin, line)
    value = parse_json(text, origin, line, None if finite else "format")
    try:
        if finite:
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
