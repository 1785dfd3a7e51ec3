"""The package as a wheel, as a source archive, and in a clone without installation."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import bpa_ppl
from bpa_ppl import compiling

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = ("bpa_ppl", "models", "diagnostics", "examples")
SOURCES = (*FOLDERS, "pyproject.toml", "LICENSE", "MANIFEST.in", "README.md")
VERSION = f"bpa_ppl {bpa_ppl.__version__}\n"
DEPENDENCIES = sysconfig.get_paths()["purelib"]
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]

USE = """
import importlib.util, json
import bpa_ppl, bpa_ppl.demo_data, bpa_ppl.diagnostics, bpa_ppl.models
stray = [name for name in ("models", "diagnostics") if importlib.util.find_spec(name)]
files = [m.__file__ for m in (bpa_ppl, bpa_ppl.demo_data, bpa_ppl.diagnostics, bpa_ppl.models)]
path = list(bpa_ppl.__path__)
version = bpa_ppl.__version__
print(json.dumps({"files": files, "stray": stray, "path": path, "version": version}))
"""
TUTORIAL = "".join(
    re.findall(r"```python\n(.*?)```", (ROOT / "docs/tutorial.md").read_text("utf-8"), re.DOTALL)
)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, like a git clone."""
    folder = tmp_path_factory.mktemp("clone")
    for name in SOURCES:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip builds from the clone."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ["wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(folder)]
    subprocess.run([*PIP, *build, str(clone)], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts folder of a new environment with the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    python = str(Path(paths["scripts"]) / "python")
    install = ["--python", python, "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*PIP, *install], check=True)
    # A path in a .pth file: .pth files in that path, as of an editable install, are not read.
    (Path(paths["purelib"]) / "dependencies.pth").write_text(f"{DEPENDENCIES}\n", "utf-8")
    return Path(paths["scripts"])


def output(*command: str | Path, **options: Any) -> str:
    """Run a command and return its standard output."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options).stdout


def packages_in_sources() -> set[str]:
    """Return the names of the packages in the source folders."""
    result = {path.parent for path in (ROOT / "bpa_ppl").rglob("*.py")}
    packages = {".".join(folder.relative_to(ROOT).parts) for folder in result}
    mapping = PROJECT["tool"]["setuptools"]["package-dir"]
    for package, place in mapping.items():
        inside = {path.parent.relative_to(ROOT / place) for path in (ROOT / place).rglob("*.py")}
        packages |= {".".join((package, *folder.parts)) for folder in inside}
    return packages


def test_all_packages_are_declared() -> None:
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == packages_in_sources()


def test_extras_that_messages_and_pages_name_exist() -> None:
    """The package is on no index, so nothing says that pip finds an extra there."""
    sources = [*ROOT.glob("bpa_ppl/**/*.py"), *ROOT.glob("docs/**/*.md"), ROOT / "README.md"]
    text = "".join(path.read_text("utf-8") for path in sources)
    in_messages = re.findall(r'missing_extra\([^)]*?"(\w+)"(?:, "\w+")?\)', text)
    named = {*in_messages, *re.findall(r"pip install '\.\[(\w+)\]", text)}
    assert named == {"serve", "dask", "embed", "kenlm", "compare"}
    assert named <= set(PROJECT["project"]["optional-dependencies"])
    assert not re.search(r"bpa_ppl\[\w", text)


def test_content_of_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.split("/")[0] for name in names}
    assert tops == {"bpa_ppl", f"bpa_ppl-{bpa_ppl.__version__}.dist-info"}
    data = {f"bpa_ppl/demo_data/{path.name}" for path in (ROOT / "examples/demo_data").glob("*.*")}
    stubs = {
        f"bpa_ppl/{package}__init__.pyi"
        for package in ("", "decoding/", "diagnostics/", "features/", "models/")
    }
    assert data | stubs | {"bpa_ppl/py.typed"} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


@pytest.mark.slow
def test_a_source_archive_has_the_package_and_no_tests(clone: Path, tmp_path: Path) -> None:
    source = shutil.copytree(clone, tmp_path / "source")
    (source / "tests").mkdir()
    (source / "tests" / "test_demo.py").touch()  # setuptools adds files of such names by default
    build = f"import setuptools.build_meta as b; b.build_sdist({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=source, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    sources = [path for folder in FOLDERS[:3] for path in (clone / folder).rglob("*.py")]
    assert {str(path.relative_to(clone)) for path in sources} <= names
    assert not [name for name in names if name.startswith("tests")]


def test_installed_wheel_is_importable(environment: Path, tmp_path: Path) -> None:
    used = json.loads(output(environment / "python", "-I", "-c", USE, cwd=tmp_path))
    assert [Path(f).is_relative_to(environment.parent) for f in used["files"]] == [True] * 4
    assert used["stray"] == []
    assert len(used["path"]) == 1
    assert output(environment / "bpa", "--version", cwd=tmp_path) == VERSION


def test_clone_works_without_installation(clone: Path, tmp_path: Path) -> None:
    paths = os.pathsep.join([str(clone), DEPENDENCIES])
    options = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": paths}}
    python = (sys.executable, "-S")  # without the editable install
    used = json.loads(output(*python, "-c", USE, **options))
    assert [Path(f).is_relative_to(clone) for f in used["files"]] == [True] * 4
    assert used["version"] == bpa_ppl.__version__
    assert output(*python, "-m", "bpa_ppl", "--version", **options) == VERSION


@pytest.mark.slow
def test_tutorial_runs_in_a_clone(environment: Path, clone: Path) -> None:
    """Python imports the clone from its working directory, not the installed wheel."""
    check = "\ntimed = {**again.attrs, 'sampling_time': with_text.attrs['sampling_time']}"
    check += "\nassert timed == with_text.attrs\nprint(bpa.__file__)\n"
    printed = output(environment / "python", "-", input=TUTORIAL + check, cwd=clone)
    assert "keep this package insert to reach of the person" in printed
    ter = [float(number) for number in re.findall(r"TER\D*?(\d+\.\d+)", printed)]
    assert ter[0] == pytest.approx(57.55, abs=0.005)
    assert ter[-1] == pytest.approx(54.2, abs=0.3)
    assert (clone / "adapted.json").exists()
    assert Path(printed.splitlines()[-1]).is_relative_to(clone)


PINS = (".ci/constraints.txt", ".ci/constraints-others.txt")


def pinned_names(path: str) -> set[str]:
    lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
    pin = re.compile(r'[A-Za-z0-9._-]+==[A-Za-z0-9.]+(; python_version (<|>=) "3.12")?')
    assert [line for line in lines if not pin.fullmatch(line)] == []
    return {_canonical(line.split("==")[0]) for line in lines}


def test_constraints_pin_every_dependency() -> None:
    project = PROJECT["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["dev"]
    tests, others = map(pinned_names, PINS)
    assert {_canonical(re.split("[<>=]", entry)[0]) for entry in wanted} <= tests
    assert tests.isdisjoint(others)


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="the pinned packages are those of older Python versions"
)
def test_pinned_packages_are_required() -> None:
    """The constraints list only packages that the tests need."""
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
            requirements = map(Requirement, requires(name) or ())
            open_ += [
                r for r in requirements if not r.marker or r.marker.evaluate({"extra": extra})
            ]
    assert pinned_names(PINS[0]) <= needed
    assert needed <= set().union(*map(pinned_names, PINS))


def _canonical(name: str) -> str:
    return re.sub("[._-]+", "-", name).lower()


def test_code_is_compiled_where_no_folder_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    njit = compiling.njit

    def refused(**options: Any) -> Any:
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**options)

    monkeypatch.setattr(compiling, "njit", refused)
    with pytest.warns(bpa_ppl.BpaWarning, match="NUMBA_CACHE_DIR") as notes:
        assert [compiling.compiled(function)(2) for function in (_increment, _double)] == [3, 4]
    assert len(notes) == 1


def _increment(value: int) -> int:
    return value + 1


def _double(value: int) -> int:
    return 2 * value
