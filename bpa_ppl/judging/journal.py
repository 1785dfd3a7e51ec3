r"""Files of judgements: JSON lines, one for each answer.

The first line describes the session, and each other line is an answer:

    {"format": "judgements", "version": 1, "lists": "candidates.jsonl", "sha256": "9f2c…",
        "rater": "ann", "seed": 0}
    {"id": "doc-7", "candidates": [3, 0], "answer": "first", "asked": "information",
        "time": "2026-11-22T11:40:12+00:00"}
    {"undo": 2}

(each on one line). `candidates` are positions in the list, in the order in which they were shown;
`answer` is `first`, `second`, `tie`, or `skip`, which says nothing. `undo` takes the answer in that
line of the file back.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from bpa_ppl.errors import DataError, quoted
from bpa_ppl.judging.answers import ANSWERS

FORMAT, VERSION = "judgements", 1
SKIP = "skip"
#: Why a pair was asked.
RANDOM, INFORMATION, REPEAT = "random", "information", "repeat"


@dataclass(frozen=True)
class Judgement:
    """One answer.

    Attributes:
        id: of the list.
        candidates: positions of the first and the second candidate.
        answer: `first`, `second`, `tie` or `skip`.
        asked: why the pair was shown: `random`, `information` or `repeat`.
        predicted: the probability of `first` rather than `second` by the weights before it.
        rater: who gave it, if known.
        correction: a text that the rater wrote for the source, or None.
        time: of the answer, as ISO 8601 prints it.

    >>> Judgement("a", (1, 0), "first", rater="ann").candidates[0]  # the better one
    1
    """

    id: int | str
    candidates: tuple[int, int]
    answer: str
    asked: str = RANDOM
    predicted: float | None = None
    rater: str | None = None
    correction: str | None = None
    time: str = ""

    def record(self) -> dict[str, Any]:
        """Return the fields of its line.

        >>> Judgement("a", (1, 0), "tie").record()
        {'id': 'a', 'candidates': [1, 0], 'answer': 'tie', 'asked': 'random'}
        """
        fields: dict[str, Any] = {
            "id": self.id,
            "candidates": list(self.candidates),
            "answer": self.answer,
            "asked": self.asked,
        }
        for name in ("predicted", "correction", "time"):
            if (value := getattr(self, name)) not in (None, ""):
                fields[name] = value
        return fields

    @classmethod
    def parse(cls, record: Mapping[str, Any], rater: str | None = None) -> Self:
        """Return the judgement of a line.

        Raises:
            ValueError: if a field is missing or invalid.

        >>> Judgement.parse({"id": "a", "candidates": [1, 0], "answer": "tie"}).answer
        'tie'
        """
        pair, answer = record.get("candidates"), record.get("answer")
        if not isinstance(record.get("id"), int | str):
            raise ValueError("no id of a list")
        if not (isinstance(pair, list) and len(pair) == 2 and pair[0] != pair[1]) or not all(
            isinstance(position, int) and position >= 0 for position in pair
        ):
            raise ValueError("candidates are not two positions, such as [3, 0]")
        if answer not in (*ANSWERS, SKIP):
            raise ValueError(f"the answer {quoted(answer)} is not first, second, tie or skip")
        return cls(
            id=record["id"],
            candidates=(pair[0], pair[1]),
            answer=answer,
            asked=str(record.get("asked", RANDOM)),
            predicted=record.get("predicted"),
            rater=rater,
            correction=record.get("correction"),
            time=str(record.get("time", "")),
        )


@dataclass(frozen=True)
class Journal:
    """The content of a file of judgements.

    Attributes:
        header: of the session.
        lines: of the file after the header, in order: a judgement, or the number of the line whose
            judgement is taken back.

    >>> one, other = Judgement("a", (1, 0), "tie"), Judgement("b", (0, 2), "first")
    >>> Journal({}, (one, other, 3)).kept == {2: one}, Journal({}, (one, other, 3)).undone == other
    (True, True)
    """

    header: Mapping[str, Any]
    lines: tuple[Judgement | int, ...] = ()

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
        if not self.lines or isinstance(self.lines[-1], Judgement):
            return None
        judgement = self.lines[self.lines[-1] - 2]
        return judgement if isinstance(judgement, Judgement) else None


def read_journal(path: str | Path) -> Journal:
    """Read a file of judgements.

    A last line without its end, which a crash left, is ignored: its answer was not confirmed.

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
    lines, header, rater = list[Judgement | int](), None, None
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("not an object")
            if header is None:
                if record.get("format") != FORMAT or record.get("version") != VERSION:
                    raise ValueError(f"the first line is not that of {FORMAT}, version {VERSION}")
                header, rater = record, record.get("rater")
            elif "undo" in record:
                lines.append(int(record["undo"]))
            else:
                lines.append(Judgement.parse(record, rater))
        except (ValueError, TypeError, UnicodeDecodeError) as error:
            problem = f"not a line of judgements ({error}): correct it, or remove the line"
            raise DataError(problem, path, number) from error
    if header is None:
        problem = "no judgements: `bpa judge` writes such a file"
        raise DataError(problem, path, code="no-data")
    return Journal(header, tuple(lines))


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
        if self.path.exists() and self.path.stat().st_size:
            self.journal = read_journal(path)
            for name in same:
                if (old := self.journal.header.get(name)) != header.get(name):
                    what = {"sha256": "other lists"}.get(name, f"another {name} ({quoted(old)})")
                    problem = f"judgements of {what}: continue with those, or choose a new file"
                    raise DataError(problem, path, code="mismatch")
            # A last line without its end is overwritten: its answer was not confirmed.
            content = self.path.read_bytes()
            self._end = content.rfind(b"\n") + 1
            if self._end < len(content):
                self._write(b"", len(content))
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
