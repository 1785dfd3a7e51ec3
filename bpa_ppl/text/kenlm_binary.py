"""Binary files of KenLM (Heafield, 2011), read by its Python module where that is installed."""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.streams import AnyPath, InputFile
from bpa_ppl.nbest import Float64, Int64
from bpa_ppl.text.language_model import Sentences, TextModel
from bpa_ppl.text.words import SPECIAL, UNKNOWN

#: What every such file begins with.
MAGIC = b"mmap lm"


class KenlmModel(TextModel):
    """A model in a binary file of KenLM, of any of its types.

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
                f"{path} is a binary file of KenLM, and its Python module is not installed: "
                "pip install bpa_ppl[kenlm], or give the model as an ARPA file"
            ) from error
        opened = InputFile(path)
        with opened.on_disk() as file:
            try:
                # What is packed is unpacked to a file that may go once it is mapped to memory.
                self._model: Any = kenlm.Model(file)
            except (OSError, RuntimeError) as error:
                raise DataError(
                    f"KenLM cannot read this model: make it again with build_binary ({error})",
                    opened.origin,
                ) from error
        self.order = int(self._model.order)

    def __repr__(self) -> str:
        return f"KenlmModel(order={self.order})"

    def word_log_probabilities(self, sentences: Sentences) -> Float64:
        """Return log p (natural) of each word and end of a sentence; see `TextModel`."""
        scores = chain.from_iterable(map(self._model.full_scores, map(_line, sentences)))
        result: Float64 = np.fromiter((log10 for log10, _, _ in scores), np.float64) * np.log(10)
        return result

    def log_probabilities(self, sentences: Sentences) -> Float64:
        """Return (sentences,) float64: log p (natural) of each, its end included."""
        scores = map(self._model.score, map(_line, sentences))
        result: Float64 = np.fromiter(scores, np.float64, len(sentences)) * np.log(10)
        return result

    def scored(self, sentences: Sentences) -> tuple[Float64, Int64]:
        """Return `log_probabilities` and `unknown` at once."""
        return self.log_probabilities(sentences), self.unknown(sentences)

    def unknown_words(self, sentences: Sentences) -> npt.NDArray[np.bool_]:
        """Return (words,) bool: which words the model does not know."""
        words = set(chain.from_iterable(sentences))
        unknown = {word: word in SPECIAL or word not in self._model for word in words}
        return np.fromiter(map(unknown.__getitem__, chain.from_iterable(sentences)), np.bool_)


def _line(words: Any) -> str:
    """Return a sentence as KenLM takes it; `<s>` inside of it is no beginning, but unknown."""
    return " ".join(SPECIAL[UNKNOWN] if word in SPECIAL else word for word in words)
