"""Compiled tables of n-grams: an n-gram is its context, an (n−1)-gram, and a last word.

The n-grams of one order are numbered from 0, and a word is its own unigram. The *key* of a longer
n-gram is a 64-bit integer: the number of its context among the (n−1)-grams and, in the lower 32
bits, its last word. A hash table (`text.hashing`) maps keys to numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from bpa_ppl._runtime.arrays import Float32, Float64, Int32, Int64
from bpa_ppl._runtime.cache import compiled
from bpa_ppl.text.hashing import FREE, build_hash_table, find_slot
from bpa_ppl.text.words import BEGIN, END


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
