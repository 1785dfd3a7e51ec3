"""The public API: names, signatures and defaults, compared with the list in `public_api.txt`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import is_typeddict

import pytest
from msgspec import structs
from support.registries import REGISTRIES

import bpa_ppl
from bpa_ppl import extending

ROOT = Path(__file__).resolve().parent.parent
LISTED = (Path(__file__).parent / "public_api.txt").read_text("utf-8").splitlines()


def parameters(signature: inspect.Signature) -> str:
    """Return a signature without types."""
    blank = inspect.Parameter.empty
    short = [p.replace(annotation=blank) for p in signature.parameters.values()]
    return str(signature.replace(parameters=short, return_annotation=blank))


def members_of(module: ModuleType, prefix: str = "") -> Iterator[str]:
    """Yield a line for each name of a module, and for each public member of its classes."""
    for name in sorted(module.__all__):
        value, title = getattr(module, name), f"{prefix}{name}"
        if inspect.isclass(value):
            yield title
            members = value.__annotations__ if is_typeddict(value) else sorted(vars(value))
            yield from (f"{title}.{m}" for m in members if not m.startswith("_"))
        elif inspect.isfunction(value):
            yield f"{title}{parameters(inspect.signature(value))}"


def public_api(*, of_extras: bool = False) -> Iterator[str]:
    """Yield a line for each public name, other name in the reference, and component in words.

    Args:
        of_extras: whether to list those of `bpa_ppl.extras`, which may be absent, or the others.
    """
    if not of_extras:
        yield from members_of(bpa_ppl)
        yield from members_of(extending, "extending.")
    components = {(title, *one) for title, all_ in REGISTRIES.items() for one in all_.load()}
    classes = {f"{kind.__module__}.{kind.__name__}" for *_, kind in components}
    paths = [*ROOT.glob("docs/api/*.md"), *ROOT.glob("docs/extras/api/*.md")]
    pages = "".join(path.read_text("utf-8") for path in paths)
    named = set(re.findall(r"^::: (bpa_ppl\..+)", pages, re.MULTILINE)) - classes
    others = {name.removeprefix("bpa_ppl.") for name in named}
    others = {name for name in others if "." in name and not name.startswith("extending.")}
    yield from sorted(name for name in others if name.startswith("extras.") == of_extras)
    for title, name, kind in sorted(components, key=lambda one: one[:2]):
        if kind.__module__.startswith("bpa_ppl.extras.") != of_extras:
            continue
        fields = [one.name for one in structs.fields(kind) if one.name != "names"]
        settings = ", ".join([*getattr(kind, "usual_names", ()), *fields])
        yield f"{title} {name}: {settings}".rstrip(": ")


def test_public_api_is_as_listed() -> None:
    """If the change is on purpose, change the list too."""
    assert list(public_api()) == LISTED


@pytest.mark.parametrize("module", [bpa_ppl, extending], ids=lambda module: module.__name__)
def test_public_names(module: ModuleType) -> None:
    assert set(module.__all__) == set(dir(module))
    with pytest.raises(AttributeError, match="reranked"):
        _ = module.reranked
