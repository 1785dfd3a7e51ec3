"""N-grams of a text: numbered by hash tables in compiled code, counted, and smoothed.

An n-gram is its context, an (n−1)-gram, and a last word. The n-grams of one order are numbered from
0, and a word is its own unigram. The *key* of a longer n-gram is a 64-bit integer: the number of
its context among the (n−1)-grams and, in the lower 32 bits, its last word. A hash table maps keys
to numbers: the keys are an array, and the table has the places of keys in it, or −1; collisions go
to the next place (open addressing).

Smoothing is interpolated modified Kneser–Ney (Chen and Goodman, 1998), as lmplz of KenLM has it.
Heafield, Pouzyrevsky, Clark and Koehn (2013) describe the steps: count, adjust the counts, take
discounts from the counts of counts, normalise, interpolate with the lower order. Nothing is pruned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bpa_ppl._runtime.arrays import Float32, Float64, Int32, Int64
from bpa_ppl._runtime.cache import compiled
from bpa_ppl.text.words import BEGIN, END, NumberedText

#: The number in a free place.
FREE = -1
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio (Knuth)
#: Discounts of counts of 1, 2, and 3 or more for texts that are too small to estimate them.
FALLBACK = (0.5, 1.0, 1.5)


@njit
def find_slot(slots: Int32, keys: Int64, key: int) -> int:
    """Return the place of a key in a hash table, or the free place for it."""
    last = len(slots) - 1
    mixed = np.uint64(key ^ (key >> 32)) * _MIX
    slot = int(mixed >> np.uint64(32)) & last
    while slots[slot] != FREE and keys[slots[slot]] != key:
        slot = (slot + 1) & last
    return slot


@compiled
def build_hash_table(keys: Int64, size: int) -> Int32:
    """Return a hash table of keys; its size is a power of two, above the number of keys.

    Repeated keys map to the first one.

    >>> table = build_hash_table(np.array([7, 9, 7]), 8)
    >>> sorted(table.tolist())
    [-1, -1, -1, -1, -1, -1, 0, 1]
    """
    slots = np.full(size, FREE, dtype=np.int32)
    for number in range(len(keys)):
        slot = find_slot(slots, keys, int(keys[number]))
        if slots[slot] == FREE:
            slots[slot] = number
    return slots


@compiled
def find_numbers(keys: Int64, slots: Int32, queries: Int64) -> Int64:
    """Return the numbers of some keys; −1 for a missing one.

    >>> keys = np.array([7, 9])
    >>> find_numbers(keys, build_hash_table(keys, 4), np.array([9, 8])).tolist()
    [1, -1]
    """
    numbers = np.empty(len(queries), dtype=np.int64)
    for i in range(len(queries)):
        numbers[i] = slots[find_slot(slots, keys, int(queries[i]))]
    return numbers


def choose_table_size(keys: int) -> int:
    """Return the size of a hash table for a number of keys.

    >>> choose_table_size(0), choose_table_size(8), choose_table_size(9)
    (2, 16, 32)
    """
    return 2 << max(0, (keys - 1).bit_length() if keys else 0)


class Grams(NamedTuple):
    """The counted n-grams of one order, arrays of shape (n-grams,).

    Attributes:
        keys: int64, context and last word; of a unigram its word.
        suffix: int32, the number of the (n−1)-gram without the first word.
        counts: int64, the numbers of occurrences.
        begins: bool, whether the first word is the beginning of a sentence.
        slots: int32, the hash table: numbers of n-grams, or −1.
    """

    keys: Int64
    suffix: Int32
    counts: Int64
    begins: npt.NDArray[np.bool_]
    slots: Int32

    @property
    def context(self) -> Int64:
        """The (n−1)-gram before the last word; 0 for all unigrams."""
        return self.keys >> 32


def add_sentence_marks(words: Int32, starts: Int64) -> tuple[Int32, Int32]:
    """Return sentences with beginnings and ends, and the position of each word in its sentence.

    >>> text, position = add_sentence_marks(np.array([5, 6], np.int32), np.array([0, 2, 2]))
    >>> text.tolist(), position.tolist()
    ([1, 5, 6, 2, 1, 2], [0, 1, 2, 3, 0, 1])
    """
    sentences = np.arange(len(starts) - 1)
    text = np.insert(words, np.repeat(starts, 2)[1:-1], np.tile([BEGIN, END], len(sentences)))
    begins = np.repeat(starts[:-1] + 2 * sentences, np.diff(starts) + 2)
    return text, (np.arange(len(text)) - begins).astype(np.int32)


@compiled
def extend_grams(ids: Int32, text: Int32, position: Int32, n: int) -> tuple[tuple[Any, ...], Int32]:
    """Number and count the n-grams of a text with numbered (n−1)-grams.

    Args:
        ids: (positions,) the number of the (n−1)-gram that ends at a position, if there is one.
        text: (positions,) words, from `add_sentence_marks`.
        position: (positions,) of each word in its sentence.
        n: at least 2.

    Returns:
        The fields of `Grams`, and (positions,) the number of the n-gram that ends at a position.
    """
    size = 0
    keys = np.empty(len(text), dtype=np.int64)
    suffix = np.empty(len(text), dtype=np.int32)
    count = np.empty(len(text), dtype=np.int64)
    begins = np.empty(len(text), dtype=np.bool_)
    numbers = np.empty(len(text), dtype=np.int32)
    slots = np.full(2, FREE, dtype=np.int32)
    for i in range(len(text)):
        if position[i] < n - 1:
            continue
        key = (int(ids[i - 1]) << 32) | int(text[i])
        slot = find_slot(slots, keys, key)
        if slots[slot] == FREE:
            slots[slot] = size
            keys[size], suffix[size], count[size] = key, ids[i], 0
            begins[size] = position[i] == n - 1
            size += 1
            if 2 * size > len(slots):
                slots = build_hash_table(keys[:size], 2 * len(slots))
                slot = find_slot(slots, keys, key)
        numbers[i] = slots[slot]
        count[slots[slot]] += 1
    keys, suffix = keys[:size].copy(), suffix[:size].copy()
    return (keys, suffix, count[:size].copy(), begins[:size].copy(), slots), numbers


class Tables(NamedTuple):
    """The n-grams of a model, concatenated by order, unigrams first.

    Attributes:
        keys: (n-grams,) int64, as in `Grams`.
        firsts: (orders + 1,) int64, the start of each order, and the number of n-grams.
        slots: int32, the hash tables of all orders.
        slot_firsts: (orders + 1,) int64, the start of the table of each order.
        log10: (n-grams,) float32, the logarithm (base 10) of the probability of the last word.
        backoff: (n-grams,) float32, that of the back-off weight.
    """

    keys: Int64
    firsts: Int64
    slots: Int32
    slot_firsts: Int64
    log10: Float32
    backoff: Float32


@njit
def _find(tables: Tables, n: int, context: int, word: int) -> int:
    """Return the number of an n-gram among those of its order, or −1."""
    keys = tables.keys[tables.firsts[n - 1] : tables.firsts[n]]
    slots = tables.slots[tables.slot_firsts[n - 1] : tables.slot_firsts[n]]
    return int(slots[find_slot(slots, keys, (context << 32) | word)])


@compiled
def score_words(tables: Tables, words: Int32, starts: Int64) -> Float64:
    """Return log10 p of each word, and of the end of each sentence, given the preceding words.

    The longest n-gram of the model that ends with the word is used; each longer context in the
    model adds its back-off weight (Katz, 1987; the rule of ARPA files).

    Args:
        tables: the model.
        words: (words,) of all sentences.
        starts: (sentences + 1,) the start of each sentence.

    Returns:
        (words + sentences,) float64: the end of a sentence follows its words.
    """
    order = len(tables.firsts) - 1
    scores = np.empty(len(words) + len(starts) - 1)
    # ending[n]: the n-gram that ends with the last word, or −1; ending[0] is not used.
    ending = np.empty(order + 1, dtype=np.int64)
    token = 0
    for s in range(len(starts) - 1):
        ending[:] = FREE
        ending[1] = BEGIN
        for i in range(starts[s], starts[s + 1] + 1):
            word = int(words[i]) if i < starts[s + 1] else END
            score, has_gram = 0.0, False
            for n in range(order, 1, -1):
                context, gram = int(ending[n - 1]), FREE
                if context != FREE:
                    gram = _find(tables, n, context, word)
                    if gram != FREE and not has_gram:
                        score += tables.log10[tables.firsts[n - 1] + gram]
                        has_gram = True
                    elif not has_gram:
                        score += tables.backoff[tables.firsts[n - 2] + context]
                ending[n] = gram
            ending[1] = word
            scores[token] = score if has_gram else score + tables.log10[word]
            token += 1
    return scores


def count_grams(
    corpus: NumberedText, order: int, report: Callable[[str], object] = lambda note: None
) -> list[Grams]:
    """Return the n-grams of a text, of each order from 1 to `order`."""
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


def estimate_probabilities(
    grams: Sequence[Grams],
) -> tuple[list[Float32], list[Float32], tuple[int, ...]]:
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

    With n_i n-grams of count i, 0 to 4, and y = n_1 / (n_1 + 2 n_2), they are D_i = i − (i + 1) y
    n_(i+1) / n_i (Chen and Goodman, 1998, Eq. 26); an n_i may be zero, or a D_i not positive.

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

    `context` and `suffix` are n-grams without their last and first word, and `lower` is (contexts,)
    p of the shorter ones.
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
