"""Blocks of lines of fields separated by ` ||| `, read by PyArrow.

All lines must have the columns of the first line of the file, and sound numbers. `moses_lines`
reads all other blocks, and says what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bpa_ppl.arrays import Int64
from bpa_ppl.columns import other_form
from bpa_ppl.formats.moses_lines import WORD_SCORES, Layout, id_of, pattern_of
from bpa_ppl.formats.numbers import csv_columns
from bpa_ppl.rows.base import Columns
from bpa_ppl.rows.names import ID
from bpa_ppl.rows.readers import values_of

_NEWLINE, _SPACE, _BAR = b"\n |"
_LARGEST = 2**31 - 1  # bytes that Arrow addresses in an array of texts


def regular_columns(
    block: bytes, first: int, layout: Layout, soft: bool, forms: dict[int, str] | None = None
) -> Columns | None:
    r"""Return the columns of a block; None if a line is not as the first line of the file.

    Args:
        block: lines, each ended by a newline.
        first: the number of its first line.
        layout: the columns that the first line of the file shows.
        soft: whether an alignment before the features may have a vector for each word.
        forms: the ids before, as they are printed; entered here.

    >>> layout = Layout((("LM0", 1),), True)
    >>> columns = regular_columns(b"3 ||| a cat ||| LM0= -1 ||| -2\n", 1, layout, False)
    >>> columns.sentences, columns.hypotheses["LM0"].tolist(), columns.strings
    ({'id': array([3])}, [-1.0], ['a cat'])
    """
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if b"\r" in block or len(block) > _LARGEST:
        return None
    try:
        return _columns(block, first, layout, soft, {} if forms is None else forms)
    except (pa.ArrowException, ValueError):
        return None


def _columns(
    block: bytes, first: int, layout: Layout, soft: bool, forms: dict[int, str]
) -> Columns:
    """Return the columns of a block, or raise a ValueError or an error of Arrow."""
    scores = 2 + len(layout.between)
    after = scores + 1 + layout.has_total
    starts, ends = _fields(block, after + len(layout.after))

    def cells(field: int) -> Any:
        return _texts(block, starts[field], ends[field])

    ids, texts = cells(0).dictionary_encode(), cells(1).dictionary_encode()
    numbers = [id_of(text.encode()) for text in ids.dictionary.to_pylist()]
    if None in numbers:
        raise ValueError("not an id")
    printed = zip(numbers, ids.dictionary.to_pylist(), strict=True)
    if any(other_form(forms, number, text.strip()) for number, text in printed):
        raise ValueError("an id in another form")
    codes: Any = block
    if layout.after:
        codes = np.frombuffer(block, np.uint8).copy()
        codes[ends[after - 1]] = _NEWLINE
    lines = _texts(codes, starts[scores], ends[after - 1] + 1).buffers()[2]
    columns = _values(lines, layout)
    values = np.empty((len(columns), len(texts)), np.float32)
    with np.errstate(over="ignore"):
        for row, column in zip(values, columns, strict=True):
            row[:] = column
    if not np.all(np.isfinite(values)):
        raise ValueError("not a finite number")
    # The first field after the scores is not a total where the first line has none.
    rest = r"[^\s=]*(?:\s.*)?|[\d=|].*" if layout.has_total else r"[^=.\d]*"
    extras = {}
    for place, name in chain(enumerate(layout.between, 2), enumerate(layout.after, after)):
        is_before = place < scores
        other = f"{WORD_SCORES.decode()}.*" if is_before else rest
        pattern = pattern_of(name, soft and is_before) if name else other
        column = pc.utf8_trim(cells(place), " ")
        if not pc.all(pc.match_substring_regex(column, f"^(?:{pattern})$")).as_py():
            raise ValueError("another field")
        if name:
            extras[name] = column.to_pylist()
    strings = [text.strip(" ") for text in texts.dictionary.to_pylist()]
    of_lines = np.array(numbers, np.int64)[values_of(ids.indices)]
    places = np.arange(len(of_lines))
    hypotheses = layout.hypotheses(values_of(texts.indices), values, extras)
    return Columns(
        hypotheses, {ID: of_lines}, places, first + places, any_order=False, strings=strings
    )


def _fields(block: bytes, width: int) -> tuple[Int64, Int64]:
    """Return (fields, lines) where the fields begin, and where they end."""
    codes = np.frombuffer(block, np.uint8)
    newlines = np.flatnonzero(codes == _NEWLINE)
    bars = np.flatnonzero(codes == _BAR)
    first = bars[::3]
    if len(bars) % 3 or np.any(bars[2::3] - first != 2):  # some are in texts
        first = bars[codes[bars + 1] == _BAR]
        first = first[codes[first + 2] == _BAR]
    before, after = codes[first - 1], codes[first + 3]
    first = first[(before == _SPACE) & ((after == _SPACE) | (after == _NEWLINE))]
    separators = first.reshape(len(newlines), width - 1).T
    begin = np.append(0, newlines[:-1] + 1)
    if np.any(separators[0] < begin) or np.any(separators[-1] > newlines):
        raise ValueError("other fields")
    ends = np.vstack([separators - 1, newlines])
    return np.vstack([begin, np.minimum(separators + 4, ends[1:])]), ends


def _texts(block: Any, starts: Int64, ends: Int64) -> Any:
    """Return an array of Arrow with parts of a block."""
    bounds = np.append(np.column_stack([starts, ends]), len(block)).astype(np.int32)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(block)]
    every = pa.Array.from_buffers(pa.string(), len(bounds) - 1, buffers)
    places = pa.py_buffer(np.arange(0, len(every), 2))
    return every.take(pa.Array.from_buffers(pa.int64(), len(starts), [None, places]))


def _values(data: Any, layout: Layout) -> list[npt.NDArray[np.float64]]:
    """Return the columns of values, the total last, if all lines have the same labels."""
    tokens: list[bytes | None] = []
    for label, count in layout.shape:
        tokens += [f"{label}=".encode(), *[None] * count]
    tokens += [b"|||", None] if layout.has_total else []
    try:
        return _numbers(data, tokens)
    except (pa.ArrowException, ValueError):  # values glued to labels, or several spaces
        lines = data.to_pybytes().replace(b"=", b"= ").split(b"\n")
        return _numbers(b"\n".join(b" ".join(line.split()) for line in lines), tokens)


def _numbers(data: Any, tokens: Sequence[bytes | None]) -> list[npt.NDArray[np.float64]]:
    """Return the columns of numbers in lines of tokens; of all others the text is given."""
    types = [pa.float64() if token is None else pa.binary(len(token)) for token in tokens]
    columns = []
    for token, column in zip(tokens, csv_columns(data, types), strict=True):
        if token is None:
            columns.append(values_of(column))
        elif not column.buffers()[1].equals(pa.py_buffer(token * len(column))):
            raise ValueError("other labels")
    return columns
