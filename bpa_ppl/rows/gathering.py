"""Rows of a file gathered into tables of lists, a number of sentences at a time."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, pairwise
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from bpa_ppl.columns import counted, is_missing
from bpa_ppl.errors import DataError
from bpa_ppl.labels import places_of
from bpa_ppl.notes import warn_user
from bpa_ppl.rows.base import (
    OF_SENTENCE,
    REFERENCE,
    SOURCE,
    TOTAL,
    Rows,
    SentenceLines,
    missing_numbers,
)

T = TypeVar("T")
_BREAKS = "\0\r\n"
_BLANK = (
    "without words, the first of sentence {}: kept, and written as an empty line where it is chosen"
)
_BROKEN = (
    "with a line break or NUL inside, the first of sentence {}: kept, and a line break is written "
    "as a space"
)
# References that have no word in common with the hypotheses are told from so many lists on.
_TELLING = 10


class Gatherer(Generic[T]):
    """Makes tables of consecutive rows of one file, and checks what belongs to sentences.

    A feature that is missing for some hypotheses of a table becomes an extra of the table, with
    NaN where it is missing.

    Args:
        make: what a table is made with from its columns by name: `NBest`.
        origin: the name of the n-best file, for messages.
        lines: by name, what the whole text has one of for each sentence: references, sources.
            They stand in for those of the rows.
        first_id: the id of the first sentence of the text.
    """

    def __init__(
        self,
        make: Callable[..., T],
        origin: str,
        lines: Mapping[str, SentenceLines],
        first_id: int = 0,
    ):
        self.make = make
        self.origin = origin
        self.lines = lines
        self.first_id = first_id
        self._begins = _Beginnings()
        self._dropped: list[int] = []
        self._references = _ReferenceNotes(origin, lines.get(REFERENCE))
        self._texts = _TextNotes()
        self._present: dict[str, int] = {}  # values of each column of numbers
        self._count = 0  # hypotheses
        self._sourceless = 0  # sentences

    def tables(self, blocks: Iterable[Rows], sentences: int = sys.maxsize) -> Iterator[T]:
        """Yield tables of that many sentences each; the last one has the rest.

        Raises:
            DataError: if an id comes twice or has no reference, a whole list was dropped, every
                reference is blank, the rows of a sentence disagree on what belongs to it, or
                there are no rows.
        """
        table: _Table | None = None
        last: int | None = None
        for rows in blocks:
            table = table or _Table(rows)
            begun = len(self._begins)
            starts = _starts(rows.ids, last)
            self._texts.seen(rows)
            self._enter(rows, starts)
            done = 0
            for start in starts[(begun + np.arange(len(starts))) % sentences == 0]:
                table.append(rows.part(done, start), self.origin)
                done = start
                if start or begun:
                    yield self._made(table)
                    table = _Table(rows)
            table.append(rows.part(done), self.origin)
            last = int(rows.ids[-1]) if len(rows.ids) else last
        made = None if table is None else self._made(table)
        self._finish()
        if made is None or not len(self._begins):
            raise DataError("empty: there are no n-best lists in it", self.origin)
        yield made

    def _enter(self, rows: Rows, starts: npt.NDArray[np.int64]) -> None:
        """Note the lists that begin in some rows."""
        self._dropped += rows.dropped
        for identifier, line in zip(
            rows.ids[starts].tolist(), rows.lines[starts].tolist(), strict=True
        ):
            before = self._begins.line_of(identifier)
            if before is not None:
                raise DataError(
                    f"a second block of sentence {identifier}, whose list began at line "
                    f"{before}: sort the file by sentences, with "
                    "`sort -s -n -k1,1` where lines begin with the id",
                    self.origin,
                    line,
                )
            self._check_id(identifier, line)
            self._begins.add(identifier, line)

    def _check_id(self, identifier: int, line: int) -> None:
        position = identifier - self.first_id
        if position < 0:
            raise DataError(
                f"sentence id {identifier} is below the first id, {self.first_id}: ids are counted "
                f"from {identifier} where that is the first sentence (first_id={identifier})",
                self.origin,
                line,
            )
        for what, known in self.lines.items():
            count = len(known.lines)
            if position < count:
                continue
            one_based = position == count and self._begins.line_of(self.first_id) is None
            remedy = (
                f"the ids seem to be counted from {self.first_id + 1} "
                f"(first_id={self.first_id + 1})"
                if one_based
                else f"give the {what}s of the same text"
            )
            raise DataError(
                f"no {what} for sentence id {identifier}: {known.origin} has {count} "
                f"lines, for ids {self.first_id} to {self.first_id + count - 1}; {remedy}",
                self.origin,
                line,
            )

    def _finish(self) -> None:
        """Check what only the end of the file shows."""
        lost = [number for number in self._dropped if self._begins.line_of(number) is None]
        if lost:
            raise DataError(
                f"every hypothesis of sentence {lost[0]} has a value that is no finite number: "
                "correct the file",
                self.origin,
            )
        if self._dropped:
            dropped = counted(len(self._dropped), "hypothesis")
            self._tell(f"{dropped} dropped for values that are not finite")
        for note in missing_numbers(self._present, self._count):
            self._tell(note)
        if self._sourceless:
            sentences = counted(len(self._begins), "sentence")
            self._tell(
                f"no source for {self._sourceless} of {sentences}: the sources are kept as an "
                "extra of the sentences"
            )
        for note in (*self._texts.notes(), *self._references.notes()):
            self._tell(note)
        if self.lines and len(self._begins):
            self._tell_what_is_left_over()

    def _tell_what_is_left_over(self) -> None:
        if self._begins.lowest == self.first_id + 1:
            self._tell(
                f"no list for the first {next(iter(self.lines))}, id {self.first_id}: if ids are "
                f"counted from {self.first_id + 1}, say first_id={self.first_id + 1}"
            )
            return
        for what, known in self.lines.items():
            if len(known.lines) > len(self._begins):
                self._tell(
                    f"lists for {counted(len(self._begins), 'sentence')}, but {known.origin} has "
                    f"{len(known.lines)} {what}s: the others are not used"
                )

    def _tell(self, message: str) -> None:
        warn_user(f"{self.origin}: {message}")

    def _made(self, table: _Table) -> T:
        """Return the lists of a table with their references and sources."""
        columns = {name: column.finished() for name, column in table.columns.items()}
        printed = columns.pop("ids")
        starts = _starts(printed, None)
        ids = printed[starts]
        offsets = np.append(starts, len(printed)).astype(np.int64)
        strings, index = tuple(table.strings), table.string_index.finished()
        sentences = {name: tuple(values) for name, values in table.sentences.items()}
        for what, known in self.lines.items():
            given = tuple(known.lines[i] for i in (ids - self.first_id).tolist())
            if what == REFERENCE:
                self._references.replaced(sentences.get(what), given)
            sentences[what] = given
        if REFERENCE in sentences:
            sentences[REFERENCE] = tuple(refs or () for refs in sentences[REFERENCE])
            self._references.seen(sentences[REFERENCE], ids, strings, index, offsets)
        references = sentences.pop(REFERENCE, ())
        sources = sentences.get(SOURCE, ())
        self._sourceless += sources.count(None)
        if None not in sources:
            sentences.pop(SOURCE, None)
        hypotheses = self._hypotheses(table, **columns)
        extras = {n.removeprefix(OF_SENTENCE): v for n, v in sentences.items()}
        return self.make(
            offsets=offsets,
            sentence_ids=ids,
            strings=strings,
            string_index=index,
            origin=self.origin,
            sources=sources if sources and None not in sources else None,
            references=references if any(references) else None,
            # A list of one value for each hypothesis may be null as a whole.
            sentence_extras={
                name: values
                for name, values in extras.items()
                if name not in hypotheses["extras"] or values.count(None) < len(values)
            },
            totals_normalised=table.normalised,
            **hypotheses,
        )

    def _hypotheses(
        self,
        table: _Table,
        features: npt.NDArray[np.float32],
        totals: npt.NDArray[np.float32] | None = None,
    ) -> dict[str, Any]:
        """Return features, totals and extras; what is missing for some is no feature."""
        extras: dict[str, Any] = {n: column.finished() for n, column in table.extras.items()}
        there = np.count_nonzero(~np.isnan(features), axis=0).tolist()
        present = dict(zip(table.names, there, strict=True))
        numbers = dict(zip(table.names, features.T, strict=True))
        if totals is not None:
            present[TOTAL], numbers[TOTAL] = int(np.count_nonzero(~np.isnan(totals))), totals
        for name, values in list(extras.items()):
            if isinstance(values, tuple) and all(map(is_missing, values)):
                del extras[name]
                # `scores` may be null in some lines, and an object with fields in others.
                if not any(other.startswith(f"{name}.") for other in (*numbers, *extras)):
                    present[name] = 0
                    numbers[name] = np.full(len(values), np.nan, np.float32)
        self._count += len(features)
        for name, found in present.items():
            self._present[name] = self._present.get(name, 0) + found
        whole = [k for k, name in enumerate(table.names) if present[name] == len(features)]
        extras |= {n: numbers[n] for n, found in present.items() if found < len(features)}
        return {
            "features": features if len(whole) == len(table.names) else features[:, whole],
            "feature_names": tuple(table.names[k] for k in whole),
            "totals": None if TOTAL in extras else totals,
            "extras": extras,
        }


class _TextNotes:
    """Hypotheses that no translation looks like, noted and told at the end of a file."""

    def __init__(self) -> None:
        self._found: dict[str, list[int]] = {}  # how many, and the first sentence

    def seen(self, rows: Rows) -> None:
        """Note odd texts among some rows."""
        # Neither makes a string; both are quick, because hardly any text is odd.
        if "" in rows.strings or any(map(str.isspace, rows.strings)):
            self._note(rows, _BLANK, lambda text: not text.strip())
        whole = "".join(rows.strings)
        if any(mark in whole for mark in _BREAKS):
            self._note(rows, _BROKEN, lambda text: any(mark in text for mark in _BREAKS))

    def _note(self, rows: Rows, what: str, odd: Callable[[str], bool]) -> None:
        places = [place for place, text in enumerate(rows.strings) if odd(text)]
        ids = rows.ids[np.isin(rows.string_index, places)]
        if len(ids):
            self._found.setdefault(what, [0, int(ids[0])])[0] += len(ids)

    def notes(self) -> Iterator[str]:
        """Yield what there is to tell."""
        for what, (number, first) in self._found.items():
            yield f"{counted(number, 'hypothesis')} {what.format(first)}"


class _ReferenceNotes:
    """What looks wrong with references, noted list by list and told at the end of a file.

    Args:
        origin: the name of the n-best file.
        given: the references that stand in for those of the file, if any.
    """

    def __init__(self, origin: str, given: SentenceLines | None):
        self.origin = origin if given is None else given.origin
        self._lists = self._blank = self._strange = self._without = 0
        self._first_blank = self._first_without = 0
        self._replaced: tuple[int, int] | None = None

    def replaced(self, own: Sequence[Any] | None, given: Sequence[Any]) -> None:
        """Note where references of the file itself give way to others of another number."""
        for old, new in zip(own or (), given, strict=False):
            if old and len(old) != len(new) and self._replaced is None:
                self._replaced = len(old), len(new)

    def seen(
        self,
        references: Sequence[tuple[str, ...]],
        ids: npt.NDArray[np.int64],
        strings: Sequence[str],
        index: npt.NDArray[np.int32],
        offsets: npt.NDArray[np.int64],
    ) -> None:
        """Note sentences without references, blank ones, and those unlike their lists."""
        for place, known in enumerate(references):
            if not known:
                self._without += 1
                self._first_without = self._first_without if self._without > 1 else int(ids[place])
                continue
            self._lists += 1
            if not all(map(str.strip, known)):
                self._blank += 1
                self._first_blank = self._first_blank if self._blank > 1 else int(ids[place])
                continue
            rows = index[offsets[place] : offsets[place + 1]]
            self._strange += not _related(known, [strings[i] for i in rows.tolist()])

    def notes(self) -> Iterator[str]:
        """Yield what there is to tell.

        Raises:
            DataError: if there is no reference with a word.
        """
        if self._blank and self._blank == self._lists:
            raise DataError("every reference is blank: give those of this text", self.origin)
        if self._replaced is not None:
            old, new = self._replaced
            yield (
                f"the references of {self.origin}, {new} a sentence, are used instead of those in "
                f"the file, {old} a sentence"
            )
        if self._without and self._lists:
            yield (
                f"no reference for {counted(self._without, 'sentence')}, the first of id "
                f"{self._first_without}: a metric that compares with references needs one for each"
            )
        if self._blank:
            yield (
                f"{counted(self._blank, 'sentence')} with a blank reference, the first of id "
                f"{self._first_blank}: a metric takes it for a translation without words"
            )
        if self._lists >= _TELLING and self._strange > self._lists / 2:
            yield (
                f"{self._strange} of {self._lists} lists have no word in common with their "
                f"references in {self.origin}: are they of another text, or of another language?"
            )


def _related(references: Iterable[str], texts: Sequence[str]) -> bool:
    """Say whether any of the texts has a word of the references."""
    words = {word for text in references for word in _words(text)}
    if not words.isdisjoint(_words(texts[0])):
        return True
    whole = "\n".join(texts).lower()
    inside = {word for word in words if word in whole}  # perhaps as a part of another one
    return bool(inside) and not all(map(inside.isdisjoint, map(_words, texts)))


def _words(text: str) -> Iterable[str]:
    """Return words in lower case; characters where words are not separated, as in Chinese."""
    folded = text.lower()
    return folded.split() if folded.isascii() or " " in folded.strip() else folded


class _Beginnings:
    """The line at which the list of each sentence begins: 16 bytes a list, if ids ascend."""

    def __init__(self) -> None:
        self._ids, self._lines = array("q"), array("q")
        self._others: dict[int, int] = {}  # those from the first id on that is below the last

    def __len__(self) -> int:
        return len(self._ids) + len(self._others)

    @property
    def lowest(self) -> int:
        """The lowest id."""
        return min([self._ids[0], *self._others])

    def add(self, identifier: int, line: int) -> None:
        """Note a list that is not known yet."""
        if self._others or (self._ids and identifier < self._ids[-1]):
            self._others[identifier] = line
        else:
            self._ids.append(identifier)
            self._lines.append(line)

    def line_of(self, identifier: int) -> int | None:
        """Return where a list begins; None if it is not known."""
        at = bisect_left(self._ids, identifier)
        if at < len(self._ids) and self._ids[at] == identifier:
            return self._lines[at]
        return self._others.get(identifier)


class _Array:
    """An array that grows in place, so that its content is never there twice.

    Args:
        part: an array of the type and width to be held.
    """

    def __init__(self, part: npt.NDArray[Any]):
        self._values = np.empty((0, *part.shape[1:]), part.dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, part: npt.NDArray[Any]) -> None:
        end = self._length + len(part)
        if end > len(self._values):
            self._resize(end + end // 8)
        self._values[self._length : end] = part
        self._length = end

    def finished(self) -> npt.NDArray[Any]:
        self._resize(self._length)
        return self._values

    def _resize(self, length: int) -> None:
        # No view of the array is handed out before it is finished.
        self._values.resize((length, *self._values.shape[1:]), refcheck=False)


class _Objects:
    """A column of any objects, which grows as `_Array` does."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        self._values: list[Any] = list(values)

    def __len__(self) -> int:
        return len(self._values)

    def append(self, part: Sequence[Any]) -> None:
        self._values.extend(part)

    def finished(self) -> tuple[Any, ...]:
        return tuple(self._values)


def _growing(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return an empty column, to be filled, for each of some parts."""
    return {n: _Array(p) if isinstance(p, np.ndarray) else _Objects() for n, p in parts.items()}


class _Table:
    """The columns of a table that is being gathered; it begins with the columns of some rows."""

    def __init__(self, rows: Rows):
        self.names = rows.names
        self.normalised = rows.totals_normalised
        self.columns = _growing(rows.columns())
        self.extras = _growing(rows.extras)
        self.sentences: dict[str, list[Any]] = {name: [] for name in rows.of_sentences()}
        self.string_index = _Array(rows.string_index)
        self.strings = defaultdict[str, int](count().__next__)  # a new text has the next number
        self._last: int | None = None  # the sentence of the last row
        self._sentences = 0

    def append(self, rows: Rows, origin: str) -> None:
        rows = self._with_same_columns(rows, origin)
        for columns, parts in (
            (self.columns, rows.columns()),
            (self.extras, rows.extras),
        ):
            for name, column in columns.items():
                column.append(parts[name])
        self.string_index.append(self._indices(rows))
        self._append_sentences(rows, origin)

    def _with_same_columns(self, rows: Rows, origin: str) -> Rows:
        """Add the columns that only the rows have, and return rows with those that they lack."""
        if rows.names != self.names:
            new = tuple(name for name in rows.names if name not in self.names)
            self.columns["features"] = _wider(self.columns["features"], len(new))
            self.names += new
            for name in new:
                self.extras.pop(name, None)  # it had no value so far
            features = np.full((len(rows.ids), len(self.names)), np.nan, np.float32)
            features[:, places_of(rows.names, self.names)] = rows.features
            rows = rows._replace(names=self.names, features=features)
        length = len(self.string_index)
        if rows.totals is None and "totals" in self.columns:
            rows = rows._replace(totals=np.full(len(rows.ids), np.nan, np.float32))
        elif rows.totals is not None and "totals" not in self.columns:
            self.columns["totals"] = _Array(np.empty(0, np.float32))
            self.columns["totals"].append(np.full(length, np.nan, np.float32))
        if rows.extras.keys() != self.extras.keys():
            extras = {n: of for n, of in rows.extras.items() if n not in self.names}
            for name in self.extras.keys() ^ extras.keys():
                column = self.extras.get(name)
                if not isinstance(column, _Objects):
                    values = [None] * length if column is None else column.finished().tolist()
                    self.extras[name] = _Objects(values)
            lacking = self.extras.keys() - extras.keys()
            rows = rows._replace(extras=extras | dict.fromkeys(lacking, (None,) * len(rows.ids)))
        return rows

    def _append_sentences(self, rows: Rows, origin: str) -> None:
        """Keep one value a sentence, and hold those of its other rows against it."""
        parts = rows.of_sentences()
        starts = _starts(rows.ids, self._last).tolist()
        bounds = [*([] if starts[:1] == [0] else [0]), *starts, len(rows.ids)]
        for name in [name for name in parts if name not in self.sentences]:
            self.sentences[name] = [None] * self._sentences
        for name, kept in self.sentences.items():
            values = parts.get(name) or [None] * len(rows.ids)
            for start, end in pairwise(bounds):
                if start in starts[:1] or start > bounds[0]:
                    kept.append(values[start])
                odd = _first_other(values[start:end], kept) if end > start else None
                if odd is not None:
                    raise DataError(
                        f"another {name} than before for sentence {rows.ids[start]}: all its "
                        "hypotheses have the same",
                        origin,
                        int(rows.lines[start + odd]),
                    )
        self._sentences += len(starts)
        self._last = int(rows.ids[-1]) if len(rows.ids) else self._last

    def _indices(self, rows: Rows) -> npt.NDArray[np.int32]:
        """Return the rows' indices into the texts known so far, and add those that are new."""
        numbers = np.zeros(len(rows.strings), dtype=np.int32)
        used = np.flatnonzero(np.bincount(rows.string_index, minlength=len(numbers)))
        some = len(used) < len(numbers)
        texts = map(rows.strings.__getitem__, used.tolist()) if some else rows.strings
        numbers[used] = np.fromiter(map(self.strings.__getitem__, texts), np.int32, len(used))
        return numbers[rows.string_index]


def _wider(column: Any, more: int) -> _Array:
    """Return a column of arrays with so many more columns, which have no values."""
    values = column.finished()
    wider = _Array(np.empty((0, values.shape[1] + more), values.dtype))
    wider.append(np.pad(values, [(0, 0), (0, more)], constant_values=np.nan))
    return wider


def _first_other(values: Sequence[Any], kept: list[Any]) -> int | None:
    """Return the first place of another value than the one of the sentence, which is the last kept.

    A row may leave the value out. Objects that are the same are equal at once.
    """
    if values.count(kept[-1]) == len(values):
        return None
    stated = [i for i, value in enumerate(values) if value is not None and value != ()]
    if kept[-1] in (None, ()) and stated:
        kept[-1] = values[stated[0]]
    expected = kept[-1]
    return next((i for i in stated if values[i] is not expected and values[i] != expected), None)


def _starts(ids: npt.NDArray[np.int64], last: int | None) -> npt.NDArray[np.int64]:
    """Return the rows at which the id differs from the one before; `last` precedes the first."""
    before = np.concatenate([ids[:1] - 1 if last is None else [last], ids[:-1]])
    return np.flatnonzero(ids != before[: len(ids)])
