"""Topics of the sentences of a corpus by Latent Dirichlet Allocation (Blei, Ng & Jordan 2003).

Each sentence is a document, and its shares of the topics are the probabilities of its subdomain.
Cuong, Sima'an and Titov (2016) compare their induction with these topics, sampled with α = β =
0.01.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from numba import njit
from scipy.special import gammaln

from bpa_ppl.arrays import Float64, Int32
from bpa_ppl.component import Component, Count, Positive
from bpa_ppl.errors import checked_seed
from bpa_ppl.phrases.subdomains import NumberedText
from bpa_ppl.progress import Reporter
from bpa_ppl.text.words import Ragged

_WARM_UP = 0.5  # share of the passes of Gibbs sampling
_FIRST_ALPHA = 1.0  # at the start of the warm-up
_RECORDED = 5  # log densities after the warm-up


class LDASettings(Component, frozen=True, kw_only=True):
    """Settings of Latent Dirichlet Allocation by collapsed Gibbs sampling, as published.

    Attributes:
        k: K, the number of topics.
        alpha: α of the Dirichlet prior of the topics of a sentence.
        beta: β of the Dirichlet prior of the words of a topic.
        passes: over the text. The first half is the warm-up, and the mean of the other half is the
            result. In the warm-up α falls from 1: with a small α, the words of a short sentence
            hold each other in their topic, so that thousands of passes may be needed.
        starts: of the warm-up; the one with the highest density continues.
        seed: of the starts, and of the sampler.

    >>> LDASettings(k=4, alpha=0.1).passes
    200
    """

    k: Annotated[int, Meta(ge=2, le=1000)] = 12
    alpha: Positive = 0.01
    beta: Positive = 0.01
    passes: Count = 200
    starts: Count = 4
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_seed(self.seed)


def documents(texts: Sequence[NumberedText]) -> NumberedText:
    """Return the sentences of one language, or each sentence followed by its translation.

    Words of the two languages are different words, even if they are spelled alike.

    Args:
        texts: one text, or two of equally many sentences.

    >>> both = documents([NumberedText.of([["a"], ["b"]]), NumberedText.of([["a", "c"], []])])
    >>> both.numbers.tolist(), both.starts.tolist(), both.words
    ([0, 2, 3, 1], [0, 3, 4], ['a', 'b', 'a', 'c'])
    """
    first, *others = texts
    if not others:
        return first
    (second,) = others
    starts = first.starts + second.starts
    numbers = np.empty(starts[-1], np.int32)
    for text, inserted, offset in (
        (first, second.starts[:-1], 0),
        (second, first.starts[1:], len(first.words)),
    ):
        places = np.arange(len(text.numbers)) + np.repeat(inserted, np.diff(text.starts))
        numbers[places] = text.numbers + offset
    return NumberedText(first.words + second.words, numbers, starts)


def lda(
    text: NumberedText, settings: LDASettings, report: Reporter = lambda done, total, note: None
) -> tuple[Float64, dict[str, Any]]:
    """Return (sentences, K) the shares of the topics in each sentence, and what to record.

    The shares are posterior means. A sentence without words has the same share of each topic.

    Args:
        text: the sentences.
        settings: of LDA.
        report: receives the progress.

    >>> text = NumberedText.of([["a", "b"], ["c", "d"]] * 20)
    >>> shares, _ = lda(text, LDASettings(k=2))
    >>> winners = shares.argmax(axis=1).tolist()
    >>> winners == winners[:2] * 20, winners[0] != winners[1]
    (True, True)
    """
    warm_up = int(_WARM_UP * settings.passes)
    kept = settings.passes - warm_up
    total_passes, done = settings.starts * warm_up + kept, 0
    sampler, densities = None, []
    for start in range(settings.starts):
        candidate = GibbsSampler(text, settings, start)
        for alpha in np.geomspace(max(_FIRST_ALPHA, settings.alpha), settings.alpha, warm_up):
            report(done, total_passes, "passes of LDA")
            candidate.step(alpha)
            done += 1
        densities.append(candidate.log_density())
        if sampler is None or densities[-1] > max(densities[:-1]):
            sampler = candidate
    assert sampler is not None  # there is at least one start
    total, trace = np.zeros((len(text), settings.k)), []
    for n in range(kept):
        report(done, total_passes, "passes of LDA")
        sampler.step()
        done += 1
        total += sampler.shares()
        if (n + 1) * _RECORDED // kept > n * _RECORDED // kept:
            trace.append(sampler.log_density())
    return total / kept, {"log_densities_of_starts": densities, "log_densities": trace}


class GibbsSampler:
    """Collapsed Gibbs sampling of the topics of words (Griffiths & Steyvers 2004).

    A pass draws the topic of each word given those of all others; the distributions of topics and
    of words are integrated out.

    Args:
        text: the sentences.
        settings: of LDA.
        start: the number of the random start.

    Attributes:
        topics: (tokens,) int32, the topic of each token.
    """

    def __init__(self, text: NumberedText, settings: LDASettings, start: int = 0):
        self._rng = np.random.default_rng([settings.seed, start])
        self._text, self._priors = text.sentences, (settings.alpha, settings.beta)
        k, tokens = settings.k, len(text.numbers)
        self.topics: Int32 = self._rng.integers(k, size=tokens, dtype=np.int32)
        sentences = np.repeat(np.arange(len(text)), np.diff(text.starts))
        self._in_sentence = np.zeros((len(text), k))
        self._of_word = np.zeros((len(text.words), k))
        np.add.at(self._in_sentence, (sentences, self.topics), 1)
        np.add.at(self._of_word, (text.numbers, self.topics), 1)

    def step(self, alpha: float | None = None) -> None:
        """Draw the topic of each token once, in the order of the text.

        Args:
            alpha: replaces α of the settings in this pass.
        """
        priors = alpha or self._priors[0], self._priors[1]
        counts = self._in_sentence, self._of_word
        _draw_topics(self._text, self.topics, counts, priors, self._rng)

    def shares(self) -> Float64:
        """Return (sentences, K) E[θ | topics], the expected shares of topics in each sentence."""
        counts = self._in_sentence + self._priors[0]
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))

    def log_density(self) -> float:
        """Return log p(words, topics | α, β), with θ and φ integrated out."""
        total = 0.0
        tables = self._in_sentence, self._of_word.T
        for counts, prior in zip(tables, self._priors, strict=True):
            rows, categories = counts.shape
            total += rows * (gammaln(categories * prior) - categories * gammaln(prior))
            total += gammaln(counts + prior).sum()
            total -= gammaln(counts.sum(axis=1) + categories * prior).sum()
        return float(total)


@njit(nogil=True, cache=True)
def _draw_topics(
    text: Ragged,
    topics: Int32,
    counts: tuple[Float64, Float64],
    priors: tuple[float, float],
    rng: np.random.Generator,
) -> None:
    """Draw the topic of each token from its distribution given all others.

    Args:
        text: the numbers of the words, and the start of each sentence.
        topics: (tokens,) changed.
        counts: (sentences, K) and (words, K) how many tokens have each topic; changed.
        priors: α and β.
        rng: the generator of random numbers.
    """
    words, starts = text
    in_sentence, of_word = counts
    alpha, beta = priors
    k = of_word.shape[1]
    sums = of_word.sum(axis=0) + len(of_word) * beta
    cumulative = np.empty(k)
    for s in range(len(starts) - 1):
        sentence = in_sentence[s]
        for i in range(starts[s], starts[s + 1]):
            word, topic = of_word[words[i]], topics[i]
            sentence[topic] -= 1
            word[topic] -= 1
            sums[topic] -= 1
            total = 0.0
            for z in range(k):
                total += (sentence[z] + alpha) * (word[z] + beta) / sums[z]
                cumulative[z] = total
            draw = rng.random() * total
            topic = 0
            while topic < k - 1 and cumulative[topic] <= draw:
                topic += 1
            topics[i] = topic
            sentence[topic] += 1
            word[topic] += 1
            sums[topic] += 1
