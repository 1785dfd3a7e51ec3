"""Whether two tables of lists are the same, to the bit."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from bpa_ppl import NBest


def bits(value: Any) -> Any:
    """Return something that is equal only if all numbers have the same type and bits."""
    if isinstance(value, np.ndarray):
        return (value.dtype, value.shape, value.tobytes())
    return {n: bits(v) for n, v in value.items()} if isinstance(value, Mapping) else value


def content(nbest: NBest, *left_out: str) -> dict[str, Any]:
    """Return all that a table holds, but for where it came from."""
    names = [f.name for f in dataclasses.fields(nbest) if f.name not in ("origin", *left_out)]
    return {name: bits(getattr(nbest, name)) for name in names}
