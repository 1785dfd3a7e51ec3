"""Sentence selection: the pairs of a general corpus that are most like the domain.

Foster, Goutte & Kuhn (2010), Section 2.3: those whose target side has the lowest perplexity under a
language model of the domain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import UsageError
from bpa_ppl.formats.streams import AnyPath
from bpa_ppl.nbest import Float64
from bpa_ppl.text.language_model import TextModel
from bpa_ppl.text.words import sentences_of


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
    """Return (sentences,) bool: which ones have the lowest perplexity; of equal ones the first.

    Args:
        perplexities: (sentences,) as of `sentence_perplexities`.
        keep: the share of the sentences, up to 1; at least one sentence is kept.

    Raises:
        UsageError: if the share is not above 0 and up to 1.

    >>> select_sentences([30.0, 10.0, 20.0, 40.0], 0.5).tolist()
    [False, True, True, False]
    """
    if not 0 < keep <= 1:
        raise UsageError(f"the share of sentences to keep is above 0 and up to 1, not {keep:g}")
    values = np.asarray(perplexities, np.float64)
    chosen = np.zeros(len(values), dtype=bool)
    chosen[np.argsort(values, kind="stable")[: math.ceil(keep * len(values))]] = True
    return chosen


def select_lines(model: TextModel, path: AnyPath, keep: float) -> npt.NDArray[np.bool_]:
    """Return (lines,) bool: which lines of a text file are most like the text of a model.

    The text is read in parts.

    Args:
        model: of text of the domain.
        path: the target side of a corpus.
        keep: the share of the lines, above 0 and up to 1.

    Raises:
        DataError: if the file cannot be read.
        UsageError: if the share makes no sense.
    """
    parts = [sentence_perplexities(model, part) for part in sentences_of(path)]
    return select_sentences(np.concatenate([np.zeros(0), *parts]), keep)
