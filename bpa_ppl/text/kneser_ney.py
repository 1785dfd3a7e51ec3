"""Interpolated modified Kneser–Ney smoothing (Chen and Goodman, 1998), as lmplz of KenLM has it.

Heafield, Pouzyrevsky, Clark and Koehn (2013) describe the steps: count, adjust the counts, take
discounts from the counts of counts, normalise, interpolate with the lower order. Nothing is pruned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from bpa_ppl._runtime.arrays import Float32, Float64, Int32, Int64
from bpa_ppl.text.gram_tables import Grams, add_sentence_marks, extend_grams
from bpa_ppl.text.words import BEGIN, NumberedText

#: Discounts of counts of 1, 2, and 3 or more for texts that are too small to estimate them.
FALLBACK = (0.5, 1.0, 1.5)


def count_grams(
    corpus: NumberedText, order: int, report: Callable[[str], object] = lambda note: None
) -> list[Grams]:
    """Return the n-grams of a text, of each order from 1 on.

    Args:
        corpus: the text.
        order: the length of the longest n-grams.
        report: called with what is being counted.
    """
    framed_text = add_sentence_marks(*corpus.sentences)
    return [table for table, _ in iter_orders(framed_text, len(corpus.words), order, report)]


def iter_orders(
    framed_text: tuple[Int32, Int32],
    vocabulary: int,
    order: int,
    report: Callable[[str], object] = lambda note: None,
) -> Iterator[tuple[Grams, Int32]]:
    """Yield the n-grams of each order, and the number of the one that ends at each position."""
    ids = framed_text[0]
    words, empty = np.arange(vocabulary), np.zeros(vocabulary, np.int32)
    count = np.bincount(ids, minlength=vocabulary)
    yield Grams(words, empty, count, words == BEGIN, empty[:0]), ids
    for n in range(2, order + 1):
        report(f"{n}-grams")
        table, ids = extend_grams(ids, *framed_text, n)
        yield Grams(*table), ids


def estimate(grams: Sequence[Grams]) -> tuple[list[Float32], list[Float32], tuple[int, ...]]:
    """Return the probabilities and back-off weights of n-grams from their counts.

    With a(g) the adjusted count of g = c w: the number of different words before g, or the number
    of occurrences of g if it has the highest order or begins a sentence,

        p(w | c) = (a(g) − D(a(g))) / Σ_w' a(c w') + b(c) p(w | c without its first word)
        b(c)     = Σ_w' D(a(c w')) / Σ_w' a(c w')

    and below the unigrams all words except the beginning of a sentence are equally probable.

    Args:
        grams: from `count_grams`.

    Returns:
        for each order (n-grams,) float32, the logarithm (base 10) of the probability; the same of
        the back-off weight; and the orders whose discounts are the fallback.
    """
    lower: Float64 = np.full(1, 1.0 / (len(grams[0].keys) - 1))
    log10: list[Float32] = []
    backoff: list[Float32] = []
    fallback: list[int] = []
    for n, table in enumerate(grams, 1):
        count = _adjust_counts(grams, n)
        discount = estimate_discounts(np.bincount(np.minimum(count, 5), minlength=6).tolist())
        if discount is None:
            fallback.append(n)
        amounts = np.array([0.0, *(discount or FALLBACK)])[np.minimum(count, 3)]
        p, weight = interpolate(table.context, table.suffix, count, amounts, lower)
        if n == 1:
            p[BEGIN] = 1.0  # never predicted
        else:
            backoff.append(np.log10(weight).astype(np.float32))
        log10.append(np.minimum(np.log10(p), 0.0).astype(np.float32))
        lower = p
    backoff.append(np.zeros(len(lower), dtype=np.float32))
    return log10, backoff, tuple(fallback)


def estimate_discounts(n: Sequence[float]) -> list[float] | None:
    """Return the discounts of counts of 1, 2, and 3 or more; None if they cannot be estimated.

    With n_i the (expected) number of n-grams with count i and y = n_1 / (n_1 + 2 n_2), they are
    D_i = i − (i + 1) y n_(i+1) / n_i (Chen and Goodman, 1998, Eq. 26). They cannot be estimated if
    an n_i is zero or a D_i is not positive: the text is small, or artificial.

    Args:
        n: the numbers of n-grams with counts 0 to 4.

    >>> estimate_discounts([0, 8, 4, 2, 1])
    [0.5, 1.25, 2.0]
    >>> estimate_discounts([0, 8, 0, 2, 1])  # no count of 2
    >>> estimate_discounts([0, 8, 4, 40, 1])  # negative D_2
    """
    if not all(n[1:4]):
        return None
    y = n[1] / (n[1] + 2 * n[2])
    values = [i - (i + 1) * y * n[i + 1] / n[i] for i in (1, 2, 3)]
    return values if min(values) > 0 else None


def interpolate(
    context: Int64 | Int32, suffix: Int32, count: Int64 | Float64, discount: Float64, lower: Float64
) -> tuple[Float64, Float64]:
    """Return (n-grams,) p of the last word of each, and (contexts,) the back-off weights.

    Args:
        context: (n-grams,) the n-gram without its last word.
        suffix: (n-grams,) the n-gram without its first word.
        count: (n-grams,) adjusted.
        discount: (n-grams,) of the counts.
        lower: (contexts,) p of the shorter n-grams.
    """
    total = np.bincount(context, count, len(lower))
    left = np.bincount(context, discount, len(lower))
    weight = np.divide(left, total, out=np.ones(len(lower)), where=total > 0)
    kept = np.maximum(count - discount, 0.0)
    shares = np.divide(kept, total[context], out=np.zeros(len(kept)), where=kept > 0)
    return shares + weight[context] * lower[suffix], weight


def _adjust_counts(grams: Sequence[Grams], n: int) -> Int64:
    """Return the adjusted counts of the n-grams; that of the beginning alone is 0."""
    table = grams[n - 1]
    if n == len(grams):
        return np.where(table.begins, 0, table.counts) if n == 1 else table.counts
    continuations = np.bincount(grams[n].suffix, minlength=len(table.keys))
    return continuations if n == 1 else np.where(table.begins, table.counts, continuations)
