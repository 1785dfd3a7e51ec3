"""Each table of each benchmark, once, on few data."""

from __future__ import annotations

import gzip
import json
import lzma
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, SHARED

pytestmark = pytest.mark.slow

PATHS = sorted((ROOT / "benchmarks").glob("*.py"))
#: Scripts that print tables.
SCRIPTS = [
    path.stem
    for path in PATHS
    if "run_tables(\n" in (text := path.read_text("utf-8")) or "run_tables(__doc__" in text
]
#: Further options of scripts.
OPTIONS: dict[str, list[str]] = {}
#: Packages that are not needed by anything else.
OTHERS = "blackjax|lightgbm|mbrs|nutpie|orjson|httpx|uvicorn"


def open_text(path: Path, mode: str) -> Any:
    """Open a text file, which may be compressed."""
    opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    return opener(path, mode, encoding="utf-8")


def few_candidates(lines: Iterable[str], most: int = 5) -> Iterator[str]:
    """Yield the first candidates of each list."""
    count = Counter[str]()
    for line in lines:
        name = line.partition(" ")[0]
        count[name] += 1
        if count[name] <= most:
            yield line


def few_of_one_domain(lines: list[str], most: int = 250) -> Iterator[str]:
    """Yield the first lists of the largest domain."""
    domains = [json.loads(line).get("domain") for line in lines]
    largest = Counter(domains).most_common(1)[0][0]
    chosen = (line for line, domain in zip(lines, domains, strict=True) if domain == largest)
    return islice(chosen, most)


def few_of_each_domain(lines: list[str], most: int = 25) -> Iterator[str]:
    """Yield the first lists of each domain."""
    count = Counter[str]()
    for line in lines:
        domain = json.loads(line)["domain"]
        count[domain] += 1
        if count[domain] <= most:
            yield line


def cut(source: Path, target: Path) -> None:
    """Write the few data of a file that the benchmarks need."""
    with open_text(source, "rt") as file:
        if ".nbest" in source.name:
            lines = few_candidates(file)
        elif source.name.startswith("rewardbench"):
            lines = few_of_each_domain([*file])
        elif ".jsonl" in source.name:
            lines = few_of_one_domain([*file])
        elif ".extract" in source.name:
            lines = (line for line in file if line.startswith("u"))
        elif source.parent.name == "corpora" and not re.search("dev|test", source.name):
            lines = islice(file, 3000)
        else:
            lines = file
        target.parent.mkdir(parents=True, exist_ok=True)
        with open_text(target, "wt") as written:
            written.writelines(lines)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository beside few data."""
    folder = tmp_path_factory.mktemp("benchmarks")
    data = folder / "shared" / "data"
    for part in (
        "judged",
        "mqm",
        "phrases",
        "authored",
        "medical",
        "captions",
        "conversation",
        "out-of-domain",
    ):
        for path in (SHARED / part).rglob("*"):
            if path.is_file() and path.suffix != ".md":
                cut(path, data / path.relative_to(SHARED))
    if SHARED.is_dir():
        shutil.copy(SHARED / "moses.ini", data)
        (data / "posteriordb").mkdir()
        for path in (SHARED / "posteriordb").iterdir():
            if path.is_dir() or path.name.startswith(("arK", "eight")):
                (data / "posteriordb" / path.name).symlink_to(path)
    left_out = shutil.ignore_patterns(".*", "build", "__pycache__")
    shutil.copytree(ROOT, folder / "checkout", ignore=left_out)
    return folder / "checkout"


def rows(printed: str) -> list[str]:
    """Return the rows with a number, without headings."""
    lines = [*filter(None, printed.splitlines()), ""]
    return [
        line
        for line, following in pairwise(lines)
        if not following.startswith("|---") and re.search(r"[|: ] *[-+]?\d[\d.,]*", line)
    ]


@pytest.mark.parametrize("script", SCRIPTS)
def test_each_table_has_rows(script: str, checkout: Path) -> None:
    command = [sys.executable, str(checkout / "benchmarks" / f"{script}.py"), "--little"]
    command += OPTIONS.get(script, [])
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        for reason in (r"this benchmark needs the data in .*", rf"No module named '({OTHERS}).*"):
            if found := re.search(reason, done.stderr):
                pytest.skip(found[0])
    assert not done.returncode, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    tables = re.split(r"^## (.+)$", done.stdout, flags=re.MULTILINE)
    printed = dict(zip(tables[1::2], tables[2::2], strict=True))
    assert printed
    assert not [name for name, text in printed.items() if not rows(text)]
