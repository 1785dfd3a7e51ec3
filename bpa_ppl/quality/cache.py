"""Sentence scores kept on disk, under a hash of everything that they depend on."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np

from bpa_ppl.cache import cache_folder
from bpa_ppl.errors import BpaWarning
from bpa_ppl.nbest import Float64

#: What a file that is cut short, overwritten or of another kind can raise when it is read.
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


def key_of(content: object) -> str:
    """Return the hash of some content, made of lists, tuples, texts and numbers.

    >>> key_of([["a", "b"]]) == key_of([["a"], ["b"]])
    False
    """
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def read(key: str, size: int) -> Float64 | None:
    """Return the `size` scores kept under a key; None if there are none that can be read.

    >>> read("no such key", 1) is None
    True
    """
    try:
        with open(_path(key), "rb") as file, np.load(file) as arrays:
            scores = arrays["scores"]
    except _UNREADABLE:
        return None
    return scores if scores.shape == (size,) and scores.dtype == np.float64 else None


def write(key: str, scores: Float64) -> None:
    """Keep scores under a key; a reader sees all of them or none. Warn where that fails."""
    path = _path(key)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as beside:
            np.savez_compressed(Path(beside) / path.name, scores=scores)
            os.replace(Path(beside) / path.name, path)
    except OSError as error:
        warnings.warn(
            f"sentence scores are not kept ({error}): name a folder that can be written in "
            "BPA_PPL_CACHE",
            BpaWarning,
            stacklevel=2,
        )


def _path(key: str) -> Path:
    return cache_folder() / f"scores-{key}.npz"
