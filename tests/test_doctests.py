"""Every example in a docstring runs, and everything public has a docstring."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import pkgutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import bpa_ppl
import bpa_ppl.diagnostics
import bpa_ppl.models


def names_within(package: ModuleType) -> set[str]:
    """Return the names of a package and of all modules in its folder."""
    found = pkgutil.walk_packages(package.__path__, prefix=f"{package.__name__}.")
    return {package.__name__, *(module.name for module in found)}


# In a checkout models and diagnostics lie outside the folder of the package.
PACKAGES = (bpa_ppl, bpa_ppl.models, bpa_ppl.diagnostics)
MODULES = sorted(set().union(*map(names_within, PACKAGES)))


def undocumented(module: ModuleType) -> list[str]:
    """Return the public functions, classes and methods of a module without a docstring."""
    names = getattr(module, "__all__", [])
    things = {name: getattr(module, name) for name in names}
    classes = {name: thing for name, thing in things.items() if inspect.isclass(thing)}
    for name, thing in classes.items():
        members = inspect.getmembers_static(thing, callable) + inspect.getmembers_static(
            thing, lambda member: isinstance(member, property)
        )
        own = {key: value for key, value in members if key in vars(thing) and key[0] != "_"}
        things |= {f"{name}.{key}": value for key, value in own.items()}
    documented = (type, property, classmethod)
    return [
        f"{module.__name__}.{name}"
        for name, thing in things.items()
        if (inspect.isroutine(thing) or isinstance(thing, documented)) and not inspect.getdoc(thing)
    ]


def has_examples(name: str) -> bool:
    """Say whether a module has examples, without importing it."""
    found = importlib.util.find_spec(name)
    assert found is not None
    assert found.origin is not None
    return ">>> " in Path(found.origin).read_text("utf-8")


WITH_EXAMPLES = [name for name in MODULES if has_examples(name)]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name: str) -> None:
    module = import_module(name)
    outcome = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 0, f"the examples of {name} are not found"
    assert outcome.failed == 0, f"{outcome.failed} of {outcome.attempted} examples of {name} fail"


def test_most_modules_have_examples() -> None:
    assert len(WITH_EXAMPLES) > len(MODULES) / 3


@pytest.mark.parametrize("name", [name for name in MODULES if name.count(".") < 2])
def test_everything_public_has_a_docstring(name: str) -> None:
    assert undocumented(import_module(name)) == []


def test_the_missing_docstring_is_found() -> None:
    module = ModuleType("sample")
    exec(
        "def told():\n    'Tell.'\ndef untold(): ...\nclass C:\n    def m(self): ...", vars(module)
    )
    module.__all__ = ["told", "untold", "C"]
    assert undocumented(module) == ["sample.untold", "sample.C", "sample.C.m"]


def test_modules_are_found_wherever_they_lie() -> None:
    assert {
        "bpa_ppl.formats.streams",
        "bpa_ppl.models.lists",
        "bpa_ppl.diagnostics.checks.checking",
    } < set(MODULES)
