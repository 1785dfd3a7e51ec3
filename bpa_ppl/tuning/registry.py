"""The tuners by name: each module has the same two exports, `Settings` and `tune`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from types import ModuleType
from typing import Any

from bpa_ppl.errors import UsageError, one_of

#: Name -> module of this package.
TUNERS = {"mert": "mert", "mert+": "mert_plus", "mira": "mira", "pro": "pro"}


def load(name: str) -> ModuleType:
    """Return the module of a tuner.

    Raises:
        UsageError: if there is no such tuner.

    >>> load("mert+").__name__
    'bpa_ppl.tuning.mert_plus'
    """
    return import_module(f"bpa_ppl.tuning.{TUNERS[one_of(name, TUNERS, 'tuner')]}")


def configure(name: str, settings: Mapping[str, Any]) -> Any:
    """Return the settings of a tuner, its defaults completed.

    Raises:
        UsageError: if a setting is unknown to the tuner, or its value makes no sense.

    >>> configure("mira", {"epochs": 10})
    Settings(epochs=10, step=0.01, decay=0.999)
    """
    kind = load(name).Settings
    allowed = [field.name for field in fields(kind)]
    for key in settings:
        if key not in allowed:
            known = ", ".join(allowed)
            raise UsageError(f"the tuner {name} has no setting {key}: it has {known}")
    return kind(**settings)
