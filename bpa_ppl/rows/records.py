"""Records, as of JSON lines, taken apart into rows: the first one says which fields there are.

A record is a sentence with its `candidates`, or, in the long form, one hypothesis with the `id` of
its sentence. Fields of a hypothesis are numbers, which become features, or texts and lists, which
become extras; objects inside are flattened, `{"scores": {"lm": 1}}` to `scores.lm`. All other
fields of a sentence are kept as they are.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from bpa_ppl.columns import intern
from bpa_ppl.errors import DataError, quoted
from bpa_ppl.notes import tell
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

#: Kinds of fields of a hypothesis.
NUMBER, WORDS, OBJECT = "number", "text", "list"
_KNOWN = (ID, SOURCE, REFERENCE, REFERENCES)
_SHOWN = {True: "true", False: "false", None: "null"}


@dataclass(frozen=True)
class Layout:
    """Which fields there are, as the first record shows them.

    Attributes:
        nested: whether a record is a sentence with its candidates.
        kinds: of the fields of a hypothesis but its text, by flattened name, in order.
        sentence: the fields of the sentence, by flattened name.
    """

    nested: bool
    kinds: Mapping[str, str]
    sentence: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(n for n, kind in self.kinds.items() if kind == NUMBER and n != TOTAL)

    @property
    def scored(self) -> bool:
        """Whether hypotheses have totals."""
        return TOTAL in self.kinds

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names of the features, then perhaps that of the total."""
        return (*self.names, TOTAL) if self.scored else self.names

    @property
    def extras(self) -> tuple[str, ...]:
        """The names of the other fields of a hypothesis."""
        return tuple(name for name, kind in self.kinds.items() if kind != NUMBER)

    @property
    def sentence_extras(self) -> dict[str, str]:
        """The fields of a sentence that are extras, by the name of the column."""
        more = [name for name in self.sentence if name not in _KNOWN]
        return {name if self.nested else name.removeprefix(OF_SENTENCE): name for name in more}


class RecordReader:
    """Takes records apart one by one, and tells what is wrong with them.

    Args:
        origin: where they are from, for messages.
        bad: "error", or "drop" to leave out a hypothesis with a value that is no finite number.
        first_id: the number of the first sentence, where ids are texts or there are none.

    Attributes:
        layout: what the first record showed; None before it.

    >>> reader = RecordReader("dev.jsonl")
    >>> reader.add({"id": 3, "candidates": [{"text": "a cat", "lm": -1.5}]}, 1)
    >>> rows = reader.rows()
    >>> rows.names, rows.ids.tolist(), rows.features.tolist(), rows.strings
    (('lm',), [3], [[-1.5]], ('a cat',))
    """

    def __init__(self, origin: str, bad: str = "error", first_id: int = 0):
        self.origin, self.bad, self.first_id = origin, bad, first_id
        self.layout: Layout | None = None
        self.identifiers = Identifiers(origin, first_id)
        self.count = 0  # records so far
        self._clear()

    def _clear(self) -> None:
        self._ids: list[int] = []
        self._lines: list[int] = []
        self._texts: list[str] = []
        self._values: list[list[float]] = []
        self._dropped: list[int] = []
        self._extras: dict[str, list[Any]] = {}
        self._sentences: dict[str, list[Any]] = {}

    def add(self, record: Any, line: int) -> None:
        """Take in one record.

        Args:
            record: the fields by name.
            line: its number, for messages.

        Raises:
            DataError: naming field and line, if it is not as the first one is, or not as it
                should be.
        """
        if not isinstance(record, dict):
            raise self.error(f"{shown(record)} is not an object with fields", line)
        record = _by_candidate(record)
        nested = CANDIDATES in record
        given = record if nested else self._flat(record, line)
        of_sentence = {n: v for n, v in given.items() if _is_of_sentence(n, nested)}
        candidates = (
            self._candidates(record, line)
            if nested
            else [{n: v for n, v in given.items() if n not in of_sentence}]
        )
        if self.layout is None:
            self.layout = self._first_layout(nested, candidates[0], of_sentence, line)
        if self.layout.nested is not nested:
            form = "no candidates" if self.layout.nested else "candidates"
            raise self.error(f"{form}, unlike the first line: use one form throughout", line)
        self._check_names(of_sentence, self.layout.sentence, line)
        number, known = self.sentence(of_sentence, line)
        for place, fields in enumerate(candidates):
            where = f"{CANDIDATES}[{place}]." if nested else ""
            self._add_hypothesis(fields, number, known, line, where)

    def rows(self) -> Rows:
        """Return the rows of the records so far, and forget them."""
        layout = self.layout
        assert layout is not None  # asked for after the first record
        strings, index = intern(self._texts)
        width = len(layout.numbers)
        table = np.array(self._values, dtype=np.float64).astype(np.float32)
        table = table.reshape(len(self._values), width)  # width may be 0
        rows = Rows(
            layout.names,
            np.array(self._ids, dtype=np.int64),
            np.array(self._lines, dtype=np.int64),
            table[:, : len(layout.names)],
            table[:, -1] if layout.scored else None,
            strings,
            index,
            tuple(self._dropped),
            {name: tuple(self._extras.get(name, ())) for name in layout.extras},
            **self.of_sentences(self._sentences),
        )
        self._clear()
        return rows

    def sentence(self, given: Mapping[str, Any], line: int) -> tuple[int, dict[str, Any]]:
        """Return the id of a sentence, and what is known of it by the names of columns.

        Args:
            given: its fields.
            line: where it is.

        Raises:
            DataError: if one is not as it should be.
        """
        assert self.layout is not None
        self.count += 1
        number = self.first_id + self.count - 1
        known: dict[str, Any] = {}
        if ID in given:
            number = self.identifiers.number(given[ID], line)
            if self.identifiers.texts:
                known[ID] = given[ID]
        if SOURCE in given:
            known[SOURCE] = self._text(given[SOURCE], SOURCE, line)
        if REFERENCE in given:
            known[REFERENCE] = (self._text(given[REFERENCE], REFERENCE, line),)
        elif REFERENCES in given:
            known[REFERENCE] = self._references(given[REFERENCES], line)
        for name, field in self.layout.sentence_extras.items():
            if isinstance(given[field], float) and not math.isfinite(given[field]):
                raise self.error(f"{field} is {given[field]}, which JSON does not have", line)
            known[OF_SENTENCE + name] = given[field]
        return number, known

    def of_sentences(self, columns: Mapping[str, list[Any]]) -> dict[str, Any]:
        """Return the arguments of `Rows` for columns of what `sentence` returned."""
        assert self.layout is not None
        extras = [OF_SENTENCE + name for name in self.layout.sentence_extras]
        named = {ID: columns.get(ID, [])} if self.identifiers.texts else {}
        sourced = SOURCE in self.layout.sentence
        translated = {REFERENCE, REFERENCES} & set(self.layout.sentence)
        return {
            "sources": columns.get(SOURCE, []) if sourced else None,
            "references": columns.get(REFERENCE, []) if translated else None,
            "sentence_extras": {
                **named,
                **{name.removeprefix(OF_SENTENCE): columns.get(name, []) for name in extras},
            },
        }

    def error(self, message: str, line: int) -> DataError:
        """Return the error that blames one record."""
        return DataError(message, self.origin, line)

    def _candidates(self, record: Mapping[str, Any], line: int) -> list[dict[str, Any]]:
        candidates = record[CANDIDATES]
        if isinstance(candidates, dict):  # columns, as some libraries keep lists of objects
            candidates = _by_candidate({TEXT: None, **candidates}).get(CANDIDATES)
        if not isinstance(candidates, list | tuple) or not candidates:
            raise self.error(
                f"{CANDIDATES} is {shown(record[CANDIDATES])}, not a list of hypotheses", line
            )
        for place, fields in enumerate(candidates):
            if not isinstance(fields, dict):
                raise self.error(
                    f"{CANDIDATES}[{place}] is {shown(fields)}, not an object with a text and "
                    "numbers",
                    line,
                )
        return [self._flat(fields, line) for fields in candidates]

    def _flat(self, fields: Mapping[str, Any], line: int) -> dict[str, Any]:
        try:
            return flattened(fields)
        except ValueError as error:
            raise self.error(str(error), line) from error
        except RecursionError as error:
            raise self.error("objects inside objects without an end", line) from error

    def _first_layout(
        self, nested: bool, fields: Mapping[str, Any], sentence: Mapping[str, Any], line: int
    ) -> Layout:
        if TEXT not in fields:
            raise self.error(
                f"a hypothesis without a field {TEXT}: fields are {', '.join(fields) or 'none'}",
                line,
            )
        if not nested and ID not in sentence:
            raise self.error(f"no field {ID}, which says whose hypothesis it is", line)
        if {REFERENCE, REFERENCES} <= sentence.keys():
            raise self.error(f"both {REFERENCE} and {REFERENCES}: leave one out", line)
        kinds = {name: kind_of(value) for name, value in fields.items() if name != TEXT}
        if kinds.get(TOTAL, NUMBER) != NUMBER:
            raise self.error(f"{TOTAL} is {shown(fields[TOTAL])}, not the total score", line)
        quoted = [n for n, kind in kinds.items() if kind == WORDS and looks_numeric(fields[n])]
        if quoted:
            tell(
                f"{self.origin}: {', '.join(quoted)} kept as text, not as a feature, because the "
                "number is in quotes"
            )
        return Layout(nested, kinds, tuple(sentence))

    def _check_names(self, given: Mapping[str, Any], expected: tuple[str, ...], line: int) -> None:
        if given.keys() == set(expected):
            return
        missing = [name for name in expected if name not in given]
        if missing:
            raise self.error(f"no field {missing[0]}, which the first line has", line)
        new = next(name for name in given if name not in expected)
        raise self.error(f"a field {new}, which the first line does not have", line)

    def _add_hypothesis(
        self, fields: dict[str, Any], number: int, known: dict[str, Any], line: int, where: str
    ) -> None:
        layout = self.layout
        assert layout is not None
        if fields.keys() != {TEXT, *layout.kinds}:
            named = {where + name: value for name, value in fields.items()}
            expected = (where + name for name in (TEXT, *layout.kinds))
            self._check_names(named, tuple(expected), line)
        text = self._text(fields[TEXT], where + TEXT, line)
        values = self._numbers(fields, line, where)
        if values is None:
            self._dropped.append(number)
            return
        for name in layout.extras:
            kind = layout.kinds[name]
            if kind_of(fields[name]) != kind:
                raise self.error(
                    f"{where}{name} is {shown(fields[name])}, not a {kind} as in the first line",
                    line,
                )
            self._extras.setdefault(name, []).append(fields[name])
        self._ids.append(number)
        self._lines.append(line)
        self._texts.append(text)
        self._values.append(values)
        for name, value in known.items():
            self._sentences.setdefault(name, []).append(value)

    def _numbers(self, fields: Mapping[str, Any], line: int, where: str) -> list[float] | None:
        """Return the values, or None where one is bad and such hypotheses are to be dropped."""
        assert self.layout is not None
        values = []
        for name in self.layout.numbers:
            value = number(fields[name])
            if value is None:
                if self.bad == "drop":
                    return None
                raise self.error(
                    f"{where}{name} is {shown(fields[name])}, not a finite 32-bit number: correct "
                    "it, or leave such hypotheses out with bad='drop'",
                    line,
                )
            values.append(value)
        return values

    def _text(self, value: Any, field: str, line: int) -> str:
        if not isinstance(value, str):
            raise self.error(f"{field} is {shown(value)}, not a text", line)
        return value

    def _references(self, given: Any, line: int) -> tuple[str, ...]:
        entries = [given] if isinstance(given, str) else given
        if not isinstance(entries, list | tuple) or not entries:
            raise self.error(f"{REFERENCES} is {shown(given)}, not a list of texts", line)
        return tuple(self._text(text, REFERENCES, line) for text in entries)


def flattened(fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the fields of objects inside under names with dots.

    Raises:
        ValueError: if two get the same name, or a name is no text.

    >>> flattened({"text": "a", "scores": {"lm": -1, "tm": {"in": -2}}})
    {'text': 'a', 'scores.lm': -1, 'scores.tm.in': -2}
    """
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        if not isinstance(name, str):
            raise ValueError(f"the name of a field is a text, not {quoted(name)}")
        inside = opens(prefix + name, value)
        more = flattened(value, f"{prefix}{name}.") if inside else {prefix + name: value}
        twice = more.keys() & flat.keys()
        if twice:
            raise ValueError(f"two fields {min(twice)}: rename one")
        flat |= more
    return flat


def opens(name: str, value: Any) -> bool:
    """Say whether a field is an object whose fields are told apart; extras of sentences stay whole.

    >>> opens("scores", {"lm": 1}), opens("sentence.doc", {"year": 2021})
    (True, False)
    """
    return isinstance(value, dict) and bool(value) and not name.startswith(OF_SENTENCE)


def kind_of(value: Any) -> str:
    """Return what kind of field a value belongs to; a bad number belongs to numbers.

    >>> kind_of("a"), kind_of(None), kind_of([1])
    ('text', 'number', 'list')
    """
    if isinstance(value, str):
        return WORDS
    return NUMBER if value is None or isinstance(value, bool | np.bool_ | Real) else OBJECT


def number(value: Any) -> float | None:
    """Return a finite number that fits 32 bits, else None; true and false are none.

    >>> number(3), number(True), number(float("nan")), number("3")
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if abs(found) < TOO_LARGE else None


def looks_numeric(text: str) -> bool:
    """Say whether a text prints a number.

    >>> looks_numeric("-1.5"), looks_numeric("one")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True


def shown(value: Any) -> str:
    """Return a value as JSON writes it, in short.

    >>> shown(True), shown("word")
    ('true', "'word'")
    """
    if value is None or isinstance(value, bool):
        return _SHOWN[value]
    return reprlib.repr(value)


def _by_candidate(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record whose hypotheses are lists side by side with a list of candidates."""
    texts = record.get(TEXT)
    if not isinstance(texts, list | tuple):
        return record
    lists = {n: v for n, v in record.items() if isinstance(v, list | tuple) and n != REFERENCES}
    if {len(values) for values in lists.values()} != {len(texts)}:
        return record
    candidates = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    return {**{n: v for n, v in record.items() if n not in lists}, CANDIDATES: candidates}


def _is_of_sentence(name: str, nested: bool) -> bool:
    if nested:
        return name != CANDIDATES
    return name in _KNOWN or name.startswith(OF_SENTENCE)
