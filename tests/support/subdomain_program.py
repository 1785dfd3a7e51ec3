"""The mixture of subdomains as a NumPyro program, with the subdomain summed out.

A reference for small corpora, with dense probability tables and flat priors. EM must agree with its
likelihood and with its gradient: a step of EM sets each probability θ to the normalised θ ∂L/∂θ
(Fisher's identity).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import logsumexp

from bpa_ppl.text.words import NumberedText

_NONE = -1  # beyond the end of a sentence


class PaddedText(NamedTuple):
    """The sentences of one side as padded arrays.

    Attributes:
        words: word numbers (sentences, words); −1 is padding.
        history: the number of the n-gram history of each word and of the end of the sentence
            (sentences, words + 1); −1 is padding.
        following: the word itself (sentences, words + 1); the end of the sentence has the number
            after all words.
        sizes: the number of histories, and of words without the end of the sentence.
    """

    words: np.ndarray
    history: np.ndarray
    following: np.ndarray
    sizes: tuple[int, int]


def pad_text(text: NumberedText, order: int) -> PaddedText:
    """Return a text as padded arrays.

    Args:
        text: the sentences.
        order: the order of the n-gram models: histories are one word shorter.

    >>> pad_text(NumberedText.of([["a", "b"], ["a"]]), 2).history.tolist()
    [[0, 1, 2], [0, 1, -1]]
    """
    history_numbers: dict[tuple[int, ...], int] = {}
    rows: list[tuple[list[int], list[int], list[int]]] = []
    for start, end in zip(text.starts[:-1], text.starts[1:], strict=True):
        sentence = text.numbers[start:end].tolist()
        before = [_NONE, *sentence]
        histories = [tuple(before[max(0, i + 2 - order) : i + 1]) for i in range(len(before))]
        numbers = [history_numbers.setdefault(words, len(history_numbers)) for words in histories]
        rows.append((sentence, numbers, [*sentence, len(text.words)]))
    words, history, following = (_padded_rows(column) for column in zip(*rows, strict=True))
    return PaddedText(words, history, following, (len(history_numbers), len(text.words)))


def subdomain_mixture(source: PaddedText, target: PaddedText, k: int) -> None:
    """A mixture of k subdomains with n-gram models and lexicons of both sides.

    Source: Cuong, Sima'an & Titov (2016), Eq. 3.

    Sites: `weights` (K,), P(z); `source_next` (K, histories, words + 1), P(word or end | z,
    history), and `target_next`; `target_given` (K, source words + 1, target words), t(e | f, z),
    whose last row is the empty word, and `source_given`; `pairs`, observed: (pairs,) log p(e, f).

    Args:
        source: the source sentences.
        target: the target sentences.
        k: the number of subdomains.
    """
    (histories, words), (others, translations) = source.sizes, target.sizes
    shapes = {
        "source_next": (histories, words + 1),
        "target_next": (others, translations + 1),
        "target_given": (words + 1, translations),
        "source_given": (translations + 1, words),
    }
    tables = {
        name: numpyro.sample(name, dist.Dirichlet(jnp.ones((k, *shape))).to_event(1))
        for name, shape in shapes.items()
    }
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(k)))
    first = _sentence_log_probabilities(tables["source_next"], source)
    first += _translation_log_probabilities(tables["target_given"], source, target)
    second = _sentence_log_probabilities(tables["target_next"], target)
    second += _translation_log_probabilities(tables["source_given"], target, source)
    joint = jnp.log(weights)[None] + np.log(0.5) + jnp.logaddexp(first, second)
    with numpyro.plate("sentence_pairs", len(source.words)):
        numpyro.factor("pairs", logsumexp(joint, axis=-1))


def _sentence_log_probabilities(table: Any, text: PaddedText) -> Any:
    """Return log p of the sentences of one side (pairs, K)."""
    valid = (text.history != _NONE)[None]
    logs = jnp.log(jnp.where(valid, table[:, text.history, text.following], 1.0))
    return logs.sum(axis=-1).T


def _translation_log_probabilities(table: Any, given: PaddedText, predicted: PaddedText) -> Any:
    """Return log p of one side given the other under IBM Model 1 (pairs, K)."""
    empty = np.full((len(given.words), 1), given.sizes[1])
    along = np.concatenate([given.words, empty], axis=1)
    t = table[:, along[:, :, None], predicted.words[:, None, :]]
    sums = jnp.where((along != _NONE)[None, :, :, None], t, 0.0).sum(axis=2)
    valid = (predicted.words != _NONE)[None]
    lengths = (along != _NONE).sum(axis=1)[None, :, None]
    return jnp.log(jnp.where(valid, sums / lengths, 1.0)).sum(axis=-1).T


def _padded_rows(rows: Sequence[Sequence[int]]) -> np.ndarray:
    filled = np.full((len(rows), max(map(len, rows))), _NONE, np.int32)
    for n, row in enumerate(rows):
        filled[n, : len(row)] = row
    return filled
