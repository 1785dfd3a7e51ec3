"""N-best lists of speech recognisers: lines of a key and a value, in one file or in several.

Kaldi: lines that begin with the key of a candidate, `utterance-rank`.

    utt-1 -35.2 the words            the score of a candidate, then its words
    utt-1 the words                  the words alone, with scores in other files

Kaldi's programs, such as `lists-to-linear`, write the words to one file and each kind of cost
(`acwt`, `lmwt`) to another one, all with the same keys. Numbers are read as they are printed: costs
are lower for better candidates, and get negative weights. The utterance is the id of the sentence.
Ranks are not used: candidates keep their order in the file of words.

All lines of a file have one form. Without the settings `score` and `scores` each line must have a
score, a number after its key; a file of words alone, of which some begin with numbers, is refused
until a setting says so. Where each line begins with a number that may be a word, because none has a
sign, a decimal point or an exponent, or because all candidates of an utterance have the same one,
these are scores, and a note says how to read words.

ESPnet: a folder with the candidates of each rank.

    1best_recog/text    utterance and words, likewise in 2best_recog, …
    1best_recog/score   utterance and score, as `-4.06` or `tensor(-4.06)`
    1best_recog/token   utterance and tokens, which are counted

The folders of ranks are in the folder that is read, or in its folders `output.1`, `output.2`, …,
one for each job of `asr_inference`. ESPnet's recipes join the results of the jobs for the best
candidates alone, so the others are in the folder of the logs. The utterance is the id of the
sentence. The score, and the number of tokens, are the features; a file that the first rank does not
have is not read for the others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from bpa_ppl._runtime.messages import warn_user
from bpa_ppl._runtime.names import find_repeated
from bpa_ppl._runtime.streams import InputFile, read_chunks, strip_compression, text_lines
from bpa_ppl._runtime.values import looks_numeric
from bpa_ppl.errors import DataError, Remedy, UsageError, quote
from bpa_ppl.formats.block import CANDIDATES, ID, TEXT, Block
from bpa_ppl.formats.format import NBestFormat, iter_record_blocks
from bpa_ppl.formats.schema import Schema

_SCORE, _TOKEN = "score", "token"
_BLANKS = " \t\r\f\v"
_BLANK = re.compile(f"[{_BLANKS}]+")
# Without a sign, a point or an exponent a number may be the first word.
_COST = re.compile(r"(?=\S*[-.eE])-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_FIRST = re.compile(rf"\S+-1[ \t]+{_COST.pattern}(?:[ \t\r]|$)".encode())
_EXPECTED = "after the key a score is expected: "
_RANK = "{}best_recog"
_FOLDER = re.compile(r"([1-9][0-9]{0,8})best_recog")
_JOB = re.compile(r"output\.(\d{1,9})")
_TENSOR = re.compile(r"\Atensor\(([^,()]*)(?:,[^()]*)?\)\Z")


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

    def records(self, lines: Iterator[str], schema: Schema) -> Iterator[dict[str, Any]]:
        r"""Yield each candidate.

        A line without a number is not dropped as a bad one is: its first word would be a score.

        >>> list(Kaldi().records(iter(["a-1 -1.5 the cat", "b-1 -1 hello"]), Schema("nbest")))
        [{'id': 'a', 'score': -1.5, 'text': 'the cat'}, {'id': 'b', 'score': -1.0, 'text': 'hello'}]
        """
        files = [self.scores] if isinstance(self.scores, str) and self.scores else self.scores
        has_score = not files if self.score is None else self.score
        names = [strip_compression(path).name for path in files]
        if doubled := find_repeated([*names, *[_SCORE] * has_score]):
            problem = f"two columns would have the name {quote(doubled[0])}: rename a file"
            raise UsageError(problem, parameter="scores", code="duplicate")
        tables: dict[str, dict[str, float]] = {}
        for path in files:
            of_file = replace(schema, origin=path)
            tables[path] = {key: of_file.number(*of) for key, of in _read_entries(of_file).items()}
        counts, last, is_open = Counter[str](), ("", ""), self.score is None
        for key, text, number in _entries(lines, schema):
            word, words = _split(text)
            utterance, _, rank = key.rpartition("-")
            if not (utterance and rank.isdecimal() and rank.isascii()):
                problem = f"the key {quote(key)} is not an utterance and a rank, such as utt-1"
                raise schema.error(problem, number)
            if is_open:
                counts["words"] += bool(words)
                counts["text"] += not looks_numeric(word)
                counts["cost"] += _COST.fullmatch(word) is not None
                if utterance == last[0]:
                    counts["same" if word == last[1] else "other"] += 1
                last = utterance, word
                both = has_score and counts["words"] and counts["cost"] and counts["other"]
                is_open = not (counts["text"] or both)  # more lines do not change the note
            record: dict[str, Any] = {ID: utterance}
            if has_score:
                if not looks_numeric(word):
                    problem = f"{_EXPECTED}{quote(word)} is not a number"
                    words_alone = Remedy("read words alone", settings={_SCORE: False})
                    remedies: list[str | Remedy] = ["correct it", words_alone]
                    raise schema.error(problem, number, "bad-number", None, remedies)
                record[_SCORE] = schema.number(word, number, _EXPECTED)
            record[TEXT] = words if has_score else text
            for name, (path, scores) in zip(names, tables.items(), strict=True):
                if key not in scores:
                    problem = f"the key {quote(key)} is not in {path}"
                    advice = "give the scores of the same lists"
                    raise schema.error(f"{problem}: {advice}", number, "mismatch", "scores")
                record[name] = scores[key]
            yield record
        if self.score is None and (note := _form_note(counts, has_score)):
            warn_user(f"{schema.origin}: {note}")


def _form_note(counts: Mapping[str, int], has_score: bool) -> str | None:
    """Return what may be wrong with the form as which a file of Kaldi is read, if anything.

    Args:
        counts: of the first words after the keys: texts, numbers as costs are printed, and those
            that are the same one as in the line before of the same utterance, or another one; and
            of lines with more words.
        has_score: whether these words are read as scores.
    """
    problem = "each line begins with a number, which is read as"
    if counts["text"]:
        return None
    if has_score and counts["cost"] and not counts["words"]:
        remedy = "give the file of words, and name this one as the scores in the format"
        return f"no line has words: {remedy}"
    if not has_score:
        advice = "if these are scores, set score=true in the format"
        return f"{problem} a word: {advice}" if counts["cost"] and counts["other"] else None
    if counts["cost"] and (counts["other"] or not counts["same"]):
        return None
    reason = "none has a sign or a decimal point"
    if counts["cost"]:
        reason = "all candidates of an utterance have the same one"
    remedy = "if these are words, set score=false in the format"
    return f"{problem} its score, although {reason}: {remedy}"


class Espnet(NBestFormat, frozen=True):
    """The format of ESPnet, whose lists are folders; they are only read."""

    def detect_folder(self, folder: Path) -> bool:
        return bool(_parts(folder))

    def blocks(self, file: InputFile, schema: Schema) -> Iterator[Block]:
        parts = _parts(Path(file.path)) if isinstance(file.path, str | Path) else []
        if not parts:
            problem = "not a folder of ESPnet's results: name the one that has 1best_recog or"
            raise schema.error(f"{problem} output.1/1best_recog", code="unknown-format")
        return iter_record_blocks(
            chain.from_iterable(_records(part, schema) for part in parts), schema
        )


def _parts(folder: Path) -> list[Path]:
    """Return the folders with rank folders: this one, or one for each job."""
    try:
        if (folder / _RANK.format(1)).is_dir():
            return [folder]
        names = [(of, path) for path in folder.iterdir() if (of := _JOB.fullmatch(path.name))]
    except (OSError, ValueError):  # no such folder, or one that may not be read
        return []
    jobs = sorted((int(of[1]), path) for of, path in names)
    return [path for _, path in jobs if (path / _RANK.format(1)).is_dir()]


def _records(part: Path, schema: Schema) -> list[tuple[int, dict[str, Any]]]:
    """Return the line and the candidates of each utterance of one job."""
    ranks = sorted(int(of[1]) for path in part.iterdir() if (of := _FOLDER.fullmatch(path.name)))
    absent = min(set(range(1, len(ranks) + 2)).difference(ranks))
    if absent < ranks[-1]:
        raise DataError(
            f"there is {_RANK.format(ranks[-1])}, but no {_RANK.format(absent)}: give whole "
            "results",
            str(part),
            code="mismatch",
        )
    folders = [part / _RANK.format(rank) for rank in ranks]
    present = [name for name in (_SCORE, _TOKEN) if any((of / name).is_file() for of in folders)]
    records: dict[str, tuple[int, dict[str, Any]]] = {}
    for folder in folders:
        of_file = {n: replace(schema, origin=str(folder / n)) for n in (*present, TEXT)}
        entries = {name: _read_entries(file) for name, file in of_file.items()}
        for key, (text, line) in entries[TEXT].items():
            if folder == folders[0]:
                records[key] = line, {ID: key, CANDIDATES: []}
            lacking = [folder / name for name in present if key not in entries[name]]
            if key not in records or lacking:
                path = [*lacking, folders[0] / TEXT][0]
                problem = f"{quote(key)} is not in {path}: give whole results of one run"
                raise of_file[TEXT].error(problem, line, "mismatch")
            candidate: dict[str, Any] = {TEXT: text}
            if _SCORE in entries:
                printed, number = entries[_SCORE][key]
                candidate[_SCORE] = of_file[_SCORE].number(_TENSOR.sub(r"\1", printed), number)
            if _TOKEN in entries:
                candidate["tokens"] = float(len(entries[_TOKEN][key][0].split()))
            records[key][1][CANDIDATES].append(candidate)
    return list(records.values())


def _read_entries(schema: Schema) -> dict[str, tuple[str, int]]:
    """Return what follows each key in the lines of a file, and its line: see `_entries`."""
    lines = text_lines(read_chunks(schema.origin), schema.origin)
    return {key: (value, number) for key, value, number in _entries(lines, schema)}


def _entries(lines: Iterable[str], schema: Schema) -> Iterator[tuple[str, str, int]]:
    """Yield the key of each line, what follows it without blanks around it, and the line's number.

    Raises:
        DataError: with file and line, if a line is empty or a key occurs twice.
    """
    numbers: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        key, value = _split(line)
        if not key:
            raise schema.error("an empty line: each line begins with a key", number)
        if key in numbers:
            problem = f"{quote(key)} is in line {numbers[key]} already: leave one out"
            raise schema.error(problem, number, "duplicate")
        numbers[key] = number
        yield key, value, number


def _split(line: str) -> tuple[str, str]:
    """Return the first word, and what follows it without blanks around it."""
    word, *rest = _BLANK.split(line.strip(_BLANKS), 1)
    return word, "".join(rest)
