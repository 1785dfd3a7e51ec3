"""Make the site self-contained: replace what the theme loads from the network."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

_SHIM = "https://unpkg.com/iframe-worker/shim"
_WORKER = "assets/worker.js"
_REMOTE = re.compile(r"<(?:script|img|iframe|link|source)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//")


def on_post_build(config: Any) -> None:
    """Replace the theme's remote search worker by `assets/worker.js`.

    Raises:
        PluginError: if a page loads anything else from the network.
    """
    from mkdocs.exceptions import PluginError

    site = Path(config.site_dir)
    for page in site.rglob("*.html"):
        html = page.read_text("utf-8").replace(_SHIM, _relative(page, site / _WORKER))
        if found := _REMOTE.search(html):
            raise PluginError(f"{page} loads from the network: {found[0]}")
        page.write_text(html, "utf-8")


def _relative(page: Path, file: Path) -> str:
    return Path(os.path.relpath(file, page.parent)).as_posix()
