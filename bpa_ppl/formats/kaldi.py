"""N-best lists of Kaldi: lines that begin with the key of a hypothesis, `utterance-rank`.

    utt-1 -35.2 the words            the score of a hypothesis, then its words
    utt-1 the words                  the words alone, with scores in other files

Kaldi's programs, such as `nbest-to-linear`, write the words to one file and each kind of cost
(`acwt`, `lmwt`) to another one, all with the same keys. Numbers are read as they are printed: costs
are lower for better hypotheses, and get negative weights. The utterance is the id of the sentence.
Ranks are not used: hypotheses keep their order in the file of words.

All lines of a file have one form. Without the settings `score` and `scores` each line must have a
score, a number after its key; a file of words alone, of which some begin with numbers, is refused
until a setting says so. Where each line begins with a number that may be a word, because none has a
sign, a decimal point or an exponent, or because all hypotheses of an utterance have the same one,
these are scores, and a note says how to read words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bpa_ppl.errors import DataError, UsageError, quoted
from bpa_ppl.formats.block import ID, TEXT, ReadOptions
from bpa_ppl.formats.format import NBestFormat
from bpa_ppl.formats.streams import read_chunks, text_lines, unpacked_name
from bpa_ppl.formats.values import looks_numeric
from bpa_ppl.names import repeated
from bpa_ppl.notes import warn_user

SCORE = "score"
# Without a sign, a point or an exponent a number may be the first word.
_FIRST = re.compile(rb"\S+-1[ \t]+(?=\S*[-.eE])-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:[ \t\r]|$)")
_BLANK = re.compile(r"[ \t\r\f\v]+")
_EXPECTED = "after the key a score is expected (or set kaldi:scores=FILE or kaldi:score=false): "
_PRINTED = re.compile(r"(?=\S*[-.eE])-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)


class Kaldi(NBestFormat, frozen=True):
    """The format of Kaldi's n-best lists, which are only read.

    Attributes:
        score: whether each line has a score before the words; None: if there are no files of
            scores.
        scores: files with a key and a number in each line, which become features with their names.
    """

    score: bool | None = None
    scores: str | tuple[str, ...] = ()

    def detect(self, first_line: bytes) -> bool:
        """Return whether a line has a key of rank 1 and a score with a sign or a decimal point.

        >>> [Kaldi().detect(b"utt-1 " + rest) for rest in (b"-35.2 the words", b"35 people came")]
        [True, False]
        """
        return _FIRST.match(first_line) is not None

    def records(self, lines: Iterator[str], options: ReadOptions) -> Iterator[dict[str, Any]]:
        r"""Yield each hypothesis.

        Raises:
            DataError: with file and line, if a line has no key or no number, a key occurs twice,
                or another file lacks the key of a hypothesis. A line without a number is not
                dropped as a bad one is: its first word would be taken for a score.

        >>> list(Kaldi().records(iter(["a-1 -1.5 the cat", "b-1 -1 hello"]), ReadOptions("nbest")))
        [{'id': 'a', 'score': -1.5, 'text': 'the cat'}, {'id': 'b', 'score': -1.0, 'text': 'hello'}]
        """
        files = [self.scores] if isinstance(self.scores, str) and self.scores else self.scores
        has_score = not files if self.score is None else self.score
        names = [unpacked_name(path).name for path in files]
        if doubled := repeated([*names, *[SCORE] * has_score]):
            problem = f"two columns would have the name {quoted(doubled[0])}: rename a file"
            raise UsageError(problem, parameter="scores", code="duplicate")
        columns = {}
        for path, name in zip(files, names, strict=True):
            of_file = options._replace(origin=path)
            entries = keyed_lines(path).items()
            columns[name] = path, {key: of_file.number(*entry) for key, entry in entries}
        keys = set[str]()
        first_words = _FirstWords()
        for number, line in enumerate(lines, 1):
            key, *parts = _BLANK.split(line.strip(" \t\r\f\v"), 1 + has_score)
            utterance, _, rank = key.rpartition("-")
            if key in keys:
                problem = f"the key {quoted(key)} occurs twice: leave one out"
                raise options.error(problem, number, "duplicate")
            if not (utterance and rank.isdecimal() and rank.isascii()):
                problem = f"the key {quoted(key)} is not an utterance and a rank, such as utt-1"
                raise options.error(problem, number)
            keys.add(key)
            record: dict[str, Any] = {ID: utterance}
            if self.score is None:
                first_words.add(utterance, _BLANK.split(parts[0], 1)[0] if parts else "")
            if has_score:
                printed = parts.pop(0) if parts else ""
                if not looks_numeric(printed):
                    problem = f"{_EXPECTED}{quoted(printed)} is not a number: correct it"
                    raise options.error(problem, number, "bad-number")
                record[SCORE] = options.number(printed, number, _EXPECTED)
            record[TEXT] = parts[0] if parts else ""
            for name, (path, values) in columns.items():
                if key not in values:
                    problem = f"the key {quoted(key)} is not in {path}"
                    advice = "give the scores of the same lists"
                    raise options.error(f"{problem}: {advice}", number, "mismatch", "scores")
                record[name] = values[key]
            yield record
        if self.score is None and (note := first_words.note(has_score)):
            warn_user(f"{options.origin}: {note}")


class _FirstWords:
    """What the first words of the lines of a file say about its form."""

    def __init__(self) -> None:
        self._signed = self._others = 0  # lines: with a number as costs are printed, all others
        self._repeated = self._changed = 0  # lines that follow one of the same utterance
        self._last = ("", "")

    def add(self, utterance: str, word: str) -> None:
        """Count the first word of a line after its key."""
        self._others += not looks_numeric(word)
        self._signed += _PRINTED.fullmatch(word) is not None
        if utterance == self._last[0]:
            self._repeated += word == self._last[1]
            self._changed += word != self._last[1]
        self._last = utterance, word

    def note(self, has_score: bool) -> str | None:
        """Return what may be wrong with the form as which a file is read, if anything."""
        if self._others:
            return None
        if not has_score:
            if not self._signed or not self._changed:
                return None
            problem = "each line begins with a number, which is read as a word"
            return f"{problem}: if these are scores, set kaldi:score=true as well"
        if self._signed and (self._changed or not self._repeated):
            return None
        reason = (
            "all hypotheses of an utterance have the same one"
            if self._signed
            else ("none has a sign or a decimal point")
        )
        problem = f"each line begins with a number, which is read as its score, although {reason}"
        return f"{problem}: if these are words, set kaldi:score=false"


def keyed_lines(path: str) -> dict[str, tuple[str, int]]:
    """Return what follows each key in the lines of a file, without blanks around it, and its line.

    Raises:
        DataError: with file and line, if a line is empty or a key occurs twice.
    """
    table: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(text_lines(read_chunks(path), path), 1):
        key, *rest = _BLANK.split(line.strip(" \t\r\f\v"), 1)
        if not key:
            raise DataError("an empty line: each line begins with a key", path, number)
        if key in table:
            problem = f"{quoted(key)} is in line {table[key][1]} already: leave one out"
            raise DataError(problem, path, number, code="duplicate")
        table[key] = "".join(rest), number
    return table
