"""Parquet: one candidate per row, or one sentence per row with lists of its candidates.

See `bpa_ppl.formats.schema` for the meaning of the columns. Files are read in batches of rows;
lists are written with one candidate per row. Messages count rows, not lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from bpa_ppl._runtime.arrays import Int64
from bpa_ppl._runtime.streams import AnyPath, InputFile, atomic_path
from bpa_ppl.errors import DataError
from bpa_ppl.formats.block import CANDIDATES, Block
from bpa_ppl.formats.format import COLUMNS, NBestFormat
from bpa_ppl.formats.records import read_rows
from bpa_ppl.formats.roles import OF_FEATURES
from bpa_ppl.formats.schema import Schema
from bpa_ppl.formats.writing import to_table
from bpa_ppl.lists.nbest import NBest

_MAGIC = b"PAR1"
_BATCH, _SENTENCES = 32_768, 64  # rows that are read, or written as a group, at once


class Parquet(NBestFormat, frozen=True):
    """Parquet files."""

    suffixes: ClassVar[tuple[str, ...]] = (".parquet",)
    nan_is_missing: ClassVar[bool] = True
    usual_names: ClassVar[tuple[str, ...]] = (*COLUMNS, CANDIDATES)

    def detect(self, first_line: bytes) -> bool:
        """Return whether a file begins as Parquet does.

        >>> Parquet().detect(b"PAR1..."), Parquet().detect(b"id,text,lm")
        (True, False)
        """
        return first_line.startswith(_MAGIC)

    def blocks(self, file: InputFile, schema: Schema) -> Iterator[Block]:
        with file.on_disk() as path:
            yield from read_rows(self._batches(path, schema.origin), schema)

    def write_file(self, lists: NBest, path: AnyPath) -> None:
        """Write the lists, one candidate per row.

        >>> import tempfile
        >>> from bpa_ppl import from_lists, read_nbest
        >>> lists = from_lists([["a cat"]], [[[-1.5]]], ["lm"], references=["the cat"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Parquet().write_file(lists, f"{folder}/lists.parquet")
        ...     read_nbest(f"{folder}/lists.parquet").references
        (('the cat',),)
        """
        from pyarrow import parquet

        table = to_table(lists, OF_FEATURES)
        with atomic_path(path) as temporary:
            parquet.write_table(table, temporary, row_group_size=_BATCH)

    def _batches(self, path: str, origin: str) -> Iterator[tuple[Any, Int64]]:
        """Yield tables of consecutive rows, and the numbers of these."""
        import pyarrow as pa
        from pyarrow import parquet

        with parquet_errors(origin):
            # Arrow opens the file itself, so that its threads never wait for Python.
            opened = parquet.ParquetFile(path, pre_buffer=False)
            column = dict(self.names).get(CANDIDATES, CANDIDATES)
            size = _SENTENCES if column in opened.schema_arrow.names else _BATCH
            first = 1
            for batch in opened.iter_batches(batch_size=size):
                batch.validate(full=True)  # texts that are not UTF-8, and invalid offsets
                yield pa.Table.from_batches([batch]), first + np.arange(len(batch))
                first += len(batch)


@contextmanager
def parquet_errors(origin: str) -> Iterator[None]:
    r"""Name the file in errors about its content, and in those of Arrow about a damaged file.

    >>> with parquet_errors("lists.parquet"):
    ...     b"\xff".decode()
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: lists.parquet: not a valid Parquet file (...): download or create ...
    """
    import pyarrow as pa

    try:
        yield
    except DataError as error:
        if error.path is not None:
            raise
        raise DataError(error.message, origin, error.line, code=error.code) from error
    except (pa.ArrowException, OSError, ValueError) as error:  # of text that is not UTF-8, too
        reason = str(error).splitlines()[0]
        message = f"not a valid Parquet file ({reason}): download or create it again"
        raise DataError(message, origin, code="damaged") from error
