"""`bpa phrases` and `bpa subdomains`, and features of subdomains."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import refused, run, succeed

import bpa_ppl as bpa
from bpa_ppl.phrases import Subdomains, read_counts, read_table


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small corpus, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "fr": "le chat noir\nle chien\nun chat\n",
        "en": "the black cat\nthe dog\na cat\n",
        "align": "0-0 1-2 2-1\n0-0 1-1\n0-0 1-1\n",
        "like": "a cat\na dog\n",
        "in": "chat ||| cat ||| 1\nchien ||| dog ||| 1\n",
        "dev": "chat ||| cat ||| 2\nle ||| the ||| 1\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


EXTRACT = ("phrases", "extract", "fr", "en", "align", "-o", "out.parquet")
MIX = ("phrases", "mix", "in", "dev")


def test_from_text_to_features(work: Path) -> None:
    assert run(*EXTRACT) == (0, "", "9 phrase pairs, 11 occurrences\n")
    done = succeed("phrases", "mix", "in", "out.parquet", "--dev", "dev", "-o", "mixed.parquet")
    assert done.err.startswith("p(t|s), map, beta = ")
    assert "100.0% of the pairs have support" in done.err
    assert read_table(work / "mixed.parquet").columns["direct"].max() <= 1
    (work / "nbest").write_text("0 ||| a dog ||| LM0= -1 ||| -1 ||| 0=0 1=1\n")
    (work / "src").write_text("un chien\n")
    added = ("--sources", "src", "--add", "phrases=mixed.parquet")
    succeed("features", "nbest", "-o", "new.jsonl", *added)
    names = ("LM0", "phrases.direct", "phrases.inverse")
    assert bpa.read_nbest(work / "new.jsonl").feature_names == names


def test_only_lines_like_the_domain(work: Path) -> None:
    assert succeed(*EXTRACT, "--like", "like", "--keep", "0.3", "-q").err == ""
    assert read_counts("out.parquet").sources.to_pylist() == ["chat", "un", "un chat"]


def test_a_table_for_the_decoder(work: Path) -> None:
    done = succeed(*MIX, "--method", "linear", "--value", "0.5", "-o", "-", "-q")
    assert done.out == "chat ||| cat ||| 1 1\nchien ||| dog ||| 0.5 0.5\nle ||| the ||| 0.5 0.5\n"


@pytest.mark.parametrize(
    ("arguments", "mention"),
    [
        ((*EXTRACT, "--like", "like"), "--keep"),
        ((*MIX, "-o", "t"), "beta"),
        ((*MIX, "-o", "t", "--method", "concatenate", "--value", "1"), "(--value)"),
    ],
)
def test_tables_that_cannot_be_made(work: Path, arguments: tuple[str, ...], mention: str) -> None:
    refused(*arguments, mention=mention)


LAW = [("la loi du pays", "the law of the land"), ("un article de loi", "a section of law")]
TALK = [("je vous remercie", "i thank you"), ("je dis merci", "i say thank you")]
INDUCE = ("subdomains", "fr", "en", "-o", "sub.parquet", "-k")


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a corpus of two kinds, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for side, name in enumerate(("fr", "en")):
        Path(name).write_text("".join(f"{pair[side]}\n" for pair in (LAW + TALK) * 10))


@pytest.mark.usefixtures("texts")
def test_from_texts_to_subdomains() -> None:
    first, *table = succeed(*INDUCE, "2", "--jobs", "2").err.splitlines()
    assert first == "40 sentence pairs in 2 subdomains: 50 %, 50 %"
    assert [row.split()[0] for row in table] == ["z", "0", "1"]
    subdomains = Subdomains.load("sub.parquet")
    winners = subdomains.winners().tolist()
    assert winners == winners[:4] * 10
    assert winners[0] == winners[1] != winners[2] == winners[3]
    assert (subdomains.hard, subdomains.settings["iterations"]) == (True, 3)
    assert succeed(*INDUCE, "2", "--soft", "--iterations", "1", "-q").err == ""
    subdomains = Subdomains.load("sub.parquet")
    assert (subdomains.hard, subdomains.settings["iterations"]) == (False, 1)


@pytest.mark.usefixtures("texts")
@pytest.mark.parametrize(
    ("arguments", "mention"),
    [
        (("fr", "en", "-k", "1"), "1 (-k)"),
        (("fr", "en", "--induction", "lda", "--soft"), "em"),
        (("fr", "en", "-o", "-"), "(--output)"),
    ],
)
def test_subdomains_that_cannot_be_induced(arguments: tuple[str, ...], mention: str) -> None:
    refused("subdomains", "-o", "sub.parquet", *arguments, mention=mention)
