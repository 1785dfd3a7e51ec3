"""The layers of the package, its dependencies, and what an import loads."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from bpa_ppl import Draws, NBest, write_nbest, write_posterior
from bpa_ppl.diagnostics.checks import checked

ROOT = Path(__file__).resolve().parent.parent

#: From bottom to top: a package imports from lower layers and from itself only.
#: Decoding is above diagnostics, because it rejects posteriors that fail the check.
LAYERS = (
    ("arrays", "errors", "labels", "progress", "tables"),
    ("notes",),
    ("caching", "columns", "component", "workers"),
    ("nbest", "registry"),
    ("drift", "rows", "weights"),
    ("options",),
    ("formats",),
    ("text",),
    ("posterior", "quality"),
    ("features",),
    ("models",),
    ("diagnostics",),
    ("sampling",),
    ("decoding",),
    ("adapting",),
    ("demo", "describing", "sklearn"),
    ("__init__",),  # the top-level module
    ("serving",),
    ("judging",),
    ("cli",),
    ("__main__",),
    ("experiments", "phrases"),  # satellites: their commands and components are entry points
)
HEIGHT = {package: number for number, layer in enumerate(LAYERS) for package in layer}
#: What commands that only choose and describe do not load.
HEAVY = {
    *("arviz", "arviz_stats", "jax", "matplotlib", "numba", "numpyro", "pandas", "scipy.optimize"),
    *("scipy.stats", "sklearn", "xarray"),
}
#: Package -> its module, where the names differ.
MODULES = {
    "arviz-stats": "arviz_stats",
    "backports.zstd": "backports",
    "pillow": "PIL",
    "lazy-loader": "lazy_loader",
    "scikit-learn": "sklearn",
}


def imported(path: Path, package: str) -> set[str]:
    """Return the dotted names that a module imports, or names in texts to import them later."""
    names = set[str]()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = ".".join(filter(None, [package if node.level else None, node.module]))
            names |= {f"{module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and re.match(r"bpa_ppl\.[\w.]+:", str(node.value)):
            names.add(node.value.partition(":")[0])
    return names


def imports() -> dict[str, set[str]]:
    """Return what each module and each stub of the package imports."""
    result = {}
    for parent, folder in ((ROOT / "bpa_ppl", "."), (ROOT, "models"), (ROOT, "diagnostics")):
        for path in [*(parent / folder).rglob("*.py"), *(parent / folder).rglob("*.pyi")]:
            name = ".".join(["bpa_ppl", *path.relative_to(parent).parts])
            result[name] = imported(path, name.removesuffix(f".{path.name}"))
    return result


IMPORTS = imports()


def package_of(name: str) -> str:
    """Return the package, as in `LAYERS`, of a module of ours or of a name in it."""
    first = name.removeprefix("bpa_ppl.").split(".")[0]
    return first if first in HEIGHT else "__init__"


def test_imports_come_from_lower_layers() -> None:
    assert {name.split(".")[1] for name in IMPORTS} <= HEIGHT.keys(), "add packages to LAYERS"
    upward = set()
    for module, names in IMPORTS.items():
        own = package_of(module)
        ours = {name for name in names if name.startswith("bpa_ppl.")} - {"bpa_ppl.__version__"}
        used = {package_of(name) for name in ours} - {own}
        upward |= {(module, package) for package in used if HEIGHT[package] >= HEIGHT[own]}
    # Loaded on first use: the satellites as names of the package, the readers of `NBest`.
    assert upward == {
        ("bpa_ppl.__init__.pyi", "experiments"),
        ("bpa_ppl.__init__.pyi", "phrases"),
        ("bpa_ppl.nbest.py", "rows"),
    }


def test_packages_do_not_import_their_own_modules() -> None:
    """Python may refuse to import a package and a module of it in two threads at once otherwise."""
    packages = {name[:-12]: used for name, used in IMPORTS.items() if name.endswith(".__init__.py")}
    eager = [one for name, used in packages.items() for one in used if one.startswith(f"{name}.")]
    # No other module imports this one, which has the name of its function.
    assert eager == ["bpa_ppl.models.log_linear.log_linear"]


def test_imported_packages_are_declared_dependencies() -> None:
    modules = [used for name, used in IMPORTS.items() if name.endswith(".py")]
    used = {name.split(".")[0] for name in set().union(*modules)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    entries = [*project["dependencies"], *extras["serve"]]
    declared = {entry.split(">")[0] for entry in entries}
    used |= {"h5netcdf"}  # loaded by xarray, as the engine that reads and writes posteriors
    used -= sys.stdlib_module_names | {"bpa_ppl", "compression"}  # the latter from 3.14 on
    assert used == {MODULES.get(name, name) for name in declared}


IMPORT = """
import bpa_ppl, bpa_ppl.formats, bpa_ppl.features, bpa_ppl.features.length, bpa_ppl.weights
import bpa_ppl.posterior, bpa_ppl.diagnostics.checks, bpa_ppl.diagnostics.raters, bpa_ppl.quality
import bpa_ppl.quality.pairs, bpa_ppl.models, bpa_ppl.features.recipe, bpa_ppl.decoding
import bpa_ppl.models.likelihoods.preference, bpa_ppl.serving.app, bpa_ppl.describing
"""
RUN = """
import sys
from bpa_ppl.cli.app import run_command
for command in (
    "--help",
    "lists lists.jsonl --metric human",
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
    write_posterior(checked(Draws({"weights": drawn}, features))[0], "posterior.nc")
    lists = NBest.from_lists([["a", "b"]] * 3, [np.eye(2)] * 3, features)
    write_nbest(lists, "lists.jsonl")
    command = [sys.executable, "-c", IMPORT + RUN + PRINT_MODULES]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    loaded = set(json.loads(printed.splitlines()[-1]))
    assert "bpa_ppl.cli" in loaded
    assert not HEAVY & loaded
