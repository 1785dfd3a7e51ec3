"""Tables as text, separated by tabs, commas or semicolons: a header, then a candidate per line.

See `bpa_ppl.formats.schema` for the meaning of the columns; or a line is two answers, of which one
is preferred, as in `bpa_ppl.formats.preference_rows`. Cells of CSV may be quoted; those of TSV are
not, as programs of translation write them, unless the name of the first column is. A quotation mark
at the beginning of a cell must be closed at the end of a cell; those inside are doubled. A quoted
cell may have line breaks, but not if each of its lines is a row by itself: with as many cells as
the header, and numbers in the same columns. An empty cell is missing. Lines whose cells are all
empty are left out.

PyArrow reads all cells as texts; `bpa_ppl.formats.schema` makes numbers of those of features.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TextIO

import numpy as np

from bpa_ppl._runtime.arrays import Int64, read_number
from bpa_ppl._runtime.messages import format_count, warn_user
from bpa_ppl.errors import not_supported, quote
from bpa_ppl.formats.block import ID, TEXT, TOTAL, Block, ReadOptions
from bpa_ppl.formats.format import TableFormat
from bpa_ppl.formats.preference_rows import PAIRS, SETTINGS, find_answer_fields
from bpa_ppl.formats.records import read_rows
from bpa_ppl.formats.roles import OF_FEATURES
from bpa_ppl.formats.streams import InputFile, count_lines, decode
from bpa_ppl.formats.values import (
    format_numbers,
    format_shortest,
    read_csv_table,
    to_mask,
    to_numpy,
)
from bpa_ppl.formats.writing import are_texts, expand_sentence_columns, select_writable
from bpa_ppl.lists.labels import find_repeated
from bpa_ppl.lists.nbest import NBest

if TYPE_CHECKING:
    import pyarrow as pa

#: A cell with quotation marks around it, and doubled ones inside it.
_QUOTED = re.compile(rb'(?<![^\t\n])"[^"\t\n]*""[^\t\n]*"(?=[\t\r\n])')


class Csv(TableFormat, frozen=True):
    """Cells separated by commas, or by semicolons.

    Attributes:
        separators: between cells: the first one in files that are written.
        quoted: whether cells may be quoted; they also are if the name of the first column is.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".csv",)
    separators: ClassVar[str] = ",;"
    required: ClassVar[tuple[tuple[str, ...], ...]] = ((ID, TEXT), *PAIRS)
    nan_is_missing: ClassVar[bool] = True
    typed: ClassVar[bool] = False

    quoted: bool = True

    def field_names(self, first_line: bytes) -> list[str]:
        r"""Return the cells of a header.

        >>> Tsv().detect(b"id\ttext\tlm"), Csv().detect(b"0 ||| a, b ||| LM0= 1")
        (True, False)
        """
        return _header_cells(first_line, _find_separator(first_line, self.separators))

    def blocks(self, file: InputFile, options: ReadOptions) -> Iterator[Block]:
        r"""Yield the columns of each block of lines.

        >>> file = InputFile(b"id,text,lm,system\n0,a cat,-1.5,ours")
        >>> next(Csv().blocks(file, ReadOptions("dev"))).candidates["lm"].to_pylist()
        ['-1.5']
        """
        return read_rows(_read_tables(file.chunks(), self, options), options)

    def write(self, lists: NBest, file: TextIO) -> None:
        """Write the lists.

        Raises:
            DataError: if a name has another meaning, an empty reference cannot be distinguished
                from a missing one, or a cell that is not quoted has a separator or a line break.

        >>> from bpa_ppl import from_lists
        >>> import sys
        >>> lists = from_lists([["a, b"]], [[[-1.5]]], ["lm"], references=["the cat"])
        >>> Csv().write(lists, sys.stdout)
        id,text,reference,features.lm
        0,"a, b",the cat,-1.5
        """
        columns = select_writable(lists, True, _fits, are_texts, typed=self.typed)
        of_sentences = expand_sentence_columns(lists, columns, as_lists=False)
        of_rows = {OF_FEATURES + n: format_numbers(v) for n, v in columns.features.items()}
        of_rows |= {} if columns.totals is None else {TOTAL: format_numbers(columns.totals)}
        of_rows |= {name: _to_cells(values) for name, values in columns.extras.items()}
        ids, lines = lists.ids, [[ID, TEXT, *of_sentences, *of_rows]]
        for sentence in range(len(lists)):
            cells = [str(values[sentence]) for values in of_sentences.values()]
            rows = lists.rows(sentence)
            first = str(ids[sentence])
            columns_of = (of[rows] for of in of_rows.values())
            for text, *others in zip(lists.texts(sentence), *columns_of, strict=True):
                lines.append([first, text, *cells, *others])
            try:
                file.writelines(self.separators[0].join(map(self._cell, of)) + "\n" for of in lines)
            except ValueError as error:
                remedy = "write jsonl" if self.quoted else "write csv or jsonl"
                problem = f"sentence {first} has {error}"
                raise not_supported(problem, remedy, origin=lists.origin) from error
            lines = []

    def _cell(self, text: str) -> str:
        # The csv module leaves a carriage return as it is, and then refuses to read it.
        separator = self.separators[0]
        if "\0" in text:
            raise ValueError(f"{quote(text)}, with a NUL byte in it")
        odd = any(mark in text for mark in (separator, "\n", "\r"))
        if odd and not self.quoted:
            raise ValueError(f"{quote(text)}, with {quote(separator)} or a line break in it")
        if not self.quoted or not (odd or '"' in text):
            return text
        return '"' + text.replace('"', '""') + '"'


class Tsv(Csv, frozen=True):
    """Cells separated by tabs, not quoted unless the setting says so."""

    suffixes: ClassVar[tuple[str, ...]] = (".tsv",)
    separators: ClassVar[str] = "\t"

    quoted: bool = False


def _find_separator(first_line: bytes, separators: str) -> str:
    """Return the separator by which a header has the most cells; the first in case of a tie.

    >>> _find_separator(b"id;text;lm", ",;")
    ';'
    """
    return max(separators, key=lambda mark: len(_header_cells(first_line, mark)))


def _read_tables(
    chunks: Iterable[bytes], kind: Csv, options: ReadOptions
) -> Iterator[tuple[pa.Table, Int64]]:
    """Yield tables of consecutive rows as texts, and the line that each begins in.

    Raises:
        DataError: if a line does not have as many cells as the header, a quoted cell does not end,
            or there is nothing but a header.
    """
    line, begun = 1, b""  # of what comes next; a record with a quoted cell that continues there
    names: list[str] = []
    has_rows = warned = False
    dialect = _Dialect(kind.separators[0], kind.quoted, options)
    for block in chunks:
        if not (names or begun):
            dialect = _Dialect.of(block.partition(b"\n")[0], kind, options)
        data, begun = begun + block, b""
        decode(data, options.origin, line)
        looks_quoted = not (dialect.quoted or warned) and b'""' in data
        if looks_quoted and (cell := _QUOTED.search(data)):
            warned, number = True, line + data.count(b"\n", 0, cell.start())
            warn_user(
                f"{options.origin}:{number}: a cell looks quoted, but its quotation marks are read "
                "as part of the text: if they are not, read the file as tsv:quoted=true"
            )
        data = dialect.without_returns(data, line)
        dialect.check_quotes(data, line)
        if not names:
            names, line, data, begun = dialect.read_header(data, line)
        if names:
            table, lines, line, begun = dialect.read_rows(data, names, line)
            if len(lines):
                has_rows = True
                _refuse_header(table, lines, options)
                yield table, lines
    if begun:
        problem = "a quoted cell that does not end: double the quotes inside it"
        raise options.error(problem, line)
    if not has_rows:
        raise options.error("empty: there are no n-best lists in it", code="no-data")


class _Dialect(NamedTuple):
    """How the cells of one file are separated.

    Attributes:
        separator: between cells.
        quoted: whether cells may be quoted.
        options: how the file is read, for errors.
    """

    separator: str
    quoted: bool
    options: ReadOptions

    @classmethod
    def of(cls, first_line: bytes, kind: Csv, options: ReadOptions) -> _Dialect:
        """Return that of the first line of a file."""
        separator = _find_separator(first_line, kind.separators)
        return cls(separator, kind.quoted or first_line.startswith(b'"'), options)

    def without_returns(self, data: bytes, first: int) -> bytes:
        """Return lines that end with single carriage returns and line breaks, or line breaks."""
        if b"\r" not in data or data.count(b"\r") == data.count(b"\r\n"):
            return data
        mark = self.separator.encode()
        cell = rb'(?<![^%b\r\n])"(?:[^"]+|"")*' % mark if self.quoted else rb"(?!)"
        pattern = re.compile(rb"(?P<quoted>%b)|\r+(?=\n)|(?P<alone>\r)" % cell)
        for match in pattern.finditer(data):
            if match["alone"]:
                remedy = "remove it, or quote the cell" if self.quoted else "remove it"
                problem = f"a carriage return inside a line: {remedy}"
                line = first + data.count(b"\n", 0, match.start())
                raise self.options.error(problem, line)
        return pattern.sub(rb"\g<quoted>", data)

    def check_quotes(self, data: bytes, start: int) -> None:
        """Refuse quoted cells that are closed inside a cell."""
        if not self.quoted or b'"' not in data or _are_usual(data, self.separator):
            return
        mark = re.escape(self.separator.encode())
        begin, end = rb"(?<![^%b\n])" % mark, rb"(?=%b|\r*\n)" % mark
        # A cell may continue in the next block.
        cells = rb'%b"(?:[^"]++|"")*+(?:"%b|\Z)' % (begin, end)
        if not re.search(rb'%b"' % begin, re.sub(cells, b"", data)):
            return
        odd = rb'%b|%b(?P<odd>"(?:[^"]++|"")*+")' % (cells, begin)
        cell = next(match for match in re.finditer(odd, data) if match["odd"])
        first, last = (start + data.count(b"\n", 0, at) for at in cell.span())
        after = quote(data[cell.end() :].split(b"\n")[0][:20])
        problem = f"a quoted cell is closed in line {last} before {after}, which is not the end of "
        problem += "a cell: close it at the end, and double the quotation marks inside it"
        raise self.options.error(problem, first)

    def read_header(self, data: bytes, line: int) -> tuple[list[str], int, bytes, bytes]:
        """Return the names of the columns, the line after the header, and the bytes from there.

        If a quoted cell of the header continues in the next block, there are no names, and the last
        result is the record that has begun.
        """
        file, begin, start = io.BytesIO(data), 0, 0
        csv.field_size_limit(max(csv.field_size_limit(), len(data)))
        # A quoted cell that continues in the next block takes in the line that is added here.
        reader = csv.reader(
            chain(map(bytes.decode, file), ["end"]),
            delimiter=self.separator,
            quoting=csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE,
        )
        while not any(header := next(reader)):
            begin, start = reader.line_num, file.tell()
        line += begin
        if reader.line_num > count_lines(data):
            return [], line, b"", data[start:]
        start = file.tell()
        _check_header(header, line, self.options)
        file.seek(start)
        return header, line + reader.line_num - begin, file.read(), b""

    def read_rows(
        self, data: bytes, names: list[str], first: int
    ) -> tuple[pa.Table, Int64, int, bytes]:
        """Return the cells of the records in some lines, and the line that each begins in.

        And the line after them, and the record that has begun and continues in the next block.
        """
        import pyarrow as pa
        from pyarrow import compute

        # A record of its own, unless a quoted cell that continues in the next block takes it in.
        end = self.separator * len(names)
        invalid: list[Any] = []
        types = dict.fromkeys(names, pa.string())
        of_cells: dict[str, Any] = {"quoted": self.quoted, "invalid": invalid}
        table = read_csv_table(data + end.encode(), self.separator, types, **of_cells)
        wrong = np.array([row.number - 1 for row in invalid], np.int64)
        count, newlines = len(table) + len(invalid), count_lines(data)
        right = np.delete(np.arange(count), wrong)
        breaks = np.zeros(count, np.int64)  # inside the cells of each record
        if count <= newlines:
            for column in table.columns:
                breaks[right] += to_numpy(compute.count_substring(column, "\n"))
            breaks[wrong] = [row.text.count("\n") for row in invalid]
        begins = np.arange(count) + np.cumsum(breaks) - breaks
        lines, last = first + begins, int(begins[-1])
        empty = {"", '""'} if self.quoted else {""}
        for row, line in zip(invalid, lines[wrong].tolist(), strict=True):
            cells = row.text.rstrip("\r").split(self.separator)
            if line == lines[-1] or empty.issuperset(cells):
                continue
            problem = f"{format_count(row.actual_columns, 'cell')}, but the header has {len(names)}"
            mark = quote(self.separator)
            remedy = f"separate cells by {mark}, and quote a cell that contains {mark}"
            if not self.quoted:
                remedy = f"separate cells by {mark}, or read quoted cells as tsv:quoted=true"
            ends = row.text.rstrip("\r").endswith(self.separator)
            if ends and row.actual_columns == len(names) + 1:
                remedy = f"remove {mark} from the ends of lines, {remedy}"
            elif len(table) <= 1 and {of.actual_columns for of in invalid} == {len(names) + 1}:
                remedy = f"leave out the names of rows (R: row.names=FALSE), {remedy}"
            raise self.options.error(f"{problem}: {remedy}", line, "wrong-length")
        for row in np.flatnonzero(breaks[right] * (begins[right] < last)).tolist():
            cells = [str(column[row].as_py()) for column in table.columns]
            self._check_lines(cells, int(lines[right][row]))
        begun = b"\n".join(data.split(b"\n")[last:]) if last < newlines else b""
        lengths = [to_numpy(compute.binary_length(column)) for column in table.columns]
        kept = np.any(lengths, axis=0) & (begins[right] < last)
        return table.filter(to_mask(kept)), lines[right][kept], first + last, begun

    def _check_lines(self, cells: list[str], line: int) -> None:
        """Refuse a record of several lines of which each is a row by itself.

        Args:
            cells: of the record.
            line: in which it begins.
        """
        numbers = list(map(_is_number, cells))
        if not any(numbers):
            return
        of_lines = self.separator.join(cells).split("\n")
        for one in of_lines:
            row = one.split(self.separator)
            kinds = zip(row, numbers, cells, strict=False)
            alike = all(_is_number(cell) == n or "\n" in of for cell, n, of in kinds)
            if len(row) != len(cells) or not alike:
                return
        problem = f"a quoted cell that ends in line {line + len(of_lines) - 1}, and each of these "
        problem += "lines is a row by itself: close the quotation mark in the cell where it is "
        problem += "opened, or double it and quote the cell; or write jsonl if it is one text"
        raise self.options.error(problem, line)


def _check_header(header: list[str], line: int, options: ReadOptions) -> None:
    names = options.names
    for odd in [*([""] if "" in header else []), *find_repeated(header)]:
        problem = f"two columns {odd} in the header: rename one"
        if not odd:
            problem = "a column without a name in the header: name or remove it (pandas: to_csv "
            problem += "with index=False)"
        raise options.error(problem, line, "bad-name")
    columns = names.usual(header).values()
    pairs = find_answer_fields(columns) or not names.names.keys().isdisjoint(SETTINGS)
    names.require(names.names if pairs else (ID, TEXT, *names.names), columns, line)


def _refuse_header(table: pa.Table, lines: Int64, options: ReadOptions) -> None:
    """Refuse a header between rows."""
    from pyarrow import compute

    names = table.column_names
    begins = to_numpy(compute.find_substring(table.columns[-1], names[-1])) == 0
    for row in np.flatnonzero(begins).tolist():
        if [column[row].as_py() for column in table.columns] == names:
            raise options.error("the header is repeated: remove the line", lines[row])


def _are_usual(data: bytes, separator: str) -> bool:
    r"""Return whether all quotation marks are around cells, or doubled inside these.

    Every second one then begins a cell, or is the second of two; the others end a cell, or are the
    first of two. This is faster than reading the cells.

    >>> _are_usual(b'0,"a ""b"" c",1\n', ","), _are_usual(b'0,5" disk,1\n', ",")
    (True, False)
    """
    codes = np.frombuffer(b"\n" + data + b"\n", np.uint8)
    marks = np.flatnonzero(codes == ord('"'))
    before, after = codes[marks[::2] - 1], codes[marks[1::2] + 1]
    edges = list(f'"\n{separator}'.encode())
    return bool(np.isin(before, edges).all() and np.isin(after, [*edges, ord("\r")]).all())


def _header_cells(line: bytes, separator: str) -> list[str]:
    """Return the cells of a first line; none if nothing is separated."""
    try:
        cells = next(csv.reader([line.decode().rstrip("\r")], delimiter=separator), [])
    except (UnicodeDecodeError, csv.Error):
        return []
    return cells if len(cells) > 1 else []


def _is_number(cell: str) -> bool:
    """Return whether a cell prints a number."""
    return bool(cell) and read_number(cell, cells=True) is not None


def _fits(values: Any) -> bool:
    """Return whether a column of candidates reads back: texts, or numbers as their cells."""
    if isinstance(values, np.ndarray):
        return values.ndim == 1 and values.dtype.kind in "iuf"
    types = set(map(type, values)) - {type(None)}
    return types in ({str}, {int}, {float}, {int, float}) and "" not in values


def _to_cells(values: Any) -> list[str]:
    """Return the cells of a column of texts or numbers; missing ones are empty."""
    if isinstance(values, np.ndarray):
        values = (np.asarray(values, np.float64) if values.dtype.kind == "f" else values).tolist()
    return [
        ""
        if value is None or value != value
        else (format_shortest if isinstance(value, float) else str)(value)
        for value in values
    ]
