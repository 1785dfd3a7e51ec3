"""Tables of phrase pairs as Parquet: one row a pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from bpa_ppl.errors import DataError
from bpa_ppl.formats.streams import AnyPath, InputFile, atomic_path
from bpa_ppl.nbest import Float64
from bpa_ppl.phrases.pairs import PhrasePairs

_MAGIC = b"PAR1"
_ROWS = 1 << 20  # that are written at once


def is_parquet(file: InputFile) -> bool:
    """Say whether a file begins as Parquet does.

    Raises:
        DataError: if it cannot be read, or is empty.
    """
    try:
        return file.first_line.startswith(_MAGIC)
    except DataError as error:
        if error.__cause__ is not None:  # the file cannot be read
            raise
        raise DataError("empty: there are no phrases in it", file.origin) from error


def read_parquet(file: InputFile) -> pa.Table:
    """Return the rows of a Parquet file, with sound columns `source` and `target`.

    Raises:
        DataError: if it is no whole Parquet file, or has no such columns.
    """
    sides = ["source", "target"]
    with as_data_errors(file.origin), file.on_disk() as path:
        schema = parquet.read_schema(path)
        for name in sides:
            if name not in schema.names or not _holds_texts(schema.field(name).type):
                message = f"no column {name} of texts: it is no table of phrases"
                raise DataError(message, file.origin)
        # The sources are sorted where the file is ours, and then need no dictionary.
        table = parquet.ParquetFile(path, read_dictionary=["target"]).read()
        table.validate(full=True)
    for name in sides:
        if table.column(name).null_count:
            raise DataError(f"the column {name} has empty rows: make the table again", file.origin)
    return table


def _holds_texts(kind: pa.DataType) -> bool:
    held = kind.value_type if pa.types.is_dictionary(kind) else kind
    result: bool = pa.types.is_string(held) or pa.types.is_large_string(held)
    return result


@contextmanager
def as_data_errors(origin: str) -> Iterator[None]:
    """Turn what Arrow says of a damaged file into our error, which names it."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        message = f"no whole Parquet file ({reason}): fetch or make it again"
        raise DataError(message, origin) from error


def numbers_in(table: pa.Table, name: str, origin: str) -> Float64:
    """Return (rows,) float64, a column of numbers from 0 on.

    Raises:
        DataError: if there is none of that name, or it holds something else.
    """
    if name not in table.column_names:
        raise DataError(f"no column {name}: it is not the table of phrases that is needed", origin)
    column = table.column(name)
    if column.null_count or not (
        pa.types.is_floating(column.type) or pa.types.is_integer(column.type)
    ):
        raise DataError(f"the column {name} must hold numbers in each row", origin)
    values: Float64 = column.cast(pa.float64()).to_numpy()
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise DataError(
            f"{name} must be a number from 0 on, not {values[wrong[0]]}", origin, int(wrong[0]) + 1
        )
    return values


def write_parquet(table: PhrasePairs, columns: Mapping[str, Float64], path: AnyPath) -> None:
    """Write pairs with columns of numbers, some rows at once.

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
    """Return the parts of a table that are written at once."""
    return (slice(start, start + _ROWS) for start in range(0, length, _ROWS))
