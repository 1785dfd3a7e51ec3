"""N-gram language models, and mixtures of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float32, Float64, Int32, Int64
from bpa_ppl._runtime.progress import Reporter, reporter
from bpa_ppl._runtime.streams import AnyPath, origin_name
from bpa_ppl.errors import DataError, list_names, wrong_value
from bpa_ppl.text.ngrams import Tables, count_grams, estimate_probabilities, score_words
from bpa_ppl.text.words import (
    SPECIAL,
    UNKNOWN,
    NumberedText,
    find_starts,
    iter_sentences,
    join_texts,
    number_words,
)

#: The maximum order of an estimated model.
LONGEST = 5

Sentences = Sequence[Sequence[str]]

# EM of the weights of a mixture; it stops at this change.
_ITERATIONS, _CHANGE = 10_000, 1e-10


class TextModel:
    """The interface of language models; the end of a sentence is predicted, too.

    Attributes:
        order: the length of its longest n-grams.
    """

    order: int

    def by_word(self, sentences: Sentences) -> tuple[Float64, npt.NDArray[np.bool_]]:
        """Return natural log p of words and ends, (words + sentences,), and which are unknown."""
        raise NotImplementedError

    def log_probabilities(self, sentences: Sentences) -> Float64:
        """Return (sentences,) float64: log p (natural) of each, including its end."""
        return self.score(sentences)[0]

    def unknown(self, sentences: Sentences) -> Int64:
        """Return (sentences,) int64: the number of unknown words of each."""
        return self.score(sentences)[1]

    def score(self, sentences: Sentences) -> tuple[Float64, Int64]:
        """Return `log_probabilities` and `unknown` at once."""
        if not len(sentences):
            return np.zeros(0), np.zeros(0, np.int64)
        scores, unknown = self.by_word(sentences)
        first = find_starts(sentences)[:-1] + np.arange(len(sentences))
        return np.add.reduceat(scores, first), np.add.reduceat(unknown, first, dtype=np.int64)


class NgramModel(TextModel):
    """An n-gram model with back-off weights, in memory.

    Args:
        words: the vocabulary; it begins with `<unk>`, `<s>` and `</s>`.
        keys: for each order the keys of its n-grams, as in `ngrams`.
        slots: for each order the hash table of its keys; empty for unigrams.
        log10: for each order (n-grams,) the logarithm (base 10) of the probability.
        backoff: for each order (n-grams,) that of the back-off weight.
        fallback: the orders whose discounts are the fallback for small texts.

    >>> model = NgramModel.estimate([["a", "b"], ["a", "c"]], order=2)
    >>> model
    NgramModel(order=2, counts=(6, 5))
    >>> model.log_probabilities([["a", "b"], ["b", "d"]]).round(3).tolist()
    [-1.991, -6.502]
    >>> model.unknown([["a", "b"], ["b", "d"]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        words: Sequence[str],
        keys: Sequence[Int64],
        slots: Sequence[Int32],
        log10: Sequence[Float32],
        backoff: Sequence[Float32],
        fallback: tuple[int, ...] = (),
    ):
        self.order = len(keys)
        self.words = tuple(words)
        self.fallback = fallback
        self.tables = Tables(
            np.concatenate(list(keys)),
            np.cumsum([0, *map(len, keys)]),
            np.concatenate(list(slots)),
            np.cumsum([0, *map(len, slots)]),
            np.concatenate(list(log10)),
            np.concatenate(list(backoff)),
        )
        # `<s>` in a candidate is not the beginning of a sentence, but an unknown word.
        ordinary = range(len(SPECIAL), len(self.words))
        self._numbers = dict(zip(self.words[len(SPECIAL) :], ordinary, strict=True))

    @classmethod
    def estimate(cls, sentences: Sentences, order: int = 3) -> NgramModel:
        """Return the modified Kneser–Ney model of a text, as `lmplz --discount_fallback` of KenLM.

        Raises:
            DataError: if there is no word, or a reserved one: `<s>`.
            UsageError: if the order is not possible.
        """
        return cls.of_corpus(join_texts([("the text", [sentences])]), order)

    @classmethod
    def train(
        cls, paths: Iterable[AnyPath], order: int = 3, progress: bool | Reporter = False
    ) -> NgramModel:
        """Return the model of text files: 0.8 GiB for a million lines and order 3, 1.5 for order 5.

        Raises:
            DataError: if a file cannot be read, or as `estimate`.
            UsageError: as `estimate`.
        """
        with reporter(progress, "language model") as report:
            texts = ((origin_name(path), iter_sentences(path)) for path in paths)
            corpus = join_texts(texts, lambda note: report(0, order + 1, note))
            return cls.of_corpus(corpus, order, report)

    @classmethod
    def of_corpus(
        cls, corpus: NumberedText, order: int = 3, progress: Reporter | None = None
    ) -> NgramModel:
        """Return the model of a text from `join_texts`.

        Raises:
            UsageError: as `estimate`.
        """
        if not 1 <= order <= LONGEST:
            rule = f"the order of a language model must be 1 to {LONGEST}"
            raise wrong_value(rule, order, "order")
        steps = iter(range(1, order + 2))
        report = (lambda note: progress(next(steps), order + 1, note)) if progress else str
        grams = count_grams(corpus, order, report)
        report("probabilities")
        keys, slots = [table.keys for table in grams], [table.slots for table in grams]
        return cls(corpus.words, keys, slots, *estimate_probabilities(grams))

    def __repr__(self) -> str:
        return f"NgramModel(order={self.order}, counts={self.counts})"

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of different n-grams of each order."""
        return tuple(np.diff(self.tables.firsts).tolist())

    def by_word(self, sentences: Sentences) -> tuple[Float64, npt.NDArray[np.bool_]]:
        words, starts = number_words(sentences, self._numbers, UNKNOWN)
        unknown = np.insert(words == UNKNOWN, starts[1:], False)
        return score_words(self.tables, words, starts) * np.log(10), unknown


class MixtureModel(TextModel):
    """The linear mixture of language models, p(w | h) = Σ_i α_i p_i(w | h).

    Source: Foster, Goutte & Kuhn (2010), Eq. 1.

    A word is unknown if it is unknown to all models; a word that is unknown to one model has
    the probability of its unknown word.

    Args:
        models: the models.
        weights: α_i, which sum to one.

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
            previous, mixed = weights, weights @ p
            weights = (weights[:, None] * p / mixed).mean(axis=1)
            if np.abs(weights - previous).max() < _CHANGE:
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
            origins = list_names(map(origin_name, paths))
            message = "no sentence to fit the mixture to: give other text"
            raise DataError(message, origins, code="no-data")
        return cls.fit(models, sentences)

    def by_word(self, sentences: Sentences) -> tuple[Float64, npt.NDArray[np.bool_]]:
        weighted = zip(self.weights, self.models, strict=True)
        parts = [(weight, *model.by_word(sentences)) for weight, model in weighted if weight > 0]
        logs = np.logaddexp.reduce([scores + np.log(weight) for weight, scores, _ in parts])
        return logs, np.logical_and.reduce([unknown for *_, unknown in parts])
