"""Records, such as objects of JSON, taken apart into columns: see `schema` for what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from bpa_ppl.errors import quoted
from bpa_ppl.labels import label_of
from bpa_ppl.rows.base import (
    CANDIDATES,
    ID,
    OF_SENTENCE,
    REFERENCE,
    REFERENCES,
    SOURCE,
    TEXT,
    Rows,
)
from bpa_ppl.rows.schema import Fields, SchemaReader, shown


class RecordReader:
    """Takes the records of one file apart, block by block.

    Args:
        schema: checks their columns.

    Attributes:
        keys: how many keys the objects of the last block have, with those of objects inside.

    >>> reader = RecordReader(SchemaReader("dev.jsonl"))
    >>> candidates = [{"text": "a cat", "scores": {"lm": -1.5}}, {"text": "cat"}]
    >>> rows = reader.rows([{"id": 3, "candidates": candidates}], [1])
    >>> rows.names, rows.ids.tolist(), rows.features.tolist(), rows.strings, reader.keys
    (('scores.lm',), [3, 3], [[-1.5], [nan]], ['a cat', 'cat'], 6)
    """

    def __init__(self, schema: SchemaReader):
        self.schema = schema
        self.keys = 0
        self._nested: bool | None = None

    def rows(self, records: Sequence[Any], lines: Sequence[int]) -> Rows:
        """Return the rows of some records.

        Args:
            records: dictionaries.
            lines: the line, or the number, of each.

        Raises:
            DataError: naming line and field, if a record is not as the schema says.
        """
        try:
            return self.schema.rows(self._fields(records, lines))
        except RecursionError as error:
            raise self.schema.error("objects inside objects without an end", lines[0]) from error

    def _fields(self, records: Sequence[Any], lines: Sequence[int]) -> Fields:
        """Return the columns of some records."""
        self.keys = 0
        for record, line in zip(records, lines, strict=True):
            if not isinstance(record, dict):
                raise self.schema.error(f"{shown(record)} is not an object with fields", line)
        records = [_with_candidates(record) for record in records]
        for record, line in zip(records, lines, strict=True):
            if self._nested is None:
                self._nested = CANDIDATES in record
            if (CANDIDATES in record) is not self._nested:
                form = "no candidates" if self._nested else "candidates"
                raise self.schema.error(
                    f"{form}, unlike the first line: use one form throughout", line
                )
        numbers = np.array(lines, np.int64)
        if not self._nested:
            columns = self._columns(records, lines)
            sentences = {n: v for n, v in columns.items() if is_of_sentence(n)}
            hypotheses = {n: v for n, v in columns.items() if n not in sentences}
            parents = np.arange(len(records))
            return Fields(hypotheses, sentences, parents, numbers)
        lists = [
            self._candidates(record[CANDIDATES], line)
            for record, line in zip(records, lines, strict=True)
        ]
        sizes = list(map(len, lists))
        parents = np.repeat(np.arange(len(lists)), sizes)
        hypotheses = self._columns(list(chain.from_iterable(lists)), numbers[parents].tolist())
        sentences = {n: v for n, v in self._values(records, lines) if n != CANDIDATES}
        self.keys += sum(map(len, records)) + sum(map(_key_count, sentences.values()))
        return Fields(hypotheses, sentences, parents, numbers, nested=True)

    def _candidates(self, given: Any, line: int) -> list[dict[str, Any]]:
        candidates = given
        if isinstance(given, dict):  # columns, as some libraries keep lists of objects
            candidates = _with_candidates({TEXT: None, **given}).get(CANDIDATES)
        if not isinstance(candidates, list | tuple) or not candidates:
            raise self.schema.error(f"{CANDIDATES} is {shown(given)}, not a list of objects", line)
        if set(map(type, candidates)) != {dict}:
            for place, candidate in enumerate(candidates):
                if not isinstance(candidate, dict):
                    raise self.schema.error(
                        f"{CANDIDATES}[{place}] is {shown(candidate)}, not an object with a text",
                        line,
                    )
        return list(candidates)

    def _columns(
        self, objects: Sequence[dict[str, Any]], lines: Sequence[int], prefix: str = ""
    ) -> dict[str, Any]:
        """Return a column for each field; a field of an object inside has a name with a dot."""
        self.keys += sum(map(len, objects))
        columns: dict[str, Any] = {}
        for name, values in self._values(objects, lines):
            column = prefix + name
            types = set(map(type, values))
            if types <= {float, int} and not is_of_sentence(column):
                self._add(columns, column, self._numbers(values), lines)
                continue
            if dict in types and not column.startswith(OF_SENTENCE):
                inside = [value if isinstance(value, dict) else {} for value in values]
                for inner, found in self._columns(inside, lines, f"{column}.").items():
                    self._add(columns, inner, found, lines)
                values = [None if isinstance(v, dict) and v else v for v in values]
                if all(value is None for value in values):
                    continue
            if types & {dict, list, tuple}:
                self.keys += _key_count(values)
            self._add(columns, column, values, lines)
        return columns

    def _values(
        self, objects: Sequence[dict[Any, Any]], lines: Sequence[int]
    ) -> Iterator[tuple[str, Sequence[Any]]]:
        """Yield the name of each field with the values of all objects, None where one lacks it."""
        first = list(objects[0])
        columns: Iterator[tuple[Any, Sequence[Any]]] | None = None
        if len(first) > 1 and set(map(len, objects)) == {len(first)}:
            with suppress(KeyError):  # the fast way, where all objects have the same names
                flat = list(chain.from_iterable(map(itemgetter(*first), objects)))
                columns = ((name, flat[place :: len(first)]) for place, name in enumerate(first))
        if columns is None:
            names = dict.fromkeys(chain.from_iterable(objects))
            columns = ((name, [fields.get(name) for fields in objects]) for name in names)
        for name, values in columns:
            if not isinstance(name, str):
                line = next(n for of, n in zip(objects, lines, strict=True) if name in of)
                raise self.schema.error(
                    f"the name of a field must be a text, not {quoted(name)}", line
                )
            yield name, values

    def _numbers(self, values: Sequence[Any]) -> Any:
        """Return numbers as an array, unless one needs a closer look."""
        try:
            numbers = np.array(values, np.float64)
        except OverflowError:
            return values
        return numbers if self.schema.nan_is_missing or not np.isnan(numbers).any() else values

    def _add(self, columns: dict[str, Any], name: str, values: Any, lines: Sequence[int]) -> None:
        """Add a column; one object may not have two fields of one flattened name."""
        before = columns.get(name)
        if before is not None:
            before, values = list(before), list(values)
            for row, (one, other) in enumerate(zip(before, values, strict=True)):
                if one is not None and other is not None:
                    raise self.schema.error(f"two fields {name}: rename one", lines[row])
                values[row] = other if one is None else one
        columns[name] = values


def _with_candidates(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with a list of candidates in place of parallel lists of their fields."""
    texts = record.get(TEXT)
    if not isinstance(texts, list | tuple):
        return record
    lists = {n: v for n, v in record.items() if isinstance(v, list | tuple) and n != REFERENCES}
    if {len(values) for values in lists.values()} != {len(texts)}:
        return record
    candidates = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    return {**{n: v for n, v in record.items() if n not in lists}, CANDIDATES: candidates}


def is_of_sentence(name: str) -> bool:
    """Return whether a field is one of the sentence where a record is a hypothesis.

    >>> is_of_sentence("reference[0]"), is_of_sentence("sentence.doc"), is_of_sentence("lm")
    (True, True, False)
    """
    known = (ID, SOURCE, REFERENCES)
    return name in known or label_of(name) == REFERENCE or name.startswith(OF_SENTENCE)


def _key_count(value: Any) -> int:
    """Return how many keys there are in the objects inside a value."""
    if isinstance(value, dict):
        return len(value) + sum(map(_key_count, value.values()))
    return sum(map(_key_count, value)) if isinstance(value, list | tuple) else 0
