"""The examples run, from anywhere, and say what they promise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bpa_ppl import check, read_posterior

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all examples, and not the user's."""
    return tmp_path_factory.mktemp("cache")


def output(name: str, folder: Path, cache: Path) -> str:
    """Run an example in an empty folder, and return what it prints."""
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name],
        cwd=folder,
        env={**os.environ, "BPA_PPL_CACHE": str(cache)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_a_test() -> None:
    assert [path.name for path in EXAMPLES] == [
        "compare_samplers.py",
        "inspect_posterior.py",
        "predictive_decoding.py",
    ]


def test_compare_samplers(tmp_path: Path, cache: Path) -> None:
    told = output("compare_samplers.py", tmp_path, cache)
    rows = {line.split()[0]: line for line in told.splitlines()[1:] if line[0] != " "}
    assert list(rows) == ["imh", "rwm", "heuristic"]
    means = {name: [float(word) for word in row.split()[-2:]] for name, row in rows.items()}
    # The exact ones agree; the heuristic one does not.
    assert means["rwm"] == pytest.approx(means["imh"], abs=0.05)
    assert abs(means["heuristic"][0] - means["imh"][0]) > 0.2
    assert list(tmp_path.iterdir()) == []


def test_inspect_posterior(tmp_path: Path, cache: Path) -> None:
    told = output("inspect_posterior.py", tmp_path, cache)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["posterior.nc", "report.html"]
    assert told.startswith(str(check(read_posterior(tmp_path / "posterior.nc"))))
    assert "Converged" in (tmp_path / "report.html").read_text("utf-8")


def test_predictive_decoding(tmp_path: Path, cache: Path) -> None:
    told = output("predictive_decoding.py", tmp_path, cache)
    lines = [line.split() for line in told.splitlines()]
    changes = [float(words[-1]) for words in lines if words[:1] == ["TER"]]
    assert len(changes) == 3
    assert all(change < 0 for change in changes)
    assert told.splitlines()[-1].startswith("  reference  ")
    assert list(tmp_path.iterdir()) == []
