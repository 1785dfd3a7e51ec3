"""Columns of Arrow as arrays of NumPy, without pandas.

`to_numpy` of PyArrow imports pandas wherever it is installed, which takes longer than reading most
files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa


def single_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column as one array.

    >>> import pyarrow as pa
    >>> single_array(pa.chunked_array([[1], [2]])).to_pylist()
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
    """Return (rows,) the numbers of a column; read-only.

    Args:
        column: of integers or of floats.
        missing: the value for null.

    >>> import pyarrow as pa
    >>> values_of(pa.array([1.5, None])), values_of(pa.array([2, None])[:1])
    (array([1.5, nan]), array([2]))
    """
    import pyarrow as pa

    array = single_array(column)
    if not array.null_count:
        return np.from_dlpack(array)
    data = array.buffers()[1]
    data_only = pa.Array.from_buffers(array.type, len(array), [None, data], offset=array.offset)
    present = np.from_dlpack(array.is_valid().cast(pa.uint8())).astype(bool)
    return np.where(present, np.from_dlpack(data_only), missing)
