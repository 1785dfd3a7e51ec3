"""Features of text on the command line: added, recorded, remade, refused, and what they gave."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import run

from bpa_ppl import as_draws, read_nbest, read_posterior

ADAPT = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "--sampler", "map")


@pytest.fixture
def texts(folder: Path) -> Path:
    """The folder, with a text of the domain and sources."""
    Path("domain.txt").write_text("read this leaflet .\ntake the tablet with water .\n" * 5)
    Path("src").write_text("".join(f"une phrase {n}\n" for n in range(12)))
    return folder


def test_features_from_text_improve_translations(texts: Path) -> None:
    done = run(*ADAPT, "--add", "lm=domain.txt,order=2", "-o", "p.nc")
    assert done.code == 0
    assert (
        "no canonical weight for lm, lm.oov: the prior has mean 0 and standard deviation"
        in done.err
    )
    draws = as_draws(read_posterior("p.nc"))
    assert draws.features[-2:] == ("lm", "lm.oov")
    (record,) = draws.attrs["feature_sources"]
    assert record["text"] == str(texts / "domain.txt")
    assert (record["order"], record["feature_names"]) == (2, ["lm", "lm.oov"])
    assert run("rerank", "nbest", "-p", "p.nc", "-o", "out").code == 0
    assert len(Path("out").read_text().splitlines()) == 12


def test_a_moved_or_changed_text(texts: Path) -> None:
    run(*ADAPT, "--add", "lm=domain.txt", "-o", "p.nc", "-q")
    Path("domain.txt").rename("moved.txt")
    gone = run("rerank", "nbest", "-p", "p.nc", "-o", "out")
    assert (gone.code, gone.err.count("\n"), Path("out").exists()) == (2, 1, False)
    assert "domain.txt: cannot be read (No such file or directory)" in gone.err
    assert "give the new path of lm" in gone.err
    assert "(--moved-file)" in gone.err
    assert (
        run("rerank", "nbest", "-p", "p.nc", "-o", "out", "--moved-file", "lm=moved.txt").code == 0
    )
    Path("moved.txt").write_text("another text .\n")
    changed = run("rerank", "nbest", "-p", "p.nc", "-o", "new", "--moved-file", "lm=moved.txt")
    assert (changed.code, Path("new").exists()) == (2, False)
    assert "moved.txt: has changed since the weights of lm were adapted" in changed.err
    other = run("rerank", "nbest", "-p", "p.nc", "-o", "new", "--moved-file", "tm=moved.txt")
    assert "tm is not a feature source of this posterior: it has lm (--moved-file)" in other.err


def test_a_posterior_that_includes_its_text_needs_no_file(texts: Path) -> None:
    run(*ADAPT, "--add", "lm=domain.txt,carry=true", "--add", "lm=self,name=own", "-o", "p.nc")
    Path("domain.txt").unlink()
    assert run("rerank", "nbest", "-p", "p.nc", "-o", "out", "-q").code == 0
    names = as_draws(read_posterior("p.nc")).features
    assert names[-4:] == ("lm", "lm.oov", "own", "own.oov")


def test_lists_with_more_features(texts: Path) -> None:
    add = ("--add", "lm=domain.txt", "--add", "length:ratio=true")
    done = run("features", "nbest", "-s", "src", *add, "-o", "more.jsonl")
    assert done.code == 0
    assert "added lm, lm.oov, LengthWords, LengthRatio to 120 hypotheses" in done.err
    assert read_nbest("more.jsonl").feature_names[-4:] == (
        "lm",
        "lm.oov",
        "LengthWords",
        "LengthRatio",
    )
    own = run("features", "nbest", "-r", "ref", "--add", "lm=self", "-o", "own.nbest")
    assert "added lm, lm.oov" in own.err


def test_an_unknown_suffix_is_refused_before_the_work(texts: Path) -> None:
    done = run("features", "none", "--add", "length", "-o", "more.tab")
    assert (done.code, done.err.count("\n"), Path("more.tab").exists()) == (2, 1, False)
    assert "more.tab: no format of lists has the ending .tab" in done.err


def test_lists_in_another_format_than_the_option_says(texts: Path) -> None:
    done = run("features", "nbest", "--format", "jsonl", "--add", "length", "-o", "more.jsonl")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert re.search(r"nbest:1: not JSON: .* \(--format\)", done.err), done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "features needs --add"),
        (("--add", "lm"), "lm needs text: give a list or a text"),
        (("--add", "ln=domain.txt"), "unknown feature source 'ln': choose one of lm, lexicon"),
        (("--add", "lm=none.txt"), "none.txt"),
        (("--add", "lm=empty.txt"), "empty.txt"),
        (("--add", "lm=domain.txt,order=9"), "order must be an integer ≥ 1 and ≤ 5"),
        (("--add", "length=3"), "--add length takes no file"),
        (("--add", "length:ratio=true"), "give the sources (--sources)"),
        (("--add", "lexicon=domain.txt"), "lexicon"),
        (("--add", "lm=self"), "references"),
        (("--add", "lm=domain.txt", "--add", "lm=domain.txt"), "there is a feature lm already"),
        (("--add", "phrases=none.parquet", "-s", "src"), "segmentation"),
    ],
)
def test_features_that_cannot_be_added(texts: Path, options: tuple[str, ...], message: str) -> None:
    Path("empty.txt").touch()
    done = run("features", "nbest", *options, "-o", "more.nbest")
    assert done.code == 2
    assert message in done.err
    assert [line[:6] for line in done.err.splitlines()].count("error:") == 1
    assert not Path("more.nbest").exists()


def test_the_report_shows_the_contribution_of_added_features(texts: Path) -> None:
    run(*ADAPT, "--add", "lm=domain.txt", "-o", "p.nc", "-q")
    assert run("report", "p.nc", "--nbest", "nbest", "-r", "ref", "-o", "page.html").code == 0
    page = Path("page.html").read_text()
    assert "What the added features contributed" in page
    assert "without the column lm.oov" in page
    alone = run("report", "p.nc", "-r", "ref", "-o", "page.html")
    assert (alone.code, "--references goes with --nbest" in alone.err) == (2, True)
    plain = run("report", "good.nc", "--nbest", "nbest", "-r", "ref", "-o", "page.html")
    assert plain.code == 0
    assert "What the added features contributed" not in Path("page.html").read_text()
