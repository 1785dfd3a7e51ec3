"""The layers of the package, its dependencies, what an import loads, and the codes of errors."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from support.posteriors import name_weights, with_check

from bpa_ppl import errors, from_lists, write_nbest, write_posterior
from bpa_ppl.errors import CODES

ROOT = Path(__file__).resolve().parent.parent

#: From bottom to top: a package imports from lower layers and from itself only. A part of a package
#: that lies above its other parts has an entry of its own.
BASE = (("errors",), ("_runtime",), ("components",))
#: Draws of any program: it knows no lists.
REFEREE = (
    ("posterior",),
    ("diagnostics",),
    ("densities",),
    ("samplers",),
    ("sampling",),
    ("diagnostics.samplers",),
)
#: Models and decoding are above evaluation, whose comparisons they use.
OF_LISTS = (
    ("lists",),
    ("weights",),
    ("adaptation_record",),
    ("formats",),
    ("weight_draws",),
    ("text",),
    ("gains",),
    ("features",),
    ("evaluation",),
    ("models.likelihoods",),
    ("models.priors",),
    ("models",),
    ("decoding",),
    ("adapting",),
    ("sklearn",),
)
LAYERS = (
    *BASE,
    *REFEREE,
    *OF_LISTS,
    ("cli",),
    ("__main__",),
    ("extras",),  # commands and components that are entry points: the core imports none of them
    ("bpa_ppl",),  # the names of the public interface
)
HEIGHT = {package: number for number, layer in enumerate(LAYERS) for package in layer}
#: What commands that only choose and describe do not load.
HEAVY = {
    *("arviz", "arviz_stats", "jax", "matplotlib", "numba", "numpyro", "pandas", "scipy.optimize"),
    *("scipy.stats", "sklearn", "xarray"),
}
#: Package -> its module, where the names differ.
IMPORTED_AS = {
    "arviz-stats": "arviz_stats",
    "docstring-parser": "docstring_parser",
    "scikit-learn": "sklearn",
}


def modules() -> dict[str, Path]:
    """Return the files of the package by the dotted names of modules and packages."""
    result = {}
    for parent, folder in ((ROOT / "bpa_ppl", "."), (ROOT, "models"), (ROOT, "diagnostics")):
        for path in (parent / folder).rglob("*.py"):
            name = ".".join(["bpa_ppl", *path.relative_to(parent).with_suffix("").parts])
            result[name.removesuffix(".__init__")] = path
    return result


class Facts(NamedTuple):
    """What a module contains on any line."""

    imports: set[str]
    """The dotted names that it imports."""
    texts: set[str]
    codes: set[object]
    """The constants that are passed as `code`."""


def read_facts(path: Path) -> Facts:
    facts = Facts(set(), set(), set())
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import():
                facts.imports.update(alias.name for alias in node.names)
            case ast.ImportFrom():
                facts.imports.update(f"{node.module}.{alias.name}" for alias in node.names)
            case ast.Constant():
                facts.texts.add(str(node.value))
            case ast.keyword(arg="code", value=ast.Constant(value)):
                facts.codes.add(value)
    return facts


MODULES = modules()


@cache
def facts() -> dict[str, Facts]:
    """Return the facts of each module; not when the tests are collected, which all workers do."""
    return {name: read_facts(path) for name, path in MODULES.items()}


def package_of(name: str) -> str:
    """Return the entry of `LAYERS` that is the longest prefix of a dotted name of ours."""
    parts = name.split(".")[1:]
    prefixes = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in HEIGHT), "bpa_ppl")


NAMED = re.compile(r"bpa_ppl\.[\w.]+:")


@pytest.mark.needs_extras
def test_imports_come_from_lower_layers() -> None:
    """So no module imports `bpa_ppl` itself, which is above all others."""
    assert {package_of(name) for name in MODULES} == HEIGHT.keys(), "add packages to LAYERS"
    upward = set()
    for module, (names, texts, _) in facts().items():
        own = package_of(module)
        # Texts `module:Class` name what is imported later.
        later = {text.partition(":")[0] for text in texts if re.match(NAMED, text)}
        ours = {name for name in names | later if name.split(".")[0] == "bpa_ppl"}
        used = {package_of(name) for name in ours} - {own}
        upward |= {(module, package) for package in used if HEIGHT[package] >= HEIGHT[own]}
    assert upward == set()


def find_reached(*functions: str) -> set[str]:
    """Return the modules that imports lead to from those of public functions, also inside others.

    The samplers and diagnostics that registries name are not imported.
    """
    stub = ast.parse((ROOT / "bpa_ppl" / "__init__.pyi").read_text("utf-8"))
    homes = {
        alias.name: str(node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    reached, left = set[str](), [homes[name] for name in functions]
    while left:
        if (module := left.pop()) not in reached:
            reached.add(module)
            names = (name for name in facts()[module].imports if name.startswith("bpa_ppl."))
            left += {n if n in MODULES else n.rpartition(".")[0] for n in names} - {"bpa_ppl"}
    return reached


@pytest.mark.parametrize(
    ("functions", "most"),
    [
        (("sample",), 40),
        (("check",), 40),
        (("compare",), 40),
        (("sample", "check", "compare", "plot_trace"), 70),
        (("sample", "check", "compare", "plot_trace", "compare_samplers", "calibrate"), 70),
    ],
)
def test_the_referee_knows_no_lists(functions: tuple[str, ...], most: int) -> None:
    reached = find_reached(*functions)
    assert len(reached) <= most
    allowed = {package for layer in (*BASE, *REFEREE) for package in layer}
    assert {package_of(module) for module in reached} <= allowed


def test_the_names_of_the_referee_that_lists_use_are_listed() -> None:
    """If the change is on purpose, change the list in `referee_names.txt` too."""
    referee, lists = ({name for layer in part for name in layer} for part in (REFEREE, OF_LISTS))
    used = {
        name.removeprefix("bpa_ppl.")
        for module in MODULES
        if package_of(module) in lists
        for name in facts()[module].imports
        if name.startswith("bpa_ppl.") and package_of(name) in referee
    }
    assert sorted(used) == (ROOT / "tests" / "referee_names.txt").read_text("utf-8").splitlines()


def test_packages_import_nothing() -> None:
    """Except for `bpa_ppl`, whose names are imported on first use, and that of the converters."""
    packages = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    packages -= {"bpa_ppl", "bpa_ppl.extras.convert"}
    assert [name for name in packages if facts()[name].imports] == []


def test_no_modules_import_each_other() -> None:
    """Also not within functions and for types."""
    graph = {
        module: {name if name in MODULES else name.rpartition(".")[0] for name in of.imports}
        - {module}
        for module, of in facts().items()
    }
    TopologicalSorter(graph).prepare()  # raises an error that names a cycle


def test_tests_import_the_package_that_they_mirror_and_what_users_import() -> None:
    """A change within a package changes no other tests: `support` builds what these need of it."""
    folder, inside = ROOT / "tests", set()
    for path in set(folder.rglob("*.py")) - set((folder / "support").iterdir()):
        mirrored = re.sub(r"^test_|\.py$", "", path.relative_to(folder).parts[0])
        ours = {name for name in read_facts(path).imports if name.startswith("bpa_ppl.")}
        used = {package_of(name).partition(".")[0].lstrip("_") for name in ours}
        inside |= {(path.name, package) for package in used - {mirrored, "bpa_ppl", "errors"}}
    assert inside == set()


@pytest.mark.needs_extras
def test_imported_packages_are_declared_dependencies() -> None:
    used = {name.split(".")[0] for name in set().union(*(of.imports for of in facts().values()))}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    entries = [*project["dependencies"], *extras["cluster"], *extras["judge"]]
    declared = {entry.split(">")[0] for entry in entries}
    used |= {"h5netcdf"}  # loaded by xarray, as the engine that reads and writes posteriors
    used -= sys.stdlib_module_names | {"bpa_ppl"}
    assert used == {IMPORTED_AS.get(name, name) for name in declared}


IMPORT = """
import bpa_ppl, bpa_ppl.decoding.writing, bpa_ppl.diagnostics.check.check, bpa_ppl.features.source
import bpa_ppl.evaluation.raters, bpa_ppl.features.length, bpa_ppl.formats.reading
import bpa_ppl.formats.weight_files, bpa_ppl.models.likelihoods.preference, bpa_ppl.features.recipe
import bpa_ppl.posterior.files, bpa_ppl.gains.pairwise, bpa_ppl.gains.gains
import bpa_ppl.samplers.sampler, bpa_ppl.evaluation.describe
"""
RUN = """
import sys
from bpa_ppl.cli.app import run_command
for command in (
    "--help",
    "lists lists.jsonl --gain human",
    "rerank lists.jsonl -p posterior.nc -o texts",
):
    sys.argv = ["bpa", *command.split()]
    run_command(sys.argv[1:])
reranker = bpa_ppl.Reranker("posterior.nc")
reranker.choose(["a", "b"], {"LM0": [0.0, 1.0], "human": [0.0, 1.0]})
"""
PRINT_MODULES = "import json, sys; print(); print(json.dumps(sorted(sys.modules)))"


def test_imports_and_commands_are_light(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    features = ("LM0", "human")
    drawn = np.random.default_rng(0).normal(size=(4, 1000, 2))
    write_posterior(with_check(name_weights(drawn, features)), "posterior.nc")
    lists = from_lists([["a", "b"]] * 3, [np.eye(2)] * 3, features)
    write_nbest(lists, "lists.jsonl")
    command = [sys.executable, "-c", IMPORT + RUN + PRINT_MODULES]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    loaded = set(json.loads(printed.splitlines()[-1]))
    assert "bpa_ppl.cli" in loaded
    assert not HEAVY & loaded


#: Codes that functions of `errors` put together or choose.
COMPOSED = {"missing-references", "missing-sources", "unknown-setting"}


def test_the_codes_in_use_are_listed() -> None:
    """Apart from the table itself, each code is a text in the package."""
    assert set().union(*(of.codes for of in facts().values())) <= set(CODES)
    classes = (kind for kind in vars(errors).values() if isinstance(kind, type))
    of_classes = {str(kind.code) for kind in classes if issubclass(kind, errors.BpaError)}
    others = MODULES.keys() - {"bpa_ppl.errors"}
    used = set().union(*(facts()[name].texts for name in others))
    assert set(CODES) <= used | of_classes | COMPOSED


def test_the_reference_lists_the_codes() -> None:
    page = (ROOT / "docs" / "api" / "extending.md").read_text("utf-8")
    assert dict(re.findall(r"^\| `([\w-]+)` \| (.*) \|$", page, re.M)) == CODES


def test_the_architecture_page_has_the_calls_of_adapt() -> None:
    """The steps in its table are what `adapt` calls, in this order, with the results it says."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    table = page.partition("## The steps of `adapt`")[2].partition("\n##")[0]
    steps = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", table, re.M)
    expected, called = dict(steps), list[str]()

    def follow(function: str, module: str) -> None:
        """Add the steps that a function calls, in the order of their execution."""
        source = MODULES[module].read_text("utf-8")
        functions = {n.name: n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)}
        calls = [n for n in ast.walk(functions[function]) if isinstance(n, ast.Call)]
        names = [n.func.id for n in sorted(calls, key=position) if isinstance(n.func, ast.Name)]
        for name in names:
            if name in expected and name not in called:
                called.append(name)
            if name in functions and name != function:
                follow(name, module)

    def position(call: ast.Call) -> tuple[int, int]:
        return call.lineno, call.col_offset

    follow("adapt", "bpa_ppl.adapting.adapt")
    assert called == list(expected)
    nodes = [node for path in MODULES.values() for node in ast.parse(path.read_text("utf-8")).body]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.returns]
    for name, result in expected.items():
        returned = [ast.unparse(node.returns) for node in functions if node.name == name]
        forms = re.findall(r"`(\w+)`", result)
        assert any(all(form in one for form in forms) for one in returned), (name, returned)
