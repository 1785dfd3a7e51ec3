"""The wheel: built from a copy of the sources, installed apart, and used from elsewhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SOURCES = ("bpa_ppl", "models", "diagnostics", "examples", "pyproject.toml", "LICENSE", "README.md")
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]

USE = """
import importlib.util, json
import bpa_ppl, bpa_ppl.demo_data, bpa_ppl.diagnostics, bpa_ppl.models
stray = [name for name in ("models", "diagnostics") if importlib.util.find_spec(name)]
files = [m.__file__ for m in (bpa_ppl, bpa_ppl.demo_data, bpa_ppl.diagnostics, bpa_ppl.models)]
print(json.dumps({"files": files, "stray": stray, "version": bpa_ppl.__version__}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built from a copy: setuptools leaves things behind where it builds."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        source, target = ROOT / name, folder / "sources" / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.is_file():
            shutil.copy(source, target)
    build = ["wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(folder)]
    subprocess.run([*PIP, *build, str(folder / "sources")], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment with the wheel; dependencies are lent by ours."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    python = str(Path(paths["scripts"]) / "python")
    install = ["--python", python, "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*PIP, *install], check=True)
    ours = sysconfig.get_paths()["purelib"]
    (Path(paths["purelib"]) / "lent.pth").write_text(f"{ours}\n", encoding="utf-8")
    return Path(paths["scripts"])


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def folders_with_modules() -> set[str]:
    """Return the packages that the folders of the sources amount to."""
    found = {path.parent for path in (ROOT / "bpa_ppl").rglob("*.py")}
    packages = {".".join(folder.relative_to(ROOT).parts) for folder in found}
    mapping = PROJECT["tool"]["setuptools"]["package-dir"]
    for package, place in mapping.items():
        inside = {path.parent.relative_to(ROOT / place) for path in (ROOT / place).rglob("*.py")}
        packages |= {".".join((package, *folder.parts)) for folder in inside}
    return packages


def test_every_folder_with_modules_is_packaged() -> None:
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == folders_with_modules()


def test_nothing_but_the_package_is_at_the_top(wheel: Path) -> None:
    tops = {name.split("/")[0] for name in names_in(wheel)}
    assert tops == {"bpa_ppl", f"bpa_ppl-{PROJECT['project']['version']}.dist-info"}


def test_types_data_and_licence_are_in(wheel: Path) -> None:
    names = names_in(wheel)
    data = {f"bpa_ppl/demo_data/{path.name}" for path in (ROOT / "examples/data").glob("*.*")}
    stubs = {f"bpa_ppl/{package}__init__.pyi" for package in ("", "diagnostics/", "models/")}
    assert data | stubs | {"bpa_ppl/py.typed"} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_wheel_is_used_and_leaves_no_stray_packages(elsewhere: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [elsewhere / "python", "-I", "-c", USE],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout)
    assert [Path(f).is_relative_to(elsewhere.parent) for f in told["files"]] == [True] * 4
    assert told["stray"] == []
    assert told["version"] == PROJECT["project"]["version"]


def test_the_command_is_installed(elsewhere: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [elsewhere / "bpa", "--version"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"bpa_ppl {PROJECT['project']['version']}\n"


PINS = (".ci/constraints.txt", ".ci/constraints-others.txt")


def pinned(path: str) -> set[str]:
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    pin = re.compile(r'[A-Za-z0-9._-]+==[A-Za-z0-9.]+(; python_version (<|>=) "3.12")?')
    assert [line for line in lines if not pin.fullmatch(line)] == []
    return {_canonical(line.split("==")[0]) for line in lines}


def test_constraints_pin_every_dependency() -> None:
    project = PROJECT["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    tests, others = map(pinned, PINS)
    assert {_canonical(re.split("[<>=]", entry)[0]) for entry in wanted} <= tests
    assert tests.isdisjoint(others)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="other libraries need other ones")
def test_what_the_tests_have_pinned_is_what_they_need() -> None:
    """Set-up installs all of it without asking what needs it."""
    project = PROJECT["project"]
    extras = project["optional-dependencies"]["dev"]
    open_, needed = [Requirement(one) for one in project["dependencies"] + extras], set()
    while open_:
        one = open_.pop()
        name = _canonical(one.name)
        if name in needed or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        needed.add(name)
        for extra in ("", *one.extras):
            told = map(Requirement, requires(name) or ())
            open_ += [r for r in told if not r.marker or r.marker.evaluate({"extra": extra})]
    assert pinned(PINS[0]) <= needed
    assert needed <= set().union(*map(pinned, PINS))


def _canonical(name: str) -> str:
    return re.sub("[._-]+", "-", name).lower()
