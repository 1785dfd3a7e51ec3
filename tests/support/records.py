"""Draws with another record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from msgspec import structs

from bpa_ppl import Draws


def with_record(draws: Draws, **fields: Any) -> Draws:
    """Return draws whose record has other values of some fields."""
    return replace(draws, record=structs.replace(draws.record, **fields))
