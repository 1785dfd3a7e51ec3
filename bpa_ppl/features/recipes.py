"""Recipes: the records of feature sources in a posterior, to compute the same for new lists."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.features.base import FeatureSource
from bpa_ppl.registry import FEATURES

#: A file, or several, for each source that has moved: by its label, or by its name.
MovedFiles = Mapping[str, str | Path | Sequence[str | Path]]
_FILES, _COLUMNS = "file_hashes", "feature_names"
_STORED = "feature_source_{}"
_CARRIED = 5_000_000  # bytes of text


def absolute(source: FeatureSource) -> FeatureSource:
    """Return a source with absolute paths of its files."""
    return source.moved([str(Path(path).absolute()) for path in source.files()])


def recorded(
    sources: Iterable[FeatureSource], columns: Iterable[Sequence[str]]
) -> list[dict[str, Any]]:
    """Return a record of each source: name, settings, hashes of files, names of columns.

    Raises:
        DataError: if a file cannot be read.
    """
    records = []
    for source, names in zip(sources, columns, strict=True):
        hashes = [_hash(path, source) for path in source.files()]
        details = {_FILES: hashes, _COLUMNS: list(names)}
        records.append(source.recipe() | {name: value for name, value in details.items() if value})
    return records


def columns_of(attrs: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the names of the columns of each recorded source, by its label.

    >>> columns_of({"feature_sources": [{"source": "lm", "feature_names": ["lm"]}]})
    {'lm': ('lm',)}
    """
    return {
        str(record.get("name") or record["source"]): tuple(record.get(_COLUMNS, ()))
        for record in attrs.get("feature_sources", ())
    }


def check_carried(texts: Iterable[str], files: Iterable[str]) -> None:
    """Raise a UsageError if there is more text than a posterior can carry: 5 MB."""
    size = sum(len(text.encode()) for text in texts)
    if size > _CARRIED:
        raise UsageError(
            f"{' and '.join(files)} have {size / 1e6:.1f} MB of text, and a posterior can carry "
            f"{_CARRIED / 1e6:.0f} MB at most: leave carry out and keep the files"
        )


def stored(sources: Iterable[FeatureSource]) -> dict[str, Any]:
    """Return what the sources have learned, as JSON texts by name, to be stored in a posterior."""
    return {
        _STORED.format(number): np.array(
            [json.dumps({name: getattr(source, name) for name in source.learned})]
        )
        for number, source in enumerate(sources)
        if source.holds
    }


def is_stored(name: str) -> bool:
    """Return whether a name is one of `stored`.

    >>> is_stored("feature_source_0"), is_stored("mode")
    (True, False)
    """
    return name.startswith(_STORED.format(""))


def sources_from_records(
    records: Iterable[Mapping[str, Any]],
    constants: Mapping[str, Any],
    moved_files: MovedFiles | None = None,
) -> tuple[FeatureSource, ...]:
    """Return the recorded sources, if their files have not changed.

    Args:
        records: from `recorded`.
        constants: of the posterior, with those from `stored`.
        moved_files: new paths of files that have moved, by the label of their source.

    Raises:
        DataError: if a file is missing or has changed, or a record cannot be understood.
        UsageError: if `moved_files` names a source that the posterior does not have.
    """
    sources, hashes = [], []
    for number, record in enumerate(records):
        settings = {name: _tuples(value) for name, value in record.items()}
        hashes.append(settings.pop(_FILES, ()))
        settings.pop(_COLUMNS, None)
        learned = str(np.ravel(constants.get(_STORED.format(number), "{}"))[0])
        settings |= {name: _tuples(value) for name, value in json.loads(learned).items()}
        sources.append(FEATURES.resolve(settings.pop("source"), settings))
    moved = [_with_moved_files(source, moved_files or {}, sources) for source in sources]
    _check_used(moved_files or {}, sources)
    for source, recorded_hashes in zip(moved, hashes, strict=True):
        _check_unchanged(source, recorded_hashes)
    return tuple(moved)


def _hash(path: str, source: FeatureSource) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror}), and the features {source.label} are computed "
            f"from it: give the new path of {source.label} if it has moved",
            path,
            parameter="moved_files",
        ) from error


def _check_unchanged(source: FeatureSource, hashes: Sequence[str]) -> None:
    for path, recorded_hash in zip(source.files(), hashes, strict=True):
        if (now := _hash(path, source)) != recorded_hash:
            raise DataError(
                f"has changed since the weights of {source.label} were adapted (SHA-256 "
                f"{recorded_hash[:12]}… then, {now[:12]}… now): restore the old file, give the new "
                f"path of {source.label} if it has moved, or adapt again",
                path,
                parameter="moved_files",
            )


def _with_moved_files(
    source: FeatureSource, moved_files: MovedFiles, sources: Sequence[FeatureSource]
) -> FeatureSource:
    name = FEATURES.name_of(source)
    alone = sum(FEATURES.name_of(other) == name for other in sources) == 1
    files = moved_files.get(source.label, moved_files.get(name) if alone else None)
    if files is None:
        return source
    paths = [files] if isinstance(files, str | Path) else list(files)
    return source.moved([str(path) for path in paths])


def _check_used(moved_files: MovedFiles, sources: Sequence[FeatureSource]) -> None:
    names = [FEATURES.name_of(source) for source in sources]
    allowed = {source.label for source in sources}
    allowed |= {name for name in names if names.count(name) == 1}
    for name in moved_files:
        if name not in allowed:
            raise UsageError(
                f"{name} is not a feature source of this posterior: it has "
                f"{', '.join(sorted(allowed)) or 'none'}",
                parameter="moved_files",
            )


def _tuples(value: Any) -> Any:
    """Return a setting with tuples in place of the lists of JSON."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
