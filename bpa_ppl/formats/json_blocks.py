"""Blocks of JSON lines decoded into classes made for them, and single lines read strictly.

It reads lines that have no other fields than those before, each once, and gives up a whole block
at anything else: `RecordReader` then takes its lines one by one, and says what is wrong. Both give
the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import attrgetter, ne
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from bpa_ppl.columns import intern
from bpa_ppl.errors import DataError, quoted
from bpa_ppl.formats.streams import decoded
from bpa_ppl.labels import repeated
from bpa_ppl.rows import Rows
from bpa_ppl.rows.base import CANDIDATES, ID, REFERENCE, REFERENCES, SOURCE, TEXT, TOO_LARGE
from bpa_ppl.rows.records import EMPTY, NUMBER, WORDS, Layout, RecordReader, kind_of, opens

_KEY, _NO_KEY = b'":', b'\\":'
_LONG = 4096  # bytes from which NumPy counts faster than `bytes.count`
_EMPTY: Any = Literal["", None]
# What a field is decoded as; all others are kept as they are. Values may be missing.
_TYPES: dict[str, Any] = {NUMBER: float | _EMPTY, WORDS: str | None, EMPTY: _EMPTY}
_SENTENCE_TYPES: dict[str, Any] = {
    ID: int | str,
    SOURCE: str | None,
    REFERENCE: str | None,
    REFERENCES: list[str] | None,
}
_REQUIRED = (ID, TEXT, CANDIDATES)


def strict_json(line: bytes, origin: str, number: int) -> Any:
    """Return what one line of JSON says; NaN and Infinity are numbers, to be refused by name.

    Raises:
        DataError: with file and line, if it is no JSON, or an object has a key twice.

    >>> strict_json(b'{"a": 1, "a": 2}', "dev.jsonl", 3)
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: dev.jsonl:3: the field 'a' stands twice in one object: rename one
    """
    text = decoded(line, origin, number)
    try:
        value = json.loads(text, object_pairs_hook=_unique)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # fails at half a character
    except json.JSONDecodeError as error:
        raise DataError(
            f"not JSON: {error.msg} (column {error.colno}): correct the line, or name the format "
            "if it is another",
            origin,
            number,
            parameter="format",
            code="bad-json",
        ) from error
    except UnicodeEncodeError:
        message = "a \\u escape is half a character: write the text as UTF-8"
    except RecursionError:
        message = "objects or lists inside one another without an end"
    except _Twice as error:
        message = str(error)
    except ValueError:  # Python reads no numbers of thousands of digits
        message = "a whole number has more than 4,000 digits: correct it"
    else:
        return value
    raise DataError(message, origin, number)


class _Twice(ValueError):
    """A key stands twice in one object."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        twice = repeated(name for name, _ in pairs)[0]
        raise _Twice(f"the field {quoted(twice)} stands twice in one object: rename one")
    return fields


class _Shape(NamedTuple):
    """A class for the objects of one place.

    Attributes:
        kind: the class; fields that an object does not have are UNSET.
        paths: the attribute of each field by flattened name.
        keys: how many keys an object with all fields has, with those inside.
        raw: the attributes that are kept as they are.
    """

    kind: type
    paths: dict[str, str]
    keys: int
    raw: tuple[str, ...]


class _Columns(NamedTuple):
    """What is read from the candidates of a block.

    Attributes:
        table: (hypotheses, numbers) float32, NaN where one is missing.
        extras: the other fields by name.
        absent: how many fields the candidates do not have.
    """

    table: npt.NDArray[np.float32]
    extras: dict[str, tuple[Any, ...]]
    absent: int


def example_of(example: Any, record: Any) -> Any:
    """Return an object with the fields of two, and those of the objects inside them.

    Args:
        example: the fields of the records before, or None.
        record: one more. Its candidates are merged into one.

    >>> example_of({"a": {"b": 1}}, {"a": {"c": 2}, "candidates": [{"d": 3}, {"e": 4}]})
    {'a': {'b': 1, 'c': 2}, 'candidates': [{'d': 3, 'e': 4}]}
    """
    if not isinstance(record, dict):
        return record if example is None else example
    merged = dict(example) if isinstance(example, dict) else {}
    for name, value in record.items():
        if name == CANDIDATES and isinstance(value, list):
            (one,) = merged.get(name, [None])
            for candidate in value:
                one = example_of(one, candidate)
            merged[name] = [one]
        else:
            merged[name] = example_of(merged.get(name), value)
    return merged


class BlockDecoder:
    """Decodes blocks of lines that have no other fields than those before.

    Args:
        reader: has the layout, and numbers the sentences.
        shape: of a line.
        candidate: of a candidate; that of a line in the long form.
    """

    def __init__(self, reader: RecordReader, shape: _Shape, candidate: _Shape):
        assert reader.layout is not None
        self._reader, self._layout = reader, reader.layout
        self._shape, self._candidate = shape, candidate
        self._decode: Callable[[bytes], Any] = msgspec.json.Decoder(shape.kind).decode
        self._known = _getter([shape.paths[name] for name in reader.layout.sentence])
        self._numbers = _getter([candidate.paths[name] for name in reader.layout.numbers])

    @staticmethod
    def of(example: Mapping[str, Any], reader: RecordReader) -> BlockDecoder | None:
        """Return a decoder for lines like those that were read.

        None for keys it cannot count, and for other forms than candidates as a list of objects.

        Args:
            example: from `example_of`, an object with the fields of all lines so far.
            reader: which has read them.
        """
        layout = reader.layout
        assert layout is not None
        # JSON escapes these in names, and msgspec does not take them.
        if any(mark < " " or mark in '"\\' for name in _keys(example) for mark in name):
            return None
        if not layout.nested:
            shape = _shape(example, layout, _of_long)
            return BlockDecoder(reader, shape, shape) if shape else None
        candidates = example.get(CANDIDATES)
        if not isinstance(candidates, list):
            return None
        candidate = _shape(candidates[0], layout, _of_candidate)
        if candidate is None:
            return None
        outer = {name: None if name == CANDIDATES else value for name, value in example.items()}
        known = {**_SENTENCE_TYPES, CANDIDATES: list[candidate.kind]}  # type: ignore[name-defined]
        plain = dict.fromkeys(outer, 0)  # objects stay whole
        shape = _shape(plain, layout, lambda name, _: known.get(name, msgspec.Raw))
        return BlockDecoder(reader, shape, candidate) if shape else None

    def rows(self, block: bytes, lines: Sequence[bytes], first: int) -> Rows | None:
        """Return the rows of a block, or None where it must be read line by line."""
        if self._reader.layout is not self._layout:
            return None
        try:
            records = [self._decode(line) for line in lines]
        except (ValueError, RecursionError):
            return None
        outer = self._shape.paths
        lists = None
        if self._layout.nested:
            lists = list(map(attrgetter(outer[CANDIDATES]), records))
        candidates = records if lists is None else list(chain.from_iterable(lists))
        sizes = [1] * len(records) if lists is None else list(map(len, lists))
        if 0 in sizes:
            return None
        try:
            columns = self._columns(candidates)
        except AttributeError:  # an object inside is absent
            return None
        if columns is None:
            return None
        given = list(map(self._known, records))
        # A sentence of the long form is there once for each hypothesis.
        others = map(ne, given[1:], given) if lists is None else repeat(True, len(given) - 1)
        starts = np.flatnonzero([True, *others])
        repeats = np.diff(np.append(starts, len(given))).tolist()
        absent = columns.absent
        for start, count in zip(starts.tolist(), repeats, strict=True):
            absent += count * given[start].count(msgspec.UNSET)
        if not self._regular(block, records, candidates, absent):
            return None
        return self._made(given, starts, candidates, sizes, first, columns)

    def _made(
        self,
        given: list[tuple[Any, ...]],
        starts: npt.NDArray[np.int64],
        candidates: list[Any],
        sizes: list[int],
        first: int,
        columns: _Columns,
    ) -> Rows:
        layout, reader = self._layout, self._reader
        found = [
            reader.sentence(self._fields(given[start], first + start), first + start)
            for start in starts.tolist()
        ]
        counts = np.add.reduceat(sizes, starts)
        known: dict[str, list[Any]] = {}
        for name in found[0][1]:
            values = [of[name] for _, of in found]
            known[name] = list(chain.from_iterable(map(repeat, values, counts.tolist())))
        texts = map(attrgetter(self._candidate.paths[TEXT]), candidates)
        return Rows(
            layout.names,
            np.repeat(np.array([number for number, _ in found], np.int64), counts),
            np.repeat(np.arange(first, first + len(given)), sizes),
            columns.table[:, : len(layout.names)],
            columns.table[:, -1] if layout.scored else None,
            *intern(texts),
            (),
            columns.extras,
            **reader.of_sentences(known),
        )

    def _regular(
        self, block: bytes, records: list[Any], candidates: list[Any], absent: int
    ) -> bool:
        """Say whether no key stands twice: classes have no other keys than those of the fields."""
        expected = self._shape.keys * len(records) - absent
        if self._layout.nested:
            expected += self._candidate.keys * len(candidates)
            expected += _keys_inside(candidates, self._candidate.raw)
        return _key_count(block) == expected + _keys_inside(records, self._shape.raw)

    def _columns(self, candidates: list[Any]) -> _Columns | None:
        """Return numbers and extras; None where one is too large, or of another kind."""
        width = len(self._layout.numbers)
        absent = 0
        try:
            values = chain.from_iterable(map(self._numbers, candidates))
            table = np.fromiter(values, np.float64, len(candidates) * width)
        except (TypeError, ValueError):  # some are missing
            given = list(chain.from_iterable(map(self._numbers, candidates)))
            absent = given.count(msgspec.UNSET)
            table = np.array([v if isinstance(v, float) else np.nan for v in given], np.float64)
        if np.any(np.abs(table) >= TOO_LARGE):
            return None
        extras: dict[str, tuple[Any, ...]] = {}
        for name in self._layout.extras:
            column = list(map(attrgetter(self._candidate.paths[name]), candidates))
            unset = column.count(msgspec.UNSET)
            absent += unset
            if unset:
                column = [None if value is msgspec.UNSET else value for value in column]
            if self._candidate.paths[name] in self._candidate.raw:
                try:
                    column = [
                        None if raw is None else strict_json(bytes(raw), self._reader.origin, 0)
                        for raw in column
                    ]
                except DataError:
                    return None  # the slow way knows the line
                if any(kind_of(value) == NUMBER for value in column):
                    return None
            extras[name] = tuple(column)
        return _Columns(table.astype(np.float32).reshape(len(candidates), width), extras, absent)

    def _fields(self, given: Sequence[Any], line: int) -> dict[str, Any]:
        """Return the fields of a sentence by flattened name, decoded."""
        return {
            name: strict_json(bytes(value), self._reader.origin, line)
            if isinstance(value, msgspec.Raw)
            else value
            for name, value in zip(self._layout.sentence, given, strict=True)
            if value is not msgspec.UNSET
        }


def _shape(
    fields: Mapping[str, Any], layout: Layout, type_of: Any, prefix: str = ""
) -> _Shape | None:
    """Return a class for objects with some fields, and objects inside them.

    None where a field was an object in one line, and something else in another, or where only
    hypotheses that were dropped have it.
    """
    members: list[tuple[str, Any, Any]] = []
    paths: dict[str, str] = {}
    keys, raw = len(fields), []
    for place, (name, value) in enumerate(fields.items()):
        attribute = f"f{place}"
        if opens(prefix + name, value):
            inside = _shape(value, layout, type_of, f"{prefix}{name}.")
            if inside is None or prefix + name in layout.kinds:
                return None
            members.append((attribute, inside.kind, msgspec.UNSET))
            paths |= {n: f"{attribute}.{path}" for n, path in inside.paths.items()}
            raw += [f"{attribute}.{path}" for path in inside.raw]
            keys += inside.keys
            continue
        kind = type_of(prefix + name, layout)
        if kind is None:
            return None
        default = msgspec.NODEFAULT if prefix + name in _REQUIRED else msgspec.UNSET
        members.append((attribute, kind, default))
        paths[prefix + name] = attribute
        raw += [attribute] if kind is msgspec.Raw else []
    renamed = {f"f{place}": name for place, name in enumerate(fields)}
    kind = msgspec.defstruct(
        "Fields", members, rename=renamed, forbid_unknown_fields=True, kw_only=True
    )
    return _Shape(kind, paths, keys, tuple(raw))


def _of_candidate(name: str, layout: Layout) -> Any:
    if name == TEXT:
        return str
    return _TYPES.get(layout.kinds[name], msgspec.Raw) if name in layout.kinds else None


def _of_long(name: str, layout: Layout) -> Any:
    if name in layout.sentence:
        return _SENTENCE_TYPES.get(name, msgspec.Raw)
    return _of_candidate(name, layout)


def _getter(paths: Sequence[str]) -> Any:
    """Return a function from an object to a sequence of its values."""
    if len(paths) == 1:
        one = attrgetter(paths[0])
        return lambda thing: (one(thing),)
    return attrgetter(*paths) if paths else lambda thing: ()


def _keys(value: Any) -> Iterator[str]:
    """Yield all keys of objects inside a value."""
    if isinstance(value, dict):
        yield from value
        yield from chain.from_iterable(map(_keys, value.values()))
    elif isinstance(value, list):
        yield from chain.from_iterable(map(_keys, value[:1]))


def _key_count(data: bytes) -> int:
    """Return how many keys a piece of JSON has: inside a text a quotation mark is escaped."""
    if len(data) < _LONG:
        found = data.count(_KEY)
    else:  # a colon follows in every tenth place or so, where `count` starts again each time
        codes = np.frombuffer(data, np.uint8)
        found = int(np.count_nonzero((codes[1:] == _KEY[1]) & (codes[:-1] == _KEY[0])))
    return found - (data.count(_NO_KEY) if b"\\" in data else 0)


def _keys_inside(records: list[Any], attributes: Sequence[str]) -> int:
    """Return how many keys there are in what is kept as it is."""
    return sum(
        _key_count(bytes(raw))
        for path in attributes
        for raw in map(attrgetter(path), records)
        if raw is not msgspec.UNSET
    )
