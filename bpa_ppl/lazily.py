"""Names of a package that load the module they stand in when they are first asked for."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
        module = f"{package}.{public[name] or name}"
        with uncollected(module):
            found = import_module(module)
        return getattr(found, name) if public[name] else found

    def names() -> list[str]:
        # What the package imports for itself is nothing that completion should offer.
        own = (name for name in vars(sys.modules[package]) if name.startswith("__"))
        return sorted({*own, *public})

    return find, names


@contextmanager
def uncollected(module: str) -> Iterator[None]:
    """Look for no garbage while a module is imported for the first time.

    Imports leave none, and Python would go through all that JAX or ArviZ define again and again: a
    tenth to a third of the time.

    >>> with uncollected("antigravity"):
    ...     gc.isenabled()
    False
    """
    wanted = gc.isenabled() and module not in sys.modules
    if wanted:
        gc.disable()
    try:
        yield
    finally:
        if wanted:
            if not gc.get_freeze_count():
                # To the oldest objects, which are looked through last, and where garbage is found.
                gc.freeze()
                gc.unfreeze()
            gc.enable()
