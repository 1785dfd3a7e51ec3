"""Tables and vectors whose values have names: data frames, Arrow tables, labelled arrays.

Such a table is read by the names of its columns, whatever their order. An array without names, and
a table whose columns are 0, 1, … in this order, is read by position.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bpa_ppl._runtime.arrays import to_array, to_plain_values
from bpa_ppl._runtime.names import find_repeated
from bpa_ppl._runtime.values import from_arrow
from bpa_ppl.errors import DataError, UsageError, list_names, wrong_type

#: What has no names.
_PLAIN = (list, tuple, float, int, str, type(None))


def name_columns(table: Any, parameter: str = "features") -> Any:
    """Return a table whose columns have names as a dictionary; anything else as it is.

    Args:
        table: a mapping, a data frame, an Arrow table or what exports one, a structured array, an
            array of xarray whose last dimension has coordinates; or anything else.
        parameter: the name of the argument.

    Raises:
        DataError: if two columns have the same name.
        UsageError: if the values of a table are not in memory.

    >>> import pyarrow as pa
    >>> name_columns(pa.table({"lm": [1, 2]}))
    {'lm': array([1., 2.])}
    >>> name_columns([[1.0, 2.0]])
    [[1.0, 2.0]]
    """
    try:
        labels, columns = _split(table, parameter)
        return table if labels is None else dict(zip(labels, columns, strict=True))
    except (TypeError, NotImplementedError) as error:  # of a plan of a table
        raise wrong_type(f"{parameter} must be a table in memory", table, parameter) from error


def select_columns(table: Any, names: Sequence[str], parameter: str = "features") -> Any:
    """Return a table whose columns have names as an array of those in some order.

    Args:
        table: as for `name_columns`; one without names is returned as it is.
        names: of all its columns.
        parameter: the name of the argument.

    Raises:
        DataError: if a column is missing, or has none of these names.
        UsageError: if a column is not an array of numbers.

    >>> select_columns({"tm": [1, 2], "lm": [3, 4]}, ["lm", "tm"]).tolist()
    [[3.0, 1.0], [4.0, 2.0]]
    """
    columns = name_columns(table, parameter)
    if not isinstance(columns, Mapping):
        return table
    if set(columns) != set(names):
        absent = [name for name in names if name not in columns]
        more = [name for name in columns if name not in set(names)]
        problems = [f"lack {list_names(absent)}"] * bool(absent)
        problems += [f"have the unknown {list_names(map(str, more))}"] * bool(more)
        problem = f"the columns of {parameter} {' and '.join(problems)}: "
        problem += f"they must be {list_names(names)}, in any order"
        raise DataError(problem, parameter=parameter, code="mismatch")
    vectors = []
    for name in names:
        try:
            vectors.append(to_array(columns[name], np.float64, parameter))
        except UsageError as error:
            rule = f"the column {name} of {parameter} must be numbers"
            raise wrong_type(rule, columns[name], parameter) from error
    if len(set(map(np.shape, vectors))) > 1:
        problem = f"the columns of {parameter} differ in length"
        raise DataError(problem, parameter=parameter, code="wrong-length")
    return np.stack(vectors, axis=-1)


def name_values(vector: Any, parameter: str) -> Any:
    """Return a vector whose values have names, a series, as a dictionary; anything else as it is.

    Raises:
        DataError: if two values have the same name.

    >>> from xarray import DataArray
    >>> name_values(DataArray([0.5, 1.0], {"name": ["lm", "tm"]}, "name"), "weights")
    {'lm': 0.5, 'tm': 1.0}
    """
    if isinstance(vector, (Mapping, *_PLAIN)) or np.ndim(vector) > 1:
        return vector
    index = getattr(vector, "index", None)  # a method of sequences
    if index is None or callable(index):
        named = name_columns(vector, parameter)
        return to_plain_values(named) if isinstance(named, Mapping) else vector
    names = _to_names(index, parameter)
    return vector if names is None else dict(zip(names, vector.tolist(), strict=True))


def _split(table: Any, parameter: str) -> tuple[list[str] | None, Iterable[Any]]:
    """Return the names of the columns of a table, None if it has none, and the columns."""
    if isinstance(table, Mapping):
        return list(table), table.values()
    if isinstance(table, _PLAIN):
        return _split_rows(table, parameter)
    if fields := getattr(getattr(table, "dtype", None), "names", None):
        return list(fields), (table[name] for name in fields)
    if hasattr(table, "dims") and hasattr(table, "coords"):
        last = table.dims[-1] if table.dims else None
        labels = table.coords[last].values.tolist() if last in table.coords else []
        return _to_names(labels, parameter), np.moveaxis(np.asarray(table), -1, 0)
    if hasattr(table, "__arrow_c_stream__") and not hasattr(table, "__array__"):
        import pyarrow as pa

        table = pa.table(table)
    labels = getattr(table, "column_names", getattr(table, "columns", ()))
    columns = (from_arrow(table[label], numbers=True) for label in labels)
    return _to_names(labels, parameter), columns


def _split_rows(table: Any, parameter: str) -> tuple[list[str] | None, Iterable[Any]]:
    """Return the same of a sequence of rows, whose values may have names."""
    if not isinstance(table, list | tuple) or not table or isinstance(table[0], _PLAIN):
        return None, ()
    rows = [name_values(row, parameter) for row in table]
    if not all(isinstance(row, Mapping) for row in rows):
        return None, ()
    names = list(rows[0])
    if any(row.keys() != rows[0].keys() for row in rows):
        problem = f"the rows of {parameter} have different names"
        raise DataError(problem, parameter=parameter, code="mismatch")
    return names, ([row[name] for row in rows] for name in names)


def _to_names(labels: Iterable[Any], parameter: str) -> list[str] | None:
    """Return labels as names; None for 0, 1, … in this order, which are positions.

    Raises:
        DataError: if two are the same.
    """
    labels = list(labels)
    names = list(map(str, labels))
    if twice := find_repeated(names):
        problem = f"{parameter} has two columns {twice[0]}: rename one"
        raise DataError(problem, parameter=parameter, code="duplicate")
    return None if labels == list(range(len(labels))) else names
