"""N-best lists of Kaldi: lines that begin with the key of a hypothesis, `utterance-rank`.

    utt-1 -35.2 the words            the score of a hypothesis, then its words
    utt-1 the words                  the words alone, with scores in other files

Kaldi's programs, such as `nbest-to-linear`, write the words to one file and each kind of cost
(`acwt`, `lmwt`) to another one, all with the same keys. Numbers are read as they are printed: costs
are lower for better hypotheses, and get negative weights. The utterance is the id of the sentence.
Ranks are not used: hypotheses keep their order in the file of words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bpa_ppl.errors import DataError, UsageError, quoted
from bpa_ppl.formats.base import NBestFormat
from bpa_ppl.formats.streams import read_blocks, text_lines, unpacked_name
from bpa_ppl.labels import repeated
from bpa_ppl.rows import ReadOptions
from bpa_ppl.rows.names import ID, TEXT

SCORE = "score"
# Without a sign, a point or an exponent a number may be the first word.
_FIRST = re.compile(rb"\S+-1[ \t]+(?=\S*[-.eE])-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:[ \t\r]|$)")
_BLANK = re.compile(r"[ \t\r\f\v]+")
_EXPECTED = "after the key a score is expected (or set kaldi:scores=FILE or kaldi:score=false): "


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
                or another file lacks the key of a hypothesis.

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
            if has_score:
                record[SCORE] = options.number(parts.pop(0) if parts else "", number, _EXPECTED)
            record[TEXT] = parts[0] if parts else ""
            for name, (path, values) in columns.items():
                if key not in values:
                    problem = f"the key {quoted(key)} is not in {path}"
                    advice = "give the scores of the same lists"
                    raise options.error(f"{problem}: {advice}", number, "mismatch", "scores")
                record[name] = values[key]
            yield record


def keyed_lines(path: str) -> dict[str, tuple[str, int]]:
    """Return what follows each key in the lines of a file, without blanks around it, and its line.

    Raises:
        DataError: with file and line, if a line is empty or a key occurs twice.
    """
    table: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(text_lines(read_blocks(path), path), 1):
        key, *rest = _BLANK.split(line.strip(" \t\r\f\v"), 1)
        if not key:
            raise DataError("an empty line: each line begins with a key", path, number)
        if key in table:
            problem = f"{quoted(key)} is in line {table[key][1]} already: leave one out"
            raise DataError(problem, path, number, code="duplicate")
        table[key] = "".join(rest), number
    return table
