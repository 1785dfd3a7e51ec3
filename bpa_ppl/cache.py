"""Where results that can be computed again are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder named by `BPA_PPL_CACHE`, or else the user's cache folder."""
    named = os.environ.get("BPA_PPL_CACHE")
    if named:
        return Path(named).absolute()
    import platformdirs

    return platformdirs.user_cache_path("bpa_ppl")
