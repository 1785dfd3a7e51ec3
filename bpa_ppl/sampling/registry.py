"""The samplers by name: each module has the same two exports, `Settings` and `sample`."""

from __future__ import annotations

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
        UsageError: if a setting is unknown to the sampler, or not a positive number.
    """
    kind = load(name).Settings
    allowed = [f.name for f in fields(kind)]
    for key, value in settings.items():
        if key not in allowed:
            known = f"it has {', '.join(allowed)}" if allowed else "it has none"
            raise UsageError(f"the sampler {name} has no setting {key}: {known}")
        _check_positive(key, value)
    return kind(**settings)


def _check_positive(key: str, value: Any) -> None:
    if isinstance(value, int | float) and not (value > 0 or (key == "warmup" and value == 0)):
        raise UsageError(f"{key} must be positive, not {value}")
