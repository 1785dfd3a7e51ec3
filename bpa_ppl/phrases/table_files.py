"""Files of phrase tables: Parquet, one row per pair, and text in the formats of Moses."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from bpa_ppl.arrays import Float64
from bpa_ppl.columns import counted
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.parquet import parquet_errors
from bpa_ppl.formats.streams import AnyPath, InputFile, atomic_path, atomic_writer, decoded
from bpa_ppl.phrases.tables import (
    SIDES,
    PhraseCounts,
    PhrasePairs,
    PhraseTable,
    Texts,
    interned,
    keys,
)

#: The columns of p(s|t) and p(t|s) in a phrase table of Moses, by its number of scores.
_MOSES_COLUMNS = {4: (0, 2), 2: (0, 1)}
_NAMES = ("inverse", "direct")
_COUNTS = ("count", "source_count", "target_count")
_MAGIC = b"PAR1"
_ROWS = 1 << 20  # written at once
_SEPARATOR = " ||| "
_POINTS = r"\s*\d+-\d+(\s+\d+-\d+)*\s*"  # of an alignment
_FORMS = (
    "lines must be `source ||| target ||| count`, or those of `extract` or a phrase table of Moses"
)


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
    with parquet_errors(file.origin):
        table = _counts_of_parquet(file) if is_parquet(file) else _counts_of_text(file)
        for side, marginals in zip(SIDES, (source_counts, target_counts), strict=True):
            if marginals:
                table = table.with_marginal(side, *_read_marginal(marginals))
        return table


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
        _write_parquet(table, dict(zip(_COUNTS, (table.count, *marginals), strict=True)), path)
    else:
        _write_text(table, [table.count], path)


def read_table(path: AnyPath) -> PhraseTable:
    r"""Read probabilities of phrase pairs: Parquet as from `write_table`, or a table of Moses.

    The columns of a table of Moses are `inverse`, p(s|t), and `direct`, p(t|s): the first and the
    third of four scores, or the only two.

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
    with parquet_errors(file.origin):
        read = _probabilities_of_parquet if is_parquet(file) else _probabilities_of_text
        sources, targets, columns = read(file)
        first, source = interned(sources)
        second, target = interned(targets)
        pairs = keys(source, target, len(second))
        order = np.argsort(pairs, kind="stable")
        twice = order[1:][np.diff(pairs[order]) == 0]
        if len(twice):
            pair = f"{first[int(source[twice[0]])]} ||| {second[int(target[twice[0]])]}"
            message = f"the pair {pair} occurs twice: create the table again"
            raise DataError(message, code="duplicate")
        sides = PhrasePairs(first, second, source[order], target[order])
        return PhraseTable.on(sides, {name: values[order] for name, values in columns.items()})


def write_table(table: PhraseTable, path: AnyPath) -> None:
    """Write probabilities as Parquet (`.parquet`), or as a table of Moses.

    A table of Moses has `inverse` and `direct`, in this order.

    Raises:
        DataError: if the file cannot be written.
        UsageError: if the columns are others, whose names a table of Moses cannot store.
    """
    if Path(path).suffix == ".parquet":
        _write_parquet(table, table.columns, path)
        return
    if set(_NAMES) != set(table.columns):
        message = f"a table of Moses cannot store the columns {', '.join(table.columns)}: write "
        raise UsageError(f"{message}Parquet", parameter="path", code="not-supported")
    _write_text(table, [table.columns[name] for name in _NAMES], path)


def is_parquet(file: InputFile) -> bool:
    """Return whether a file is a Parquet file.

    Raises:
        DataError: if it cannot be read, or is empty.
    """
    return file.first_line.startswith(_MAGIC)


def read_parquet(file: InputFile, dictionaries: Sequence[str] = ()) -> pa.Table:
    """Return the rows of a Parquet file with valid columns `source` and `target`.

    Args:
        file: the file.
        dictionaries: the columns that are read as dictionaries.

    Raises:
        DataError: if it is not a valid Parquet file, or has no such columns.
    """
    with file.on_disk() as path:
        schema = parquet.read_schema(path)
        for name in SIDES:
            kinds = [field.type for field in schema if field.name == name]
            kind = kinds[0] if len(kinds) == 1 else pa.null()
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                message = f"no single column {name} of texts: give a file that bpa wrote"
                raise DataError(message, code="missing-column")
        table = parquet.ParquetFile(path, read_dictionary=list(dictionaries)).read()
        table.validate(full=True)
        for name in SIDES:
            if table[name].null_count:
                message = f"the column {name} has empty rows: create the file again"
                raise DataError(message, code="bad-line")
    return table


def _counts_of_parquet(file: InputFile) -> PhraseCounts:
    # Our own files have sorted sources, which need no dictionary.
    table = read_parquet(file, ["target"])
    count, of_source, of_target = (_numbers_in(table, name) for name in _COUNTS)
    (sources, source), (targets, target) = interned(table["source"]), interned(table["target"])
    source_count, target_count = np.zeros(len(sources)), np.zeros(len(targets))
    source_count[source], target_count[target] = of_source, of_target
    counts = PhraseCounts.numbered(sources, targets, source, target, count)
    return replace(counts, source_count=source_count, target_count=target_count)


def _probabilities_of_parquet(file: InputFile) -> tuple[Texts, Texts, dict[str, Float64]]:
    table = read_parquet(file, ["target"])
    names = [name for name in table.column_names if name not in SIDES]
    if "count" in names:
        message = "the table has counts, not probabilities: convert it with `bpa phrases mix`"
        raise DataError(message, code="unknown-format")
    return table["source"], table["target"], {name: _numbers_in(table, name) for name in names}


def _numbers_in(table: pa.Table, name: str) -> Float64:
    """Return (rows,) float64, a column of non-negative numbers."""
    if name not in table.column_names:
        raise DataError(f"no column {name}: give another table of phrases", code="missing-column")
    column = table[name]
    is_number = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    if column.null_count or not is_number:
        message = f"the column {name} must have a number in each row"
        raise DataError(message, code="bad-number")
    values = column.cast(pa.float64()).to_numpy()
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        message = f"{name} must be a number ≥ 0, not {values[wrong[0]]}"
        raise DataError(message, line=int(wrong[0]) + 1, code="bad-number")
    return np.asarray(values)


def _write_parquet(table: PhrasePairs, columns: Mapping[str, Float64], path: AnyPath) -> None:
    kinds = dict.fromkeys(SIDES, pa.large_string()) | dict.fromkeys(columns, pa.float64())
    schema = pa.schema(list(kinds.items()))
    with (
        atomic_path(path) as temporary,
        parquet.ParquetWriter(temporary, schema, compression="zstd") as writer,
    ):
        for texts, numbers in _row_groups(table, columns.values()):
            arrays = [*texts, *map(pa.array, numbers)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _write_text(table: PhrasePairs, columns: Sequence[Float64], path: AnyPath) -> None:
    """Write lines of the two phrases and a field of numbers."""
    with atomic_writer(path) as stream:
        for texts, numbers in _row_groups(table, columns):
            fields = [*texts, _joined(list(map(_printed, numbers)), " ")]
            stream.writelines(f"{line}\n" for line in _joined(fields, _SEPARATOR).to_pylist())


def _row_groups(
    table: PhrasePairs, columns: Collection[Float64]
) -> Iterator[tuple[list[pa.Array], list[Float64]]]:
    """Yield the texts of both sides and the numbers of the rows that are written at once."""
    for start in range(0, len(table), _ROWS):
        rows = slice(start, start + _ROWS)
        yield [table.texts(side, rows) for side in SIDES], [values[rows] for values in columns]


def _joined(columns: Sequence[pa.Array], separator: str) -> pa.Array:
    return pc.binary_join_element_wise(*columns, pa.scalar(separator, pa.large_string()))


def _printed(values: Float64) -> pa.Array:
    """Return numbers as texts: integers without a point, others as short as possible."""
    if (values == np.rint(values)).all() and (np.abs(values) < 1e15).all():
        values = values.astype(np.int64)
    return pa.array(values).cast(pa.large_string())


@dataclass(frozen=True)
class _Lines:
    """Some lines of a file, split into fields.

    Attributes:
        fields: an Arrow array of large strings for each field.
        first: the number of the first line, from 1.
    """

    fields: list[pa.Array]
    first: int

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.fields[0])

    def numbers(self, field: int, width: int) -> Float64:
        """Return (lines, width) float64, the numbers in one field, separated by spaces.

        Raises:
            DataError: with the line, if their number is different, or one is negative or not
                finite.
        """
        # Moses ends its lines with empty fields: ` ||| |||`.
        trimmed = pc.utf8_rtrim(self.fields[field], " |\t\r\n")
        texts = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(trimmed))
        wrong = pc.list_value_length(texts).to_numpy(zero_copy_only=False) != width
        if not wrong.any():
            try:
                values = pc.cast(pc.list_flatten(texts), pa.float64()).to_numpy()
            except pa.ArrowInvalid:
                values = np.array([_float(t) for t in pc.list_flatten(texts).to_pylist()])
            values = values.reshape(-1, width)
            wrong = ~(np.isfinite(values) & (values >= 0)).all(axis=1)
        if wrong.any():
            message = f"field {field + 1} must be {counted(width, 'number')} ≥ 0"
            raise self.error(field, int(np.argmax(wrong)), message, "bad-number")
        return np.asarray(values)

    def check_points(self) -> Float64:
        """Check the field of alignment points, and return (lines,) counts: 1 for each line."""
        valid = pc.match_substring_regex(self.fields[2], f"^{_POINTS}$")
        if not pc.all(valid).as_py():
            row = pc.index(valid, False).as_py()
            raise self.error(2, row, "alignment points must be like 0-0 1-2", "bad-line")
        return np.ones(len(self))

    def error(self, field: int, row: int, message: str, code: str) -> DataError:
        """Return the error for a field."""
        value = self.fields[field][row].as_py().strip()
        return DataError(f"{message}, not {value!r}", line=self.first + row, code=code)


def _split(file: InputFile, width: int, phrases: int) -> Iterator[_Lines]:
    """Yield the lines of a text file, block by block; spaces in phrases are normalised.

    Args:
        file: the file.
        width: the number of fields of each line.
        phrases: the number of first fields that are phrases.

    Raises:
        DataError: with file and line, if a line does not have these fields.
    """
    first = 1
    for block in file.blocks():
        decoded(block, file.origin, first)
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
        starts = pa.py_buffer(np.append(0, ends))
        lines = pa.LargeStringArray.from_buffers(len(ends), starts, pa.py_buffer(block))
        split = pc.split_pattern(lines, _SEPARATOR)
        widths = pc.list_value_length(split).to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(widths != width)
        if len(wrong):
            forms = _FORMS if phrases == 2 else "lines must be `phrase ||| count`"
            message = f"{widths[wrong[0]]} fields instead of {width}: {forms}"
            raise DataError(message, line=first + int(wrong[0]), code="bad-line")
        fields = [pc.list_element(split, number) for number in range(width)]
        for number in range(phrases):
            fields[number] = trimmed = pc.ascii_trim_whitespace(fields[number])
            if pc.any(pc.match_substring_regex(trimmed, r"\s\s|[^\S ]")).as_py():
                fields[number] = pc.replace_substring_regex(trimmed, r"\s+", " ")
            row = pc.index(trimmed, "").as_py()
            if row >= 0:
                raise DataError("the phrase is empty", line=first + row, code="bad-line")
        yield _Lines(fields, first)
        first += len(ends)


def _read_text(
    file: InputFile, width: int, numbers: Callable[[_Lines], Float64]
) -> tuple[Texts, Texts, Float64]:
    """Return the source and the target phrase of each line, and some numbers."""
    parts = [
        (*map(pc.dictionary_encode, lines.fields[:2]), numbers(lines))
        for lines in _split(file, width, 2)
    ]
    sources, targets, values = zip(*parts, strict=True)
    return pa.chunked_array(sources), pa.chunked_array(targets), np.concatenate(values)


def _counts_of_text(file: InputFile) -> PhraseCounts:
    width, kind, _ = _form(file)
    if kind == "scores" and width < 5:
        message = "the phrase table has scores but no counts: add the fifth field, c(t) c(s) c(s,t)"
        raise DataError(message, line=1, code="missing-column")
    if kind == "points":
        return PhraseCounts.of(*_read_text(file, width, _Lines.check_points))
    column, size = (2, 1) if kind == "count" else (4, 3)
    return PhraseCounts.of(
        *_read_text(file, width, lambda lines: lines.numbers(column, size)[:, -1])
    )


def _probabilities_of_text(file: InputFile) -> tuple[Texts, Texts, dict[str, Float64]]:
    width, kind, size = _form(file)
    if kind == "points" or size not in _MOSES_COLUMNS:
        message = "the file has no probabilities p(s|t) and p(t|s): create it with "
        raise DataError(f"{message}`bpa phrases mix`", line=1, code="unknown-format")

    def probabilities(lines: _Lines) -> Float64:
        values = lines.numbers(2, size)
        wrong = np.flatnonzero((values > 1).any(axis=1))
        if len(wrong):
            message = "scores of a phrase table must be probabilities"
            raise lines.error(2, int(wrong[0]), message, "bad-number")
        return values

    sources, targets, scores = _read_text(file, width, probabilities)
    columns = scores.T[list(_MOSES_COLUMNS[size])]
    return sources, targets, dict(zip(_NAMES, columns, strict=True))


def _read_marginal(path: AnyPath) -> tuple[pa.Array, Float64]:
    """Return phrases and (phrases,) their counts, from lines of `phrase ||| count`."""
    file = InputFile(path)
    with parquet_errors(file.origin):
        parts = [(lines.fields[0], lines.numbers(1, 1)[:, 0]) for lines in _split(file, 2, 1)]
        if not parts:
            raise DataError("the file is empty", code="no-data")
        phrases = pa.concat_arrays([part for part, _ in parts])
        return phrases, np.concatenate([counts for _, counts in parts])


def _form(file: InputFile) -> tuple[int, str, int]:
    """Return the number of fields, the kind of the third, and the number of its words.

    The kind is `points`, `count` or `scores`.

    Raises:
        DataError: if the first line is not that of a table of phrases.
    """
    fields = [field.split() for field in file.first_line.decode(errors="replace").split(_SEPARATOR)]
    if len(fields) >= 3 and fields[0] and fields[1] and fields[2]:
        size = len(fields[2])
        if re.fullmatch(_POINTS, " ".join(fields[2])):
            return len(fields), "points", size
        if not any(math.isnan(_float(word)) for word in fields[2]):
            return len(fields), "count" if len(fields) == 3 and size == 1 else "scores", size
    raise DataError(f"not a table of phrases: {_FORMS}", line=1, code="unknown-format")


def _float(text: str) -> float:
    """Parse a number; NaN if it is not one."""
    try:
        return float(text)
    except ValueError:
        return math.nan
