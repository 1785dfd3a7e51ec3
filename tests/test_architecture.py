"""The layers of the package, its dependencies, and the imports of its modules."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from bpa_ppl import Draws, NBest, write_nbest, write_posterior

ROOT = Path(__file__).resolve().parent.parent

#: From bottom to top: a package imports from lower layers and from itself only.
#: Decoding is above diagnostics, because it rejects posteriors that fail the check.
LAYERS = (
    ("arrays", "errors", "labels", "progress", "tables"),
    ("notes",),
    ("columns", "compiling", "component", "workers"),
    ("nbest", "registry"),
    ("caching", "rows", "weights"),
    ("options",),
    ("formats",),
    ("text",),
    ("posterior", "quality"),
    ("features",),
    ("models",),
    ("diagnostics",),
    ("sampling",),
    ("decoding",),
    ("demo", "sklearn"),
    ("bpa_ppl",),  # the top-level module
    ("serving",),
    ("judging",),
    ("cli",),
    ("__main__",),
    ("experiments", "phrases"),
)
#: Groups of InferenceData that only posterior/ may access.
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
#: What commands that only choose, check and describe do not load.
HEAVY = (
    *("arviz", "arviz_stats", "jax", "matplotlib", "numba", "numpyro", "pandas", "scipy.optimize"),
    *("scipy.stats", "sklearn", "xarray"),
)
#: Package -> its module, where the names differ.
MODULES = {
    "backports.zstd": "backports",
    "pillow": "PIL",
    "lazy-loader": "lazy_loader",
    "scikit-learn": "sklearn",
}
#: What no other module imports, by the beginnings of the names of its modules: its commands and
#: components are entry points. `models` has programs of both papers about phrase pairs.
SATELLITES = {
    "experiments": ("experiments.",),
    "phrases": ("phrases.", "models.instance_weighting.", "models.subdomains."),
}
STANDARD = set(sys.stdlib_module_names) | {"bpa_ppl", "compression"}  # the latter from 3.14 on


def sources() -> dict[str, Path]:
    """Return the source files of the package by module name."""
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


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax trees of the package by module name."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in SOURCES.items()}


@cache
def walk(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return all nodes of a syntax tree."""
    return tuple(ast.walk(tree))


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted names of all imports of a module."""
    for node in walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the package in full"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def satellite_of(name: str) -> str:
    """Return the satellite that a module belongs to; an empty text for one of the core."""
    result = [s for s, parts in SATELLITES.items() if f"{name}.".startswith(parts)]
    return result[0] if result else ""


def own_package(name: str) -> str:
    """Return the package of a module: for those of a satellite its name."""
    return satellite_of(name) or name.split(".")[0]


def layer(package: str) -> int:
    """Return the number of a package's layer."""
    result = [number for number, packages in enumerate(LAYERS) if package in packages]
    assert result, f"add bpa_ppl.{package} to LAYERS"
    return result[0]


def package_of_import(dotted: str) -> str:
    """Return the subpackage, or the satellite, that `bpa_ppl.<…>` belongs to."""
    if satellite := satellite_of(dotted.removeprefix("bpa_ppl.")):
        return satellite
    package = f"{dotted}.".split(".")[1]
    return package if package in {name.split(".")[0] for name in SOURCES} else "bpa_ppl"


def groups_read(tree: ast.AST) -> set[str]:
    """Return the groups of InferenceData that a module accesses by `[]`, `get`, `pop` or `in`."""
    asked: list[ast.expr] = []
    for node in walk(tree):
        if isinstance(node, ast.Subscript):
            asked.append(node.slice)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            asked.append(node.left)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("get", "pop"):
            asked += node.args[:1]
    return GROUPS & {node.value for node in asked if isinstance(node, ast.Constant)}


def upward_imports(name: str) -> set[str]:
    """Return the packages that a module imports although they are above it."""
    own = own_package(name)
    ours = {i for i in imported(trees()[name]) if i.split(".")[0] == "bpa_ppl"}
    imported_packages = {package_of_import(i) for i in ours - {"bpa_ppl.__version__"}}
    # NBest.from_records and similar methods import their readers when called.
    imported_packages -= {"rows"} if name == "nbest" else set()
    return {package for package in imported_packages - {own} if layer(package) >= layer(own)}


def test_imports_come_from_lower_layers() -> None:
    upward = {name: upward_imports(name) for name in SOURCES if name != "__init__"}
    assert {name: packages for name, packages in upward.items() if packages} == {}


def satellite_imports(name: str) -> set[str]:
    """Return what a module imports or names from satellites other than its own."""
    names = set(imported(trees()[name]))
    constants = (node.value for node in walk(trees()[name]) if isinstance(node, ast.Constant))
    # Names that are imported on first use
    names |= {value.partition(":")[0] for value in constants if isinstance(value, str)}
    ours = {n.removeprefix("bpa_ppl.") for n in names if n.startswith("bpa_ppl.")}
    return {n for n in ours if satellite_of(n) not in ("", satellite_of(name))}


def test_the_core_does_not_use_satellites() -> None:
    used = {name: satellite_imports(name) for name in SOURCES}
    assert {name: satellites for name, satellites in used.items() if satellites} == {}
    for name in ("features", "models", "diagnostics"):
        folder = Path(import_module(f"bpa_ppl.{name}").__file__ or "").parent
        stub = ast.parse((folder / "__init__.pyi").read_text("utf-8"))
        lazily = {f"{name}.{n.module}" for n in ast.walk(stub) if isinstance(n, ast.ImportFrom)}
        assert not {module for module in lazily if satellite_of(module)}


def test_satellites_are_installed_by_entry_points() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    modules = {
        value.partition(":")[0].removeprefix("bpa_ppl.")
        for points in project["entry-points"].values()
        for value in points.values()
    }
    assert {satellite_of(module) for module in modules} == set(SATELLITES)


def test_inference_data_groups_are_read_in_posterior_only() -> None:
    groups = {name: groups_read(tree) for name, tree in trees().items()}
    assert {name.split(".")[0] for name, read in groups.items() if read} == {"posterior"}


def test_packages_do_not_import_their_own_modules() -> None:
    """Python may refuse to import a package and a module of it in two threads at once otherwise."""
    inits = {name: tree for name, tree in trees().items() if name.endswith("__init__")}
    eager = [
        module
        for name, tree in inits.items()
        for module in imported(tree)
        if module.startswith(f"bpa_ppl.{name.removesuffix('__init__')}")
    ]
    # No other module imports this one, which has the name of its function.
    assert eager == ["bpa_ppl.models.log_linear.log_linear"]


ARVIZ = re.compile(r"""^ *(?:import|from) arviz|import_module\(["']arviz""", re.MULTILINE)


def test_only_one_module_imports_arviz() -> None:
    texts = {name: path.read_text("utf-8") for name, path in SOURCES.items()}
    assert [name for name, text in texts.items() if ARVIZ.search(text)] == [
        "posterior.arviz_functions"
    ]


def test_imported_packages_are_declared_dependencies() -> None:
    used = {top_of(i) for tree in trees().values() for i in imported(tree)} - STANDARD
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    entries = [*project["dependencies"], *extras["report"], *extras["serve"]]
    declared = {entry.split(">")[0] for entry in entries}
    used |= {"h5netcdf"}  # loaded by xarray, as the engine that reads and writes posteriors
    assert used == {MODULES.get(name, name) for name in declared}


#: The modules of what loads nothing heavy.
LIGHT = """
import bpa_ppl, bpa_ppl.formats, bpa_ppl.features, bpa_ppl.features.length, bpa_ppl.weights
import bpa_ppl.posterior, bpa_ppl.diagnostics.checks, bpa_ppl.diagnostics.raters, bpa_ppl.quality
import bpa_ppl.quality.pairs, bpa_ppl.models, bpa_ppl.models.preparing, bpa_ppl.decoding
import bpa_ppl.models.likelihoods.preference, bpa_ppl.serving.app, bpa_ppl.sampling.description
"""
COMMANDS = """
import sys
from bpa_ppl.cli.app import run_command
for command in (
    "--help",
    "check posterior.nc",
    "lists lists.jsonl --metric human",
    "rerank lists.jsonl -p posterior.nc -o texts",
):
    sys.argv = ["bpa", *command.split()]
    run_command(sys.argv[1:])
"""


def test_imports_and_commands_are_light(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    features = ("LM0", "human")
    drawn = np.random.default_rng(0).normal(size=(4, 1000, 2))
    write_posterior(Draws({"weights": drawn}, features), "posterior.nc")
    lists = NBest.from_lists([["a", "b"]] * 3, [np.eye(2)] * 3, features)
    write_nbest(lists, "lists.jsonl")
    for code in (LIGHT, COMMANDS):
        assert "bpa_ppl.cli" in (loaded := modules_after(code)) or code is LIGHT
        assert not set(HEAVY) & loaded


def modules_after(code: str) -> set[str]:
    """Return the modules that are loaded when a program has run."""
    print_modules = "import json, sys; print(); print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{print_modules}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def uses_name(tree: ast.AST, name: str) -> bool:
    """Return whether a module uses a name, alone or as an attribute."""
    return any(name in (getattr(n, "attr", None), getattr(n, "id", None)) for n in walk(tree))


def test_only_the_notes_module_warns() -> None:
    """All warnings are therefore log records as well."""
    names = ("warn", "warn_explicit", "BpaWarning")
    assert {
        name: {m for m, tree in trees().items() if uses_name(tree, name)} for name in names
    } == {"warn": set(), "warn_explicit": {"notes"}, "BpaWarning": {"notes"}}


def top_of(dotted: str) -> str:
    """Return the first part of a dotted name."""
    return dotted.split(".")[0]


def is_private(name: str) -> bool:
    """Return whether a name is private; names like `__version__` are not."""
    return name.startswith("_") and not name.endswith("__")


def imported_names(tree: ast.AST) -> dict[str, str]:
    """Return the dotted name of each name that a module imports."""
    names: dict[str, str] = {}
    for node in walk(tree):
        if isinstance(node, ast.Import):
            tops = [(a.asname, a.name) if a.asname else (top_of(a.name),) * 2 for a in node.names]
            names |= dict(tops)
        elif isinstance(node, ast.ImportFrom):
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    return names


def dotted_name(node: ast.expr, names: dict[str, str]) -> str:
    """Return the dotted name of an expression `a.b.c` of imported objects, otherwise ""."""
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute):
        base = dotted_name(node.value, names)
        return f"{base}.{node.attr}" if base else ""
    return ""


def forbidden_accesses(tree: ast.AST) -> set[str]:
    """Return private names of other packages that a module uses, and attributes that it changes."""
    names = imported_names(tree)
    result: set[str] = set()
    for dotted in imported(tree):
        top, *parts = dotted.split(".")
        if top not in ("bpa_ppl", "__future__") and any(map(is_private, parts)):
            result.add(f"private: {dotted}")
        if top in ("gc", "signal"):
            result.add(f"forbidden: {dotted}")
    for node in walk(tree):
        # `module.name = …`, and `sys.modules[…] = …` or `del sys.modules[…]`
        place = node.value if isinstance(node, ast.Subscript) else node
        dotted = dotted_name(place, names) if isinstance(place, ast.Attribute) else ""
        changed = isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("setattr", "delattr"):
            dotted, changed = dotted_name(node.args[0], names), True
        if changed and isinstance(place, ast.Attribute) and place.attr == "__class__":
            result.add("assigned: __class__")
        if dotted.split(".")[0] in ("", "bpa_ppl") or dotted == "os.environ":
            continue
        if dotted == "os._exit":
            result.add("forbidden: os._exit")
        elif changed:
            result.add(f"assigned: {dotted}")
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            result.add(f"private: {dotted}")
    return result


#: The server takes hangup signals through the event loop of asyncio; the program handles what
#: Python ignores.
ALLOWED = {"serving.app": {"forbidden: signal"}, "__main__": {"assigned: sys.unraisablehook"}}


def test_no_access_to_private_parts_of_other_packages() -> None:
    accesses = {name: forbidden_accesses(tree) for name, tree in trees().items()}
    assert {name: found for name, found in accesses.items() if found} == ALLOWED


FORBIDDEN = {
    "from jax._src import compilation_cache": "private: jax._src.compilation_cache",
    "import jax\njax._src.core": "private: jax._src",
    "import os\nos._exit(1)": "forbidden: os._exit",
    "import numba\na, numba.vectorize = numba.vectorize, None": "assigned: numba.vectorize",
    "import sys\ndel sys.modules['a']": "assigned: sys.modules",
    "import numpy as np\nsetattr(np, 'a', 1)": "assigned: numpy",
    "model.__class__ = Mine": "assigned: __class__",
}


def test_forbidden_accesses_are_detected() -> None:
    for code, expected in FORBIDDEN.items():
        assert expected in forbidden_accesses(ast.parse(code))
    allowed = "import os, sys\nos.environ['A'] = 'b'\nself._x = sys.modules['a']"
    assert not forbidden_accesses(ast.parse(allowed))


#: What reads objects that run code, or runs texts as code.
CODE_READERS = {"pickle", "dill", "cloudpickle", "marshal", "shelve", "runpy", "joblib.load"}
#: The only module that starts other programs: the decoder of a study or of `tune`.
STARTERS = {"experiments.redecoding"}


def reads_code(tree: ast.AST) -> bool:
    """Return whether a module could run code from a file that it reads."""
    dotted = set(imported(tree))
    calls = [node for node in walk(tree) if isinstance(node, ast.Call)]
    functions = {ast.unparse(call.func) for call in calls}
    options = {(k.arg, ast.unparse(k.value)) for call in calls for k in call.keywords}
    return bool(
        CODE_READERS & (dotted | set(map(top_of, dotted)) | functions)
        or {"eval", "exec"} & functions
        or [value for name, value in options if name == "allow_pickle" and value != "False"]
    )


def test_no_file_is_read_that_could_run_code() -> None:
    assert {name for name, tree in trees().items() if reads_code(tree)} == set()
    imports = {name: set(map(top_of, imported(tree))) for name, tree in trees().items()}
    assert {name for name, tops in imports.items() if "subprocess" in tops} == STARTERS


CODE = (
    *("import pickle", "from pickle import loads", "import joblib\njoblib.load(path)"),
    *("from joblib import load", "np.load(path, allow_pickle=True)", "eval(text)"),
)


def test_readers_of_code_are_detected() -> None:
    assert [code for code in CODE if not reads_code(ast.parse(code))] == []
