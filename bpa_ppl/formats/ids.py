"""The ids of the sentences of one file: read as integers, and entered with their lines."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any

import numpy as np

from bpa_ppl._runtime.arrays import NUL_IN_TEXT, Int64
from bpa_ppl.errors import MEMORY, DataError, quote
from bpa_ppl.formats.block import ID, SOURCE, Block, ReadOptions
from bpa_ppl.lists.ids import describe_equal_ids, id_keys, visible_form

_LARGEST = 2**63 - 1
_KINDS = {int: "integers", str: "texts", type(None): "missing"}


class SentenceIds:
    """The ids of the sentences of one file, block by block.

    Ids that are texts, or integers of more than 64 bits, are counted as they appear; so are
    sentences without ids.

    Args:
        options: how to read.
        empty: where sentences without candidates are entered: by id, the source, None if unknown.

    Attributes:
        keys: of the ids of the lists of all tables so far, see `id_key`.
        lines: of each list, the line in which it begins, by id.
        empty: the sentences without candidates, by id.
        scattered: two lines of a sentence whose rows are not adjacent.

    >>> ids = SentenceIds(ReadOptions("dev.jsonl"))
    >>> ids.read(Block({}, {"id": ["b", "a", "b"]}, None, np.array([1, 2, 3]))), ids.name(1)
    (array([0, 1, 0]), 'a')
    """

    def __init__(self, options: ReadOptions, empty: dict[int, str | None] | None = None):
        self.options = options
        self.keys: list[Any] = []
        self.lines: dict[int, int] = {}
        self.empty = {} if empty is None else empty
        self.scattered: tuple[int, int] | None = None
        self._kind: type | None = None  # int or str, or NoneType where there are no ids
        self._records = 0
        self._texts: list[str] = []  # ids that are texts
        self._numbers: dict[str, int] = {}  # their places, by their visible forms
        self._are_large = False  # whether ids are integers of more than 64 bits, kept as texts

    @property
    def counted(self) -> bool:
        """Whether the ids number texts, the extra `id` of the sentences, as they appear."""
        return self._kind is str

    def name(self, number: int) -> int | str:
        """Return the id of a sentence as the file has it."""
        place = number - self.options.first_id
        return self._texts[place] if 0 <= place < len(self._texts) else number

    def names(self, block: Block) -> list[Any]:
        """Return the ids of records that are texts as the file has them."""
        ids = block.sentences[ID]
        return list(map(str, ids)) if self._are_large else list(ids)

    def read(self, block: Block) -> Int64:
        """Return (records,) the ids as integers.

        Raises:
            DataError: naming the line, if one is no id, is of another kind than those before, or
                looks like another one.
        """
        count = len(block.line)
        first = self.options.first_id + self._records
        self._records += count
        values, lines = block.sentences.get(ID, [None] * count), block.line.tolist()
        if isinstance(values, np.ndarray):
            return values
        if {int}.issuperset(map(type, values)) and self._kind in (None, int):
            with suppress(OverflowError):
                numbers = np.fromiter(values, np.int64, count)
                if count and numbers.min() >= -_LARGEST:
                    self._kind = int
                    return numbers
        try:  # repeated where records are candidates
            first_lines = dict(zip(reversed(values), reversed(lines), strict=True))
        except TypeError:
            odd = (isinstance(v, tuple) or not isinstance(v, Hashable) for v in values)
            row = [*odd].index(True)
            raise self._odd_id(values[row], lines[row]) from None
        distinct = dict.fromkeys(values)
        # In a file that does not distinguish numbers from texts, unless its ids are texts.
        are_cells = not self.options.typed and self._kind is not str
        keys = id_keys(distinct) if are_cells else distinct
        if self._kind is None:
            integers = [k for k in keys if isinstance(k, int) and not isinstance(k, bool)]
            self._are_large = max(map(abs, integers), default=0) > _LARGEST
        pairs = zip(distinct, keys, strict=True)
        numbered = {value: self._number(value, key, first_lines[value]) for value, key in pairs}
        if self._kind is type(None):
            return np.arange(first, first + count)
        return np.fromiter(map(numbered.__getitem__, values), np.int64, count)

    def _number(self, entry: Any, key: Any, line: int) -> int:
        """Return an id as an integer.

        Args:
            entry: the id as it is in the file.
            key: an integer if the id may be one, else the same.
            line: of the id.
        """
        value = entry if self._kind is str else key
        integer = isinstance(value, Integral) and not isinstance(value, bool)
        if integer and self._are_large:
            value, integer = str(value), False
        if isinstance(value, str) and not value:
            raise self._error("sentence id '' is empty: give each row one", line)
        if isinstance(value, str) and "\0" in value:
            raise self._error(f"sentence id has {NUL_IN_TEXT}", line, "bad-encoding")
        if not (value is None or isinstance(value, str) or integer):
            raise self._odd_id(entry, line)
        if integer and abs(int(value)) > _LARGEST:
            problem = f"sentence id {quote(entry)} has more than 64 bits, and the ids before have "
            raise self._error(f"{problem}not: write all ids as texts", line)
        kind = int if integer else str if isinstance(value, str) else type(None)
        self._kind = self._kind or kind
        if kind is not self._kind:
            problem = f"sentence id {quote(entry)}, but the ids before are {_KINDS[self._kind]}"
            if value is None:
                problem = f"no field {ID}, which the first line has"
            raise self._error(f"{problem}: write all ids in the same way", line)
        if not isinstance(value, str):
            return int(value or 0)
        form = visible_form(value)
        place = self._numbers.setdefault(value if form == value else form, len(self._texts))
        if place == len(self._texts):
            self._texts.append(value)
        if (other := self._texts[place]) != value:
            raise self._error(describe_equal_ids(value, other), line, "duplicate")
        return self.options.first_id + place

    def _odd_id(self, entry: Any, line: int) -> DataError:
        problem = f"sentence id {quote(entry)} is not an integer or a text: write it as one"
        return self._error(problem, line)

    def _error(self, problem: str, line: int, code: str = "bad-data") -> DataError:
        return self.options.error(problem, line, code)

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
        columns = (records, block.ids[records], block.line[records], is_empty[records])
        for record, number, line, empty in zip(*(of.tolist() for of in columns), strict=True):
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
                raise self._error(f"{problem}: {remedy}", line, "duplicate")
            if number < first:
                problem = f"sentence id {number} is below the first id, {first}"
                remedy = f"if that is the first sentence, set first_id={number}"
                remedy += f" (of a file: with its format, auto:first_id={number})"
                raise DataError(f"{problem}: {remedy}", origin, line, parameter="format")
            if empty:
                self.empty[number] = sources[record] if sources else None
            else:
                self.lines[number] = line


def require_distinct_ids(ids: Sequence[Any]) -> None:
    """Raise a DataError unless these are ids of lists in memory, each of another list.

    >>> require_distinct_ids([7, 9, 7])
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: record 3: a second list of sentence 7; the first one begins at ...
    """
    places = np.arange(len(ids))
    first = min((of for of in ids if isinstance(of, int)), default=0)
    checked = SentenceIds(ReadOptions(MEMORY, first_id=min(first, 0)))
    block = Block({}, {ID: ids}, places, places + 1)
    checked.enter(block._replace(ids=checked.read(block)), places, whole=True)
