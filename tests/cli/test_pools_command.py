"""`bpa adapt` with several files of lists: what one file of all of them gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import run

import bpa_ppl
from bpa_ppl.posterior import as_draws

OPTIONS = ("-w", "moses.ini", "--sampler", "map", "-q", "-o")


def divide(name: str, first: int, prefix: str) -> None:
    """Cut a file in two: its first lines or lists, and the rest."""
    lines = Path(name).read_text("utf-8").splitlines(keepends=True)
    of = [int(line.split(" ||| ")[0]) if " ||| " in line else n for n, line in enumerate(lines)]
    for part, inside in enumerate([lambda n: n < first, lambda n: n >= first]):
        kept = [line for n, line in zip(of, lines, strict=True) if inside(n)]
        Path(f"{prefix}{part}").write_text("".join(kept), "utf-8")


def weights(path: str) -> np.ndarray:
    return as_draws(bpa_ppl.read_posterior(path)).values["weights"]


@pytest.fixture
def pools(folder: Path) -> Path:
    """The lists in two files, `n0` and `n1`, with ids of their own, and `r0` and `r1`."""
    divide("nbest", 5, "n")
    divide("ref", 5, "r")
    rest = Path("n1").read_text("utf-8").splitlines(keepends=True)
    split = [line.partition(" ||| ") for line in rest]
    Path("n1").write_text("".join(f"{int(n) - 5}{mark}{end}" for n, mark, end in split), "utf-8")
    return folder


def test_several_files_are_as_one(pools: Path) -> None:
    assert run("adapt", "nbest", "-r", "ref", *OPTIONS, "whole.nc").code == 0
    done = run("adapt", "n0", "n1", "-r", "r0,r1", *OPTIONS, "parts.nc")
    assert done.code == 0
    np.testing.assert_array_equal(weights("parts.nc"), weights("whole.nc"))
    assert run("adapt", "n0", "-r", "r0", *OPTIONS, "part.nc").code == 0
    assert np.abs(weights("part.nc") - weights("whole.nc")).max() > 1e-3


def test_several_references_and_sources_of_each(pools: Path) -> None:
    Path("other0").write_text(Path("r0").read_text("utf-8").replace("the", "a"), "utf-8")
    Path("other1").write_text(Path("r1").read_text("utf-8").replace("the", "a"), "utf-8")
    Path("other").write_text("".join(Path(f"other{n}").read_text("utf-8") for n in "01"), "utf-8")
    add = ("--add", "length:ratio=true")
    one = ("-r", "ref", "-r", "other", "-s", "ref", *add)
    assert run("adapt", "nbest", *one, *OPTIONS, "whole.nc").code == 0
    two = ("-r", "r0,r1", "-r", "other0,other1", "-s", "r0,r1", *add)
    assert run("adapt", "n0", "n1", *two, *OPTIONS, "parts.nc").code == 0
    np.testing.assert_array_equal(weights("parts.nc"), weights("whole.nc"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("n0", "n1", "-r", "ref"), "2 files of n-best lists need as many files of references"),
        (("n0", "n1", "-r", "r0,r1", "-s", "r0"), "need as many files of sources, separated by"),
        (("n0", "n1", "-r", "r0,r1,ref"), "separated by commas in the same order, not r0,r1,ref"),
        (("n0", "n1", "-r", "r1,r0"), "r1"),
        (("n0", "none", "-r", "r0,r1"), "none: no such file"),
        (("n0", "fewer", "-r", "r0,r1"), "LM0"),
        (("n0", "n1"), "(--references)"),
    ],
)
def test_what_does_not_go_together(pools: Path, arguments: tuple[str, ...], message: str) -> None:
    text = Path("n1").read_text("utf-8")
    Path("fewer").write_text(text.replace("LM0=", "LM1="), "utf-8")
    done = run("adapt", *arguments, *OPTIONS, "parts.nc")
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert not Path("parts.nc").exists()
