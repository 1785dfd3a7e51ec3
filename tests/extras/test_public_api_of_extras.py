"""The public API of the extras, compared with the list in `public_api.txt` next to this file."""

from __future__ import annotations

from pathlib import Path

from test_public_api import public_api

LISTED = (Path(__file__).parent / "public_api.txt").read_text("utf-8").splitlines()


def test_public_api_of_extras_is_as_listed() -> None:
    """If the change is on purpose, change the list too."""
    assert list(public_api(of_extras=True)) == LISTED
