"""Numbered phrase pairs, the basis of tables of counts and of probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpa_ppl.columns import counted
from bpa_ppl.nbest import Int32, Int64

#: The two sides of a phrase pair.
Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")
#: An array of Arrow with texts, or a sequence of texts.
Texts: TypeAlias = Any


@dataclass(frozen=True, eq=False, repr=False)
class PhrasePairs:
    """Distinct phrase pairs in columns, with numbers of distinct phrases.

    The words of a phrase are separated by single spaces. The pairs are sorted by source, then by
    target. There may be phrases without pairs.

    Attributes:
        sources: the distinct source phrases, an Arrow array of large strings.
        targets: the distinct target phrases.
        source: (pairs,) int32, the number of the source phrase of each pair.
        target: (pairs,) int32, that of its target phrase.
    """

    sources: pa.Array
    targets: pa.Array
    source: Int32
    target: Int32

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.source)

    def __repr__(self) -> str:
        facts = [counted(len(self), "pair"), counted(len(self.sources), "source phrase")]
        return f"{type(self).__name__}({', '.join(facts)}, {len(self.targets):,} target phrases)"

    def phrases(self, side: Side) -> pa.Array:
        """Return the distinct phrases of one side."""
        return self.sources if side == "source" else self.targets

    def number(self, side: Side) -> Int32:
        """Return (pairs,) the number of the phrase of one side of each pair."""
        return self.source if side == "source" else self.target

    def texts(self, side: Side, rows: Int64 | slice = slice(None)) -> pa.Array:
        """Return the phrases of one side of some pairs, or of all."""
        return self.phrases(side).take(pa.array(self.number(side)[rows]))

    def numbers_of(self, side: Side, texts: Texts) -> Int64:
        """Return the numbers of some phrases; −1 for a missing one."""
        return index_in(texts, self.phrases(side))

    def rows(self, sources: Texts, targets: Texts) -> Int64:
        """Return the rows of some pairs of phrases; −1 for a missing pair.

        Args:
            sources: (n,) texts.
            targets: (n,) texts.
        """
        return self.find(self.numbers_of("source", sources), self.numbers_of("target", targets))

    def rows_of(self, other: PhrasePairs) -> Int64:
        """Return the rows of the pairs of another table in this one; −1 for a missing pair."""
        sources = self.numbers_of("source", other.sources)
        targets = self.numbers_of("target", other.targets)
        return self.find(sources[other.source], targets[other.target])

    def find(self, source: npt.ArrayLike, target: npt.ArrayLike) -> Int64:
        """Return the rows of pairs given by the numbers of their phrases; −1 for a missing pair.

        Args:
            source: (n,) numbers of source phrases; −1 is missing.
            target: (n,) numbers of target phrases.
        """
        first, second = np.asarray(source, np.int64), np.asarray(target, np.int64)
        pair_keys = np.where((first < 0) | (second < 0), -1, first * len(self.targets) + second)
        rows = np.minimum(np.searchsorted(self._keys, pair_keys), len(self) - 1)
        is_pair = self._keys[rows] == pair_keys if len(self) else np.zeros(len(pair_keys), bool)
        return np.where(is_pair, rows, -1)

    @cached_property
    def _keys(self) -> Int64:
        """One number for each pair, ascending."""
        return keys(self.source, self.target, len(self.targets))


def keys(source: Int32 | Int64, target: Int32 | Int64, targets: int) -> Int64:
    """Return one number for each pair of numbers, in the order of pairs."""
    return source.astype(np.int64) * targets + target


def index_in(texts: Texts, among: pa.Array) -> Int64:
    """Return the indices of some texts among others; −1 for a missing one.

    >>> index_in(["b", "x"], pa.array(["a", "b"], pa.large_string())).tolist()
    [1, -1]
    """
    if texts is among:
        return np.arange(len(among))
    values = texts if isinstance(texts, pa.Array) else pa.array(texts, pa.large_string())
    index = pc.index_in(values.cast(pa.large_string()), value_set=among)
    return np.asarray(pc.fill_null(index, -1).to_numpy(zero_copy_only=False).astype(np.int64))


def interned(texts: Any) -> tuple[pa.Array, Int32]:
    """Return the distinct texts, sorted bytewise, and the number of each text among them.

    Args:
        texts: an Arrow array or chunked array of strings, or of dictionary-encoded strings.

    >>> distinct, numbers = interned(pa.array(["b", "a", "b"]))
    >>> distinct.to_pylist(), numbers.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    chunked = texts if isinstance(texts, pa.ChunkedArray) else pa.chunked_array([texts])
    if not pa.types.is_dictionary(chunked.type):
        array = chunked.cast(pa.large_string()).combine_chunks()
        if pc.all(pc.less_equal(array[:-1], array[1:])).as_py() is not False:
            return _runs(array)
        chunked = pc.dictionary_encode(chunked)
    chunked = chunked.unify_dictionaries()
    if not chunked.num_chunks:
        return pa.array([], pa.large_string()), np.zeros(0, np.int32)
    distinct = chunked.chunk(0).dictionary.cast(pa.large_string())
    order = pc.sort_indices(distinct).to_numpy()
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    numbers = np.concatenate([chunk.indices.to_numpy() for chunk in chunked.chunks])
    return distinct.take(pa.array(order)), ranks[numbers]


def _runs(texts: pa.Array) -> tuple[pa.Array, Int32]:
    """Return the distinct texts of sorted texts, and the index of each."""
    changes = pc.not_equal(texts[:-1], texts[1:]).to_numpy(zero_copy_only=False)
    first = np.concatenate([np.ones(min(len(texts), 1), bool), changes.astype(bool)])
    distinct = texts.take(pa.array(np.flatnonzero(first)))
    return distinct, np.cumsum(first, dtype=np.int32) - np.int32(1)


def union(arrays: Sequence[pa.Array]) -> pa.Array:
    """Return the distinct texts of several arrays, sorted bytewise.

    >>> union([pa.array(["b"]), pa.array(["a", "b"])]).to_pylist()
    ['a', 'b']
    """
    if all(array is arrays[0] for array in arrays):  # such as those of aligned tables
        return arrays[0]
    return interned(pa.chunked_array([a.cast(pa.large_string()) for a in arrays]))[0]
