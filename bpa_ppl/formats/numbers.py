"""Numbers as text files print them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl.formats.streams import arrow_file
from bpa_ppl.rows.base import TOO_LARGE
from bpa_ppl.rows.readers import values_of

_AT_ONCE = 1 << 30  # bytes that Arrow reads at once


def all_finite(tokens: Sequence[bytes]) -> npt.NDArray[np.float64] | None:
    """Return the numbers that some tokens print; None if `finite` refuses one of them.

    >>> all_finite([b"-1.5", b"2"]), all_finite([b"1_0"])
    (array([-1.5,  2. ]), None)
    """
    try:
        values = np.array(list(map(float, tokens)), dtype=np.float64)
    except ValueError:
        return None
    sound = b"_" not in b"".join(tokens) and np.all(np.abs(values) < TOO_LARGE)
    return values if sound else None


def lines_of_numbers(data: bytes, width: int) -> npt.NDArray[np.float64] | None:
    r"""Return (lines, width) the numbers in lines of text, read by PyArrow.

    None if they are not separated by single spaces, or one is not a finite 32-bit number.

    >>> lines_of_numbers(b"-1.5 2\n3 1e-05\n", 2)
    array([[-1.5e+00,  2.0e+00],
           [ 3.0e+00,  1.0e-05]])
    """
    import pyarrow as pa

    try:
        columns = csv_columns(data, [pa.float64()] * width)
    except (pa.ArrowException, ValueError):
        return None
    values = np.stack(list(map(values_of, columns)), axis=1)
    return values if np.all(np.abs(values) < TOO_LARGE) else None


def csv_columns(data: Any, types: Sequence[Any]) -> list[Any]:
    r"""Return the columns of a table separated by spaces, in types of Arrow; see `csv_table`.

    >>> import pyarrow as pa
    >>> csv_columns(b"1 2\n", [pa.int64(), pa.int64()])[1].to_pylist()
    [2]
    """
    named = {str(place): kind for place, kind in enumerate(types)}
    return [column.combine_chunks() for column in csv_table(data, " ", named).columns]


def csv_table(
    data: Any,
    delimiter: str,
    types: Mapping[str, Any],
    *,
    quoted: bool = False,
    decimal_point: str = ".",
    missing: Sequence[str] = (),
    threads: bool = False,
) -> Any:
    """Return a table, read by PyArrow.

    Args:
        data: whole lines, as bytes or as a buffer of Arrow.
        delimiter: between cells.
        types: names and types of the columns.
        quoted: whether cells may be quoted, and may then have line breaks.
        decimal_point: of numbers.
        missing: cells of numbers that are missing.
        threads: whether columns are converted in several threads.

    Raises:
        pyarrow.ArrowException: if a line has another number of cells, or a cell another type.
    """
    import pyarrow as pa
    from pyarrow import csv

    return csv.read_csv(
        arrow_file(data) if isinstance(data, bytes) else pa.BufferReader(data),
        csv.ReadOptions(
            column_names=list(types),
            use_threads=threads,
            block_size=min(len(data) + 1, _AT_ONCE),
        ),
        csv.ParseOptions(
            delimiter=delimiter,
            quote_char='"' if quoted else False,
            newlines_in_values=quoted,
            ignore_empty_lines=False,
        ),
        csv.ConvertOptions(
            column_types=types,
            decimal_point=decimal_point,
            null_values=list(missing),
            strings_can_be_null=False,
        ),
    )


def shortest(value: float | np.float32) -> str:
    """Return the shortest decimal that reads back as the same number of the same width.

    >>> shortest(np.float32(0.1)), shortest(0.1), shortest(-6.0)
    ('0.1', '0.1', '-6')
    """
    return str(value).removesuffix(".0")


def printed(values: npt.ArrayLike, missing: str = "nan", json: bool = True) -> list[str]:
    """Return the shortest decimals that read back as the same 32-bit floats.

    Args:
        values: (n,) numbers, rounded to 32 bits.
        missing: the text for NaN.
        json: whether −0 must keep its sign in JSON, which reads `-0` as an integer.

    >>> printed(np.array([0.1, -6, 0.0, -0.0, np.nan]), missing="null")
    ['0.1', '-6', '0.0', '-0.0', 'null']
    """
    # As integers, so that −0 keeps its sign.
    single = np.ascontiguousarray(values, np.float32)
    distinct, index = np.unique(single.view(np.int32), return_inverse=True)
    texts = [
        missing if np.isnan(value) else str(value) if json and not value else shortest(value)
        for value in distinct.view(np.float32)
    ]
    return [texts[i] for i in index.tolist()]
