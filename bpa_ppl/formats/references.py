"""References and sources of a text: read from files, and paired with lists by line or by id.

A text file has one line for each list, in their order; lists with integer ids may be some of those
of a longer text. A table (`.tsv`, `.csv`) or a file of JSON lines (`.jsonl`) has references with
ids, in the columns `id` and `reference`. Several rows of an id are several references.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from bpa_ppl._runtime.arrays import to_members, to_texts
from bpa_ppl._runtime.messages import format_count, log_info
from bpa_ppl.errors import (
    DataError,
    UsageError,
    bad_value,
    damaged,
    mismatch,
    missing_data,
    needs,
    quote,
)
from bpa_ppl.formats.block import ID, REFERENCE, REFERENCES
from bpa_ppl.formats.streams import (
    STANDARD,
    AnyPath,
    file_suffix,
    origin_name,
    read_lines,
    require_parallel,
)
from bpa_ppl.formats.values import parse_strictly
from bpa_ppl.lists.ids import (
    describe_equal_ids,
    describe_other_ids,
    find_other_form,
    group_references,
    id_key,
    id_keys,
    to_references,
)

#: Files of references; or a tuple or list of references for each sentence, or by id.
AnyReferences = (
    AnyPath | Sequence[AnyPath] | Sequence[Sequence[str]] | Mapping[Any, str | Sequence[str]]
)
#: A file of source sentences, or the sentences themselves.
AnySources = AnyPath | Sequence[str]


class SentenceLines(NamedTuple):
    """One entry for each sentence of a text, such as its references.

    Attributes:
        lines: one entry per sentence; or entries by id, as `names.id_key` returns it.
        origin: where they are from, for messages.
    """

    lines: Sequence[Any] | Mapping[Any, Any]
    origin: str

    @classmethod
    def of_references(cls, value: Any) -> SentenceLines:
        """Return references: a text or several for each sentence, or by id.

        Raises:
            UsageError: if they are anything else.
        """
        if isinstance(value, Mapping):
            return cls(group_references(value), "the references")
        return cls(to_references(value), "the text")


def load_references(references: AnyReferences) -> SentenceLines:
    """Return references: those of files, or as they are.

    Raises:
        DataError: as `read_references`.
        UsageError: if they are neither files nor references.

    >>> load_references([("the cat",), ["a dog", "one dog"]]).lines
    (('the cat',), ('a dog', 'one dog'))
    >>> load_references({"7": "the cat"}).lines
    {7: ('the cat',)}
    """
    if isinstance(references, Mapping):
        return SentenceLines.of_references(references)
    single = isinstance(references, str | PurePath)
    files: list[Any] = [references] if single else to_members(references, "references")
    if not all(isinstance(path, str | PurePath) for path in files):
        return SentenceLines.of_references(files)
    texts = isinstance(references, list | tuple) and all(isinstance(path, str) for path in files)
    if texts and files and not any(path == STANDARD or os.path.exists(path) for path in files):
        problem = f"there is no file of references {files[0]}"
        advice = "check the name, or give the references as one tuple for each sentence"
        raise UsageError(f"{problem}: {advice}", parameter="references", code="missing-file")
    return SentenceLines(_read_entries(files), ", ".join(map(origin_name, files)))


def load_sources(sources: AnySources) -> SentenceLines:
    """Return source sentences: the lines of a file, or as they are.

    >>> load_sources(["un chat"]).lines
    ('un chat',)
    """
    if not isinstance(sources, str | PurePath):
        return SentenceLines(to_texts(sources), "the text")
    return SentenceLines([line.strip() for line in read_lines(sources)], origin_name(sources))


def read_references(paths: AnyPath | Sequence[AnyPath]) -> list[tuple[str, ...]]:
    """Return for each sentence the tuple of its references.

    Args:
        paths: one text file, or several with one line each for the same sentences.

    Raises:
        DataError: if a file cannot be read or is empty, or two differ in their number of lines.
        UsageError: if no file is given.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"a cat sat"), file.flush()
    ...     print(read_references([file.name, file.name]))
    [('a cat sat', 'a cat sat')]
    """
    files = [paths] if isinstance(paths, str) or not isinstance(paths, Sequence) else list(paths)
    references = _read_entries(files)
    if isinstance(references, dict):
        problem = "its references have ids: give the file itself as the references of lists"
        raise DataError(problem, origin_name(files[0]), code="mismatch")
    return references


def _read_entries(paths: Sequence[AnyPath]) -> list[tuple[str, ...]] | dict[Any, tuple[str, ...]]:
    """Return the references of each sentence, or by id if the files have ids."""
    if not paths:
        raise needs("reading references", "at least one file", "paths", code="no-data")
    with_ids = [path for path in paths if file_suffix(path) in _WITH_IDS]
    if with_ids and len(with_ids) < len(paths):
        path = next(path for path in paths if path not in with_ids)
        other = f"{origin_name(with_ids[0])} has ids"
        remedy = "give files of one kind"
        raise mismatch("lines without ids", other, origin_name(path), remedy=remedy)
    files = [(origin_name(path), read_lines(path)) for path in paths]
    for origin, lines in files:
        if not lines:
            raise missing_data("line", "give the references", origin)
    if with_ids:
        read = (_WITH_IDS[file_suffix(path)] for path in paths)
        return _join(
            files, [of(lines, origin) for of, (origin, lines) in zip(read, files, strict=True)]
        )
    for origin, lines in files:
        if place := next((n for n, line in enumerate(lines, 1) if "\t" in line), None):
            header = f"{ID}<TAB>{REFERENCE}"
            problem = "a reference has a tab: if the lines have ids, write the names of the columns"
            problem += f" in the first line (`{header}`) of a file .tsv; else write a space"
            raise DataError(problem, origin, place, parameter="references", code="bad-line")
    require_parallel([len(lines) for _, lines in files], [origin for origin, _ in files])
    return [tuple(map(str.strip, texts)) for texts in zip(*(of for _, of in files), strict=True)]


# Files with ids.


#: A row with an id: its line, the id and the references.
_Row = tuple[int, Any, tuple[str, ...]]


def _join(
    files: Sequence[tuple[str, Any]], entries: Sequence[Iterable[_Row]]
) -> dict[Any, tuple[str, ...]]:
    """Return the references of all rows by id."""
    by_id: dict[Any, tuple[str, ...]] = {}
    forms: dict[Any, str] = {}
    for (origin, _), rows in zip(files, entries, strict=True):
        for line, identifier, texts in rows:
            key = id_key(identifier)
            if other := find_other_form(forms, key, identifier):
                raise DataError(
                    describe_equal_ids(identifier, other), origin, line, code="duplicate"
                )
            by_id[key] = (*by_id.get(key, ()), *texts)
    return by_id


def _read_json(lines: Sequence[str], origin: str) -> Iterator[_Row]:
    """Yield the id and the references of JSON objects."""
    block = "\n".join([*lines, ""]).encode()
    for record, line in zip(*parse_strictly(block, origin, 1, REFERENCES), strict=True):
        fields = record if isinstance(record, dict) else {}
        values = [fields[name] for name in (REFERENCE, REFERENCES) if name in fields]
        texts = [value for value in values if value is not None]
        if len(texts) > 1:
            raise DataError(f"both {REFERENCE} and {REFERENCES}: leave one out", origin, line)
        several: Any = texts if not texts or isinstance(texts[0], str) else texts[0]
        is_valid = isinstance(several, list) and all(isinstance(text, str) for text in several)
        identifier = fields.get(ID)
        is_id = isinstance(id_key(identifier), int | str) and not isinstance(identifier, bool)
        if not (is_id and values and is_valid):
            problem = f'write lines like {{"{ID}": "doc-1", "{REFERENCE}": "a text"}}, with a '
            problem += f"{REFERENCE} that is a text, a list of texts or null"
            raise DataError(f"no {ID} with a {REFERENCE}: {problem}", origin, line)
        yield line, identifier, tuple(several)


def _read_csv(lines: Sequence[str], origin: str) -> Iterator[_Row]:
    """Return the rows of a table with commas."""
    return _read_table(_split_cells(lines, origin), ",", origin)


def _read_tsv(lines: Sequence[str], origin: str) -> Iterator[_Row]:
    """Return the rows of a table with tabs, in which quotation marks are part of the texts."""
    return _read_table(((n, of.split("\t")) for n, of in enumerate(lines, 1) if of), "\t", origin)


#: How files with ids are read, by their endings.
_WITH_IDS: dict[str, Callable[[Sequence[str], str], Iterator[_Row]]] = {
    ".tsv": _read_tsv,
    ".csv": _read_csv,
    ".jsonl": _read_json,
}


def _split_cells(lines: Sequence[str], origin: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the cells of each row, which may have several lines."""
    rows = csv.reader((f"{line}\n" for line in lines), strict=True)
    first = 1
    try:
        for cells in rows:
            if cells:
                yield first, cells
            first = rows.line_num + 1
    except csv.Error as error:
        remedy = "correct it, or write the table as JSON lines"
        raise damaged(
            "a row of CSV", error, origin, first, remedy=remedy, code="bad-line"
        ) from error


def _read_table(
    rows: Iterable[tuple[int, list[str]]], separator: str, origin: str
) -> Iterator[_Row]:
    """Yield the id and the reference of each row; an empty cell is no reference."""
    names: list[str] = []
    for line, cells in rows:
        if not names:
            names = cells
            if any(names.count(name) != 1 for name in (ID, REFERENCE)):
                header = f"{ID}<TAB>{REFERENCE}" if separator == "\t" else f"{ID},{REFERENCE}"
                found, remedy = separator.join(cells), f"write `{header}` there"
                about = ("the first line", found, "the names of the columns", origin, line)
                raise bad_value(*about, remedy=remedy, code="missing-column")
            of_id, of_text = names.index(ID), names.index(REFERENCE)
            continue
        if len(cells) != len(names):
            found, first_line = format_count(len(cells), "cell"), f"the first line has {len(names)}"
            remedy = "write a tab in a text as a space" if separator == "\t" else "quote each text"
            raise mismatch(found, first_line, origin, line, remedy=remedy, code="bad-line")
        if not cells[of_id]:
            raise missing_data(ID, "write it", origin, line, code="bad-line")
        yield line, cells[of_id], tuple(filter(None, [cells[of_text]]))


# Which entry belongs to which list.


class Pairing:
    """Pairs references, or sources, with lists.

    Those with ids are paired by id. Of those without, an id that is an integer, perhaps as a text,
    names the line, so lists may be some of those of the text. If ids are other texts, the lines are
    in the order in which these appear.

    Args:
        what: "reference" or "source".
        sentences: the references or sources.
        origin: the name of the n-best file, for messages.
        first_id: the id of the first line.

    >>> pairing = Pairing("reference", SentenceLines(["a", "b", "c"], "dev.ref"), "dev.jsonl", 0)
    >>> pairing.entries([0, 1], ["2", "0"], [1, 2], by_text=True)
    (('c', 'a'), [2, 0])
    """

    def __init__(self, what: str, sentences: SentenceLines, origin: str, first_id: int):
        self.what, self.sentences, self.origin, self.first_id = what, sentences, origin, first_id
        self._by_id = isinstance(sentences.lines, Mapping)
        self._entries: Mapping[Any, Any] = (
            dict(sentences.lines) if self._by_id else dict(enumerate(sentences.lines, first_id))
        )
        self._forms: dict[Any, str] = {}  # of ids that are joined
        self._keys: list[Any] = []  # of the ids of all lists
        # Whether ids are texts, which are integers, or in the order of the entries.
        self._by_value = self._in_order = False
        one = first_id + 1
        self._if_counted = f"if ids are counted from {one}, set first_id={one}"
        self._if_counted += f" (of a file: with its format, auto:first_id={one})"
        self._remedy = f"give a {what} for each list, in their order"
        if what == REFERENCE:
            self._remedy += f", or references with ids: a file .tsv with a header {ID}<TAB>{what}"

    def entries(
        self, ids: Sequence[int], names: Sequence[Any], lines: Sequence[int], *, by_text: bool
    ) -> tuple[tuple[Any, ...], Sequence[int]]:
        """Return the entries of some lists, and the ids that name the lines.

        An entry that is missing is None until `notes` raises the error, which has both numbers.

        Args:
            ids: of the lists.
            names: the ids as in the file, texts or integers.
            lines: where the lists begin.
            by_text: whether `ids` number the texts in `names`, as these appear.

        Raises:
            DataError: if an id names no line, or two are one number written in two ways.
        """
        keys = id_keys(names)
        if by_text and keys and not self._keys and not self._by_id:
            self._by_value = isinstance(keys[0], int)
            self._in_order = not self._by_value
        self._keys += keys
        numbers = keys if self._by_id or self._by_value else ids
        for number, key, name, line in zip(numbers, keys, names, lines, strict=True):
            if self._by_value and not isinstance(key, int):
                problem = f"the id {quote(name)} is not an integer, as others are: "
                raise self._error(problem + self._remedy, line)
            has_entry = number in self._entries
            is_joined = self._by_value or (self._by_id and has_entry)
            # Ids that are one number written in two ways would have one entry.
            if is_joined and (other := find_other_form(self._forms, key, name)):
                raise self._error(describe_equal_ids(name, other), line, code="duplicate")
            if not (has_entry or self._by_id or self._in_order):
                raise self._no_entry(number, line)
        return tuple(map(self._entries.get, numbers)), numbers if self._by_value else ids

    def notes(self, ids: Collection[int], empty: Iterable[Any]) -> Iterator[str]:
        """Yield a sentence for lines that are not used.

        Args:
            ids: of all sentences.
            empty: the ids, as in the file, of those without candidates.

        Raises:
            DataError: if there are more or fewer lines than lists, or other ids.
        """
        entries, origin, first = self._entries, self.sentences.origin, self.first_id
        if self._by_id:
            keys = [*self._keys, *id_keys(empty)]
            if differ := describe_other_ids(keys, entries, origin):
                raise self._error(differ, code="mismatch")
            return
        numbers = self._keys if self._by_value else ids
        count, lines, least = len(ids), len(entries), min(numbers)
        if lines != count and (self._in_order or max(numbers) - first + 1 == count):
            problem = f"{format_count(count, 'list')}, but {origin} has {lines} {self.what}s: "
            raise self._error(problem + self._remedy, code="wrong-length")
        if least == first + 1:
            yield f"no list for the first {self.what}, id {first}: {self._if_counted}"
        elif lines > count:
            some = f"lists for {format_count(count, 'sentence')}, but {origin} has {lines}"
            yield f"{some} {self.what}s: the others are not used"
        if self._in_order:
            ends = quote(self._keys[0]), quote(self._keys[-1])
            order = f"the {self.what}s in {origin} are paired in the order in which ids appear, "
            order += f"{ends[0]} with line 1, …, {ends[1]} with line {count}"
            log_info(f"{self.origin}: {order}")

    def _no_entry(self, number: int, line: int) -> DataError:
        """Return the error of an id beyond the lines."""
        first, end = self.first_id, self.first_id + len(self.sentences.lines)
        problem = f"no {self.what} for sentence id {number}: {self.sentences.origin} has "
        problem += f"{end - first} lines, for ids {first} to {end - 1}; "
        if number == end and min(self._keys) == first + 1:
            return self._error(problem + self._if_counted, line, parameter="format")
        return self._error(problem + self._remedy, line)

    def _error(self, problem: str, line: int | None = None, **options: Any) -> DataError:
        """Return an error about the parameter and the n-best file."""
        names = {"parameter": f"{self.what}s", **options}
        return DataError(problem, self.origin, line, **names)
