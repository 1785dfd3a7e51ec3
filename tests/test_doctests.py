"""Docstrings: all examples run, and all public objects have examples."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import pkgutil
import re
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

import bpa_ppl
import bpa_ppl.extending


def module_names(package: ModuleType) -> set[str]:
    """Return the names of a package and all its modules."""
    assert package.__file__ is not None
    folder = str(Path(package.__file__).parent)
    result = pkgutil.walk_packages([folder], prefix=f"{package.__name__}.")
    return {package.__name__, *(module.name for module in result)}


def module_source(name: str) -> str:
    """Return the source code of a module without importing it."""
    result = importlib.util.find_spec(name)
    assert result is not None
    assert result.origin is not None
    return Path(result.origin).read_text("utf-8")


# In a clone the folders of models and diagnostics are outside the folder of the package.
PACKAGES = map(import_module, ("bpa_ppl", "bpa_ppl.models", "bpa_ppl.diagnostics"))
SOURCES = {name: module_source(name) for name in sorted(set().union(*map(module_names, PACKAGES)))}


#: Their examples draw many samples, or compile many programs.
LONG = {
    "bpa_ppl.adapting.adapt",
    "bpa_ppl.sampling.sample",
    "bpa_ppl.densities.model_target",
    "bpa_ppl.diagnostics.samplers.calibration",
    "bpa_ppl.diagnostics.samplers.comparison",
    "bpa_ppl.diagnostics.samplers.running",
    "bpa_ppl.extras.judging.juries",
    "bpa_ppl.extras.judging.session",
    "bpa_ppl.extras.phrases.instance_weights",
    "bpa_ppl.extras.phrases.invariance",
    "bpa_ppl.models.likelihoods.choice",
    "bpa_ppl.models.log_linear",
    "bpa_ppl.models.priors.shared_scale",
    "bpa_ppl.sklearn",
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in LONG else [])
        for name, source in SOURCES.items()
        if ">>> " in source
    ],
)
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # examples may write files
    module = import_module(name)
    # As `doctest.testmod`, which looks at the files of all modules for each docstring, also for
    # those without examples.
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    found = [of for of in doctest.DocTestFinder().find(module, name) if of.examples]
    failed = sum(runner.run(examples).failed for examples in found)
    assert found, f"the examples of {name} are not found"
    assert failed == 0, f"{failed} examples of {name} fail"


#: What a method is in its class.
METHODS = (FunctionType, property, cached_property, classmethod, staticmethod)
#: What the pages of the reference show.
DOCS = Path(__file__).resolve().parent.parent / "docs"
REFERENCE = sorted(
    name
    for page in (*DOCS.glob("api/*.md"), *DOCS.glob("extras/api/*.md"))
    for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)
)


def objects_named(names: list[str]) -> dict[str, Any]:
    """Return the functions and classes among objects with these dotted names."""
    found = {name: pkgutil.resolve_name(":".join(name.rsplit(".", 1))) for name in names}
    return {name: x for name, x in found.items() if inspect.isclass(x) or inspect.isroutine(x)}


def test_reference_lists_all_public_objects() -> None:
    assert {f"bpa_ppl.{name}" for name in bpa_ppl.__all__} <= set(REFERENCE)
    assert {f"bpa_ppl.extending.{name}" for name in bpa_ppl.extending.__all__} <= set(REFERENCE)


def test_public_objects_have_examples() -> None:
    """Each has an example of its own or is used in the example of another one."""
    objects = objects_named(REFERENCE)
    lines = re.findall(r"^ *(?:>>>|\.\.\.) .*", "\n".join(SOURCES.values()), re.MULTILINE)
    used = set(re.findall(r"\b(\w+)\(", "\n".join(lines)))
    lacking = {
        name.rpartition(".")[2]
        for name, one in objects.items()
        if ">>> " not in (one.__doc__ or "")
    }
    assert lacking - used == set()


def test_public_methods_have_docstrings() -> None:
    """Except where they override a method, whose docstring describes them, too."""
    lacking = []
    for name in SOURCES:
        module = import_module(name)
        for kind in vars(module).values():
            if not inspect.isclass(kind) or kind.__module__ != name or kind.__name__[0] == "_":
                continue
            inherited = {member for base in kind.__mro__[1:] for member in vars(base)}
            lacking += [
                f"{name}.{kind.__name__}.{member}"
                for member, value in vars(kind).items()
                if isinstance(value, METHODS) and member[0] != "_" and member not in inherited
                if not value.__doc__ and getattr(value, "__name__", member) == member
            ]
    assert lacking == []
