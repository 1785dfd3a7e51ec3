"""Names of a package that load the module they stand in when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazily(
    package: str, public: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    Args:
        package: its name.
        public: the module of each name, within the package; "" is one of the package itself.

    >>> find, names = lazily("bpa_ppl", {"NBest": "nbest", "formats": ""})
    >>> find("NBest").__name__, find("formats").__name__, {"NBest", "formats"} <= set(names())
    ('NBest', 'bpa_ppl.formats', True)
    >>> find("NBset")
    Traceback (most recent call last):
    AttributeError: module 'bpa_ppl' has no attribute 'NBset'
    """

    def find(name: str) -> Any:
        if name not in public:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not public[name]:
            return import_module(f"{package}.{name}")
        return getattr(import_module(f"{package}.{public[name]}"), name)

    def names() -> list[str]:
        # What the package imports for itself is nothing that completion should offer.
        own = (name for name in vars(sys.modules[package]) if name.startswith("__"))
        return sorted({*own, *public})

    return find, names
