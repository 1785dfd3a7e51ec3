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
from itertools import chain, compress, repeat, zip_longest
from operator import attrgetter, not_
from typing import Any, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from bpa_ppl.component import Count
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.base import NBestFormat, ReadOptions
from bpa_ppl.formats.numbers import finite, several
from bpa_ppl.formats.streams import decoded
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.rows import Rows
from bpa_ppl.rows.base import TOO_LARGE

_SCORE, _TOKENS = ("score",), ("logprob.sum", "logprob.mean", "logprob.min", "length")
_SOURCE, _TARGET, _HYPOTHESIS, _PLAIN, _POSITIONAL, _ALIGNMENT = _LETTERS = (
    b"S", b"T", b"H", b"D", b"P", b"A"
)  # fmt: skip
_LINE = re.compile(rb"[STHDPA]-[0-9]+(?:\t|\r?$)")
_INSIDE = re.compile(rb"[STHDPA]-[0-9]+\t")
_AMID = re.compile(rb"^[STHD]-[0-9]+\t", re.MULTILINE)
_LOG = re.compile(rb"Namespace\(|[-0-9]+ [:0-9]+ \| [A-Z]+ \| fairseq")
# Files of up to so many blocks (of 1 MiB) are not worth loading compiled code.
_PLAIN_BLOCKS = 1
_LONGEST_ID = 18  # digits that surely fit 64 bits
_TAB, _NEWLINE, _RETURN, _DASH, _ZERO = b"\t\n\r-0"
_OUTSIDE = 255  # in a table of digits
_IS_LETTER = np.isin(np.arange(256), list(b"".join(_LETTERS)))


class _Lines(NamedTuple):
    """Lines of one kind.

    Attributes:
        numbers: of the lines in the file.
        scores: of H- and D- lines, what stands between the first two tabs.
        texts: what stands behind; of other lines, all behind the id and its tab.
    """

    numbers: list[int]
    scores: list[bytes]
    texts: list[bytes]

    def extend(self, other: _Lines, start: int, stop: int) -> None:
        """Append some of other lines."""
        self.numbers.extend(other.numbers[start:stop])
        self.scores.extend(other.scores[start:stop])
        self.texts.extend(other.texts[start:stop])


class _Sentence:
    """The lines of one sentence, by their letter."""

    def __init__(self, identifier: int, number: int):
        self.id = identifier
        self.number = number  # of the first line
        self.lines = {letter: _Lines([], [], []) for letter in _LETTERS}


class _List(NamedTuple):
    """A sentence that is complete; of its hypotheses there are columns.

    Attributes:
        sentence: its id.
        source: empty where the file has none.
        reference: empty where the file has none.
        numbers: of the lines that the scores are from.
        texts: one a hypothesis.
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


class _Fields(NamedTuple):
    """Where the fields of fairseq's lines are in a block of lines.

    Attributes:
        rows: which of its lines these are.
        letters: (lines,) the first byte of each.
        starts: (lines,) of the lines.
        tabs: (lines,) the end of the id.
        seconds: (lines,) the second tab.
        ends: (lines,) of the lines; a tab that is missing is here, too.
        begins: the lines that have another id than the one before.
    """

    rows: Int64
    letters: npt.NDArray[np.uint8]
    starts: Int64
    tabs: Int64
    seconds: Int64
    ends: Int64
    begins: Int64

    def lines(self, block: bytes, letter: bytes, first: int) -> tuple[_Lines, list[int]]:
        """Return the lines of one kind, and where those of each new id begin, with the end.

        Args:
            block: the bytes.
            letter: of the lines.
            first: the number of the first line of the block.
        """
        of_kind = np.flatnonzero(self.letters == ord(letter))
        tabs, seconds, ends = (part[of_kind] for part in (self.tabs, self.seconds, self.ends))
        scored = letter in (_HYPOTHESIS, _PLAIN)
        lines = _Lines(
            (first + self.rows[of_kind]).tolist(),
            _parts(block, tabs, seconds) if scored else [],
            _parts(block, seconds if scored else tabs, ends),
        )
        return lines, np.searchsorted(of_kind, [*self.begins, len(self.rows)]).tolist()


def _parts(block: bytes, tabs: Int64, ends: Int64) -> list[bytes]:
    """Return what stands between tabs and ends."""
    return [block[tab + 1 : end] for tab, end in zip(tabs.tolist(), ends.tolist(), strict=True)]


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

    def completed(self, block: bytes) -> Iterator[_List]:
        """Yield the sentences that a block of whole lines completes."""
        self._blocks += 1
        first = self._next
        fields = self._fields(block, first)
        kinds = [(letter, *fields.lines(block, letter, first)) for letter in _LETTERS]
        begins = (part[fields.begins].tolist() for part in fields[:4])
        for run, (row, _, start, tab) in enumerate(zip(*begins, strict=True)):
            digits = block[start + 2 : tab]
            if digits not in self._open:
                yield from self._begin(digits, first + row)
            lines = self._open[digits].lines
            for letter, found, bounds in kinds:
                lines[letter].extend(found, bounds[run], bounds[run + 1])

    def _fields(self, block: bytes, first: int) -> _Fields:
        """Return where the fields are; lines of the log are left out.

        Only NumPy goes through the bytes: compiled code takes longer to load than most files to
        read.
        """
        data = np.frombuffer(block + bytes(2 + _LONGEST_ID), np.uint8)
        ends = np.flatnonzero(data == _NEWLINE)
        self._next += len(ends)
        starts = np.append(0, ends[:-1] + 1)
        ends -= data[ends - 1] == _RETURN
        all_tabs = np.append(np.flatnonzero(data == _TAB), [len(data)] * 2)
        place = np.searchsorted(all_tabs, starts)
        tabs, seconds = (np.minimum(all_tabs[place + which], ends) for which in (0, 1))
        lettered = _IS_LETTER[data[starts]] & (data[starts + 1] == _DASH)
        widths = np.where(lettered, tabs - starts - 2, 0)  # of the ids
        for row in np.flatnonzero(widths > _LONGEST_ID).tolist():
            identifier = block[starts[row] + 2 : tabs[row]]
            if identifier.isdigit():
                raise self._error(f"sentence id {identifier.decode()} is too large", first + row)
            widths[row] = 0
        places = np.arange(widths.max(initial=0))
        inside = places < widths[:, np.newaxis]
        digits = data[starts[:, np.newaxis] + 2 + places] - _ZERO
        digits[~inside] = _OUTSIDE
        ours = (widths > 0) & ~np.any(inside & (digits > 9), axis=1)
        for row in np.flatnonzero(~ours).tolist():
            self._check_log(block, starts[row], ends[row], first + row)
        changed = np.any(digits[ours][1:] != digits[ours][:-1], axis=1)
        begins = np.flatnonzero(np.append(ours.any(), changed))
        rows = np.flatnonzero(ours)
        starts, tabs, seconds, ends = (part[rows] for part in (starts, tabs, seconds, ends))
        return _Fields(rows, data[starts], starts, tabs, seconds, ends, begins)

    def _check_log(self, block: bytes, start: int, end: int, number: int) -> None:
        """Refuse a line of the log that has one of fairseq's behind it."""
        hidden = _INSIDE.search(block, start, end)
        if hidden:
            raise self._error(
                f"{hidden[0].decode().strip()} does not begin its line: take out what stands "
                "before it, or run fairseq with --no-progress-bar",
                number,
            )

    def rest(self) -> Iterator[_List]:
        """Yield the sentences that the end of the file completes.

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
            yield self._list(sentence)

    def rows(self, lists: Iterable[_List]) -> Iterator[Rows]:
        """Yield the rows of some sentences, at once, if there are any."""
        found = list(lists)
        if not found:
            return
        sizes = [len(list_.texts) for list_ in found]
        kept = [True] * sum(sizes)

        def column(name: str) -> list[Any]:
            values = map(attrgetter(name), found)
            return list(compress(chain.from_iterable(values), kept))

        def spread(values: Iterable[Any]) -> list[Any]:
            return list(compress(chain.from_iterable(map(repeat, values, sizes)), kept))

        values = _values(column("scores"), column("tokens"), self._blocks > _PLAIN_BLOCKS)
        dropped: tuple[int, ...] = ()
        if values is None:
            hyps = zip_longest(column("scores"), column("tokens"), column("numbers"))
            ids = spread(list_.sentence for list_ in found)
            kept = [not self._fault(*hyp) for hyp in hyps]
            dropped = tuple(compress(ids, map(not_, kept)))
            values = _values(column("scores"), column("tokens"), compiled=False)
            assert values is not None  # no fault is left
        kinds = self._kinds
        names = _SCORE + _TOKENS if kinds[_POSITIONAL] else _SCORE
        texts = column("texts")
        yield Rows(
            names=names,
            ids=np.array(spread(list_.sentence for list_ in found), dtype=np.int64),
            lines=np.array(column("numbers"), dtype=np.int64),
            features=values.astype(np.float32).reshape(-1, len(names)),
            totals=None,
            strings=texts,  # some of them equal
            string_index=np.arange(len(texts), dtype=np.int32),
            dropped=dropped,
            extras={"alignment": column("alignments")} if kinds[_ALIGNMENT] else {},
            sources=spread(list_.source for list_ in found) if kinds[_SOURCE] else None,
            references=spread((list_.reference,) for list_ in found) if kinds[_TARGET] else None,
        )

    def _error(self, message: str, number: int) -> DataError:
        return DataError(message, self._options.origin, number)

    def _texts(self, lines: _Lines) -> list[str]:
        """Return the texts of some lines, without spaces around them."""
        try:
            joined = b"\n".join(lines.texts).decode()
        except UnicodeDecodeError:
            for text, number in zip(lines.texts, lines.numbers, strict=True):
                decoded(text, self._options.origin, number)  # says which it is
            raise
        return [text.strip(" ") for text in joined.split("\n")] if lines.texts else []

    def _begin(self, digits: bytes, number: int) -> Iterator[_List]:
        """Open a new sentence; yield the hypotheses of the one that has to be closed for it."""
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
            yield self._list(self._open.pop(next(iter(self._open))))

    def _list(self, sentence: _Sentence) -> _List:
        """Return the hypotheses of a sentence that is complete."""
        lines = sentence.lines
        scored = lines[_HYPOTHESIS if lines[_HYPOTHESIS].numbers else _PLAIN]
        count = len(scored.numbers)
        if not count:
            raise self._error(
                f"sentence {sentence.id} has no H- line: the file is cut short, or the lines of a "
                "sentence stand too far apart (`interleaved`)",
                sentence.number,
            )
        source, reference = (self._known(sentence, letter) for letter in (_SOURCE, _TARGET))
        plain, tokens, alignments = (
            self._for_each(sentence, letter, count) for letter in (_PLAIN, _POSITIONAL, _ALIGNMENT)
        )
        if plain.numbers and plain.scores != scored.scores:
            at = next(i for i in range(count) if plain.scores[i] != scored.scores[i])
            raise self._error(
                f"the score of this D- line is not that of the H- line {scored.numbers[at]}",
                plain.numbers[at],
            )
        return _List(
            sentence.id,
            source,
            reference,
            scored.numbers,
            self._texts(plain if plain.numbers else scored),
            list(map(bytes.strip, scored.scores)),
            tokens.texts,
            self._texts(alignments),
        )

    def _known(self, sentence: _Sentence, letter: bytes) -> str:
        """Return the source or the reference of a sentence, empty where the file has none."""
        lines = sentence.lines[letter]
        if len(lines.texts) > 1:
            raise self._error(
                f"a second {letter.decode()}- line of sentence {sentence.id}: read outputs of "
                "several runs one by one",
                lines.numbers[1],
            )
        self._check_even(sentence, letter)
        return "".join(self._texts(lines))

    def _for_each(self, sentence: _Sentence, letter: bytes, count: int) -> _Lines:
        """Return the lines that go with the hypotheses of a sentence, one each or none at all."""
        lines = sentence.lines[letter]
        hypotheses = sentence.lines[_HYPOTHESIS].numbers
        if letter == _PLAIN and not self._format.detokenised and hypotheses:
            return _Lines([], [], [])
        self._check_even(sentence, letter)
        found = len(lines.numbers)
        if found not in (0, count):
            kind = f"{letter.decode()}- lines"
            raise self._error(
                f"sentence {sentence.id} has {count} hypotheses and {found} {kind}: give one "
                f"for each, or leave all {kind} out",
                sentence.number,
            )
        return lines

    def _check_even(self, sentence: _Sentence, letter: bytes) -> None:
        """Refuse a sentence that has lines of a kind, or has none, unlike the first one."""
        given, kind = bool(sentence.lines[letter].numbers), letter.decode()
        usual = self._kinds.setdefault(letter, given)
        if given is not usual:
            raise self._error(
                f"sentence {sentence.id} has {'no' if usual else 'a'} {kind}- line, though the "
                f"first sentence has {'one' if usual else 'none'}: give them for all, or leave all "
                f"{kind}- lines out",
                sentence.number,
            )

    def _fault(self, score: bytes, tokens: bytes | None, number: int) -> bool:
        """Say whether a number of a hypothesis is bad, if such hypotheses are to be dropped."""
        parts = [] if tokens is None else tokens.split()
        if not parts and tokens is not None:
            raise self._error("no token scores in the P- line of this hypothesis", number)
        try:
            finite(score)
            finite(repr(sum(map(finite, parts))))
        except ValueError as error:
            if self._options.bad == "drop":
                return True
            raise self._error(
                f"{error}, in the lines of this hypothesis: correct it, or drop such "
                "hypotheses (bad: drop)",
                number,
            ) from error
        return False


def _values(scores: list[bytes], tokens: list[bytes], compiled: bool) -> Float64 | None:
    """Return the features of hypotheses, (hypotheses, features); None where a number is bad.

    Args:
        scores: one a hypothesis, as printed.
        tokens: the scores of the tokens of each, with spaces between them; empty for none at all.
        compiled: whether to load compiled code for them.
    """
    values = several(b" ".join(scores), len(scores), compiled)
    counts = 1 + np.array(list(map(bytes.count, tokens, repeat(b" "))), dtype=np.int64)
    of_tokens = several(b" ".join(tokens), int(counts.sum()), compiled)
    if of_tokens is None:  # perhaps there are other spaces than single ones
        parts = [part.split() for part in tokens]
        counts = np.array(list(map(len, parts)), dtype=np.int64)
        of_tokens = several(b" ".join(chain.from_iterable(parts)), int(counts.sum()), compiled)
    if values is None or of_tokens is None or not counts.all():
        return None
    if not len(counts):
        return values[:, np.newaxis]
    starts = np.cumsum(counts) - counts
    sums = np.add.reduceat(of_tokens, starts)
    columns = (values, sums, sums / counts, np.minimum.reduceat(of_tokens, starts), counts)
    return np.column_stack(columns) if np.all(np.abs(sums) < TOO_LARGE) else None
