"""The public API: names, signatures and defaults, compared with the list in `public_api.txt`."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from registries import REGISTRIES

import bpa_ppl

LISTED = (Path(__file__).parent / "public_api.txt").read_text("utf-8").splitlines()


def parameters(signature: inspect.Signature) -> str:
    """Return a signature without types."""
    blank = inspect.Parameter.empty
    short = [p.replace(annotation=blank) for p in signature.parameters.values()]
    return str(signature.replace(parameters=short, return_annotation=blank))


def public_api() -> Iterator[str]:
    """Yield a line for each function, member of a class, name in a package, and component."""
    for name in sorted(bpa_ppl.__all__):
        value = getattr(bpa_ppl, name)
        if inspect.isclass(value):
            yield from (f"{name}.{m}" for m in sorted(vars(value)) if not m.startswith("_"))
        elif inspect.isfunction(value):
            yield f"{name}{parameters(inspect.signature(value))}"
    packages = {m.name for m in pkgutil.iter_modules(bpa_ppl.__path__[:1]) if m.ispkg}
    for package in sorted((packages | {"diagnostics", "models", "sklearn"}) - {"cli", "text"}):
        module = import_module(f"bpa_ppl.{package}")
        yield from (f"{package}.{name}" for name in sorted(module.__all__))
    for name, value in sorted(REGISTRIES.items()):
        yield f"{name}: {', '.join(value)}"


def test_public_api_is_as_listed() -> None:
    """If the change is on purpose, change the list too."""
    assert list(public_api()) == LISTED


def test_public_names() -> None:
    assert set(bpa_ppl.__all__) == set(dir(bpa_ppl))
    with pytest.raises(AttributeError, match="reranked"):
        _ = bpa_ppl.reranked
