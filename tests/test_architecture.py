"""The plan of the house: who may import whom, what importing costs, and how long things are."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent

#: From the ground up; a room imports from those in lower layers, and from itself.
#: Decoding stands on diagnostics, because it refuses a posterior that fails its check.
LAYERS = (
    ("errors", "labels", "lazily", "progress", "tables"),
    ("notes",),
    ("columns", "compiled", "component", "workers"),
    ("nbest", "registry"),
    ("caching", "rows", "weights"),
    ("jax_cache",),
    ("formats",),
    ("text",),
    ("phrases",),
    ("posterior", "quality"),
    ("features",),
    ("models", "tuning"),
    ("diagnostics",),
    ("sampling",),
    ("decoding",),
    ("calibrating", "comparing", "experiments", "demo", "reporting", "updating"),
    ("bpa_ppl",),  # the public face itself
    ("cli",),
)
#: What only posterior/ may know of InferenceData: the names of its groups.
GROUPS = {
    "constant_data",
    "log_likelihood",
    "log_prior",
    "observed_data",
    "posterior",
    "posterior_predictive",
    "sample_stats",
    "warmup_posterior",
}
HEAVY = ("arviz", "jax", "matplotlib", "numba", "numpyro", "sklearn")
#: Package -> the module that it installs, where that has another name.
MODULES = {"arviz-stats": "arviz_stats", "pyyaml": "yaml", "scikit-learn": "sklearn"}
STANDARD = set(sys.stdlib_module_names) | {"bpa_ppl"}


def sources() -> dict[str, Path]:
    """Return the files of the package, by dotted name inside it."""
    folders = {
        "": ROOT / "bpa_ppl",
        "models.": ROOT / "models",
        "diagnostics.": ROOT / "diagnostics",
    }
    return {
        prefix + ".".join(path.relative_to(folder).with_suffix("").parts): path
        for prefix, folder in folders.items()
        for path in sorted(folder.rglob("*.py"))
    }


SOURCES = sources()
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in SOURCES.items()}


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted names that a module imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the package in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(room: str) -> int:
    """Return the number of the layer of a room."""
    found = [number for number, rooms in enumerate(LAYERS) if room in rooms]
    assert found, f"bpa_ppl.{room} has no place in LAYERS yet"
    return found[0]


def room_of(dotted: str) -> str:
    """Return the room of the thing that `bpa_ppl.<…>` names."""
    room = f"{dotted}.".split(".")[1]
    return room if room in {name.split(".")[0] for name in SOURCES} else "bpa_ppl"


def lengths(tree: ast.AST) -> list[int]:
    """Return the lines of each function, its docstring not counted."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [_lines(f) - (_lines(f.body[0]) if ast.get_docstring(f) else 0) for f in functions]


def _lines(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def run_time(tree: ast.Module) -> ast.Module:
    """Return a module without the imports that only a type checker sees."""
    body = [node for node in tree.body if not _is_for_types(node)]
    return ast.Module(body=body, type_ignores=[])


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def groups_used(tree: ast.AST) -> set[str]:
    """Return the groups of InferenceData that a module subscripts, gets, or asks for with `in`."""
    asked: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            asked.append(node.slice)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            asked.append(node.left)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".get", ".pop")):
            asked += node.args[:1]
    return GROUPS & {node.value for node in asked if isinstance(node, ast.Constant)}


@pytest.mark.parametrize("name", [name for name in SOURCES if name != "__init__"])
def test_imports_run_one_way(name: str) -> None:
    own = name.split(".")[0]
    # The registry names the types of all rooms, and loads none of them before it is asked.
    tree = run_time(TREES[name]) if name == "registry" else TREES[name]
    ours = {i for i in imported(tree) if i.split(".")[0] == "bpa_ppl"}
    theirs = {room_of(i) for i in ours - {"bpa_ppl.__version__"}}
    # NBest.from_records and its relatives load their readers when they are called.
    theirs -= {"rows"} if name == "nbest" else set()
    upward = {room for room in theirs - {own} if layer(room) >= layer(own)}
    assert not upward, f"bpa_ppl.{name} must not import from {upward}"


@pytest.mark.parametrize("name", [name for name in SOURCES if name.split(".")[0] != "posterior"])
def test_only_the_adapter_knows_inference_data(name: str) -> None:
    assert groups_used(TREES[name]) == set()


def names_arviz(tree: ast.AST) -> bool:
    """Say whether a module imports ArviZ, or one of the packages that ArviZ 1 is made of."""
    loaded = {i.split(".")[0] for i in imported(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            loaded |= {ast.unparse(part).strip("'").split(".")[0] for part in node.args[:1]}
    return bool(loaded & {"arviz", "arviz_base", "arviz_plots", "arviz_stats"})


def test_one_module_alone_knows_which_arviz_there_is() -> None:
    theirs = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    texts = {path.name: path.read_text("utf-8") for path in theirs}
    trees = TREES | {name: ast.parse(text) for name, text in texts.items() if "arviz" in text}
    assert [name for name in trees if names_arviz(trees[name])] == ["posterior.arviz_functions"]


def test_a_group_that_is_reached_into_is_found() -> None:
    assert groups_used(ast.parse('x["sample_stats"]["lp"]')) == {"sample_stats"}
    assert groups_used(ast.parse('"posterior" in x')) == {"posterior"}
    assert groups_used(TREES["posterior.adapter"]) >= {"posterior", "constant_data"}


def test_third_party_packages_are_those_declared() -> None:
    used = {i.split(".")[0] for tree in TREES.values() for i in imported(tree)} - STANDARD
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {entry.split(">")[0] for entry in project["dependencies"]}
    assert used == {MODULES.get(name, name) for name in declared}


@pytest.mark.parametrize(
    "work",
    [
        "import bpa_ppl",
        "import bpa_ppl.formats",
        "import bpa_ppl.nbest, bpa_ppl.weights",
        "import sys; sys.argv = ['bpa', '--help']; from bpa_ppl.cli.app import app; "
        "app(standalone_mode=False)",
    ],
)
def test_nothing_heavy_is_imported(work: str) -> None:
    tell = "import json, sys; print(); print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", f"{work}\n{tell}"], capture_output=True, text=True, check=True
    )
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert "bpa_ppl" in loaded
    assert not set(HEAVY) & set(loaded)


def test_no_module_is_long() -> None:
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in SOURCES.items()}
    assert {name: count for name, count in lines.items() if count > 1000} == {}


def test_functions_are_short() -> None:
    found = [length for tree in TREES.values() for length in lengths(tree)]
    assert np.median(found) <= 7
    assert np.percentile(found, 90) <= 19
    assert max(found) <= 120


def test_docstrings_are_not_counted() -> None:
    tree = ast.parse('def f():\n    """One.\n\n    Two.\n    """\n    return 1\n')
    assert lengths(tree) == [2]


def uses(tree: ast.AST, name: str) -> bool:
    """Say whether a module uses a name, alone or as an attribute."""
    return any(name in (getattr(n, "attr", None), getattr(n, "id", None)) for n in ast.walk(tree))


def test_there_is_one_way_to_warn() -> None:
    """So every `BpaWarning` of the package, in any test, has been a record of its logger before."""
    names = ("warn", "warn_explicit", "BpaWarning")
    assert {name: {m for m, tree in TREES.items() if uses(tree, name)} for name in names} == {
        "warn": {"cli.notes"},  # its own method, which prints
        "warn_explicit": {"notes"},
        "BpaWarning": {"notes", "cli.notes"},
    }
