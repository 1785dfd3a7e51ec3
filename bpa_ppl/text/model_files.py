"""Language models from files: text to learn from, ARPA files, and binary files of KenLM."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.streams import AnyPath, InputFile, origin_name, read_blocks
from bpa_ppl.nbest import Float64, Int64
from bpa_ppl.progress import Reporter
from bpa_ppl.text.arpa import TITLE, read_arpa
from bpa_ppl.text.language_model import NgramModel, Sentences, TextModel, with_ends
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
            raise UsageError(
                f"{path} is a binary file of KenLM, whose Python module is not installed: "
                "pip install bpa_ppl[kenlm], or give the model as an ARPA file"
            ) from error
        opened = InputFile(path)
        with opened.on_disk() as file:
            try:
                # The file can be removed once it is mapped to memory.
                self._model: Any = kenlm.Model(file)
            except (OSError, RuntimeError) as error:
                raise DataError(
                    f"KenLM cannot read this model: create it again with build_binary ({error})",
                    opened.origin,
                ) from error
        self.order = int(self._model.order)

    def __repr__(self) -> str:
        return f"KenlmModel(order={self.order})"

    def word_log_probabilities(self, sentences: Sentences) -> Float64:
        """Return log p (natural) of each word and end of a sentence; see `TextModel`."""
        scores = chain.from_iterable(map(self._model.full_scores, map(_line, sentences)))
        return np.asarray(np.fromiter((log10 for log10, _, _ in scores), np.float64) * np.log(10))

    def log_probabilities(self, sentences: Sentences) -> Float64:
        """Return (sentences,) float64: log p (natural) of each, its end included."""
        scores = map(self._model.score, map(_line, sentences))
        return np.asarray(np.fromiter(scores, np.float64, len(sentences)) * np.log(10))

    def scored(self, sentences: Sentences) -> tuple[Float64, Int64]:
        """Return `log_probabilities` and `unknown` at once."""
        return self.log_probabilities(sentences), self.unknown(sentences)

    def unknown_words(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        """Return (words,) bool: which words are unknown to the model."""
        words = set(chain.from_iterable(sentences))
        unknown = {word: word in SPECIAL or word not in self._model for word in words}
        return np.fromiter(map(unknown.__getitem__, chain.from_iterable(sentences)), np.bool_)


def _line(words: Any) -> str:
    """Return a sentence as a text for KenLM, where `<s>` is replaced by the unknown word."""
    return " ".join(SPECIAL[UNKNOWN] if word in SPECIAL else word for word in words)


def is_model(path: AnyPath) -> bool:
    """Return whether a file is a finished model; a pipe, which can be read only once, is text.

    Raises:
        DataError: if it cannot be read.
    """
    return Path(path).is_file() and _begins(path).startswith((TITLE.encode(), _MAGIC))


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
        raise UsageError(f"{finished[0]} is a finished language model: give no other file")
    binary = _begins(finished[0]).startswith(_MAGIC)
    return KenlmModel(finished[0]) if binary else read_arpa(finished[0])


def _begins(path: AnyPath) -> bytes:
    return next(read_blocks(path), b"").lstrip()


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


def evaluate_text(model: TextModel, paths: Iterable[AnyPath]) -> TextStatistics:
    """Return the perplexity of text files, which are concatenated, and their unknown words.

    Raises:
        DataError: if a file cannot be read, or there is no line.
    """
    files = list(paths)
    words = unknown = sentences = 0
    total = known_total = 0.0
    for part in chain.from_iterable(map(sentences_of, files)):
        scores, missing = model.word_log_probabilities(part), model.unknown_words(part)
        words, unknown, sentences = (
            words + len(missing),
            unknown + int(missing.sum()),
            sentences + len(part),
        )
        total += scores.sum()
        known_total += scores[~with_ends(missing, part)].sum()
    if not sentences:
        raise DataError("there is no sentence", ", ".join(map(origin_name, files)))
    count = words + sentences
    return TextStatistics(
        words, int(unknown), math.exp(-total / count), math.exp(-known_total / (count - unknown))
    )
