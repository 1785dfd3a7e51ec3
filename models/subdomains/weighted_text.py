"""N-gram models of a text whose sentences have weights: Kneser–Ney on expected counts."""

from __future__ import annotations

from itertools import pairwise, starmap
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bpa_ppl.arrays import Float64, Int32, Int64
from bpa_ppl.compiling import compiled
from bpa_ppl.text.gram_tables import framed
from bpa_ppl.text.kneser_ney import FALLBACK, discounts, interpolated, orders
from bpa_ppl.text.words import BEGIN, SPECIAL, Ragged, segment_sums

#: Smoothing of n-gram models of weighted sentences; `none` is maximum likelihood.
Smoothing = Literal["kneser-ney", "none"]
_MEAN = 5  # the column of the mean count; the others are P(count = 0, 1, 2, 3, 4)


class WeightedText(NamedTuple):
    """The numbered n-grams of a text, for models of its sentences with any weights.

    H. Zhang and D. Chiang, "Kneser-Ney smoothing on expected counts", ACL 2014. A sentence of
    weight w is present with probability w. The count of an n-gram is then a random number, a sum of
    Bernoulli variables, and so are all quantities of Kneser–Ney: counts of counts, discounts and
    the number of different preceding words are replaced by their expectations,

        p(w | c) = (E[a(g)] − E[D(a(g))]) / Σ_w' E[a(c w')] + b(c) p(w | c without its first word)

    with g = c w, in the notation of `kneser_ney.estimate`. Only the mean of an adjusted count a(g)
    and the probabilities of 0, 1, 2, 3 and 4 are needed. With weights of 0 and 1 it is modified
    Kneser–Ney of the sentences of weight 1.

    Memory: 4 bytes a token, 8 bytes an n-gram of any order.

    Attributes:
        longest: (tokens + sentences,) int32, the longest n-gram that ends with each word and each
            end of a sentence: it determines the probability.
        starts: (sentences + 1,) int64, the start of each sentence in `longest`.
        firsts: (orders + 1,) int64, the first n-gram of each order, and the number of n-grams.
        context: (n-grams,) int32, the n-gram without its last word, among those of its order.
        suffix: (n-grams,) int32, the n-gram without its first word, likewise.
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
        text, position = framed(sentences[0] + np.int32(len(SPECIAL)), sentences[1])
        longest, firsts = text.copy(), [0]
        contexts, suffixes = list[Int32](), list[Int32]()
        tables = orders((text, position), words + len(SPECIAL), order)
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
        counts = counted(self.longest, self.starts, weights, int(self.firsts[-1]))
        if smoothing == "none":
            p = self._relative(counts[:, _MEAN])
        else:
            extend(counts, self.suffix, self.firsts)
            p = self._smoothed(counts)
        tokens, longest = np.diff(self.starts), self.longest
        if chosen is not None:
            longest, tokens = longest[np.repeat(chosen, tokens)], tokens * chosen
        with np.errstate(divide="ignore"):
            return segment_sums(np.log(p)[longest], np.append(0, np.cumsum(tokens)))

    def _relative(self, counts: Float64) -> Float64:
        """Return (n-grams,) relative frequencies given the context."""
        shares = np.zeros(len(counts))
        for rows in starmap(slice, pairwise(self.firsts)):
            totals = np.bincount(self.context[rows], counts[rows])[self.context[rows]]
            np.divide(counts[rows], totals, out=shares[rows], where=totals > 0)
        return shares

    def _smoothed(self, counts: Float64) -> Float64:
        """Return (n-grams,) p of the last word of each; counts as from `extend`."""
        p = np.empty(len(counts))
        lower = np.full(1, 1.0 / (self.firsts[1] - 1))
        for rows in starmap(slice, pairwise(self.firsts)):
            context, count = self.context[rows], counts[rows]
            one, two, three = discounts(count[:, :_MEAN].sum(axis=0).tolist()) or FALLBACK
            more = np.maximum(1.0 - count[:, :3].sum(axis=1), 0.0)
            discount = count[:, 1] * one + count[:, 2] * two + more * three
            suffix, mean = self.suffix[rows], count[:, _MEAN]
            p[rows], _ = interpolated(context, suffix, mean, discount, lower)
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
def counted(longest: Int32, starts: Int64, weights: Float64, grams: int) -> Float64:
    """Return (n-grams, 6) P(count = 0 … 4) and the mean count.

    >>> counted(np.array([0, 0], np.int32), np.array([0, 1, 2]), np.array([0.5, 0.5]), 1).tolist()
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
def extend(counts: Float64, suffix: Int32, firsts: Int64) -> None:
    """Add the adjusted counts of shorter n-grams: numbers of different preceding words.

    An n-gram below the highest order that begins a sentence keeps its count. Each longer n-gram is
    present with the probability that its own count is not 0.

    Args:
        counts: from `counted`.
        suffix: of `WeightedText`.
        firsts: of `WeightedText`.
    """
    for n in range(len(firsts) - 2, 0, -1):
        for gram in range(firsts[n], firsts[n + 1]):
            present = 1.0 - counts[gram, 0]
            if present > 0:
                _add_event(counts[firsts[n - 1] + suffix[gram]], present)
