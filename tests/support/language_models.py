"""Language models of lines, and what they give texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from bpa_ppl.text.language_model import MixtureModel, NgramModel
from bpa_ppl.text.words import NumberedText, find_starts, join_texts


def model_of(lines: Iterable[str], order: int) -> NgramModel:
    """Return the model of lines of words between blanks."""
    return NgramModel.estimate([line.split() for line in lines], order)


def model_of_part(sentences: Sequence[list[str]], kept: np.ndarray, order: int) -> NgramModel:
    """Return the model of some sentences, with the vocabulary of all of them."""
    words = join_texts([("text", [sentences])]).words
    selected = [sentence for sentence, k in zip(sentences, kept, strict=True) if k]
    number = {word: n for n, word in enumerate(words)}
    numbers = np.array([number[word] for sentence in selected for word in sentence], np.int32)
    return NgramModel.of_corpus(NumberedText(words, numbers, find_starts(selected)), order)


def scores_of_mixture(paths: Sequence[str], dev: Path, texts: Iterable[str]) -> np.ndarray:
    """Return the log-probabilities of texts under the mixture of files that suits another one."""
    mixture = MixtureModel.fit_files([NgramModel.train([path]) for path in paths], [dev])
    return np.asarray(mixture.log_probabilities([text.split() for text in texts]))
