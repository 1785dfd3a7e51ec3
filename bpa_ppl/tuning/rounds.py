"""What a loop of decodings has found so far, kept in a folder: a loop that was killed goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bpa_ppl.errors import DataError
from bpa_ppl.formats import read_nbest, read_weights, write_nbest, write_weights
from bpa_ppl.formats.parts import make_folder
from bpa_ppl.formats.streams import atomic_writer, read_text
from bpa_ppl.nbest import NBest
from bpa_ppl.weights import Weights

_LOOP = "loop.json"


class Rounds:
    """The weights and the decoded lists of each iteration, one file each.

    `weights.3.json` holds the weights that iteration 3 found, and `nbest.3.jsonl.zst` what was
    decoded with them. Each appears when it is complete; `loop.json` says of which loop they are.

    Args:
        folder: is made if it is not there; None keeps nothing.
        loop: what makes the loop, see `identity`.

    Raises:
        DataError: if the folder cannot be made, or is of another loop.
    """

    def __init__(self, folder: Path | None, loop: Mapping[str, str]):
        self._folder = folder
        if folder is None:
            return
        make_folder(folder)
        if (folder / _LOOP).exists():
            self._check(folder / _LOOP, loop)
            return
        with atomic_writer(folder / _LOOP) as file:
            file.write(json.dumps(dict(loop), indent=1) + "\n")

    def _check(self, path: Path, loop: Mapping[str, str]) -> None:
        try:
            known = json.loads(read_text(path))
        except (ValueError, RecursionError):
            known = None
        if known != loop:
            old = known if isinstance(known, dict) else {}
            other = ", ".join(what for what in loop if old.get(what) != loop[what])
            raise DataError(
                f"this folder is of a loop with other {other or 'settings'}: remove the folder, or "
                "name another one for the iterations (folder)",
                path.parent,
            )

    def weights(self, iteration: int) -> Weights | None:
        """Return the weights that an iteration found; None if it did not come so far."""
        path = self._file(f"weights.{iteration}.json")
        return None if path is None or not path.exists() else read_weights(path)

    def keep_weights(self, iteration: int, weights: Weights) -> None:
        """Keep the weights that an iteration found."""
        path = self._file(f"weights.{iteration}.json")
        if path is not None:
            write_weights(weights, path)

    def nbest(self, iteration: int) -> NBest | None:
        """Return what was decoded with the weights of an iteration; None if nothing was."""
        path = self._file(f"nbest.{iteration}.jsonl.zst")
        return None if path is None or not path.exists() else read_nbest(path)

    def keep_nbest(self, iteration: int, nbest: NBest) -> None:
        """Keep what was decoded with the weights of an iteration."""
        path = self._file(f"nbest.{iteration}.jsonl.zst")
        if path is not None:
            write_nbest(nbest, path)

    def _file(self, name: str) -> Path | None:
        return None if self._folder is None else self._folder / name


def identity(nbest: NBest, weights: Weights, options: Mapping[str, Any]) -> dict[str, str]:
    """Return what makes a loop, in words or as a hash: two that agree in it are one.

    Args:
        nbest: the lists that it begins with.
        weights: the weights that it begins with.
        options: of `reestimate`, and what decodes.
    """
    digest = hashlib.sha256()
    for part in (nbest.features, nbest.offsets, nbest.sentence_ids, nbest.string_index):
        digest.update(part.tobytes())
    texts = [nbest.feature_names, nbest.strings, nbest.references, nbest.sources]
    digest.update(json.dumps(texts).encode())
    settings = {name: value for name, value in options.items() if name != "progress"}
    second = settings.pop("extra", None)
    if second is not None:
        settings["extra"] = identity(second, Weights({}), {})
    return {
        "lists": digest.hexdigest(),
        "weights": json.dumps(dict(weights)),
        "settings": ", ".join(f"{name}={settings[name]!r}" for name in sorted(settings)),
    }
