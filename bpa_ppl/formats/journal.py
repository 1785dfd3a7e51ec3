r"""Files of judgements: JSON lines, one for each answer; and lists with the answers of raters.

The first line describes the session, and each other line is an answer:

    {"format": "judgements", "version": 1, "lists": "candidates.jsonl", "sha256": "9f2c…",
        "rater": "ann", "seed": 0}
    {"id": "doc-7", "candidates": [3, 0], "answer": "first", "asked": "information",
        "time": "2026-11-22T11:40:12+00:00"}
    {"undo": 2}

(each on one line). `candidates` are positions in the list, in the order in which they were shown;
`answer` is `first` or `second`, the better one; `tie`; or `skip`, which says nothing. `undo` takes
the answer in that line of the file back.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.messages import log_info
from bpa_ppl._runtime.streams import access_error
from bpa_ppl.errors import DataError, name_lists, quote, wrong_value
from bpa_ppl.formats.block import PREFERENCES, TIES
from bpa_ppl.lists.nbest import NBest, content_hash

FORMAT, VERSION = "judgements", 1
#: The possible answers: the better candidate by its place, no difference, and none.
PLACES, TIE, SKIP = ("first", "second"), "tie", "skip"
ANSWERS = (*PLACES, TIE, SKIP)
#: Why a pair was asked.
RANDOM, INFORMATION, REPEAT = "random", "information", "repeat"

_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_Position: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


@dataclass(frozen=True)
class Judgement:
    """One answer.

    Attributes:
        id: of the list.
        candidates: the positions of two candidates in the list, as they were shown.
        answer: the place of the better one, `first` or `second`; `tie`; or `skip`.
        asked: why they were shown: `random`, `information` or `repeat`.
        predicted: the probability of each to be the better one by the weights before the answer.
        rater: who gave it, if known.
        correction: a text that the rater wrote for the source, or None.
        time: of the answer, as ISO 8601 prints it.

    Raises:
        UsageError: if the answer makes no sense.

    >>> Judgement("a", (1, 0), "first", rater="ann").best
    1
    """

    id: int | str
    candidates: tuple[_Position, _Position]
    answer: str
    asked: str = RANDOM
    predicted: tuple[float, float] | None = None
    rater: str | None = None
    correction: str | None = None
    time: str = ""

    def __post_init__(self) -> None:
        if not len(self.candidates) == len(set(self.candidates)) == 2:
            rule, value = "candidates must be two different ones", list(self.candidates)
            raise wrong_value(rule, value, "candidates")
        require_one_of(self.answer, ANSWERS, "answer")

    @property
    def chosen(self) -> int | None:
        """What the answer says: 0 the first candidate, 1 the second, 2 no difference, None nothing.

        >>> Judgement("a", (1, 0), "tie").chosen
        2
        """
        return None if self.answer == SKIP else ANSWERS.index(self.answer)

    @property
    def best(self) -> int | None:
        """The position of the better candidate in its list; None if the answer names none."""
        return self.candidates[PLACES.index(self.answer)] if self.answer in PLACES else None


@dataclass(frozen=True)
class Journal:
    """The content of a file of judgements.

    Attributes:
        header: of the session.
        judgements: those that were not taken back, by the number of their line.
        lines: of the file.
        path: of the file, for messages.
    """

    header: Mapping[str, Any]
    judgements: Mapping[int, Judgement] = field(default_factory=dict)
    lines: int = 1
    path: str | Path | None = None


def read_journal(path: str | Path) -> Journal:
    """Read a file of judgements.

    An incomplete last line, which a crash left, is ignored with a note: its answer was not
    confirmed.

    Raises:
        DataError: with file and line, if the file is not one.

    >>> read_journal("judgements.jsonl")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: judgements.jsonl: no such file: check the path
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise access_error(path, error, "read") from error
    return _parse(content, path)[0]


def _parse(content: bytes, path: str | Path) -> tuple[Journal, int]:
    """Return a file of judgements, and the length of its complete lines without the last end."""
    *lines, last = content.split(b"\n")
    if last:
        try:
            msgspec.json.decode(last)
            lines.append(last)
        except _MALFORMED:  # a part of an object never is one
            log_info(f"{path}:{len(lines) + 1}: the line is incomplete and left out")
    if not lines:
        raise DataError("no judgement: give a file of `bpa judge`", path, code="no-data")
    header: dict[str, Any] = {}
    judgements: dict[int, Judgement] = {}
    for number, line in enumerate(lines, 1):
        try:
            record = msgspec.json.decode(line, type=dict[str, Any])
            if number == 1:
                if (record.get("format"), record.get("version")) != (FORMAT, VERSION):
                    raise ValueError(f"the first line is not that of {FORMAT}, version {VERSION}")
                texts = {name: record.get(name) for name in ("lists", "sha256", "rater")}
                msgspec.convert(texts, dict[str, str | None])
                header = record
            elif "undo" in record:
                undone = msgspec.convert(record["undo"], int)
                if judgements.pop(undone, None) is None:
                    raise ValueError(f"there is no answer in line {undone} to take back")
            else:
                judgement = msgspec.convert(record, Judgement)
                judgements[number] = replace(judgement, rater=header.get("rater"))
        except (ValueError, *_MALFORMED) as error:
            message = f"not a line of judgements ({error}): correct it, or remove the line"
            raise DataError(message, path, number, code="bad-line") from error
    return Journal(header, judgements, len(lines), path), len(b"\n".join(lines))


class JournalFile:
    """A file of judgements that a session appends to; an answer is on the disk after `append`.

    Args:
        path: of the file; the first answer creates it if there is none.
        header: the first line of a new file. The lists, and the rater if it has one, must be those
            of a file that exists.

    Attributes:
        journal: the content when the file was opened.

    Raises:
        DataError: if the file is of another session, or cannot be written.
    """

    def __init__(self, path: str | Path, header: Mapping[str, Any]) -> None:
        self.path, self.journal, self._end = Path(path), Journal(header), 0
        content = self.path.read_bytes() if self.path.is_file() else b""
        self._size = len(content)
        if content:
            self.journal, self._end = _parse(content, path)
        for name, what in (("sha256", "lists"), ("rater", "rater")):
            if name in header and (old := self.journal.header.get(name)) != header[name]:
                problem = f"judgements of another {what} ({quote(old)}): continue with that one, "
                raise DataError(f"{problem}or choose a new file", path, code="mismatch")

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a line and wait until it is on the disk; if that fails, the answers stay.

        Raises:
            DataError: if it cannot be written, or another process has changed the file.
        """
        header = {"format": FORMAT, "version": VERSION, **self.journal.header}
        records = [record] if self._end else [header, record]
        text = "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in records)
        lines = (f"\n{text}" if self._end else text).encode()
        try:
            with open(self.path, "r+b" if self._size else "ab", buffering=0) as file:
                if (size := os.fstat(file.fileno()).st_size) != self._size:
                    problem = f"another program has changed it ({size} bytes, not {self._size})"
                    raise DataError(f"{problem}: start again", self.path, code="mismatch")
                try:
                    self._size = file.truncate(self._end)  # of what a crash has left
                    file.seek(self._end)
                    if file.write(lines) != len(lines):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(self._end)
                    raise
        except OSError as error:
            raise access_error(self.path, error, "written") from error
        self._size += len(lines)
        self._end = self._size - 1


def with_judgements(lists: NBest, journals: Iterable[Journal]) -> NBest:
    """Return lists with the answers of some raters as `preferences` and `ties`.

    Entries that the lists have already are kept, and skipped questions are left out. Corrections
    become references.

    Args:
        lists: the lists that were judged.
        journals: of the raters. Those without a name are numbered, if there are several.

    Raises:
        DataError: if the answers are about other lists.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.formats.journal import Judgement
    >>> lists = from_lists([["a", "b", "c"]], [[[0.0], [1.0], [5.0]]], ["LM0"])
    >>> answers = Judgement(0, (2, 0), "first"), Judgement(0, (0, 1), "tie", correction="A")
    >>> judged = with_judgements(lists, [Journal({}, dict(enumerate(answers)))])
    >>> judged.sentence_extras["preferences"], judged.sentence_extras["ties"], judged.references
    (([[2, 0]],), ([[0, 1]],), (('A',),))
    """
    position = {identifier: s for s, identifier in enumerate(lists.ids)}
    columns: dict[str, list[list[Any]]] = {}
    for name in (PREFERENCES, TIES):
        recorded = lists.sentence_extras.get(name, [None] * len(lists))
        columns[name] = [list(entries or []) for entries in recorded]
    references, several = list(lists.references or [()] * len(lists)), list(journals)
    ours, remedy = content_hash(lists), "give the lists that were judged"
    for number, journal in enumerate(several, 1):
        if journal.header.get("sha256", ours) != ours:
            others = quote(journal.header.get("lists", "without a name"))
            problem = (
                f"the judgements are about other lists ({others}) than {name_lists(lists.origin)}"
            )
            raise DataError(f"{problem}: {remedy}", journal.path, code="mismatch")
        rater = journal.header.get("rater", f"rater {number}" if len(several) > 1 else None)
        for line, judgement in journal.judgements.items():
            shown, sentence = list(judgement.candidates), position.get(judgement.id)
            if sentence is None or max(shown) >= lists.sizes[sentence]:
                ours_named = name_lists(lists.origin)
                what = f"candidates {shown} of the list {quote(judgement.id)} in {ours_named}"
                at = line if journal.path else None
                raise DataError(f"no {what}: {remedy}", journal.path, at, code="mismatch")
            if judgement.chosen is not None:
                name = TIES if judgement.chosen == 2 else PREFERENCES
                pair = shown[::-1] if judgement.chosen == 1 else shown
                entry = pair if rater is None else {"candidates": pair, "rater": rater}
                columns[name][sentence].append(entry)
            if judgement.correction:
                references[sentence] = (*references[sentence], judgement.correction)
    filled = {name: [entries or None for entries in column] for name, column in columns.items()}
    judged = lists.with_sentence_extras(**{n: c for n, c in filled.items() if any(c)})
    return judged.with_references(references) if any(references) else judged
