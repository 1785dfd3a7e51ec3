"""Checks of the settings of tuners."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from bpa_ppl.errors import UsageError


def check_ranges(
    settings: Any, *, zero: tuple[str, ...] = (), shares: tuple[str, ...] = ()
) -> None:
    """Raise a UsageError unless every setting is a positive number, whole where it is a count.

    Args:
        settings: a dataclass of numbers.
        zero: the settings that may be 0 too.
        shares: the settings that may not exceed 1.

    >>> from bpa_ppl.tuning.mert import Settings
    >>> check_ranges(Settings(random_directions=0), zero=("random_directions",))
    """
    for field in fields(settings):
        name, value = field.name, getattr(settings, field.name)
        _check_kind(name, value, whole=field.type == "int")
        if not (value > 0 or (name in zero and value == 0)):
            least = "0 or more" if name in zero else "positive"
            raise UsageError(f"{name} must be {least}, not {value}")
        if name in shares and value > 1:
            raise UsageError(f"{name} must be a share, 1 at most, not {value}")


def _check_kind(name: str, value: Any, *, whole: bool) -> None:
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise UsageError(f"{name} must be a {'whole ' if whole else ''}number, not {value!r}")
