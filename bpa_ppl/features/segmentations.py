"""Segmentations: which words of the source each phrase of a hypothesis translates.

As Moses prints them: `0-2=0-2 3=3 8=7`, source span = target span, positions from 0, the last
included, in target order.
"""

from __future__ import annotations

import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Int32, Int64, NBest
from bpa_ppl.phrases.spans import OUTSIDE, UNCOVERED, parse_segmentations

#: The column of the hypotheses that holds them.
SEGMENTATION = "segmentation"


def spans_of(nbest: NBest, source_lengths: Int64, string_lengths: Int64) -> tuple[Int32, Int64]:
    """Return the spans of the phrase pairs of all hypotheses.

    Args:
        nbest: lists with segmentations.
        source_lengths: (hypotheses,) the words of the source of each.
        string_lengths: (strings,) the words of each distinct text.

    Returns:
        (spans, 4) int32: first source word, words, first target word, words; and (hypotheses + 1,)
        where the spans of each begin.

    Raises:
        DataError: naming the hypothesis, if a segmentation is malformed, outside of its sentence,
            or not of the whole hypothesis.
    """
    texts = nbest.extras[SEGMENTATION]
    if not all(isinstance(text, str) for text in texts):
        raise DataError("a segmentation is a text such as `0-2=0-2 3=3`", nbest.origin)
    lengths = string_lengths[nbest.string_index]
    data = np.frombuffer("\n".join([*texts, ""]).encode(), np.uint8)
    if np.count_nonzero(data == ord("\n")) != len(texts):
        raise DataError("a segmentation has a line break", nbest.origin)
    spans, starts, wrong, row = parse_segmentations(data, source_lengths, lengths)
    if wrong:
        sentence = int(np.searchsorted(nbest.offsets, row, side="right")) - 1
        where = f"hypothesis {row - nbest.offsets[sentence] + 1} of sentence "
        where += f"{nbest.sentence_ids[sentence]}: the segmentation {texts[row]!r} "
        words = f"{source_lengths[row]} and {lengths[row]} words"
        what = {
            OUTSIDE: f"is outside of its source and translation, which have {words}: give the "
            "sources that were decoded",
            UNCOVERED: f"does not have each of the {lengths[row]} words of the translation once, "
            "in order: print the lists again",
        }.get(wrong, "is not as Moses prints it: 0-2=0-2 3=3")
        raise DataError(where + what, nbest.origin)
    return spans, starts
