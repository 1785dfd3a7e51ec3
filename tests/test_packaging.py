"""The package as a wheel and as a source archive."""

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
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution, requires
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.judged_lists import judged_lists, write_json_lines

import bpa_ppl
from bpa_ppl.posterior.arviz_functions import arviz_version

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DATA = "examples/demo_data"
SOURCES = ("bpa_ppl", "models", "diagnostics", "examples", "pyproject.toml", "LICENSE")
SOURCES += ("MANIFEST.in", "README.md")
DEPENDENCIES = sysconfig.get_paths()["purelib"]
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


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


def closure(requirements: Iterable[str]) -> set[str]:
    """Return the names of all packages that requirements lead to in this environment."""
    found = set[tuple[str, str]]()

    def add(text: str, extra_of_parent: str = "") -> None:
        one = Requirement(text)
        if one.marker is None or one.marker.evaluate({"extra": extra_of_parent}):
            for key in {(canonicalize_name(one.name), extra) for extra in ("", *one.extras)}:
                if key not in found:
                    found.add(key)
                    for needed in requires(one.name) or ():
                        add(needed, key[1])

    for text in requirements:
        add(text)
    return {name for name, _ in found}


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The scripts folder of a new environment: the wheel, and only the packages that it requires.

    These are links to the packages of this environment. The folder of the wheel is read-only, and
    the path has spaces and letters outside ASCII.
    """
    folder = tmp_path_factory.mktemp("new") / "été à Łódź"
    venv.create(folder, with_pip=False)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    site, scripts = Path(paths["purelib"]), Path(paths["scripts"])
    install = ["install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*PIP, "--python", str(scripts / "python"), *install], check=True)
    for name in closure(PROJECT["dependencies"]):
        files = distribution(name).files or ()
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(DEPENDENCIES) / top)
    inside = [path for path in (site / "bpa_ppl").rglob("*") if path.is_dir()]
    for one in (folders := [site, site / "bpa_ppl", *inside]):
        one.chmod(0o555)
    yield scripts
    for one in folders:
        one.chmod(0o755)


def test_content_of_the_source_archive(unpacked: Path) -> None:
    added = {"PKG-INFO", "bpa_ppl.egg-info", "setup.cfg"}
    assert {path.name for path in unpacked.iterdir()} == {*SOURCES, *added}


def test_content_of_the_wheel(wheel: Path, clone: Path) -> None:
    """All files of the package and of the demo's data, and no others."""
    mapping = {"bpa_ppl": "bpa_ppl", "bpa_ppl/models": "models", "bpa_ppl/demo_data": DATA}
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
    kinds = {"py.typed", "page.html", "style.css", "judge.js", "openapi.json"}
    assert kinds <= {name.rpartition("/")[2] for name in content}


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
    "adapt lists.jsonl --weights none --gain comet --seed 1 -o q.nc",
    "check p.nc",
    "compare p.nc q.nc -o compared",
    "trace p.nc -o trace.png",
    "report p.nc -o page.html",
    "sweep lists.jsonl -w none --gain comet -o swept --sampler laplace --vary draws=100",
    "rerank lists.jsonl -p p.nc -o chosen",
    "demo --files -o .",
)
SERVING = ("serving needs Starlette and uvicorn", "serve")
ADAPT = "adapt lists.jsonl -w none -o none.nc --gain comet"
#: Commands, and the message and the extra without which they stop, before anything is read.
NEEDED = {
    "serve missing": SERVING,
    "judge lists.jsonl -o journal": ("judging needs Starlette and uvicorn", "serve"),
    f"{ADAPT} --sampler blackjax:nuts": ("this sampler needs blackjax", "compare"),
}
REMEDY = "install the extra {0} with pip install 'bpa_ppl[{0}]'"
README_EXAMPLE = (ROOT / "README.md").read_text("utf-8").split("```python\n")[3].split("```")[0]
#: The example of judges of the README, and a posterior as ArviZ's data.
PROGRAM = f"""
import numpy as np
import bpa_ppl as bpa
from bpa_ppl.posterior.arviz_functions import import_arviz

{README_EXAMPLE}
print(np.bincount(new["id"], ranker.predict_proba(new[judges], qid=new["id"])).round(6))

posterior = bpa.adapt(bpa.read_nbest("lists.jsonl"), None, gain="comet")
bpa.write_posterior(posterior, "tree.nc")
print(type(posterior).__name__, type(bpa.read_posterior("tree.nc")).__name__)
report = bpa.check(posterior)
print("R-hat" in str(report), "R-hat" in report._repr_html_())
print(import_arviz().rhat(posterior)["weights"].size > 0)
"""
KIND = "DataTree" if arviz_version() >= 1 else "InferenceData"
PRINTED = f"""{np.ones(200)}
{KIND} {KIND}
True True
True
"""
#: Root may write everywhere; without its capabilities it is a user like others.
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
#: Variables that the process has: where programs are, and what makes tests fast.
KEPT = ("PATH", "JAX_DISABLE_MOST_OPTIMIZATIONS", "OPENBLAS_NUM_THREADS", "XLA_FLAGS")
USER = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if IS_ROOT else []


@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
@pytest.mark.skipif(IS_ROOT and not shutil.which("setpriv"), reason="needs setpriv")
@pytest.mark.parametrize(  # arviz-stats needs its docstrings, which -OO removes
    "options", [["-W", "error"], pytest.param(["-O"], marks=pytest.mark.slow)], ids=" ".join
)
def test_use_of_a_read_only_installation_without_extras(
    environment: Path, tmp_path: Path, options: list[str]
) -> None:
    write_json_lines(judged_lists(), tmp_path / "lists.jsonl")
    words = json.dumps([command.split() for command in (*COMMANDS, *NEEDED)])
    done = subprocess.run(
        [*USER, environment / "python", *options, "-c", RUN, words],
        cwd=tmp_path,
        env={name: os.environ[name] for name in KEPT if name in os.environ}
        | {"HOME": str(tmp_path / "home")},
        input=PROGRAM,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    codes = [int(code) for code in re.findall(r"^exit (\d+)$", done.stderr, re.MULTILINE)]
    assert codes == [0] * len(COMMANDS) + [2] * len(NEEDED), done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("error")]
    for line, (problem, extra) in zip(lines, NEEDED.values(), strict=True):
        assert f"{problem}: {REMEDY.format(extra)}" in line
    assert not (tmp_path / "none.nc").exists()
    written = "compared/index.html", "page.html", "swept/sweep.csv", "trace.png"
    assert all((tmp_path / name).is_file() for name in written)
    assert len((tmp_path / "chosen").read_text("utf-8").splitlines()) == 40
    assert done.stdout.startswith(f"bpa_ppl {bpa_ppl.__version__}\n")
    assert done.stdout.endswith(PRINTED)


def test_the_source_folder_alone_is_refused(clone: Path) -> None:
    # -S: without the packages that are installed.
    command = [sys.executable, "-S", "-c", "import bpa_ppl"]
    found = subprocess.run(command, cwd=clone, capture_output=True, text=True)
    last = found.stderr.splitlines()[-1]
    assert last.startswith("ImportError: Python found the source folder of bpa_ppl")
    assert "pip install --editable ." in last


def test_extras_that_messages_and_pages_name_exist() -> None:
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    text = "".join(path.read_text("utf-8") for path in pages)
    named = {extra for _, extra in NEEDED.values()}
    named |= set(re.findall(r"pip install '(?:\.|bpa_ppl)\[(\w+)\]", text))
    assert named <= PROJECT["optional-dependencies"].keys()


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="the pinned packages are those of older Python versions"
)
def test_constraints_pin_what_the_tests_need_and_no_more() -> None:
    pins = []
    for path in (".ci/constraints.txt", ".ci/constraints-others.txt"):
        listed = list(map(Requirement, (ROOT / path).read_text("utf-8").splitlines()))
        assert [one for one in listed if not str(one.specifier).startswith("==")] == []
        pins.append({canonicalize_name(one.name) for one in listed})
    tests, others = pins
    needed = closure(["bpa_ppl[dev]"]) - {"bpa-ppl"}
    assert tests.isdisjoint(others)
    assert tests <= needed <= tests | others
