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
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl._runtime.arrays import (
    Int64,
    to_members,
    to_plain_members,
    to_plain_values,
)
from bpa_ppl.errors import DataError, locate, needs, quote
from bpa_ppl.formats.block import (
    CANDIDATES,
    ID,
    OF_SENTENCE,
    REFERENCE,
    REFERENCES,
    SOURCE,
    TEXT,
    TOTAL,
    Block,
    ColumnNames,
    ReadOptions,
)
from bpa_ppl.formats.preference_rows import SETTINGS, Fields, find_answer_fields, parse_pair
from bpa_ppl.formats.values import NUMBER, abbreviate, from_arrow, kind_of
from bpa_ppl.lists.labels import find_label, find_repeated
from bpa_ppl.lists.nbest import NBest

if TYPE_CHECKING:
    import pyarrow as pa

IN_MEMORY = ReadOptions(NBest.origin, names=ColumnNames({}, NBest.origin))
#: Of a table by columns.
BY_COLUMNS = (
    "an object with columns, as pandas writes a table by default: write an object for each row, in "
    "pandas with frame.to_json(PATH, orient='records', lines=True)"
)
_LIKE = """: write objects such as {"text": "a cat", "features": {"lm": -1.5}}"""


def parse_records(records: Any, options: ReadOptions = IN_MEMORY) -> Block:
    """Return the columns of records, of columns by name, or of a data frame that exports Arrow.

    >>> parse_records([{"id": 0, "text": "a", "features": {"lm": -1}, "year": 1990}]).candidates
    {'text': ['a'], 'features.lm': [-1], 'year': [1990]}
    """
    if hasattr(records, "__arrow_c_stream__"):
        return _frame_columns(records, options)
    if isinstance(records, Mapping):
        rule = "a column of records must be a sequence"
        columns = [_members(_to_list(values), rule) for values in records.values()]
        try:
            rows = [dict(zip(records, row, strict=True)) for row in zip(*columns, strict=True)]
        except ValueError as error:
            problem = "the columns of records differ in length"
            raise DataError(problem, parameter="records", code="wrong-length") from error
    else:
        rows = _members(records, "records must be dictionaries, columns by name or a data frame")
    if not rows:
        raise needs("reading", "at least one record", "records", code="no-data")
    try:
        rows = list(map(to_plain_values, rows))
    except RecursionError as error:
        problem = "objects are nested without an end"
        raise DataError(problem, parameter="records") from error
    return RecordReader(options).block(rows, range(1, len(rows) + 1))


def _to_list(values: Any) -> Any:
    """Return a column that is an array, or like one, as a list; and any other as it is."""
    return to_plain_values(values) if hasattr(values, "__array__") and np.ndim(values) else values


def _members(values: Any, rule: str) -> list[Any]:
    return to_members(values, "records", rule)


def _frame_columns(frame: Any, options: ReadOptions) -> Block:
    import pyarrow as pa

    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, RuntimeError, OverflowError) as error:
        levels = getattr(getattr(frame, "index", None), "names", ())
        index = [name for name in levels if name is not None]
        if twice := find_repeated(map(str, (*index, *getattr(frame, "columns", ())))):
            raise _repetition_error(options, twice) from error
        # Columns in pandas may have values of any type.
        if hasattr(frame, "columns") and hasattr(frame, "reset_index"):
            frame = frame.reset_index() if index else frame
            return parse_records(frame.rename(columns=str).to_dict("records"), options)
        reason = str(error).splitlines()[0]
        problem = f"Arrow cannot read a column of the data frame: {reason}: convert it to numbers "
        raise DataError(f"{problem}or texts", parameter="records") from error
    # What pandas calls an index without a name, which is not a column of the user.
    unnamed = [name for name in table.column_names if name.startswith("__index_level_")]
    return parse_table(options, table.drop_columns(unnamed))


class RecordReader:
    """Takes the records of one file apart, block by block.

    Args:
        options: how to read.
        used: the columns that are read, those of objects inside by their names with dots; None
            reads all. In records that have few fields in common, all columns together are much
            larger than the records.

    Attributes:
        nested: whether a record is a sentence with its candidates; None before the first one.
        unused: fields of candidates that were not read, and whether each is a number.

    >>> reader = RecordReader(ReadOptions("dev.jsonl"))
    >>> candidates = [{"text": "a cat", "scores": {"lm": -1.5}}, {"text": "cat"}]
    >>> columns = reader.block([{"id": 3, "candidates": candidates}], [1])
    >>> columns.candidates, columns.sentences
    ({'text': ['a cat', 'cat'], 'scores.lm': [-1.5, None]}, {'id': [3]})
    """

    def __init__(self, options: ReadOptions, used: Iterable[str] | None = None):
        self._names, self._bad = options.names, options.bad
        self._roles = options.roles
        self._dropped: list[str] = []  # rows of a block
        self._named: set[int] = set()  # lines whose candidates have the usual names
        self._pair: Fields | None = None  # the fields of answers that are compared
        self._error = partial(options.error, code="bad-data")
        self.nested: bool | None = None
        self.unused: dict[str, bool] = {}
        self._used: set[str] | None = None
        if used is not None:
            self._used = {ID, SOURCE, TEXT, TOTAL, CANDIDATES}
            for name in used:
                parts = name.split(".")
                self._used.update(".".join(parts[: k + 1]) for k in range(len(parts)))

    def block(self, records: Sequence[Any], lines: Sequence[int]) -> Block:
        """Return the columns of some records.

        Args:
            records: dictionaries.
            lines: the line, or the number, of each.

        Raises:
            DataError: naming line and field, if a record is not as the schema says.
        """
        try:
            return self._columns_of(records, lines)
        except RecursionError as error:
            raise self._error("objects are nested without an end", lines[0]) from error

    def _columns_of(self, objects: Sequence[Any], lines: Sequence[int]) -> Block:
        """Return the columns of some records."""
        self._dropped, self._named = [], set()
        if self.nested is None and len(objects) == 1 and is_by_columns(objects[0]):
            raise self._error(BY_COLUMNS, lines[0])
        records = self._records(objects, lines)
        numbers = np.array(lines, np.int64)
        if not self.nested:
            columns = self._columns(records, lines)
            sentences = {n: v for n, v in columns.items() if belongs_to_sentence(n)}
            candidates = {n: v for n, v in columns.items() if n not in sentences}
            return Block(candidates, sentences, None, numbers)
        pairs = zip(records, lines, strict=True)
        lists = [self._candidates(record[CANDIDATES], line) for record, line in pairs]
        sizes = list(map(len, lists))
        parents = np.repeat(np.arange(len(lists)), sizes)
        candidates = {TEXT: []}
        if len(parents):
            candidates = self._columns(list(chain.from_iterable(lists)), numbers[parents].tolist())
        fields = self._values(records, lines)
        sentences = {n: to_plain_members(v) for n, v in fields if n != CANDIDATES}
        for name in [n for n, v in sentences.items() if self._is_named(n) and _has_lists(v)]:
            column = self._spread_over(name, sentences.pop(name), sizes, lines)
            self._add(candidates, name, column, numbers[parents].tolist())
        dropped = tuple(self._dropped)
        return Block(candidates, sentences, parents, numbers, dropped=dropped)

    def _is_named(self, name: str) -> bool:
        """Return whether a column is one of numbers by its name: a feature, or the gain."""
        if belongs_to_sentence(name) or name == TEXT:
            return False
        return bool(self._roles.is_feature(name)) or name in self._roles.numbers

    def _spread_over(
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

    def _records(self, objects: Sequence[Any], lines: Sequence[int]) -> list[dict[Any, Any]]:
        """Return records with the usual fields, all of which have candidates, or none."""
        records: list[dict[Any, Any]] = []
        for record, line in zip(objects, lines, strict=True):
            if not isinstance(record, dict):
                raise self._error(f"{abbreviate(record)} is not an object with fields", line)
            if self._names.names:
                record = self._names.fields(record)
                if not records:
                    used = (ID, *SETTINGS, *([CANDIDATES] if CANDIDATES in record else []))
                    required = [n for n in used if n in self._names.names]
                    self._names.require(required, record, line)
            if {TEXT, CANDIDATES}.isdisjoint(record):
                self._pair = self._pair or find_answer_fields(record)
                if self._pair is not None:
                    record = self._answers(record, line, self._pair)
                    self._named.add(line)
            if self.nested and CANDIDATES not in record and TEXT not in record:
                record = {**record, CANDIDATES: []}
            records.append(record)
            nested = CANDIDATES in record
            self.nested = nested if self.nested is None else self.nested
            if nested is not self.nested:
                form = "candidates" if nested else "no candidates"
                problem = f"{form}, unlike the first line: use one form throughout"
                raise self._error(problem, line)
        return records

    def _answers(self, record: dict[str, Any], line: int, fields: Fields) -> dict[str, Any]:
        """Return a row of preferences; one that is dropped is a sentence without candidates."""
        try:
            return parse_pair(record, fields, self._error, line, self._names.names)
        except DataError as error:
            if self._bad != "drop" or error.parameter != "bad":
                raise
            problem, *_ = error.message.removeprefix(locate(error.path, line)).rsplit(": ", 2)
            self._dropped.append(f"row {line}: {problem}")
        return {ID: record[ID], CANDIDATES: []} if ID in record else {CANDIDATES: []}

    def _candidates(self, value: Any, line: int) -> Sequence[dict[str, Any]]:
        """Return the candidates of a record as objects; a text is one with a text alone."""
        if value is None:
            return []
        if not isinstance(value, list | tuple):
            problem = f"{CANDIDATES} is {abbreviate(value)}, not a list of objects{_LIKE}"
            raise self._error(problem, line)
        usual = line in self._named or not self._names.names
        if usual and {dict}.issuperset(map(type, value)):
            return value
        candidates = []
        for place, candidate in enumerate(value):
            fields = {TEXT: candidate} if isinstance(candidate, str) else candidate
            if not isinstance(fields, dict):
                problem = f"{CANDIDATES}[{place}] is {abbreviate(candidate)}, neither a text nor "
                raise self._error(f"{problem}an object with a text{_LIKE}", line)
            if fields is candidate and not usual:
                fields = self._names.fields(fields, of_candidate=True)
            candidates.append(fields)
        return candidates

    def _columns(
        self, objects: Sequence[dict[str, Any]], lines: Sequence[int], prefix: str = ""
    ) -> dict[str, Any]:
        """Return a column for each field; a field of an object inside has a name with a dot."""
        columns: dict[str, Any] = {}
        self._note_unused(objects, prefix)
        for name, values in self._values(objects, lines, prefix):
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

    def _note_unused(self, objects: Sequence[dict[str, Any]], prefix: str) -> None:
        """Record the fields that are not read."""
        if self._used is None:
            return
        names = set[str]().union(*objects)
        left_out = {name for name in names if prefix + name not in self._used}
        for fields in objects:
            if not left_out:
                return
            for name in [n for n, v in fields.items() if n in left_out and v is not None]:
                left_out.remove(name)
                value = fields[name]
                inner = {f"{name}.{n}": v for n, v in value.items()} if type(value) is dict else {}
                for of, v in (inner or {name: value}).items():
                    self.unused[prefix + of] = kind_of(v) == NUMBER

    def _values(
        self, objects: Sequence[dict[Any, Any]], lines: Sequence[int], prefix: str = ""
    ) -> Iterator[tuple[str, list[Any]]]:
        """Yield the name of each field with the values of all objects, None where one lacks it."""
        columns = _read_alike(objects) if self._used is None else {}
        for name in columns or dict.fromkeys(chain.from_iterable(objects)):
            if self._used is not None and f"{prefix}{name}" not in self._used:
                continue
            values = columns[name] if columns else [fields.get(name) for fields in objects]
            if not isinstance(name, str):
                line = next(n for of, n in zip(objects, lines, strict=True) if name in of)
                problem = f"the name of a field must be a text, not {quote(name)}"
                raise self._error(problem, line)
            yield name, values

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


def is_by_columns(record: Any) -> bool:
    """Return whether an object is a table of pandas by columns, with the numbers of rows as keys.

    >>> is_by_columns({"id": {"0": 1}, "lm": {"0": 2}}), is_by_columns({"id": 1, "lm": {"0": 2}})
    (True, False)
    """
    if not isinstance(record, dict) or not record:
        return False
    columns = list(record.values())
    if not isinstance(columns[0], dict) or not all(k.isdecimal() for k in map(str, columns[0])):
        return False
    return bool(columns[0]) and all(
        isinstance(one, dict) and one.keys() == columns[0].keys() for one in columns
    )


def _has_lists(values: Sequence[Any]) -> bool:
    return any(isinstance(value, list | tuple) for value in values)


def _read_alike(objects: Sequence[dict[Any, Any]]) -> dict[Any, list[Any]]:
    """Return the columns of objects that have the same fields; nothing if they differ."""
    if len(set(map(len, objects))) > 1:
        return {}
    try:
        return {name: list(map(itemgetter(name), objects)) for name in objects[0]}
    except KeyError:
        return {}


def belongs_to_sentence(name: str) -> bool:
    """Return whether a field is one of the sentence where a record is a candidate.

    >>> [belongs_to_sentence(name) for name in ("reference[0]", "sentence.doc", "lm")]
    [True, True, False]
    """
    names = (ID, SOURCE, REFERENCES)
    return name in names or find_label(name) == REFERENCE or name.startswith(OF_SENTENCE)


def parse_table(options: ReadOptions, table: pa.Table, lines: Int64 | None = None) -> Block:
    """Return the columns of a table; a file has one or several, with the same columns.

    Args:
        options: how to read.
        table: an Arrow table.
        lines: (rows,) the line, or the number, of each row; None counts the rows from 1 on.

    Raises:
        DataError: naming row and column, if a value is not as the schema says.

    >>> import pyarrow as pa
    >>> table = pa.table({"id": [0, 0], "text": ["a", "b"], "lm": [-1.5, -2], "by": ["x", "y"]})
    >>> block = parse_table(ReadOptions("dev.parquet"), table)
    >>> block.sentences, list(block.candidates), block.candidates["lm"].to_pylist()
    ({'id': [0, 0]}, ['text', 'lm', 'by'], [-1.5, -2.0])
    """
    import pyarrow as pa

    flat = table
    while any(pa.types.is_struct(kind) for kind in flat.schema.types):
        flat = flat.flatten()  # fields of objects have names with dots
    if twice := find_repeated(flat.column_names):
        raise _repetition_error(options, twice)
    lines = np.arange(1, len(table) + 1) if lines is None else lines
    columns_of_both = (*table.schema, *flat.schema)
    usual = options.names.usual([field.name for field in columns_of_both])
    for field in table.schema:
        if field.name in usual and "period" in _find_extension(field):
            problem = f"the column {field.name} is of periods of time: convert it to texts, or to "
            problem += "numbers with a unit"
            raise options.error(problem, code="wrong-type")
    fields = {usual[field.name]: field.type for field in columns_of_both if field.name in usual}
    named = not options.names.names.keys().isdisjoint(SETTINGS)
    if CANDIDATES in fields or named or find_answer_fields(fields):
        if not len(table):
            return Block({TEXT: []}, {ID: []}, None, lines)
        return RecordReader(options).block(table.to_pylist(), lines.tolist())
    names = [name for name in flat.column_names if name in usual]
    table = flat.select(names).rename_columns([usual[name] for name in names])
    candidates: dict[str, Any] = {}
    sentences: dict[str, Any] = {}
    for name in table.column_names:
        columns = sentences if belongs_to_sentence(name) else candidates
        columns[name] = from_arrow(table[name]) if columns is sentences else table[name]
    return Block(candidates, sentences, None, lines)


def _find_extension(field: pa.Field) -> str:
    """Return the name of the extension type of a column, also of one that is not registered."""
    name = getattr(field.type, "extension_name", "")
    return str(name) or (field.metadata or {}).get(b"ARROW:extension:name", b"").decode()


def _repetition_error(options: ReadOptions, names: Iterable[str]) -> DataError:
    return options.error(f"two columns {min(names)}: rename one", code="duplicate")
