"""Tables as text, separated by tabs or commas: a header, then a hypothesis a line.

Columns are `id`, `text`, numbers and texts; `bpa_ppl.rows.frames` says what becomes of them. Cells
are quoted as by Python's csv module. A column is of numbers or of texts by its first cell that is
not empty, and stays so to the end; an empty cell among numbers is a missing one.

Blocks of lines that are as regular as the first ones are read by PyArrow; all others cell by cell,
which gives the same rows or says what is wrong.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TextIO, TypeAlias

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError
from bpa_ppl.formats.base import NBestFormat, ReadOptions
from bpa_ppl.formats.numbers import finite, printed
from bpa_ppl.formats.streams import arrow_file, decoded, line_count
from bpa_ppl.labels import label_of, repeated
from bpa_ppl.nbest import NBest
from bpa_ppl.rows import Rows
from bpa_ppl.rows.arrow import numbers_array, texts_array, values_of
from bpa_ppl.rows.base import ID, OF_SENTENCE, REFERENCE, REFERENCES, SOURCE, TEXT, TOO_LARGE
from bpa_ppl.rows.frames import FrameReader
from bpa_ppl.rows.records import looks_numeric
from bpa_ppl.rows.writing import all_texts, references_by_column, written

if TYPE_CHECKING:
    import pyarrow as pa

_HEAD = 50  # lines that are read cell by cell before PyArrow takes over
_TEXTS = (ID, TEXT, SOURCE, REFERENCE, REFERENCES)


class Separated(NBestFormat, frozen=True):
    """What tables with both separators have in common."""

    separator: ClassVar[str]

    def detect(self, first_line: bytes) -> bool:
        r"""Say whether the first line is a header with `id` and `text`.

        >>> Tsv().detect(b"id\ttext\tlm"), Csv().detect(b"0 ||| a, b ||| LM0= 1")
        (True, False)
        """
        try:
            header = next(csv.reader([first_line.decode()], delimiter=self.separator), [])
        except (UnicodeDecodeError, csv.Error):
            return False
        return {ID, TEXT} <= set(header)

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        r"""Yield the rows of each block of whole lines.

        Raises:
            DataError: with file, line and column, if a line has not as many cells as the header,
                or a column of numbers has a cell that is neither a number nor empty.

        >>> lines = b"id,text,lm,system\n0,a cat,-1.5,ours\n"
        >>> rows = next(Csv().parse([lines], ReadOptions("dev")))
        >>> rows.names, rows.features.tolist(), dict(rows.extras)
        (('lm',), [[-1.5]], {'system': ('ours',)})
        """
        reader = _Reader(self.separator, options)
        for block, ahead in reader.ahead(chain.from_iterable(map(reader.pieces, blocks))):
            rows = reader.rows(block, ahead)
            if rows is not None:
                yield rows
        reader.finish()

    def write(self, nbest: NBest, file: TextIO) -> None:
        """Write the lists.

        Raises:
            DataError: if a name is that of a column with another meaning, or sentences differ in
                their number of references.

        >>> import sys
        >>> lists = NBest.from_lists([["a, b"]], [[[-1.5]]], ["lm"], references=["the cat"])
        >>> Csv().write(lists, sys.stdout)
        id,text,reference,lm
        0,"a, b",the cat,-1.5
        """
        columns = written(nbest, True, _fits, all_texts)
        try:
            references = references_by_column(columns.references, lists=False)
        except ValueError as error:
            raise DataError(f"{error}: write jsonl instead", nbest.origin) from error
        of_sentences = {SOURCE: columns.sources} if columns.sources is not None else {}
        of_sentences |= references
        of_sentences |= {OF_SENTENCE + name: v for name, v in columns.sentence_extras.items()}
        numbers = [printed(values, missing="") for values in columns.numbers.values()]
        of_rows = [*numbers, *columns.extras.values()]
        self._write_line(file, [ID, TEXT, *of_sentences, *columns.numbers, *columns.extras])
        for sentence in range(len(nbest)):
            known = [values[sentence] for values in of_sentences.values()]
            rows = nbest.rows(sentence)
            first = str(columns.ids[sentence])
            columns_of = (of[rows] for of in of_rows)
            for text, *others in zip(nbest.texts(sentence), *columns_of, strict=True):
                self._write_line(file, [first, text, *known, *others])

    def _write_line(self, file: TextIO, cells: Iterable[str]) -> None:
        file.write(self.separator.join(map(self._quoted, cells)) + "\n")

    def _quoted(self, cell: str) -> str:
        # The csv module leaves a carriage return as it is, and then refuses to read it.
        if not any(mark in cell for mark in (self.separator, '"', "\n", "\r")):
            return cell
        return '"' + cell.replace('"', '""') + '"'


class Tsv(Separated, frozen=True):
    """Cells separated by tabs."""

    suffixes: ClassVar[tuple[str, ...]] = (".tsv",)
    separator: ClassVar[str] = "\t"


class Csv(Separated, frozen=True):
    """Cells separated by commas."""

    suffixes: ClassVar[tuple[str, ...]] = (".csv",)
    separator: ClassVar[str] = ","


#: Whether each column is of numbers; None while all of its cells are empty.
Kinds: TypeAlias = "dict[str, bool | None]"
#: What PyArrow makes of a block that is to come, and the kinds it took the columns for.
Ahead: TypeAlias = "tuple[Kinds, Future[pa.Table | None]]"


class _Reader:
    """Reads the blocks of one file.

    Args:
        separator: between cells.
        options: how to read.
    """

    def __init__(self, separator: str, options: ReadOptions):
        self.separator, self.options = separator, options
        self._frames = FrameReader(options.origin, options.bad, options.first_id, printed=True)
        self._header: list[str] | None = None
        self._numeric: Kinds = {}
        self._line = 1  # of what comes next
        self._begun = b""  # a record whose quoted cell goes on in the next block
        self._some_missing = False  # whether a cell of numbers has been empty

    def pieces(self, block: bytes) -> Iterator[bytes]:
        """Yield a block; the first one in two, for its first lines tell PyArrow how to read on."""
        end = 0
        if not self._numeric:
            for _ in range(_HEAD):
                end = block.find(b"\n", end) + 1 or len(block)
            end = end if self._shows_kinds(block[:end]) else len(block)
        yield from filter(None, (block[:end], block[end:]))

    def _shows_kinds(self, head: bytes) -> bool:
        """Say whether the first lines have a cell that is not empty in each column."""
        try:
            lines = io.StringIO(head.decode(), newline="")
            _, *records = filter(None, csv.reader(lines, delimiter=self.separator))
        except (UnicodeDecodeError, csv.Error, ValueError):
            return False
        columns = zip(*records, strict=False)
        return bool(records) and all(any(map(str.strip, cells)) for cells in columns)

    def ahead(self, pieces: Iterable[bytes]) -> Iterator[tuple[bytes, Ahead | None]]:
        """Yield each piece, and what PyArrow makes of it while the one before is worked on."""
        with ThreadPoolExecutor(1) as thread:
            last: tuple[bytes, Ahead | None] | None = None
            for piece in pieces:
                kinds = self._numeric
                table = (kinds, thread.submit(self._regular, piece, kinds)) if kinds else None
                if last is not None:
                    yield last
                last = piece, table
            if last is not None:
                yield last

    def rows(self, block: bytes, ahead: Ahead | None) -> Rows | None:
        """Return the rows of a block; None where it has none.

        Args:
            block: whole lines.
            ahead: its table, if it has been asked for already.
        """
        data = self._begun + block
        if self._begun or ahead is None or ahead[0] is not self._numeric:
            table = self._regular(data, self._numeric) if self._numeric else None
        else:
            table = ahead[1].result()
        self._begun = b""
        if table is not None:
            lines = np.arange(self._line, self._line + len(table))
            self._line += len(table)
            return self._frames.rows(table, lines)
        records, lines = self._records(data)
        if self._header is None and records:
            self._header = self._checked_header(records.pop(0), int(lines[0]))
            lines = lines[1:]
        if not records:
            return None
        return self._frames.rows(self._table(records, lines), lines)

    def finish(self) -> None:
        """Check the end of the file.

        Raises:
            DataError: if it is inside a quoted cell, or there was nothing but a header.
        """
        if self._begun:
            raise self._error("a quoted cell that does not end: double the quotes inside it")
        if not self._numeric:
            raise DataError("empty: there are no n-best lists in it", self.options.origin)

    def _regular(self, data: bytes, kinds: Kinds) -> pa.Table | None:
        """Return the columns of lines without line breaks in them, read by PyArrow."""
        import pyarrow as pa
        from pyarrow import csv as arrow

        if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
            return None
        types = {name: pa.float64() if numeric else pa.string() for name, numeric in kinds.items()}
        # To look for empty cells takes a fifth of the time: only where there are some.
        for some_missing in (False, True)[self._some_missing :]:
            if some_missing and (data[:1] in b"\r\n" or b"\n\n" in data or b"\n\r" in data):
                return None  # blank lines
            try:
                table = arrow.read_csv(
                    arrow_file(data),
                    arrow.ReadOptions(column_names=list(kinds), block_size=len(data) + 1),
                    arrow.ParseOptions(
                        delimiter=self.separator, newlines_in_values=True, ignore_empty_lines=False
                    ),
                    arrow.ConvertOptions(
                        column_types=types,
                        null_values=[""] if some_missing else [],
                        strings_can_be_null=False,
                    ),
                )
            except pa.ArrowException:
                continue
            self._some_missing = some_missing
            break
        else:
            return None
        regular = len(table) == line_count(data) and self._as_expected(table, kinds)
        return table if regular and self._whole_end(data) else None

    def _as_expected(self, table: pa.Table, kinds: Kinds) -> bool:
        """Say whether numbers are finite, and columns that were empty still are."""
        for name, numeric in kinds.items():
            if numeric:
                values = values_of(table[name], missing=0.0)
                if not np.all(np.abs(values) < TOO_LARGE):
                    return False
            elif numeric is None and any(table[name].to_pylist()):
                return False
        return True

    def _whole_end(self, data: bytes) -> bool:
        """Say whether the last line does not end inside a quoted cell."""
        last = data[data.rfind(b"\n", 0, -1) + 1 :]
        if b'"' not in last:
            return True
        try:
            list(csv.reader([last.decode()], delimiter=self.separator, strict=True))
        except csv.Error:
            return False
        return True

    def _records(self, data: bytes) -> tuple[list[list[str]], npt.NDArray[np.int64]]:
        """Return the cells of each record, and the line that it begins in."""
        text = decoded(data, self.options.origin, self._line)
        lines = _Lines(text)
        reader = csv.reader(lines, delimiter=self.separator)
        records, begins = [], []
        begin = 0
        try:
            for record in reader:
                if lines.over_inside:
                    break
                if record:
                    records.append(record)
                    begins.append(self._line + begin)
                begin = lines.count
                lines.inside = False
        except csv.Error as error:
            self._line += begin
            raise self._error(str(error)) from error
        if lines.over_inside:
            self._begun = "".join(lines.lines[begin:]).encode()
        self._line += begin
        return records, np.array(begins, np.int64)

    def _checked_header(self, header: list[str], line: int) -> list[str]:
        for name in (ID, TEXT):
            if name not in header:
                raise DataError(
                    f"no column {name} in the header, {self.separator.join(header)}: the first "
                    f"line names the columns, as {self.separator.join((ID, TEXT, 'score'))} does",
                    self.options.origin,
                    line,
                )
        for odd in [*([""] if "" in header else []), *repeated(header)]:
            what = f"two columns {odd}" if odd else "a column without a name"
            raise DataError(f"{what} in the header: rename one", self.options.origin, line)
        return header

    def _table(self, records: list[list[str]], lines: npt.NDArray[np.int64]) -> pa.Table:
        """Return the columns of some records, of the kinds that the first ones show."""
        import pyarrow as pa

        assert self._header is not None
        for record, line in zip(records, lines.tolist(), strict=True):
            if len(record) != len(self._header):
                raise DataError(
                    f"{len(record)} cells, where the header has {len(self._header)}",
                    self.options.origin,
                    line,
                )
        cells = dict(zip(self._header, zip(*records, strict=True), strict=True))
        if not self._numeric or None in self._numeric.values():
            known = self._numeric
            kinds = {name: _is_numeric(name, of) for name, of in cells.items()}
            self._numeric = {n: k if known.get(n) is None else known[n] for n, k in kinds.items()}
        return pa.table(
            {
                name: numbers_array(self._numbers(name, of, lines))
                if self._numeric[name]
                else texts_array(of)
                for name, of in cells.items()
            }
        )

    def _numbers(
        self, name: str, cells: Sequence[str], lines: npt.NDArray[np.int64]
    ) -> list[float]:
        values = []
        for cell, line in zip(cells, lines.tolist(), strict=True):
            try:
                values.append(finite(cell) if cell.strip() else np.nan)
            except ValueError as error:
                if self.options.bad != "drop":
                    raise DataError(
                        f"{name}: {error}: correct it, leave the cell empty where the number is "
                        "missing, or leave such hypotheses out with bad='drop'",
                        self.options.origin,
                        line,
                    ) from error
                values.append(np.inf)
        return values

    def _error(self, message: str) -> DataError:
        return DataError(message, self.options.origin, self._line)


class _Lines:
    """Hands on lines one by one, and knows whether it is asked for more inside a record.

    Args:
        text: whole lines.
    """

    def __init__(self, text: str):
        self.lines = [f"{line}\n" for line in text[:-1].split("\n")]
        self.count = 0
        self.inside = self.over_inside = False

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        if self.count == len(self.lines):
            self.over_inside = self.inside
            raise StopIteration
        self.inside = True
        self.count += 1
        return self.lines[self.count - 1]


def _is_numeric(name: str, cells: Sequence[str]) -> bool | None:
    """Say whether a column is of numbers, by its first cell that is not empty; None without one."""
    if name in _TEXTS or label_of(name) == REFERENCE or name.startswith(OF_SENTENCE):
        return False
    first = _first(cells)
    return looks_numeric(first) and "_" not in first if first else None


def _fits(values: Sequence[Any]) -> bool:
    """Say whether a column of hypotheses reads back as texts."""
    return all_texts(values) and bool(_first(values)) and not looks_numeric(_first(values))


def _first(values: Sequence[str]) -> str:
    return next((value for value in values if value.strip()), "")
