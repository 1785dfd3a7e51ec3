"""Nothing is asked of the network by a reader: what the theme would load from there comes along."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

_SHIM = "https://unpkg.com/iframe-worker/shim"
_OURS = "assets/worker.js"
_LOADED = re.compile(r"<(?:script|img|iframe|link|source)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//")


def on_post_build(config: Any) -> None:
    """Put our worker for pages from the disk in the place of the theme's, which is elsewhere.

    Raises:
        PluginError: if a page would load something else from the network.
    """
    from mkdocs.exceptions import PluginError

    site = Path(config.site_dir)
    for page in site.rglob("*.html"):
        html = page.read_text("utf-8").replace(_SHIM, _beside(page, site / _OURS))
        if found := _LOADED.search(html):
            raise PluginError(f"{page} loads from the network: {found[0]}")
        page.write_text(html, "utf-8")


def _beside(page: Path, file: Path) -> str:
    return Path(os.path.relpath(file, page.parent)).as_posix()
