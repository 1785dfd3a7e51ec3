"""Records and Arrow tables taken apart into columns: see `schema` for what they mean.

A record, or a row of a table, is a candidate with the `id` of its sentence; a sentence with its
`candidates`, a list of objects or of texts; or answers of which some are preferred.

Columns of Arrow become arrays without `to_numpy` of PyArrow, which imports pandas wherever it is
installed; that takes longer than reading most files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl._runtime.arrays import Int64, to_members, to_plain_members, to_plain_values
from bpa_ppl._runtime.names import find_repeated
from bpa_ppl._runtime.values import RECIPES, abbreviate, describe_table, from_arrow
from bpa_ppl.errors import DataError, UsageError, quote
from bpa_ppl.formats.block import (
    CANDIDATES,
    ID,
    OF_SENTENCE,
    REFERENCE,
    REFERENCES,
    SOURCE,
    TEXT,
    Block,
)
from bpa_ppl.formats.preference_rows import (
    SETTINGS,
    Fields,
    Winners,
    find_answer_fields,
    find_named_form,
    parse_pair,
)
from bpa_ppl.formats.rules import refuse
from bpa_ppl.formats.schema import Schema, iter_field_names, split_field
from bpa_ppl.lists.labels import find_label
from bpa_ppl.lists.nbest import NBest

if TYPE_CHECKING:
    import pyarrow as pa

_ENDLESS = "objects are nested without an end"
_LIKE = """: write objects such as {"text": "a cat", "features": {"lm": -1.5}}"""


def read_rows(
    parts: Iterable[tuple[Sequence[Any] | pa.Table, Sequence[int] | Int64]], schema: Schema
) -> Iterator[Block]:
    """Yield the columns of consecutive rows of a file.

    Args:
        parts: records, or Arrow tables with the same columns, each with the line, or the number, of
            every row.
        schema: of the file.

    Raises:
        DataError: naming line and field, if a row is not as the schema says.

    >>> candidates = [{"text": "a cat", "scores": {"lm": -1.5}}, {"text": "cat"}]
    >>> records = [{"id": 3, "candidates": candidates}]
    >>> block = next(read_rows([(records, [1])], Schema("dev.jsonl")))
    >>> block.candidates, block.sentences
    ({'text': ['a cat', 'cat'], 'scores.lm': [-1.5, None]}, {'id': [3]})
    >>> import pyarrow as pa
    >>> table = pa.table({"id": [0, 0], "text": ["a", "b"], "lm": [-1.5, -2]})
    >>> block = next(read_rows([(table, [1, 2])], Schema("dev.parquet")))
    >>> block.sentences, block.candidates["lm"].to_pylist()
    ({'id': [0, 0]}, [-1.5, -2.0])
    """
    reader = _Rows(schema)
    for rows, lines in parts:
        try:
            block = reader.block(rows, lines)
        except RecursionError as error:
            raise schema.error(_ENDLESS, lines[0], "bad-data") from error
        yield block


def parse_records(records: Any, schema: Schema) -> Block:
    """Return the columns of records, of columns by name, or of a data frame that exports Arrow.

    >>> records = [{"id": 0, "text": "a", "features": {"lm": -1}, "year": 1990}]
    >>> parse_records(records, Schema()).candidates
    {'text': ['a'], 'features.lm': [-1], 'year': [1990]}
    """
    if hasattr(records, "__arrow_c_stream__"):
        rows: Any = _read_frame(records, schema)
    else:
        rows = _to_records(records)
    return next(read_rows([(rows, range(1, len(rows) + 1))], schema))


def _to_records(records: Any) -> list[Any]:
    """Return records of plain values."""
    if isinstance(records, Mapping):
        rule = "a column of records must be a sequence"
        columns = []
        for values in records.values():
            is_array = hasattr(values, "__array__") and np.ndim(values)
            plain = to_plain_values(values) if is_array else values
            columns.append(to_members(plain, "records", rule))
        try:
            rows = [dict(zip(records, row, strict=True)) for row in zip(*columns, strict=True)]
        except ValueError as error:
            problem = "the columns of records differ in length"
            raise DataError(problem, parameter="records", code="wrong-length") from error
    else:
        rule = "records must be dictionaries, columns by name or a data frame"
        rows = to_members(records, "records", rule)
    if not rows:
        raise UsageError("reading needs at least one record", parameter="records", code="no-data")
    try:
        return list(map(to_plain_values, rows))
    except RecursionError as error:
        raise DataError(_ENDLESS, parameter="records") from error


def _read_frame(frame: Any, schema: Schema) -> pa.Table | list[Any]:
    """Return a data frame as a table; as records if Arrow cannot read values of its columns."""
    import pyarrow as pa

    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, RuntimeError, OverflowError) as error:
        levels = getattr(getattr(frame, "index", None), "names", ())
        index = [name for name in levels if name is not None]
        if twice := find_repeated(map(str, (*index, *getattr(frame, "columns", ())))):
            raise _repetition_error(schema, twice) from error
        # Columns in pandas may have values of any type.
        if hasattr(frame, "columns") and hasattr(frame, "reset_index"):
            frame = frame.reset_index() if index else frame
            return _to_records(frame.rename(columns=str).to_dict("records"))
        reason = str(error).splitlines()[0]
        problem = f"Arrow cannot read a column of the data frame: {reason}: convert it to numbers "
        raise DataError(f"{problem}or texts", parameter="records") from error
    # What pandas calls an index without a name, which is not a column of the user.
    unnamed = [name for name in table.column_names if name.startswith("__index_level_")]
    return table.drop_columns(unnamed)


class _Rows:
    """Takes the rows of one file apart, block by block."""

    def __init__(self, schema: Schema):
        self._schema = schema
        self._error = partial(schema.error, code="bad-data")
        self._pair: Fields | None = None  # the fields of answers that are compared
        self._winners = Winners(schema.names)
        self._nested: bool | None = None  # whether a record is a sentence with its candidates

    def block(self, rows: Sequence[Any] | pa.Table, numbers: Sequence[int] | Int64) -> Block:
        """Return the columns of some rows, of which each is in a line of this number."""
        lines_of = np.asarray(numbers, np.int64)
        if not isinstance(rows, Sequence):
            if (columns := self._read_table(rows)) is not None:
                return _make_block(columns, lines_of)
            if not len(rows):
                return Block({TEXT: []}, {ID: []}, None, lines_of)
            rows = rows.to_pylist()
        lines: list[int] = lines_of.tolist()
        if self._nested is None and len(rows) == 1 and (table := describe_table(rows[0])):
            raise self._error(table, lines[0])
        records = self._read_records(rows, lines)
        if not self._nested:
            return _make_block(self._columns([record for record, _ in records], lines), lines_of)
        pairs = zip(records, lines, strict=True)
        lists = [
            self._candidates(record[CANDIDATES], line, named) for (record, named), line in pairs
        ]
        sizes = list(map(len, lists))
        parents = np.repeat(np.arange(len(lists)), sizes)
        of_candidates: list[int] = lines_of[parents].tolist()
        candidates: dict[str, Any] = {TEXT: []}
        if len(parents):
            candidates = self._columns(list(chain.from_iterable(lists)), of_candidates)
        fields = self._values([record for record, _ in records], lines)
        sentences = {n: to_plain_members(v) for n, v in fields if n != CANDIDATES}
        for name, values in self._take_lists(sentences):
            column = self._spread(name, values, sizes, lines)
            self._add(candidates, name, column, of_candidates)
        return Block(candidates, sentences, parents, lines_of)

    def _read_table(self, table: pa.Table) -> dict[str, Any] | None:
        """Return the columns of a table; None if each row is several candidates."""
        import pyarrow as pa

        flat = table
        while any(pa.types.is_struct(kind) for kind in flat.schema.types):
            flat = flat.flatten()  # fields of objects have names with dots
        if twice := find_repeated(flat.column_names):
            raise _repetition_error(self._schema, twice)
        columns = {name: of[name] for of in (table, flat) for name in of.column_names}
        renamed = self._schema.rename(columns)
        for field in table.schema:
            # An extension type that is not registered is in the metadata.
            extension = getattr(field.type, "extension_name", None)
            extension = extension or (field.metadata or {}).get(b"ARROW:extension:name", b"")
            if "period" in str(extension):
                problem = f"the column {field.name} is of periods of time: convert it to texts, or "
                problem += "to numbers with a unit"
                raise self._error(problem, code="wrong-type")
        named = not self._schema.names.keys().isdisjoint(SETTINGS)
        nested = self._schema.typed and CANDIDATES in renamed
        if nested or named or find_answer_fields(renamed):
            return None
        return self._schema.rename({name: flat[name] for name in flat.column_names})

    def _read_records(
        self, rows: Sequence[Any], lines: Sequence[int]
    ) -> list[tuple[dict[Any, Any], bool]]:
        """Return records with the usual fields, all of which have candidates, or none.

        And of each whether the fields of its candidates may have other names in the file.
        """
        whole: list[dict[Any, Any]] = []
        for record, line in zip(rows, lines, strict=True):
            if not isinstance(record, dict):
                problem = f"{abbreviate(record)} is not an object with fields"
                if isinstance(record, list) and self._schema.origin != NBest.origin:
                    of_objects = {dict}.issuperset(map(type, record))
                    problem += f": write one on each line, or {RECIPES}" if of_objects else _LIKE
                raise self._error(problem, line)
            if self._schema.names:
                record = self._schema.rename(record)
                if not whole:
                    used = (ID, *SETTINGS, *([CANDIDATES] if CANDIDATES in record else []))
                    required = [n for n in used if n in self._schema.names]
                    self._schema.require(required, record, line)
            whole.append(record)
        answers = {n: of for n, of in enumerate(whole) if {TEXT, CANDIDATES}.isdisjoint(of)}
        forms = map(find_answer_fields, answers.values())
        self._pair = self._pair or next(filter(None, forms), None)
        if answers and self._pair is None and (form := find_named_form(self._schema.names)):
            first = min(answers)
            self._schema.require(form, whole[first], lines[first])
        if self._pair is not None:
            self._winners.add(answers.values())
            if not self._schema.typed:
                self._require_texts(answers, self._pair[:2], lines)
        records: list[tuple[dict[Any, Any], bool]] = []
        for number, (record, line) in enumerate(zip(whole, lines, strict=True)):
            renamed = bool(self._schema.names)
            if self._pair is not None and number in answers:
                record, renamed = self._read_pair(record, line, self._pair), False
            if self._nested and CANDIDATES not in record and TEXT not in record:
                record = {**record, CANDIDATES: []}
            records.append((record, renamed))
            nested = CANDIDATES in record
            self._nested = nested if self._nested is None else self._nested
            if nested is not self._nested:
                what = "candidates" if nested else "no candidates"
                problem = f"{what}, unlike the first line: use one form throughout"
                raise self._error(problem, line)
        return records

    def _require_texts(
        self, rows: Mapping[int, Mapping[str, Any]], fields: Fields, lines: Sequence[int]
    ) -> None:
        """Refuse cells of answers that are lists or objects."""
        numbers = list(rows)
        for field in fields:
            name = self._schema.names.get(field, field)

            def error(row: int, problem: str, name: str = name, **details: Any) -> DataError:
                return self._schema.error(f"{name} {problem}", lines[numbers[row]], **details)

            refuse("cell", [row.get(field) for row in rows.values()], error, name)

    def _read_pair(self, record: dict[str, Any], line: int, fields: Fields) -> dict[str, Any]:
        """Return a row of preferences; one that is dropped is a sentence without candidates."""
        try:
            return parse_pair(record, fields, self._error, line, self._schema.names, self._winners)
        except DataError as error:
            if self._schema.bad != "drop" or error.parameter != "bad":
                raise
            self._schema.dropped_rows.append(f"row {line}: {error.problem}")
        return {ID: record[ID], CANDIDATES: []} if ID in record else {CANDIDATES: []}

    def _is_named(self, name: str) -> bool:
        """Return whether a column is one of numbers by its name: a feature, or the gain."""
        if belongs_to_sentence(name) or name == TEXT:
            return False
        return bool(self._schema.roles.is_feature(name)) or name in self._schema.roles.numbers

    def _take_lists(self, sentences: dict[str, list[Any]]) -> Iterator[tuple[str, list[Any]]]:
        """Yield columns of sentences that have lists and are named, which are taken out.

        So are fields of objects, with dots in their names.
        """

        def has_lists(name: str, values: Sequence[Any]) -> bool:
            return self._is_named(name) and any(isinstance(of, list | tuple) for of in values)

        for column in list(sentences):
            values = sentences[column]
            if has_lists(column, values):
                yield column, sentences.pop(column)
                continue
            objects = [{column: of} for of in values if isinstance(of, dict)]
            for name in dict.fromkeys(chain.from_iterable(map(iter_field_names, objects))):
                parts = [split_field({column: of}, name) or ({column: of}, None) for of in values]
                if has_lists(name, fields := [value for _, value in parts]):
                    yield name, fields
                    values = [rest.get(column) for rest, _ in parts]
                    sentences[column] = values
            if objects and all(value is None for value in values):
                sentences.pop(column)

    def _spread(
        self, name: str, values: Sequence[Any], sizes: Sequence[int], lines: Sequence[int]
    ) -> list[Any]:
        """Return the column of candidates whose values are in a list for each sentence."""
        column: list[Any] = []
        for value, size, line in zip(values, sizes, lines, strict=True):
            if value is not None and not (isinstance(value, list | tuple) and len(value) == size):
                what = f"{len(value)} values" if isinstance(value, list | tuple) else "no list"
                problem = f"{name} has {what}, but there are {size} candidates: give each its own"
                raise self._error(problem, line)
            column += [None] * size if value is None else value
        return column

    def _candidates(self, value: Any, line: int, renamed: bool) -> Sequence[dict[str, Any]]:
        """Return the candidates of a record as objects; a text is one with a text alone."""
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            problem = f"{CANDIDATES} is {abbreviate(value)}, not a list of objects{_LIKE}"
            raise self._error(problem, line)
        if not renamed and {dict}.issuperset(map(type, value)):
            return value
        candidates = []
        for place, candidate in enumerate(value):
            fields = {TEXT: candidate} if isinstance(candidate, str) else candidate
            if not isinstance(fields, dict):
                problem = f"{CANDIDATES}[{place}] is {abbreviate(candidate)}, neither a text nor "
                raise self._error(f"{problem}an object with a text{_LIKE}", line)
            if fields is candidate and renamed:
                fields = self._schema.rename(fields, of_candidate=True)
            candidates.append(fields)
        return candidates

    def _columns(
        self, objects: Sequence[dict[str, Any]], lines: Sequence[int], prefix: str = ""
    ) -> dict[str, Any]:
        """Return a column for each field; a field of an object inside has a name with a dot."""
        columns: dict[str, Any] = {}
        for name, values in self._values(objects, lines):
            column, types = prefix + name, set(map(type, values))
            if not types <= {float, int, str}:
                values = to_plain_members(values)
                types = set(map(type, values))
            if dict in types and not column.startswith(OF_SENTENCE):
                inside = [value if isinstance(value, dict) else {} for value in values]
                for inner, columns_inside in self._columns(inside, lines, f"{column}.").items():
                    self._add(columns, inner, columns_inside, lines)
                values = [None if isinstance(v, dict) and v else v for v in values]
                if all(value is None for value in values):
                    continue
            self._add(columns, column, values, lines)
        return columns

    def _values(
        self, objects: Sequence[dict[Any, Any]], lines: Sequence[int]
    ) -> Iterator[tuple[str, list[Any]]]:
        """Yield the name of each field with the values of all objects, None where one lacks it."""
        # Most objects have the fields of the first one: a set is faster than their order.
        alike = set().union(*objects) == objects[0].keys()
        for name in objects[0] if alike else dict.fromkeys(chain.from_iterable(objects)):
            if not isinstance(name, str):
                line = next(n for of, n in zip(objects, lines, strict=True) if name in of)
                problem = f"the name of a field must be a text, not {quote(name)}"
                raise self._error(problem, line)
            yield name, [fields.get(name) for fields in objects]

    def _add(self, columns: dict[str, Any], name: str, values: Any, lines: Sequence[int]) -> None:
        """Add a column; one object may not have two fields of one flattened name."""
        first = columns.get(name)
        if first is not None:
            values = list(values)
            for row, (one, other) in enumerate(zip(first, values, strict=True)):
                if one is not None and other is not None:
                    raise self._error(f"two fields {name}: rename one", lines[row])
                values[row] = other if one is None else one
        columns[name] = values


def belongs_to_sentence(name: str) -> bool:
    """Return whether a field is one of the sentence where a record is a candidate.

    >>> [belongs_to_sentence(name) for name in ("reference[0]", "sentence.doc", "lm")]
    [True, True, False]
    """
    names = (ID, SOURCE, REFERENCES)
    return name in names or find_label(name) == REFERENCE or name.startswith(OF_SENTENCE)


def _make_block(columns: dict[str, Any], lines: Int64) -> Block:
    """Return the columns of candidates, and of their sentences."""
    sentences = {n: v for n, v in columns.items() if belongs_to_sentence(n)}
    candidates = {n: v for n, v in columns.items() if n not in sentences}
    return Block(candidates, {n: from_arrow(v) for n, v in sentences.items()}, None, lines)


def _repetition_error(schema: Schema, names: Iterable[str]) -> DataError:
    return schema.error(f"two columns {min(names)}: rename one", code="duplicate")
