"""A tree that numbers phrases: each distinct phrase is a node, whose branches are words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import chain, count

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpa_ppl.nbest import Float32, Float64, Int32, Int64
from bpa_ppl.phrases.spans import count_phrases, fill_slots, find_spans, number_spans
from bpa_ppl.text.words import Ragged, starts_of


class PhraseTree:
    """A tree of phrases whose branches are words: the number of a phrase is its node."""

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
        sentences = [line.split() for line in lines]
        starts = starts_of(sentences)
        numbers = map(self._words.__getitem__, chain.from_iterable(sentences))
        return np.fromiter(numbers, dtype=np.int32, count=starts[-1]), starts

    def known_words(self, lines: Iterable[bytes]) -> Ragged:
        """Return the words of some sentences as numbers; −1 for an unknown one."""
        sentences = [line.split() for line in lines]
        starts = starts_of(sentences)
        numbers = (self._words.get(word, -1) for word in chain.from_iterable(sentences))
        return np.fromiter(numbers, dtype=np.int32, count=starts[-1]), starts

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
        """Return (spans,) the numbers of the phrases in some spans: see `number_spans`."""
        # An upper bound of the number of new nodes.
        longest = int(words.max(initial=0))
        self._reserve(min(len(sentences[0]) * longest, int(words.sum())))
        tree = (self._slots, self._nodes, self._parents, self._branches)
        numbers, self._size = number_spans(sentences, starts, begin, words, tree, self._size)
        return numbers

    def find(self, sentences: Ragged, starts: Int64, begin: Int32, words: Int32) -> Int32:
        """Return the numbers of the phrases in some spans; −1 where the tree lacks the phrase."""
        tree = (self._slots, self._nodes, self._parents, self._branches)
        return find_spans(sentences, starts, begin, words, tree)

    def count(
        self,
        sentences: Ragged,
        groups: npt.NDArray[np.int16],
        shares: Float32,
        counted: Float64,
    ) -> Float64:
        """Return (nodes, K) the counts of each phrase of the tree in each group of sentences.

        Args:
            sentences: words numbered as in the tree.
            groups: see `count_phrases`.
            shares: likewise.
            counted: (n, K), the counts of the first n nodes, which are copied.
        """
        counts = np.vstack([counted, np.zeros((self._size - len(counted), counted.shape[1]))])
        table = (self._slots, self._nodes)
        count_phrases(sentences, groups, shares, table, counts, max(len(counted), 1))
        return counts

    def texts(self, numbers: Int64) -> tuple[pa.Array, Int32]:
        """Return the distinct phrases of some numbers, sorted bytewise, and the index of each."""
        used = np.flatnonzero(np.bincount(numbers, minlength=1))
        texts = self._all_texts().take(pa.array(used))
        order = pc.sort_indices(texts).to_numpy()
        ranks = np.zeros(self._size, np.int32)
        ranks[used[order]] = np.arange(len(used), dtype=np.int32)
        return texts.take(pa.array(order)), ranks[numbers]

    def _all_texts(self) -> pa.Array:
        """Return the phrases of all nodes."""
        words = pa.array([word.decode() for word in self._words], pa.large_string())
        parents, branches = self._parents[: self._size], self._branches[: self._size]
        # Level by level: the phrases of a level are those of the level above with one more word.
        index = np.zeros(self._size, np.int64)
        level = np.flatnonzero(parents == 0)[1:]
        depths = np.zeros(self._size, np.int32)
        parts, texts, depth = [pa.array([""], pa.large_string())], None, 0
        order = [np.zeros(1, np.int64)]
        while len(level):
            depth += 1
            depths[level] = depth
            level_texts = words.take(pa.array(branches[level]))
            if texts is not None:
                prefix = texts.take(pa.array(index[parents[level]]))
                level_texts = pc.binary_join_element_wise(
                    prefix, level_texts, pa.scalar(" ", pa.large_string())
                )
            index[level] = np.arange(len(level))
            parts.append(level_texts)
            order.append(level)
            texts = level_texts
            level = np.flatnonzero((depths == 0) & (depths[parents] == depth))
        inverse = np.argsort(np.concatenate(order))
        return pa.concat_arrays(parts).take(pa.array(inverse))

    def _reserve(self, added: int) -> None:
        """Allocate space for more nodes."""
        needed = self._size + added
        if needed > len(self._parents):
            size = max(needed, 3 * len(self._parents) // 2)
            self._parents, self._branches = (
                _longer(self._parents, size),
                _longer(self._branches, size),
            )
        if 3 * needed > 2 * len(self._slots):
            slots = 1 << int(2 * needed).bit_length()
            self._slots, self._nodes = np.full(slots, -1, np.int64), np.zeros(slots, np.int32)
            fill_slots(self._slots, self._nodes, self._parents, self._branches, self._size)


def _longer(values: Int32, size: int) -> Int32:
    return np.append(values, np.zeros(size - len(values), np.int32))
