"""Every example in a docstring runs, and everything public has a docstring."""

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


def names_within(package: ModuleType) -> set[str]:
    """Return the names of a package and of all modules in its folder."""
    assert package.__file__ is not None
    folder = str(Path(package.__file__).parent)
    found = pkgutil.walk_packages([folder], prefix=f"{package.__name__}.")
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


def source_of(name: str) -> str:
    """Return the source of a module, without importing it."""
    found = importlib.util.find_spec(name)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).read_text("utf-8")


WITH_EXAMPLES = [name for name in MODULES if ">>> " in source_of(name)]


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


def documented() -> dict[str, Any]:
    """Return each public function and class of the documented surface once, by name."""
    names = [f"{package.__name__}.{name}" for package in PACKAGES for name in package.__all__]
    things: dict[int, tuple[str, Any]] = {}
    for name in [*SHOWN, *names]:
        module, _, attribute = name.rpartition(".")
        thing = getattr(import_module(module), attribute)
        if inspect.isclass(thing) or inspect.isroutine(thing):
            things.setdefault(id(thing), (name, thing))
    return dict(things.values())


def examples_of(thing: Any) -> str:
    """Return the code of the examples in the docstring of something itself, not of its base."""
    own = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    return "\n".join(e.source for e in doctest.DocTestParser().get_examples(own or ""))


def members_of(kind: type) -> dict[str, Any]:
    """Return the public methods and properties that a user calls.

    Those of a component are called by the library: the recipes of CONTRIBUTING.md show what an
    author writes, and tests/test_additions.py runs them.
    """
    if issubclass(kind, Component):
        return {}
    ours = [one for one in kind.__mro__ if one.__module__.startswith("bpa_ppl.")]
    found = {name: member for one in reversed(ours) for name, member in vars(one).items()}
    callables = (property, cached_property, classmethod, staticmethod)
    return {
        name: member
        for name, member in found.items()
        if name[0] != "_" and (inspect.isroutine(member) or isinstance(member, callables))
    }


def without_example(things: Mapping[str, Any]) -> list[str]:
    """Return the functions and classes without an example, and the members that no example uses.

    A member is shown by an example of its own, or used by one of its class or of another member.
    """
    lacking = [name for name, thing in things.items() if not examples_of(thing)]
    for name, thing in things.items():
        members = members_of(thing) if inspect.isclass(thing) else {}
        own = {key: examples_of(member) for key, member in members.items()}
        used = set(re.findall(r"\.(\w+)", "\n".join([examples_of(thing), *own.values()])))
        lacking += [f"{name}.{key}" for key in members if not own[key] and key not in used]
    return lacking


def test_everything_documented_has_an_example() -> None:
    assert without_example(documented()) == []


#: Functions of the rooms without an example, and why.
LEFT_OUT = {
    "aggregate": "is of a finished study, which takes a minute",
    "read_results": "as above",
    "run_study": "as above: tests/experiments run them",
    "write_figures": "as above",
    "draws_of": "is of what a sampler leaves: adapt calls it",
    "learn_prior_jointly": "samples for half a minute: tests/sampling runs it",
}


@pytest.mark.parametrize(
    "room", [m.name for m in pkgutil.iter_modules(bpa_ppl.__path__[:1], "bpa_ppl.") if m.ispkg]
)
def test_every_function_of_a_room_has_an_example(room: str) -> None:
    """Each function has an example, or is called by one of another function of the package."""
    module = import_module(room)
    functions = {n: f for n in getattr(module, "__all__", ()) if callable(f := getattr(module, n))}
    found = {n: f for n, f in functions.items() if inspect.isroutine(f) and not examples_of(f)}
    called = "".join(re.findall(r"^ *(?:>>>|\.\.\.) .*\n", "".join(map(source_of, MODULES)), re.M))
    assert [n for n in found if f"{n}(" not in called and n not in LEFT_OUT] == []


def test_the_reference_shows_all_that_is_public() -> None:
    shown = {id(getattr(import_module(m), n)) for m, _, n in (s.rpartition(".") for s in SHOWN)}
    missing = [name for name, thing in documented().items() if id(thing) not in shown]
    assert missing == []


def test_the_missing_example_is_found() -> None:
    class Shown:
        """>>> Shown().used()"""  # noqa: D415

        def used(self) -> None: ...

        def unused(self) -> None: ...

    Shown.__module__ = "bpa_ppl.sample"
    Derived = type("Derived", (Shown,), {"__module__": Shown.__module__})  # noqa: N806
    things = {"Shown": Shown, "bare": lambda: None, "Derived": Derived}
    missing = ["bare", "Derived", "Shown.unused", "Derived.used", "Derived.unused"]
    assert without_example(things) == missing


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
        "bpa_ppl.diagnostics.checks",
    } < set(MODULES)
