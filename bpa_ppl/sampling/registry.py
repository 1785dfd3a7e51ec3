"""The samplers by name: each module has the same two exports, `Settings` and `sample`."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from types import ModuleType
from typing import Any

from bpa_ppl.errors import UsageError, one_of

#: Name -> module of this package.
SAMPLERS = {
    "auto": "auto",
    "heuristic": "heuristic",
    "imh": "imh",
    "laplace": "laplace",
    "map": "map",
    "nuts": "nuts",
    "rwm": "rwm",
    "rwm-isotropic": "rwm_isotropic",
}


def load(name: str) -> ModuleType:
    """Return the module of a sampler.

    Raises:
        UsageError: if there is no such sampler.
    """
    return import_module(f"bpa_ppl.sampling.{SAMPLERS[one_of(name, SAMPLERS, 'sampler')]}")


def configure(name: str, settings: Mapping[str, Any]) -> Any:
    """Return the settings of a sampler, its defaults completed.

    Raises:
        UsageError: if a setting is unknown to the sampler, or not a positive number of its kind.
    """
    kind = load(name).Settings
    allowed = {field.name: str(field.type) for field in fields(kind)}
    for key, value in settings.items():
        if key not in allowed:
            known = f"it has {', '.join(allowed)}" if allowed else "it has none"
            raise UsageError(f"the sampler {name} has no setting {key}: {known}")
        _check_number(key, value, whole=allowed[key] == "int")
    return kind(**settings)


def _check_number(key: str, value: Any, *, whole: bool) -> None:
    number = isinstance(value, numbers.Integral if whole else numbers.Real)
    if whole:
        lowest = 0 if key == "warmup" else 1
        wanted, good = f"a whole number from {lowest} on", number and int(value) >= lowest
    else:
        wanted, good = "a number above 0", number and 0 < float(value) < math.inf
    if isinstance(value, bool) or not good:
        raise UsageError(f"{key} must be {wanted}, not {value!r}")
