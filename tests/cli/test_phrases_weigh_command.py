"""`bpa phrases weigh`: the table that it writes, what it says, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import run

import bpa_ppl as bpa
from bpa_ppl.phrases import PhraseCounts, read_table, write_counts


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables and corpora of words s0 … and their translations t0 …, with some errors."""
    folder, rng = tmp_path_factory.mktemp("weigh"), np.random.default_rng(4)

    def text(name: str, sentences: int, words: int) -> None:
        lines = rng.integers(words, size=(sentences, 5))
        for side in "st":
            made = [" ".join(f"{side}{n}" for n in line) for line in lines]
            (folder / f"{name}.{side}").write_text("\n".join(made) + "\n")

    def counts(name: str, pairs: int, words: int, right: float) -> None:
        source = rng.integers(words, size=pairs)
        target = np.where(rng.random(pairs) < right, source, rng.integers(words, size=pairs))
        texts = [f"s{n}" for n in source], [f"t{n}" for n in target]
        write_counts(PhraseCounts.of(*texts, np.ones(pairs)), folder / name)

    text("in", 60, 12)
    text("out", 150, 30)
    counts("in.parquet", 60, 12, 0.9)
    counts("out.parquet", 400, 30, 0.5)
    counts("dev.parquet", 80, 14, 0.9)
    return folder


def arguments(files: Path, output: Path, *more: str) -> list[str]:
    """Return a command line."""
    corpora = [[f"--{w}-corpus", f"{files}/{w}.s", f"{files}/{w}.t"] for w in ("in", "out")]
    tables = [str(files / "in.parquet"), str(files / "out.parquet")]
    dev = ["--dev", str(files / "dev.parquet"), "-o", str(output)]
    return ["phrases", "weigh", *tables, *dev, *corpora[0], *corpora[1], *more]


def test_a_table_is_written_and_the_fit_is_told(files: Path, tmp_path: Path) -> None:
    done = run(*arguments(files, tmp_path / "table.parquet"))
    assert done.code == 0, done.err
    table = read_table(tmp_path / "table.parquet")
    assert list(table.columns) == ["direct", "inverse"]
    for column, number in (("direct", table.source), ("inverse", table.target)):
        sums = np.bincount(number, table.columns[column])
        assert sums == pytest.approx(np.ones(len(sums)))
    assert "p(t|s): beta = " in done.err
    assert "in.ibm1.inverse" in done.err
    assert "of the pairs have support" in done.err


def test_a_posterior_is_written_for_each_direction(files: Path, tmp_path: Path) -> None:
    more = ["--posterior", str(tmp_path / "p"), "--form", "svm", "--mixture", "linear"]
    done = run(*arguments(files, tmp_path / "table.gz", *more))
    assert done.code == 0, done.err
    assert set(read_table(tmp_path / "table.gz").columns) == {"direct", "inverse"}
    for name in ("direct", "inverse"):
        posterior = bpa.read_posterior(tmp_path / f"p.{name}.nc")
        assert posterior["posterior"]["weights"].coords["feature"].values.tolist() == ["svm"]
        assert bpa.check(posterior)
    assert "direct sd" in done.err


def test_draws_that_fail_their_check_make_no_table(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bpa_ppl.cli.phrases._DRAWS", 20)  # too few for the check
    more = ["--posterior", str(tmp_path / "p"), "--form", "svm"]
    done = run(*arguments(files, tmp_path / "table.parquet", *more))
    assert done.code == 3
    assert "the draws of direct and inverse fail their check" in done.err
    assert not (tmp_path / "table.parquet").exists()
    done = run(*arguments(files, tmp_path / "table.parquet", *more, "--unchecked"))
    assert done.code == 0
    assert (tmp_path / "table.parquet").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--form", "best"], "unknown form of instance weighting 'best'"),
        (["--mixture", "log-linear"], "unknown mixture 'log-linear'"),
        (["--scale", "square"], "plain or log, not 'square'"),
        (["--prior-deviation", "-1"], "--prior-deviation must be a number ≥ 0"),
        (["--posterior", "p", "--form", "plain"], "--posterior needs weighted features"),
        (["--dev", "nowhere.parquet"], "nowhere.parquet"),
    ],
)
def test_bad_usage_writes_nothing(files: Path, tmp_path: Path, more: list[str], said: str) -> None:
    done = run(*arguments(files, tmp_path / "table.parquet", *more))
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_swapped_languages_are_told(files: Path, tmp_path: Path) -> None:
    swapped = ["--out-corpus", f"{files}/out.t", f"{files}/out.s"]
    done = run(*arguments(files, tmp_path / "table.parquet", *swapped))
    assert done.code == 2
    assert "are the languages in the same order" in done.err
