"""Docstrings: all examples run, and all public objects have examples."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import bpa_ppl
import bpa_ppl.diagnostics
import bpa_ppl.models
from bpa_ppl.component import Component


def module_names(package: ModuleType) -> set[str]:
    """Return the names of a package and all its modules."""
    assert package.__file__ is not None
    folder = str(Path(package.__file__).parent)
    result = pkgutil.walk_packages([folder], prefix=f"{package.__name__}.")
    return {package.__name__, *(module.name for module in result)}


# In a checkout the folders of models and diagnostics are outside the folder of the package.
PACKAGES = (bpa_ppl, bpa_ppl.models, bpa_ppl.diagnostics)
MODULES = sorted(set().union(*map(module_names, PACKAGES)))


def module_source(name: str) -> str:
    """Return the source code of a module without importing it."""
    result = importlib.util.find_spec(name)
    assert result is not None
    assert result.origin is not None
    return Path(result.origin).read_text("utf-8")


WITH_EXAMPLES = [name for name in MODULES if ">>> " in module_source(name)]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # examples may write files
    module = import_module(name)
    outcome = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert outcome.attempted > 0, f"the examples of {name} are not found"
    assert outcome.failed == 0, f"{outcome.failed} of {outcome.attempted} examples of {name} fail"


ROOT = Path(__file__).resolve().parent.parent
#: What the pages of the reference show.
SHOWN = sorted(
    name
    for page in (ROOT / "docs" / "api").glob("*.md")
    for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)
)


def documented_objects() -> dict[str, Any]:
    """Return the public functions and classes by name, each once."""
    names = [f"{package.__name__}.{name}" for package in PACKAGES for name in package.__all__]
    objects: dict[int, tuple[str, Any]] = {}
    for name in [*SHOWN, *names]:
        module, _, attribute = name.rpartition(".")
        obj = getattr(import_module(module), attribute)
        if inspect.isclass(obj) or inspect.isroutine(obj):
            objects.setdefault(id(obj), (name, obj))
    return dict(objects.values())


def own_examples(obj: Any) -> str:
    """Return the code of the examples in an object's own docstring."""
    own = vars(obj).get("__doc__") if inspect.isclass(obj) else obj.__doc__
    return "\n".join(e.source for e in doctest.DocTestParser().get_examples(own or ""))


def user_members(kind: Any) -> dict[str, Any]:
    """Return the public methods and properties of a class that users call.

    Methods of components are called by the library; the recipes of CONTRIBUTING.md are their
    examples.
    """
    if not inspect.isclass(kind) or issubclass(kind, Component):
        return {}
    ours = [one for one in kind.__mro__ if one.__module__.startswith("bpa_ppl.")]
    result = {name: member for one in reversed(ours) for name, member in vars(one).items()}
    callables = (property, cached_property, classmethod, staticmethod)
    return {
        name: member
        for name, member in result.items()
        if name[0] != "_"
        and (inspect.isroutine(member) or isinstance(member, callables))
        and getattr(member, "__module__", None) != "sklearn.utils._metadata_requests"
    }


def objects_without_example(objects: Mapping[str, Any]) -> list[str]:
    """Return functions and classes without example, and members that no example uses."""
    lacking = [name for name, obj in objects.items() if not own_examples(obj)]
    for name, obj in objects.items():
        own = {key: own_examples(m) for key, m in user_members(obj).items()}
        used = set(re.findall(r"\.(\w+)", "\n".join([own_examples(obj), *own.values()])))
        lacking += [f"{name}.{key}" for key in own if not own[key] and key not in used]
    return lacking


def test_documented_objects_have_examples() -> None:
    assert objects_without_example(documented_objects()) == []


#: Functions without an example, and the reason.
WITHOUT_EXAMPLE = {
    "application": "a web application: see tests/serving",
    "serve": "runs until it is stopped: see tests/serving",
    "aggregate": "needs a finished study, which takes a minute: see tests/experiments",
    "read_results": "as above",
    "run_study": "as above",
    "write_figures": "as above",
}


def test_functions_of_subpackages_have_examples() -> None:
    """Each function has an example or is called in the example of another function."""
    sources = "".join(map(module_source, MODULES))
    called = set(
        re.findall(r"\b(\w+)\(", "".join(re.findall(r"^ *(?:>>>|\.\.\.) .*\n", sources, re.M)))
    )
    lacking = set()
    for info in pkgutil.iter_modules(bpa_ppl.__path__[:1], "bpa_ppl."):
        module = import_module(info.name) if info.ispkg else None
        functions = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
        lacking |= {
            name
            for name, function in functions.items()
            if inspect.isroutine(function) and not own_examples(function)
        }
    assert lacking - called - WITHOUT_EXAMPLE.keys() == set()


def test_reference_lists_all_public_objects() -> None:
    shown = {id(getattr(import_module(m), n)) for m, _, n in (s.rpartition(".") for s in SHOWN)}
    missing = [name for name, obj in documented_objects().items() if id(obj) not in shown]
    assert missing == []
