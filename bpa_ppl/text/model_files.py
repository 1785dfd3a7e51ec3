"""Language models from files: text to learn from, ARPA files, and binary files of KenLM."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.arrays import Float64, Int64
from bpa_ppl.errors import DataError, UsageError, missing_extra
from bpa_ppl.formats.streams import AnyPath, InputFile, beginning_of, origin_name
from bpa_ppl.progress import Reporter
from bpa_ppl.text.arpa import TITLE, read_arpa
from bpa_ppl.text.language_model import NgramModel, Sentences, TextModel
from bpa_ppl.text.words import SPECIAL, UNKNOWN, sentences_of

#: The first bytes of binary files of KenLM.
_MAGIC = b"mmap lm"


class KenlmModel(TextModel):
    """A model in a binary file of KenLM (Heafield, 2011), of any type.

    Args:
        path: the file, compressed or not.

    Raises:
        UsageError: if the Python module of KenLM is not installed.
        DataError: if KenLM cannot read the file.
    """

    def __init__(self, path: AnyPath):
        try:
            kenlm = import_module("kenlm")
        except ImportError as error:
            problem = f"{path} is not an ARPA file, and binary ones need the Python module of KenLM"
            raise missing_extra(problem, "kenlm") from error
        opened = InputFile(path)
        with opened.on_disk() as file:
            try:
                # The file can be removed once it is mapped to memory.
                self._model: Any = kenlm.Model(file)
            except (OSError, RuntimeError) as error:
                message = f"KenLM cannot read this model: create it again ({error})"
                raise DataError(message, opened.origin, code="damaged") from error
        self.order = int(self._model.order)

    def __repr__(self) -> str:
        return f"KenlmModel(order={self.order})"

    def by_word(self, sentences: Sentences) -> tuple[Float64, npt.NDArray[np.bool_]]:
        """Return log p of words and ends of sentences, and which are unknown; see `TextModel`."""
        scores = chain.from_iterable(map(self._model.full_scores, map(_line, sentences)))
        log10, _, unknown = np.array(list(scores), np.float64).reshape(-1, 3).T
        return log10 * np.log(10), unknown.astype(bool)

    def scored(self, sentences: Sentences) -> tuple[Float64, Int64]:
        """Return log p and the number of unknown words of each sentence."""
        scores = map(self._model.score, map(_line, sentences))
        log_p = np.fromiter(scores, np.float64, len(sentences)) * np.log(10)
        unknown = (
            sum(word in SPECIAL or word not in self._model for word in words) for words in sentences
        )
        return log_p, np.fromiter(unknown, np.int64, len(sentences))


def _line(words: Any) -> str:
    """Return a sentence as a text for KenLM, where `<s>` is replaced by the unknown word."""
    return " ".join(SPECIAL[UNKNOWN] if word in SPECIAL else word for word in words)


def is_model(path: AnyPath) -> bool:
    """Return whether a file is a finished model; a pipe, which can be read only once, is text.

    Raises:
        DataError: if it cannot be read.
    """
    return os.path.isfile(path) and beginning_of(path).lstrip().startswith((TITLE.encode(), _MAGIC))


def model_of(
    paths: Sequence[AnyPath], order: int = 3, progress: bool | Reporter = False
) -> TextModel:
    """Return the language model of some files, whose format is detected.

    Args:
        paths: text files, which are concatenated, or one finished model.
        order: of the model of a text; ignored for a finished model.
        progress: True draws a bar; or a callback.

    Raises:
        DataError: if a file cannot be read, is damaged, or has no text.
        UsageError: if a finished model is not the only file, or its reader is not installed.
    """
    finished = [path for path in paths if is_model(path)]
    if not finished:
        return NgramModel.train(paths, order, progress)
    if len(paths) > 1:
        message = f"{finished[0]} is a finished language model: give no other file"
        raise UsageError(message, code="conflict")
    binary = beginning_of(finished[0]).lstrip().startswith(_MAGIC)
    return KenlmModel(finished[0]) if binary else read_arpa(finished[0])


class TextStatistics(NamedTuple):
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


def evaluate_text(model: TextModel, paths: Iterable[AnyPath]) -> TextStatistics:
    """Return the perplexity of text files, which are concatenated, and their unknown words.

    Raises:
        DataError: if a file cannot be read, or there is no line.
    """
    files = list(paths)
    count = unknown = sentences = 0
    total = known_total = 0.0
    for part in chain.from_iterable(map(sentences_of, files)):
        scores, missing = model.by_word(part)
        count, sentences = count + len(scores), sentences + len(part)
        unknown += int(missing.sum())
        total += scores.sum()
        known_total += scores[~missing].sum()
    if not sentences:
        raise DataError("there is no sentence", ", ".join(map(origin_name, files)), code="no-data")
    perplexity, known = math.exp(-total / count), math.exp(-known_total / (count - unknown))
    return TextStatistics(count - sentences, unknown, perplexity, known)
