"""The package as a wheel and as a source archive."""

from __future__ import annotations

import gzip
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
from contextlib import contextmanager
from importlib.metadata import distribution, requires
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from support.judged_lists import judged_lists, write_json_lines
from support.posteriors import arviz_version, name_weights
from support.user_files import compress_zstd

import bpa_ppl

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DATA = "examples/demo_data"
SOURCES = ("bpa_ppl", "models", "diagnostics", "examples", "pyproject.toml", "LICENSE")
SOURCES += ("MANIFEST.in", "README.md")
DEPENDENCIES = sysconfig.get_paths()["purelib"]
SMALL = [
    line
    for line in (ROOT / "examples/requirements-serve.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
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


@contextmanager
def new_environment(wheel: Path, folder: Path, requirements: Iterable[str]) -> Iterator[Path]:
    """Make an environment of the wheel and of packages, and provide its folder of scripts.

    These are links to the packages of this environment. The folder of the wheel is read-only.
    """
    venv.create(folder, with_pip=False)
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    site, scripts = Path(paths["purelib"]), Path(paths["scripts"])
    install = ["install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*PIP, "--python", str(scripts / "python"), *install], check=True)
    for name in closure(requirements):
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


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment of the packages that the wheel requires.

    Its path has spaces and letters outside ASCII.
    """
    folder = tmp_path_factory.mktemp("new") / "été à Łódź"
    with new_environment(wheel, folder, PROJECT["dependencies"]) as scripts:
        yield scripts


@pytest.fixture(scope="module")
def small_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment of the packages in `examples/requirements-serve.txt` alone."""
    folder = tmp_path_factory.mktemp("small") / "venv"
    with new_environment(wheel, folder, SMALL) as scripts:
        yield scripts


def test_content_of_the_source_archive(unpacked: Path) -> None:
    added = {"PKG-INFO", "bpa_ppl.egg-info", "setup.cfg"}
    assert {path.name for path in unpacked.iterdir()} == {*SOURCES, *added}


@pytest.mark.slow
@pytest.mark.needs_extras
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
    kinds = {"py.typed", "page.html", "style.css", "judge.js"}
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
    "rerank lists.jsonl -p p.nc -o chosen",
    "demo --files -o .",
)
ADAPT = "adapt lists.jsonl -w none -o none.nc --gain comet"
#: Commands, and the message and the extra without which they stop, before anything is read.
NEEDED = {
    "judge lists.jsonl -o journal": ("judging needs Starlette and uvicorn", "judge"),
    f"{ADAPT} --scheduler tcp://127.0.0.1:8786": ("a scheduler needs Dask", "cluster"),
    f"{ADAPT} --sampler blackjax:nuts": ("this sampler needs blackjax", "compare"),
}
REMEDY = "install the extra {0} with pip install 'bpa_ppl[{0}]'"
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
(README_EXAMPLE,) = [block for block in BLOCKS if "BayesianRanker" in block]
#: The example of judges of the README, and a posterior as ArviZ's data.
PROGRAM = f"""
import numpy as np
import bpa_ppl as bpa
from bpa_ppl.posterior.arviz_functions import import_arviz
from bpa_ppl.weight_draws import name_weights

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


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="modes of files are those of POSIX")
@pytest.mark.skipif(IS_ROOT and not shutil.which("setpriv"), reason="needs setpriv")
@pytest.mark.parametrize(  # arviz-stats needs its docstrings, which -OO removes
    "options", [["-W", "error"], ["-O"]], ids=" ".join
)
@pytest.mark.needs_extras
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
    written = "compared/index.html", "page.html", "trace.png"
    assert all((tmp_path / name).is_file() for name in written)
    assert len((tmp_path / "chosen").read_text("utf-8").splitlines()) == 40
    assert done.stdout.startswith(f"bpa_ppl {bpa_ppl.__version__}\n")
    assert done.stdout.endswith(PRINTED)


def test_the_small_installation_requires_what_the_project_does_and_nothing_large() -> None:
    assert set(SMALL) <= {*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["judge"]}
    left_out = {canonicalize_name(Requirement(one).name) for one in PROJECT["dependencies"]}
    left_out -= {canonicalize_name(Requirement(one).name) for one in SMALL}
    left_out |= {"jaxlib", "llvmlite", "pandas"}
    assert {"jax", "numba", "matplotlib", "scipy", "pyarrow", "arviz"} <= left_out
    assert closure(SMALL).isdisjoint(left_out)


#: Commands of the small installation, and those that need another package.
SMALL_COMMANDS = (
    "check p.nc",
    "rerank lists.jsonl.gz -p p.nc -o chosen",
    "rerank long.nbest -p p.nc -o long --details d.tsv",
    "weights p.nc -o w.json",
    "lists lists.jsonl",
)
OTHER_COMMANDS = (
    "adapt lists.jsonl -w none --gain comet -o none.nc",
    "check unchecked.nc",
    "rerank lists.jsonl -p unchecked.nc -o none",
    "report unchecked.nc -o none.html",
    "trace unchecked.nc -o none.png",
    "rerank lists.csv -p p.nc -o none",
    "rerank lists.jsonl.zst -p p.nc -o none",
)
FULL = r"needs the full installation, with the package \w+: pip install bpa_ppl"
SMALL_PROGRAM = """
import numpy as np
import bpa_ppl as bpa
reranker = bpa.Reranker("p.nc")
print(reranker.choose(["a", "b"], {"logprob": [0.0, 9.0]}).text)
print(reranker(bpa.read_nbest("lists.jsonl")).texts[0])
for call in (lambda: bpa.adapt, lambda: bpa.BayesianRanker, lambda: bpa.Reranker("unchecked.nc")):
    try:
        call()
    except ImportError as error:
        print(error)
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the adapted weights are worse:bpa_ppl.errors.BpaWarning")
@pytest.mark.needs_extras
def test_choosing_in_the_small_installation(small_environment: Path, tmp_path: Path) -> None:
    lists = judged_lists().without("comet")
    write_json_lines(lists, tmp_path / "lists.jsonl")
    content = (tmp_path / "lists.jsonl").read_bytes()
    (tmp_path / "lists.jsonl.gz").write_bytes(gzip.compress(content))
    (tmp_path / "lists.jsonl.zst").write_bytes(compress_zstd(content))
    (tmp_path / "lists.csv").write_text("id,text,logprob\n0,a,1\n", "utf-8")
    row = "||| a cat ||| logprob= {} ||| 0\n"  # more than PyArrow is loaded for
    rows = [f"{k // 2} {row.format(k % 7)}" for k in range(40_000)]
    (tmp_path / "long.nbest").write_text("".join(rows), "utf-8")
    adapted = bpa_ppl.adapt(judged_lists(), None, gain="comet", sampler="map")
    assert bpa_ppl.check(adapted)
    drawn = np.random.default_rng(0).normal(1.0, 0.1, size=(4, 500, 1))
    new = name_weights(drawn, ("logprob",))
    bpa_ppl.write_posterior(adapted, tmp_path / "p.nc")
    bpa_ppl.write_posterior(new, tmp_path / "unchecked.nc")
    words = json.dumps([command.split() for command in (*SMALL_COMMANDS, *OTHER_COMMANDS)])
    env = {name: os.environ[name] for name in KEPT if name in os.environ}
    options: dict[str, Any] = {"cwd": tmp_path, "env": env, "encoding": "utf-8"}
    python = [small_environment / "python", "-W", "error"]
    line = [*python, "-c", RUN, words]
    done = subprocess.run(line, input=SMALL_PROGRAM, capture_output=True, check=True, **options)
    codes = [int(code) for code in re.findall(r"^exit (\d+)$", done.stderr, re.MULTILINE)]
    assert codes == [0] * len(SMALL_COMMANDS) + [2] * len(OTHER_COMMANDS), done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error")]
    for command, error in zip(OTHER_COMMANDS, errors, strict=True):
        assert re.fullmatch(f"error: bpa {command.split()[0]} {FULL}", error)
    assert not [*tmp_path.glob("none*")]
    expected = bpa_ppl.rerank(lists, adapted).texts
    chosen = (tmp_path / "chosen").read_text("utf-8").splitlines()
    assert chosen == expected
    assert len((tmp_path / "long").read_text("utf-8").splitlines()) == 20_000
    *_, one, first, adapt, ranker, unchecked = done.stdout.splitlines()
    assert (one, first) == ("a", expected[0])  # the weight is negative
    for what, line in (("adapt", adapt), ("BayesianRanker", ranker), ("checking .*", unchecked)):
        assert re.fullmatch(f"{what} {FULL}", line)


def test_the_source_folder_alone_is_refused(clone: Path) -> None:
    # -S: without the packages that are installed.
    command = [sys.executable, "-S", "-c", "import bpa_ppl"]
    found = subprocess.run(command, cwd=clone, capture_output=True, text=True)
    last = found.stderr.splitlines()[-1]
    assert last.startswith("ImportError: Python found the source folder of bpa_ppl")
    assert "pip install --editable ." in last


def test_installations_that_messages_and_pages_name() -> None:
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    text = "".join(path.read_text("utf-8") for path in pages)
    named = {extra for _, extra in NEEDED.values()}
    installed = re.findall(r"pip install ((?:\S+ )*)'?(\.|bpa_ppl)(?:\[(\w+)\])?(?![\w/])", text)
    named |= {extra for _, _, extra in installed if extra}
    assert named <= PROJECT["optional-dependencies"].keys()
    # Otherwise Python does not start in the clone.
    assert all("-e" in options for options, package, _ in installed if package == ".")


def test_each_required_package_has_its_reason() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = text.partition("### Required packages\n")[2].partition("\n#")[0]
    names = re.findall(r"^\| `([\w-]+)` \|", table, re.M)
    assert names == [Requirement(one).name for one in PROJECT["dependencies"]]


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
