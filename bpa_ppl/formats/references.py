"""References and sources: plain text, one sentence per line."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from bpa_ppl import columns as cols
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.streams import STANDARD, AnyPath, origin_name, read_lines
from bpa_ppl.rows import SentenceLines

#: Files of references, or a tuple or list of references for each sentence.
AnyReferences = AnyPath | Sequence[AnyPath] | Sequence[Sequence[str]]
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
    if not files:
        problem = "no file of references: give at least one"
        raise UsageError(problem, parameter="paths", code="no-data")
    columns = [[line.strip() for line in read_lines(path)] for path in files]
    for path, column in zip(files, columns, strict=True):
        origin = origin_name(path)
        if not column:
            raise DataError("empty: give the references, one a line", origin, code="no-data")
        if _OF_LISTS.match(column[0]):
            problem = "a hypothesis of n-best lists, not a reference: give the references"
            raise DataError(problem, origin, 1, code="mismatch")
        if len(column) != len(columns[0]):
            problem = f"{len(column)} lines, but {origin_name(files[0])} has {len(columns[0])}"
            advice = "references of the same text have one line for each sentence"
            raise DataError(f"{problem}: {advice}", origin, code="wrong-length")
    return list(zip(*columns, strict=True))


def references_of(given: AnyReferences) -> SentenceLines:
    """Return references, read from files if these are given.

    Raises:
        DataError: as `read_references`.
        UsageError: if they are neither files nor references.

    >>> references_of([("the cat",), ["a dog", "one dog"]]).lines
    (('the cat',), ('a dog', 'one dog'))
    """
    single = isinstance(given, str | PurePath)
    files: list[Any] = [given] if single else cols.members(given, "references")
    if not all(isinstance(path, str | PurePath) for path in files):
        return SentenceLines(cols.references(files), "the text")
    texts = isinstance(given, list | tuple) and all(isinstance(path, str) for path in files)
    if texts and files and not any(path == STANDARD or os.path.exists(path) for path in files):
        problem = f"there is no file of references {files[0]}"
        advice = "check the name, or give the references as one tuple for each sentence"
        raise UsageError(f"{problem}: {advice}", parameter="references", code="missing-file")
    return SentenceLines(read_references(files), ", ".join(map(origin_name, files)))


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
