"""Tables as text, separated by tabs, commas or semicolons: a header, then a candidate per line.

See `bpa_ppl.formats.schema` for the meaning of the columns; or a line is two answers, of which one
is preferred, as in `bpa_ppl.formats.preference_rows`. Cells of CSV may be quoted; those of TSV are
not, as programs of translation write them, unless the name of the first column is. A quotation mark
at the beginning of a cell must be closed at its end; those inside are doubled. An empty cell is
missing. Lines whose cells are all empty are left out.

All cells are texts; `bpa_ppl.formats.schema` makes numbers of those of features.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TextIO

import numpy as np

from bpa_ppl._runtime.arrays import Int64
from bpa_ppl._runtime.messages import format_count, warn_user
from bpa_ppl._runtime.names import find_repeated
from bpa_ppl._runtime.streams import InputFile, count_lines, decode
from bpa_ppl._runtime.values import format_numbers, format_shortest, read_csv_columns, to_numpy
from bpa_ppl.errors import DataError, quote
from bpa_ppl.formats.block import ID, TEXT, TOTAL, Block
from bpa_ppl.formats.format import COLUMNS, NBestFormat
from bpa_ppl.formats.preference_rows import PAIRS, SETTINGS, find_answer_fields
from bpa_ppl.formats.records import read_rows
from bpa_ppl.formats.roles import OF_FEATURES
from bpa_ppl.formats.schema import Schema
from bpa_ppl.formats.writing import are_texts, expand_sentence_columns, select_writable
from bpa_ppl.lists.nbest import NBest

if TYPE_CHECKING:
    import pyarrow as pa

#: A cell with quotation marks around it, and doubled ones inside it.
_QUOTED = '^"[^"]*"".*"$'
_AT_ONCE = 1 << 13  # rows in a table
_LONGEST = 1 << 24  # characters of a cell


class Csv(NBestFormat, frozen=True):
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
    usual_names: ClassVar[tuple[str, ...]] = COLUMNS

    quoted: bool = True

    def field_names(self, first_line: bytes) -> list[str]:
        r"""Return the cells of a header.

        >>> Tsv().detect(b"id\ttext\tlm"), Csv().detect(b"0 ||| a, b ||| LM0= 1")
        (True, False)
        """
        return _header_cells(first_line, _find_separator(first_line, self.separators))

    def blocks(self, file: InputFile, schema: Schema) -> Iterator[Block]:
        r"""Yield the columns of each block of lines.

        >>> file = InputFile(b"id,text,lm,system\n0,a cat,-1.5,ours")
        >>> next(Csv().blocks(file, Schema("dev"))).candidates["lm"].to_pylist()
        ['-1.5']
        """
        return read_rows(_read_tables(file, self, schema), schema)

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
                message = f"sentence {first} has {error}: {remedy}"
                raise DataError(message, lists.origin, code="not-supported") from error
            lines = []

    def _cell(self, text: str) -> str:
        # The csv module leaves a carriage return as it is, and then refuses to read it.
        separator = self.separators[0]
        if "\0" in text:
            raise ValueError(f"{quote(text)}, with a NUL byte in it")
        splits = any(mark in text for mark in (separator, "\n", "\r"))
        if splits and not self.quoted:
            raise ValueError(f"{quote(text)}, with {quote(separator)} or a line break in it")
        if not self.quoted or not (splits or '"' in text):
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


def read_cells(
    lines: Iterable[str], separator: str, schema: Schema, *, quoted: bool, line: int = 1
) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each row that has any, and the line in which it begins.

    Args:
        lines: with their ends.
        separator: between cells.
        schema: of the file, for errors.
        quoted: whether cells may be quoted, and may then have line breaks.
        line: the number of the first one.

    Raises:
        DataError: if a quoted cell does not end, or does not end a cell, or a carriage return is
            inside a line.
    """
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    csv.field_size_limit(_LONGEST)
    rows = csv.reader(lines, delimiter=separator, quoting=quoting, strict=True)
    first = line
    try:
        for cells in rows:
            if any(cells):
                yield first, cells
            first = line + rows.line_num
    except csv.Error as error:
        problem = f"not a row of cells that are separated by {quote(separator)} ({error}): close a "
        problem += "quotation mark at the end of its cell, double those inside it, and remove "
        problem += "carriage returns from the inside of lines"
        raise schema.error(problem, first) from error


def _read_tables(file: InputFile, kind: Csv, schema: Schema) -> Iterator[tuple[pa.Table, Int64]]:
    """Yield tables of consecutive rows as texts, and the line that each begins in.

    PyArrow reads blocks without a quotation mark, a line break or a number of cells that is
    unusual; `read_cells` reads the others, and says what is wrong.

    Raises:
        DataError: if a line does not have as many cells as the header, a row cannot be read, or
            there is only a header.
    """
    import pyarrow as pa
    from pyarrow import compute

    first = file.first_line
    separator, quoted = _find_separator(first, kind.separators), kind.quoted or first[:1] == b'"'
    blocks, line, is_empty = file.chunks(), 1, True
    header = _header_cells(first, separator, quoted=quoted)
    if any(header):
        _check_header(header, 1, schema)
        rest, line, begun = next(blocks).partition(b"\n")[2], 2, b""
        for data in chain([rest], blocks):
            data = begun + data
            begun = data if quoted and data.count(b'"') % 2 and len(data) < _LONGEST else b""
            if begun or not data:
                continue
            usual = _read_usual(data, first, header, separator, quoted=quoted)
            if usual is None:
                begun = data
                break
            yield usual[0], line + usual[1]
            line, is_empty = line + count_lines(data), False
        blocks = chain([begun] if begun else [], blocks)
    lines = chain.from_iterable(_open_blocks(blocks, schema.origin, line))
    rows = read_cells(lines, separator, schema, quoted=quoted, line=line)
    if not any(header):
        line, header = next(rows, (1, [""]))
        _check_header(header, line, schema)
    warned = quoted
    while part := list(islice(rows, _AT_ONCE)):
        numbers, cells = zip(*part, strict=True)
        for line, row in part:
            if row == header:
                raise schema.error("the header is repeated: remove the line", line)
            if len(row) != len(header):
                problem = f"{format_count(len(row), 'cell')}, but the header has {len(header)}: "
                problem += f"separate cells by {quote(separator)}, and quote a cell that has one"
                if len(row) == len(header) + 1:
                    problem += ", remove it from the ends of lines, and leave out names of rows"
                    problem += " (R: row.names=FALSE)"
                if not quoted:
                    problem += "; read quoted cells as tsv:quoted=true"
                raise schema.error(problem, line, "wrong-length")
        arrays = [pa.array(column, pa.string()) for column in zip(*cells, strict=True)]
        for column in arrays if not warned else ():
            if (row := compute.match_substring_regex(column, _QUOTED).index(True).as_py()) >= 0:
                warned = True
                what = "a cell looks quoted, but its quotation marks are read as part of the text: "
                what += "if they are not, read the file as tsv:quoted=true"
                warn_user(f"{schema.origin}:{numbers[row]}: {what}")
                break
        yield pa.table(dict(zip(header, arrays, strict=True))), np.array(numbers, np.int64)
        is_empty = False
    if is_empty:
        raise schema.error("empty: there are no n-best lists in it", code="no-data")


def _read_usual(
    data: bytes, first: bytes, header: list[str], separator: str, *, quoted: bool
) -> tuple[pa.Table, Int64] | None:
    """Return the rows of a block, read by PyArrow, and their lines; None if one is unusual.

    Quotation marks are usual around cells, and doubled inside these: every second one begins a
    cell, or is the second of two; the others end a cell, or are the first of two.
    """
    import pyarrow as pa
    from pyarrow import compute

    codes = np.frombuffer(b"\n" + data, np.uint8)
    marks = np.flatnonzero(codes == ord('"')) if quoted else np.zeros(0, np.int64)
    edges = list(f'"\n{separator}'.encode())
    before, after = codes[marks[::2] - 1], codes[marks[1::2] + 1]
    is_usual = np.isin(before, edges).all() and np.isin(after, [*edges, ord("\r")]).all()
    if (
        not is_usual
        or len(marks) % 2
        or (b'""' in data and not quoted)
        or data.count(b"\r") != data.count(b"\r\n")
        or b"\n" + first + b"\n" in b"\n" + data
    ):
        return None
    try:
        named = dict.fromkeys(header, pa.string())
        columns = read_csv_columns(data, named, separator, quoted=quoted)
    except pa.ArrowInvalid:
        return None
    breaks = np.zeros(len(columns[0]), np.int64)  # inside the cells of each row
    if len(breaks) != count_lines(data):
        breaks = np.sum([to_numpy(compute.count_substring(of, "\n")) for of in columns], 0)
    lengths = np.sum([to_numpy(compute.binary_length(column)) for column in columns], 0)
    if len(breaks) + breaks.sum() != count_lines(data) or not lengths.all():
        return None
    table = pa.table(dict(zip(header, columns, strict=True)))
    return table, np.arange(len(breaks)) + np.cumsum(breaks) - breaks


def _open_blocks(blocks: Iterable[bytes], origin: str, line: int) -> Iterator[io.StringIO]:
    """Yield blocks of whole lines as files of text, whose lines keep their ends."""
    for block in blocks:
        yield io.StringIO(decode(block, origin, line), newline="\n")
        line += count_lines(block)


def _check_header(header: list[str], line: int, schema: Schema) -> None:
    for repeated in [*([""] if "" in header else []), *find_repeated(header)]:
        problem = f"two columns {repeated} in the header: rename one"
        if not repeated:
            problem = "a column without a name in the header: name or remove it"
        raise schema.error(problem, line, "bad-name")
    columns = schema.rename(dict.fromkeys(header))
    pairs = find_answer_fields(columns) or not schema.names.keys().isdisjoint(SETTINGS)
    schema.require(schema.names if pairs else (ID, TEXT, *schema.names), columns, line)


def _header_cells(line: bytes, separator: str, *, quoted: bool = True) -> list[str]:
    """Return the cells of a first line; none if nothing is separated."""
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    try:
        lines = [line.decode().rstrip("\r")]
        cells = next(csv.reader(lines, delimiter=separator, quoting=quoting, strict=True), [])
    except (UnicodeDecodeError, csv.Error):
        return []
    return cells if len(cells) > 1 else []


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
