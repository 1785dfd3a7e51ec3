"""Show mkdocstrings the parts of the package that are outside its folder in a clone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from griffe import Extension

ROOT = Path(__file__).resolve().parents[2]


class Clone(Extension):
    """Add `models/` and `diagnostics/`, because Griffe does not evaluate `__path__`."""

    def on_package(self, *, pkg: Any, loader: Any, **others: Any) -> None:
        """Add the folders to the loaded package."""
        if pkg.name == "bpa_ppl":
            for name in ("diagnostics", "models"):
                pkg.set_member(name, loader.load(ROOT / name))
