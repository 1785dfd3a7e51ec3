"""What an induction has found so far, on disk: one that was killed goes on after its last step."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bpa_ppl import __version__
from bpa_ppl.caching import key_of
from bpa_ppl.formats.streams import AnyPath, atomic_path
from bpa_ppl.models.subdomains.settings import Found, Settings
from bpa_ppl.notes import warn_user
from bpa_ppl.phrases.subdomains import NumberedText


class State:
    """A file with what is known of the sentence pairs after each step, which only grows.

    It belongs to one corpus and to the settings but for the number of iterations; any other
    induction puts it aside, with a warning, and so it does with a damaged one.

    Args:
        path: the file; None keeps nothing.
        texts: both sides of the corpus.
        settings: of the induction.
    """

    def __init__(self, path: AnyPath | None, texts: Sequence[NumberedText], settings: Settings):
        self._path = None if path is None else Path(path)
        self._key = "" if path is None else _key(texts, settings)

    def read(self) -> list[Found]:
        """Return what was found before; nothing where the file is not there, or not of this."""
        if self._path is None or not self._path.exists():
            return []
        try:
            with self._path.open("rb") as file, np.load(file) as arrays:
                if str(arrays["key"]) == self._key:
                    return _found(arrays)
            reason = "belongs to other text or other settings"
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
            reason = "is damaged"
        warn_user(f"{self._path} {reason}: the induction begins anew")
        return []

    def write(self, history: Sequence[Found]) -> None:
        """Keep what was found; a reader sees all of it or what was kept before.

        Raises:
            DataError: if the file cannot be written.
        """
        if self._path is None:
            return
        arrays: dict[str, Any] = {"key": self._key, "steps": len(history)}
        for n, found in enumerate(history):
            arrays |= {
                f"{name}{n}": value for name, value in found._asdict().items() if value is not None
            }
        with atomic_path(self._path) as temporary, temporary.open("wb") as file:
            np.savez(file, **arrays)


def _found(arrays: Any) -> list[Found]:
    history = []
    for n in range(int(arrays["steps"])):
        given = {name: arrays[f"{name}{n}"] for name in Found._fields if f"{name}{n}" in arrays}
        given.setdefault("shares", None)
        for name in ("log_likelihood", "log_prior"):
            given[name] = float(given[name])
        history.append(Found(**given))
    return history


def _key(texts: Sequence[NumberedText], settings: Settings) -> str:
    """Return the hash of the corpus, and of the settings and the code as far as they matter."""
    content = hashlib.sha256()
    for text in texts:
        content.update(text.numbers.tobytes() + text.starts.tobytes())
        content.update("\n".join(text.words).encode())
    chosen = {name: value for name, value in settings.settings().items() if name != "iterations"}
    return key_of([__version__, content.hexdigest(), sorted(chosen.items())])
