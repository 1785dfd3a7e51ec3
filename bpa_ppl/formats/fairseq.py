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
included. Lines of another kind are the log of the program and are passed over.

Ids come in the order of fairseq's batches and stay what they are, so that they index references
and sources; so do those of shards (`generate-test_3_8.txt`), which are read one by one and put
together with `NBest.concatenate`. Hypotheses keep their order. The lines of a sentence may stand
between those of others, as long as no more than `interleaved` sentences are begun at a time: that
many are kept in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple, TextIO

import numpy as np

from bpa_ppl.component import Count
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.base import NBestFormat, ReadOptions
from bpa_ppl.formats.numbers import finite, several
from bpa_ppl.formats.streams import decoded
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.rows import Rows
from bpa_ppl.rows.base import TOO_LARGE

_SCORE, _TOKENS = ("score",), ("logprob.sum", "logprob.mean", "logprob.min", "length")
_SOURCE, _TARGET, _HYPOTHESIS, _PLAIN, _POSITIONAL, _ALIGNMENT = _LETTERS = (
    b"S", b"T", b"H", b"D", b"P", b"A"
)  # fmt: skip
_LINE = re.compile(rb"^([STHDPA])-([0-9]+)(?:\t(.*))?$", re.MULTILINE)
_INSIDE = re.compile(rb"[STHDPA]-[0-9]+\t")
_AMID = re.compile(rb"^[STHD]-[0-9]+\t", re.MULTILINE)
_LOG = re.compile(rb"Namespace\(|[-0-9]+ [:0-9]+ \| [A-Z]+ \| fairseq")
# Files of up to so many blocks (of 1 MiB) are not worth loading compiled code.
_PLAIN_BLOCKS = 1
_LONGEST_ID = 18  # digits that surely fit 64 bits


_Line = tuple[int, bytes]  # its number, and what stands after the id and its tab


class _Sentence:
    """The lines of one sentence, by their letter."""

    def __init__(self, identifier: int, number: int):
        self.id = identifier
        self.number = number  # of the first line
        self.lines: dict[bytes, list[_Line]] = {letter: [] for letter in _LETTERS}


class _Hypothesis(NamedTuple):
    sentence: int
    number: int
    text: str
    score: bytes
    tokens: bytes | None
    alignment: str | None
    source: str
    reference: str


class Fairseq(NBestFormat, frozen=True):
    """The format of fairseq.

    Attributes:
        detokenised: take the texts of D- lines where there are any, not those of H- lines.
        interleaved: how many sentences may be begun before the first of them is complete.
    """

    detokenised: bool = True
    interleaved: Count = 10

    def detect(self, first_line: bytes) -> bool:
        """Say whether a line is fairseq's, or one of the log that it prints before.

        >>> Fairseq().detect(b"S-17" + bytes([9]) + b"un chat"), Fairseq().detect(b"un chat")
        (True, False)
        >>> Fairseq().detect(b"2020-11-05 10:00:00 | INFO | fairseq_cli.generate | loading model")
        True
        """
        return bool(_LINE.match(first_line) or _LOG.match(first_line))

    def detect_within(self, beginning: bytes) -> bool:
        """Say whether lines of fairseq's stand behind those of a log.

        >>> Fairseq().detect_within(b"loading" + bytes([10]) + b"S-17" + bytes([9]) + b"un chat")
        True
        """
        return _AMID.search(beginning) is not None

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        r"""Yield the rows of the sentences that each block completes.

        Raises:
            DataError: with file and line, if a line is not as it should be, a sentence has lines
                of some kind for some of its hypotheses alone, or lines come too late.

        >>> text = b"S-7\tun chat\nH-7\t-0.5\ta c@@ at\nD-7\t-0.5\ta cat\nP-7\t-1 -0.5 0\n"
        >>> rows = next(Fairseq().parse([text], ReadOptions("generate-test.txt")))
        >>> rows.names, rows.features.tolist()
        (('score', 'logprob.sum', 'logprob.mean', 'logprob.min', 'length'), [[-0.5, -1.5, -0.5, -1.0, 3.0]])
        >>> rows.ids.tolist(), rows.strings, rows.sources
        ([7], ['a cat'], ['un chat'])
        """  # noqa: E501
        reader = _Reader(self, options)
        for block in blocks:
            yield from reader.rows(reader.completed(block))
        yield from reader.rows(reader.rest())

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Refuse to write: the lists do not have the score of each token.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            "lists cannot be written as fairseq prints them, because they have no scores of single "
            "tokens: choose another format, such as jsonl or moses"
        )


class _Reader:
    """Puts the lines of sentences together.

    Args:
        format: the settings.
        options: how to read.
    """

    def __init__(self, format: Fairseq, options: ReadOptions):
        self._format = format
        self._options = options
        self._next = 1  # the number of the next line
        self._blocks = 0  # read so far
        self._open: dict[bytes, _Sentence] = {}
        self._seen: set[int] = set()
        self._kinds: dict[bytes, bool] = {}  # letter -> whether hypotheses have such a line

    def completed(self, block: bytes) -> Iterator[_Hypothesis]:
        """Yield the hypotheses of the sentences that a block of whole lines completes."""
        found: list[tuple[bytes, bytes, bytes]] = [] if b"\r" in block else _LINE.findall(block)
        self._blocks += 1
        start, self._next = self._next, self._next + block.count(b"\n")
        if len(found) != self._next - start:  # there are lines of the log among them
            found = [self._cut(line, n) for n, line in enumerate(block[:-1].split(b"\n"), start)]
        last, lines = b"", {}
        for number, (letter, digits, rest) in enumerate(found, start):
            if not letter:
                continue
            if digits != last:
                if digits not in self._open:
                    yield from self._begin(digits, number)
                lines = self._open[digits].lines
                last = digits
            lines[letter].append((number, rest))

    def _cut(self, line: bytes, number: int) -> tuple[bytes, bytes, bytes]:
        """Return letter, id and rest of a line; nothing of one of the log."""
        match = _LINE.fullmatch(line.removesuffix(b"\r"))
        if match:
            return match[1], match[2], match[3] or b""
        hidden = _INSIDE.search(line)
        if hidden:
            raise self._error(
                f"{hidden[0].decode().strip()} does not begin its line: take out what stands "
                "before it, or run fairseq with --no-progress-bar",
                number,
            )
        return b"", b"", b""

    def rest(self) -> Iterator[_Hypothesis]:
        """Yield the hypotheses of the sentences that the end of the file completes.

        Raises:
            DataError: if the file has none at all, too.
        """
        if not self._seen:
            raise DataError(
                "no line of fairseq's in it (`H-0`, a score, a text): give the output that it "
                "prints, not its log",
                self._options.origin,
            )
        for sentence in self._open.values():
            yield from self._hypotheses(sentence)

    def rows(self, hypotheses: Iterable[_Hypothesis]) -> Iterator[Rows]:
        """Yield the rows of some hypotheses, at once, if there are any."""
        hyps = list(hypotheses)
        dropped: list[int] = []
        values = _values(hyps, self._blocks > _PLAIN_BLOCKS)
        if values is None:
            faults = [self._fault(hyp) for hyp in hyps]
            dropped = [h.sentence for h, fault in zip(hyps, faults, strict=True) if fault]
            hyps = [h for h, fault in zip(hyps, faults, strict=True) if not fault]
            values = _values(hyps, compiled=False)
            assert values is not None  # no fault is left
        if not hyps and not dropped:
            return
        kinds = self._kinds
        names = _SCORE + _TOKENS if kinds[_POSITIONAL] else _SCORE
        yield Rows(
            names=names,
            ids=np.array([hyp.sentence for hyp in hyps], dtype=np.int64),
            lines=np.array([hyp.number for hyp in hyps], dtype=np.int64),
            features=values.astype(np.float32).reshape(-1, len(names)),
            totals=None,
            strings=[hyp.text for hyp in hyps],  # some of them equal
            string_index=np.arange(len(hyps), dtype=np.int32),
            dropped=tuple(dropped),
            extras={"alignment": [h.alignment for h in hyps]} if kinds[_ALIGNMENT] else {},
            sources=[h.source for h in hyps] if kinds[_SOURCE] else None,
            references=[(h.reference,) for h in hyps] if kinds[_TARGET] else None,
        )

    def _error(self, message: str, number: int) -> DataError:
        return DataError(message, self._options.origin, number)

    def _text(self, data: bytes, number: int) -> str:
        return decoded(data.strip(b" "), self._options.origin, number)

    def _begin(self, digits: bytes, number: int) -> Iterator[_Hypothesis]:
        """Open a new sentence; yield the hypotheses of the one that has to be closed for it."""
        if len(digits) > _LONGEST_ID:
            raise self._error(f"sentence id {digits.decode()} is too large", number)
        sentence = _Sentence(int(digits), number)
        if sentence.id in self._seen:
            raise self._error(
                f"a line of sentence {sentence.id}, after {self._format.interleaved} others were "
                "begun: give the file in the order that fairseq printed it, or set "
                "`interleaved` to a larger number",
                number,
            )
        self._seen.add(sentence.id)
        self._open[digits] = sentence
        if len(self._open) > self._format.interleaved:
            yield from self._hypotheses(self._open.pop(next(iter(self._open))))

    def _hypotheses(self, sentence: _Sentence) -> Iterator[_Hypothesis]:
        """Yield the hypotheses of a sentence that is complete."""
        lines = sentence.lines
        scored = lines[_HYPOTHESIS] or lines[_PLAIN]
        if not scored:
            raise self._error(
                f"sentence {sentence.id} has no H- line: the file is cut short, or the lines of a "
                "sentence stand too far apart (`interleaved`)",
                sentence.number,
            )
        source, reference = (self._known(sentence, letter) for letter in (_SOURCE, _TARGET))
        plain, tokens, alignments = (
            self._for_each(sentence, letter, len(scored))
            for letter in (_PLAIN, _POSITIONAL, _ALIGNMENT)
        )
        texts = plain if plain and self._format.detokenised else scored
        for i, ((number, rest), (place, same)) in enumerate(zip(scored, texts, strict=True)):
            score, _, _ = rest.partition(b"\t")
            other, _, text = same.partition(b"\t")
            if other != score:
                raise self._error(
                    f"the score of this D- line is not that of the H- line {number}", place
                )
            yield _Hypothesis(
                sentence.id,
                number,
                self._text(text, place),
                score.strip(),
                tokens[i][1] if tokens else None,
                self._text(alignments[i][1], alignments[i][0]) if alignments else None,
                source,
                reference,
            )

    def _known(self, sentence: _Sentence, letter: bytes) -> str:
        """Return the source or the reference of a sentence, empty where the file has none."""
        lines = sentence.lines[letter]
        if len(lines) > 1:
            raise self._error(
                f"a second {letter.decode()}- line of sentence {sentence.id}: read outputs of "
                "several runs one by one",
                lines[1][0],
            )
        if self._kinds.setdefault(letter, bool(lines)) is not bool(lines):
            raise self._uneven(sentence, letter)
        return self._text(lines[0][1], lines[0][0]) if lines else ""

    def _for_each(self, sentence: _Sentence, letter: bytes, count: int) -> list[_Line]:
        """Return the lines that go with the hypotheses of a sentence, one each or none at all."""
        lines = sentence.lines[letter]
        if letter == _PLAIN and not self._format.detokenised and sentence.lines[_HYPOTHESIS]:
            return []
        if self._kinds.setdefault(letter, bool(lines)) is not bool(lines):
            raise self._uneven(sentence, letter)
        if lines and len(lines) != count:
            kind = f"{letter.decode()}- lines"
            raise self._error(
                f"sentence {sentence.id} has {count} hypotheses and {len(lines)} {kind}: give one "
                f"for each, or leave all {kind} out",
                sentence.number,
            )
        return lines

    def _uneven(self, sentence: _Sentence, letter: bytes) -> DataError:
        usual, kind = self._kinds[letter], letter.decode()
        return self._error(
            f"sentence {sentence.id} has {'no' if usual else 'a'} {kind}- line, though the first "
            f"sentence has {'one' if usual else 'none'}: give them for all, or leave all {kind}- "
            "lines out",
            sentence.number,
        )

    def _fault(self, hyp: _Hypothesis) -> bool:
        """Say whether a number of a hypothesis is bad, if such hypotheses are to be dropped."""
        tokens = [] if hyp.tokens is None else hyp.tokens.split()
        if not tokens and hyp.tokens is not None:
            raise self._error("no token scores in the P- line of this hypothesis", hyp.number)
        try:
            finite(hyp.score)
            finite(repr(sum(map(finite, tokens))))
        except ValueError as error:
            if self._options.bad == "drop":
                return True
            raise self._error(
                f"{error}, in the lines of this hypothesis: correct it, or leave such hypotheses "
                "out with bad='drop'",
                hyp.number,
            ) from error
        return False


def _values(hyps: list[_Hypothesis], compiled: bool) -> Float64 | None:
    """Return the features of hypotheses, (hypotheses, features); None where a number is bad."""
    scores = several(b" ".join([hyp.score for hyp in hyps]), len(hyps), compiled)
    printed = [hyp.tokens for hyp in hyps if hyp.tokens is not None]
    counts = np.array([part.count(b" ") + 1 for part in printed], dtype=np.int64)
    tokens = several(b" ".join(printed), int(counts.sum()), compiled)
    if tokens is None:  # perhaps there are other spaces than single ones
        parts = [part.split() for part in printed]
        counts = np.array(list(map(len, parts)), dtype=np.int64)
        tokens = several(b" ".join(chain.from_iterable(parts)), int(counts.sum()), compiled)
    if scores is None or tokens is None or not counts.all():
        return None
    if not len(counts):
        return scores[:, np.newaxis]
    starts = np.cumsum(counts) - counts
    sums = np.add.reduceat(tokens, starts)
    columns = (scores, sums, sums / counts, np.minimum.reduceat(tokens, starts), counts)
    return np.column_stack(columns) if np.all(np.abs(sums) < TOO_LARGE) else None
