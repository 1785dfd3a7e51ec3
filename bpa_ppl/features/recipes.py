"""Recipes: the records of feature sources in a posterior, to compute the same for new lists."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.features.base import FEATURES, FeatureSource

#: A file, or several, for each source that has moved: by its label, or by its name.
MovedFiles = Mapping[str, str | Path | Sequence[str | Path]]
_FILES, _COLUMNS = "file_hashes", "feature_names"
_STORED = "feature_source_{}"
_MAX_SIZE = 64 << 30  # bytes of a file that a posterior names


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
        # What was learned is stored separately.
        settings = {n: v for n, v in source.settings().items() if n not in source.learned}
        details = {_FILES: [_hash(p, source) for p in source.files()], _COLUMNS: list(names)}
        record = {"source": FEATURES.name_of(source), **settings}
        records.append(record | {name: value for name, value in details.items() if value})
    return records


def columns_of(attrs: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the names of the columns of each recorded source, by its label.

    >>> columns_of({"feature_sources": [{"source": "lm", "feature_names": ["lm"]}]})
    {'lm': ('lm',)}
    """
    records = _checked(attrs.get("feature_sources", ()))
    return {record.name or record.source: record.feature_names for record in records}


def stored(sources: Iterable[FeatureSource]) -> dict[str, Any]:
    """Return what the sources have learned, as JSON texts by name, to be stored in a posterior."""
    learned = {
        _STORED.format(number): {name: getattr(source, name) for name in source.learned}
        for number, source in enumerate(sources)
        if source.holds
    }
    return {name: np.array([json.dumps(texts)]) for name, texts in learned.items()}


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
    records = list(records)
    _checked(records)
    sources, hashes = [], []
    for number, record in enumerate(records):
        settings = {name: with_tuples(value) for name, value in record.items()}
        hashes.append(settings.pop(_FILES, ()))
        settings.pop(_COLUMNS, None)
        learned = str(np.ravel(constants.get(_STORED.format(number), "{}"))[0])
        try:
            texts = dict(json.loads(learned))
        except (ValueError, TypeError, RecursionError) as error:
            problem = f"what the feature source {number + 1} has learned is damaged: adapt again"
            raise DataError(problem, code="damaged") from error
        settings |= {name: with_tuples(value) for name, value in texts.items()}
        sources.append(FEATURES.recorded(settings.pop("source"), settings))
    moved = _with_moved_files(sources, moved_files or {})
    for source, recorded_hashes in zip(moved, hashes, strict=True):
        for path, recorded_hash in zip(source.files(), recorded_hashes, strict=True):
            if _hash(path, source) != recorded_hash:
                problem = f"has changed since the weights of {source.label} were adapted: restore "
                problem += "the old file, give its new path if it has moved, or adapt again"
                raise DataError(problem, path, parameter="moved_files", code="mismatch")
    return tuple(moved)


class _Record(msgspec.Struct):
    """What records of all sources have; other settings are validated by the source."""

    source: str
    name: str | None = None
    feature_names: tuple[str, ...] = ()
    file_hashes: tuple[str, ...] = ()


def _checked(records: Any) -> list[_Record]:
    """Return records of sources, if they have the right types."""
    try:
        return msgspec.convert(records, list[_Record])
    except msgspec.ValidationError as error:
        problem = f"the posterior's record of its features is invalid ({error}): adapt again"
        raise DataError(problem, code="damaged") from error


def _hash(path: str, source: FeatureSource) -> str:
    """Return the hash of a file; devices and pipes, which may have no end, are not opened."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            reason = "it is no file, but a folder, a device or a pipe"
        elif status.st_size > _MAX_SIZE:
            reason = f"it has {status.st_size / 2**30:,.0f} GiB, more than {_MAX_SIZE >> 30}"
        else:
            with open(path, "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        cause = None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason, cause = getattr(error, "strerror", None) or str(error), error
    problem = f"cannot be read ({reason}), and the features {source.label} need it"
    problem += f": give the new path of {source.label} if it has moved"
    raise DataError(problem, path, parameter="moved_files", code="missing-file") from cause


def _with_moved_files(
    sources: Sequence[FeatureSource], moved_files: MovedFiles
) -> list[FeatureSource]:
    kinds = Counter(map(FEATURES.name_of, sources))
    moved, allowed = [], set[str]()
    for source in sources:
        name = FEATURES.name_of(source)
        keys = [source.label, name] if kinds[name] == 1 else [source.label]
        allowed.update(keys)
        files = next((moved_files[key] for key in keys if key in moved_files), None)
        if files is not None:
            paths = [files] if isinstance(files, str | Path) else files
            source = source.moved([str(path) for path in paths])
        moved.append(source)
    if unknown := moved_files.keys() - allowed:
        problem = f"{min(unknown)} is not a feature source of this posterior"
        names = ", ".join(sorted(allowed)) or "none"
        raise UsageError(f"{problem}: it has {names}", parameter="moved_files", code="unknown-name")
    return moved


def with_tuples(value: Any) -> Any:
    """Return a setting with tuples in place of the lists of JSON."""
    return tuple(map(with_tuples, value)) if isinstance(value, list) else value
