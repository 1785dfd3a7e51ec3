"""The mixture of subdomains as a NumPyro program, with the subdomain summed out.

For small corpora: all probabilities are dense arrays, with flat priors. It states the model of
`expectation_maximisation` a second time, by its sums alone, and EM must agree with it: in the
likelihood, and in its gradient, because a step of EM sets each probability θ to θ ∂L/∂θ,
normalised (Fisher's identity).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import logsumexp

from bpa_ppl.nbest import Int32
from bpa_ppl.phrases.subdomains import NumberedText

_NONE = -1  # beyond the end of a sentence


class PaddedText(NamedTuple):
    """The sentences of one side as rectangles.

    Attributes:
        words: (sentences, words), numbers; −1 where there is no word.
        history: (sentences, words + 1) the number of the words before each word, and before the end
            of the sentence; −1 as above.
        following: (sentences, words + 1) the word itself; the end of a sentence has the number
            after all words.
        sizes: how many histories there are, and how many words without the end.
    """

    words: Int32
    history: Int32
    following: Int32
    sizes: tuple[int, int]


def padded(text: NumberedText, order: int) -> PaddedText:
    """Return a text as rectangles.

    Args:
        text: the sentences.
        order: of the n-gram models: a history has one word less, and begins with the sentence.

    >>> padded(NumberedText.of([["a", "b"], ["a"]]), 2).history.tolist()
    [[0, 1, 2], [0, 1, -1]]
    """
    known: dict[tuple[int, ...], int] = {}
    rows: list[tuple[list[int], list[int], list[int]]] = []
    for start, end in zip(text.starts[:-1], text.starts[1:], strict=True):
        own = text.numbers[start:end].tolist()
        begun = [_NONE, *own]
        before = [tuple(begun[max(0, i + 2 - order) : i + 1]) for i in range(len(begun))]
        numbers = [known.setdefault(words, len(known)) for words in before]
        rows.append((own, numbers, [*own, len(text.words)]))
    words, history, following = (_rectangle(column) for column in zip(*rows, strict=True))
    return PaddedText(words, history, following, (len(known), len(text.words)))


def subdomain_mixture(source: PaddedText, target: PaddedText, k: int) -> None:
    """P(z), and for each z n-gram models and lexicons of both sides, given sentence pairs (Eq. 3).

    Sites: `weights` (K,), P(z); `source_next` (K, histories, words + 1), P(word or end | z,
    history), and `target_next`; `target_given` (K, source words + 1, target words), t(e | f, z),
    of which the last row is the empty word's, and `source_given`; `pairs`, observed: (pairs,) log
    p(e, f).

    Args:
        source: the source sentences.
        target: their translations.
        k: how many subdomains.
    """
    tables = {
        name: numpyro.sample(name, dist.Dirichlet(jnp.ones((k, *shape))).to_event(1))
        for name, shape in _shapes(source, target).items()
    }
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(k)))
    first = _sequence(tables["source_next"], source)
    first += _translation(tables["target_given"], source, target)
    second = _sequence(tables["target_next"], target)
    second += _translation(tables["source_given"], target, source)
    joint = jnp.log(weights)[None] + np.log(0.5) + jnp.logaddexp(first, second)
    with numpyro.plate("sentence_pairs", len(source.words)):
        numpyro.sample("pairs", Summed(joint), obs=jnp.zeros(len(source.words)))


class Summed(dist.Distribution):  # type: ignore[misc] # NumPyro has no types
    """What was observed with a hidden choice summed out; the value itself says nothing.

    Args:
        joint: (…, K) log p(choice, observation).
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    support = dist.constraints.real

    def __init__(self, joint: Any):
        self.joint = joint
        super().__init__(batch_shape=joint.shape[:-1])

    def log_prob(self, value: Any) -> Any:
        """Return (…) log p(observation)."""
        return logsumexp(self.joint, axis=-1)


def _shapes(source: PaddedText, target: PaddedText) -> dict[str, tuple[int, int]]:
    (histories, words), (others, translations) = source.sizes, target.sizes
    return {
        "source_next": (histories, words + 1),
        "target_next": (others, translations + 1),
        "target_given": (words + 1, translations),
        "source_given": (translations + 1, words),
    }


def _sequence(table: Any, text: PaddedText) -> Any:
    """Return (pairs, K) log p of the sentences of one side."""
    there = (text.history != _NONE)[None]
    logs = jnp.log(jnp.where(there, table[:, text.history, text.following], 1.0))
    return logs.sum(axis=-1).T


def _translation(table: Any, given: PaddedText, predicted: PaddedText) -> Any:
    """Return (pairs, K) log p of one side given the other under IBM Model 1."""
    empty = np.full((len(given.words), 1), given.sizes[1])
    along = np.concatenate([given.words, empty], axis=1)
    t = table[:, along[:, :, None], predicted.words[:, None, :]]
    sums = jnp.where((along != _NONE)[None, :, :, None], t, 0.0).sum(axis=2)
    there = (predicted.words != _NONE)[None]
    lengths = (along != _NONE).sum(axis=1)[None, :, None]
    return jnp.log(jnp.where(there, sums / lengths, 1.0)).sum(axis=-1).T


def _rectangle(rows: Sequence[Sequence[int]]) -> Int32:
    filled = np.full((len(rows), max(map(len, rows))), _NONE, np.int32)
    for n, row in enumerate(rows):
        filled[n, : len(row)] = row
    return filled
