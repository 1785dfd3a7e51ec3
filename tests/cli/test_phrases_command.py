"""`bpa phrases`: from aligned text to a table, and to features of lists."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import run

from bpa_ppl import read_nbest
from bpa_ppl.phrases import read_counts, read_table

SOURCE = "le chat noir\nle chien\nun chat\n"
TARGET = "the black cat\nthe dog\na cat\n"
ALIGNMENT = "0-0 1-2 2-1\n0-0 1-1\n0-0 1-1\n"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small corpus, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for name, text in {"fr": SOURCE, "en": TARGET, "align": ALIGNMENT}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "like").write_text("a cat\na dog\n")
    (tmp_path / "in").write_text("chat ||| cat ||| 1\nchien ||| dog ||| 1\n")
    (tmp_path / "dev").write_text("chat ||| cat ||| 2\nle ||| the ||| 1\n")
    return tmp_path


def test_from_text_to_features(work: Path) -> None:
    done = run("phrases", "extract", "fr", "en", "align", "-o", "out.parquet")
    assert (done.code, done.out) == (0, "")
    assert done.err == "9 phrase pairs, 11 occurrences\n"
    done = run("phrases", "mix", "in", "out.parquet", "--dev", "dev", "-o", "mixed.parquet")
    assert done.code == 0
    assert done.err.startswith("p(t|s), map, beta = ")
    assert "100.0% of the pairs have support" in done.err
    assert read_table(work / "mixed.parquet").columns["direct"].max() <= 1
    (work / "nbest").write_text("0 ||| a dog ||| LM0= -1 ||| -1 ||| 0=0 1=1\n")
    (work / "src").write_text("un chien\n")
    added = ("--sources", "src", "--add", "phrases=mixed.parquet")
    done = run("features", "nbest", "-o", "new.jsonl", *added)
    assert done.code == 0, done.err
    names = ("LM0", "phrases.direct", "phrases.inverse")
    assert read_nbest(work / "new.jsonl").feature_names == names


def test_only_lines_like_the_domain(work: Path) -> None:
    line = ("phrases", "extract", "fr", "en", "align", "-o", "t.txt", "--like", "like")
    assert run(*line, "--keep", "0.3", "-q").err == ""
    assert read_counts(work / "t.txt").sources.to_pylist() == ["chat", "un", "un chat"]
    refused = run(*line)
    assert (refused.code, "--like and --keep go together" in refused.err) == (2, True)


def test_a_table_for_the_decoder(work: Path) -> None:
    line = ("phrases", "mix", "in", "dev", "--method", "linear", "--value", "0.5")
    done = run(*line, "-o", "-", "-q")
    assert done.out == ("chat ||| cat ||| 1 1\nchien ||| dog ||| 0.5 0.5\nle ||| the ||| 0.5 0.5\n")


def test_marginals_of_a_part(work: Path) -> None:
    (work / "src").write_text("chat ||| 8\nle ||| 4\n")
    line = ("phrases", "mix", "in", "dev", "--method", "log-linear", "-o", "t.parquet")
    assert run(*line, "--out-source-counts", "src").code == 0
    assert read_table(work / "t.parquet").columns["direct.out"].tolist() == [0.25, 0, 0.25]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("extract", "fr", "en", "fr", "-o", "t"), "error: fr:1: alignment points must be like"),
        (("extract", "fr", "en", "absent", "-o", "t"), "absent: no such file"),
        (("extract", "fr", "like", "align", "-o", "t"), "like: has 2 lines, and fr has more"),
        (("mix", "in", "dev", "-o", "t"), "map has a parameter, beta"),
        (("mix", "in", "dev", "-o", "t", "--method", "best"), "unknown method 'best'"),
        (
            ("mix", "in", "dev", "-o", "t.gz", "--method", "log-linear"),
            "cannot store the columns direct.in, direct.out, inverse.in, inverse.out",
        ),
        (("mix", "in", "fr", "-o", "t"), "error: fr:1: not a table of phrases"),
    ],
)
def test_bad_input(work: Path, line: tuple[str, ...], message: str) -> None:
    before = sorted(work.iterdir())
    done = run("phrases", *line)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert sorted(work.iterdir()) == before
