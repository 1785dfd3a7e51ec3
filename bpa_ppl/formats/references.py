"""References: plain text, one sentence a line, one file for each set of them."""

from __future__ import annotations

from collections.abc import Sequence

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.streams import AnyPath, read_lines, source_name


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
        raise UsageError("no file of references: give at least one")
    columns = [[line.strip() for line in read_lines(path)] for path in files]
    for path, column in zip(files, columns, strict=True):
        if not column:
            raise DataError("empty: give the references, one a line", source_name(path))
        if len(column) != len(columns[0]):
            raise DataError(
                f"{len(column)} lines, but {source_name(files[0])} has {len(columns[0])}: "
                "references of the same text have one line for each sentence",
                source_name(path),
            )
    return list(zip(*columns, strict=True))
