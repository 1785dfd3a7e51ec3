"""Count the phrase pairs of aligned text, as the `extract` of Moses finds them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice, zip_longest

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bpa_ppl._runtime.arrays import Int32, Int64
from bpa_ppl._runtime.progress import Reporter, reporter
from bpa_ppl._runtime.streams import AnyPath, decode, origin_name, read_chunks
from bpa_ppl.errors import DataError, wrong_value
from bpa_ppl.extras.phrases.spans import POINT, extract_spans, parse_positions
from bpa_ppl.extras.phrases.tables import PhraseCounts, sum_equal
from bpa_ppl.extras.phrases.tree import PhraseTree
from bpa_ppl.text.language_model import TextModel
from bpa_ppl.text.words import Ragged, iter_sentences

_SENTENCES = 20_000  # per batch
MAX_PENDING = 1 << 24  # occurrences of pairs that are counted at once
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
        raise wrong_value("max_length must be at least 1", max_length, "max_length")
    trees = PhraseTree(), PhraseTree()
    pairs, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    pending: list[Int64] = []  # occurrences of pairs, (source << 32) + target
    with reporter(progress, "extracting") as report:
        done = 0
        for batch in _read_batches((source, target, alignment)):
            line, done = done + 1, done + len(batch[0])
            if keep is not None:
                # Empty lines have no phrases, and keep the line numbers.
                chosen = keep[line - 1 : done]
                batch = [[x if k else b"" for x, k in zip(p, chosen, strict=False)] for p in batch]
            sides = [tree.words(lines) for tree, lines in zip(trees, batch[:2], strict=True)]
            points = _read_points(batch[2], sides, alignment, line)
            lengths = np.diff(sides[0][1]), np.diff(sides[1][1])
            starts, spans = extract_spans(lengths, points, (max_length, max_length))
            columns = np.ascontiguousarray(spans.T)
            head = trees[0].numbers(sides[0], starts, *columns[:2]).astype(np.int64)
            pending.append((head << _HALF) + trees[1].numbers(sides[1], starts, *columns[2:]))
            if sum(map(len, pending)) > MAX_PENDING:
                pairs, counts = _merge_counts(pairs, counts, pending)
                pending = []
            report(done, done, "sentence pairs")
    if not done:
        raise DataError("no line: give one sentence a line", origin_name(source), code="no-data")
    pairs, counts = _merge_counts(pairs, counts, pending)
    if not len(pairs):
        message = "no phrase pair that the alignment allows: give that of these sentences"
        raise DataError(message, origin_name(alignment), code="mismatch")
    sources, first = trees[0].texts(pairs >> _HALF)
    targets, second = trees[1].texts(pairs & ((1 << _HALF) - 1))
    return PhraseCounts.from_numbers(sources, targets, first, second, counts.astype(np.float64))


def _merge_counts(pairs: Int64, counts: Int64, occurrences: Sequence[Int64]) -> tuple[Int64, Int64]:
    """Return distinct numbers, ascending, and their counts, after some more occurrences.

    >>> more = [np.array([7, 5]), np.array([7])]
    >>> pairs, counts = _merge_counts(np.array([3, 7]), np.array([2, 1]), more)
    >>> pairs.tolist(), counts.tolist()
    ([3, 5, 7], [2, 1, 3])
    """
    new, more = np.unique(np.concatenate([pairs[:0], *occurrences]), return_counts=True)
    together = np.concatenate([pairs, new])
    rows, sums = sum_equal(together, np.concatenate([counts, more]))
    return together[rows], sums


def _read_points(
    lines: Sequence[bytes], sides: list[Ragged], path: AnyPath, first: int
) -> tuple[Int32, Int32, Int64]:
    """Return the source and target positions of all points, and the start of each sentence."""
    pairs, starts, sentence = parse_positions(pa.array(lines, pa.large_string()), POINT)
    code, message = "bad-line", "alignment points must be like 0-0 1-2, not {}"
    if sentence < 0:
        owner = np.repeat(np.arange(len(lines)), np.diff(starts))
        lengths = [np.diff(side[1]) for side in sides]
        outside = np.any([p >= n[owner] for p, n in zip(pairs, lengths, strict=True)], axis=0)
        if not outside.any():
            return pairs[0], pairs[1], starts
        sentence = int(owner[np.argmax(outside)])
        words = " and ".join(str(n[sentence]) for n in lengths)
        message = f"a point of {{}} is outside the sentences, which have {words} words"
        code = "mismatch"
    line = lines[sentence].decode(errors="replace").strip()
    raise DataError(message.format(repr(line)), origin_name(path), first + sentence, code=code)


def _read_batches(paths: Sequence[AnyPath]) -> Iterator[Sequence[Sequence[bytes]]]:
    """Yield batches of lines of some files.

    Raises:
        DataError: if a file has fewer lines than the others.
    """
    lines, done = zip_longest(*map(_iter_lines, paths)), 0
    while batch := list(zip(*islice(lines, _SENTENCES), strict=True)):
        sizes = [part.index(None) if None in part else len(part) for part in batch]
        if min(sizes) < max(sizes):
            short, long = (origin_name(paths[sizes.index(n)]) for n in (min(sizes), max(sizes)))
            message = f"{done + min(sizes):,} lines, but {long} has more: give parallel files"
            raise DataError(message, short, code="wrong-length")
        yield batch
        done += sizes[0]


def _iter_lines(path: AnyPath) -> Iterator[bytes]:
    first = 1
    for block in read_chunks(path):
        decode(block, path, first)
        lines = block.split(b"\n")[:-1]
        first += len(lines)
        yield from lines


def select_lines(model: TextModel, path: AnyPath, keep: float) -> npt.NDArray[np.bool_]:
    r"""Return (lines,) bool: the lines of a text file with the lowest perplexity under a model.

    The perplexity of a line is exp(−mean log p) over its words and its end; of equal lines the
    first ones are kept. The text is read in parts.

    Args:
        model: of text of the domain.
        path: the target side of a corpus.
        keep: the share of the lines, above 0 and up to 1; at least one line is kept: ⌈keep · n⌉
            of n, by the decimal digits of the share.

    Raises:
        DataError: if the file cannot be read.
        UsageError: if the share is not in (0, 1].

    >>> from pathlib import Path
    >>> from bpa_ppl.text.language_model import NgramModel
    >>> _ = Path("text.en").write_text("c b\na b\n")
    >>> select_lines(NgramModel.estimate([["a", "b"]] * 3, order=1), "text.en", 0.5).tolist()
    [False, True]
    """
    if not 0 < keep <= 1:
        raise wrong_value("the share of lines to keep must be above 0 and up to 1", keep, "keep")
    parts = [np.zeros(0)]
    for sentences in iter_sentences(path):
        lengths = np.array([len(sentence) + 1 for sentence in sentences], np.float64)
        parts.append(np.exp(-model.score(sentences)[0] / lengths))
    perplexities = np.concatenate(parts)
    chosen = np.zeros(len(perplexities), bool)
    # 0.07 of 100 lines are 7: the product of floats is a little more.
    size = math.ceil(Fraction(str(keep)) * len(perplexities))
    chosen[np.argsort(perplexities, kind="stable")[:size]] = True
    return chosen
