"""References and sources of a text: read from files, and paired with lists by line or by id.

A text file has one line for each list, in their order; lists with integer ids may be some of those
of a longer text. A table (`.tsv`, `.csv`) or a file of JSON lines (`.jsonl`) has references with
ids, in the columns `id` and `reference`. Several rows of an id are several references.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from bpa_ppl._runtime.arrays import to_members, to_texts
from bpa_ppl._runtime.messages import format_count, log_info
from bpa_ppl._runtime.streams import (
    STANDARD,
    AnyPath,
    file_suffix,
    origin_name,
    read_lines,
    require_parallel,
)
from bpa_ppl._runtime.values import parse_strictly
from bpa_ppl.errors import DataError, UsageError, quote
from bpa_ppl.formats.block import ID, REFERENCE, REFERENCES, SOURCE
from bpa_ppl.formats.schema import Schema, count_from
from bpa_ppl.formats.separated import read_cells
from bpa_ppl.lists.ids import describe_other_ids, group_references, id_key, to_references

#: Files of references; or a tuple or list of references for each sentence, or by id.
AnyReferences = (
    AnyPath | Sequence[AnyPath] | Sequence[Sequence[str]] | Mapping[Any, str | Sequence[str]]
)
#: A file of source sentences, or the sentences themselves.
AnySources = AnyPath | Sequence[str]


#: Of files with ids that are tables, by their endings.
_SEPARATORS = {".tsv": "\t", ".csv": ","}


class SentenceLines(NamedTuple):
    """One entry for each sentence of a text: its references, or its source.

    Those with ids belong to the lists with the same ids. Of those without, an id that is an
    integer, perhaps as a text, names the line, so lists may be some of those of the text. If ids
    are other texts, the lines are in the order in which these appear.

    Attributes:
        lines: one entry per sentence; or entries by id, as `id_key` returns it.
        origin: where they are from, for messages.
        what: "reference" or "source".
    """

    lines: Sequence[Any] | Mapping[Any, Any]
    origin: str
    what: str = REFERENCE

    @classmethod
    def of_references(cls, value: Any) -> SentenceLines:
        """Return references: a text or several for each sentence, or by id.

        Raises:
            UsageError: if they are anything else.
        """
        if isinstance(value, Mapping):
            return cls(group_references(value), "the references")
        return cls(to_references(value), "the text")

    def _are_by_value(self, ids: Schema) -> bool:
        """Return whether ids are texts that print the numbers of lines, as the first one shows."""
        by_place = ids.counted and not isinstance(self.lines, Mapping)
        return by_place and isinstance(ids.keys[0], int)

    def find(
        self, ids: Schema, numbers: Sequence[int], lines: Sequence[int]
    ) -> tuple[tuple[Any, ...], Sequence[int]]:
        """Return the entries of some lists, and the ids that name the lines.

        An entry that is missing is None until `check` raises the error, which has both numbers.

        Args:
            ids: of the file, of which the last keys are those of these lists.
            numbers: of the lists.
            lines: where they begin.

        Raises:
            DataError: if an id names no line.
        """
        entries, by_value = self.lines, self._are_by_value(ids)
        keys = ids.keys[len(ids.keys) - len(numbers) :]
        if isinstance(entries, Mapping):
            return tuple(map(entries.get, keys)), numbers
        references = []
        for number, key, line in zip(numbers, keys, lines, strict=True):
            if by_value and not isinstance(key, int):
                problem = f"the id {quote(key)} is not an integer, as others are: {self._remedy}"
                raise self._error(ids, problem, line)
            place = (key if by_value else number) - ids.first_id
            if 0 <= place < len(entries):
                references.append(entries[place])
            elif ids.counted and not by_value:
                references.append(None)
            else:
                raise self._no_entry(ids, place, line)
        return tuple(references), keys if by_value else numbers

    def check(self, ids: Schema) -> Iterator[str]:
        """Yield a sentence for lines that are not used, when all lists are read.

        Raises:
            DataError: if there are more or fewer lines than lists, or other ids.
        """
        entries, origin, first = self.lines, self.origin, ids.first_id
        if isinstance(entries, Mapping):
            keys = [*ids.keys, *(id_key(ids.name(number)) for number in ids.empty)]
            if differ := describe_other_ids(keys, entries, origin):
                raise self._error(ids, differ, code="mismatch")
            return
        by_value, all_ids = self._are_by_value(ids), ids.lines.keys() | ids.empty
        in_order = ids.counted and not by_value
        numbers = ids.keys if by_value else all_ids
        count, lines = len(all_ids), len(entries)
        if lines != count and (in_order or max(numbers) - first + 1 == count):
            problem = f"{format_count(count, 'list')}, but {origin} has {lines} {self.what}s: "
            raise self._error(ids, problem + self._remedy, code="wrong-length")
        if min(numbers) == first + 1:
            first_one = f"no list for the first {self.what}, id {first}"
            yield f"{first_one}: set first_id in the format if ids are counted from {first + 1}"
        elif lines > count:
            some = f"lists for {format_count(count, 'sentence')}, but {origin} has {lines}"
            yield f"{some} {self.what}s: the others are not used"
        if in_order:
            ends = quote(ids.keys[0]), quote(ids.keys[-1])
            order = f"the {self.what}s in {origin} are paired in the order in which ids appear, "
            order += f"{ends[0]} with line 1, …, {ends[1]} with line {count}"
            log_info(f"{ids.origin}: {order}")

    @property
    def _remedy(self) -> str:
        remedy = f"give a {self.what} for each list, in their order"
        if self.what == REFERENCE:
            remedy += f", or references with ids: a file .tsv with a header {ID}<TAB>{self.what}"
        return remedy

    def _no_entry(self, ids: Schema, place: int, line: int) -> DataError:
        """Return the error of an id beyond the lines."""
        first, count = ids.first_id, len(self.lines)
        problem = f"no {self.what} for sentence id {first + place}: {self.origin} has {count} "
        problem += f"lines, for ids {first} to {first + count - 1}"
        numbers = [key for key in ids.keys if isinstance(key, int)]
        if place == count and min(numbers) == first + 1:
            remedies = [self._remedy, count_from(first + 1)]
            return self._error(ids, problem, line, parameter="format", remedies=remedies)
        return self._error(ids, problem, line, remedies=[self._remedy])

    def _error(
        self, ids: Schema, problem: str, line: int | None = None, **details: Any
    ) -> DataError:
        """Return an error about the parameter and the file of the lists."""
        details = {"parameter": f"{self.what}s", "code": "bad-data", **details}
        return ids.error(problem, line, **details)


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
        return SentenceLines(to_texts(sources), "the text", SOURCE)
    lines = [line.strip() for line in read_lines(sources)]
    return SentenceLines(lines, origin_name(sources), SOURCE)


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
        message = "reading references needs at least one file"
        raise UsageError(message, parameter="paths", code="no-data")
    with_ids = [path for path in paths if file_suffix(path) in (*_SEPARATORS, ".jsonl")]
    if with_ids and len(with_ids) < len(paths):
        path = next(path for path in paths if path not in with_ids)
        raise DataError(
            f"lines without ids, but {origin_name(with_ids[0])} has ids: give files of one kind",
            origin_name(path),
            code="mismatch",
        )
    files = [(origin_name(path), read_lines(path)) for path in paths]
    for origin, lines in files:
        if not lines:
            raise DataError("no line: give the references", origin, code="no-data")
    if with_ids:
        by_id: dict[Any, tuple[str, ...]] = {}
        for path, (origin, lines) in zip(paths, files, strict=True):
            for identifier, texts in _read_rows(lines, file_suffix(path), origin):
                key = id_key(identifier)
                by_id[key] = (*by_id.get(key, ()), *texts)
        return by_id
    for origin, lines in files:
        if place := next((n for n, line in enumerate(lines, 1) if "\t" in line), None):
            header = f"{ID}<TAB>{REFERENCE}"
            problem = "a reference has a tab: if the lines have ids, write the names of the columns"
            problem += f" in the first line (`{header}`) of a file .tsv; else write a space"
            raise DataError(problem, origin, place, parameter="references", code="bad-line")
    require_parallel([len(lines) for _, lines in files], [origin for origin, _ in files])
    return [tuple(map(str.strip, texts)) for texts in zip(*(of for _, of in files), strict=True)]


# Files with ids.


def _iter_fields(
    lines: Sequence[str], suffix: str, origin: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line and the fields of each row of a file with ids; an empty cell is None."""
    if suffix == ".jsonl":
        block = "\n".join([*lines, ""]).encode()
        for record, line in zip(*parse_strictly(block, origin, 1, REFERENCES), strict=True):
            yield line, record if isinstance(record, dict) else {}
        return
    separator, ended = _SEPARATORS[suffix], (f"{line}\n" for line in lines)
    rows = read_cells(ended, separator, Schema(origin), quoted=separator == ",")
    first, names = next(rows, (1, []))
    if any(names.count(name) != 1 for name in (ID, REFERENCE)):
        header = f"{ID}<TAB>{REFERENCE}" if separator == "\t" else f"{ID},{REFERENCE}"
        problem = f"the first line is {quote(separator.join(names))}, not the names of the columns"
        problem += f": write `{header}` there"
        raise DataError(problem, origin, first, code="missing-column")
    for line, cells in rows:
        if len(cells) != len(names):
            problem = f"{format_count(len(cells), 'cell')}, but the first line has {len(names)}: "
            problem += (
                "write a tab in a text as a space" if separator == "\t" else "quote each text"
            )
            raise DataError(problem, origin, line, code="bad-line")
        yield line, {name: cell or None for name, cell in zip(names, cells, strict=True)}


def _read_rows(
    lines: Sequence[str], suffix: str, origin: str
) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Yield the id and the references of each row."""
    for line, fields in _iter_fields(lines, suffix, origin):
        values = [fields[name] for name in (REFERENCE, REFERENCES) if name in fields]
        texts = [value for value in values if value is not None]
        if len(texts) > 1:
            raise DataError(f"both {REFERENCE} and {REFERENCES}: leave one out", origin, line)
        several: Any = texts if not texts or isinstance(texts[0], str) else texts[0]
        is_valid = isinstance(several, list) and all(isinstance(text, str) for text in several)
        identifier = fields.get(ID)
        is_id = isinstance(id_key(identifier), int | str) and not isinstance(identifier, bool)
        if not (is_id and values and is_valid):
            problem = f"no {ID} with a {REFERENCE}: give each row an {ID}, and a {REFERENCE} that "
            raise DataError(f"{problem}is a text, a list of texts or null", origin, line)
        yield identifier, tuple(several)
