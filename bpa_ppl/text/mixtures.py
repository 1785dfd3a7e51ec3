"""Linear mixtures of language models (Foster, Goutte & Kuhn 2010, Eq. 1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.nbest import Float64
from bpa_ppl.text.language_model import Sentences, TextModel

_STEPS = 1000


class LinearMixture(TextModel):
    """A weighted mean of the probabilities that several models give each word: Σ_m α_m p_m(w|h).

    Args:
        models: the models.
        weights: (models,) α, from 0 on and 1 in sum.

    Raises:
        UsageError: if the weights are no such.
    """

    def __init__(self, models: Sequence[TextModel], weights: Sequence[float] | Float64):
        self.models = tuple(models)
        self.weights = np.asarray(weights, np.float64)
        self.order = max(model.order for model in self.models)
        if self.weights.shape != (len(self.models),) or (self.weights < 0).any():
            raise UsageError(f"{len(self.models)} models need as many weights from 0 on")
        if not np.isclose(self.weights.sum(), 1.0):
            raise UsageError(f"the weights of a mixture are 1 in sum, not {self.weights.sum():g}")

    def word_log_probabilities(self, sentences: Sentences) -> Float64:
        """Return log p (natural) of each word given those before, and of each end of a sentence."""
        scores = _scores(self.models, sentences)
        return np.asarray(logsumexp(scores, axis=0, b=self.weights[:, np.newaxis]))

    def unknown_words(self, sentences: Sentences) -> np.ndarray:
        """Return (words,) bool: which words none of the models knows."""
        result: np.ndarray = np.logical_and.reduce(
            [model.unknown_words(sentences) for model in self.models]
        )
        return result


def linear_mixture(models: Sequence[TextModel], sentences: Sentences) -> Float64:
    """Return the weights with which a linear mixture makes a text most likely, by EM.

    The likelihood is concave in the weights; a step of EM multiplies each by the mean share of its
    model in the probability of the words.

    Args:
        models: the models, such as one of the domain and a general one.
        sentences: text of the domain that none of them was estimated on.

    Returns:
        (models,) float64, from 0 on and 1 in sum.

    Raises:
        DataError: if there is no sentence.
        UsageError: if there is no model.

    >>> from bpa_ppl.text.language_model import NgramModel
    >>> near = NgramModel.estimate([["a", "b"], ["b", "a"]], order=1)
    >>> far = NgramModel.estimate([["c", "d"], ["d", "c", "a"]], order=1)
    >>> linear_mixture([near, far], [["a", "b", "b"], ["a"]]).round(3).tolist()
    [1.0, 0.0]
    """
    if not len(models):
        raise UsageError("a mixture needs at least one language model")
    if not len(sentences):
        raise DataError("no sentence is there to fit a mixture of language models to")
    scores = _scores(models, sentences)
    probabilities = np.exp(scores - scores.max(axis=0))
    weights = np.full(len(models), 1 / len(models))
    for _ in range(_STEPS):
        shares = weights[:, np.newaxis] * probabilities
        updated = (shares / shares.sum(axis=0)).mean(axis=1)
        moved, weights = np.abs(updated - weights).max(), updated
        if moved < 1e-10:
            break
    return weights


def _scores(models: Sequence[TextModel], sentences: Sentences) -> Float64:
    """Return (models, words + sentences) log-probabilities."""
    return np.array([model.word_log_probabilities(sentences) for model in models])
