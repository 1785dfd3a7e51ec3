"""Files of phrase tables: Parquet, one row per pair, and text in the formats of Moses."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import format_count
from bpa_ppl._runtime.streams import AnyPath, InputFile, atomic_path, atomic_writer, decode
from bpa_ppl.errors import DataError, UsageError, bad_value, list_names
from bpa_ppl.extras.phrases.tables import (
    SIDES,
    PhraseCounts,
    PhrasePairs,
    PhraseTable,
    Texts,
    intern_texts,
    make_keys,
)
from bpa_ppl.formats.parquet import parquet_errors

#: The columns of p(s|t) and p(t|s) in a phrase table of Moses, by its number of scores.
_MOSES_COLUMNS = {4: (0, 2), 2: (0, 1)}
_NAMES = ("inverse", "direct")
_COUNTS = ("count", "source_count", "target_count")
_MAGIC = b"PAR1"
_ROWS = 1 << 20  # written at once
_LARGEST_NUMBER = sys.float_info.max
_ROUNDING = 1e-9  # of probabilities above 1
_SEPARATOR = " ||| "
_ALIGNMENT = r"\s*\d+-\d+(\s+\d+-\d+)*\s*"
_TABLE_FORMS = (
    "lines must be `source ||| target ||| count`, or those of `extract` or a phrase table of Moses"
)


def read_counts(path: AnyPath) -> PhraseCounts:
    r"""Read counts of phrase pairs; the format is detected automatically.

    It is Parquet, as from `write_counts`; text with lines `source ||| target ||| count`; Moses'
    `extract`, an occurrence per line, or its phrase table with counts. Equal pairs are added.

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
        return _parse_parquet_counts(file) if _is_parquet(file) else _parse_text_counts(file)


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
        DataError: with file and line, if the file is invalid.

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
        read = _parse_parquet_probabilities if _is_parquet(file) else _parse_text_probabilities
        sources, targets, columns = read(file)
        first, source = intern_texts(sources)
        second, target = intern_texts(targets)
        order = np.argsort(make_keys(source, target, len(second)), kind="stable")
        sides = PhrasePairs(first, second, source[order], target[order])
        return PhraseTable.from_pairs(
            sides, {name: values[order] for name, values in columns.items()}
        )


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
        columns = list_names(table.columns)
        message = f"a table of Moses cannot store the columns {columns}: write Parquet"
        raise UsageError(message, parameter="path", code="not-supported")
    _write_text(table, [table.columns[name] for name in _NAMES], path)


def _is_parquet(file: InputFile) -> bool:
    """Return whether a file is a Parquet file.

    Raises:
        DataError: if it cannot be read, or is empty.
    """
    return file.first_line.startswith(_MAGIC)


def read_parquet(file: InputFile) -> pa.Table:
    """Return the rows of a Parquet file with valid columns `source` and `target`.

    Raises:
        DataError: if it is not a valid Parquet file, or has no such columns.
    """
    with file.on_disk() as path:
        schema = parquet.read_schema(path)
        for name in SIDES:
            index = schema.get_field_index(name)  # −1 if there is none, or several
            kind = schema.field(index).type if index >= 0 else pa.null()
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                message = f"no single column of texts {name}: give a file that bpa wrote"
                raise DataError(message, code="missing-column")
        table = parquet.ParquetFile(path, read_dictionary=list(SIDES)).read()
        table.validate(full=True)
    if any(table[name].null_count for name in SIDES):
        raise DataError("no source or target in a row: create the file again", code="bad-line")
    return table


def _parse_parquet_counts(file: InputFile) -> PhraseCounts:
    table = read_parquet(file)
    count, of_source, of_target = (_read_numbers(table, name) for name in _COUNTS)
    (sources, source), (targets, target) = (
        intern_texts(table["source"]),
        intern_texts(table["target"]),
    )
    source_count, target_count = np.zeros(len(sources)), np.zeros(len(targets))
    source_count[source], target_count[target] = of_source, of_target
    counts = PhraseCounts.from_numbers(sources, targets, source, target, count)
    return replace(counts, source_count=source_count, target_count=target_count)


def _parse_parquet_probabilities(file: InputFile) -> tuple[Texts, Texts, dict[str, Float64]]:
    table = read_parquet(file)
    names = [name for name in table.column_names if name not in SIDES]
    return (
        table["source"],
        table["target"],
        {name: _read_numbers(table, name, 1.0) for name in names},
    )


def _read_numbers(table: pa.Table, name: str, most: float = _LARGEST_NUMBER) -> Float64:
    """Return (rows,) float64, a column of numbers from 0 to `most`."""
    if name not in table.column_names:
        raise DataError(f"no column {name}: give another table of phrases", code="missing-column")
    column = table[name]
    is_number = pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    if column.null_count or not is_number:
        raise DataError(f"no number in each row of the column {name}: write one", code="bad-number")
    values = column.cast(pa.float64()).to_numpy()
    wrong = np.flatnonzero(~((values >= 0) & (values <= most + _ROUNDING)))
    if len(wrong):
        expected = f"a number ≥ 0{_up_to(most)}"
        raise bad_value(name, float(values[wrong[0]]), expected, line=int(wrong[0]) + 1)
    return np.asarray(values)


def _up_to(most: float) -> str:
    return "" if most == _LARGEST_NUMBER else f" and ≤ {most:g}"


def _write_parquet(table: PhrasePairs, columns: Mapping[str, Float64], path: AnyPath) -> None:
    kinds = dict.fromkeys(SIDES, pa.large_string()) | dict.fromkeys(columns, pa.float64())
    schema = pa.schema(list(kinds.items()))
    with (
        atomic_path(path) as temporary,
        parquet.ParquetWriter(temporary, schema, compression="zstd") as writer,
    ):
        for texts, numbers in _split_row_groups(table, columns.values()):
            arrays = [*texts, *map(pa.array, numbers)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _write_text(table: PhrasePairs, columns: Sequence[Float64], path: AnyPath) -> None:
    """Write lines of the two phrases and a field of numbers."""
    with atomic_writer(path) as stream:
        for texts, numbers in _split_row_groups(table, columns):
            fields = [*texts, _join(list(map(_format_numbers, numbers)), " ")]
            stream.writelines(f"{line}\n" for line in _join(fields, _SEPARATOR).to_pylist())


def _split_row_groups(
    table: PhrasePairs, columns: Collection[Float64]
) -> Iterator[tuple[list[pa.Array], list[Float64]]]:
    """Yield the texts of both sides and the numbers of the rows that are written at once."""
    for start in range(0, len(table), _ROWS):
        rows = slice(start, start + _ROWS)
        yield [table.texts(side, rows) for side in SIDES], [values[rows] for values in columns]


def _join(columns: Sequence[pa.Array], separator: str) -> pa.Array:
    return pc.binary_join_element_wise(*columns, pa.scalar(separator, pa.large_string()))


def _format_numbers(values: Float64) -> pa.Array:
    """Return numbers as texts: integers without a point, others as short as possible."""
    if (values == np.rint(values)).all() and (np.abs(values) < 1e15).all():
        values = values.astype(np.int64)
    return pa.array(values).cast(pa.large_string())


def _read_text(
    file: InputFile, width: int, column: int, size: int, most: float = _LARGEST_NUMBER
) -> tuple[Texts, Texts, Float64]:
    """Return the source and the target phrase of each line, and (lines, size) numbers.

    Spaces in phrases are normalised.

    Args:
        file: the file.
        width: the number of fields of each line.
        column: the field of the numbers.
        size: how many numbers it has; 0 for alignment points, each line of which counts 1.
        most: the largest valid number.

    Raises:
        DataError: with the line, if it does not have these fields.
    """
    parts, first = [], 1
    for block in file.chunks():
        decode(block, file.origin, first)
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
        starts = pa.py_buffer(np.append(0, ends))
        lines = pa.LargeStringArray.from_buffers(len(ends), starts, pa.py_buffer(block))
        split = pc.split_pattern(lines, _SEPARATOR)
        widths = pc.list_value_length(split).to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero(widths != width)
        if len(wrong):
            message = f"{widths[wrong[0]]} fields, but the first line has {width}: {_TABLE_FORMS}"
            raise DataError(message, line=first + int(wrong[0]), code="bad-line")
        phrases = []
        for number in range(len(SIDES)):
            text = pc.ascii_trim_whitespace(pc.list_element(split, number))
            if pc.any(pc.match_substring_regex(text, r"\s\s|[^\S ]")).as_py():
                text = pc.replace_substring_regex(text, r"\s+", " ")
            row = pc.index(text, "").as_py()
            if row >= 0:
                raise DataError("no phrase: write one", line=first + row, code="bad-line")
            phrases.append(pc.dictionary_encode(text))
        field = pc.list_element(split, column)
        values = _parse_numbers(field, size) if size else _check_points(field)
        wrong = np.flatnonzero(~((values >= 0) & (values <= most)).all(axis=1))
        if len(wrong):
            row, kind = int(wrong[0]), "alignment points like 0-0 1-2"
            if size:
                kind = f"{format_count(size, 'number')} ≥ 0{_up_to(most)}"
            cell, code = field[row].as_py().strip(), "bad-number" if size else "bad-line"
            raise bad_value(f"field {column + 1}", cell, kind, line=first + row, code=code)
        parts.append((*phrases, values))
        first += len(ends)
    sources, targets, columns = zip(*parts, strict=True)
    return pa.chunked_array(sources), pa.chunked_array(targets), np.concatenate(columns)


def _check_points(points: pa.Array) -> Float64:
    """Return (lines, 1) ones; NaN for a field that has no alignment points."""
    valid = pc.match_substring_regex(points, f"^{_ALIGNMENT}$").to_numpy(zero_copy_only=False)
    return np.where(valid, 1.0, np.nan)[:, None]


def _parse_numbers(field: pa.Array, size: int) -> Float64:
    """Return (lines, size) the numbers in a field, separated by spaces; NaN for other texts."""
    # Moses ends its lines with empty fields: ` ||| |||`.
    trimmed = pc.utf8_rtrim(field, " |\t\r\n")
    words = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(trimmed))
    complete = pc.list_value_length(words).to_numpy(zero_copy_only=False) == size
    texts = pc.list_flatten(words.filter(pa.array(complete)))
    try:
        numbers = pc.cast(texts, pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        numbers = np.array([_parse_float(text) for text in texts.to_pylist()])
    values = np.full((len(field), size), np.nan)
    values[complete] = numbers.reshape(-1, size)
    return values


def _parse_text_counts(file: InputFile) -> PhraseCounts:
    width, kind, _ = _detect_form(file)
    if kind == "scores" and width < 5:
        message = "no counts in the phrase table: add the fifth field, c(t) c(s) c(s,t)"
        raise DataError(message, line=1, code="missing-column")
    column, size = {"points": (2, 0), "count": (2, 1), "scores": (4, 3)}[kind]
    sources, targets, numbers = _read_text(file, width, column, size)
    return PhraseCounts.of(sources, targets, numbers[:, -1])


def _parse_text_probabilities(file: InputFile) -> tuple[Texts, Texts, dict[str, Float64]]:
    width, kind, size = _detect_form(file)
    if kind == "points" or size not in _MOSES_COLUMNS:
        message = "no probabilities p(s|t) and p(t|s): create the file with `bpa phrases mix`"
        raise DataError(message, line=1, code="unknown-format")

    sources, targets, scores = _read_text(file, width, 2, size, 1.0)
    columns = scores.T[list(_MOSES_COLUMNS[size])]
    return sources, targets, dict(zip(_NAMES, columns, strict=True))


def _detect_form(file: InputFile) -> tuple[int, str, int]:
    """Return the number of fields, the kind of the third, and the number of its words.

    The kind is `points`, `count` or `scores`.

    Raises:
        DataError: if the first line is not that of a table of phrases.
    """
    fields = [field.split() for field in file.first_line.decode(errors="replace").split(_SEPARATOR)]
    if len(fields) >= 3 and fields[0] and fields[1] and fields[2]:
        size = len(fields[2])
        if re.fullmatch(_ALIGNMENT, " ".join(fields[2])):
            return len(fields), "points", size
        if not any(math.isnan(_parse_float(word)) for word in fields[2]):
            return len(fields), "count" if len(fields) == 3 and size == 1 else "scores", size
    raise DataError(f"not a table of phrases: {_TABLE_FORMS}", line=1, code="unknown-format")


def _parse_float(text: str) -> float:
    """Parse a number; NaN if it is not one."""
    try:
        return float(text)
    except ValueError:
        return math.nan
