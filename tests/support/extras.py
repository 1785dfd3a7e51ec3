"""Tests of the core that are also about the extras, which may be absent."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

HAS_EXTRAS = find_spec("bpa_ppl.extras") is not None
#: The commands that the extras bring.
COMMANDS = {"convert", "demo", "judge", "judges", "phrases", "subdomains", "tune"}


def require_extras() -> None:
    """Skip the test if there are no extras."""
    if not HAS_EXTRAS:
        pytest.skip("bpa_ppl.extras is not installed")
