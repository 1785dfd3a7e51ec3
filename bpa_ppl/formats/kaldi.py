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
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from bpa_ppl.columns import no_common_id
from bpa_ppl.errors import DataError, UsageError, quoted
from bpa_ppl.formats.base import NBestFormat
from bpa_ppl.formats.streams import decoded, read_blocks, unpacked_name
from bpa_ppl.labels import repeated
from bpa_ppl.nbest import NBest
from bpa_ppl.rows import ReadOptions
from bpa_ppl.rows.names import ID, REFERENCE, TEXT

SCORE = "score"
# Without a sign, a point or an exponent a number may be the first word.
_FIRST = re.compile(rb"\S+-1[ \t]+(?=\S*[-.eE])-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?:[ \t\r]|$)")


_BLANK = re.compile(r"[ \t\r\f\v]+")
_EXPECTED = "after the key a score is expected (or set kaldi:scores=FILE or kaldi:score=false): "


class Kaldi(NBestFormat, frozen=True):
    """The format of Kaldi's n-best lists.

    Attributes:
        score: whether each line has a score before the words; None: if there are no files of
            scores.
        scores: files with a key and a number in each line, which become features with their names.
        references: a file with an utterance and its words in each line, as Kaldi's `text`; other
            utterances may be in it.
    """

    score: bool | None = None
    scores: str | tuple[str, ...] = ()
    references: str = ""

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
        files = (self.scores,) if isinstance(self.scores, str) and self.scores else self.scores
        has_score = not files if self.score is None else self.score
        columns = _columns_of(tuple(files), options, (SCORE,) if has_score else ())
        references = references_by_key(self.references)
        keys, has_reference = set[str](), False
        for number, line in enumerate(lines, 1):
            key, *parts = _BLANK.split(line.strip(" \t\r\f\v"), 1 + has_score)
            utterance, _, rank = key.rpartition("-")
            if not key:
                problem = "an empty line: each line begins with a key such as utt-1"
                raise options.error(problem, number)
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
            for path, (name, values) in columns.items():
                if key not in values:
                    problem = f"the key {quoted(key)} is not in {path}"
                    advice = "give the scores of the same lists"
                    raise options.error(f"{problem}: {advice}", number, "mismatch", "scores")
                record[name] = values[key]
            if self.references:
                record[REFERENCE] = references.get(utterance)
                has_reference = has_reference or utterance in references
            yield record
        if self.references and not has_reference:
            raise no_common_id(options.origin, self.references, references)

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write lists with one feature, with the ids that they were read with.

        Raises:
            DataError: if an id or a text does not fit the format.
            UsageError: if the lists have totals, or another number of features.

        >>> import sys
        >>> lists = NBest.from_lists([["the cat", "a cat"]], [[[-1.5], [-2]]], ["score"])
        >>> Kaldi().write(lists, sys.stdout)
        0-1 -1.5 the cat
        0-2 -2.0 a cat
        """
        names = nbest.feature_names
        if len(names) != 1 or nbest.totals is not None:
            problem = f"a line of Kaldi has one score, and the lists have {len(names)} features"
            problem += " and totals" if nbest.totals is not None else ""
            advice = "leave the others out, or choose jsonl"
            raise UsageError(f"{problem}: {advice}", parameter="format", code="not-supported")
        for s, identifier in enumerate(nbest.sentence_extras.get(ID, nbest.sentence_ids.tolist())):
            if len(str(identifier).split()) != 1:
                problem = f"the id {quoted(identifier)} has a blank: write jsonl"
                raise DataError(problem, nbest.origin, code="not-supported")
            rows = range(*nbest.rows(s).indices(len(nbest.features)))
            for rank, row in enumerate(rows, 1):
                text = nbest.text(row)
                if any(mark in text for mark in "\n\r"):
                    problem = f"a text of sentence {identifier} has a line break: write jsonl"
                    raise DataError(problem, nbest.origin, code="not-supported")
                score = str(nbest.features[row, 0])  # with a point, by which it is detected
                file.write(f"{identifier}-{rank} {score} {text}".rstrip() + "\n")


def keyed_lines(path: str) -> dict[bytes, tuple[bytes, int]]:
    """Return what follows each key in the lines of a file, without blanks around it, and its line.

    Raises:
        DataError: with file and line, if a line is empty or a key occurs twice.
    """
    table: dict[bytes, tuple[bytes, int]] = {}
    number = 0
    for block in read_blocks(path):
        for line in block[:-1].split(b"\n"):
            number += 1
            key, _, rest = line.strip().replace(b"\t", b" ", 1).partition(b" ")
            if not key:
                raise DataError("an empty line: each line begins with a key", path, number)
            if key in table:
                problem = f"{quoted(key)} is in line {table[key][1]} already: leave one out"
                raise DataError(problem, path, number, code="duplicate")
            table[key] = rest.strip(), number
    return table


def references_by_key(path: str) -> Mapping[str, str]:
    """Return the reference of each utterance in a file; none without a file.

    Raises:
        DataError: if the file cannot be read.
    """
    table = keyed_lines(path) if path else {}
    return {
        decoded(key, path, number): decoded(rest, path, number)
        for key, (rest, number) in table.items()
    }


def _columns_of(
    files: tuple[str, ...], options: ReadOptions, others: tuple[str, ...]
) -> dict[str, tuple[str, dict[str, float]]]:
    """Return the name and the numbers by key of each file of scores."""
    names = [unpacked_name(path).name for path in files]
    if doubled := repeated([*names, *others]):
        problem = f"two columns would have the name {quoted(doubled[0])}: rename a file"
        raise UsageError(problem, parameter="scores", code="duplicate")
    columns = {}
    for path, name in zip(files, names, strict=True):
        of_file = options._replace(origin=path)
        table = keyed_lines(path)
        numbers = {key: of_file.number(*entry) for key, entry in table.items()}
        columns[path] = name, {decoded(k, path, table[k][1]): v for k, v in numbers.items()}
    return columns
