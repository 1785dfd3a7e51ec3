"""EM for the latent subdomains of a parallel corpus.

H. Cuong, K. Sima'an and I. Titov, "Adapting to all domains at once: rewarding domain invariance in
SMT", TACL 4, 2016. A sentence pair (f, e) of subdomain z has the probability (Eq. 3 of 2016)

    p(f, e | z) = ½ P(e|z) P(f|e,z) + ½ P(f|z) P(e|f,z)

with n-gram models P(e|z), P(f|z) and IBM Model 1 for P(f|e,z), P(e|f,z) of each subdomain. Training
is hierarchical: one iteration with P(z|e,f) ∝ P(z) P(e|z) P(f|z); then the language models are
estimated once more and stay, and the lexicons and P(z) are trained for three iterations more.

Hard EM is as published: a pair belongs entirely to its most probable subdomain, in both lexicons.
Soft EM differs from the printed steps (Eq. 5 and 6 of 2016), which count a pair by P(z|e,f) in both
lexicons. Here both the subdomain and the term of the sum that generated a pair are latent, so each
lexicon counts a pair by P(z|e,f) times the share of its own term. This is EM for Eq. 3 of 2016: the
likelihood does not decrease, and an iteration is θ ∂L/∂θ, normalised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise, starmap
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import delayed
from msgspec import Meta
from numba import njit
from scipy.sparse import csr_array
from scipy.special import logsumexp

from bpa_ppl._runtime.arrays import Float32, Float64, Int32, Int64
from bpa_ppl._runtime.cache import compiled
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl._runtime.workers import Parallel
from bpa_ppl.components import Component, CountOrNone, NotNegative
from bpa_ppl.extras.phrases.ibm1 import ParallelText
from bpa_ppl.extras.phrases.tables import SIDES, Side
from bpa_ppl.text.language_model import LONGEST
from bpa_ppl.text.ngrams import (
    FALLBACK,
    add_sentence_marks,
    estimate_discounts,
    interpolate,
    iter_orders,
)
from bpa_ppl.text.words import BEGIN, SPECIAL, NumberedText, Ragged, sum_segments

#: Smoothing of n-gram models of weighted sentences; `none` is maximum likelihood.
Smoothing = Literal["kneser-ney", "none"]

_NEGLIGIBLE_POSTERIOR = 1e-7  # smaller posteriors are 0: float32 cannot represent them next to 1
# Of the mixture of unigram models:
_SAMPLE = 20_000  # sentence pairs for trying the starts
_STARTS = 8
_POWERS = (*np.geomspace(0.1, 1.0, 20).tolist(), *[1.0] * 10)  # of the posteriors, in a trial
_LAST = 5  # iterations on all sentence pairs
_PSEUDO = 300.0  # pseudo-words of each side of each subdomain, distributed as in the corpus,
_MAX_PSEUDO = 0.02  # but at most this share of it
_FLAT = 5  # iterations of Model 1 from a flat start, for the lexicon of the whole corpus
_MEAN = 5  # the column of the mean count; the others are P(count = 0, 1, 2, 3, 4)


class EMSettings(Component, frozen=True, kw_only=True):
    """Settings of the induction of subdomains by EM.

    Attributes:
        k: K, the number of subdomains.
        em: `hard`, as published: each sentence pair belongs to its most probable subdomain; or
            `soft`: to each with its probability.
        iterations: of the full model.
        lm_iterations: before them, with the language models only; 0 starts with the full model.
        order: of the language models.
        smoothing: of the language models; `none` is maximum likelihood.
        prior: pseudo-counts of each conditioning word of a lexicon; see `Lexicons`.
        folds: with 2 or more, a sentence pair is scored by models of the other folds only; with 1,
            as published, by models that were also estimated on it.
        start: of the first language models: `unigrams`, the posteriors of a mixture of unigram
            models, or `random` posteriors.
        seed: of the start.

    >>> EMSettings(em="soft", folds=5).k
    12
    """

    k: Annotated[int, Meta(ge=2, le=1000)] = 12
    em: Literal["hard", "soft"] = "hard"
    iterations: CountOrNone = 3
    lm_iterations: CountOrNone = 1
    order: Annotated[int, Meta(ge=1, le=LONGEST)] = 3
    smoothing: Smoothing = "kneser-ney"
    prior: NotNegative = 1.0
    folds: Annotated[int, Meta(ge=1)] = 1
    start: Literal["unigrams", "random"] = "unigrams"
    seed: CountOrNone = 0


class Iteration(NamedTuple):
    """The posteriors of the sentence pairs after one iteration.

    Attributes:
        posteriors: (pairs,) int16, the most probable subdomain (hard), or (pairs, K) float32,
            P(z | e, f) (soft).
        shares: (pairs, K) float32, soft: the share of P(f|z) P(e|f,z), which generates the source
            first, in its sum with P(e|z) P(f|e,z); None is a half.
        weights: (K,) float64, P(z), estimated from the posteriors.
        log_likelihood: natural log p of all pairs under the models of the posteriors.
    """

    posteriors: npt.NDArray[Any]
    shares: Float32 | None
    weights: Float64
    log_likelihood: float = 0.0

    def pair_weights(self, z: int, condition: Side | None = None) -> Float64:
        """Return (pairs,) the weights for estimating the models of one subdomain.

        Args:
            z: the subdomain.
            condition: the conditioning side of a lexicon; None for a language model.
        """
        if self.posteriors.ndim == 1:
            return np.asarray(self.posteriors == z, np.float64)
        posterior: Float64 = self.posteriors[:, z].astype(np.float64)
        if condition is None:
            return posterior
        share = 0.5 if self.shares is None else self.shares[:, z].astype(np.float64)
        return posterior * (share if condition == "source" else 1.0 - share)


def _e_step(joint: Float64, shares: Float64 | None, em: str) -> Iteration:
    """Return the posteriors for (pairs, K) logs of P(z) p(e, f | z).

    Args:
        joint: the logs; at least one per row is finite.
        shares: see `Iteration`.
        em: `hard` or `soft`.

    >>> _e_step(np.log([[0.1, 0.3], [0.2, 0.2]]), None, "hard").weights.tolist()
    [0.5, 0.5]
    >>> _e_step(np.log([[0.1, 0.3], [0.2, 0.2]]), None, "soft").weights.tolist()
    [0.375, 0.625]
    """
    highest = joint.max(axis=1, keepdims=True)
    posteriors = np.exp(joint - highest)
    sums = posteriors.sum(axis=1, keepdims=True)
    likelihood = float((highest + np.log(sums)).sum())
    if em == "hard":
        winners = joint.argmax(axis=1).astype(np.int16)
        weights = np.bincount(winners, minlength=joint.shape[1]) / len(winners)
        return Iteration(winners, None, weights, likelihood)
    posteriors /= sums
    posteriors[posteriors < _NEGLIGIBLE_POSTERIOR] = 0.0
    posteriors /= posteriors.sum(axis=1, keepdims=True)
    narrow = None if shares is None else shares.astype(np.float32)
    weights = posteriors.mean(axis=0)
    return Iteration(posteriors.astype(np.float32), narrow, weights, likelihood)


def fit_em(
    source: NumberedText,
    target: NumberedText,
    settings: EMSettings,
    parallel: Parallel,
    report: Reporter = lambda done, total, note: None,
) -> list[Iteration]:
    """Return the posteriors of the sentence pairs: at the start, then after each iteration.

    The result does not depend on the workers: a task estimates the model of one subdomain on one
    side, and scores all sentence pairs by it.

    Args:
        source: the source sentences.
        target: their translations.
        settings: of the induction.
        parallel: workers, from `parallel_workers`.
        report: receives the progress.
    """
    last = settings.lm_iterations  # the last entry with language models only
    total = last + settings.iterations
    report(0, total, "start")
    if settings.start == "random":
        rng = np.random.default_rng(settings.seed)
        posteriors = rng.dirichlet(np.ones(settings.k), len(source))
    else:
        posteriors = fit_unigram_mixture(source, target, settings.k, settings.seed)
    history = [_e_step(_log(posteriors), None, settings.em)]
    sides = source, target
    texts = [WeightedText.of(side.sentences, len(side.words), settings.order) for side in sides]
    while len(history) <= last:
        report(len(history) - 1, total, "language models")
        scores = _score_language(parallel, texts, settings, history[-1])
        history.append(_e_step(_log(history[-1].weights) + sum(scores), None, settings.em))
    if not settings.iterations:
        return history
    scores = _score_language(parallel, texts, settings, history[last])
    del texts
    lexicons = Lexicons(source, target, settings.prior)
    assert set(lexicons.whole_corpus) == set(SIDES)  # computed here, once for all threads
    while len(history) <= last + settings.iterations:
        report(len(history) - 1, total, "full model")
        history.append(_run_full_model(parallel, lexicons, settings, history[last:], scores))
    return history


def _score_language(
    parallel: Parallel, texts: Sequence[WeightedText], settings: EMSettings, iteration: Iteration
) -> list[Float64]:
    """Return for each side (pairs, K) log p under the language models of the subdomains."""

    def scores_of(text: WeightedText, weights: Float64) -> Float64:
        """Estimate one language model and score the sentences of its side; runs in a thread."""
        scores = np.zeros(len(weights))
        for left_out, scored in _split_folds(len(weights), settings.folds):
            training = np.where(left_out, 0.0, weights)
            scores += text.log_probabilities(training, settings.smoothing, scored)
        return scores

    weights = [iteration.pair_weights(z) for z in range(settings.k)]
    return _split_sides(parallel(delayed(scores_of)(text, w) for text in texts for w in weights))


def _run_full_model(
    parallel: Parallel,
    lexicons: Lexicons,
    settings: EMSettings,
    history: Sequence[Iteration],
    language: Sequence[Float64],
) -> Iteration:
    """Return the posteriors after one iteration of the full model.

    Args:
        parallel: workers.
        lexicons: those of the corpus.
        settings: of EM.
        history: before each iteration of the lexicons. They start from that of the whole corpus and
            repeat all steps, so that none has to be stored.
        language: the scores of the language models, which are fixed.
    """

    def scores_of(condition: Side, z: int) -> Float64:
        """Learn one lexicon and score all sentence pairs by it; runs in a thread."""
        scores = np.zeros(len(history[0].posteriors))
        for left_out, scored in _split_folds(len(scores), settings.folds):
            weights = (iteration.pair_weights(z, condition) for iteration in history)
            table = lexicons.learn(condition, (np.where(left_out, 0.0, w) for w in weights))
            scores += lexicons.log_probabilities(condition, table, scored.astype(np.float64))
        return scores

    tasks = (delayed(scores_of)(side, z) for side in SIDES for z in range(settings.k))
    scores = zip(language, _split_sides(parallel(tasks)), strict=True)
    first, second = (a + b for a, b in scores)
    both = np.logaddexp(first, second)
    with np.errstate(invalid="ignore"):
        shares = np.where(both > -np.inf, np.exp(first - both), 0.5)
    joint = _log(history[-1].weights) + np.log(0.5) + both
    return _e_step(joint, shares, settings.em)


def _split_folds(pairs: int, folds: int) -> Iterator[tuple[Any, Any]]:
    """Yield which sentence pairs are left out of the estimation, and which are scored."""
    for fold in range(folds):
        scored = np.arange(pairs) % folds == fold
        yield scored & (folds > 1), scored


def _split_sides(results: Iterable[Float64]) -> list[Float64]:
    """Return (pairs, K) for each side from columns: those of the source, then of the target."""
    columns = list(results)
    half = len(columns) // len(SIDES)
    return [np.stack(columns[:half], axis=1), np.stack(columns[half:], axis=1)]


def _log(probabilities: Float64) -> Float64:
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def fit_unigram_mixture(source: NumberedText, target: NumberedText, k: int, seed: int) -> Float64:
    """Return (pairs, K) P(z | e, f) under a mixture of unigram models, fitted by EM.

    N-gram models of randomly assigned sentences memorise these sentences, and EM does not move.
    Unigram models do not: the first n-gram models are estimated with the posteriors of
    P(z) P(e|z) P(f|z) under unigram models.

    EM is started several times on a sample of the pairs, from random posteriors that are sharpened
    step by step (deterministic annealing: Ueda & Nakano 1998), and continued on all pairs from the
    start with the highest likelihood.

    Args:
        source: the source sentences.
        target: their translations.
        k: the number of subdomains.
        seed: of the sample and of the random posteriors.
    """
    rng = np.random.default_rng(seed)
    pairs = len(source)
    chosen = np.sort(rng.choice(pairs, min(pairs, _SAMPLE), replace=False))
    text = _sentences(source, target)
    sample, pseudo = text[chosen], [_pseudo_counts(side) for side in (source, target)]
    best, model = -np.inf, np.zeros(0)
    for _ in range(_STARTS):
        posteriors = rng.dirichlet(np.ones(k), len(chosen))
        for power in _POWERS:
            sharpened = _expect(sample, _maximise(sample, posteriors, pseudo), power)
            posteriors, likelihood = sharpened
        if likelihood > best:
            best, model = likelihood, _maximise(sample, posteriors, pseudo)
    posteriors, _ = _expect(text, model)
    for _ in range(_LAST):
        posteriors, _ = _expect(text, _maximise(text, posteriors, pseudo))
    return posteriors


def _sentences(source: NumberedText, target: NumberedText) -> Any:
    """Return (pairs, 1 + words), sparse: 1 for P(z), and an entry of 1 for each token."""
    every, size = np.arange(len(source)), 1 + len(source.words)
    owners = [every, *(np.repeat(every, np.diff(side.starts)) for side in (source, target))]
    columns = np.concatenate([0 * every, 1 + source.numbers, size + target.numbers])
    columns = columns[np.argsort(np.concatenate(owners), kind="stable")]
    starts = source.starts + target.starts + np.append(every, len(every))
    return csr_array(
        (np.ones(len(columns)), columns, starts), (len(every), size + len(target.words))
    )


def _maximise(text: Any, posteriors: Float64, pseudo: Sequence[Float64]) -> Float64:
    """Return (1 + words, K) log P(z), and log P(word | z) of the words of both sides.

    Args:
        text: (sentences, 1 + words), sparse: 1, and the counts of the words of both sides.
        posteriors: (sentences, K).
        pseudo: for each side (words, 1), pseudo-counts.
    """
    model = [np.log(posteriors.mean(axis=0, keepdims=True) + 1e-300)]
    sides = np.split((text.T @ posteriors)[1:], [len(pseudo[0])])
    for counts, added in zip(sides, pseudo, strict=True):
        model.append(np.log(counts + added) - np.log((counts + added).sum(axis=0)))
    return np.concatenate(model)


def _expect(text: Any, model: Float64, power: float = 1.0) -> tuple[Float64, float]:
    """Return the posteriors, raised to a power and normalised, and the log-likelihood."""
    scores = text @ model
    scaled = scores * power
    posteriors = np.exp(scaled - logsumexp(scaled, axis=1, keepdims=True))
    return posteriors, float(logsumexp(scores, axis=1).sum())


def _pseudo_counts(text: NumberedText) -> Float64:
    """Return (words, 1) the pseudo-count of each word, in proportion to its frequency.

    Equal pseudo-counts would be many words in total for a large vocabulary, and small subdomains
    would lose their sentences to large ones.
    """
    counts = np.bincount(text.numbers, minlength=len(text.words)).astype(np.float64)
    total = counts.sum()
    return np.asarray(min(_PSEUDO, _MAX_PSEUDO * total) * counts[:, np.newaxis] / total)


class Lexicons:
    """The pairs of words of a parallel corpus, numbered once, for any weights of its pairs.

    Memory for each pair of words that occur together: 24 bytes, and 8 bytes for each lexicon that
    is learned at the same time.

    Args:
        source: the source sentences.
        target: their translations.
        prior: pseudo-counts of each conditioning word, distributed by the lexicon of the whole
            corpus, so that words unseen in a subdomain are translated as elsewhere. Without them,
            a lexicon is the maximum-likelihood estimate, and unseen translations have probability
            0.

    Attributes:
        texts: the corpus, by conditioning side.
    """

    def __init__(self, source: NumberedText, target: NumberedText, prior: float = 1.0):
        self.prior = prior
        texts = ParallelText.of(source, target), ParallelText.of(target, source)
        self.texts: dict[Side, ParallelText] = dict(zip(SIDES, texts, strict=True))

    @cached_property
    def whole_corpus(self) -> dict[Side, Float64]:
        """The lexicon of the whole corpus by conditioning side: Model 1 from a flat start."""
        tables: dict[Side, Float64] = {}
        for side, text in self.texts.items():
            every = np.ones(len(text.lengths))
            tables[side] = text.uniform_table()
            for _ in range(_FLAT):
                text.re_estimate(tables[side], text.sums(tables[side], every), every)
        return tables

    def learn(self, condition: Side, weights: Iterable[Float64]) -> Float64:
        """Return (pairs of words,) t after one step of EM for each of some (sentences,) weights.

        It starts from the lexicon of the whole corpus. A step sets each t to its expected count
        plus
        its pseudo-counts, normalised, so the posterior density of the lexicon does not decrease.
        """
        text, mean = self.texts[condition], self.whole_corpus[condition]
        table, pseudo = mean.copy(), self.prior * mean if self.prior else None
        for of_step in weights:
            text.re_estimate(table, text.sums(table, of_step), of_step, pseudo)
        return table

    def log_probabilities(self, condition: Side, table: Float64, weights: Float64) -> Float64:
        """Return (sentences,) natural log p of the other side given one, as in `phrases.ibm1`."""
        text = self.texts[condition]
        return text.log_probabilities(text.sums(table, weights), weights)


class WeightedText(NamedTuple):
    """The numbered n-grams of a text, for models of its sentences with any weights.

    H. Zhang and D. Chiang, "Kneser-Ney smoothing on expected counts", ACL 2014. A sentence of
    weight w is present with probability w. The count of an n-gram is then a random number, a sum of
    Bernoulli variables, and so are all quantities of Kneser–Ney: counts of counts, discounts and
    the number of different preceding words are replaced by their expectations,

        p(w | c) = (E[a(g)] − E[D(a(g))]) / Σ_w' E[a(c w')] + b(c) p(w | c without its first word)

    with g = c w, in the notation of `ngrams.estimate`. Only the mean of an adjusted count a(g)
    and the probabilities of 0, 1, 2, 3 and 4 are needed. With weights of 0 and 1 it is modified
    Kneser–Ney of the sentences of weight 1.

    Memory: 4 bytes a token, 8 bytes an n-gram of any order.

    Attributes:
        longest: (tokens + sentences,) int32, the longest n-gram that ends with each word and each
            end of a sentence: it determines the probability.
        starts: (sentences + 1,) int64, the start of each sentence in `longest`.
        firsts: (orders + 1,) int64, the first n-gram of each order, and the number of n-grams.
        context: (n-grams,) int32, the n-gram without its last word, among those of its order.
        suffix: (n-grams,) int32, the n-gram without its first word, as above.
    """

    longest: Int32
    starts: Int64
    firsts: Int64
    context: Int32
    suffix: Int32

    @classmethod
    def of(cls, sentences: Ragged, words: int, order: int) -> WeightedText:
        """Return the n-grams of numbered sentences.

        Args:
            sentences: their words, numbered from 0, and the start of each sentence.
            words: the number of different words.
            order: the length of the longest n-grams.

        >>> text = WeightedText.of((np.array([0, 1], np.int32), np.array([0, 2])), 2, 2)
        >>> text.firsts.tolist(), text.longest.tolist()
        ([0, 5, 8], [5, 6, 7])
        """
        text, position = add_sentence_marks(sentences[0] + np.int32(len(SPECIAL)), sentences[1])
        longest, firsts = text.copy(), [0]
        contexts, suffixes = list[Int32](), list[Int32]()
        tables = iter_orders((text, position), words + len(SPECIAL), order)
        for n, (table, ids) in enumerate(tables, 1):
            complete = position >= n - 1
            longest[complete] = ids[complete] + np.int32(firsts[-1])
            firsts.append(firsts[-1] + len(table.keys))
            contexts.append(table.context.astype(np.int32))
            suffixes.append(table.suffix)
        return cls(
            longest[position > 0],
            sentences[1] + np.arange(len(sentences[1])),
            np.array(firsts, np.int64),
            np.concatenate(contexts),
            np.concatenate(suffixes),
        )

    def log_probabilities(
        self,
        weights: Float64,
        smoothing: Smoothing = "kneser-ney",
        chosen: npt.NDArray[np.bool_] | None = None,
    ) -> Float64:
        """Return natural log p of each sentence under the model of the weighted sentences.

        Words that occur in no sentence of positive weight get a part of the uniform distribution;
        with `none` their probability is 0.

        Args:
            weights: (sentences,) from 0 to 1.
            smoothing: see above.
            chosen: (sentences,) bool, which are scored, the others get 0; None scores all.

        Returns:
            (sentences,) float64, including the ends of sentences.

        >>> text = WeightedText.of((np.array([0, 1], np.int32), np.array([0, 1, 2])), 2, 1)
        >>> text.log_probabilities(np.array([1.0, 0.0]), "none").round(4).tolist()
        [-1.3863, -inf]
        """
        counts = estimate_counts(self.longest, self.starts, weights, int(self.firsts[-1]))
        if smoothing == "none":
            p = self._relative(counts[:, _MEAN])
        else:
            add_shorter_counts(counts, self.suffix, self.firsts)
            p = self._smooth(counts)
        tokens, longest = np.diff(self.starts), self.longest
        if chosen is not None:
            longest, tokens = longest[np.repeat(chosen, tokens)], tokens * chosen
        with np.errstate(divide="ignore"):
            return sum_segments(np.log(p)[longest], np.append(0, np.cumsum(tokens)))

    def _relative(self, counts: Float64) -> Float64:
        """Return (n-grams,) relative frequencies given the context."""
        shares = np.zeros(len(counts))
        for rows in starmap(slice, pairwise(self.firsts)):
            totals = np.bincount(self.context[rows], counts[rows])[self.context[rows]]
            np.divide(counts[rows], totals, out=shares[rows], where=totals > 0)
        return shares

    def _smooth(self, counts: Float64) -> Float64:
        """Return (n-grams,) p of the last word of each; counts as from `add_shorter_counts`."""
        p = np.empty(len(counts))
        lower = np.full(1, 1.0 / (self.firsts[1] - 1))
        for rows in starmap(slice, pairwise(self.firsts)):
            context, count = self.context[rows], counts[rows]
            one, two, three = estimate_discounts(count[:, :_MEAN].sum(axis=0).tolist()) or FALLBACK
            more = np.maximum(1.0 - count[:, :3].sum(axis=1), 0.0)
            discount = count[:, 1] * one + count[:, 2] * two + more * three
            suffix, mean = self.suffix[rows], count[:, _MEAN]
            p[rows], _ = interpolate(context, suffix, mean, discount, lower)
            lower = p[rows]
        p[BEGIN] = 1.0  # never predicted
        return p


@njit
def _add_event(moments: Float64, p: float) -> None:
    """Update P(count = 0 … 4) and the mean of a count for another event of probability p."""
    for n in range(4, 0, -1):
        moments[n] += p * (moments[n - 1] - moments[n])
    moments[0] -= p * moments[0]
    moments[5] += p


@compiled
def estimate_counts(longest: Int32, starts: Int64, weights: Float64, grams: int) -> Float64:
    """Return (n-grams, 6) P(count = 0 … 4) and the mean count.

    >>> longest, starts = np.array([0, 0], np.int32), np.array([0, 1, 2])
    >>> estimate_counts(longest, starts, np.array([0.5, 0.5]), 1).tolist()
    [[0.25, 0.5, 0.25, 0.0, 0.0, 1.0]]
    """
    counts = np.zeros((grams, 6))
    counts[:, 0] = 1.0
    for s in range(len(weights)):
        weight = weights[s]
        if weight > 0:
            for i in range(starts[s], starts[s + 1]):
                _add_event(counts[longest[i]], weight)
    return counts


@compiled
def add_shorter_counts(counts: Float64, suffix: Int32, firsts: Int64) -> None:
    """Add the adjusted counts of shorter n-grams: numbers of different preceding words.

    An n-gram below the highest order that begins a sentence keeps its count. Each longer n-gram is
    present with the probability that its own count is not 0.
    """
    for n in range(len(firsts) - 2, 0, -1):
        for gram in range(firsts[n], firsts[n + 1]):
            present = 1.0 - counts[gram, 0]
            if present > 0:
                _add_event(counts[firsts[n - 1] + suffix[gram]], present)
