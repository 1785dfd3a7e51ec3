"""Names that a module imports from others when they are first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def import_name(name: str, package: str, module_of: Mapping[str, str]) -> Any:
    """Return a name of a package, imported from the module that has it.

    Args:
        name: the name.
        package: the package that was asked for it.
        module_of: the module of each name.

    Raises:
        AttributeError: if the package has no such name.
        ModuleNotFoundError: if an optional package that it needs is not installed.

    >>> import_name("locate", "bpa_ppl", {"locate": "bpa_ppl.errors"}).__module__
    'bpa_ppl.errors'
    """
    if name not in module_of:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    try:
        return getattr(import_module(module_of[name]), name)
    except ModuleNotFoundError as error:
        from bpa_ppl.errors import describe_missing_package

        problem = describe_missing_package(name, error)
        raise ModuleNotFoundError(problem, name=error.name) from error
