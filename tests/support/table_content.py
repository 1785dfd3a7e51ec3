"""Compare n-best tables bit by bit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from bpa_ppl import NBest


def bits(value: Any) -> Any:
    """Return a value that compares equal only if all numbers have the same type and bits."""
    if isinstance(value, np.ndarray):
        return (value.dtype, value.shape, value.tobytes())
    return {n: bits(v) for n, v in value.items()} if isinstance(value, Mapping) else value


def table_content(nbest: NBest, *left_out: str) -> dict[str, Any]:
    """Return all fields of a table except its origin."""
    names = [f.name for f in dataclasses.fields(nbest) if f.name not in ("origin", *left_out)]
    return {name: bits(getattr(nbest, name)) for name in names}
