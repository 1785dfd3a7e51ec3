"""Tables of Arrow taken apart into rows.

A row is a hypothesis with the `id` of its sentence (the long form), or a sentence with lists of
its hypotheses: a column `candidates` of objects, or `text` and other columns of lists. In the long
form `source`, `reference` (`reference[0]`, `reference[1]`, … where there are several) and columns
whose names begin with `sentence.` belong to the sentence. Numbers become features, all others
extras; null, and NaN, is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError
from bpa_ppl.labels import label_of, places_of, repeated
from bpa_ppl.rows.arrow import values_of, whole
from bpa_ppl.rows.base import (
    CANDIDATES,
    ID,
    OF_SENTENCE,
    REFERENCE,
    REFERENCES,
    SOURCE,
    TEXT,
    TOO_LARGE,
    TOTAL,
    Identifiers,
    Rows,
)
from bpa_ppl.rows.records import EMPTY, NUMBER, OBJECT, WORDS, looks_numeric, shown

if TYPE_CHECKING:
    import pyarrow as pa

_KNOWN = (ID, SOURCE, REFERENCE, REFERENCES)


class _Parts(NamedTuple):
    """The columns of a table.

    Attributes:
        hypotheses: of one value a hypothesis.
        sentences: of one value a row of the table.
        parents: (hypotheses,) the row of the table that each hypothesis is from.
    """

    hypotheses: dict[str, pa.Array]
    sentences: dict[str, pa.Array]
    parents: npt.NDArray[np.int64]


class FrameReader:
    """Takes tables of one file apart, which all have the same columns.

    Args:
        origin: where they are from, for messages.
        bad: "error", or "drop" to leave out a hypothesis with a value that is no finite number.
        first_id: the number of the first sentence where ids are texts.
        printed: whether all ids are texts, as in a text file.

    >>> import pyarrow as pa
    >>> table = pa.table({"id": [0, 0], "text": ["a", "b"], "lm": [-1.5, -2], "by": ["x", "y"]})
    >>> rows = FrameReader("dev.parquet").rows(table)
    >>> rows.names, rows.features.tolist(), rows.strings, dict(rows.extras)
    (('lm',), [[-1.5], [-2.0]], ['a', 'b'], {'by': ('x', 'y')})
    """

    def __init__(self, origin: str, bad: str = "error", first_id: int = 0, printed: bool = False):
        self.origin, self.bad = origin, bad
        self.identifiers = Identifiers(origin, first_id, printed)
        self._count = 0  # rows so far
        self._printed = printed
        self._valued: set[str] = set()  # columns of texts that have had one that is not empty

    def rows(self, table: pa.Table, lines: npt.NDArray[np.int64] | None = None) -> Rows:
        """Return the rows of some lines of the table.

        Args:
            table: the columns.
            lines: (rows of the table,) where each is in the file; rows are counted without it.

        Raises:
            DataError: naming row and column, if a value is not as it should be.
        """
        numbers = self._count + 1 + np.arange(len(table)) if lines is None else lines
        self._count += len(table)
        parts = _parts(table, self.origin, numbers)
        if TEXT not in parts.hypotheses:
            raise self._error(f"no column {TEXT}: there are {', '.join(table.column_names)}")
        kinds = {name: self._kind(column) for name, column in parts.hypotheses.items()}
        names = [name for name, kind in kinds.items() if kind == NUMBER]
        values = self._numbers([parts.hypotheses[name] for name in names], len(parts.parents))
        rows_of = numbers[parts.parents]
        bad = np.any(np.abs(values) >= TOO_LARGE, axis=1)
        ids = self._ids(parts, numbers)
        dropped: tuple[int, ...] = ()
        if bad.any():
            dropped = self._dropped(bad, parts, names, values, rows_of, ids)
            parts, values = _without(parts, bad), values[~bad]
            ids, rows_of = ids[~bad], rows_of[~bad]
        return self._made(parts, kinds, names, values.astype(np.float32), ids, rows_of, dropped)

    def _made(
        self,
        parts: _Parts,
        kinds: Mapping[str, str],
        names: list[str],
        values: npt.NDArray[np.float32],
        ids: npt.NDArray[np.int64],
        lines: npt.NDArray[np.int64],
        dropped: tuple[int, ...],
    ) -> Rows:
        strings, index = self._texts(parts.hypotheses[TEXT], TEXT, lines)
        features = [name for name in names if name != TOTAL]
        places = places_of(features, names)
        extras: dict[str, Any] = {}
        for name, kind in kinds.items():
            if kind == WORDS and name != TEXT:
                extras[name] = tuple(_shared(parts.hypotheses[name]))
                self._check_quoted(name, extras[name], lines)
            elif kind in (OBJECT, EMPTY):
                extras[name] = tuple(parts.hypotheses[name].to_pylist())
        return Rows(
            tuple(features),
            ids,
            lines,
            values[:, places],
            values[:, names.index(TOTAL)] if TOTAL in names else None,
            strings,
            index,
            dropped,
            extras,
            **self._of_sentences(parts, lines),
        )

    def _ids(self, parts: _Parts, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return (hypotheses,) the sentence ids; sentences without any are counted."""
        if ID not in parts.sentences:
            return self.identifiers.first_id + numbers[parts.parents] - 1
        encoded = _encoded(parts.sentences[ID])
        index = _indices(encoded, self.origin, ID, numbers)
        # A dictionary has its values in the order in which they appear, and no others.
        _, first = np.unique(index, return_index=True)
        found = [
            self.identifiers.number(given, line)
            for given, line in zip(
                encoded.dictionary.to_pylist(), numbers[first].tolist(), strict=True
            )
        ]
        return np.array(found, np.int64)[index][parts.parents]

    def _numbers(self, columns: list[pa.Array], rows: int) -> npt.NDArray[np.float64]:
        """Return (hypotheses, columns); what is missing is NaN."""
        import pyarrow as pa

        values = np.empty((rows, len(columns)))
        for place, column in enumerate(columns):
            values[:, place] = values_of(column.cast(pa.float64(), safe=False))
        return values

    def _dropped(
        self,
        bad: npt.NDArray[np.bool_],
        parts: _Parts,
        names: list[str],
        values: npt.NDArray[np.float64],
        lines: npt.NDArray[np.int64],
        ids: npt.NDArray[np.int64],
    ) -> tuple[int, ...]:
        """Return the ids of hypotheses with a bad value, or refuse the first of them."""
        if self.bad == "drop":
            return tuple(ids[bad].tolist())
        row = int(np.argmax(bad))
        name = names[int(np.argmax(np.abs(values[row]) >= TOO_LARGE))]
        value = parts.hypotheses[name][row].as_py()
        raise self._error(
            f"{name} is {shown(value)}, not a finite 32-bit number: correct it, or drop such "
            "hypotheses (bad: drop)",
            int(lines[row]),
        )

    def _of_sentences(self, parts: _Parts, lines: npt.NDArray[np.int64]) -> dict[str, Any]:
        """Return the arguments of `Rows` for what belongs to sentences."""
        columns, parents = parts.sentences, parts.parents
        extras = {
            name.removeprefix(OF_SENTENCE): _spread(column.to_pylist(), parents)
            for name, column in columns.items()
            if name not in _KNOWN and label_of(name) != REFERENCE
        }
        if self.identifiers.texts:
            extras[ID] = _spread(_shared(columns[ID]), parents)
        source = columns.get(SOURCE)
        references = self._references(columns)
        sources = None if source is None else self._optional(source, SOURCE)
        return {
            "sources": None if sources is None else _spread(sources, parents),
            "references": None if references is None else _spread(references, parents),
            "sentence_extras": extras,
        }

    def _references(self, columns: Mapping[str, pa.Array]) -> list[tuple[str, ...]] | None:
        """Return (rows of the table,) tuples of references."""
        names = [n for n in columns if label_of(n) == REFERENCE or n == REFERENCES]
        if not names:
            return None
        if REFERENCES in names and len(names) > 1:
            raise self._error(f"columns {' and '.join(names)}: leave one out")
        column = columns[names[0]]
        if len(names) > 1 or not _is_list(column.type):
            texts = [self._optional(columns[name], name) for name in names]
            # A text file has no other way to say that there is none.
            return [
                tuple(t for t in row if t is not None and (t or not self._printed))
                for row in zip(*texts, strict=True)
            ]
        given = [entry or () for entry in column.to_pylist()]
        for place, entry in enumerate(given):
            if not all(isinstance(text, str) for text in entry):
                raise self._error(f"{names[0]} is {shown(entry)}, not a list of texts", place + 1)
        return list(map(tuple, given))

    def _optional(self, column: pa.Array, name: str) -> list[str | None]:
        """Return texts, None where one is missing."""
        if self._kind(column) not in (WORDS, EMPTY):
            raise self._error(f"{name} is of type {column.type}, where texts are needed")
        return _shared(column)

    def _texts(
        self, column: pa.Array, name: str, lines: npt.NDArray[np.int64]
    ) -> tuple[list[str], npt.NDArray[np.int32]]:
        """Return the distinct texts of a column, and the index of each row into them."""
        if self._kind(column) != WORDS:
            raise self._error(f"{name} is of type {column.type}, where texts are needed")
        encoded = _encoded(column)
        index = _indices(encoded, self.origin, name, lines).astype(np.int32)
        return encoded.dictionary.to_pylist(), index

    def _kind(self, column: pa.Array) -> str:
        import pyarrow as pa

        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_null(kind):
            return EMPTY
        numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        if any(test(kind) for test in numeric):
            return NUMBER
        texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
        return WORDS if any(test(kind) for test in texts) else OBJECT

    def _check_quoted(
        self, name: str, texts: Sequence[str | None], lines: npt.NDArray[np.int64]
    ) -> None:
        """Refuse a column of texts that print numbers; a text file has no types."""
        if self._printed or name in self._valued:
            return
        row = next((row for row, text in enumerate(texts) if text), None)
        if row is None:
            return
        self._valued.add(name)
        if looks_numeric(str(texts[row])):
            raise self._error(
                f"{name} is {shown(texts[row])}, a number in a column of texts: make it a column "
                "of numbers, or leave it out",
                int(lines[row]),
            )

    def _error(self, message: str, line: int | None = None) -> DataError:
        return DataError(message, self.origin, line)


def _parts(table: pa.Table, origin: str, numbers: npt.NDArray[np.int64]) -> _Parts:
    """Tell the columns of hypotheses from those of sentences."""
    import pyarrow as pa

    twice = repeated(table.column_names)
    if twice:
        raise DataError(f"two columns {min(twice)}: rename one", origin)
    if CANDIDATES not in table.column_names:
        table = _flat(table)
    columns = {name: whole(table[name]) for name in table.column_names}
    lists = columns.pop(CANDIDATES, None)
    if lists is not None:
        if not (_is_list(lists.type) and pa.types.is_struct(lists.type.value_type)):
            raise DataError(f"{CANDIDATES} is of type {lists.type}, not lists of objects", origin)
        parents = _parents(lists, CANDIDATES, origin, numbers)
        inside = _flat(pa.Table.from_struct_array(lists.flatten()))
        return _Parts({n: whole(inside[n]) for n in inside.column_names}, columns, parents)
    if TEXT in columns and _is_list(columns[TEXT].type):
        parents = _parents(columns[TEXT], TEXT, origin, numbers)
        listed = [n for n in columns if _is_list(columns[n].type) and not _of_sentence(n)]
        sizes = np.bincount(parents, minlength=len(table))
        flat = {name: _flattened(columns.pop(name), name, sizes, origin) for name in listed}
        return _Parts(flat, columns, parents)
    sentences = {name: columns.pop(name) for name in list(columns) if _of_sentence(name)}
    if ID not in sentences:
        raise DataError(f"no column {ID}, which says whose hypothesis a row is", origin)
    return _Parts(columns, sentences, np.arange(len(table)))


def _without(parts: _Parts, bad: npt.NDArray[np.bool_]) -> _Parts:
    import pyarrow as pa

    kept = pa.array(~bad)
    hypotheses = {name: column.filter(kept) for name, column in parts.hypotheses.items()}
    return parts._replace(hypotheses=hypotheses, parents=parts.parents[~bad])


def _flat(table: pa.Table) -> pa.Table:
    """Return a table with the fields of objects under names with dots."""
    import pyarrow as pa

    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return table


def _parents(
    lists: pa.Array, name: str, origin: str, numbers: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the row that each value in a column of lists is from."""
    import pyarrow.compute as pc

    sizes = values_of(pc.list_value_length(lists), missing=0)
    if not sizes.all():
        raise DataError(
            f"{name} is empty: a list has at least one hypothesis",
            origin,
            int(numbers[np.argmin(sizes)]),
        )
    return np.repeat(np.arange(len(sizes)), sizes)


def _flattened(lists: pa.Array, name: str, sizes: npt.NDArray[np.int64], origin: str) -> pa.Array:
    """Return the values of lists of those sizes; null is a list of missing values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = np.array(lists.is_null().to_pylist(), bool)
    found = values_of(pc.list_value_length(lists), missing=0)
    if not np.array_equal(found[~missing], sizes[~missing]):
        raise DataError(f"lists of {name} differ in length from those of {TEXT}", origin)
    values = lists.flatten()
    if not missing.any():
        return values
    absent = np.repeat(missing, sizes)
    places = np.cumsum(~absent) - 1
    return values.take(pa.array(places, mask=absent))


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in tests)


def _of_sentence(name: str) -> bool:
    return name in _KNOWN or name.startswith((OF_SENTENCE, f"{REFERENCE}["))


def _encoded(column: pa.Array) -> pa.Array:
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    kind = pa.string() if pa.types.is_string_view(kind) or pa.types.is_null(kind) else kind
    return column.cast(kind).dictionary_encode()


def _shared(column: pa.Array) -> list[Any]:
    """Return texts, equal ones as one object: they are compared row by row. Null is None."""
    encoded = _encoded(column)
    strings = [*encoded.dictionary.to_pylist(), None]
    return [strings[i] for i in values_of(encoded.indices, missing=-1).tolist()]


def _indices(
    encoded: pa.Array, origin: str, name: str, lines: npt.NDArray[np.int64] | None
) -> npt.NDArray[np.int64]:
    if encoded.null_count:
        row = int(np.argmin(encoded.is_valid().to_numpy(zero_copy_only=False)))
        line = row + 1 if lines is None else int(lines[row])
        raise DataError(f"{name} is missing: give one in each row", origin, line)
    return values_of(encoded.indices).astype(np.int64)


def _spread(values: Sequence[Any], parents: npt.NDArray[np.int64]) -> list[Any]:
    return [values[row] for row in parents.tolist()]
