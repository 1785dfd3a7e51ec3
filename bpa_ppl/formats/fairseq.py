"""The output of fairseq-generate and fairseq-interactive: S-, T-, H-, D-, P- and A- lines.

Each line is a letter, the sentence id, and fields separated by tabs:

    S-3    source                  sources
    T-3    reference               references
    H-3    score  hypothesis       `score`: the log-probability, divided by a power of the length
    D-3    score  the same, detokenised
    P-3    a score a token         `logprob.sum`, `logprob.mean`, `logprob.min`, `length`
    A-3    0-0 1-2                 the extra `alignment`

Scores are taken as printed: logarithms of base 2 since fairseq 0.10 ("hypothesis and token scores
are output in base 2"), natural ones before. Tokens are those of the model, end of sentence
included. Other lines are the log of the program and are skipped.

Ids are kept, in the order of fairseq's batches, and index references and sources. Shards
(`generate-test_3_8.txt`) are read one by one and joined with `NBest.concatenate`. Hypotheses keep
their order. The lines of different sentences may be interleaved, as long as no more than
`interleaved` sentences are incomplete at a time; these are kept in memory.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np

from bpa_ppl.arrays import Float64
from bpa_ppl.component import Count
from bpa_ppl.formats.base import NBestFormat
from bpa_ppl.formats.numbers import all_finite, lines_of_numbers
from bpa_ppl.formats.streams import InputFile, decoded_lines, line_count
from bpa_ppl.rows import Columns, ReadOptions
from bpa_ppl.rows.base import TOO_LARGE
from bpa_ppl.rows.names import ID, REFERENCE, SOURCE, TEXT

_SCORE, _TOKENS = "score", ("logprob.sum", "logprob.mean", "logprob.min", "length")
_SOURCE, _TARGET, _HYPOTHESIS, _PLAIN, _POSITIONAL, _ALIGNMENT = b"S", b"T", b"H", b"D", b"P", b"A"
_LINE = re.compile(rb"([STHDPA])-([0-9]+)(?:\t|\r?$)")
_INSIDE = re.compile(rb"[STHDPA]-[0-9]+\t")
_AMID = re.compile(rb"^[STHD]-[0-9]+\t", re.MULTILINE)
_LOG = re.compile(rb"Namespace\(|[-0-9]+ [:0-9]+ \| [A-Z]+ \| fairseq")
_LONGEST_ID = 18  # digits that fit 64 bits
_MANY = 1000  # hypotheses in a block from which loading PyArrow is worth it

_Lines = Sequence[tuple[int, bytes]]  # numbers of lines, and what follows the id and its tab


class _Sentence(NamedTuple):
    """The lines of one sentence, by their letter; the number is that of the first one."""

    id: int
    number: int
    lines: defaultdict[bytes, list[tuple[int, bytes]]]


class Fairseq(NBestFormat, frozen=True):
    """The format of fairseq.

    Attributes:
        detokenised: read the texts of D- lines, if there are any, instead of H- lines.
        interleaved: the number of sentences that may be incomplete at a time.
    """

    detokenised: bool = True
    interleaved: Count = 10

    def detect(self, first_line: bytes) -> bool:
        """Return whether a line is fairseq's, or one of the log that it prints before.

        >>> Fairseq().detect(b"S-17" + bytes([9]) + b"un chat"), Fairseq().detect(b"un chat")
        (True, False)
        >>> Fairseq().detect(b"2020-11-05 10:00:00 | INFO | fairseq_cli.generate | loading model")
        True
        """
        return bool(_LINE.match(first_line) or _LOG.match(first_line))

    def detect_within(self, beginning: bytes) -> bool:
        """Return whether lines of fairseq follow those of a log.

        >>> Fairseq().detect_within(b"loading" + bytes([10]) + b"S-17" + bytes([9]) + b"un chat")
        True
        """
        return _AMID.search(beginning) is not None

    def columns(self, file: InputFile, options: ReadOptions) -> Iterator[Columns]:
        r"""Yield the columns of the sentences that each block of lines completes.

        Raises:
            DataError: with file and line, if a line is not as it should be, a sentence has lines
                of some kind for some of its hypotheses alone, or lines come too late.

        >>> file = InputFile(b"S-7\tun chat\nH-7\t-0.5\ta c@@ at\nD-7\t-0.5\ta cat\nP-7\t-1 -0.5 0")
        >>> columns = next(Fairseq().columns(file, ReadOptions("generate-test.txt")))
        >>> columns.hypotheses["text"], columns.hypotheses["logprob.sum"]
        (['a cat'], array([-1.5]))
        >>> columns.sentences
        {'id': [7], 'source': ['un chat']}
        """
        return _Reader(self, options).columns(file.blocks())


class _Reader:
    """Collects the lines of sentences.

    Args:
        format: the settings.
        options: how to read.
    """

    def __init__(self, format: Fairseq, options: ReadOptions):
        self._format = format
        self._options = options
        self._open: dict[int, _Sentence] = {}
        # Of open sentences, by the beginning of the line.
        self._lines: dict[bytes, list[tuple[int, bytes]]] = {}
        self._seen: set[int] = set()
        self._kinds: dict[bytes, bool] = {}  # letter -> whether hypotheses have such a line
        # Of complete sentences, and of their hypotheses, by name.
        self._sentences: defaultdict[str, list[Any]] = defaultdict(list)
        self._hypotheses: defaultdict[str, list[Any]] = defaultdict(list)

    def columns(self, blocks: Iterable[bytes]) -> Iterator[Columns]:
        """Yield the columns of the sentences that each block completes.

        Raises:
            DataError: also if the file has no sentences at all.
        """
        first = 1
        for block in blocks:
            self._read(block, first)
            yield from self._finished()
            first += line_count(block)
        if not self._seen:
            problem = "no line of fairseq in it (`H-0`, a score, a text)"
            raise self._options.error(f"{problem}: give the output, not a log", code="no-data")
        for sentence in self._open.values():
            self._complete(sentence)
        yield from self._finished()

    def _read(self, block: bytes, first: int) -> None:
        """Read a block of whole lines, and complete sentences."""
        lines = block[:-1].split(b"\n")
        if b"\r" in block:
            lines = [line.removesuffix(b"\r") for line in lines]
        sentences = self._lines
        for number, line in enumerate(lines, first):
            head, _, rest = line.partition(b"\t")
            of_kind = sentences.get(head)
            if of_kind is None:
                matched = _LINE.match(line)
                if matched is None:
                    if hidden := _INSIDE.search(line):
                        problem = f"{hidden[0].decode().strip()} is not at the start of its line"
                        advice = "run fairseq with --no-progress-bar"
                        raise self._options.error(f"{problem}: {advice}", number)
                    continue
                self._begin(head, matched[1], matched[2], number)
                of_kind = sentences[head]
            of_kind.append((number, rest))

    def _begin(self, head: bytes, letter: bytes, digits: bytes, number: int) -> None:
        """Open a sentence, if it is not open, and complete one if too many are."""
        if len(digits) > _LONGEST_ID:
            raise self._options.error(f"sentence id {digits.decode()} is too large", number)
        identifier = int(digits)
        if identifier not in self._open:
            if identifier in self._seen:
                others = f"{self._format.interleaved} other sentences"
                problem = f"a line of sentence {identifier}, after {others}: increase `interleaved`"
                raise self._options.error(problem, number, "duplicate")
            self._seen.add(identifier)
            self._open[identifier] = _Sentence(identifier, number, defaultdict(list))
            if len(self._open) > self._format.interleaved:
                self._complete(self._open.pop(next(iter(self._open))))
                self._lines.clear()
        self._lines[head] = self._open[identifier].lines[letter]

    def _finished(self) -> Iterator[Columns]:
        """Yield the columns of the sentences that are complete, if there are any."""
        sentences, hypotheses = self._sentences, self._hypotheses
        self._sentences, self._hypotheses = defaultdict(list), defaultdict(list)
        if not sentences:
            return
        sizes, lines = sentences.pop("sizes"), np.array(sentences.pop("lines"))
        numbers = hypotheses.pop("numbers")
        scores, tokens = hypotheses.pop("scores"), hypotheses.pop("tokens", [])
        columns = {**hypotheses, **self._features(scores, tokens, numbers)}
        parents = np.repeat(np.arange(len(sizes)), sizes)
        yield Columns(columns, dict(sentences), parents, lines, nested=True)

    def _features(
        self, scores: list[bytes], tokens: list[bytes], numbers: list[int]
    ) -> dict[str, Any]:
        """Return the columns of numbers; infinity in hypotheses that are to be dropped."""
        columns = _columns(scores, tokens)
        if columns is None:
            hypotheses = zip(scores, tokens or repeat(b""), numbers, strict=False)
            good = [self._is_finite(*hypothesis) for hypothesis in hypotheses]
            scores = [score if keep else b"0" for score, keep in zip(scores, good, strict=True)]
            tokens = [parts if keep else b"0" for parts, keep in zip(tokens, good, strict=False)]
            columns = _columns(scores, tokens)
            assert columns is not None  # all numbers are finite
            columns[0][~np.array(good)] = np.inf
        return dict(zip((_SCORE, *_TOKENS), columns, strict=False))

    def _is_finite(self, score: bytes, tokens: bytes, line: int) -> bool:
        """Return whether the numbers of a hypothesis are finite, if others are to be dropped."""

        def number(token: str | bytes) -> float:
            return self._options.number(token, line, "in the lines of this hypothesis, ")

        total = number(repr(sum(map(number, tokens.split()))))
        return math.isfinite(number(score.strip()) + total)

    def _complete(self, sentence: _Sentence) -> None:
        """Add the columns of a sentence that is complete."""
        error, lines = self._options.error, sentence.lines
        scored = lines[_HYPOTHESIS] or lines[_PLAIN]
        if not scored:
            problem = f"sentence {sentence.id} has no H- line: the file is truncated"
            advice = "or lines of other sentences are in between (increase `interleaved`)"
            raise error(f"{problem}, {advice}", sentence.number)
        source, reference = (self._checked(sentence, letter, 1) for letter in (_SOURCE, _TARGET))
        plain, tokens, alignments = (
            self._checked(sentence, letter, len(scored))
            for letter in (_PLAIN, _POSITIONAL, _ALIGNMENT)
        )
        numbers, scores, texts = _split(scored)
        text_numbers = numbers
        if plain:
            text_numbers, others, texts = _split(plain)
            if others != scores:
                at = next(i for i, score in enumerate(scores) if score != others[i])
                problem = f"the score of this D- line is not that of the H- line {numbers[at]}"
                raise error(problem, text_numbers[at], "mismatch")
        printed = [rest for _, rest in tokens]
        if not all(map(bytes.strip, printed)):
            at = list(map(bytes.strip, printed)).index(b"")
            raise error("no token scores in the P- line of this hypothesis", numbers[at])
        self._sentences[ID].append(sentence.id)
        self._sentences["lines"].append(numbers[0])
        self._sentences["sizes"].append(len(scored))
        for name, known in ((SOURCE, source), (REFERENCE, reference)):
            if known:
                self._sentences[name] += self._texts(known)
        self._hypotheses[TEXT] += decoded_lines(texts, self._options.origin, text_numbers)
        if alignments:
            self._hypotheses["alignment"] += self._texts(alignments)
        for name, values in (("numbers", numbers), ("scores", scores), ("tokens", printed)):
            self._hypotheses[name] += values

    def _texts(self, lines: _Lines) -> list[str]:
        numbers, texts = zip(*lines, strict=True)
        return decoded_lines(texts, self._options.origin, numbers)

    def _checked(self, sentence: _Sentence, letter: bytes, count: int) -> _Lines:
        """Return the lines of a kind, that many or none; as for the first sentence."""
        lines, kind = sentence.lines[letter], letter.decode()
        if letter == _PLAIN and not self._format.detokenised and sentence.lines[_HYPOTHESIS]:
            return []
        usual = self._kinds.setdefault(letter, bool(lines))
        if bool(lines) is not usual:
            problem = f"sentence {sentence.id} has {'no' if usual else 'a'} {kind}- line"
            first = f"the first sentence has {'one' if usual else 'none'}"
            advice = f"give all of them one, or leave all {kind}- lines out"
            raise self._options.error(f"{problem}, {first}: {advice}", sentence.number, "mismatch")
        if len(lines) not in (0, count):
            problem = f"sentence {sentence.id} has {len(lines)} {kind}- lines, not {count}"
            advice = "give the whole output of one run"
            raise self._options.error(f"{problem}: {advice}", sentence.number, "wrong-length")
        return lines


def _split(lines: _Lines) -> tuple[Sequence[int], Sequence[bytes], Sequence[bytes]]:
    """Return the numbers, the scores and the texts of H- or D- lines."""
    numbers, rests = zip(*lines, strict=True)
    scores, _, texts = zip(*map(bytes.partition, rests, repeat(b"\t")), strict=True)
    return numbers, scores, texts


def _columns(scores: list[bytes], tokens: list[bytes]) -> list[Float64] | None:
    """Return the features of hypotheses column by column; None if a number is not finite."""
    found = None
    if len(scores) > _MANY:
        found = lines_of_numbers(b"\n".join([*scores, *tokens, b""]).replace(b" ", b"\n"), 1)
    counts = np.array(list(map(bytes.count, tokens, repeat(b" "))), np.int64) + 1
    numbers = None if found is None else found[:, 0]
    if numbers is None or len(numbers) != len(scores) + counts.sum():
        # few of them, or other blanks than single spaces
        parts = [of.split() for of in tokens]
        counts = np.array(list(map(len, parts)), np.int64)
        numbers = all_finite([*scores, *chain.from_iterable(parts)])
    if numbers is None or not tokens:
        return None if numbers is None else [numbers]
    values, of_tokens = np.split(numbers, [len(scores)])
    starts = np.cumsum(counts) - counts
    sums = np.add.reduceat(of_tokens, starts)
    if not np.all(np.abs(sums) < TOO_LARGE):
        return None
    return [values, sums, sums / counts, np.minimum.reduceat(of_tokens, starts), counts * 1.0]
