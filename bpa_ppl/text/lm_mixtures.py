"""Linear mixtures of language models (Foster, Goutte & Kuhn 2010, Eq. 1)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.errors import DataError
from bpa_ppl.formats.streams import AnyPath, origin_name
from bpa_ppl.text.language_model import Sentences, TextModel
from bpa_ppl.text.words import iter_sentences

_ITERATIONS = 10_000
_CHANGE = 1e-10  # of the weights, at which EM stops


class MixtureModel(TextModel):
    """The linear mixture of language models, p(w | h) = Σ_i α_i p_i(w | h)  (Eq. 1).

    A word is unknown if it is unknown to all models; a model gives a word that it does not know
    the probability of its unknown word.

    Args:
        models: the models.
        weights: α_i, which sum to one.

    >>> from bpa_ppl.text.language_model import NgramModel
    >>> one, two = (NgramModel.estimate([[word]], 1) for word in "ab")
    >>> mixed = MixtureModel([one, two], [0.75, 0.25])
    >>> mixed
    MixtureModel(0.75 · NgramModel(order=1, counts=(4,)), 0.25 · NgramModel(order=1, counts=(4,)))
    >>> np.exp(mixed.by_word([["a"]])[0]).round(4).tolist()
    [0.3542, 0.4167]
    """

    def __init__(self, models: Sequence[TextModel], weights: Sequence[float] | Float64):
        self.models = tuple(models)
        self.weights = np.asarray(weights, np.float64)
        self.order = max(model.order for model in self.models)

    def __repr__(self) -> str:
        parts = (f"{w:.3g} · {m}" for w, m in zip(self.weights, self.models, strict=True))
        return f"MixtureModel({', '.join(parts)})"

    @classmethod
    def fit(cls, models: Sequence[TextModel], sentences: Sentences) -> MixtureModel:
        """Return the mixture whose weights maximise the likelihood of a text, by EM.

        The log-likelihood is concave in α, so that EM finds its maximum.

        Args:
            models: at least two.
            sentences: the words of each sentence of other text of the domain.
        """
        p = np.exp([model.by_word(sentences)[0] for model in models])
        weights = np.full(len(models), 1 / len(models))
        for _ in range(_ITERATIONS):
            before, mixed = weights, weights @ p
            weights = (weights[:, None] * p / mixed).mean(axis=1)
            if np.abs(weights - before).max() < _CHANGE:
                break
        return cls(models, weights)

    @classmethod
    def fit_files(cls, models: Sequence[TextModel], paths: Sequence[AnyPath]) -> MixtureModel:
        """Return the mixture that maximises the likelihood of text files, which are concatenated.

        Raises:
            DataError: if a file cannot be read, or there is no sentence.
        """
        sentences = list(chain.from_iterable(chain.from_iterable(map(iter_sentences, paths))))
        if not any(sentences):
            message = "there is no sentence to fit the mixture to"
            raise DataError(message, ", ".join(map(origin_name, paths)), code="no-data")
        return cls.fit(models, sentences)

    def by_word(self, sentences: Sentences) -> tuple[Float64, npt.NDArray[np.bool_]]:
        """Return log p of words and ends of sentences, and which are unknown; see `TextModel`."""
        weighted = zip(self.weights, self.models, strict=True)
        parts = [(weight, *model.by_word(sentences)) for weight, model in weighted if weight > 0]
        logs = np.logaddexp.reduce([scores + np.log(weight) for weight, scores, _ in parts])
        return logs, np.logical_and.reduce([unknown for *_, unknown in parts])
