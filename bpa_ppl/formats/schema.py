"""The schema of records, and the one place where their columns are checked.

Every format yields columns (`bpa_ppl.formats.block.Block`), or records that become columns, which
`Schema` checks. The fields of a candidate:

    text                 the text of the candidate
    total                the total score of the decoder
    id                   a name, also if it is a number: an extra (only where a sentence has
                         `candidates`)
    features             an object with the features of the candidate, by name
    any other name       an extra, kept as it is; a feature if the user names it

The fields of a sentence:

    id                   an integer or a text; sentences without any are counted
    id_number            the integer of an id that is a text, which names a line of references
    source               the source text
    reference            a reference; `reference[0]`, `reference[1]`, … where there are several
    references           a list of references; a text is a list of one, also with the name above
    any other name       an extra of the sentence

A record is a sentence with its `candidates`, or a candidate with the `id` of its sentence. In the
latter form the extras of a sentence are called `sentence.NAME`.

A column of the sentence that is named, with a list of a value for each candidate, is a column of
candidates; so is a field of an object, as `scores.large` of `"scores": {"large": [0.5, 0.1]}`. If
all values of a named column of numbers are lists of one number, they are these numbers.

A feature is a column that the user names, a field of an object `features` of the candidate (a
column `features.NAME`), or a column of numbers in a format of decoders. Its values are numbers; a
value is missing if it is absent, null, NaN, or an empty cell of a text file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import LARGEST, Float64, Int64, is_missing, is_number, read_number
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl._runtime.values import (
    RECIPES,
    combine_chunks,
    from_arrow,
    has_numbers,
    is_arrow,
    parse_cells,
    parse_finite,
    without_empty,
)
from bpa_ppl.errors import COLUMN, MEMORY, DataError, Remedy, locate, quote
from bpa_ppl.formats.block import (
    CANDIDATES,
    ID,
    ID_NUMBER,
    JUDGEMENTS,
    OF_SENTENCE,
    REFERENCE,
    REFERENCES,
    SOURCE,
    TEXT,
    TOTAL,
    Block,
)
from bpa_ppl.formats.roles import OF_FEATURES, Roles
from bpa_ppl.formats.rules import RULES, refuse
from bpa_ppl.lists.ids import id_key
from bpa_ppl.lists.labels import find_label
from bpa_ppl.lists.nbest import DROP

_CHARACTERS_SHOWN = 400  # characters of the names of columns in a message


#: The columns of each form of lists, for messages.
_FORMS = f"{ID} and {TEXT}, {CANDIDATES}, chosen and rejected, or response_a, response_b and winner"


def name_forms(columns: Sequence[str]) -> list[Remedy]:
    """Return the formats that name the columns of each form of lists.

    Args:
        columns: of the file.

    >>> [remedy.words for remedy in name_forms(["a", "b"])]
    ['name the id and the text in the format', 'name the preferred answers', 'name both answers...
    """
    forms = {
        "name the id and the text in the format": (ID, TEXT),
        "name the preferred answers": ("chosen", "rejected"),
        "name both answers and the winner": ("response_a", "response_b", "winner"),
    }
    return [
        Remedy(words, settings=dict.fromkeys(of, COLUMN), columns=columns)
        for words, of in forms.items()
    ]


def count_from(first: int) -> Remedy:
    """Return the format with another id of the first sentence.

    >>> count_from(1).settings
    {'first_id': 1}
    """
    words = f"set the first id, if ids are counted from {first}"
    return Remedy(words, settings={"first_id": first})


def split_field(record: Mapping[Any, Any], name: str) -> tuple[dict[Any, Any], Any] | None:
    """Return an object without the field that a name with dots leads to, and its value.

    >>> split_field({"scores": {"large": 0.5, "small": 1}}, "scores.large")
    ({'scores': {'small': 1}}, 0.5)
    """
    first, _, rest = name.partition(".")
    inside = record.get(first)
    if not (rest and isinstance(inside, dict)):
        return None
    parts = split_field(inside, rest)
    if rest in inside:
        parts = {key: value for key, value in inside.items() if key != rest}, inside[rest]
    if parts is None:
        return None
    others = {key: value for key, value in record.items() if key != first}
    return others | ({first: parts[0]} if parts[0] else {}), parts[1]


def iter_field_names(fields: Mapping[Any, Any], prefix: str = "") -> Iterator[str]:
    """Yield the names of fields, with dots those of objects in them.

    >>> list(iter_field_names({"id": 0, "message": {"role": "user", "content": "a cat"}}))
    ['id', 'message.role', 'message.content']
    """
    for name, value in fields.items():
        if isinstance(value, dict) and value:
            yield from iter_field_names(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


@dataclass
class Schema:
    """How the records of one file are read, and the checks of their columns, block by block.

    The columns that the user, the file or its format names as features must have numbers; all
    others are extras, and are kept as they are.

    Ids are integers of 64 bits, or texts if the first block has others: then the integer of a
    sentence is its place in the order in which ids appear. Sentences without ids are counted.

    Attributes:
        origin: the name of the file, for messages.
        bad: "error", or "drop" to leave out a candidate with a value that is not a finite number.
        first_id: the id of the first sentence, for formats without ids.
        roles: of the columns, as the user names them.
        names: of columns in the file, by the usual ones; one with dots may be that of a field of
            an object.
        format: the name of the format, for messages.
        nan_is_missing: whether NaN is a missing number; otherwise it is a bad one.
        typed: whether the file distinguishes numbers from texts; in one that does not, ids of
            digits are integers.
        any_order: whether the candidates of a sentence need not be adjacent.
        divides_totals: whether the totals may be divided by a length.
        empty: the sentences without candidates: by id, the source, None if unknown.
        dropped_rows: the records without candidates that were dropped, and why.
        seen: the columns of a file of which some have other names.
        replaced: those of them that are left out, since another one takes their place.
        numbers: the names of the features, and of the total.
        dropped: the ids of candidates that are left out for a bad value.
        keys: of the ids of the lists of all tables so far, see `id_key`.
        lines: of each list, the line in which it begins, by id.
        scattered: two lines of a sentence whose rows are not adjacent.

    Raises:
        DataError: if one column has two names.

    >>> block = Block(
    ...     {"text": ["a cat", "cat"], "lm": [-1.5, None], "by": ["x", "y"]},
    ...     {"id": [3]}, np.array([0, 0]), np.array([1]),
    ... )
    >>> block = Schema("dev.jsonl", roles=Roles(("lm",))).check(block)
    >>> block.sentences, block.candidates["lm"], block.candidates["by"]
    ({'id_number': array([3])}, array([-1.5,  nan]), ('x', 'y'))
    """

    origin: str = MEMORY
    bad: str = "error"
    first_id: int = 0
    roles: Roles = field(default_factory=Roles)
    names: Mapping[str, str] = field(default_factory=dict)
    format: str = ""
    nan_is_missing: bool = True
    typed: bool = True
    any_order: bool = True
    divides_totals: bool = False
    empty: dict[int, str | None] = field(default_factory=dict)
    dropped_rows: list[str] = field(default_factory=list, init=False)
    seen: dict[str, Any] = field(default_factory=dict, init=False)
    replaced: set[str] = field(default_factory=set, init=False)
    numbers: set[str] = field(default_factory=set, init=False)
    dropped: list[int] = field(default_factory=list, init=False)
    keys: list[Any] = field(default_factory=list, init=False)
    lines: dict[int, int] = field(default_factory=dict, init=False)
    scattered: tuple[int, int] | None = field(default=None, init=False)
    # Of ids: int or str, or NoneType where there are none.
    _kind: type | None = field(default=None, init=False)
    _records: int = field(default=0, init=False)
    _places: dict[str, int] = field(default_factory=dict, init=False)  # of ids that are texts
    # Whether a column is a feature; None as long as a pattern takes it, and has no value.
    _features: dict[str, bool | None] = field(default_factory=dict, init=False)
    # Where extras of sentences begin.
    _sentence_lines: dict[str, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for usual, other in combinations(self.names, 2):
            if (name := self.names[usual]) == self.names[other]:
                problem = f"{usual} and {other} are both {quote(name)}: name a column for each"
                raise self.error(problem, code="duplicate", parameter="format")

    def rename(self, fields: Mapping[str, Any], *, of_candidate: bool = False) -> dict[str, Any]:
        """Return a table, or an object, with the usual names of its columns or fields.

        A column is left out, with a warning, if another one takes its place.

        Args:
            fields: the columns or fields. Those of a sentence with candidates have another text.
            of_candidate: whether they are of such a candidate: its text alone is renamed.

        >>> record = {"message": {"content": "a cat", "role": "assistant"}}
        >>> Schema(names={"text": "message.content"}).rename(record)
        {'message': {'role': 'assistant'}, 'text': 'a cat'}
        """
        for name in self.names.values():
            if "." in name and name not in fields and (split := split_field(fields, name)):
                fields = {**split[0], name: split[1]}
        names = dict(self.names)
        if of_candidate:
            names = {TEXT: names.get(TEXT, TEXT)}
        elif self.typed and names.get(CANDIDATES, CANDIDATES) in fields:
            names.pop(TEXT, None)
        usual = {name: usual for usual, name in names.items()}
        if not self.seen.keys() >= fields.keys():
            self.seen.update(fields)
        replaced = {n for n, of in names.items() if of in self.seen} - usual.keys()
        for name in replaced.intersection(fields) - self.replaced:
            self.replaced.add(name)
            problem = f"the column {name} is left out: {quote(names[name])} takes its place"
            warn_user(f"{locate(self.origin)}{problem}")
        return {usual.get(n, n): value for n, value in fields.items() if n not in replaced}

    def require(self, required: Iterable[str], columns: Iterable[str], line: int | None) -> None:
        """Check that a file has some columns.

        Args:
            required: usual names.
            columns: the usual names of those that it has.
            line: where they are named, for the message.

        Raises:
            DataError: with the columns and the setting that names them, if one is missing.

        >>> Schema("dev.csv", format="csv").require(["id", "text"], ["hyp", "lm"], 1)
        Traceback (most recent call last):
        bpa_ppl.errors.DataError: dev.csv:1: no columns id and text (the columns are 'hyp, lm'): ...
        """
        columns = list(columns)
        unseen = {usual for usual, name in self.names.items() if name not in self.seen}
        missing = [n for n in dict.fromkeys(required) if n not in columns or n in unseen]
        if not missing:
            return

        first, parameter = missing[0], "format" if self.origin != MEMORY else None
        name = self.names.get(first, first)
        absent = " and ".join(self.names.get(usual, usual) for usual in missing)
        present = list(iter_field_names(self.seen or dict.fromkeys(columns)))
        shown = quote(", ".join(present), _CHARACTERS_SHOWN)
        problem = f"no column{'s' * (len(missing) > 1)} {absent} (the columns are {shown})"
        taken = next((n for n, of in self.names.items() if of == first), None)
        if taken and first not in self.names:
            problem = f"no {first}, since the column {first} is read as the {taken} (the columns "
            problem += f"are {shown})"
            parameter = "format"
        remedies: list[str | Remedy] = []
        if parameter is None:
            remedies.append(f"rename the columns: {_FORMS}")
        else:
            named = dict.fromkeys(missing, COLUMN)
            words = f"name the {' and the '.join(missing)} in the format"
            remedies.append(Remedy(words, settings=named, columns=present))
            if first in self.names:
                remedies.append(Remedy(f"leave out {first}={name}", settings={first: None}))
            if missing == [ID, TEXT] and not self.names:
                remedies += name_forms(present)[1:]
                if not self.typed:
                    remedies.append("write the names of the columns in the first line")
            remedies.append(RECIPES)
        raise self.error(problem, line, "missing-column", parameter, remedies)

    def error(
        self,
        message: str,
        line: Any = None,
        code: str = "bad-line",
        parameter: str | None = None,
        remedies: Sequence[str | Remedy] = (),
    ) -> DataError:
        """Return the error that names the file, and one of its lines."""
        number = None if line is None else int(line)
        details: Any = {"parameter": parameter, "code": code, "remedies": remedies}
        return DataError(message, self.origin, number, **details)

    def number(self, token: str | bytes, line: int, what: str = "") -> float:
        """Return the number that a token prints; infinity for a bad one if `bad` is "drop".

        Args:
            token: as printed.
            line: the number of the line.
            what: the beginning of the message.

        Raises:
            DataError: with file and line, if it is not a finite number and `bad` is "error".

        >>> Schema("dev", bad="drop").number("nan", 1)
        inf
        """
        try:
            return parse_finite(token)
        except ValueError as error:
            if self.bad == "drop":
                return math.inf
            remedies: list[str | Remedy] = ["correct it", DROP]
            raise self.error(f"{what}{error}", line, "bad-number", "bad", remedies) from error

    def check(self, block: Block) -> Block:
        """Return the next records of the file: ids as integers, references as tuples of texts.

        Columns of numbers become arrays, in which NaN is missing, and their names `numbers`.

        Raises:
            DataError: naming line and field, if a value is not as the schema says.
        """
        line = int(block.line[0]) if len(block.line) else None
        block = _with_numbers(block)
        names = {**block.sentences, **block.candidates}
        if TEXT not in block.candidates:
            names.pop(TEXT, None)  # a text of the list is not that of a candidate
        required = [ID, TEXT] if block.parent is None else [TEXT]
        required += [name for name in self.names if name in names]
        self.require(required, names, line)
        sentences = {ID_NUMBER: self._read_ids(block), **self._sentences(block)}
        texts = from_arrow(block.candidates[TEXT])
        numbers, extras = self._candidates(block, texts)
        bad = [np.isinf(values) for values in numbers.values()]
        rows = np.logical_or.reduce(bad) if bad else np.zeros(0, bool)
        if rows.any() and self.bad != "drop":
            row = int(np.argmax(rows))
            name = next(n for n, of in zip(numbers, bad, strict=True) if of[row])
            name = name if name in block.candidates else OF_FEATURES + name
            values = block.candidates[name][row : row + 1]
            self._refuse("feature", block, name, from_arrow(values), row)
        self.numbers.update(numbers)
        block = block._replace(candidates={TEXT: texts} | numbers | extras, sentences=sentences)
        if rows.any():
            block = self._drop(block, rows)
        return block

    @property
    def counted(self) -> bool:
        """Whether the ids number texts, the extra `id` of the sentences, as they appear."""
        return self._kind is str

    def name(self, number: int) -> int | str:
        """Return the id of a sentence as the file has it."""
        texts = {self.first_id + place: text for text, place in self._places.items()}
        return texts.get(number, number)

    def _read_ids(self, block: Block) -> Int64:
        """Return (records,) the ids as integers.

        Raises:
            DataError: naming the line, if one is missing, is a list or an object, or is not an
                integer where those of the blocks before are.
        """
        count = len(block.line)
        first = self.first_id + self._records
        self._records += count
        values = block.sentences.get(ID, [None] * count)
        if isinstance(values, np.ndarray):
            return values
        types = set(map(type, values))
        if self._kind in (None, type(None)) and types == {type(None)}:
            self._kind = type(None)
            return np.arange(first, first + count)

        def error(row: int, problem: str, code: str = "bad-data", **_: Any) -> DataError:
            return self.error(f"sentence id {problem}", block.line[row], code)

        are_texts = types == {str} and all(text and "\0" not in text for text in set(values))
        refuse("id", () if types == {int} or are_texts else values, error)
        printed: list[Any] = values if types == {int} else list(map(str, values))
        distinct = dict.fromkeys(printed)
        keys = {one: one if self.typed else id_key(one) for one in distinct}
        texts = [one for one, key in keys.items() if not _is_integer(key)]
        self._kind = self._kind or (str if texts else int)
        if self._kind is type(None):
            raise error(0, f"{quote(values[0])}, but the rows before have none")
        if self._kind is int and texts:
            problem = f"{quote(texts[0])} is not an integer of 64 bits, as those before "
            raise error(printed.index(texts[0]), f"{problem}are: write all ids in the same way")
        if self._kind is str:
            first = self.first_id
            for text in map(str, distinct):
                self._places.setdefault(text, len(self._places))
            keys = {one: first + self._places[str(one)] for one in distinct}
        return np.fromiter(map(keys.__getitem__, printed), np.int64, count)

    def enter(self, block: Block, starts: Int64, *, whole: bool) -> None:
        """Enter the lists that begin in a block, and its sentences without candidates.

        Args:
            block: with its ids.
            starts: the records where lists begin.
            whole: whether all lists make a single table.

        Raises:
            DataError: if an id is that of two lists, or below the first one.
        """
        origin, first = self.origin, self.first_id
        any_order = block.parent is None and self.any_order
        sources, is_empty = block.sentences.get(SOURCE), block.sizes == 0
        records = np.union1d(starts, np.flatnonzero(is_empty))
        columns = np.arange(len(block.line)), block.sentences[ID_NUMBER], block.line, is_empty
        rows = zip(*(of[records].tolist() for of in columns), strict=True)
        for record, number, line, empty in rows:
            if number in self.lines or number in self.empty:
                if any_order and whole:
                    self.scattered = self.scattered or (self.lines[number], line)
                    continue
                problem = f"a second list of sentence {self.name(number)}"
                if number in self.lines:
                    unit = "record" if origin == MEMORY else "line"
                    problem += f"; the first one begins at {unit} {self.lines[number]}"
                remedy = "give it another id, or put the lines of a sentence together"
                if any_order:
                    remedy = "sort the rows by id, or read the whole file at once (read_nbest)"
                if block.parent is not None:
                    remedy = "give each list its own id, or none"
                raise self.error(f"{problem}: {remedy}", line, "duplicate")
            if number < first:
                problem = f"sentence id {number} is below the first id, {first}"
                remedies: list[str | Remedy] = ["correct it", count_from(number)]
                raise self.error(problem, line, "bad-data", "format", remedies)
            if empty:
                self.empty[number] = sources[record] if sources else None
            else:
                self.lines[number] = line

    def _drop(self, block: Block, bad: npt.NDArray[np.bool_]) -> Block:
        """Return a block without some candidates, and the records and columns of them alone."""
        ids, sentences = block.sentences[ID_NUMBER], dict(block.sentences)
        dropped = ids[block.parents[bad]].tolist()
        self.dropped += dropped
        gone = np.isin(ids, dropped).tolist()
        for name in filter(sentences.__contains__, JUDGEMENTS):
            pairs = list(zip(sentences[name], gone, strict=True))
            sentences[name] = [None if lost else value for value, lost in pairs]
            if any(value and lost for value, lost in pairs):
                problem = f"{name} are left out where a candidate of the list is dropped"
                warn_user(f"{locate(self.origin)}{problem}")
        left = np.bincount(block.parents[~bad], minlength=len(ids))
        records = np.flatnonzero((left > 0) | (block.sizes == 0))
        rest = block._replace(sentences=sentences).select(records, np.flatnonzero(~bad))
        names = [
            name
            for name, values in rest.candidates.items()
            if name == TEXT or not _is_empty(values) or _is_empty(block.candidates[name])
        ]
        return rest._replace(candidates={name: rest.candidates[name] for name in names})

    def _candidates(self, block: Block, texts: Any) -> tuple[dict[str, Float64], dict[str, Any]]:
        """Return the numbers, infinite where they are bad, and the other columns, by name."""
        numbers: dict[str, Float64] = {}
        extras: dict[str, Any] = {}
        for name, values in block.candidates.items():
            short = name.removeprefix(OF_FEATURES)
            if self.roles.is_feature(name) or short in self.roles.numbers:
                values = _unpack(values)
            if short != name and short in (TEXT, TOTAL):
                problem = f"a feature called {short}, as the {short} of candidates is: rename it"
                raise self.error(problem, block.line[0], code="bad-name")
            if short != name and short in block.candidates:
                problem = f"two fields {short}, one of them in {OF_FEATURES[:-1]}: rename one"
                raise self.error(problem, block.line[0], code="duplicate")
            if name == TEXT:
                if set(map(type, texts)) - {str} or "\0" in "".join(texts):
                    kind = "row" if block.parent is None else "candidate"
                    self._refuse(f"text of a {kind}", block, TEXT, texts)
                if not self.typed and any(text.startswith(("[", "{", " ")) for text in texts):
                    self._refuse("cell", block, TEXT, texts)
            elif name == ID and block.parent is not None:  # it names the candidate
                extras[name] = self._others(values)
            elif name == TOTAL or self._is_feature(name, values):
                numbers[short] = self._numbers(values)
            else:
                if short in self.roles.numbers and self._as_array(values) is None:
                    self._refuse("judgement", block, name, from_arrow(values))
                extras[short] = self._others(values)
        for name in filter({**numbers, **extras}.__contains__, self._sentence_lines):
            problem = f"{name} is a field of the sentence here, and of candidates elsewhere: rename"
            problem += " one of them"
            raise self.error(problem, self._sentence_lines[name], "bad-data")
        return numbers, extras

    def _is_feature(self, name: str, values: Any) -> bool:
        """Return whether a column is a feature, which stays the same to the end of the file."""
        chosen = self._features.get(name)
        if chosen is None:
            chosen = self.roles.is_feature(name)
            if chosen is None and has_numbers(values):
                chosen = True
            elif chosen is None:
                read = map(self._read, map(str, values) if is_arrow(values) else values)
                chosen = next((of is not None for of in read if of is None or of == of), None)
            self._features[name] = chosen
        return bool(chosen)

    def _read(self, value: Any) -> float | None:
        """Return a number, NaN if it is missing, infinite if it is not finite; None for others."""
        number = read_number(value, cells=not self.typed)
        if number is None or abs(number) <= LARGEST or is_missing(value):
            return number
        return number if number != number and self.nan_is_missing else math.inf

    def _as_array(self, values: Any) -> Any:
        """Return a column in which Arrow or NumPy has numbers alone; None for any other."""
        if has_numbers(values):
            return from_arrow(values, numbers=True)
        return None if self.typed or not is_arrow(values) else parse_cells(combine_chunks(values))

    def _numbers(self, values: Any) -> Float64:
        """Return numbers, NaN where one is missing, and infinity in place of any other value."""
        if (array := self._as_array(values)) is None:
            cells = [of if type(of) is float else self._read(of) for of in from_arrow(values)]
            array = np.array([math.inf if number is None else number for number in cells])
        numbers = array.astype(np.float64, copy=False)
        if not self.nan_is_missing:
            numbers = np.where(np.isnan(numbers), np.inf, numbers)
        large = np.abs(numbers) > LARGEST
        return np.where(large, np.inf, numbers) if large.any() else numbers

    def _others(self, values: Any) -> Any:
        """Return a column of any values, but None for NaN and for empty cells of a text file."""
        if isinstance(values, np.ndarray):
            return values
        if is_arrow(values):
            cells = combine_chunks(values)
            values = from_arrow(cells if self.typed else without_empty(cells))
        if float in set(map(type, values)):
            return tuple(None if _is_nan(value) else value for value in values)
        return tuple(values)

    def _refuse(
        self, kind: str, block: Block, name: str, values: Sequence[Any], first: int = 0
    ) -> None:
        """Refuse what breaks a rule of its kind among values of one field from the first."""

        def error(row: int, problem: str, **details: Any) -> DataError:
            row, field = first + row, column
            if block.parent is not None:
                place = row - int(np.searchsorted(block.parent, block.parent[row]))
                field = f"{CANDIDATES}[{place}].{short}"
            return self.error(f"{field} {problem}", block.line[block.parents[row]], **details)

        short, in_cells = name.removeprefix(OF_FEATURES), f"{kind} in a cell"
        kind = in_cells if in_cells in RULES and not self.typed else kind
        column = self.names.get(TEXT, TEXT) if name == TEXT else short
        refuse(kind, values, error, column)

    def _sentences(self, block: Block) -> dict[str, Sequence[Any]]:
        """Return the columns of sentences: sources, references and extras, one value per record."""
        columns: dict[str, Sequence[Any]] = {}
        references: dict[str, Sequence[tuple[str, ...]]] = {}
        records = block._replace(parent=None)
        for name, values in block.sentences.items():
            if name == SOURCE:
                self._refuse("source", records, name, values)
                columns[name] = values
            elif name == REFERENCES or find_label(name) == REFERENCE:
                self._refuse("references", records, name, values)  # an empty text is none
                references[name] = [
                    (of,) if of and isinstance(of, str) else tuple(of or ()) for of in values
                ]
            elif name != ID:
                if float in set(map(type, values)):
                    if self.nan_is_missing:
                        values = [None if _is_nan(value) else value for value in values]
                    self._refuse("finite", records, name, values)
                name = name.removeprefix(OF_SENTENCE)
                columns[name] = values
                first = next((n for n, v in enumerate(values) if v is not None), None)
                if first is not None:
                    self._sentence_lines.setdefault(name, int(block.line[first]))
        if self.counted:
            columns[ID] = list(map(str, block.sentences[ID]))
        if references:
            columns[REFERENCE] = self._references(block, references)
        if block.parent is not None and ID in block.candidates and ID in columns:
            problem = f"candidates have a field {ID}, and so have their sentences, as texts: rename"
            problem += " that of the candidates"
            raise self.error(problem, block.line[0], code="bad-name")
        return columns

    def _references(
        self, block: Block, columns: dict[str, Sequence[tuple[str, ...]]]
    ) -> Sequence[tuple[str, ...]]:
        """Return the references of each record, from its fields of references."""
        several = columns.pop(REFERENCES, [()] * len(block.line))
        single = [tuple(chain.from_iterable(of)) for of in zip(*columns.values(), strict=True)]
        for one, others, line in zip(single, several, block.line, strict=False):
            if one and others:
                problem = f"both {REFERENCE} and {REFERENCES}: leave one out"
                raise self.error(problem, line, "bad-data")
        return [one or others for one, others in zip(single or several, several, strict=True)]


def _with_numbers(block: Block) -> Block:
    """Return columns whose ids are the integers of ids that are texts, where these are given."""
    sentences = dict(block.sentences)
    numbers = sentences.pop(ID_NUMBER, sentences.pop(OF_SENTENCE + ID_NUMBER, None))
    if numbers is None or ID not in sentences:
        return block
    sentences[OF_SENTENCE + ID] = sentences[ID]
    return block._replace(sentences=sentences | {ID: numbers})


def _unpack(values: Any) -> Any:
    """Return the numbers of a column that has a list of one number in place of each; else itself.

    >>> _unpack([[1.5], None, [2]]), _unpack([[1.5], [2, 3]])
    ([1.5, None, 2], [[1.5], [2, 3]])
    """
    if is_arrow(values):
        import pyarrow as pa

        if not pa.types.is_nested(values.type):
            return values
        values = from_arrow(values)

    def has_number(one: Any) -> bool:
        return isinstance(one, list | tuple) and len(one) == 1 and is_number(one[0])

    first = next((one for one in values if one is not None), None)
    if not (has_number(first) and all(one is None or has_number(one) for one in values)):
        return values
    return [None if one is None else one[0] for one in values]


_LARGEST_ID = 2**63 - 1


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)


def _is_empty(values: Any) -> bool:
    return all(value is None or value != value for value in values)


def _is_integer(key: Any) -> bool:
    """Return whether an id is an integer of 64 bits."""
    return isinstance(key, Integral) and not isinstance(key, bool) and abs(int(key)) <= _LARGEST_ID
