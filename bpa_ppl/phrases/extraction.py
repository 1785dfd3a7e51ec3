"""Count the phrase pairs of aligned text, as the `extract` of Moses finds them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.streams import AnyPath, decoded, origin_name, read_blocks
from bpa_ppl.nbest import Float64, Int32, Int64
from bpa_ppl.phrases.spans import OUTSIDE, extract_spans, parse_points
from bpa_ppl.phrases.tables import PhraseCounts
from bpa_ppl.phrases.tree import PhraseTree
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.text.language_model import TextModel
from bpa_ppl.text.words import Ragged, sentences_of

_SENTENCES = 20_000  # per batch
_HALF = 32  # bits of the number of a target phrase


def extract_phrases(
    source: AnyPath,
    target: AnyPath,
    alignment: AnyPath,
    *,
    max_length: int = 5,
    keep: npt.NDArray[np.bool_] | None = None,
    progress: bool | Reporter = False,
) -> PhraseCounts:
    """Return the counts of all phrase pairs of a corpus that are consistent with its alignment.

    A pair has at least one alignment point, and no word of either phrase is aligned outside the
    other. Unaligned words next to a phrase may be included or not, and each choice is a pair (Och &
    Ney 2004; Koehn, Och & Marcu 2003), as in the `extract` of Moses.

    The text is read in parts. Memory grows with the number of distinct phrases and pairs, about
    200 bytes a pair, not with the length of the text.

    Args:
        source: a sentence per line, words separated by spaces; plain, gzip, xz or zstd.
        target: the translations, the same number of lines.
        alignment: lines of points `0-0 1-2`, source and target positions from 0.
        max_length: the maximum number of words of a phrase, on both sides.
        keep: (sentences,) bool, to extract only from some sentence pairs: see `select_lines`.
        progress: True for a bar of the sentences, or a callback.

    Raises:
        DataError: with file and line, if a point is malformed or outside its sentence; if the
            files are empty, have different numbers of lines, or have no phrase pair.
        UsageError: if `max_length` is below 1.
    """
    if max_length < 1:
        raise UsageError(f"max_length must be at least 1, not {max_length}")
    paths = (source, target, alignment)
    counter, trees = PairCounter(), (PhraseTree(), PhraseTree())
    with reporter(progress, "extracting") as report:
        total = 0
        if progress and str(alignment) != "-":
            total = sum(block.count(b"\n") for block in read_blocks(alignment))
        done = 0
        for lines in _batches(paths):
            end = done + len(lines.source)
            chosen = None if keep is None else keep[done:end]
            counter.add(*_numbered_pairs(lines, trees, max_length, alignment, done + 1, chosen))
            done = end
            report(done, max(total, done), "sentence pairs")
    if not done:
        raise DataError("the file is empty", origin_name(source))
    if keep is not None and len(keep) != done:
        raise UsageError(f"keep has {len(keep)} values, but there are {done} sentence pairs")
    pairs, counts = counter.counted()
    if not len(pairs):
        raise DataError(
            "no phrase pair is consistent with the alignment: give that of these sentences",
            origin_name(alignment),
        )
    sources, first = trees[0].texts(pairs >> _HALF)
    targets, second = trees[1].texts(pairs & ((1 << _HALF) - 1))
    return PhraseCounts.numbered(sources, targets, first, second, counts.astype(np.float64))


class PairCounter:
    """Count pairs of numbers, which are added in parts, by sorting them.

    Args:
        max_pending: the number of occurrences to collect before they are counted.
    """

    def __init__(self, max_pending: int = 1 << 24) -> None:
        self._max_pending = max_pending
        self._pairs, self._counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._pending: list[Int64] = []
        self._waiting = 0

    def add(self, source: Int32, target: Int32) -> None:
        """Add one occurrence of each pair."""
        self._pending.append((source.astype(np.int64) << _HALF) + target)
        self._waiting += len(source)
        if self._waiting > self._max_pending:
            self._merge()

    def counted(self) -> tuple[Int64, Int64]:
        """Return the distinct pairs, (source << 32) + target, ascending, and their counts."""
        self._merge()
        return self._pairs, self._counts

    def _merge(self) -> None:
        fresh = np.sort(np.concatenate([np.zeros(0, np.int64), *self._pending]))
        self._pending, self._waiting = [], 0
        starts = np.flatnonzero(np.diff(fresh, prepend=-1))
        counts = np.diff(starts, append=len(fresh))
        pairs = np.concatenate([self._pairs, fresh[starts]])
        counts = np.concatenate([self._counts, counts])
        del fresh
        order = np.argsort(pairs, kind="stable")
        pairs, counts = pairs[order], counts[order]
        firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
        self._pairs = pairs[firsts]
        self._counts = np.add.reduceat(counts, firsts) if len(firsts) else counts


class _Batch(NamedTuple):
    source: list[bytes]
    target: list[bytes]
    alignment: list[bytes]


def _numbered_pairs(
    lines: _Batch,
    trees: tuple[PhraseTree, PhraseTree],
    longest: int,
    path: AnyPath,
    first: int,
    keep: npt.NDArray[np.bool_] | None,
) -> tuple[Int32, Int32]:
    """Return the numbers of the source and target phrases of all pairs in some sentences."""
    if keep is not None:
        # Empty lines have no phrases, and keep the line numbers.
        lines = _Batch(
            *([line if k else b"" for line, k in zip(part, keep, strict=False)] for part in lines)
        )
    sides = [tree.words(part) for tree, part in zip(trees, lines, strict=False)]
    points = _points(lines, sides, path, first)
    lengths = (np.diff(sides[0][1]), np.diff(sides[1][1]))
    starts, spans = extract_spans(lengths, points, (longest, longest))
    columns = np.ascontiguousarray(spans.T)
    return (
        trees[0].numbers(sides[0], starts, columns[0], columns[1]),
        trees[1].numbers(sides[1], starts, columns[2], columns[3]),
    )


def _points(lines: _Batch, sides: list[Ragged], path: AnyPath, first: int) -> tuple[Any, ...]:
    text = np.frombuffer(b"\n".join([*lines.alignment, b""]), np.uint8)
    *points, wrong, sentence = parse_points(text, sides[0][1], sides[1][1])
    if wrong:
        lengths = [int(starts[sentence + 1] - starts[sentence]) for _, starts in sides]
        line = lines.alignment[sentence].decode(errors="replace").strip()
        outside = (
            f"a point of {line!r} is outside the sentences of {lengths[0]} and {lengths[1]} "
            "words: give source-target positions from 0, of these two files in this order"
        )
        malformed = f"alignment points must be like 0-0 1-2, not {line!r}"
        message = outside if wrong == OUTSIDE else malformed
        raise DataError(message, origin_name(path), first + sentence)
    return tuple(points)


def _batches(paths: Sequence[AnyPath]) -> Iterator[_Batch]:
    """Yield batches of lines of the three files.

    Raises:
        DataError: if a file has fewer lines than the others.
    """
    files = [_lines(path) for path in paths]
    done = 0
    while True:
        batch = _Batch(*(list(islice(lines, _SENTENCES)) for lines in files))
        sizes = [len(part) for part in batch]
        if len(set(sizes)) > 1:
            short, long = paths[int(np.argmin(sizes))], paths[int(np.argmax(sizes))]
            raise DataError(
                f"has {done + min(sizes)} lines, and {origin_name(long)} has more: each file must "
                "have one line per sentence pair",
                origin_name(short),
            )
        if not batch.source:
            return
        yield batch
        done += sizes[0]


def _lines(path: AnyPath) -> Iterator[bytes]:
    first = 1
    for block in read_blocks(path):
        decoded(block, path, first)
        lines = block.split(b"\n")[:-1]
        first += len(lines)
        yield from lines


def sentence_perplexities(model: TextModel, sentences: Sequence[Sequence[str]]) -> Float64:
    """Return (sentences,) the perplexity of each: exp(−mean log p) over its words and its end.

    >>> from bpa_ppl.text.language_model import NgramModel
    >>> model = NgramModel.estimate([["a", "b"]] * 3, order=1)
    >>> near, far = sentence_perplexities(model, [["a", "b"], ["c", "b"]])
    >>> bool(near < far)
    True
    """
    lengths = np.array([len(sentence) + 1 for sentence in sentences], dtype=np.float64)
    return np.exp(-model.log_probabilities(sentences) / lengths)


def select_sentences(perplexities: npt.ArrayLike, keep: float) -> npt.NDArray[np.bool_]:
    """Return (sentences,) bool: those with the lowest perplexity; of equal ones the first.

    Args:
        perplexities: (sentences,) as of `sentence_perplexities`.
        keep: the share of the sentences, in (0, 1]; at least one sentence is kept.

    Raises:
        UsageError: if the share is not in (0, 1].

    >>> select_sentences([30.0, 10.0, 20.0, 40.0], 0.5).tolist()
    [False, True, True, False]
    """
    if not 0 < keep <= 1:
        raise UsageError(
            f"the share of sentences to keep must be above 0 and up to 1, not {keep:g}"
        )
    values = np.asarray(perplexities, np.float64)
    chosen = np.zeros(len(values), dtype=bool)
    chosen[np.argsort(values, kind="stable")[: math.ceil(keep * len(values))]] = True
    return chosen


def select_lines(model: TextModel, path: AnyPath, keep: float) -> npt.NDArray[np.bool_]:
    """Return (lines,) bool: the lines of a text file with the lowest perplexity under a model.

    The text is read in parts.

    Args:
        model: of text of the domain.
        path: the target side of a corpus.
        keep: the share of the lines, above 0 and up to 1.

    Raises:
        DataError: if the file cannot be read.
        UsageError: if the share is not in (0, 1].
    """
    parts = [sentence_perplexities(model, part) for part in sentences_of(path)]
    return select_sentences(np.concatenate([np.zeros(0), *parts]), keep)
