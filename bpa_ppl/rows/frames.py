"""Tables of Arrow taken apart into columns: see `schema` for what they mean.

A row is a hypothesis with the `id` of its sentence, or a sentence with lists of its hypotheses: a
column `candidates` of objects, or `text` and other columns of lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.labels import repeated
from bpa_ppl.nbest import Int64
from bpa_ppl.rows.arrow import single_array, values_of
from bpa_ppl.rows.base import CANDIDATES, REFERENCES, TEXT, Rows
from bpa_ppl.rows.records import is_of_sentence
from bpa_ppl.rows.schema import Fields, SchemaReader

if TYPE_CHECKING:
    import pyarrow as pa


class FrameReader:
    """Takes tables of one file apart, which all have the same columns.

    Args:
        schema: checks the columns.

    >>> import pyarrow as pa
    >>> table = pa.table({"id": [0, 0], "text": ["a", "b"], "lm": [-1.5, -2], "by": ["x", "y"]})
    >>> rows = FrameReader(SchemaReader("dev.parquet")).rows(table)
    >>> rows.names, rows.features.tolist(), rows.strings, dict(rows.extras)
    (('lm',), [[-1.5], [-2.0]], ['a', 'b'], {'by': ('x', 'y')})
    """

    def __init__(self, schema: SchemaReader):
        self.schema = schema
        self._count = 0  # rows so far

    def rows(self, table: pa.Table, lines: Int64 | None = None) -> Rows:
        """Return the rows of a table.

        Args:
            table: the columns.
            lines: (rows of the table,) where each is in the file; rows are counted without it.

        Raises:
            DataError: naming row and column, if a value is not as the schema says.
        """
        numbers = self._count + 1 + np.arange(len(table)) if lines is None else lines
        self._count += len(table)
        return self.schema.rows(self._fields(table, numbers))

    def _fields(self, table: pa.Table, lines: Int64) -> Fields:
        import pyarrow as pa

        twice = repeated(table.column_names)
        if twice:
            raise self._error(f"two columns {min(twice)}: rename one")
        if CANDIDATES not in table.column_names:
            table = _flat(table)
        columns = {name: single_array(table[name]) for name in table.column_names}
        lists = columns.pop(CANDIDATES, None)
        hypotheses: dict[str, pa.Array]
        nested = True
        if lists is not None:
            if not (_is_list(lists.type) and pa.types.is_struct(lists.type.value_type)):
                raise self._error(f"{CANDIDATES} is of type {lists.type}, not lists of objects")
            parents = self._parents(lists, CANDIDATES, lines)
            inside = _flat(pa.Table.from_struct_array(lists.flatten()))
            hypotheses = {name: single_array(inside[name]) for name in inside.column_names}
        elif TEXT in columns and _is_list(columns[TEXT].type):
            parents = self._parents(columns[TEXT], TEXT, lines)
            sizes = np.bincount(parents, minlength=len(table))
            names = [n for n, column in columns.items() if _is_list(column.type)]
            hypotheses = {
                name: self._flattened(columns.pop(name), name, sizes)
                for name in names
                if name != REFERENCES
            }
        else:
            hypotheses = {n: columns.pop(n) for n in list(columns) if not is_of_sentence(n)}
            parents = np.arange(len(table))
            nested = False
        return Fields(
            {name: _column(column) for name, column in hypotheses.items()},
            {name: _objects(column) for name, column in columns.items()},
            parents,
            lines,
            nested,
        )

    def _parents(self, lists: pa.Array, name: str, lines: Int64) -> Int64:
        """Return the row that each value in a column of lists is from."""
        import pyarrow.compute as pc

        sizes = values_of(pc.list_value_length(lists), missing=0)
        if not sizes.all():
            line = int(lines[np.argmin(sizes)])
            raise self._error(f"{name} is empty: a list needs at least one hypothesis", line)
        return np.repeat(np.arange(len(sizes)), sizes)

    def _flattened(self, lists: pa.Array, name: str, sizes: Int64) -> pa.Array:
        """Return the values of lists of those sizes; null is a list of missing values."""
        import pyarrow as pa
        import pyarrow.compute as pc

        missing = values_of(lists.is_null().cast(pa.uint8())).astype(bool)
        found = values_of(pc.list_value_length(lists), missing=0)
        if not np.array_equal(found[~missing], sizes[~missing]):
            raise self._error(f"lists of {name} differ in length from those of {TEXT}")
        values = lists.flatten()
        if not missing.any():
            return values
        absent = np.repeat(missing, sizes)
        places = np.cumsum(~absent) - 1
        return values.take(pa.array(places, mask=absent))

    def _error(self, message: str, line: int | None = None) -> DataError:
        return DataError(message, self.schema.origin, line)


def columns_of(table: pa.Table) -> dict[str, Any]:
    """Return the columns of a table as `Fields` has them.

    >>> import pyarrow as pa
    >>> columns_of(pa.table({"lm": [-1.5, None], "by": ["x", "y"]}))
    {'lm': array([-1.5,  nan]), 'by': ['x', 'y']}
    """
    return {name: _column(single_array(table[name])) for name in table.column_names}


def _flat(table: pa.Table) -> pa.Table:
    """Return a table with the fields of objects under names with dots."""
    import pyarrow as pa

    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return table


def _column(column: pa.Array) -> Any:
    """Return numbers as an array, in which NaN is missing, and anything else as a list."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    if any(test(kind) for test in numeric):
        floats = pa.types.is_float32(kind) or pa.types.is_float64(kind)
        return values_of(column if floats else column.cast(pa.float64(), safe=False))
    return _objects(column)


def _objects(column: pa.Array) -> list[Any]:
    """Return values as a list; equal texts are one object, which makes comparisons fast."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_integer(kind) and not column.null_count:
        return list(values_of(column.cast(kind)).tolist())
    if pa.types.is_string_view(kind):
        column, kind = column.cast(pa.string()), pa.string()
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return list(column.to_pylist())
    encoded = column.cast(kind).dictionary_encode()
    strings = [*encoded.dictionary.to_pylist(), None]
    return [strings[i] for i in values_of(encoded.indices, missing=-1).tolist()]


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in tests)
