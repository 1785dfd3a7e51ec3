"""Latent subdomains on the command line: `bpa report` of them, and their features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import run

from bpa_ppl import read_nbest
from bpa_ppl.diagnostics.subdomains import subdomains_page
from bpa_ppl.phrases import NumberedText, PhraseCounts, Subdomains, write_counts

SOURCE = [["la", "maison"], ["le", "chat"], ["la", "maison"]] * 4
TARGET = [["the", "house"], ["the", "cat"], ["the", "home"]] * 4
LIST = """0 ||| the house ||| LM0= -1 ||| -1 ||| 0=0 1=1
0 ||| the home ||| LM0= -2 ||| -2 ||| 0-1=0-1
"""


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Subdomains:
    """Subdomains, in `z.parquet`; a table and lists with some of their phrases."""
    monkeypatch.chdir(tmp_path)
    texts = NumberedText.of(SOURCE), NumberedText.of(TARGET)
    made = Subdomains(*texts, np.tile([0, 1, 0], 4), np.array([2 / 3, 1 / 3]), {"k": 2})
    made.save("z.parquet")
    write_counts(PhraseCounts.of(["la", "chat"], ["the", "cat"], [1, 1]), "table.parquet")
    Path("table.txt").write_text("chat ||| cat ||| 0-0\nla ||| the ||| 0-0\nla ||| the ||| 0-0\n")
    Path("nbest").write_text(LIST)
    Path("src").write_text("la maison\n")
    return made


def test_the_page_is_that_of_the_library(found: Subdomains) -> None:
    done = run("report", "z.parquet", "-o", "z.html", "--min-count", 2, "--top", 3)
    assert (done.code, done.out, done.err) == (0, "", "wrote z.html\n")
    page = subdomains_page(found, title="Subdomains z.parquet", min_count=2, top=3)
    assert Path("z.html").read_text("utf-8") == page


@pytest.mark.parametrize("table", ["table.parquet", "table.txt"])
def test_phrases_of_a_table(found: Subdomains, table: str) -> None:
    assert (
        run("report", "z.parquet", "-o", "z.html", "--phrases", table, "--min-count", 2).code == 0
    )
    pairs = ["chat", "la"], ["cat", "the"]
    page = subdomains_page(found, title="Subdomains z.parquet", pairs=pairs, min_count=2)
    assert Path("z.html").read_text("utf-8") == page
    assert "Phrases of the pairs" in page


def test_phrases_of_lists(found: Subdomains) -> None:
    arguments = ("--lists", "nbest", "-s", "src", "--min-count", 2)
    assert run("report", "z.parquet", "-o", "z.html", *arguments).code == 0
    pairs = ["la", "la maison", "maison"], ["the", "the home", "house"]
    page = subdomains_page(found, title="Subdomains z.parquet", pairs=pairs, min_count=2)
    assert Path("z.html").read_text("utf-8") == page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("z.parquet", "--lists", "nbest"), "give both, or a phrase table"),
        (("z.parquet", "--lists", "nbest", "-s", "src", "--phrases", "table.txt"), "give one"),
        (("z.parquet", "--moved-file", "lm=x"), "are for posteriors"),
        (("z.parquet", "--min-count", 0), "(--min-count)"),
        (("table.parquet",), "table.parquet: not a file of subdomains"),
        (("src", "--phrases", "table.txt"), "--phrases is for subdomains"),
        (("cut.parquet",), "not a valid Parquet file"),
        (("src",), "src: not a readable NetCDF posterior"),
    ],
)
def test_bad_input(found: Subdomains, arguments: tuple[object, ...], message: str) -> None:
    Path("cut.parquet").write_bytes(Path("z.parquet").read_bytes()[:200])
    done = run("report", *arguments, "-o", "z.html")
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert not Path("z.html").exists()


def test_features_with_their_settings(found: Subdomains) -> None:
    add = ("--add", "invariance=z.parquet,features=coherence,subdomain,z=1,name=safe")
    done = run("features", "nbest", "-s", "src", *add, "-o", "more.jsonl", "-q")
    assert done.code == 0, done.err
    more = read_nbest("more.jsonl")
    assert more.feature_names[1:] == tuple(
        f"safe.{name}" for name in ("coherence", "z1.source", "z1.target", "z1.difference")
    )
    # "la", "maison" and "house" are in subdomain 0 alone, "the" in both, as often as pairs are.
    np.testing.assert_allclose(more.features[0, 1:], [1 / 3, 0, 1 / 3, 1 / 3], rtol=1e-6)
    np.testing.assert_allclose(more.features[1, 1:], [0, 0, 0, 0], atol=1e-7)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("none.parquet", "none.parquet: no such file"),
        ("src", "src: not a file of subdomains"),
        ("z.parquet,features=safety", "unknown measure of invariance 'safety'"),
        ("z.parquet,features=subdomain,z=2", "has the subdomains 0 to 1, not 2"),
    ],
)
def test_features_that_cannot_be_had(found: Subdomains, settings: str, message: str) -> None:
    add = ("--add", f"invariance={settings}")
    done = run("features", "nbest", "-s", "src", *add, "-o", "more.jsonl")
    assert done.code == 2
    assert message in done.err
    assert not Path("more.jsonl").exists()
