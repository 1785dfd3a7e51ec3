"""Models that optional packages load from disk, or download by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bpa_ppl.errors import DataError, UsageError


def call_package(
    package: str, function: str, model: str, *, missing: UsageError, remedy: str, **options: Any
) -> Any:
    """Return what a function of an optional package returns for a model.

    Args:
        package: its name.
        function: the name of the function.
        model: the name or the path of the model.
        missing: the error if the package is not installed.
        remedy: what to do if the function fails.
        options: further arguments of the function.

    Raises:
        DataError: if the function fails, as without a network.
        UsageError: if the package is not installed.

    >>> error = UsageError("json is not installed")
    >>> call_package("json", "loads", "[1]", missing=error, remedy="write an array")
    [1]
    """
    try:
        call = getattr(import_module(package), function)
    except (ImportError, AttributeError) as error:
        raise missing from error
    try:
        return call(model, **options)
    except Exception as error:  # torch, the hub and the network have no common error class
        message = f"the model cannot be loaded ({error}): {remedy}"
        raise DataError(message, model, code="damaged") from error
