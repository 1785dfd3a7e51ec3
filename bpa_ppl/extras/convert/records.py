"""Files of other tools, and the lists that are written of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.messages import format_count, warn_user
from bpa_ppl._runtime.streams import AnyPath, atomic_writer, origin_name, read_chunks, read_lines
from bpa_ppl.errors import DataError, Remedy
from bpa_ppl.formats.block import (
    CANDIDATES,
    ID,
    JUDGEMENTS,
    REFERENCE,
    REFERENCES,
    SOURCE,
    TEXT,
    TOTAL,
)
from bpa_ppl.formats.located import LocatedRecord, iter_json
from bpa_ppl.lists.nbest import DROP

#: Fields of lists and of candidates that have a meaning.
_FIELDS = {ID, SOURCE, REFERENCE, REFERENCES, TEXT, TOTAL, CANDIDATES, "features", *JUDGEMENTS}
#: What all kinds return: records of lists, as JSON lines have them.
Lists = list[dict[str, Any]]


def read_json(path: AnyPath, *, finite: bool = True) -> Iterator[LocatedRecord]:
    """Yield the values of a file as `iter_json` does.

    Raises:
        DataError: as `iter_json`, or if there are no values.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = file.write('{"a": 1}' + chr(10) + '[{"a": 2}]'), file.flush()
    ...     [(record.value, record.line) for record in read_json(file.name)]
    [({'a': 1}, 1), ({'a': 2}, 2)]
    """
    record = None
    for record in iter_json(read_chunks(path), origin_name(path), finite=finite):
        yield record
    if record is None:
        raise DataError("no record: give at least one", origin_name(path), code="no-data")


def read_text_lines(path: AnyPath) -> Iterator[LocatedRecord]:
    """Yield the lines of a file of text that are not blank.

    Raises:
        DataError: if there are none.
    """
    lines = [(n, line) for n, line in enumerate(read_lines(path), 1) if line.strip()]
    if not lines:
        raise DataError("no record: give at least one", origin_name(path), code="no-data")
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


class Failures:
    """Counts records that failed, or refuses them.

    Args:
        bad: "error", or "drop" to leave them out.
        what: one of them is.
        again: what to do about it.
    """

    def __init__(self, bad: str, what: str = "judgement", again: str = "judge it again"):
        require_one_of(bad, ("error", "drop"), "policy", "bad")
        self._bad, self._what, self._again, self._count = bad, what, again, 0

    def add(self, record: LocatedRecord, problem: str) -> None:
        """Count one, or raise its error."""
        if self._bad == "error":
            drop = Remedy(f"leave out such {self._what}s", DROP.arguments)
            raise record.error(problem, "bad-line", "bad", [self._again, drop])
        self._count += 1

    def report(self) -> None:
        """Warn about what is left out."""
        if self._count:
            warn_user(f"left out: {format_count(self._count, self._what)} that failed")


def drop_missing(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields without those that are None.

    >>> drop_missing({"id": 0, "source": None})
    {'id': 0}
    """
    return {name: value for name, value in fields.items() if value is not None}


def keep_others(record: LocatedRecord, *used: str) -> dict[str, Any]:
    """Return the fields of a record that a kind does not use, as columns.

    One with a name that a list or a candidate has for something else is called `record.NAME`.

    Args:
        record: an object.
        used: the paths to the fields that are used: see `find`.

    >>> keep_others(LocatedRecord({"id": 7, "subset": "Math", "source": "web"}), "id?")
    {'subset': 'Math', 'record.source': 'web'}
    """
    names = {path.partition(".")[0].removesuffix("?") for path in used}
    return {
        f"record.{name}" if name in _FIELDS else name: value
        for name, value in record.value.items()
        if name not in names and value not in (None, {}, [])
    }


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
