"""References and sources: plain text, one sentence per line; references also with ids.

With ids a file of references has lines `id<TAB>text`, or of JSON, with an `id` and a `reference`
or `references`. Several lines of an id are several references.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Any

from bpa_ppl import columns as cols
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.base import json_keys
from bpa_ppl.formats.jsonl import strict_values
from bpa_ppl.formats.streams import STANDARD, AnyPath, origin_name, read_lines
from bpa_ppl.rows.base import SentenceLines
from bpa_ppl.rows.names import ID, REFERENCE, REFERENCES

#: Files of references; or a tuple or list of references for each sentence, or by id for some.
AnyReferences = (
    AnyPath | Sequence[AnyPath] | Sequence[Sequence[str]] | Mapping[Any, str | Sequence[str]]
)
#: A file of source sentences, or the sentences themselves.
AnySources = AnyPath | Sequence[str]
#: How lines of n-best lists begin.
_OF_LISTS = re.compile(r"\d+ \|\|\| |[SH]-\d+\t")


def read_references(paths: AnyPath | Sequence[AnyPath]) -> list[tuple[str, ...]]:
    """Return for each sentence the tuple of its references.

    Args:
        paths: one file, or several with one line each for the same sentences.

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
    lines = _lines_of(files)
    if isinstance(lines, dict):
        problem = "its lines begin with ids: give the file itself as the references of lists"
        raise DataError(problem, origin_name(files[0]), code="mismatch")
    return lines


def _lines_of(files: Sequence[AnyPath]) -> list[tuple[str, ...]] | dict[Any, tuple[str, ...]]:
    """Return the references of each sentence, or by id if the files have ids."""
    if not files:
        problem = "no file of references: give at least one"
        raise UsageError(problem, parameter="paths", code="no-data")
    columns = [read_lines(path) for path in files]
    origins = list(map(origin_name, files))
    for origin, column in zip(origins, columns, strict=True):
        if not column:
            raise DataError("empty: give the references, one a line", origin, code="no-data")
        if _OF_LISTS.match(column[0]):
            problem = "a hypothesis of n-best lists, not a reference: give the references"
            raise DataError(problem, origin, 1, code="mismatch")
    pairs = list(map(_pairs, columns, origins))
    if any(pairs):
        for origin, of_file in zip(origins, pairs, strict=True):
            if not of_file:
                problem = "lines without ids, unlike those of another file: give them ids, too"
                raise DataError(problem, origin, code="mismatch")
        by_id: dict[Any, tuple[str, ...]] = {}
        for key, texts in chain.from_iterable(pairs):
            by_id[key] = (*by_id.get(key, ()), *texts)
        return by_id
    for origin, column in zip(origins, columns, strict=True):
        if len(column) != len(columns[0]):
            problem = f"{len(column)} lines, but {origins[0]} has {len(columns[0])}"
            advice = "references of the same text have one line for each sentence"
            raise DataError(f"{problem}: {advice}", origin, code="wrong-length")
    return [tuple(map(str.strip, texts)) for texts in zip(*columns, strict=True)]


def _pairs(lines: Sequence[str], origin: str) -> list[tuple[Any, tuple[str, ...]]]:
    """Return the ids of lines, with their references; none if the lines are plain text."""
    if ID in json_keys(lines[0].encode()):
        records, numbers = strict_values("\n".join([*lines, ""]).encode(), origin, 1)
        return [_pair(record, origin, n) for record, n in zip(records, numbers, strict=True)]
    cells = [line.split("\t") for line in lines if line.strip()]
    if not cells or not all(len(of_line) == 2 and of_line[0].strip() for of_line in cells):
        return []
    header = cells[:1] if cells[0][0] == ID else []
    return [(cols.id_key(key.strip()), (text.strip(),)) for key, text in cells[len(header) :]]


def _pair(record: Any, origin: str, line: int) -> tuple[Any, tuple[str, ...]]:
    key = cols.id_key(record.get(ID)) if isinstance(record, dict) else None
    texts = record.get(REFERENCES, record.get(REFERENCE)) if key is not None else None
    several: Any = [texts] if isinstance(texts, str) else texts
    is_valid = isinstance(several, list) and all(isinstance(text, str) for text in several)
    if not isinstance(key, int | str) or not is_valid:
        problem = f"no {ID} with a {REFERENCE}, a text, or {REFERENCES}, a list of texts: add them"
        raise DataError(problem, origin, line)
    return key, tuple(several)


def references_of(given: AnyReferences) -> SentenceLines:
    """Return references, read from files if these are given.

    Raises:
        DataError: as `read_references`.
        UsageError: if they are neither files nor references.

    >>> references_of([("the cat",), ["a dog", "one dog"]]).lines
    (('the cat',), ('a dog', 'one dog'))
    >>> references_of({"7": "the cat"}).lines
    {7: ('the cat',)}
    """
    if isinstance(given, Mapping):
        return SentenceLines.of_references(given)
    single = isinstance(given, str | PurePath)
    files: list[Any] = [given] if single else cols.members(given, "references")
    if not all(isinstance(path, str | PurePath) for path in files):
        return SentenceLines.of_references(files)
    texts = isinstance(given, list | tuple) and all(isinstance(path, str) for path in files)
    if texts and files and not any(path == STANDARD or os.path.exists(path) for path in files):
        problem = f"there is no file of references {files[0]}"
        advice = "check the name, or give the references as one tuple for each sentence"
        raise UsageError(f"{problem}: {advice}", parameter="references", code="missing-file")
    return SentenceLines(_lines_of(files), ", ".join(map(origin_name, files)))


def sources_of(given: AnySources) -> SentenceLines:
    """Return source sentences, read from a file if one is given.

    Raises:
        DataError: if the file cannot be read.
        UsageError: if they are neither.

    >>> sources_of(["un chat"]).lines
    ('un chat',)
    """
    if isinstance(given, str | PurePath):
        return SentenceLines([line.strip() for line in read_lines(given)], origin_name(given))
    return SentenceLines(cols.texts(given), "the text")
