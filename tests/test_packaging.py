"""The package as a wheel, as a source archive, and in a clone without installation."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import distribution, requires
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judged_lists import judged_lists, write_json_lines
from packaging.requirements import Requirement

import bpa_ppl
from bpa_ppl import compiling

ROOT = Path(__file__).resolve().parent.parent


def blocks(page: str) -> list[str]:
    """Return the blocks of Python in a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS = ("bpa_ppl", "models", "diagnostics", "examples")
DEMO_DATA = "examples/demo_data"
SOURCES = (*FOLDERS, "pyproject.toml", "LICENSE", "MANIFEST.in", "README.md")
VERSION = f"bpa_ppl {bpa_ppl.__version__}\n"
DEPENDENCIES = sysconfig.get_paths()["purelib"]
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]

USE = """
import importlib.util, json
import bpa_ppl, bpa_ppl.demo_data, bpa_ppl.diagnostics, bpa_ppl.models
stray = [name for name in ("models", "diagnostics") if importlib.util.find_spec(name)]
files = [m.__file__ for m in (bpa_ppl, bpa_ppl.demo_data, bpa_ppl.diagnostics, bpa_ppl.models)]
print(json.dumps({"files": files, "stray": stray, "path": list(bpa_ppl.__path__)}))
"""
README_EXAMPLE, *_ = blocks("README.md")
TUTORIAL = "".join(blocks("docs/tutorial.md"))
REMEDY = "install the extra {0} with pip install 'bpa_ppl[{0}]'"


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
    (folder / "tests").mkdir()
    (folder / "tests" / "test_demo.py").touch()  # setuptools archives such names by default
    return folder


@pytest.fixture(scope="module")
def unpacked(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The content of the source archive that setuptools builds from the clone."""
    folder = tmp_path_factory.mktemp("archive")
    build = f"import setuptools.build_meta as b; b.build_sdist({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=clone, check=True, capture_output=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (result,) = (folder / "unpacked").iterdir()
    return result


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that pip builds from the source archive."""
    folder = tmp_path_factory.mktemp("wheel")
    build = ["wheel", "--no-build-isolation", "--no-deps", "--no-index", "--wheel-dir", str(folder)]
    subprocess.run([*PIP, *build, str(unpacked)], check=True)
    (built,) = folder.glob("*.whl")
    return built


def canonical(name: str) -> str:
    """Return the name of a package as indexes compare it."""
    return re.sub("[._-]+", "-", name).lower()


def closure(requirements: Iterable[str]) -> set[str]:
    """Return the names of all packages that requirements lead to in this environment."""
    open_, result = list(map(Requirement, requirements)), set[str]()
    done = set[tuple[str, str]]()
    while open_:
        one = open_.pop()
        if one.marker and not one.marker.evaluate({"extra": ""}):
            continue
        for extra in {"", *one.extras}:
            key = (canonical(one.name), extra)
            if key in done:
                continue
            done.add(key)
            for text in requires(one.name) or ():
                needed = Requirement(text)
                if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                    needed.marker = None
                    open_.append(needed)
        result.add(canonical(one.name))
    return result


@pytest.fixture(scope="module")
def environment(wheel: Path) -> Iterator[Path]:
    """The scripts folder of a new environment: the wheel, and only the packages that it requires.

    These are links to the packages of this environment. The folder of the wheel is read-only, the
    path has spaces and letters outside ASCII, and all users can read it.
    """
    with tempfile.TemporaryDirectory() as parent:
        Path(parent).chmod(0o755)
        folder = Path(parent) / "été à Łódź"
        venv.create(folder, with_pip=False)
        paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
        site = Path(paths["purelib"])
        python = str(Path(paths["scripts"]) / "python")
        install = ["--python", python, "install", "--no-deps", "--no-index", str(wheel)]
        subprocess.run([*PIP, *install], check=True)
        for name in closure(PROJECT["project"]["dependencies"]):
            files = distribution(name).files or ()
            for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
                if not (site / top).exists():
                    (site / top).symlink_to(Path(DEPENDENCIES) / top)
        inside = [path for path in (site / "bpa_ppl").rglob("*") if path.is_dir()]
        folders = [site, site / "bpa_ppl", *inside]
        for one in folders:
            one.chmod(0o555)
        yield Path(paths["scripts"])
        for one in folders:
            one.chmod(0o755)


def output(*command: str | Path, **options: Any) -> str:
    """Run a command and return its standard output."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **options).stdout


def extras_in_messages(path: Path) -> set[str]:
    """Return the extras that the messages of a module name."""
    text = path.read_text("utf-8")
    if "_extra(" not in text:
        return set()
    calls = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Call)]
    named = [c for c in calls if ast.unparse(c.func) in ("missing_extra", "require_extra")]
    return {str(c.args[1].value) for c in named if isinstance(c.args[1], ast.Constant)}


def test_extras_that_messages_and_pages_name_exist() -> None:
    modules = [path for folder in FOLDERS[:3] for path in (ROOT / folder).rglob("*.py")]
    named = set().union(*map(extras_in_messages, modules))
    assert named == {"serve", "dask", "kenlm", "compare", "report", "yaml"}
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    text = "".join(path.read_text("utf-8") for path in pages)
    in_pages = re.findall(r"pip install '(?:\.|bpa_ppl)\[(\w+)\]", text)
    assert {"report", "serve"} <= set(in_pages) <= named
    assert named <= set(PROJECT["project"]["optional-dependencies"])


def test_content_of_the_source_archive(unpacked: Path) -> None:
    added = {"PKG-INFO", "bpa_ppl.egg-info", "setup.cfg"}
    assert {path.name for path in unpacked.iterdir()} == {*SOURCES, *added}


def test_content_of_the_wheel(wheel: Path, clone: Path) -> None:
    """All files of the package and of the demo's data, and no others."""
    mapping = {"bpa_ppl": "bpa_ppl", "bpa_ppl/models": "models", "bpa_ppl/demo_data": DEMO_DATA}
    mapping["bpa_ppl/diagnostics"] = "diagnostics"
    expected = {
        f"{package}/{path.relative_to(clone / folder).as_posix()}": path.read_bytes()
        for package, folder in mapping.items()
        for path in (clone / folder).rglob("*")
        if path.is_file()
    }
    info = f"bpa_ppl-{bpa_ppl.__version__}.dist-info/"
    with zipfile.ZipFile(wheel) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    assert {name: text for name, text in content.items() if not name.startswith(info)} == expected
    assert f"{info}licenses/LICENSE" in content
    kinds = {"py.typed", "__init__.pyi", "page.html", "style.css", "judge.js", "openapi.json"}
    assert kinds <= {name.rpartition("/")[2] for name in content}


def test_installed_wheel_is_importable(environment: Path, tmp_path: Path) -> None:
    used = json.loads(output(environment / "python", "-I", "-c", USE, cwd=tmp_path))
    assert [Path(f).is_relative_to(environment.parent) for f in used["files"]] == [True] * 4
    assert used["stray"] == []
    assert len(used["path"]) == 1


#: Runs commands and a program in one process, and prints the exit codes of the commands.
RUN = """
import json, sys, warnings
from bpa_ppl import BpaWarning
from bpa_ppl.__main__ import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["bpa", *words]
    try:
        main()
    except SystemExit as done:
        print("exit", done.code or 0, file=sys.stderr, flush=True)
warnings.simplefilter("ignore", BpaWarning)
exec(sys.stdin.read())
"""
COMMANDS = (
    "--version",
    "adapt lists.jsonl --weights none --gain comet -o p.nc",
    "check p.nc",
    "rerank lists.jsonl -p p.nc -o chosen",
)
PAGES = ("pages and figures need Jinja2, matplotlib and Pillow", "report")
SERVING = ("serving needs Starlette and uvicorn", "serve")
ADAPT = "adapt lists.jsonl -w none -o none.nc --gain comet"
#: Commands, and the message and the extra without which they do nothing. There are no files of the
#: name `missing`: the messages come before anything is read.
NEEDED = {
    "report missing -o page.html": PAGES,
    "compare missing -w missing -o compared": PAGES,
    "calibrate missing -w missing -o page.html": PAGES,
    "sweep missing -w missing -o swept --vary draws=100": PAGES,
    "figures missing": PAGES,
    "adapt lists.jsonl -w w.yaml -o none.nc": ("w.yaml: weights in YAML need PyYAML", "yaml"),
    "rerank missing -p missing --backend dask --scheduler tcp://localhost:1": (
        "the backend dask needs Dask",
        "dask",
    ),
    "serve missing": SERVING,
    "judge lists.jsonl -o journal": ("judging needs Starlette and uvicorn", "serve"),
    f"{ADAPT} --sampler blackjax:nuts": ("this sampler needs blackjax", "compare"),
    f"{ADAPT} --add lm=binary": ("binary ones need the Python module of KenLM", "kenlm"),
}
#: The first example of the README, after its data and before what it computes is printed.
EXAMPLE = f"""
import numpy as np

rng = np.random.default_rng(0)
X, new_X = rng.normal(size=(2, 120, 1))
y = X[:, 0] + rng.normal(size=120)
qid = new_qid = np.repeat(np.arange(40), 3)
{README_EXAMPLE}
print(np.bincount(new_qid, ranker.predict_proba(new_X, qid=new_qid)).round(6))
"""
#: Posteriors without ArviZ.
PLAIN = """
import bpa_ppl as bpa
from bpa_ppl.posterior import import_arviz

posterior = bpa.adapt(bpa.read_nbest("lists.jsonl"), None, metric="comet")
assert type(posterior).__name__ == "DataTree"
assert "arviz" not in posterior.attrs["versions"]
bpa.write_posterior(posterior, "tree.nc")
assert type(bpa.read_posterior("tree.nc")).__name__ == "DataTree"
report = bpa.check(posterior)
assert report._repr_html_() is None
assert "R-hat" in str(report)
try:
    import_arviz()
except bpa.UsageError as error:
    print(error)
"""
PRINTED = f"""{np.ones(40)}
this needs ArviZ: {REMEDY.format("report")}
"""
ENV = {"PATH": os.environ["PATH"], "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
#: Root may write everywhere; without its capabilities it is a user like others.
OWNER = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if IS_ROOT else []
NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
#: A user without an entry in the list of users, as in containers.
NAMELESS = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"]


def fails(*command: str | Path, cwd: Path) -> bool:
    return subprocess.run(command, cwd=cwd, capture_output=True, check=False).returncode != 0


@pytest.fixture
def work() -> Iterator[Path]:
    """A folder with lists, which all users can write into."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        write_json_lines(judged_lists(), folder / "lists.jsonl")
        (folder / "w.yaml").write_text("logprob: 0.5\n", "utf-8")
        (folder / "binary").write_bytes(b"mmap lm http://kheafield.com/code format version 5\n\0")
        yield folder


def check_use(python: Sequence[str | Path], work: Path, env: dict[str, str]) -> str:
    """Use an installation that has no extras, and return what it prints to standard error."""
    words = json.dumps([command.split() for command in (*COMMANDS, *NEEDED)])
    done = subprocess.run(
        [*python, "-c", RUN, words],
        cwd=work,
        env=env,
        input=EXAMPLE + PLAIN,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    codes = [int(code) for code in re.findall(r"^exit (\d+)$", done.stderr, re.MULTILINE)]
    assert codes == [0] * len(COMMANDS) + [2] * len(NEEDED), done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("error")]
    for line, (problem, extra) in zip(lines, NEEDED.values(), strict=True):
        assert f"{problem}: {REMEDY.format(extra)}" in line
    assert not (work / "none.nc").exists()
    assert len((work / "chosen").read_text("utf-8").splitlines()) == 40
    assert done.stdout.endswith(PRINTED)
    return done.stderr


@pytest.mark.skipif(os.name != "posix", reason="users and modes of files are those of POSIX")
@pytest.mark.parametrize(
    ("user", "options", "home"),
    [
        pytest.param(OWNER, ["-W", "error"], "new", id="-W error"),
        pytest.param(OWNER, ["-OO"], "new", id="-OO", marks=pytest.mark.slow),
        pytest.param(NOBODY, [], "/nonexistent", id="no cache", marks=pytest.mark.slow),
        pytest.param(NAMELESS, [], None, id="no HOME", marks=pytest.mark.slow),
    ],
)
def test_use_of_a_read_only_installation_without_extras(
    environment: Path,
    work: Path,
    tmp_path: Path,
    user: list[str],
    options: list[str],
    home: str | None,
) -> None:
    """The folder of the package cannot be written, and its path is not ASCII."""
    if user is not OWNER and not IS_ROOT:
        pytest.skip("only root can become another user")
    if user and not shutil.which("setpriv"):
        pytest.skip("without setpriv, root may write everywhere")
    python = [*user, environment / "python"]
    if fails(*python, "-c", "import numpy", cwd=work):
        pytest.skip("that user cannot run this Python")
    touch = "import bpa_ppl, pathlib; pathlib.Path(bpa_ppl.__file__).with_name('new').touch()"
    assert fails(*python, "-c", touch, cwd=work)
    env = ENV | ({} if home is None else {"HOME": str(tmp_path / home)})
    notes = check_use([*python, *options], work, env)
    assert ("nothing is cached in /nonexistent/" in notes) == (user is NOBODY)
    assert ("this user has no home folder" in notes) == (user is NAMELESS)
    assert output(*python, *options, environment / "bpa", "--version", env=env) == VERSION


@pytest.mark.slow
def test_demo_without_extras(environment: Path, tmp_path: Path) -> None:
    printed = output(*OWNER, environment / "bpa", "demo", cwd=tmp_path, env=ENV)
    assert "converged" in printed
    assert (tmp_path / "demo-output" / "translations.txt").exists()


@pytest.mark.slow
def test_installation_with_dependencies(wheel: Path, work: Path, tmp_path: Path) -> None:
    """What pip installs is enough for the demo and the first example of the README."""
    venv.create(tmp_path / "new", with_pip=False)
    scripts = Path(sysconfig.get_paths(vars={"base": str(tmp_path / "new")})["scripts"])
    subprocess.run([*PIP, "--python", str(scripts / "python"), "install", str(wheel)], check=True)
    assert fails(scripts / "python", "-c", "import arviz", cwd=tmp_path)
    assert "converged" in output(scripts / "bpa", "demo", cwd=tmp_path)
    check_use([scripts / "python"], work, ENV)


def test_clone_works_without_installation(clone: Path, tmp_path: Path) -> None:
    paths = os.pathsep.join([str(clone), DEPENDENCIES])
    options = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": paths}}
    python = (sys.executable, "-S")  # without the editable install
    used = json.loads(output(*python, "-c", USE, **options))
    assert [Path(f).is_relative_to(clone) for f in used["files"]] == [True] * 4
    assert output(*python, "-m", "bpa_ppl", "--version", **options) == VERSION


@pytest.mark.slow
def test_tutorial_runs_in_a_clone(clone: Path) -> None:
    """Python imports the clone from its working directory, not the installed package."""
    check = "\ntimed = {**again.attrs, 'sampling_time': with_text.attrs['sampling_time']}"
    check += "\nassert timed == with_text.attrs\nprint(bpa.__file__)\n"
    printed = output(sys.executable, "-", input=TUTORIAL + check, cwd=clone)
    assert "keep this package insert to reach of the person" in printed
    ter = [float(number) for number in re.findall(r"TER\D*?(\d+\.\d+)", printed)]
    assert ter[0] == pytest.approx(57.55, abs=0.005)
    assert ter[-1] == pytest.approx(54.2, abs=0.3)
    assert (clone / "adapted.json").exists()
    assert Path(printed.splitlines()[-1]).is_relative_to(clone)


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="the pinned packages are those of older Python versions"
)
def test_constraints_pin_what_the_tests_need_and_no_more() -> None:
    pins = []
    for path in (".ci/constraints.txt", ".ci/constraints-others.txt"):
        lines = (ROOT / path).read_text(encoding="utf-8").splitlines()
        pin = re.compile(r'[A-Za-z0-9._-]+==[A-Za-z0-9.]+(; python_version (<|>=) "3.1\d")?')
        assert [line for line in lines if not pin.fullmatch(line)] == []
        pins.append({canonical(line.split("==")[0]) for line in lines})
    tests, others = pins
    needed = closure(["bpa_ppl[dev]"]) - {"bpa-ppl"}
    assert tests.isdisjoint(others)
    assert tests <= needed <= tests | others


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
