"""The public API: names, signatures and defaults, compared with the list in `public_api.txt`."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import is_typeddict

import pytest
from support.registries import REGISTRIES

import bpa_ppl

ROOT = Path(__file__).resolve().parent.parent
LISTED = (Path(__file__).parent / "public_api.txt").read_text("utf-8").splitlines()


def parameters(signature: inspect.Signature) -> str:
    """Return a signature without types."""
    blank = inspect.Parameter.empty
    short = [p.replace(annotation=blank) for p in signature.parameters.values()]
    return str(signature.replace(parameters=short, return_annotation=blank))


def public_api() -> Iterator[str]:
    """Yield a line for each name of `bpa_ppl`, other name in the reference, and component."""
    for name in sorted(bpa_ppl.__all__):
        value = getattr(bpa_ppl, name)
        if inspect.isclass(value):
            yield name
            members = value.__annotations__ if is_typeddict(value) else sorted(vars(value))
            yield from (f"{name}.{m}" for m in members if not m.startswith("_"))
        elif inspect.isfunction(value):
            yield f"{name}{parameters(inspect.signature(value))}"
    pages = "".join(path.read_text("utf-8") for path in ROOT.glob("docs/api/*.md"))
    yield from sorted(set(re.findall(r"^::: bpa_ppl\.(\w+\..+)", pages, re.MULTILINE)))
    for name, value in sorted(REGISTRIES.items()):
        yield f"{name}: {', '.join(value)}"


def test_public_api_is_as_listed() -> None:
    """If the change is on purpose, change the list too."""
    assert list(public_api()) == LISTED


def test_public_names() -> None:
    assert set(bpa_ppl.__all__) == set(dir(bpa_ppl))
    with pytest.raises(AttributeError, match="reranked"):
        _ = bpa_ppl.reranked


def test_type_checkers_read_the_same_names() -> None:
    source = Path(bpa_ppl.__file__).read_text("utf-8")
    blocks = [one for one in ast.parse(source).body if isinstance(one, ast.If)]
    (block,) = (one for one in blocks if ast.unparse(one.test) == "TYPE_CHECKING")
    read = {
        (statement.module, alias.name, alias.asname)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert read == {(module, name, name) for name, module in bpa_ppl._MODULE_OF.items()}
