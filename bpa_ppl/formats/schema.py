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

A feature is a column that the user names, a field of an object `features` of the candidate (a
column `features.NAME`), or a column of numbers in a format of decoders. Its values are numbers; a
value is missing if it is absent, null, NaN, or an empty cell of a text file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import (
    LARGEST,
    Float64,
    Int64,
    is_missing,
    read_number,
)
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import MEMORY, DataError, locate, quote
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
    ReadOptions,
)
from bpa_ppl.formats.roles import OF_FEATURES
from bpa_ppl.formats.rules import RULES, refuse
from bpa_ppl.formats.values import (
    combine_chunks,
    from_arrow,
    has_numbers,
    is_arrow,
    parse_cells,
    without_empty,
)
from bpa_ppl.lists.ids import id_key
from bpa_ppl.lists.labels import find_label


class Schema:
    """Checks the columns of the records of one file, block by block.

    The columns that the user, the file or its format names as features must have numbers; all
    others are extras, and are kept as they are.

    Ids are integers of 64 bits, or texts if the first block has others: then the integer of a
    sentence is its place in the order in which ids appear. Sentences without ids are counted.

    Args:
        options: how to read, with the roles of columns.
        empty: where sentences without candidates are entered: by id, the source, None if unknown.

    Attributes:
        numbers: the names of the features, and of the total.
        dropped: the ids of candidates that are left out for a bad value.
        keys: of the ids of the lists of all tables so far, see `id_key`.
        lines: of each list, the line in which it begins, by id.
        empty: the sentences without candidates, by id.
        scattered: two lines of a sentence whose rows are not adjacent.

    >>> from bpa_ppl.formats.roles import Roles
    >>> block = Block(
    ...     {"text": ["a cat", "cat"], "lm": [-1.5, None], "by": ["x", "y"]},
    ...     {"id": [3]}, np.array([0, 0]), np.array([1]),
    ... )
    >>> block = Schema(ReadOptions("dev.jsonl", roles=Roles(("lm",)))).check(block)
    >>> block.sentences, block.candidates["lm"], block.candidates["by"]
    ({'id_number': array([3])}, array([-1.5,  nan]), ('x', 'y'))
    """

    def __init__(self, options: ReadOptions, empty: dict[int, str | None] | None = None):
        self.options = options
        self.numbers: set[str] = set()
        self.dropped: list[int] = []
        self.keys: list[Any] = []
        self.lines: dict[int, int] = {}
        self.empty = {} if empty is None else empty
        self.scattered: tuple[int, int] | None = None
        self._kind: type | None = None  # of ids: int or str, or NoneType where there are none
        self._records = 0
        self._places: dict[str, int] = {}  # of ids that are texts
        self._error = partial(options.error, code="bad-data")
        self._typed, self._nan_is_missing = options.typed, options.nan_is_missing
        # Whether a column is a feature; None as long as a pattern takes it, and has no value.
        self._features: dict[str, bool | None] = {}
        self._sentence_lines: dict[str, int] = {}  # where extras of sentences begin

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
        required += [name for name in self.options.names if name in names]
        self.options.require(required, names, line)
        sentences = {ID_NUMBER: self._read_ids(block), **self._sentences(block)}
        texts = from_arrow(block.candidates[TEXT])
        numbers, extras = self._candidates(block, texts)
        bad = [np.isinf(values) for values in numbers.values()]
        rows = np.logical_or.reduce(bad) if bad else np.zeros(0, bool)
        if rows.any() and self.options.bad != "drop":
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
        texts = {self.options.first_id + place: text for text, place in self._places.items()}
        return texts.get(number, number)

    def _read_ids(self, block: Block) -> Int64:
        """Return (records,) the ids as integers.

        Raises:
            DataError: naming the line, if one is missing, is a list or an object, or is not an
                integer where those of the blocks before are.
        """
        count = len(block.line)
        first = self.options.first_id + self._records
        self._records += count
        values = block.sentences.get(ID, [None] * count)
        if isinstance(values, np.ndarray):
            return values
        types = set(map(type, values))
        if self._kind in (None, type(None)) and types == {type(None)}:
            self._kind = type(None)
            return np.arange(first, first + count)

        def error(row: int, problem: str, code: str = "bad-data", **_: Any) -> DataError:
            return self.options.error(f"sentence id {problem}", block.line[row], code)

        are_texts = types == {str} and all(text and "\0" not in text for text in set(values))
        refuse("id", () if types == {int} or are_texts else values, error)
        printed: list[Any] = values if types == {int} else list(map(str, values))
        distinct = dict.fromkeys(printed)
        keys = {one: one if self.options.typed else id_key(one) for one in distinct}
        odd = [one for one, key in keys.items() if not _is_integer(key)]
        self._kind = self._kind or (str if odd else int)
        if self._kind is type(None):
            raise error(0, f"{quote(values[0])}, but the rows before have none")
        if self._kind is int and odd:
            problem = f"{quote(odd[0])} is not an integer of 64 bits, as those before "
            raise error(printed.index(odd[0]), f"{problem}are: write all ids in the same way")
        if self._kind is str:
            first = self.options.first_id
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
        origin, first = self.options.origin, self.options.first_id
        any_order = block.parent is None and self.options.any_order
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
                remedy = "give it another id, or put the lines of a sentence together, with"
                remedy += " `sort -s -n -k1,1` where lines begin with the id"
                if any_order:
                    remedy = "sort the rows by id, or read the whole file at once (read_nbest)"
                if block.parent is not None:
                    remedy = "give each list its own id, or none"
                raise self.options.error(f"{problem}: {remedy}", line, "duplicate")
            if number < first:
                problem = f"sentence id {number} is below the first id, {first}"
                remedy = f"if that is the first sentence, set first_id={number}"
                remedy += f" (of a file: with its format, auto:first_id={number})"
                raise DataError(f"{problem}: {remedy}", origin, line, parameter="format")
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
                warn_user(f"{locate(self.options.origin)}{problem}")
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
            if short != name:
                self._check_name_of_feature(short, block)
            if name == TEXT:
                self._check_texts(block, texts)
            elif name == ID and block.parent is not None:  # it names the candidate
                extras[name] = self._others(values)
            elif name == TOTAL or self._is_feature(name, values):
                numbers[short] = self._numbers(values)
            else:
                if short in self.options.roles.numbers and self._as_array(values) is None:
                    self._refuse("judgement", block, name, from_arrow(values))
                extras[short] = self._others(values)
        for name in filter({**numbers, **extras}.__contains__, self._sentence_lines):
            problem = f"{name} is a field of the sentence here, and of candidates elsewhere: rename"
            problem += " one of them"
            raise self._error(problem, self._sentence_lines[name])
        return numbers, extras

    def _check_name_of_feature(self, name: str, block: Block) -> None:
        """Refuse a feature of the file with the name of another column."""
        if name in (TEXT, TOTAL):
            problem = f"a feature called {name}, as the {name} of candidates is: rename it"
            raise self._error(problem, block.line[0], code="bad-name")
        if name in block.candidates:
            problem = f"two fields {name}, one of them in {OF_FEATURES[:-1]}: rename one"
            raise self._error(problem, block.line[0], code="duplicate")

    def _check_texts(self, block: Block, texts: Sequence[Any]) -> None:
        """Refuse what is not the text of a candidate."""
        if set(map(type, texts)) - {str} or "\0" in "".join(texts):
            kind = "text of a row" if block.parent is None else "text of a candidate"
            self._refuse(kind, block, TEXT, texts)
        if not self._typed and any(text.startswith(("[", "{", " ")) for text in texts):
            self._refuse("cell", block, TEXT, texts)

    def _is_feature(self, name: str, values: Any) -> bool:
        """Return whether a column is a feature, which stays the same to the end of the file."""
        chosen = self._features.get(name)
        if chosen is None:
            chosen = self.options.roles.is_feature(name)
            if chosen is None and has_numbers(values):
                chosen = True
            elif chosen is None:
                read = map(self._read, map(str, values) if is_arrow(values) else values)
                chosen = next((of is not None for of in read if of is None or of == of), None)
            self._features[name] = chosen
        return bool(chosen)

    def _read(self, value: Any) -> float | None:
        """Return a number, NaN if it is missing, infinite if it is not finite; None for others."""
        number = read_number(value, cells=not self._typed)
        if number is None or abs(number) <= LARGEST or is_missing(value):
            return number
        return number if number != number and self._nan_is_missing else math.inf

    def _as_array(self, values: Any) -> Any:
        """Return a column in which Arrow or NumPy has numbers alone; None for any other."""
        if has_numbers(values):
            return from_arrow(values, numbers=True)
        return None if self._typed or not is_arrow(values) else parse_cells(combine_chunks(values))

    def _numbers(self, values: Any) -> Float64:
        """Return numbers, NaN where one is missing, and infinity in place of any other value."""
        if (array := self._as_array(values)) is None:
            found = [of if type(of) is float else self._read(of) for of in from_arrow(values)]
            array = np.array([math.inf if number is None else number for number in found])
        numbers = array.astype(np.float64, copy=False)
        if not self._nan_is_missing:
            numbers = np.where(np.isnan(numbers), np.inf, numbers)
        large = np.abs(numbers) > LARGEST
        return np.where(large, np.inf, numbers) if large.any() else numbers

    def _others(self, values: Any) -> Any:
        """Return a column of any values, but None for NaN and for empty cells of a text file."""
        if isinstance(values, np.ndarray):
            return values
        if is_arrow(values):
            cells = combine_chunks(values)
            values = from_arrow(cells if self._typed else without_empty(cells))
        if float in set(map(type, values)):
            return tuple(None if _is_nan(value) else value for value in values)
        return tuple(values)

    def _refuse(
        self, kind: str, block: Block, name: str, values: Sequence[Any], first: int = 0
    ) -> None:
        """Refuse what breaks a rule of its kind among values of one field from the first."""

        def error(row: int, problem: str, **details: Any) -> DataError:
            row, field = first + row, short
            if block.parent is not None:
                place = row - int(np.searchsorted(block.parent, block.parent[row]))
                field = f"{CANDIDATES}[{place}].{short}"
            return self._error(f"{field} {problem}", block.line[block.parents[row]], **details)

        short, in_cells = name.removeprefix(OF_FEATURES), f"{kind} in a cell"
        kind = in_cells if in_cells in RULES and not self._typed else kind
        column = self.options.names.get(TEXT, TEXT) if name == TEXT else short
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
                    if self._nan_is_missing:
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
            raise self._error(problem, block.line[0], code="bad-name")
        return columns

    def _references(
        self, block: Block, columns: dict[str, Sequence[tuple[str, ...]]]
    ) -> Sequence[tuple[str, ...]]:
        """Return the references of each record, from its fields of references."""
        several = columns.pop(REFERENCES, [()] * len(block.line))
        single = [tuple(chain.from_iterable(of)) for of in zip(*columns.values(), strict=True)]
        for one, others, line in zip(single, several, block.line, strict=False):
            if one and others:
                raise self._error(f"both {REFERENCE} and {REFERENCES}: leave one out", line)
        return [one or others for one, others in zip(single or several, several, strict=True)]


def _with_numbers(block: Block) -> Block:
    """Return columns whose ids are the integers of ids that are texts, where these are given."""
    sentences = dict(block.sentences)
    numbers = sentences.pop(ID_NUMBER, sentences.pop(OF_SENTENCE + ID_NUMBER, None))
    if numbers is None or ID not in sentences:
        return block
    sentences[OF_SENTENCE + ID] = sentences[ID]
    return block._replace(sentences=sentences | {ID: numbers})


_LARGEST_ID = 2**63 - 1


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and math.isnan(value)


def _is_empty(values: Any) -> bool:
    return all(value is None or value != value for value in values)


def _is_integer(key: Any) -> bool:
    """Return whether an id is an integer of 64 bits."""
    return isinstance(key, Integral) and not isinstance(key, bool) and abs(int(key)) <= _LARGEST_ID
