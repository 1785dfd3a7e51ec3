"""The ids of the sentences of one file: read as integers, and entered with their lines."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from bpa_ppl._runtime.arrays import Int64
from bpa_ppl.errors import MEMORY, DataError, quote
from bpa_ppl.formats.block import ID, SOURCE, Block, ReadOptions
from bpa_ppl.formats.rules import refuse
from bpa_ppl.lists.ids import id_key

_LARGEST = 2**63 - 1


class SentenceIds:
    """The ids of the sentences of one file, block by block: what the first block has.

    They are integers of 64 bits if all of them are; else each value is a text, and the integer of a
    sentence is its place in the order in which ids appear. Sentences without ids are counted.

    Args:
        options: how to read.
        empty: where sentences without candidates are entered: by id, the source, None if unknown.

    Attributes:
        keys: of the ids of the lists of all tables so far, see `id_key`.
        lines: of each list, the line in which it begins, by id.
        empty: the sentences without candidates, by id.
        scattered: two lines of a sentence whose rows are not adjacent.

    >>> ids = SentenceIds(ReadOptions("dev.jsonl"))
    >>> ids.read(Block({}, {"id": ["b", 7, "b"]}, None, np.array([1, 2, 3]))), ids.name(1)
    (array([0, 1, 0]), '7')
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
        self._places: dict[str, int] = {}  # of these

    @property
    def counted(self) -> bool:
        """Whether the ids number texts, the extra `id` of the sentences, as they appear."""
        return self._kind is str

    def name(self, number: int) -> int | str:
        """Return the id of a sentence as the file has it."""
        place = number - self.options.first_id
        return self._texts[place] if 0 <= place < len(self._texts) else number

    def read(self, block: Block) -> Int64:
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
            new = [text for text in map(str, distinct) if text not in self._places]
            self._places |= {text: place for place, text in enumerate(new, len(self._texts))}
            self._texts += new
            keys = {one: self.options.first_id + self._places[str(one)] for one in distinct}
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


def _is_integer(key: Any) -> bool:
    """Return whether an id is an integer of 64 bits."""
    return isinstance(key, Integral) and not isinstance(key, bool) and abs(int(key)) <= _LARGEST
