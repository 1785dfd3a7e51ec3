"""Interpolated modified Kneser–Ney smoothing (Chen and Goodman, 1998), as lmplz of KenLM has it.

Heafield, Pouzyrevsky, Clark and Koehn (2013) describe the steps: count, adjust the counts, take
discounts from the counts of counts, normalise, interpolate with the lower order. Nothing is pruned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bpa_ppl.nbest import Float32, Float64, Int64
from bpa_ppl.text.gram_tables import Grams, framed, longer
from bpa_ppl.text.words import BEGIN, Corpus

#: Discounts of counts of 1, 2, and 3 or more for texts that are too small to estimate them.
FALLBACK = (0.5, 1.0, 1.5)


class KneserNeyModel(NamedTuple):
    """The estimated probabilities and back-off weights of a text.

    Attributes:
        log10: for each order (n-grams,) float32, the logarithm (base 10) of the probability.
        backoff: for each order (n-grams,) float32, the same of the back-off weight.
        discounts: (orders, 3) of counts of 1, 2, and 3 or more.
        fallback: the orders whose discounts could not be estimated, and are 0.5, 1, 1.5.
    """

    log10: list[Float32]
    backoff: list[Float32]
    discounts: Float64
    fallback: tuple[int, ...]


def count_grams(
    corpus: Corpus, order: int, report: Callable[[str], object] = lambda note: None
) -> list[Grams]:
    """Return the n-grams of a text, of each order from 1 on.

    Args:
        corpus: the text.
        order: the length of the longest n-grams.
        report: called with what is being counted.
    """
    text, position = framed(*corpus.sentences)
    vocabulary = len(corpus.words)
    words = np.arange(vocabulary, dtype=np.int64)
    empty = np.zeros(vocabulary, dtype=np.int32)
    count = np.bincount(text, minlength=vocabulary)
    grams = [Grams(words, empty, count, words == BEGIN, empty[:0])]
    ids = text
    for n in range(2, order + 1):
        report(f"{n}-grams")
        table, ids = longer(ids, text, position, n)
        grams.append(Grams(*table))
    return grams


def estimate(grams: Sequence[Grams]) -> KneserNeyModel:
    """Return the probabilities and back-off weights of n-grams from their counts.

    With a(g) the adjusted count of g = c w: the number of different words before g, or the number
    of occurrences of g if it has the highest order or begins a sentence,

        p(w | c) = (a(g) − D(a(g))) / Σ_w' a(c w') + b(c) p(w | c without its first word)
        b(c)     = Σ_w' D(a(c w')) / Σ_w' a(c w')

    and below the unigrams all words except the beginning of a sentence are equally probable.

    Args:
        grams: from `count_grams`.
    """
    counts = [_adjusted(grams, n) for n in range(1, len(grams) + 1)]
    discounts = [discounts_of(count) for count in counts]
    lower: Float64 = np.full(1, 1.0 / (len(counts[0]) - 1))
    log10: list[Float32] = []
    backoff: list[Float32] = []
    for table, count, (discount, _) in zip(grams, counts, discounts, strict=True):
        contexts = len(lower)
        amounts = np.array([0.0, *discount])[np.minimum(count, 3)]
        total = np.bincount(table.context, weights=count, minlength=contexts)
        left = np.bincount(table.context, weights=amounts, minlength=contexts)
        continued = total > 0
        weight = np.divide(left, total, out=np.ones(contexts), where=continued)
        p = (count - amounts) / total[table.context] + weight[table.context] * lower[table.suffix]
        if not log10:
            p[BEGIN] = 1.0  # never predicted
        else:
            backoff.append(np.log10(weight).astype(np.float32))
        log10.append(np.minimum(np.log10(p), 0.0).astype(np.float32))
        lower = p
    backoff.append(np.zeros(len(lower), dtype=np.float32))
    fallback = tuple(n for n, (_, is_fallback) in enumerate(discounts, 1) if is_fallback)
    return KneserNeyModel(log10, backoff, np.array([d for d, _ in discounts]), fallback)


def discounts_of(counts: Int64) -> tuple[tuple[float, float, float], bool]:
    """Return the discounts of counts of 1, 2, and 3 or more, and whether they are the fallback.

    With n_i the number of n-grams with count i and y = n_1 / (n_1 + 2 n_2), the discounts are
    D_i = i − (i + 1) y n_(i+1) / n_i (Chen and Goodman, 1998, Eq. 26). The fallback is used if an
    n_i is zero or a D_i is not between 0 and i: the text is small, or artificial.

    Args:
        counts: (n-grams,) adjusted counts.

    >>> discounts_of(np.repeat([1, 2, 3, 4], [8, 4, 2, 1]))
    ((0.5, 1.25, 2.0), False)
    >>> discounts_of(np.array([1, 1, 2]))
    ((0.5, 1.0, 1.5), True)
    """
    return discounts_from(np.bincount(np.minimum(counts, 5), minlength=6).tolist())


def discounts_from(n: Sequence[float]) -> tuple[tuple[float, float, float], bool]:
    """Return the discounts of `discounts_of` from counts of counts.

    Args:
        n: the (expected) numbers of n-grams with counts 0 to 4.

    >>> discounts_from([0, 8, 4, 2, 1])
    ((0.5, 1.25, 2.0), False)
    """
    if not all(n[1:4]):
        return FALLBACK, True
    y = n[1] / (n[1] + 2 * n[2])
    one, two, three = (i - (i + 1) * y * n[i + 1] / n[i] for i in (1, 2, 3))
    valid = 0 < one <= 1 and 0 < two <= 2 and 0 < three <= 3
    return ((one, two, three), False) if valid else (FALLBACK, True)


def _adjusted(grams: Sequence[Grams], n: int) -> Int64:
    """Return the adjusted counts of the n-grams; that of the beginning alone is 0."""
    table = grams[n - 1]
    if n == len(grams):
        return np.where(table.begins, 0, table.counts) if n == 1 else table.counts
    continuations = np.bincount(grams[n].suffix, minlength=len(table.keys))
    return continuations if n == 1 else np.where(table.begins, table.counts, continuations)
