"""Records, as of JSON lines, taken apart into rows.

A record is a sentence with its `candidates`, or, in the long form, one hypothesis with the `id` of
its sentence. Fields of a hypothesis that are numbers become features, all others (texts, lists,
true and false) extras; objects inside are flattened, `{"scores": {"lm": 1}}` to `scores.lm`. All
other fields of a sentence are kept as they are.

A field may be missing in some records: absent, null, or, among numbers, an empty text. A number
that is missing is NaN in the rows; anything else that is missing is None.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from bpa_ppl.columns import intern, is_missing
from bpa_ppl.errors import DataError, quoted
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

#: Kinds of fields of a hypothesis: numbers, texts, anything else; EMPTY has had no value so far.
NUMBER, WORDS, OBJECT, EMPTY = "number", "text", "list", "empty"
_KNOWN = (ID, SOURCE, REFERENCE, REFERENCES)
_SHOWN = {True: "true", False: "false", None: "null"}


@dataclass(frozen=True)
class Layout:
    """Which fields the records have had so far.

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
        """The names of the numbers but the total."""
        return tuple(n for n, kind in self.kinds.items() if kind == NUMBER and n != TOTAL)

    @property
    def scored(self) -> bool:
        """Whether hypotheses have totals."""
        return TOTAL in self.kinds

    @property
    def numbers(self) -> tuple[str, ...]:
        """The names of the numbers, that of the total last."""
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
    """Takes records apart one by one, and raises errors that name the line and the field.

    Args:
        origin: where they are from, for messages.
        bad: "error", or "drop" to leave out a hypothesis with a value that is no finite number.
        first_id: the number of the first sentence, where ids are texts or there are none.
        nan_is_missing: whether NaN is a missing number; if not, it is a bad one.

    Attributes:
        layout: the fields so far; None before the first record. It is replaced, not changed, when
            a record has a new one.

    >>> reader = RecordReader("dev.jsonl")
    >>> candidates = [{"text": "a cat", "lm": -1.5, "mqm": 0}, {"text": "cat", "lm": -2}]
    >>> reader.add({"id": 3, "candidates": candidates}, 1)
    >>> rows = reader.rows()
    >>> rows.names, rows.ids.tolist(), rows.features.tolist(), rows.strings
    (('lm', 'mqm'), [3, 3], [[-1.5, 0.0], [-2.0, nan]], ('a cat', 'cat'))
    """

    def __init__(
        self, origin: str, bad: str = "error", first_id: int = 0, *, nan_is_missing: bool = True
    ):
        self.origin, self.bad, self.first_id = origin, bad, first_id
        self.layout: Layout | None = None
        self.identifiers = Identifiers(origin, first_id)
        self.count = 0  # records so far
        self._nan_is_missing = nan_is_missing
        self._clear()

    def _clear(self) -> None:
        self._ids: list[int] = []
        self._lines: list[int] = []
        self._texts: list[str] = []
        self._fields: list[dict[str, Any]] = []
        self._dropped: list[int] = []
        self._sentences: list[dict[str, Any]] = []

    def add(self, record: Any, line: int) -> None:
        """Take in one record.

        Args:
            record: the fields by name.
            line: its number, for messages.

        Raises:
            DataError: naming field and line, if a field is not as it should be, or of another
                type than in the records before.
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
            self.layout = self._first_layout(nested, of_sentence, line)
        if self.layout.nested is not nested:
            form = "no candidates" if self.layout.nested else "candidates"
            raise self.error(f"{form}, unlike the first line: use one form throughout", line)
        self._check_sentence(of_sentence, line)
        number, known = self.sentence(of_sentence, line)
        for place, fields in enumerate(candidates):
            where = f"{CANDIDATES}[{place}]." if nested else ""
            self._add_hypothesis(fields, number, known, line, where)

    def rows(self) -> Rows:
        """Return the rows of the records since the last call."""
        layout = self.layout
        assert layout is not None  # asked for after the first record
        strings, index = intern(self._texts)
        width = len(layout.numbers)
        values = (of.get(name) for of in self._fields for name in layout.numbers)
        # Before the first number of a column, None or an empty text may stand for a missing one.
        numbers = [value if isinstance(value, float) else math.nan for value in values]
        table = (
            np.array(numbers, dtype=np.float64).astype(np.float32).reshape(len(self._texts), width)
        )
        columns: dict[str, list[Any]] = {}
        for name in dict.fromkeys(name for known in self._sentences for name in known):
            columns[name] = [known.get(name) for known in self._sentences]
        rows = Rows(
            layout.names,
            np.array(self._ids, dtype=np.int64),
            np.array(self._lines, dtype=np.int64),
            table[:, : len(layout.names)],
            table[:, -1] if layout.scored else None,
            strings,
            index,
            tuple(self._dropped),
            {name: tuple(of.get(name) for of in self._fields) for name in layout.extras},
            **self.of_sentences(columns),
        )
        self._clear()
        return rows

    def sentence(self, given: Mapping[str, Any], line: int) -> tuple[int, dict[str, Any]]:
        """Return the id of a sentence, and its other columns by name.

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
        source, one = given.get(SOURCE), given.get(REFERENCE)
        if SOURCE in self.layout.sentence:
            known[SOURCE] = None if source is None else self._text(source, SOURCE, line)
        if {REFERENCE, REFERENCES} & set(self.layout.sentence):
            known[REFERENCE] = (
                self._references(given.get(REFERENCES), line)
                if one is None
                else (self._text(one, REFERENCE, line),)
            )
        for name, field in self.layout.sentence_extras.items():
            value = given.get(field)
            if isinstance(value, float) and not math.isfinite(value):
                raise self.error(f"{field} is {value}, which JSON does not have", line)
            known[OF_SENTENCE + name] = value
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

    def _first_layout(self, nested: bool, sentence: Mapping[str, Any], line: int) -> Layout:
        if not nested and ID not in sentence:
            raise self.error(f"no field {ID}, which says whose hypothesis it is", line)
        return Layout(nested, {}, tuple(sentence))

    def _check_sentence(self, given: Mapping[str, Any], line: int) -> None:
        """Check the fields of a sentence, and add those that are new to the layout."""
        layout = self.layout
        assert layout is not None
        if (ID in given) is not (ID in layout.sentence):
            what = (
                f"a field {ID}, which the first line does not have"
                if ID in given
                else f"no field {ID}, which the first line has"
            )
            raise self.error(f"{what}: give all sentences an id, or none", line)
        if given.get(REFERENCE) is not None and given.get(REFERENCES) is not None:
            raise self.error(f"both {REFERENCE} and {REFERENCES}: leave one out", line)
        new = [name for name in given if name not in layout.sentence]
        if new:
            self.layout = replace(layout, sentence=(*layout.sentence, *new))

    def _add_hypothesis(
        self, fields: dict[str, Any], number: int, known: dict[str, Any], line: int, where: str
    ) -> None:
        layout = self.layout
        assert layout is not None
        if TEXT not in fields:
            raise self.error(
                f"{where.removesuffix('.') or 'a hypothesis'} has no field {TEXT}: fields are "
                f"{', '.join(fields) or 'none'}",
                line,
            )
        text = self._text(fields[TEXT], where + TEXT, line)
        kinds = dict(layout.kinds)
        values: dict[str, Any] = {}
        for name, value in fields.items():
            if name == TEXT:
                continue
            known_kind = kinds.get(name, NUMBER if name == TOTAL else EMPTY)
            kinds[name] = kind = self._kind(where + name, value, known_kind, line)
            if kind != NUMBER:
                values[name] = None if _is_nan(value) else value
            elif not self._is_missing(value):
                values[name] = found = number_of(value)
                if found is None:
                    if self.bad == "drop":
                        self._dropped.append(number)
                        return
                    raise self.error(
                        f"{where}{name} is {shown(value)}, not a finite 32-bit number: correct "
                        "it, or drop such hypotheses (bad: drop)",
                        line,
                    )
        if kinds != layout.kinds:
            self.layout = replace(layout, kinds=kinds)
        self._ids.append(number)
        self._lines.append(line)
        self._texts.append(text)
        self._fields.append(values)
        self._sentences.append(known)

    def _kind(self, field: str, value: Any, known: str, line: int) -> str:
        """Return the kind of a field, given that of the records before and one more value."""
        if known == NUMBER or self._is_missing(value):
            return known
        kind = kind_of(value)
        if known == EMPTY:
            if kind == WORDS and looks_numeric(value):
                raise self.error(
                    f"{field} is {shown(value)}, a number in quotes: write it without the quotes, "
                    "or leave the field out",
                    line,
                )
            return kind
        if kind == NUMBER:
            raise self.error(
                f"{field} is {shown(value)}, a number, where the hypotheses before have none: "
                "give the field one type throughout, or leave it out",
                line,
            )
        return known if kind == known else OBJECT

    def _is_missing(self, value: Any) -> bool:
        return is_missing(value) or (self._nan_is_missing and _is_nan(value))

    def _text(self, value: Any, field: str, line: int) -> str:
        if not isinstance(value, str):
            raise self.error(f"{field} is {shown(value)}, not a text", line)
        return value

    def _references(self, given: Any, line: int) -> tuple[str, ...]:
        entries = [given] if isinstance(given, str) else given or []
        if not isinstance(entries, list | tuple):
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
    """Return what kind of field a value belongs to; a number that is not finite is a number.

    >>> kind_of("a"), kind_of(-1.5), kind_of([1]), kind_of(True)
    ('text', 'number', 'list', 'list')
    """
    if isinstance(value, str):
        return WORDS
    return NUMBER if isinstance(value, Real) and not isinstance(value, bool) else OBJECT


def number_of(value: Any) -> float | None:
    """Return a finite number that fits 32 bits, else None; true and false are no numbers.

    >>> number_of(3), number_of(True), number_of(float("nan")), number_of("3")
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


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)


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
