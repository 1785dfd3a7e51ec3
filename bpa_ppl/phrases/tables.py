"""Tables of phrase pairs with counts or probabilities, which are read and written.

The files are Parquet, one row a pair, or text in the formats of Moses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.streams import AnyPath, InputFile, atomic_writer
from bpa_ppl.nbest import Float64, Int32
from bpa_ppl.phrases.pairs import PhrasePairs, Side, Texts, index_in, interned, keys, union
from bpa_ppl.phrases.table_files import (
    TextTable,
    is_parquet,
    numbers_in,
    open_table,
    read_marginal,
    read_parquet,
    slices,
    write_parquet,
)

#: The columns of a phrase table of Moses, in its order, by our names.
_MOSES_COLUMNS = ("inverse", "inverse_lexical", "direct", "direct_lexical")
_TWO_COLUMNS = ("inverse", "direct")
_COUNTS = ("count", "source_count", "target_count")


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
    >>> table.conditional("target").tolist()
    [0.25, 0.75, 1.0]
    """

    count: Float64
    source_count: Float64
    target_count: Float64

    @classmethod
    def of(cls, sources: Any, targets: Any, counts: npt.ArrayLike) -> PhraseCounts:
        """Return the counts of phrase pairs given as texts; counts of equal pairs are added.

        Args:
            sources: (n,) texts, of Python or of Arrow.
            targets: (n,) texts.
            counts: (n,) numbers.
        """
        first, source = interned(_arrow(sources))
        second, target = interned(_arrow(targets))
        return cls.numbered(first, second, source, target, np.asarray(counts, np.float64))

    @classmethod
    def numbered(
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
        pairs = keys(source, target, len(targets))
        order = np.argsort(pairs, kind="stable")
        ordered = pairs[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        rows = order[starts]
        count = np.add.reduceat(counts[order], starts) if len(starts) else np.zeros(0)
        return cls.summed(sources, targets, source[rows], target[rows], count)

    @classmethod
    def summed(
        cls, sources: pa.Array, targets: pa.Array, source: Int32, target: Int32, count: Float64
    ) -> PhraseCounts:
        """Return a table of distinct, sorted pairs, with sums of counts as marginals."""
        return cls(
            sources,
            targets,
            source,
            target,
            count,
            _sums(source, count, len(sources)),
            _sums(target, count, len(targets)),
        )

    @property
    def total(self) -> float:
        """The sum of the counts of the pairs."""
        return float(self.count.sum())

    def marginal(self, side: Side) -> Float64:
        """Return the counts of the distinct phrases of one side."""
        return self.source_count if side == "source" else self.target_count

    def conditional(self, side: Side) -> Float64:
        """Return (pairs,) the relative frequency of the phrase of one side, given the other.

        Args:
            side: `target` for p(t|s) = c(s,t)/c(s), `source` for p(s|t) = c(s,t)/c(t).
        """
        other: Side = "source" if side == "target" else "target"
        marginal = self.marginal(other)[self.number(other)]
        return np.divide(self.count, marginal, out=np.zeros(len(self)), where=marginal > 0)

    def with_marginals(
        self,
        source: tuple[Texts, npt.ArrayLike] | None = None,
        target: tuple[Texts, npt.ArrayLike] | None = None,
    ) -> PhraseCounts:
        """Return the table with the marginal counts of a larger table.

        Args:
            source: phrases and their counts; phrases that the table does not have are ignored.
            target: likewise.

        Raises:
            DataError: if a phrase has no count, or one that is below the sum of its pairs.
        """
        table = self
        if source is not None:
            table = replace(table, source_count=self._counts_of("source", *source))
        if target is not None:
            table = replace(table, target_count=self._counts_of("target", *target))
        return table

    def _counts_of(self, side: Side, phrases: Texts, counts: npt.ArrayLike) -> Float64:
        numbers = self.numbers_of(side, phrases)
        result = np.zeros(len(self.phrases(side)))
        result[numbers[numbers >= 0]] = np.asarray(counts, np.float64)[numbers >= 0]
        sums = _sums(self.number(side), self.count, len(result))
        low = np.flatnonzero(result < sums * (1 - 1e-9))
        if len(low):
            phrase = self.phrases(side)[int(low[0])].as_py()
            raise DataError(
                f"the count of the {side} phrase {phrase!r} is {result[low[0]]:g}, below the "
                f"{sums[low[0]]:g} of its pairs: give the marginals of the same extraction"
            )
        return result


@dataclass(frozen=True, eq=False, repr=False)
class PhraseTable(PhrasePairs):
    """Probabilities of phrase pairs, in named columns.

    Attributes:
        columns: name -> (pairs,) float64. `direct` is p(t|s) and `inverse` p(s|t); a name after
            a dot distinguishes tables: `direct.in`.
    """

    columns: Mapping[str, Float64] = field(default_factory=dict)

    @classmethod
    def on(cls, pairs: PhrasePairs, columns: Mapping[str, npt.ArrayLike]) -> PhraseTable:
        """Return a table with the pairs of another one.

        Raises:
            DataError: if a column does not have one number from 0 to 1 for each pair.
        """
        arrays = {name: np.asarray(values, np.float64) for name, values in columns.items()}
        for name, values in arrays.items():
            if values.shape != (len(pairs),):
                raise DataError(f"{len(values)} values of {name} for {len(pairs)} pairs")
            if not (np.isfinite(values) & (values >= 0) & (values <= 1 + 1e-9)).all():
                raise DataError(f"{name} has values that are not probabilities from 0 to 1")
        return cls(pairs.sources, pairs.targets, pairs.source, pairs.target, arrays)


def aligned(*tables: PhraseCounts) -> tuple[PhraseCounts, ...]:
    """Return tables of counts in which equal phrases have equal numbers.

    Each has the distinct phrases of all tables; missing ones have a count of 0.

    >>> one, two = aligned(PhraseCounts.of(["b"], ["y"], [1]), PhraseCounts.of(["a"], ["y"], [2]))
    >>> one.sources.to_pylist(), one.source.tolist(), one.source_count.tolist()
    (['a', 'b'], [1], [0.0, 1.0])
    """
    sources = union([table.sources for table in tables])
    targets = union([table.targets for table in tables])
    return tuple(_renumbered(table, sources, targets) for table in tables)


def _sums(numbers: Int32, counts: Float64, phrases: int) -> Float64:
    return np.bincount(numbers, counts, phrases).astype(np.float64)


def _renumbered(table: PhraseCounts, sources: pa.Array, targets: pa.Array) -> PhraseCounts:
    first, second = index_in(table.sources, sources), index_in(table.targets, targets)
    source, target = first[table.source].astype(np.int32), second[table.target].astype(np.int32)
    source_count, target_count = np.zeros(len(sources)), np.zeros(len(targets))
    source_count[first], target_count[second] = table.source_count, table.target_count
    order = np.argsort(keys(source, target, len(targets)), kind="stable")
    return PhraseCounts(
        sources,
        targets,
        source[order],
        target[order],
        table.count[order],
        source_count,
        target_count,
    )


def read_pairs(path: AnyPath) -> PhrasePairs:
    r"""Read the distinct pairs of a table of counts or probabilities, or of Moses' `extract`.

    Raises:
        DataError: with file and line, if the file is invalid.

    >>> from pathlib import Path
    >>> _ = Path("pairs.txt").write_text("un ||| a ||| 3\nun ||| one ||| 1\n")
    >>> len(read_pairs("pairs.txt"))
    2
    """
    file = InputFile(path)
    if is_parquet(file):
        table = read_parquet(file)
        texts = table.column("source"), table.column("target")
    else:
        blocks = [fields.columns[:2] for fields in open_table(file).blocks()]
        sources, targets = (
            [pc.dictionary_encode(block[side]) for block in blocks] for side in (0, 1)
        )
        texts = _chunked((sources, targets))
    return PhraseCounts.of(*texts, np.ones(len(texts[0])))


def read_counts(
    path: AnyPath, *, source_counts: AnyPath | None = None, target_counts: AnyPath | None = None
) -> PhraseCounts:
    r"""Read counts of phrase pairs; the format is detected automatically.

    It is Parquet, as from `write_counts`; text (also gzip, xz or zstd) with a pair per line,
    `source ||| target ||| count`; the output of Moses' `extract`, an occurrence per line,
    `source ||| target ||| 0-0 1-1`; or a phrase table of Moses with its counts c(t) c(s) c(s,t).
    Words of a phrase are separated by single spaces. Counts of equal pairs are added.

    Args:
        path: the file.
        source_counts: a file of c(s), lines of `phrase ||| count`, if the table is a part of a
            larger one; None uses the sums of its own pairs.
        target_counts: a file of c(t), likewise.

    Raises:
        DataError: with file and line, if the file is invalid.

    >>> from pathlib import Path
    >>> _ = Path("pairs.txt").write_text("un ||| a ||| 3\nun ||| one ||| 1\nun ||| a ||| 1\n")
    >>> counts = read_counts("pairs.txt")
    >>> counts.count.tolist(), counts.total
    ([4.0, 1.0], 5.0)
    """
    file = InputFile(path)
    read = _counts_of_parquet if is_parquet(file) else _counts_of_text
    table = read(file)
    source, target = (p and read_marginal(p) for p in (source_counts, target_counts))
    try:
        return table.with_marginals(source or None, target or None)
    except DataError as error:
        raise DataError(str(error), file.origin) from error


def write_counts(table: PhraseCounts, path: AnyPath) -> None:
    r"""Write counts as Parquet (`.parquet`), or as text `source ||| target ||| count`.

    Text does not keep marginals that are not sums.

    Raises:
        DataError: if the file cannot be written.

    >>> from pathlib import Path
    >>> _ = Path("pairs.txt").write_text("un ||| a ||| 3\nun ||| one ||| 1\n")
    >>> write_counts(read_counts("pairs.txt"), "again.txt")
    >>> Path("again.txt").read_text() == Path("pairs.txt").read_text()
    True
    """
    if Path(path).suffix == ".parquet":
        marginals = (table.source_count[table.source], table.target_count[table.target])
        write_parquet(table, dict(zip(_COUNTS, (table.count, *marginals), strict=True)), path)
        return
    with atomic_writer(path) as stream:
        for rows in slices(len(table)):
            stream.writelines(_lines(table, rows, [_printed(table.count[rows])]))


def read_table(path: AnyPath) -> PhraseTable:
    r"""Read probabilities of phrase pairs: Parquet as from `write_table`, or a table of Moses.

    The scores of a phrase table of Moses are p(s|t), lex(s|t), p(t|s) and lex(t|s), named
    `inverse`, `inverse_lexical`, `direct` and `direct_lexical`; two scores are p(s|t) and p(t|s);
    any other number of scores is named `score1`, `score2`, ….

    Raises:
        DataError: with file and line, if the file is invalid, or has a pair twice.

    >>> from pathlib import Path
    >>> _ = Path("table").write_text("un ||| a ||| 0.6 0.75\nun ||| one ||| 0.9 0.25\n")
    >>> table = read_table("table")
    >>> sorted(table.columns)
    ['direct', 'inverse']
    >>> write_table(table, "again")
    >>> Path("again").read_text() == Path("table").read_text()
    True
    """
    file = InputFile(path)
    if not is_parquet(file):
        return _table_of_text(file)
    table = read_parquet(file)
    names = [name for name in table.column_names if name not in ("source", "target")]
    if "count" in names:
        raise DataError(
            "the table has counts, not probabilities: convert it with `bpa phrases mix`",
            file.origin,
        )
    columns = {name: numbers_in(table, name, file.origin) for name in names}
    return _distinct(table.column("source"), table.column("target"), columns, file.origin)


def write_table(table: PhraseTable, path: AnyPath) -> None:
    """Write probabilities as Parquet (`.parquet`), or as a table of Moses.

    A table of Moses has `inverse` and `direct`, or `inverse`, `inverse_lexical`, `direct` and
    `direct_lexical`, in this order.

    Raises:
        DataError: if the file cannot be written.
        UsageError: if the columns are others, whose names a table of Moses cannot store.
    """
    if Path(path).suffix == ".parquet":
        write_parquet(table, table.columns, path)
        return
    names = next((n for n in (_TWO_COLUMNS, _MOSES_COLUMNS) if set(n) == set(table.columns)), None)
    if names is None:
        raise UsageError(
            f"a table of Moses cannot store the columns {', '.join(table.columns)}: write "
            f"{Path(path).name.partition('.')[0]}.parquet, or only inverse and direct"
        )
    with atomic_writer(path) as stream:
        for rows in slices(len(table)):
            scores = [_printed(table.columns[name][rows]) for name in names]
            joined = pc.binary_join_element_wise(*scores, pa.scalar(" ", pa.large_string()))
            stream.writelines(_lines(table, rows, [joined]))


def _counts_of_parquet(file: InputFile) -> PhraseCounts:
    table = read_parquet(file)
    count, of_source, of_target = (numbers_in(table, name, file.origin) for name in _COUNTS)
    sources, source = interned(table.column("source"))
    targets, target = interned(table.column("target"))
    table_counts = PhraseCounts.numbered(sources, targets, source, target, count)
    source_count, target_count = np.zeros(len(sources)), np.zeros(len(targets))
    source_count[source], target_count[target] = of_source, of_target
    return replace(table_counts, source_count=source_count, target_count=target_count)


def _counts_of_text(file: InputFile) -> PhraseCounts:
    table = open_table(file)
    if table.kind == "scores" and table.width < 5:
        raise DataError(
            "the phrase table has scores but no counts: add the fifth field, c(t) c(s) c(s,t)",
            file.origin,
            1,
        )
    parts: list[Float64] = []
    texts: tuple[list[Any], list[Any]] = ([], [])
    for fields in table.blocks():
        for side in (0, 1):
            texts[side].append(pc.dictionary_encode(fields.columns[side]))
        if table.kind == "points":
            table.check_points(fields)
            parts.append(np.ones(len(fields.columns[0])))
        else:
            column, width = (2, 1) if table.kind == "count" else (4, 3)
            parts.append(table.numbers(fields, column, width)[:, -1])
    return PhraseCounts.of(*_chunked(texts), np.concatenate(parts))


def _table_of_text(file: InputFile) -> PhraseTable:
    table = open_table(file)
    if table.kind == "points":
        raise DataError(
            "the file has extracted phrase pairs, not probabilities: convert it with "
            "`bpa phrases mix`",
            file.origin,
            1,
        )
    width = len(file.first_line.split(b" ||| ")[2].split())
    parts = []
    texts: tuple[list[Any], list[Any]] = ([], [])
    for fields in table.blocks():
        for side in (0, 1):
            texts[side].append(pc.dictionary_encode(fields.columns[side]))
        parts.append(_probabilities(table, fields, width))
    scores = np.concatenate(parts)
    names = {4: _MOSES_COLUMNS, 2: _TWO_COLUMNS}.get(
        width, tuple(f"score{number + 1}" for number in range(width))
    )
    columns = {name: scores[:, number] for number, name in enumerate(names)}
    return _distinct(*_chunked(texts), columns, file.origin)


def _probabilities(table: TextTable, fields: Any, width: int) -> Float64:
    values = table.numbers(fields, 2, width)
    wrong = np.flatnonzero((values > 1).any(axis=1))
    if len(wrong):
        raise DataError(
            f"scores of a phrase table must be probabilities, not {values[wrong[0]].max():g}",
            table.origin,
            fields.first + int(wrong[0]),
        )
    return values


def _distinct(
    sources: Any, targets: Any, columns: Mapping[str, Float64], origin: str
) -> PhraseTable:
    """Return a table of the pairs, sorted."""
    first, source = interned(sources)
    second, target = interned(targets)
    pairs = keys(source, target, len(second))
    order = np.argsort(pairs, kind="stable")
    twice = np.flatnonzero(np.diff(pairs[order]) == 0)
    if len(twice):
        row = order[twice[0]]
        pair = f"{first[int(source[row])]} ||| {second[int(target[row])]}"
        raise DataError(f"the pair {pair} occurs twice: create the table again", origin)
    sides = PhrasePairs(first, second, source[order], target[order])
    try:
        return PhraseTable.on(sides, {name: values[order] for name, values in columns.items()})
    except DataError as error:
        raise DataError(str(error), origin) from error


def _lines(table: PhrasePairs, rows: slice, fields: Sequence[pa.Array]) -> Iterator[str]:
    """Yield the lines of some pairs with their fields."""
    between = pa.scalar(" ||| ", pa.large_string())
    parts = [table.texts("source", rows), table.texts("target", rows), *fields]
    return (f"{line}\n" for line in pc.binary_join_element_wise(*parts, between).to_pylist())


def _printed(values: Float64) -> pa.Array:
    """Return numbers as texts: integers without a point, others as short as possible."""
    if (values == np.rint(values)).all() and (np.abs(values) < 1e15).all():
        return pa.array(values.astype(np.int64)).cast(pa.large_string())
    return pa.array(values).cast(pa.large_string())


def _chunked(texts: tuple[list[Any], list[Any]]) -> tuple[Any, Any]:
    return pa.chunked_array(texts[0]), pa.chunked_array(texts[1])


def _arrow(texts: Any) -> Any:
    if isinstance(texts, pa.Array | pa.ChunkedArray):
        return texts
    return pa.array(list(texts), pa.large_string())
