"""Lexicons of subdomains: IBM Model 1 in both directions, of sentence pairs with weights.

A link is a source and a target token of one sentence pair. The links of a sentence pair are stored
by source token, as the number of their pair of words.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numba import njit

from bpa_ppl.nbest import Float64, Int32, Int64
from bpa_ppl.phrases.subdomains import NumberedText
from bpa_ppl.phrases.tables import SIDES, Side
from bpa_ppl.text.ibm1 import Rows, co_occurring, longest_run, sentences_of_words
from bpa_ppl.text.words import Ragged

#: The links of a corpus, the sentences of the conditioning side, those of the predicted side, and
#: whether the source is the conditioning side.
Corpus = tuple[tuple[Int32, Int64], Ragged, Ragged, bool]
#: A lexicon: t of each pair of words that occur together, and of each word given the empty word.
Table = tuple[Float64, Float64]

_FIRST = 5  # iterations of the lexicon of the whole corpus


class Lexicons:
    """The pairs of words of a parallel corpus, numbered once, for any weights of its pairs.

    Memory: 4 bytes for each link (a source and a target token of one sentence pair), which is 4
    bytes a token for each word of a sentence on the other side; 24 bytes for each pair of words
    that occur together.

    Args:
        source: the source sentences.
        target: their translations.
        prior: pseudo-counts of each conditioning word, distributed by the lexicon of the whole
            corpus, so that words unseen in a subdomain are translated as elsewhere. Without them,
            a lexicon is the maximum-likelihood estimate, and unseen translations have probability
            0.
    """

    def __init__(self, source: NumberedText, target: NumberedText, prior: float = 1.0):
        self.prior = prior
        self._pairs = len(source)
        self._sides = source.sentences, target.sentences
        sizes = len(source.words), len(target.words)
        with_source = sentences_of_words(source.sentences, sizes[0])
        rows = co_occurring(*self._sides, sizes)
        source_words = np.repeat(np.arange(sizes[0], dtype=np.int32), np.diff(rows[0]))
        #: The source word and the target word of each pair of words, (pairs,) each.
        self.words: dict[Side, Int32] = {"source": source_words, "target": rows[1]}
        self._sizes = dict(zip(SIDES, sizes, strict=True))
        self._links: tuple[Int32, Int64] = _numbered_links(
            rows, with_source, *self._sides, sizes[1]
        )

    @cached_property
    def whole_corpus(self) -> dict[Side, Table]:
        """The lexicon of the whole corpus by conditioning side: Model 1 from a flat start."""
        tables: dict[Side, Table] = {}
        for side in SIDES:
            tables[side] = self.flat(side)
            for _ in range(_FIRST):
                tables[side] = self.step(side, tables[side], np.ones(self._pairs))
        return tables

    def learned(self, condition: Side, weights: Iterable[Float64]) -> Table:
        """Return the lexicon after one step of EM for each of some weights of the sentence pairs.

        It starts from the lexicon of the whole corpus. A step sets each t to its expected count
        plus its pseudo-counts, normalised: the posterior density of the lexicon, or without
        pseudo-counts its likelihood, does not decrease.

        Args:
            condition: the conditioning side.
            weights: for each step (sentences,), not negative.
        """
        table = self.whole_corpus[condition]
        for of_step in weights:
            table = self.step(condition, table, of_step, self.prior)
        return table

    def step(self, condition: Side, table: Table, weights: Float64, prior: float = 0.0) -> Table:
        """Return a lexicon after one step of EM."""
        counts: Table = _expected_counts(self._corpus(condition), table, weights)
        mean = self.whole_corpus[condition] if prior else table
        _normalise(*counts, self.words[condition], self._sizes[condition], (*mean, prior))
        return counts

    def log_probabilities(
        self, condition: Side, table: Table, chosen: npt.NDArray[np.bool_]
    ) -> Float64:
        """Return (sentences,) natural log p of the other side given one, as in `text.ibm1`.

        Args:
            condition: the conditioning side.
            table: the lexicon.
            chosen: (sentences,) which are scored; the others get 0.
        """
        log_p: Float64 = _log_probabilities(self._corpus(condition), table, chosen)
        return log_p

    def log_prior(self, condition: Side, table: Table) -> float:
        """Return the log density of a lexicon under its pseudo-counts, up to a constant."""
        if not self.prior:
            return 0.0
        mean = self.whole_corpus[condition]
        parts = (np.sum(m * np.log(t)) for m, t in zip(mean, table, strict=True))
        return float(self.prior * sum(parts))

    def flat(self, condition: Side) -> Table:
        """Return the lexicon in which all words are equally probable."""
        size = self._sizes["target" if condition == "source" else "source"]
        return np.full(len(self.words["source"]), 1 / size), np.full(size, 1 / size)

    def _corpus(self, condition: Side) -> Corpus:
        by_source = condition == "source"
        first, second = self._sides if by_source else self._sides[::-1]
        return self._links, first, second, by_source


@njit(nogil=True, cache=True)
def _numbered_links(
    rows: Rows, with_source: Rows, source: Ragged, target: Ragged, size: int
) -> tuple[Int32, Int64]:
    """Return the numbers of all links, and the start of those of each sentence pair.

    Args:
        rows: the target words that co-occur with each source word, ascending.
        with_source: the sentences of each source word, one per occurrence.
        source: the source sentences.
        target: the target sentences.
        size: the number of target words.
    """
    starts = np.zeros(len(source[1]), np.int64)
    for s in range(len(starts) - 1):
        links = (source[1][s + 1] - source[1][s]) * (target[1][s + 1] - target[1][s])
        starts[s + 1] = starts[s] + links
    ids = np.empty(starts[-1], np.int32)
    number = np.zeros(size, np.int32)  # of the pairs of the current source word
    for f in range(len(rows[0]) - 1):
        for k in range(rows[0][f], rows[0][f + 1]):
            number[rows[1][k]] = k
        last = -1
        for s in with_source[1][with_source[0][f] : with_source[0][f + 1]]:
            if s == last:
                continue
            last = s
            words = target[0][target[1][s] : target[1][s + 1]]
            for i in range(source[1][s], source[1][s + 1]):
                if source[0][i] == f:
                    offset = starts[s] + (i - source[1][s]) * len(words)
                    for j in range(len(words)):
                        ids[offset + j] = number[words[j]]
    return ids, starts


@njit
def _add_up(s: np.intp, corpus: Corpus, table: Table, sums: Float64) -> tuple[Int32, int, Int32]:
    """Set sums to Σ t(word | conditioning word), over these words and the empty word.

    Args:
        s: the sentence pair.
        corpus: the links and sentences.
        table: the lexicon.
        sums: at least one per predicted word; the first ones are set.

    Returns:
        the predicted words, the number of conditioning words, and the links, (source words,
        target words).
    """
    links, condition, predicted, by_source = corpus
    values, empty = table
    words = predicted[0][predicted[1][s] : predicted[1][s + 1]]
    ids = links[0][links[1][s] : links[1][s + 1]]
    width = condition[1][s + 1] - condition[1][s]
    grid = ids.reshape((width, len(words)) if by_source else (len(words), width))
    for p in range(len(words)):
        sums[p] = empty[words[p]]
    for f in range(grid.shape[0]):
        for e in range(grid.shape[1]):
            sums[e if by_source else f] += values[grid[f, e]]
    return words, width, grid


@njit(nogil=True, cache=True)
def _expected_counts(corpus: Corpus, table: Table, weights: Float64) -> Table:
    """Return the expected counts of Model 1, each sentence pair with its weight.

    Args:
        corpus: the links and sentences.
        table: (pairs,) t(predicted word | conditioning word), and (predicted words,)
            t(predicted word | the empty word).
        weights: (sentences,), not negative.

    Returns:
        the counts of pairs, and of the predicted words with the empty word.
    """
    predicted, by_source = corpus[2], corpus[3]
    values, empty = table
    counts, null = np.zeros(len(values)), np.zeros(len(empty))
    shares = np.empty(longest_run(predicted[1]))
    for s in np.flatnonzero(weights):
        words, _, grid = _add_up(s, corpus, table, shares)
        for p in range(len(words)):
            shares[p] = weights[s] / shares[p] if shares[p] > 0 else 0.0
            null[words[p]] += shares[p] * empty[words[p]]
        for f in range(grid.shape[0]):
            for e in range(grid.shape[1]):
                counts[grid[f, e]] += shares[e if by_source else f] * values[grid[f, e]]
    return counts, null


@njit(nogil=True, cache=True)
def _log_probabilities(corpus: Corpus, table: Table, chosen: npt.NDArray[np.bool_]) -> Float64:
    """Return (sentences,) natural log p(predicted | condition) of Model 1, 0 for those not chosen.

    The arguments are those of `_expected_counts`, and (sentences,) which are scored.
    """
    logs = np.zeros(len(corpus[1][1]) - 1)
    sums = np.empty(longest_run(corpus[2][1]))
    for s in np.flatnonzero(chosen):
        words, width, _ = _add_up(s, corpus, table, sums)
        for p in range(len(words)):
            logs[s] += np.log(sums[p])
        logs[s] -= len(words) * np.log(width + 1.0)
    return logs


@njit(nogil=True, cache=True)
def _normalise(
    counts: Float64, empty: Float64, rows: Int32, size: int, prior: tuple[Float64, Float64, float]
) -> None:
    """Turn counts into probabilities, with pseudo-counts; a row without any becomes zeros.

    Args:
        counts: (pairs,).
        empty: (predicted words,) the counts of the empty word.
        rows: (pairs,) the conditioning word of each.
        size: the number of conditioning words.
        prior: the probabilities (values, empty) that distribute the pseudo-counts, and the
            pseudo-counts of each conditioning word.
    """
    totals = np.zeros(size)
    total = 0.0
    for k in range(len(counts)):
        counts[k] += prior[2] * prior[0][k]
        totals[rows[k]] += counts[k]
    for k in range(len(counts)):
        counts[k] = counts[k] / totals[rows[k]] if totals[rows[k]] > 0 else 0.0
    for word in range(len(empty)):
        empty[word] += prior[2] * prior[1][word]
        total += empty[word]
    for word in range(len(empty)):
        empty[word] = empty[word] / total if total > 0 else 0.0
