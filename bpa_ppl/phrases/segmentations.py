"""Segmentations: which words of the source each phrase of a candidate translates.

As Moses prints them: `0-2=0-2 3=3 8=7`, source span = target span, positions from 0, the last one
included, in target order.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from bpa_ppl._runtime.arrays import Int32, Int64
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import NBest
from bpa_ppl.phrases.spans import SPANS, parse_lines
from bpa_ppl.phrases.tree import PhraseTree

#: The extra of the candidates that holds them.
SEGMENTATION = "segmentation"


def _parse_spans(nbest: NBest, source_lengths: Int64, string_lengths: Int64) -> tuple[Int32, Int64]:
    """Return the spans of the phrase pairs of all candidates.

    Args:
        nbest: lists with segmentations.
        source_lengths: (candidates,) the number of words of each source.
        string_lengths: (strings,) the number of words of each distinct text.

    Returns:
        (4, spans) int32: first source word, number of words, first target word, number of words;
        and (candidates + 1,) where the spans of each begin.

    Raises:
        DataError: naming the candidate, if a segmentation is malformed, outside of its sentence,
            or not of the whole candidate.
    """
    texts = nbest.extras[SEGMENTATION]
    if not all(isinstance(text, str) for text in texts):
        problem = "a segmentation must be a text such as `0-2=0-2 3=3`"
        raise DataError(problem, nbest.origin, code="wrong-type")
    lengths = string_lengths[nbest.string_index]
    pairs, starts, row = parse_lines(pa.array(texts, pa.large_string()), SPANS)
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
    sentence = int(np.searchsorted(nbest.offsets, row, side="right")) - 1
    location = f"candidate {row - nbest.offsets[sentence] + 1} of sentence "
    location += f"{nbest.sentence_ids[sentence]}: the segmentation {texts[row]!r} "
    raise DataError(location + problem, nbest.origin, code=code)


def number_pairs(
    nbest: NBest, source: PhraseTree, target: PhraseTree, *, add: bool = True
) -> tuple[Int32, Int32, Int64]:
    """Return the numbers of the phrases of all candidates.

    Args:
        nbest: lists with sources and segmentations.
        source: the source phrases.
        target: the target phrases.
        add: whether new phrases are added to the trees; otherwise their number is −1.

    Returns:
        (uses,) the source phrase, and the target phrase, of each use of a pair; and
        (uses,) the candidate of each.

    Raises:
        DataError: as `_parse_spans`.
    """
    sentence = np.repeat(np.arange(len(nbest)), nbest.sizes)
    sources = source.words((text.encode() for text in nbest.sources or ()), add)
    targets = target.words((text.encode() for text in nbest.strings), add)
    spans, starts = _parse_spans(nbest, np.diff(sources[1])[sentence], np.diff(targets[1]))
    first = source.numbers((sources[0], sources[1][sentence]), starts, spans[0], spans[1], add)
    words = targets[0], targets[1][nbest.string_index]
    owner = np.repeat(np.arange(len(nbest.features)), np.diff(starts))
    return first, target.numbers(words, starts, spans[2], spans[3], add), owner
