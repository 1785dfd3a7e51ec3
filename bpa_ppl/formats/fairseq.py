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

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple, TextIO

import numpy as np

from bpa_ppl.component import Count
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.base import NBestFormat, ReadOptions
from bpa_ppl.formats.numbers import all_finite, finite, lines_of_numbers
from bpa_ppl.formats.streams import decoded, line_count
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.rows import Rows, SchemaReader
from bpa_ppl.rows.base import ID, REFERENCE, SOURCE, TEXT, TOO_LARGE
from bpa_ppl.rows.schema import Fields

_SCORE, _TOKENS = "score", ("logprob.sum", "logprob.mean", "logprob.min", "length")
_SOURCE, _TARGET, _HYPOTHESIS, _PLAIN, _POSITIONAL, _ALIGNMENT = _LETTERS = (
    b"S", b"T", b"H", b"D", b"P", b"A"
)  # fmt: skip
_LINE = re.compile(rb"([STHDPA])-([0-9]+)(?:\t|\r?$)")
_INSIDE = re.compile(rb"[STHDPA]-[0-9]+\t")
_AMID = re.compile(rb"^[STHD]-[0-9]+\t", re.MULTILINE)
_LOG = re.compile(rb"Namespace\(|[-0-9]+ [:0-9]+ \| [A-Z]+ \| fairseq")
_LONGEST_ID = 18  # digits that fit 64 bits
_MANY = 1000  # hypotheses in a block from which loading PyArrow is worth it

_Lines = list[tuple[int, bytes]]  # numbers of lines, and what follows the id and its tab


class _Sentence:
    """The lines of one sentence, by their letter."""

    def __init__(self, identifier: int, number: int):
        self.id = identifier
        self.number = number  # of the first line
        self.lines: dict[bytes, _Lines] = {letter: [] for letter in _LETTERS}
        self.heads: list[bytes] = []  # the beginnings of its lines, such as `H-7`


class _List(NamedTuple):
    """A complete sentence, with columns of its hypotheses.

    Attributes:
        sentence: its id.
        source: empty where the file has none.
        reference: empty where the file has none.
        numbers: the lines of the scores.
        texts: one per hypothesis.
        scores: as printed.
        tokens: the scores of tokens as printed; empty where the file has none.
        alignments: empty where the file has none.
    """

    sentence: int
    source: str
    reference: str
    numbers: list[int]
    texts: list[str]
    scores: list[bytes]
    tokens: list[bytes]
    alignments: list[str]


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
        first = 1
        for block in blocks:
            yield from reader.rows(reader.completed(block, first))
            first += line_count(block)
        yield from reader.rows(reader.rest())

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Raise an error: the lists do not have the scores of tokens.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            "lists cannot be written in the format of fairseq, because they have no scores of "
            "tokens: choose another format, such as jsonl or moses"
        )


class _Reader:
    """Collects the lines of sentences.

    Args:
        format: the settings.
        options: how to read.
    """

    def __init__(self, format: Fairseq, options: ReadOptions):
        self._format = format
        self._options = options
        self._schema = SchemaReader(options.origin, options.bad, nan_is_missing=False)
        self._open: dict[int, _Sentence] = {}
        self._lines: dict[bytes, _Lines] = {}  # of open sentences, by the beginning of the line
        self._seen: set[int] = set()
        self._kinds: dict[bytes, bool] = {}  # letter -> whether hypotheses have such a line

    def completed(self, block: bytes, first: int) -> Iterator[_List]:
        """Yield the sentences that a block of whole lines completes."""
        lines = block[:-1].split(b"\n")
        if b"\r" in block:
            lines = [line.removesuffix(b"\r") for line in lines]
        known = self._lines
        for number, line in enumerate(lines, first):
            head, _, rest = line.partition(b"\t")
            of_kind = known.get(head)
            if of_kind is None:
                found = _LINE.match(line)
                if found is None:
                    self._check_log(line, number)
                    continue
                yield from self._begin(head, found[1], found[2], number)
                of_kind = known[head]
            of_kind.append((number, rest))

    def _check_log(self, line: bytes, number: int) -> None:
        """Raise if a line of the log is followed by one of fairseq without a line break."""
        hidden = _INSIDE.search(line)
        if hidden:
            raise self._error(
                f"{hidden[0].decode().strip()} is not at the start of its line: remove the text "
                "before it, or run fairseq with --no-progress-bar",
                number,
            )

    def _begin(self, head: bytes, letter: bytes, digits: bytes, number: int) -> Iterator[_List]:
        """Open a new sentence, if it is not open; yield the one that has to be closed for it."""
        if len(digits) > _LONGEST_ID:
            raise self._error(f"sentence id {digits.decode()} is too large", number)
        identifier = int(digits)
        if identifier not in self._open:
            if identifier in self._seen:
                raise self._error(
                    f"a line of sentence {identifier}, after {self._format.interleaved} other "
                    "sentences: keep the order in which fairseq printed the file, or increase "
                    "`interleaved`",
                    number,
                )
            self._seen.add(identifier)
            self._open[identifier] = _Sentence(identifier, number)
            if len(self._open) > self._format.interleaved:
                oldest = self._open.pop(next(iter(self._open)))
                for old in oldest.heads:
                    del self._lines[old]
                yield self._list(oldest)
        sentence = self._open[identifier]
        sentence.heads.append(head)
        self._lines[head] = sentence.lines[letter]

    def rest(self) -> Iterator[_List]:
        """Yield the sentences that the end of the file completes.

        Raises:
            DataError: also if the file has no sentences at all.
        """
        if not self._seen:
            raise DataError(
                "no line of fairseq in it (`H-0`, a score, a text): give the output of fairseq, "
                "not its log",
                self._options.origin,
            )
        for sentence in self._open.values():
            yield self._list(sentence)

    def rows(self, lists: Iterable[_List]) -> Iterator[Rows]:
        """Yield the rows of some sentences, if there are any."""
        found = list(lists)
        if not found:
            return
        sizes = [len(list_.texts) for list_ in found]
        numbers = np.array(list(chain.from_iterable(list_.numbers for list_ in found)))
        hypotheses: dict[str, Any] = {
            TEXT: list(chain.from_iterable(list_.texts for list_ in found)),
            **self._features(found, numbers.tolist()),
        }
        if self._kinds[_ALIGNMENT]:
            alignments = chain.from_iterable(list_.alignments for list_ in found)
            hypotheses["alignment"] = list(alignments)
        sentences: dict[str, Any] = {ID: [list_.sentence for list_ in found]}
        if self._kinds[_SOURCE]:
            sentences[SOURCE] = [list_.source for list_ in found]
        if self._kinds[_TARGET]:
            sentences[REFERENCE] = [list_.reference for list_ in found]
        parents = np.repeat(np.arange(len(found)), sizes)
        lines = np.array([list_.numbers[0] for list_ in found])
        rows = self._schema.rows(Fields(hypotheses, sentences, parents, lines, nested=True))
        yield rows._replace(lines=numbers) if not rows.dropped else rows

    def _features(self, found: list[_List], numbers: list[int]) -> dict[str, Any]:
        """Return the columns of numbers; infinity in hypotheses that are to be dropped."""
        scores = list(chain.from_iterable(list_.scores for list_ in found))
        tokens = list(chain.from_iterable(list_.tokens for list_ in found))
        columns = _columns(scores, tokens)
        if columns is None:
            good = [
                self._is_finite(score, parts, number)
                for score, parts, number in zip(
                    scores, tokens or [b""] * len(scores), numbers, strict=True
                )
            ]
            scores = [score if keep else b"0" for score, keep in zip(scores, good, strict=True)]
            tokens = [parts if keep else b"0" for parts, keep in zip(tokens, good, strict=False)]
            columns = _columns(scores, tokens)
            assert columns is not None  # all numbers are finite
            columns[0][~np.array(good)] = np.inf
        names = (_SCORE, *_TOKENS) if tokens else (_SCORE,)
        return dict(zip(names, columns, strict=True))

    def _is_finite(self, score: bytes, tokens: bytes, number: int) -> bool:
        """Return whether the numbers of a hypothesis are finite, if others are to be dropped."""
        try:
            finite(score)
            finite(repr(sum(map(finite, tokens.split()))))
        except ValueError as error:
            if self._options.bad == "drop":
                return False
            raise self._error(
                f"{error}, in the lines of this hypothesis: correct it, or drop such hypotheses "
                "(bad: drop)",
                number,
                parameter="bad",
            ) from error
        return True

    def _error(self, message: str, number: int, parameter: str | None = None) -> DataError:
        return DataError(message, self._options.origin, number, parameter=parameter)

    def _texts(self, texts: Sequence[bytes], lines: _Lines) -> list[str]:
        """Return the texts of some lines, without spaces around them."""
        try:
            joined = b"\n".join(texts).decode()
        except UnicodeDecodeError:
            for text, (number, _) in zip(texts, lines, strict=True):
                decoded(text, self._options.origin, number)  # says which it is
            raise
        return [text.strip(" ") for text in joined.split("\n")] if texts else []

    def _list(self, sentence: _Sentence) -> _List:
        """Return the hypotheses of a sentence that is complete."""
        lines = sentence.lines
        scored = lines[_HYPOTHESIS] or lines[_PLAIN]
        if not scored:
            raise self._error(
                f"sentence {sentence.id} has no H- line: the file is truncated, or lines of other "
                "sentences are in between (increase `interleaved`)",
                sentence.number,
            )
        source, reference = (self._known(sentence, letter) for letter in (_SOURCE, _TARGET))
        plain, tokens, alignments = (
            self._for_each(sentence, letter, len(scored))
            for letter in (_PLAIN, _POSITIONAL, _ALIGNMENT)
        )
        scores, texts = _split(scored)
        if plain:
            others, texts = _split(plain)
            if others != scores:
                at = next(i for i, score in enumerate(scores) if score != others[i])
                raise self._error(
                    f"the score of this D- line differs from that of the H- line {scored[at][0]}",
                    plain[at][0],
                )
        for (_, printed), (line, _) in zip(tokens, scored, strict=False):
            if not printed or printed.isspace():
                raise self._error("no token scores in the P- line of this hypothesis", line)
        return _List(
            sentence.id,
            source,
            reference,
            [number for number, _ in scored],
            self._texts(texts, plain or scored),
            [score.strip() for score in scores],
            [printed for _, printed in tokens],
            self._texts([printed for _, printed in alignments], alignments),
        )

    def _known(self, sentence: _Sentence, letter: bytes) -> str:
        """Return the source or the reference of a sentence, empty where the file has none."""
        lines = sentence.lines[letter]
        if len(lines) > 1:
            raise self._error(
                f"a second {letter.decode()}- line of sentence {sentence.id}: read the outputs of "
                "several runs one by one",
                lines[1][0],
            )
        self._check_even(sentence, letter)
        return "".join(self._texts([text for _, text in lines], lines))

    def _for_each(self, sentence: _Sentence, letter: bytes, count: int) -> _Lines:
        """Return the lines that belong to the hypotheses of a sentence, one each or none at all."""
        lines = sentence.lines[letter]
        if letter == _PLAIN and not self._format.detokenised and sentence.lines[_HYPOTHESIS]:
            return []
        self._check_even(sentence, letter)
        if len(lines) not in (0, count):
            kind = f"{letter.decode()}- lines"
            raise self._error(
                f"sentence {sentence.id} has {count} hypotheses and {len(lines)} {kind}: give one "
                f"for each, or leave all {kind} out",
                sentence.number,
            )
        return lines

    def _check_even(self, sentence: _Sentence, letter: bytes) -> None:
        """Raise if a sentence has lines of a kind that the first one lacks, or the reverse."""
        given, kind = bool(sentence.lines[letter]), letter.decode()
        usual = self._kinds.setdefault(letter, given)
        if given is not usual:
            raise self._error(
                f"sentence {sentence.id} has {'no' if usual else 'a'} {kind}- line, but the first "
                f"sentence has {'one' if usual else 'none'}: give all of them one, or leave all "
                f"{kind}- lines out",
                sentence.number,
            )


def _split(lines: _Lines) -> tuple[list[bytes], list[bytes]]:
    """Return the scores and the texts of H- or D- lines."""
    cut = [rest.partition(b"\t") for _, rest in lines]
    return [score for score, _, _ in cut], [text for _, _, text in cut]


def _columns(scores: list[bytes], tokens: list[bytes]) -> list[Float64] | None:
    """Return the features of hypotheses column by column; None if a number is not finite."""
    values = all_finite(scores)
    if values is None or not tokens:
        return None if values is None else [values]
    printed = b"\n".join(tokens).replace(b" ", b"\n")
    found = lines_of_numbers(printed + b"\n", 1) if len(tokens) > _MANY else None
    if found is not None:
        of_tokens, counts = (
            found[:, 0],
            np.array(list(map(bytes.count, tokens, repeat(b" ")))) + 1.0,
        )
    else:  # few of them, or other blanks than single spaces
        parts = [of.split() for of in tokens]
        several = all_finite(list(chain.from_iterable(parts)))
        if several is None:
            return None
        of_tokens, counts = several, np.array(list(map(len, parts)), np.float64)
    starts = (np.cumsum(counts) - counts).astype(np.int64)
    sums = np.add.reduceat(of_tokens, starts)
    if not np.all(np.abs(sums) < TOO_LARGE):
        return None
    return [values, sums, sums / counts, np.minimum.reduceat(of_tokens, starts), counts]
