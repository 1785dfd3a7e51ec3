"""Draws with other parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from msgspec import structs

from bpa_ppl import Draws, WeightDraws, as_weight_draws

D = TypeVar("D", Draws, WeightDraws)


def with_record(draws: D, **fields: Any) -> D:
    """Return draws whose record has other values of some fields."""
    record = structs.replace(draws.record, **fields)
    if isinstance(draws, WeightDraws):
        return with_parts(draws, record=record)
    return replace(draws, record=record)


def with_parts(posterior: Any, coords: Any = None, **parts: Any) -> WeightDraws:
    """Return draws of weights with other parts of their `Draws`, and some other coordinates."""
    draws = as_weight_draws(posterior, finite=False).draws
    return WeightDraws(replace(draws, coords={**draws.coords, **(coords or {})}, **parts))
