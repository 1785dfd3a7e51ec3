"""A tree that numbers phrases: each distinct phrase is a node, whose branches are words.

The *key* of a node is its parent and, in the lower 32 bits, its last word.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain, count, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpa_ppl._runtime.arrays import Float32, Float64, Int32, Int64
from bpa_ppl._runtime.cache import compiled
from bpa_ppl.text.ngrams import FREE, build_hash_table, choose_table_size, find_slot
from bpa_ppl.text.words import NumberedText, Ragged, find_starts

_WORD = (1 << 32) - 1  # the bits of the last word in a key


class PhraseTree:
    """A tree of phrases whose branches are words: the number of a phrase is its node.

    New phrases and their prefixes become nodes; node 0 is the empty phrase.
    """

    def __init__(self) -> None:
        # Words ≥ 1: the key 0 is that of the empty phrase.
        self._words: dict[bytes, int] = defaultdict(count(1).__next__, {b"": 0})
        self._size = 1
        self._keys = np.zeros(1, np.int64)
        self._slots = build_hash_table(self._keys, choose_table_size(1))

    def __len__(self) -> int:
        """Return the number of nodes: phrases, their prefixes, and the empty phrase."""
        return self._size

    def words(self, lines: Iterable[bytes], add: bool = True) -> Ragged:
        """Return the words of some sentences as numbers.

        Args:
            lines: the sentences.
            add: whether new words are numbered; otherwise their number is −1.
        """
        sentences = [line.split() for line in lines]
        starts = find_starts(sentences)
        words = chain.from_iterable(sentences)
        numbers = (
            map(self._words.__getitem__, words) if add else map(self._words.get, words, repeat(-1))
        )
        return np.fromiter(numbers, dtype=np.int32, count=starts[-1]), starts

    def numbers(
        self, sentences: Ragged, starts: Int64, begin: Int32, words: Int32, add: bool = True
    ) -> Int32:
        """Return (spans,) the numbers of the phrases in some spans; `add` makes new nodes, else −1.

        Spans have (sentences + 1,) starts by sentence, and (spans,) first words and lengths.
        """
        if add:  # an upper bound of the number of new nodes
            self._reserve(min(len(sentences[0]) * int(words.max(initial=0)), int(words.sum())))
        tree = self._keys, self._slots, self._size
        numbers, self._size = _number_spans(sentences, starts, begin, words, tree, add)
        return numbers

    def count(self, text: NumberedText, shares: Float32, *, repeated: bool = False) -> Float64:
        """Return (nodes, K) how many sentences of each group have each phrase of the tree.

        Args:
            text: the sentences.
            shares: (sentences, K) float32, the share of each sentence in each group.
            repeated: count a sentence as often as it has the phrase.
        """
        # The number in the tree of each word of the text; −1 if it is in no phrase.
        words = self.words((word.encode() for word in text.words), add=False)[0]
        sentences = words[text.numbers], text.starts
        counts = np.zeros((self._size, shares.shape[1]))
        # A copy is writable: for a read-only array the function would be compiled again.
        _count_phrases(sentences, shares.copy(), (self._keys, self._slots), counts, repeated)
        return counts

    def texts(self, numbers: Int64) -> tuple[pa.Array, Int32]:
        """Return the distinct phrases of some numbers, sorted bytewise, and the index of each."""
        used = np.flatnonzero(np.bincount(numbers, minlength=1))
        words = pa.array([word.decode() for word in self._words], pa.large_string())
        # From the last word of each phrase to the first; shorter phrases have spaces at the front,
        # because Arrow drops rows if it skips all of their values.
        parts = [pa.nulls(len(used), pa.large_string())]
        nodes: npt.NDArray[Any] = used
        while nodes.any():
            keys = self._keys[nodes]
            parts.insert(0, words.take(pa.array(keys & _WORD, mask=nodes == 0)))
            nodes = keys >> 32
        between = pa.scalar(" ", pa.large_string())
        joined = pc.binary_join_element_wise(*parts, between, null_handling="replace")
        texts = pc.ascii_trim_whitespace(joined)
        order = pc.sort_indices(texts).to_numpy()
        ranks = np.zeros(self._size, np.int32)
        ranks[used[order]] = np.arange(len(used), dtype=np.int32)
        return texts.take(pa.array(order)), ranks[numbers]

    def _reserve(self, added: int) -> None:
        """Allocate space for more nodes."""
        needed = self._size + added
        if needed > len(self._keys):
            more = max(needed, 3 * len(self._keys) // 2) - len(self._keys)
            self._keys = np.pad(self._keys, (0, more))
        if 3 * needed > 2 * len(self._slots):
            self._slots = build_hash_table(self._keys[: self._size], choose_table_size(needed))


def build_tree(phrases: pa.Array) -> tuple[PhraseTree, Int32]:
    """Build a tree of distinct phrases.

    Args:
        phrases: distinct texts, words separated by single spaces.

    Returns:
        The tree, and for each node the index of its phrase, or −1.

    >>> tree, index = build_tree(pa.array(["a b", "c"]))
    >>> len(tree), index.tolist()
    (4, [-1, -1, 0, 1])
    """
    tree = PhraseTree()
    split = pc.split_pattern(phrases, " ")
    lengths = pc.list_value_length(split).to_numpy(zero_copy_only=False).astype(np.int32)
    words = pc.dictionary_encode(pc.list_flatten(split))
    numbers = tree.words(word.encode() for word in words.dictionary.to_pylist())[0]
    branches = numbers[words.indices.to_numpy()]
    starts = np.append(0, np.cumsum(lengths, dtype=np.int64))
    spans = np.arange(len(phrases) + 1), np.zeros(len(phrases), np.int32), lengths
    nodes = tree.numbers((branches, starts), *spans)
    index = np.full(len(tree), -1, np.int32)
    index[nodes] = np.arange(len(phrases), dtype=np.int32)
    return tree, index


@compiled
def _number_spans(
    sentences: Ragged,
    span_starts: Int64,
    begin: Int32,
    words: Int32,
    tree: tuple[Int64, Int32, int],
    adding: bool,
) -> tuple[Int32, int]:
    """Return the node of each phrase, and the new number of nodes: see `PhraseTree.numbers`.

    Without `adding`, the node of a phrase that the tree lacks is −1.
    """
    keys, slots, size = tree
    numbers = np.empty(len(begin), np.int32)
    for s in range(len(span_starts) - 1):
        start = sentences[1][s]
        for p in range(span_starts[s], span_starts[s + 1]):
            node = 0
            for position in range(start + begin[p], start + begin[p] + words[p]):
                word = int(sentences[0][position])
                if word < 0:
                    node = FREE
                    break
                key = (node << 32) | word
                slot = find_slot(slots, keys, key)
                if slots[slot] == FREE and adding:
                    slots[slot], keys[size] = size, key
                    size += 1
                node = int(slots[slot])
                if node == FREE:
                    break
            numbers[p] = node
    return numbers, size


@compiled
def _count_phrases(
    sentences: Ragged,
    shares: Float32,
    tree: tuple[Int64, Int32],
    counts: Float64,
    repeated: bool,
) -> None:
    """Add to (nodes, K) counts: see `PhraseTree.count`."""
    keys, slots = tree
    latest = np.full(len(counts), -1, np.int32)  # the last sentence of each node
    for s in range(len(sentences[1]) - 1):
        end = sentences[1][s + 1]
        for begin in range(sentences[1][s], end):
            node = 0
            for position in range(begin, end):
                word = int(sentences[0][position])
                if word < 0:
                    break
                node = int(slots[find_slot(slots, keys, (node << 32) | word)])
                if node == FREE:
                    break
                if latest[node] == s and not repeated:
                    continue
                latest[node] = s
                for k in range(counts.shape[1]):
                    counts[node, k] += shares[s, k]
