"""Tables of phrase pairs with counts or probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpa_ppl._runtime.arrays import Float64, Int32, Int64
from bpa_ppl.errors import wrong_value

#: The two sides of a phrase pair.
Side = Literal["source", "target"]
SIDES: tuple[Side, Side] = ("source", "target")
#: Texts in an Arrow array, chunked or not, dictionary-encoded or not, or in a sequence.
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

    def phrases(self, side: Side) -> pa.Array:
        """Return the distinct phrases of one side."""
        return self.sources if side == "source" else self.targets

    def number(self, side: Side) -> Int32:
        """Return (pairs,) the number of the phrase of one side of each pair."""
        return self.source if side == "source" else self.target

    def texts(self, side: Side, rows: Int64 | slice = slice(None)) -> pa.Array:
        """Return the phrases of one side of some pairs, or of all."""
        return self.phrases(side).take(pa.array(self.number(side)[rows]))

    def find_rows(self, other: PhrasePairs) -> Int64:
        """Return the rows of the pairs of another table in this one; −1 for a missing pair."""
        sources = find_index(other.sources, self.sources)
        targets = find_index(other.targets, self.targets)
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
        return make_keys(self.source, self.target, len(self.targets))


@dataclass(frozen=True, eq=False, repr=False)
class PhraseCounts(PhrasePairs):
    """Counts of phrase pairs, source phrases and target phrases.

    Attributes:
        count: (pairs,) float64, c(s, t).
        source_count: (source phrases,) float64, c(s); may include pairs that are not in the table.
        target_count: (target phrases,) float64, c(t).

    >>> table = PhraseCounts.of(["la", "la", "le"], ["the", "it", "the"], [3, 1, 2])
    >>> table.count.tolist(), table.target_count.tolist(), table.targets.to_pylist()
    ([1.0, 3.0, 2.0], [1.0, 5.0], ['it', 'the'])
    """

    count: Float64
    source_count: Float64
    target_count: Float64

    @classmethod
    def of(cls, sources: Any, targets: Any, counts: npt.ArrayLike) -> PhraseCounts:
        """Return counts (n,) of phrase pairs given as texts (n,); equal pairs are added."""
        first, source = intern_texts(sources)
        second, target = intern_texts(targets)
        return cls.from_numbers(first, second, source, target, np.asarray(counts, np.float64))

    @classmethod
    def from_numbers(
        cls, sources: pa.Array, targets: pa.Array, source: Int32, target: Int32, counts: Float64
    ) -> PhraseCounts:
        """Return the counts of pairs of numbered phrases; counts of equal pairs are added.

        Args:
            sources: the distinct source phrases.
            targets: the distinct target phrases.
            source: (n,) numbers of source phrases.
            target: (n,) numbers of target phrases.
            counts: (n,) numbers.
        """
        rows, count = sum_equal(make_keys(source, target, len(targets)), counts)
        source, target = source[rows], target[rows]
        marginals = (
            sum_by_number(source, count, len(sources)),
            sum_by_number(target, count, len(targets)),
        )
        return cls(sources, targets, source, target, count, *marginals)

    @property
    def total(self) -> float:
        """The sum of the counts of the pairs."""
        return float(self.count.sum())

    def marginal(self, side: Side) -> Float64:
        """Return the counts of the distinct phrases of one side."""
        return self.source_count if side == "source" else self.target_count

    def find_marginals(self, side: Side, texts: Texts) -> Float64:
        """Return the counts of some phrases of one side; 0 for a missing one."""
        return np.append(self.marginal(side), 0.0)[find_index(texts, self.phrases(side))]

    def find_counts(self, other: PhrasePairs) -> Float64:
        """Return (pairs of another table,) their counts in this one; 0 for a missing pair."""
        return np.append(self.count, 0.0)[self.find_rows(other)]


@dataclass(frozen=True, eq=False, repr=False)
class PhraseTable(PhrasePairs):
    """Probabilities of phrase pairs, in named columns.

    Attributes:
        columns: name -> (pairs,) float64. `direct` is p(t|s) and `inverse` p(s|t); a name after
            a dot distinguishes tables: `direct.in`.
    """

    columns: Mapping[str, Float64]

    @classmethod
    def from_pairs(cls, pairs: PhrasePairs, columns: Mapping[str, Float64]) -> PhraseTable:
        """Return a table with the pairs of another one, and columns of a number for each."""
        return cls(pairs.sources, pairs.targets, pairs.source, pairs.target, columns)

    def best(self, count: int) -> PhraseTable:
        """Return the pairs with the highest p(t|s) of each source phrase.

        Of several columns of p(t|s), their sum decides; of equal pairs the first.

        Args:
            count: the number of translations to keep; Foster et al. (2010) keep 30.

        Raises:
            UsageError: if it is below 1.

        >>> pairs = PhraseCounts.of(["a", "a", "b"], ["x", "y", "x"], [1, 3, 1])
        >>> table = PhraseTable.from_pairs(pairs, {"direct": np.array([0.25, 0.75, 1.0])})
        >>> table.best(1).columns["direct"].tolist()
        [0.75, 1.0]
        """
        if count < 1:
            raise wrong_value("best must be at least 1", count, "best")
        p = sum(v for name, v in self.columns.items() if name.partition(".")[0] == "direct")
        order = np.lexsort((np.negative(p), self.source))
        first = np.searchsorted(self.source, self.source)  # the pairs are sorted by source
        rows = np.sort(order[np.arange(len(self)) - first < count])
        columns = {name: values[rows] for name, values in self.columns.items()}
        return PhraseTable(
            self.sources, self.targets, self.source[rows], self.target[rows], columns
        )


def align_phrases(*tables: PhraseCounts) -> tuple[PhraseCounts, ...]:
    """Return tables of counts in which equal phrases have equal numbers.

    Each has the distinct phrases of all tables; missing ones have a count of 0.

    >>> tables = PhraseCounts.of(["b"], ["y"], [1]), PhraseCounts.of(["a"], ["y"], [2])
    >>> one, two = align_phrases(*tables)
    >>> one.sources.to_pylist(), one.source.tolist(), one.source_count.tolist()
    (['a', 'b'], [1], [0.0, 1.0])
    """
    sources = _unite([table.sources for table in tables])
    targets = _unite([table.targets for table in tables])
    result = []
    for table in tables:
        first, second = find_index(table.sources, sources), find_index(table.targets, targets)
        source_count, target_count = np.zeros(len(sources)), np.zeros(len(targets))
        source_count[first], target_count[second] = table.source_count, table.target_count
        source, target = first[table.source].astype(np.int32), second[table.target].astype(np.int32)
        order = np.argsort(make_keys(source, target, len(targets)), kind="stable")
        pairs = source[order], target[order], table.count[order]
        result.append(PhraseCounts(sources, targets, *pairs, source_count, target_count))
    return tuple(result)


def make_keys(source: Int32 | Int64, target: Int32 | Int64, targets: int) -> Int64:
    """Return one number for each pair of numbers, in the order of pairs."""
    return source.astype(np.int64) * targets + target


def sum_equal(numbers: Int64, counts: npt.NDArray[Any]) -> tuple[Int64, npt.NDArray[Any]]:
    """Return the first row of each distinct number, ascending, and the sums of equal numbers.

    >>> rows, counts = sum_equal(np.array([7, 5, 7]), np.array([1, 2, 3]))
    >>> rows.tolist(), counts.tolist()
    ([1, 0], [2, 4])
    """
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    return order[starts], np.add.reduceat(counts[order], starts) if len(starts) else counts[:0]


def sum_by_number(numbers: Int32 | Int64, values: Float64, size: int) -> Float64:
    """Return (size,) the sum of the values of each number.

    >>> sum_by_number(np.array([0, 2, 0]), np.ones(3), 3).tolist()
    [2.0, 0.0, 1.0]
    """
    return np.bincount(numbers, values, size).astype(np.float64)


def find_index(texts: Texts, among: pa.Array) -> Int64:
    """Return the indices of some texts among others; −1 for a missing one.

    >>> find_index(["b", "x"], pa.array(["a", "b"], pa.large_string())).tolist()
    [1, -1]
    """
    if texts is among:
        return np.arange(len(among))
    index = pc.index_in(_to_arrow(texts).cast(pa.large_string()), value_set=among)
    return np.asarray(pc.fill_null(index, -1).to_numpy(zero_copy_only=False).astype(np.int64))


def intern_texts(texts: Texts) -> tuple[pa.Array, Int32]:
    """Return the distinct texts, sorted bytewise, and the number of each text among them.

    >>> distinct, numbers = intern_texts(["b", "a", "b"])
    >>> distinct.to_pylist(), numbers.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    array = _to_arrow(texts)
    if isinstance(array, pa.ChunkedArray):
        array = array.unify_dictionaries().combine_chunks()
    if not pa.types.is_dictionary(array.type):
        array = pc.dictionary_encode(array.cast(pa.large_string()))
    distinct = array.dictionary.cast(pa.large_string())
    order = pc.sort_indices(distinct).to_numpy()
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return distinct.take(pa.array(order)), ranks[array.indices.to_numpy()]


def _to_arrow(texts: Texts) -> Any:
    is_arrow = isinstance(texts, pa.Array | pa.ChunkedArray)
    return texts if is_arrow else pa.array(list(texts), pa.large_string())


def _unite(arrays: Sequence[pa.Array]) -> pa.Array:
    """Return the distinct texts of several arrays, sorted bytewise.

    >>> _unite([pa.array(["b"]), pa.array(["a", "b"])]).to_pylist()
    ['a', 'b']
    """
    if all(array is arrays[0] for array in arrays):  # such as those of aligned tables
        return arrays[0]
    return intern_texts(pa.chunked_array([a.cast(pa.large_string()) for a in arrays]))[0]
