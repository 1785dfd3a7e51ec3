"""A tree that numbers phrases: each distinct phrase is a node, whose branches are words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import chain, count
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from bpa_ppl.compiling import compiled
from bpa_ppl.nbest import Float32, Float64, Int32, Int64
from bpa_ppl.text.words import Ragged, starts_of

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class PhraseTree:
    """A tree of phrases whose branches are words: the number of a phrase is its node.

    New phrases and their prefixes become nodes; node 0 is the empty phrase.
    """

    def __init__(self) -> None:
        self._words: dict[bytes, int] = defaultdict(count().__next__)
        self._size = 1
        self._slots, self._nodes = np.full(2, -1, np.int64), np.zeros(2, np.int32)
        self._parents, self._branches = np.zeros(1, np.int32), np.zeros(1, np.int32)

    def __len__(self) -> int:
        """Return the number of nodes: phrases, their prefixes, and the empty phrase."""
        return self._size

    def words(self, lines: Iterable[bytes]) -> Ragged:
        """Return the words of some sentences as numbers."""
        return _numbered(lines, self._words.__getitem__)

    def known_words(self, lines: Iterable[bytes]) -> Ragged:
        """Return the words of some sentences as numbers; −1 for an unknown one."""
        return _numbered(lines, lambda word: self._words.get(word, -1))

    @classmethod
    def of(cls, phrases: pa.Array) -> tuple[PhraseTree, Int32]:
        """Return a tree of distinct phrases, and the index of the phrase of each node, or −1."""
        tree = cls()
        split = pc.split_pattern(phrases, " ")
        words = pc.dictionary_encode(pc.list_flatten(split))
        for word in words.dictionary.to_pylist():
            _ = tree._words[word.encode()]  # assigns the next number
        lengths = pc.list_value_length(split).to_numpy(zero_copy_only=False).astype(np.int32)
        starts = np.append(0, np.cumsum(lengths, dtype=np.int64))
        spans = np.arange(len(phrases) + 1), np.zeros(len(phrases), np.int32), lengths
        nodes = tree.numbers((words.indices.to_numpy(), starts), *spans)
        index = np.full(tree._size, -1, np.int32)
        index[nodes] = np.arange(len(phrases), dtype=np.int32)
        return tree, index

    def numbers(self, sentences: Ragged, starts: Int64, begin: Int32, words: Int32) -> Int32:
        """Return (spans,) the numbers of the phrases in some spans; new phrases become nodes.

        Args:
            sentences: the numbered words of sentences, and the start of each sentence.
            starts: (sentences + 1,) the starts of the spans of each sentence.
            begin: (spans,) the first word of each.
            words: (spans,) the number of words of each.
        """
        # An upper bound of the number of new nodes.
        self._reserve(min(len(sentences[0]) * int(words.max(initial=0)), int(words.sum())))
        tree = self._slots, self._nodes, self._parents, self._branches
        numbers, self._size = _number_spans(sentences, starts, begin, words, tree, self._size, True)
        return numbers

    def find(self, sentences: Ragged, starts: Int64, begin: Int32, words: Int32) -> Int32:
        """Return the numbers of the phrases in some spans; −1 where the tree lacks the phrase."""
        tree = self._slots, self._nodes, self._parents, self._branches
        found: Int32 = _number_spans(sentences, starts, begin, words, tree, self._size, False)[0]
        return found

    def count(
        self,
        sentences: Ragged,
        assignment: npt.NDArray[Any],
        counted: Float64,
        once: bool = False,
    ) -> Float64:
        """Return (nodes, K) the counts of each phrase of the tree in each group of sentences.

        Args:
            sentences: words numbered as in the tree, −1 for one that is in no phrase.
            assignment: (sentences,) int16, the group of each, or (sentences, K) float32, its share
                in each group.
            counted: (n, K), the counts of the first n nodes, which are copied.
            once: count a phrase at most once per sentence.
        """
        counts = np.vstack([counted, np.zeros((self._size - len(counted), counted.shape[1]))])
        groups = assignment if assignment.ndim == 1 else np.zeros(0, np.int16)
        shares = assignment if assignment.ndim == 2 else np.zeros((0, 0), np.float32)
        table = self._slots, self._nodes
        _count_phrases(sentences, groups, shares, table, counts, max(len(counted), 1), once)
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
            parts.insert(0, words.take(pa.array(self._branches[nodes], mask=nodes == 0)))
            nodes = self._parents[nodes]
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
        if needed > len(self._parents):
            more = max(needed, 3 * len(self._parents) // 2) - len(self._parents)
            self._parents = np.pad(self._parents, (0, more))
            self._branches = np.pad(self._branches, (0, more))
        if 3 * needed > 2 * len(self._slots):
            slots = 1 << int(2 * needed).bit_length()
            self._slots, self._nodes = np.full(slots, -1, np.int64), np.zeros(slots, np.int32)
            _fill_slots(self._slots, self._nodes, self._parents, self._branches, self._size)


def _numbered(lines: Iterable[bytes], number: Callable[[bytes], int]) -> Ragged:
    sentences = [line.split() for line in lines]
    starts = starts_of(sentences)
    numbers = map(number, chain.from_iterable(sentences))
    return np.fromiter(numbers, dtype=np.int32, count=starts[-1]), starts


@compiled
def _number_spans(
    sentences: Ragged,
    span_starts: Int64,
    begin: Int32,
    words: Int32,
    tree: tuple[Int64, Int32, Int32, Int32],
    size: int,
    adding: bool,
) -> tuple[Int32, int]:
    """Return the node of each phrase, and the new number of nodes: see `PhraseTree.numbers`.

    Without `adding`, the node of a phrase that the tree lacks is −1.
    """
    slots, nodes, parents, branches = tree
    mask = np.uint64(len(slots) - 1)
    numbers = np.empty(len(begin), np.int32)
    for s in range(len(span_starts) - 1):
        start = sentences[1][s]
        for p in range(span_starts[s], span_starts[s + 1]):
            node = 0
            for position in range(start + begin[p], start + begin[p] + words[p]):
                word = sentences[0][position]
                key = (np.int64(node) << 32) + max(word, 0)
                slot = _slot(slots, key, mask)
                if slots[slot] < 0 and adding:
                    slots[slot], nodes[slot] = key, size
                    parents[size], branches[size] = node, word
                    size += 1
                if word < 0 or slots[slot] < 0:
                    node = -1
                    break
                node = nodes[slot]
            numbers[p] = node
    return numbers, size


@compiled
def _count_phrases(
    sentences: Ragged,
    groups: npt.NDArray[np.int16],
    shares: Float32,
    table: tuple[Int64, Int32],
    counts: Float64,
    first: int,
    once: bool,
) -> None:
    """Add to (nodes, K) counts those of the nodes from the first one on: `PhraseTree.count`."""
    slots, nodes = table
    latest = np.full(len(counts) if once else 0, -1, np.int32)  # the last sentence of each node
    mask = np.uint64(len(slots) - 1)
    grouped = len(groups) > 0
    for s in range(len(sentences[1]) - 1):
        end = sentences[1][s + 1]
        for begin in range(sentences[1][s], end):
            node = 0
            for position in range(begin, end):
                word = sentences[0][position]
                if word < 0:
                    break
                slot = _slot(slots, (np.int64(node) << 32) + word, mask)
                if slots[slot] < 0:
                    break
                node = nodes[slot]
                if node < first or (once and latest[node] == s):
                    continue
                if once:
                    latest[node] = s
                if grouped:
                    counts[node, groups[s]] += 1
                else:
                    for k in range(counts.shape[1]):
                        counts[node, k] += shares[s, k]


@njit
def _slot(slots: Int64, key: int, mask: np.uint64) -> np.uint64:
    """Return the slot of a key in a hash table, or the free slot for it."""
    mixed = np.uint64(key) * _GOLDEN
    slot = (mixed ^ (mixed >> np.uint64(32))) & mask
    while slots[slot] >= 0 and slots[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@compiled
def _fill_slots(slots: Int64, nodes: Int32, parents: Int32, branches: Int32, size: int) -> None:
    """Fill an empty hash table with the nodes of a tree."""
    mask = np.uint64(len(slots) - 1)
    for node in range(1, size):
        key = (np.int64(parents[node]) << 32) + branches[node]
        slot = _slot(slots, key, mask)
        slots[slot], nodes[slot] = key, node
