"""Columns of Arrow to NumPy and back, without pandas.

`to_numpy` and `array` of PyArrow import pandas wherever it is installed, which takes longer than
to read most files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa


def whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece.

    >>> import pyarrow as pa
    >>> whole(pa.chunked_array([[1], [2]])).to_pylist()
    [1, 2]
    """
    import pyarrow as pa

    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    joined = column.combine_chunks()
    return pa.concat_arrays(joined.chunks) if isinstance(joined, pa.ChunkedArray) else joined


def values_of(column: pa.Array | pa.ChunkedArray, missing: Any = np.nan) -> npt.NDArray[Any]:
    """Return (rows,) the numbers of a column; they are not to be written to.

    Args:
        column: of whole numbers or of floats.
        missing: what stands where there is no number.

    >>> import pyarrow as pa
    >>> values_of(pa.array([1.5, None])), values_of(pa.array([2, None])[:1])
    (array([1.5, nan]), array([2]))
    """
    import pyarrow as pa

    given = whole(column)
    if not given.null_count:
        return np.from_dlpack(given)
    data = given.buffers()[1]
    bare = pa.Array.from_buffers(given.type, len(given), [None, data], offset=given.offset)
    there = np.from_dlpack(given.is_valid().cast(pa.uint8())).astype(bool)
    return np.where(there, np.from_dlpack(bare), missing)


def numbers_array(values: Sequence[float]) -> pa.Array:
    """Return 64-bit floats as an array of Arrow.

    >>> numbers_array([1.5, 2]).to_pylist()
    [1.5, 2.0]
    """
    import pyarrow as pa

    data = np.array(values, np.float64)
    return pa.Array.from_buffers(pa.float64(), len(data), [None, pa.py_buffer(data)])


def texts_array(texts: Sequence[str]) -> pa.Array:
    """Return texts as an array of Arrow.

    >>> texts_array(["a cat", "", "café"]).to_pylist()
    ['a cat', '', 'café']
    """
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    bounds = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)
