"""Spans of phrase pairs: those that are consistent with an alignment, and those of a segmentation.

A segmentation says which words of the source each phrase of a candidate translates, as Moses prints
it: `0-2=0-2 3=3 8=7`, source span = target span, positions from 0, the last one included, in target
order.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from bpa_ppl._runtime.arrays import Int32, Int64
from bpa_ppl._runtime.cache import compiled
from bpa_ppl.errors import DataError, bad_value
from bpa_ppl.extras.phrases.tree import PhraseTree
from bpa_ppl.lists.nbest import NBest

#: Patterns of a pair of positions: an alignment point, `0-1`; or spans, `0-2=0-2` or `3=3`.
POINT = r"\d+-\d+"
SPANS = r"\d+(-\d+)?=\d+(-\d+)?"
_LARGEST_POSITION = 1 << 24  # larger positions are clipped: they are outside any sentence
#: The extra of the candidates that holds their segmentations.
SEGMENTATION = "segmentation"


def parse_positions(texts: pa.Array, pair: str) -> tuple[Int32, Int64, int]:
    """Parse lines of pairs of positions, separated by spaces.

    Args:
        texts: the lines.
        pair: the pattern of a pair, `POINT` or `SPANS`.

    Returns:
        (2, pairs) the positions of points, or (4, pairs) first and last source position, first and
        last target position of spans; (lines + 1,) the start of each line; and the first malformed
        line, or −1.

    >>> parse_positions(pa.array(["0-2=0 3=1-2", ""]), SPANS)[0].tolist()
    [[0, 3], [2, 3], [0, 1], [0, 2]]
    """
    valid = pc.match_substring_regex(texts, rf"^\s*({pair}(\s+{pair})*)?\s*$")
    counts = pc.count_substring(texts, "-" if pair == POINT else "=").to_numpy()
    starts = np.append(0, np.cumsum(counts, dtype=np.int64))
    width = 2 if pair == POINT else 4
    if (wrong := pc.index(valid, False).as_py()) >= 0:
        return np.zeros((width, 0), np.int32), starts, wrong
    for _ in range(2 if pair == SPANS else 0):  # 3=3 becomes 3-3=3, then 3-3=3-3
        texts = pc.replace_substring_regex(texts, r"(^|[\s=])(\d+)($|[\s=])", r"\1\2-\2\3")
    joined = " ".join(texts.to_pylist()).replace("-", " ").replace("=", " ")
    # It would read a number from spaces alone.
    numbers = np.fromstring(joined, np.int64, sep=" ") if starts[-1] else np.zeros(0, np.int64)
    return np.minimum(numbers, _LARGEST_POSITION).reshape(-1, width).T.astype(np.int32), starts, -1


@compiled
def extract_spans(
    lengths: tuple[Int64, Int64], points: tuple[Int32, Int32, Int64], longest: tuple[int, int]
) -> tuple[Int64, Int32]:
    """Return the spans of all phrase pairs that are consistent with the alignment.

    A pair has at least one point, and no word of either phrase is aligned outside the other;
    unaligned words at the borders may be included or not (Och & Ney 2004, Section 3).

    Args:
        lengths: (sentences,) the numbers of words of the source and of the target sentences.
        points: source and target positions, and the starts of the points of each sentence.
        longest: the maximum numbers of words of a source and of a target phrase.

    Returns:
        (sentences + 1,) the starts of the pairs of each sentence, and (pairs, 4): first source
        word, words, first target word, words.
    """
    spans = np.empty((1024, 4), np.int32)
    starts = np.zeros(len(lengths[0]) + 1, np.int64)
    count = 0
    for s in range(len(lengths[0])):
        low, high, outer_low, outer_high = _reach(s, lengths, points)
        for first in range(lengths[1][s]):
            smallest, largest = lengths[0][s], -1
            for last in range(first, min(first + longest[1], lengths[1][s])):
                smallest, largest = min(smallest, low[last]), max(largest, high[last])
                if largest < 0 or largest - smallest >= longest[0]:
                    continue
                outside = False  # whether a source word is aligned outside the target span
                for f in range(smallest, largest + 1):
                    if outer_high[f] >= 0 and (outer_low[f] < first or outer_high[f] > last):
                        outside = True
                if outside:
                    continue
                begin = smallest
                while begin == smallest or (begin >= 0 and outer_high[begin] < 0):
                    end, limit = largest, min(begin + longest[0], lengths[0][s])
                    while end < limit and (end == largest or outer_high[end] < 0):
                        if count == len(spans):
                            spans = np.concatenate((spans, np.empty_like(spans)))
                        spans[count, 0], spans[count, 1] = begin, end - begin + 1
                        spans[count, 2], spans[count, 3] = first, last - first + 1
                        count += 1
                        end += 1
                    begin -= 1
        starts[s + 1] = count
    return starts, spans[:count]


@njit
def _reach(
    s: int, lengths: tuple[Int64, Int64], points: tuple[Int32, Int32, Int64]
) -> tuple[Int64, Int64, Int64, Int64]:
    """Return the first and last source word of each target word, and the reverse; −1: none."""
    source, target, starts = points
    low = np.full(lengths[1][s], lengths[0][s])
    high = np.full(lengths[1][s], -1)
    outer_low = np.full(lengths[0][s], lengths[1][s])
    outer_high = np.full(lengths[0][s], -1)
    for p in range(starts[s], starts[s + 1]):
        first, second = np.int64(source[p]), np.int64(target[p])
        low[second], high[second] = min(low[second], first), max(high[second], first)
        outer_low[first] = min(outer_low[first], second)
        outer_high[first] = max(outer_high[first], second)
    return low, high, outer_low, outer_high


def _parse_spans(lists: NBest, source_lengths: Int64, string_lengths: Int64) -> tuple[Int32, Int64]:
    """Return the spans of the phrase pairs of all candidates.

    Args:
        lists: lists with segmentations.
        source_lengths: (candidates,) the number of words of each source.
        string_lengths: (strings,) the number of words of each distinct text.

    Returns:
        (4, spans) int32: first source word, number of words, first target word, number of words;
        and (candidates + 1,) where the spans of each begin.

    Raises:
        DataError: naming the candidate, if a segmentation is malformed, outside of its sentence,
            or not of the whole candidate.
    """
    texts = lists.extras[SEGMENTATION]
    if not all(isinstance(text, str) for text in texts):
        value = next(text for text in texts if not isinstance(text, str))
        example = "a text such as `0-2=0-2 3=3`"
        raise bad_value("a segmentation", value, example, lists.origin, code="wrong-type")
    lengths = string_lengths[lists.string_index]
    pairs, starts, row = parse_positions(pa.array(texts, pa.large_string()), SPANS)
    code, problem = "bad-line", "is not as Moses prints it: 0-2=0-2 3=3"
    if row < 0:
        owner, filled = np.repeat(np.arange(len(texts)), np.diff(starts)), np.diff(starts) > 0
        first, last, begin, end = pairs
        next_word = np.append(0, end + 1)[:-1]  # after the span before
        next_word[starts[:-1][filled]] = 0
        covered = np.zeros(len(texts), np.int64)
        covered[filled] = end[starts[1:][filled] - 1] + 1
        outside = (last >= source_lengths[owner]) | (first > last) | (begin != next_word)
        wrong = np.append(owner[outside], np.flatnonzero(covered != lengths))
        if len(wrong):
            row, code = int(wrong.min()), "mismatch"
            words = f"{source_lengths[row]} and {lengths[row]} words"
            problem = f"does not cover each word of the translation once: both texts have {words}"
        else:
            return np.stack([first, last - first + 1, begin, end - begin + 1]), starts
    sentence = int(np.searchsorted(lists.offsets, row, side="right")) - 1
    raise DataError(
        f"candidate {row - lists.offsets[sentence] + 1} of sentence "
        f"{lists.sentence_ids[sentence]}: the segmentation {texts[row]!r} {problem}",
        lists.origin,
        code=code,
    )


def number_pairs(
    lists: NBest, source: PhraseTree, target: PhraseTree, *, add: bool = True
) -> tuple[Int32, Int32, Int64]:
    """Return the numbers of the phrases of all candidates.

    Returns:
        (uses,) the source phrase, and the target phrase, of each use of a pair; and
        (uses,) the candidate of each.

    Raises:
        DataError: as `_parse_spans`.
    """
    sentence = np.repeat(np.arange(len(lists)), lists.sizes)
    sources = source.words((text.encode() for text in lists.sources or ()), add)
    targets = target.words((text.encode() for text in lists.strings), add)
    spans, starts = _parse_spans(lists, np.diff(sources[1])[sentence], np.diff(targets[1]))
    first = source.numbers((sources[0], sources[1][sentence]), starts, spans[0], spans[1], add)
    words = targets[0], targets[1][lists.string_index]
    owner = np.repeat(np.arange(len(lists.features)), np.diff(starts))
    return first, target.numbers(words, starts, spans[2], spans[3], add), owner
