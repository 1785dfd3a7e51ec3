"""`bpa phrases` and `bpa subdomains`, and features of subdomains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.command_line import refused, run, succeed
from support.raising import capture_notes

import bpa_ppl as bpa
from bpa_ppl.extras.phrases.instance_weights import Variant, weigh_tables
from bpa_ppl.extras.phrases.pair_features import pair_features, read_corpus
from bpa_ppl.extras.phrases.subdomains import Subdomains
from bpa_ppl.extras.phrases.table_files import read_counts, read_table, write_counts
from bpa_ppl.extras.phrases.tables import PhraseCounts


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
MIX = ("phrases", "mix", "in", "dev", "-o", "-", "-q")


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
    assert succeed(*EXTRACT, "--like", "like", "--keep", "0.3", "-q").err == ""
    assert read_counts("out.parquet").sources.to_pylist() == ["chat", "un", "un chat"]


def test_a_table_for_the_decoder_has_the_best_translations(work: Path) -> None:
    linear = ("--method", "linear", "--value", "0.5")
    table = "chat ||| cat ||| 1 1\nchien ||| dog ||| 0.5 0.5\nle ||| the ||| 0.5 0.5\n"
    assert succeed(*MIX, *linear).out == table
    with (work / "dev").open("a") as file:
        file.write("chat ||| kitten ||| 1\n")
    assert "kitten" in succeed(*MIX, *linear).out
    best = succeed(*MIX, *linear, "--best", "1").out
    assert [line.split(" |||")[:2] for line in best.splitlines()] == [
        line.split(" |||")[:2] for line in table.splitlines()
    ]
    for arguments, mention in (
        ((*MIX, *linear, "--best", "0"), "best must be at least 1"),
        ((*EXTRACT, "--like", "like"), "--keep"),
        (MIX, "beta"),
        ((*MIX, "--method", "concatenate", "--value", "1"), "(--value)"),
    ):
        refused(*arguments, mention=mention)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables and corpora of words s0 … and their translations t0 …, with some errors."""
    folder, rng = tmp_path_factory.mktemp("weigh"), np.random.default_rng(4)
    sizes = {"in": (60, 12, 0.9), "out": (400, 30, 0.5), "dev": (80, 14, 0.9)}
    for name, (pairs, words, right) in sizes.items():
        lines = rng.integers(words, size=(150, 5))
        for side in "st":
            text = "".join(" ".join(f"{side}{n}" for n in line) + "\n" for line in lines)
            (folder / f"{name}.{side}").write_text(text)
        source, other = rng.integers(words, size=(2, pairs // 2))
        target = np.where(rng.random(len(source)) < right, source, other)
        # Each pair is there the other way round, too: one compilation serves both directions.
        numbers = np.hstack([[source, target], [target, source]])
        # No pair with s9 to s11 is in both tables.
        rare = (name == "in") & (numbers[::-1] > 8)
        first = np.where(rare, [["v"], ["u"]], [["s"], ["t"]])
        texts = np.char.add(first, numbers.astype(str)).tolist()
        write_counts(PhraseCounts.of(*texts, np.ones(pairs)), folder / f"{name}.parquet")
    return folder


@pytest.fixture
def weigh(corpora: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command line, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    options = [["--in-corpus", "in.s", "in.t"], ["--out-corpus", "out.s", "out.t"]]
    files = ["in.parquet", "out.parquet", "--dev", "dev.parquet", *options[0], *options[1]]
    paths = [name if name.startswith("--") else str(corpora / name) for name in files]
    return ["phrases", "weigh", *paths, "-o", "table.parquet"]


def test_the_published_setting(weigh: list[str], corpora: Path) -> None:
    done = succeed(*weigh, "--published")
    assert "without a prior" in done.err
    assert "of the pairs have support" in done.err
    inner, outer, dev = (read_counts(corpora / f"{n}.parquet") for n in ("in", "out", "dev"))
    texts = [read_corpus(*(corpora / f"{name}.{side}" for side in "st")) for name in ("out", "in")]
    names, features = pair_features(outer, *texts, scale="plain")
    with capture_notes():
        made, _ = weigh_tables(inner, outer, dev, features, names, Variant(complete=False))
    table = read_table("table.parquet")
    for name, column in made.columns.items():
        np.testing.assert_allclose(table.columns[name], column, rtol=1e-6, atol=1e-9)


def test_negatives_of_the_svm(weigh: list[str]) -> None:
    svm = ("--form", "svm", "--mixture", "linear")
    assert succeed(*weigh, *svm).err != succeed(*weigh, *svm, "--negatives", "source").err


@pytest.mark.parametrize(
    ("more", "mention"),
    [
        (["--prior-deviation", "-1"], "-1.0 (--prior-deviation)"),
        (["--scale", "root"], "--scale"),
        (["--negatives", "all"], "--negatives"),
        (["--dev", "{folder}/in.parquet"], "(--dev)"),
        (["--out-corpus", "{folder}/out.t", "{folder}/out.s"], "corpus OUT are swapped"),
        (["--in-corpus", "{folder}/in.t", "{folder}/in.s"], "corpus IN are swapped"),
    ],
)
def test_mixtures_that_cannot_be_fitted(
    weigh: list[str], corpora: Path, more: list[str], mention: str
) -> None:
    refused(*weigh, *(word.format(folder=corpora) for word in more), mention=mention)


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
