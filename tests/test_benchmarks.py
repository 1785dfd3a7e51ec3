"""Each table of each script of `benchmarks/` once, with few lists and the options of `--little`."""

from __future__ import annotations

import gzip
import json
import lzma
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

import pytest
from support.pages import ROOT

pytestmark = pytest.mark.slow

SHARED = ROOT.parent / "shared" / "data"

#: The scripts that print tables: each calls `run_tables` with all of its tables.
SCRIPTS = [
    path.stem
    for path in sorted((ROOT / "benchmarks").glob("*.py"))
    if re.search(r"^ +run_tables\(", path.read_text("utf-8"), re.MULTILINE)
]
#: Further options.
OPTIONS = {
    "bench_checks": "--programs schools",
    "bench_gallery": "--programs linear --draws 100",
    "bench_instance_weighting": "--rows in selection concatenated 'lm + iw map-known' 'map tm' "
    "'iw linear-known, weighted'",
    "bench_invariance": "--k 3 --pairs 3000",
    "bench_judge_page": "--lists 100",
    "bench_judged": "--collections six,consensus,summaries,preferences",
    "bench_latency": "--draws 4000",
    "bench_learned_priors": "--features 20",
    "bench_numpyro_models": "--programs banana",
    "bench_published": "--methods canonical published vit-2010 map --sweeps delta walk",
    "bench_scale": "--lists 20 --sizes 25000x5",
    "bench_subdomains": "--statutes {shared}",
    "bench_targets": "--samplers imh,rwm",
    "bench_updates": "--collections medical judged --kept 100",
}
#: A row with a number: of a Markdown table below its heading, or a name with numbers behind it.
ROW = re.compile(
    r"^\|---.*\n(\|.*\n)*\|[^|]*\|.*\d|^[^|\n]*( {2,}.*\d|: \d+ of \d+ )", re.MULTILINE
)
#: Packages that only some benchmarks import.
OTHERS = "blackjax|httpx|nutpie|orjson|uvicorn"
FOLDERS = ("authored", "captions", "conversation", "judged", "medical", "mqm")
FOLDERS = (*FOLDERS, "out-of-domain", "phrases")


def few(name: str, lines: Iterable[str]) -> Iterable[str]:
    """Return the lines of a file that a trial needs."""
    if ".nbest" in name:
        lists = groupby(lines, lambda line: line.partition(" ")[0])
        return chain.from_iterable(islice(of_list, 5) for _, of_list in lists)
    if ".jsonl" in name:
        lines = [*lines]
        domains = [json.loads(line).get("domain") for line in lines]
        most = {Counter(domains).most_common(1)[0][0]: 250}
        if "rewardbench" in name:
            most = dict.fromkeys(domains, 25)
        pairs = [*zip(lines, domains, strict=True)]
        parts = (islice((line for line, of in pairs if of == one), n) for one, n in most.items())
        return [line for part in parts for line in part]
    if ".extract" in name:  # phrases that begin in the same way in all files
        return (line for line in lines if line.startswith("u"))
    return islice(lines, 3000)


def open_text(path: Path, mode: str) -> Any:
    """Open a text file, which may be compressed."""
    opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    return opener(path, mode, encoding="utf-8")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository, next to a part of the data if there are any."""
    folder = tmp_path_factory.mktemp("benchmarks")
    left_out = shutil.ignore_patterns(".*", "build", "__pycache__")
    shutil.copytree(ROOT, folder / "checkout", ignore=left_out)
    if not SHARED.is_dir():
        return folder / "checkout"
    data = folder / "shared" / "data"
    for path in chain.from_iterable((SHARED / name).rglob("*.*") for name in FOLDERS):
        target = data / path.relative_to(SHARED)
        target.parent.mkdir(parents=True, exist_ok=True)
        if "marginals" in path.name:
            target.symlink_to(path)
            continue
        with open_text(path, "rt") as file, open_text(target, "wt") as written:
            written.writelines(few(path.name, file))
    shutil.copy(SHARED / "moses.ini", data)
    (data / "tools").symlink_to(SHARED / "tools")
    (data / "posteriordb").mkdir()
    for name in ("data", "arK-arK.json.zip", "eight_schools-eight_schools_noncentered.json.zip"):
        (data / "posteriordb" / name).symlink_to(SHARED / "posteriordb" / name)
    with lzma.open(data / "phrases/corpora/out.en.xz", "rt", encoding="utf-8") as file:
        (folder / "shared" / "act.xml").write_text("".join(islice(file, 1500)), "utf-8")
    return folder / "checkout"


@pytest.fixture
def whole_corpora(checkout: Path) -> Iterator[None]:
    """All lines of the corpora, since lists are segmented by phrases of the general corpus."""
    corpora = checkout.parent / "shared" / "data" / "phrases" / "corpora"
    if not corpora.is_dir():
        yield
        return
    few_lines = corpora.rename(corpora.with_name("few_lines"))
    corpora.symlink_to(SHARED / "phrases" / "corpora")
    yield
    corpora.unlink()
    few_lines.rename(corpora)


def test_each_script_is_quoted_by_the_page_that_contributing_names() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rows = re.findall(r"^\| `(bench_\w+)\.py` \| (.*) \| .* \|$", text, re.MULTILINE)
    assert [script for script, _ in rows] == SCRIPTS
    for script, pages in rows:
        for page in re.findall(r"\((.*?)\)", pages):
            assert script in (ROOT / page).read_text("utf-8"), (script, page)


@pytest.mark.parametrize("script", SCRIPTS)
def test_each_table_has_rows(script: str, checkout: Path, request: pytest.FixtureRequest) -> None:
    if script == "bench_invariance":
        request.getfixturevalue("whole_corpora")
    command = [sys.executable, str(checkout / "benchmarks" / f"{script}.py"), "--little"]
    command += shlex.split(OPTIONS.get(script, "").format(shared=checkout.parent / "shared"))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    missing = rf"this benchmark needs the data in .*|No module named '({OTHERS})'"
    if done.returncode and (found := re.search(missing, done.stderr)):
        pytest.skip(found[0])
    assert not done.returncode, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    _, *tables = re.split(r"^## (.*)$", done.stdout, flags=re.MULTILINE)
    printed = dict(zip(tables[::2], tables[1::2], strict=True))
    assert printed
    assert not [name for name, text in printed.items() if not ROW.search(text)]
