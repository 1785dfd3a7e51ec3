r"""Files of judgements: JSON lines, one for each answer.

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
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec

from bpa_ppl.errors import DataError, UsageError, one_of, quoted
from bpa_ppl.notes import log_info

FORMAT, VERSION = "judgements", 1
#: The possible answers: the better candidate by its place, no difference, and none.
PLACES, TIE, SKIP = ("first", "second"), "tie", "skip"
ANSWERS = (*PLACES, TIE, SKIP)
#: Why a pair was asked.
RANDOM, INFORMATION, REPEAT = "random", "information", "repeat"


#: What corrections may not contain: it is neither shown nor stored.
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
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
    candidates: tuple[_Position, ...]
    answer: str
    asked: str = RANDOM
    predicted: tuple[float, ...] | None = None
    rater: str | None = None
    correction: str | None = None
    time: str = ""

    def __post_init__(self) -> None:
        if not len(self.candidates) == len(set(self.candidates)) == 2:
            problem = "candidates are not two different ones: write a comparison of more as "
            raise UsageError(f"{problem}`rankings` of the lists", parameter="candidates")
        one_of(self.answer, ANSWERS, "answer")
        if self.predicted is not None and len(self.predicted) != 2:
            raise UsageError("predicted is not a number for each candidate", parameter="predicted")
        if self.correction is not None and _NO_TEXT.search(self.correction):
            problem = "a correction is a text without NUL: write it again"
            raise UsageError(problem, parameter="correction")

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

    def record(self) -> dict[str, Any]:
        """Return the fields of its line.

        >>> Judgement("a", (1, 0), "tie").record()
        {'id': 'a', 'candidates': (1, 0), 'answer': 'tie', 'asked': 'random'}
        """
        fields = {name: value for name, value in vars(self).items() if value not in (None, "")}
        fields.pop("rater", None)  # the header has it
        return fields


@dataclass(frozen=True)
class Journal:
    """The content of a file of judgements.

    Attributes:
        header: of the session.
        lines: of the file after the header, in order: a judgement, or the number of the line whose
            judgement is taken back.
        path: of the file, for messages.

    >>> one, other = Judgement("a", (1, 0), "tie"), Judgement("b", (0, 2), "first")
    >>> Journal({}, (one, other, 3)).kept == {2: one}, Journal({}, (one, other, 3)).undone == other
    (True, True)
    """

    header: Mapping[str, Any]
    lines: tuple[Judgement | int, ...] = ()
    path: str | Path | None = None

    @property
    def kept(self) -> dict[int, Judgement]:
        """The judgements that were not taken back, by the number of their line."""
        judgements: dict[int, Judgement] = {}
        for number, line in enumerate(self.lines, 2):
            if isinstance(line, Judgement):
                judgements[number] = line
            else:
                judgements.pop(line, None)
        return judgements

    @property
    def undone(self) -> Judgement | None:
        """The judgement that the last line takes back, if it does."""
        line = self.lines[-1] if self.lines else None
        judgements = dict[Any, Judgement | int](enumerate(self.lines, 2))
        judgement = None if isinstance(line, Judgement) else judgements.get(line)
        return judgement if isinstance(judgement, Judgement) else None


def read_journal(path: str | Path) -> Journal:
    """Read a file of judgements.

    An incomplete last line, which a crash left, is ignored with a note: its answer was not
    confirmed.

    Raises:
        DataError: with file and line, if the file is not one.

    >>> read_journal("judgements.jsonl")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: judgements.jsonl: cannot be read (No such file or directory)
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        message = f"cannot be read ({error.strerror})"
        raise DataError(message, path, code="file-error") from error
    return _parsed(content, path)[0]


def _parsed(content: bytes, path: str | Path) -> tuple[Journal, int]:
    """Return a file of judgements, and the length of its complete lines without the last end."""
    *lines, last = content.split(b"\n")
    if last:
        try:
            msgspec.json.decode(last)
            lines.append(last)
        except _MALFORMED:  # a part of an object never is one
            where = f"{path}:{len(lines) + 1}"
            log_info(f"{where}: the line is incomplete, as after a crash, and is left out")
    for number, line in enumerate(lines, 1):
        try:
            record = msgspec.json.decode(line, type=dict[str, Any])
            if number == 1:
                if record.get("format") != FORMAT or record.get("version") != VERSION:
                    raise ValueError(f"the first line is not that of {FORMAT}, version {VERSION}")
                texts = {name: record.get(name) for name in ("lists", "sha256", "rater")}
                msgspec.convert(texts, dict[str, str | None])
                header, entries, kept = record, list[Judgement | int](), set[int]()
            elif "undo" in record:
                undone = msgspec.convert(record["undo"], int)
                kept.remove(undone)
                entries.append(undone)
            else:
                judgement = msgspec.convert(record, Judgement)
                entries.append(replace(judgement, rater=header.get("rater")))
                kept.add(number)
        except KeyError as error:
            problem = f"there is no answer in line {error} to take back: correct or remove it"
            raise DataError(problem, path, number) from error
        except (ValueError, *_MALFORMED) as error:
            problem = f"not a line of judgements ({error}): correct it, or remove the line"
            raise DataError(problem, path, number) from error
    if not lines:
        problem = "no judgements: `bpa judge` writes such a file"
        raise DataError(problem, path, code="no-data")
    return Journal(header, tuple(entries), path), len(b"\n".join(lines))


class JournalFile:
    """A file of judgements that a session appends to; an answer is on the disk after `append`.

    Args:
        path: of the file; the first answer creates it if there is none.
        header: the first line of a new file.
        same: fields of the header that must not differ in a file that exists.

    Attributes:
        journal: the content when the file was opened.

    Raises:
        DataError: if the file is of another session, or cannot be written.
    """

    def __init__(self, path: str | Path, header: Mapping[str, Any], same: Iterable[str]) -> None:
        self.path = Path(path)
        content = self.path.read_bytes() if self.path.is_file() else b""
        if content:
            self.journal, self._end = _parsed(content, path)
            for name in same:
                if (old := self.journal.header.get(name)) != header.get(name):
                    what = {"sha256": "other lists"}.get(name, f"another {name} ({quoted(old)})")
                    problem = f"judgements of {what}: continue with those, or choose a new file"
                    raise DataError(problem, path, code="mismatch")
            if content[self._end :] != b"\n":  # the last line has no end, or is incomplete
                self._write(b"\n", len(content))
            self._end += 1
        else:
            self.journal = Journal(header)
            self._end = 0

    def append(self, record: Mapping[str, Any]) -> None:
        """Write a line and wait until it is on the disk; if that fails, the file stays as it was.

        Raises:
            DataError: if it cannot be written, or another process has changed the file.
        """
        header = {"format": FORMAT, "version": VERSION, **self.journal.header}
        records = [record] if self._end else [header, record]
        lines = "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in records).encode()
        self._write(lines, self._end)
        self._end += len(lines)

    def _write(self, lines: bytes, size: int) -> None:
        """Write lines at the end of the answers, if the file has the expected size."""
        try:
            with open(self.path, "r+b" if size else "ab", buffering=0) as file:
                if (found := os.fstat(file.fileno()).st_size) != size:
                    problem = f"another program has changed it ({found} bytes, not {size})"
                    raise DataError(f"{problem}: start again", self.path, code="mismatch")
                try:
                    file.truncate(self._end)
                    file.seek(self._end)
                    if file.write(lines) != len(lines):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    os.fsync(file.fileno())
                except OSError:
                    file.truncate(self._end)
                    raise
        except OSError as error:
            message = f"the answer was not kept ({error.strerror})"
            raise DataError(message, self.path, code="file-error") from error
