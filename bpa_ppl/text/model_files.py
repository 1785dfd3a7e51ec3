"""Language models from files: text to learn from, and ARPA files."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.streams import AnyPath, origin_name, read_beginning
from bpa_ppl.text.arpa import TITLE, read_arpa
from bpa_ppl.text.language_model import NgramModel, TextModel
from bpa_ppl.text.words import iter_sentences


def is_model(path: AnyPath) -> bool:
    """Return whether a file is a finished model; a pipe, which can be read only once, is text.

    Raises:
        DataError: if it cannot be read.
    """
    return os.path.isfile(path) and read_beginning(path).lstrip().startswith(TITLE.encode())


def read_or_train(
    paths: Sequence[AnyPath], order: int = 3, progress: bool | Reporter = False
) -> NgramModel:
    """Return the language model of some files, whose format is detected.

    Args:
        paths: text files, which are concatenated, or one finished model.
        order: of the model of a text; ignored for a finished model.
        progress: True draws a bar; or a callback.

    Raises:
        DataError: if a file cannot be read, is damaged, or has no text.
        UsageError: if a finished model is not the only file.
    """
    finished = [path for path in paths if is_model(path)]
    if not finished:
        return NgramModel.train(paths, order, progress)
    if len(paths) > 1:
        message = f"{finished[0]} is a finished language model: give no other file"
        raise UsageError(message, code="conflict")
    return read_arpa(finished[0])


class _TextStatistics(NamedTuple):
    """The perplexity of a text under a language model.

    Attributes:
        words: the number of words.
        unknown: the number of unknown words.
        perplexity: exp(−mean log p) over words and ends of sentences.
        known: the perplexity without unknown words.
    """

    words: int
    unknown: int
    perplexity: float
    known: float

    def __str__(self) -> str:
        """Return a part of a line, as commands print it."""
        return (
            f"perplexity {self.perplexity:.2f}, {self.known:.2f} without the "
            f"{self.unknown:,} unknown of {self.words:,} words"
        )


def evaluate_text(model: TextModel, paths: Iterable[AnyPath]) -> _TextStatistics:
    """Return the perplexity of text files, which are concatenated, and their unknown words.

    Raises:
        DataError: if a file cannot be read, or there is no line.
    """
    files = list(paths)
    count = unknown = sentences = 0
    total = known_total = 0.0
    for part in chain.from_iterable(map(iter_sentences, files)):
        scores, missing = model.by_word(part)
        count, sentences = count + len(scores), sentences + len(part)
        unknown += int(missing.sum())
        total += scores.sum()
        known_total += scores[~missing].sum()
    if not sentences:
        raise DataError("there is no sentence", ", ".join(map(origin_name, files)), code="no-data")
    perplexity, known = math.exp(-total / count), math.exp(-known_total / (count - unknown))
    return _TextStatistics(count - sentences, unknown, perplexity, known)
