"""Files of phrase tables: Parquet, one row a pair, and text with fields between ` ||| `."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from bpa_ppl.errors import DataError
from bpa_ppl.formats.streams import AnyPath, InputFile, arrow_file, atomic_path, decoded
from bpa_ppl.nbest import Float64
from bpa_ppl.phrases.pairs import PhrasePairs

_MAGIC = b"PAR1"
_ROWS = 1 << 20  # written at once


def is_parquet(file: InputFile) -> bool:
    """Return whether a file is a Parquet file.

    Raises:
        DataError: if it cannot be read, or is empty.
    """
    try:
        return file.first_line.startswith(_MAGIC)
    except DataError as error:
        if error.__cause__ is not None:  # the file cannot be read
            raise
        raise DataError("the file is empty", file.origin) from error


def read_parquet(file: InputFile) -> pa.Table:
    """Return the rows of a Parquet file with valid columns `source` and `target`.

    Raises:
        DataError: if it is not a valid Parquet file, or has no such columns.
    """
    sides = ["source", "target"]
    with as_data_errors(file.origin), file.on_disk() as path:
        schema = parquet.read_schema(path)
        for name in sides:
            kind = schema.field(name).type if name in schema.names else pa.null()
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
                message = f"no column {name} of texts: not a table of phrases"
                raise DataError(message, file.origin)
        # Our own files have sorted sources, which need no dictionary.
        table = parquet.ParquetFile(path, read_dictionary=["target"]).read()
        table.validate(full=True)
    for name in sides:
        if table.column(name).null_count:
            raise DataError(
                f"the column {name} has empty rows: create the table again", file.origin
            )
    return table


@contextmanager
def as_data_errors(origin: str) -> Iterator[None]:
    """Turn the errors of Arrow about a damaged file into a DataError with its name."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        message = f"not a valid Parquet file ({reason}): fetch or create it again"
        raise DataError(message, origin) from error


def numbers_in(table: pa.Table, name: str, origin: str) -> Float64:
    """Return (rows,) float64, a column of non-negative numbers.

    Raises:
        DataError: if there is no such column, or it has other values.
    """
    if name not in table.column_names:
        raise DataError(f"no column {name}: give another table of phrases", origin)
    column = table.column(name)
    if column.null_count or not (
        pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    ):
        raise DataError(f"the column {name} must have a number in each row", origin)
    values = column.cast(pa.float64()).to_numpy()
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise DataError(
            f"{name} must be a number ≥ 0, not {values[wrong[0]]}", origin, int(wrong[0]) + 1
        )
    return np.asarray(values)


def write_parquet(table: PhrasePairs, columns: Mapping[str, Float64], path: AnyPath) -> None:
    """Write pairs with columns of numbers, in batches of rows.

    Raises:
        DataError: if the file cannot be written.
    """
    names = ["source", "target", *columns]
    kinds = [pa.large_string()] * 2 + [pa.float64()] * len(columns)
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    with (
        atomic_path(path) as temporary,
        parquet.ParquetWriter(temporary, schema, compression="zstd") as writer,
    ):
        for rows in slices(len(table)):
            texts = [table.texts(side, rows) for side in ("source", "target")]
            numbers = [pa.array(values[rows]) for values in columns.values()]
            writer.write_table(pa.Table.from_arrays([*texts, *numbers], schema=schema))


def slices(length: int) -> Iterator[slice]:
    """Return the batches of rows that are written at once."""
    return (slice(start, start + _ROWS) for start in range(0, length, _ROWS))


SEPARATOR = b" ||| "
#: Replaces the separator while Arrow splits the lines: a control character.
_DELIMITER = b"\x1f"
_POINTS = re.compile(rb"\d+-\d+(\s+\d+-\d+)*")
_FORMS = (
    "lines must be `source ||| target ||| count`, or those of `extract` or a phrase table of Moses"
)


class SplitLines(NamedTuple):
    """Some lines of a file, split into fields.

    Attributes:
        columns: an Arrow array of large strings for each field.
        first: the number of the first line, from 1.
        block: the unsplit lines.
    """

    columns: list[pa.Array]
    first: int
    block: bytes


class TextTable:
    """A text file of phrase pairs, which is read in blocks.

    Args:
        file: the file.
        width: the number of fields of each line.
        kind: of the field after the phrases: `count`, `points` of an alignment, or `scores`.
        phrases: the number of first fields that are phrases: 2, or 1.
    """

    def __init__(self, file: InputFile, width: int, kind: str, phrases: int = 2):
        self.file, self.origin = file, file.origin
        self.width, self.kind, self.phrases = width, kind, phrases

    def blocks(self) -> Iterator[SplitLines]:
        """Yield the fields of the lines, block by block.

        Raises:
            DataError: with file and line, if a line has not the same fields as the first one.
        """
        first = 1
        for block in self.file.blocks():
            yield SplitLines(self._split(block, first), first, block)
            first += block.count(b"\n")

    def _split(self, block: bytes, first: int) -> list[pa.Array]:
        if _DELIMITER in block:
            line = first + block.count(b"\n", 0, block.index(_DELIMITER))
            raise DataError(
                "the line has a control character (U+001F): remove it", self.origin, line
            )
        names = [str(number) for number in range(self.width)]
        try:
            table = csv.read_csv(
                arrow_file(block.replace(SEPARATOR, _DELIMITER)),
                csv.ReadOptions(use_threads=False, block_size=1 << 28, column_names=names),
                csv.ParseOptions(
                    delimiter=_DELIMITER.decode(), quote_char=False, ignore_empty_lines=False
                ),
                csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.large_string()), strings_can_be_null=False
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._bad_line(block, first) from error
        columns = [table.column(name).combine_chunks() for name in names]
        trimmed = [_spaced(column) for column in columns[: self.phrases]]
        if any(pc.any(pc.equal(column, "")).as_py() for column in trimmed):
            raise self._bad_line(block, first)
        return trimmed + columns[self.phrases :]

    def _bad_line(self, block: bytes, first: int) -> DataError:
        """Return the error for the first invalid line."""
        decoded(block, self.origin, first)
        for number, line in enumerate(block.split(b"\n")[:-1], start=first):
            fields = line.rstrip(b"\r").split(SEPARATOR)
            if len(fields) != self.width:
                message = f"{len(fields)} fields, but the first line has {self.width}: {_FORMS}"
                return DataError(message, self.origin, number)
            if not all(field.strip() for field in fields[: self.phrases]):
                return DataError("the phrase is empty: remove the line", self.origin, number)
        return DataError("the line cannot be split into fields", self.origin, first)

    def numbers(self, fields: SplitLines, column: int, width: int) -> Float64:
        """Return (lines, width) float64, the numbers in one field, separated by spaces.

        Raises:
            DataError: with file and line, if their number is different, or one is negative or not
                finite.
        """
        # Moses ends its lines with empty fields: ` ||| |||`.
        trimmed = pc.utf8_rtrim(fields.columns[column], " |\t\r")
        texts = pc.utf8_split_whitespace(pc.utf8_trim_whitespace(trimmed))
        lengths = pc.list_value_length(texts).to_numpy(zero_copy_only=False)
        wrong = lengths != width
        if not wrong.any():
            try:
                values = pc.cast(pc.list_flatten(texts), pa.float64()).to_numpy()
            except pa.ArrowInvalid:
                values = np.array([_float(t) for t in pc.list_flatten(texts).to_pylist()])
            values = values.reshape(-1, width)
            wrong = ~(np.isfinite(values) & (values >= 0)).all(axis=1)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            expected = "a number" if width == 1 else f"{width} numbers"
            value = fields.columns[column][row].as_py()
            raise DataError(
                f"field {column + 1} must be {expected} ≥ 0, not {value!r}",
                self.origin,
                fields.first + row,
            )
        return np.asarray(values)

    def check_points(self, fields: SplitLines) -> None:
        """Check the field of alignment points.

        Raises:
            DataError: with file and line, if one is malformed.
        """
        valid = pc.match_substring_regex(fields.columns[2], r"^\s*\d+-\d+(\s+\d+-\d+)*\s*$")
        if not pc.all(valid).as_py():
            row = pc.index(valid, False).as_py()
            value = fields.columns[2][row].as_py()
            raise DataError(
                f"alignment points must be like 0-0 1-2, not {value!r}",
                self.origin,
                fields.first + row,
            )


def open_table(file: InputFile) -> TextTable:
    """Open a table of phrase pairs, whose kind is detected from the first line.

    Raises:
        DataError: if it is not a table of phrases, or empty.
    """
    fields = _first_fields(file)
    kind = _kind(fields)
    if not kind:
        raise DataError(f"not a table of phrases: {_FORMS}", file.origin, 1)
    return TextTable(file, len(fields), kind)


def read_marginal(path: AnyPath) -> tuple[pa.Array, Float64]:
    """Read counts of phrases: lines of `phrase ||| count`.

    Returns:
        The phrases, and (phrases,) float64 their counts.

    Raises:
        DataError: with file and line, if a line is malformed.
    """
    file = InputFile(path)
    if len(_first_fields(file)) != 2:
        raise DataError("counts of phrases must be like `phrase ||| count`", file.origin, 1)
    table = TextTable(file, 2, "count", phrases=1)
    parts = [(fields.columns[0], table.numbers(fields, 1, 1)[:, 0]) for fields in table.blocks()]
    phrases = pa.chunked_array([part for part, _ in parts]).combine_chunks()
    return phrases, np.concatenate([counts for _, counts in parts])


def _spaced(phrases: pa.Array) -> pa.Array:
    """Return phrases with normalised spaces."""
    trimmed = pc.ascii_trim_whitespace(phrases)
    has_runs = pc.any(pc.match_substring_regex(trimmed, r"\s\s|[^\S ]")).as_py()
    return pc.replace_substring_regex(trimmed, r"\s+", " ") if has_runs else trimmed


def _first_fields(file: InputFile) -> list[bytes]:
    try:
        return file.first_line.rstrip(b"\r").split(SEPARATOR)
    except DataError as error:
        if error.__cause__ is not None:  # the file cannot be read
            raise
        raise DataError("the file is empty", file.origin) from error


def _kind(fields: list[bytes]) -> str:
    """Return the kind of the third field; empty if this is not a table of phrases."""
    if len(fields) < 3 or not all(field.strip() for field in fields[:2]):
        return ""
    third = fields[2].strip()
    if _POINTS.fullmatch(third):
        return "points"
    if not third or any(math.isnan(_float(word)) for word in third.split()):
        return ""
    return "count" if len(fields) == 3 and len(third.split()) == 1 else "scores"


def _float(text: str | bytes) -> float:
    """Parse a number; NaN if it is not one."""
    try:
        return float(text)
    except ValueError:
        return math.nan
