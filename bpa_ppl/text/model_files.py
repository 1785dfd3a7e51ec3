"""Language models from files: text to learn from, ARPA files, or binary files of KenLM."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.streams import AnyPath, origin_name, read_blocks
from bpa_ppl.progress import Reporter
from bpa_ppl.text.arpa import TITLE, read_arpa
from bpa_ppl.text.kenlm_binary import MAGIC, KenlmModel
from bpa_ppl.text.language_model import NgramModel, TextModel, with_ends
from bpa_ppl.text.words import sentences_of


def is_model(path: AnyPath) -> bool:
    """Say whether a file holds a finished model; a pipe, which is read but once, is always text.

    Raises:
        DataError: if it cannot be read.
    """
    return Path(path).is_file() and _begins(path).startswith((TITLE.encode(), MAGIC))


def model_of(
    paths: Sequence[AnyPath], order: int = 3, progress: bool | Reporter = False
) -> TextModel:
    """Return the language model of some files, by their content.

    Args:
        paths: text files, which are read as one, or a finished model alone.
        order: of the model of a text; a finished one has its own.
        progress: show a bar, or call back.

    Raises:
        DataError: if a file cannot be read, is damaged, or has no text.
        UsageError: if a finished model is not alone, or its reader is not installed.
    """
    finished = [path for path in paths if is_model(path)]
    if not finished:
        return NgramModel.train(paths, order, progress)
    if len(paths) > 1:
        raise UsageError(f"{finished[0]} is a finished language model: name it alone")
    binary = _begins(finished[0]).startswith(MAGIC)
    return KenlmModel(finished[0]) if binary else read_arpa(finished[0])


def _begins(path: AnyPath) -> bytes:
    return next(read_blocks(path), b"").lstrip()


class Judged(NamedTuple):
    """What a language model says of a text.

    Attributes:
        words: how many there are.
        unknown: how many of them the model does not know.
        perplexity: exp(−mean log p) over words and ends of sentences.
        known: the same without the words that it does not know.
    """

    words: int
    unknown: int
    perplexity: float
    known: float


def judged(model: TextModel, paths: Iterable[AnyPath]) -> Judged:
    """Return the perplexity of text files, which are read as one text, and their unknown words.

    Raises:
        DataError: if a file cannot be read, or there is no line.
    """
    files = list(paths)
    words = unknown = sentences = 0
    total = known = 0.0
    for part in chain.from_iterable(map(sentences_of, files)):
        scores, missing = model.word_log_probabilities(part), model.unknown_words(part)
        words, unknown, sentences = (
            words + len(missing),
            unknown + int(missing.sum()),
            sentences + len(part),
        )
        total += scores.sum()
        known += scores[~with_ends(missing, part)].sum()
    if not sentences:
        raise DataError("empty: there is no sentence to judge", ", ".join(map(origin_name, files)))
    count = words + sentences
    return Judged(
        words, int(unknown), math.exp(-total / count), math.exp(-known / (count - unknown))
    )
