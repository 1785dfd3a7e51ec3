"""`bpa lists`, `oracle`, `features` and `lm`, and features of text in other commands."""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from command_line import refused, run, succeed

import bpa_ppl as bpa
from bpa_ppl.posterior import read_draws
from bpa_ppl.text.arpa import read_arpa
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.lm_mixtures import MixtureModel
from bpa_ppl.text.model_files import evaluate_text

ADAPT = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "--sampler", "map", "-o", "p.nc")
RERANK = ("rerank", "nbest", "-p", "p.nc", "-o", "out")
TEXT = "the cat sat\na cat sat down\nthe dog sat\n"


def test_oracle_scores_and_texts(folder: Path) -> None:
    oracle = ("oracle", "nbest", "-r", "ref", "-w", "moses.ini")
    shown, mixed = succeed(*oracle), succeed(*oracle, "-o", "-", "-q")
    assert shown.out.split()[:3] == ["TER", "BLEU", "length"]
    values = [float(row.split()[1]) for row in shown.out.splitlines()[1:4]]
    assert values[1] < values[0] < values[2]
    assert mixed.out.count("\n") == 12
    assert "anti-oracle" in mixed.err
    own = bpa.corpus_score(mixed.out.splitlines(), bpa.read_references("ref"), "ter")
    assert own.value == pytest.approx(values[1], abs=0.01)


def test_lists_are_described(folder: Path) -> None:
    sizes = bpa.read_nbest("nbest").sizes.tolist()
    shown = succeed("lists", "nbest", "-r", "ref")
    assert "12 lists, 120 candidates, 10 per list" in shown.out
    plain = json.loads(succeed("lists", "nbest", "-r", "ref", "--json", "--gain", "bleu").out)
    assert (plain["sizes"], plain["references"]) == ([min(sizes), 10, max(sizes)], 12)
    assert plain["plan"]["gain"] == "bleu"
    assert ("- read as moses\n" in shown.out, plain["formats"]) == (True, ["moses"])
    shutil.copy("nbest", "nbest2")
    both = json.loads(succeed("lists", "nbes*", "-r", "ref,ref", "--json").out)
    assert (both["sentences"], both["references"]) == (24, 24)
    twice = run("lists", "nbest", "nbest", "--json")
    assert json.loads(twice.out)["sentences"] == 24
    assert "note: nbest: given 2 times" in twice.err


@pytest.fixture
def texts(folder: Path) -> Path:
    """The folder, with a text of the domain and sources."""
    Path("domain.txt").write_text("read this leaflet .\ntake the tablet with water .\n" * 5)
    Path("src").write_text("".join(f"une phrase {n}\n" for n in range(12)))
    return folder


def test_features_are_recorded_computed_again_and_reported(texts: Path) -> None:
    done = succeed(*ADAPT, "--add", "lm=domain.txt,order=2")
    assert "no canonical weight for lm, lm.oov" in done.err
    draws = read_draws("p.nc")
    assert draws.features[-2:] == ("lm", "lm.oov")
    (record,) = draws.attrs["feature_sources"]
    assert record["text"] == str(texts / "domain.txt")
    assert (record["order"], record["feature_names"]) == (2, ["lm", "lm.oov"])
    succeed(*RERANK)
    assert len(Path("out").read_text().splitlines()) == 12
    succeed("report", "p.nc", "--nbest", "nbest", "-r", "ref", "-o", "page.html")
    assert "lm.oov" in Path("page.html").read_text()
    Path("domain.txt").rename("moved.txt")
    Path("out").unlink()
    assert "(--moved-file)" in refused(*RERANK, mention="domain.txt: ")
    refused(*RERANK, "--moved-file", "tm=moved.txt", mention="(--moved-file)")
    moved = (*RERANK, "--moved-file", "lm=moved.txt")
    succeed(*moved)
    Path("out").unlink()
    Path("moved.txt").write_text("another text .\n")
    refused(*moved, mention="moved.txt: has changed")


def test_lists_with_more_features(texts: Path) -> None:
    add = ("--add", "lm=domain.txt", "--add", "length:ratio=true")
    done = succeed("features", "nbest", "-s", "src", *add, "-o", "more.jsonl")
    assert "added lm, lm.oov, LengthWords, LengthRatio to 120 hypotheses" in done.err
    names = bpa.read_nbest("more.jsonl").feature_names
    assert names[-4:] == ("lm", "lm.oov", "LengthWords", "LengthRatio")
    own = succeed("features", "nbest", "-r", "ref", "--add", "lm=self", "-o", "own.nbest")
    assert "added lm, lm.oov" in own.err


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with texts, which is the current one."""
    monkeypatch.chdir(tmp_path)
    Path("domain.txt").write_text(TEXT, "utf-8")
    Path("held-out.txt").write_text("the cat sat\na bird\n", "utf-8")


@pytest.mark.usefixtures("corpus")
def test_a_language_model_is_written_and_evaluated() -> None:
    done = succeed("lm", "domain.txt", "--order", 2, "-o", "a.arpa.gz", "--test", "held-out.txt")
    assert done.err == ""
    model = NgramModel.estimate([line.split() for line in TEXT.splitlines()], 2)
    assert read_arpa("a.arpa.gz").log_probabilities([["a"]]) == model.log_probabilities([["a"]])
    scores, unknown = model.by_word([["the", "cat", "sat"], ["a", "bird"]])
    assert done.out.splitlines() == [
        "9 1-grams, 10 2-grams; too few n-grams of order 1, 2 to estimate discounts: "
        "0.5, 1, 1.5 are used",
        f"held-out.txt: perplexity {np.exp(-scores.mean()):.2f}, "
        f"{np.exp(-scores[~unknown].mean()):.2f} without the 1 unknown of 5 words",
    ]
    again = succeed("lm", "a.arpa.gz", "--test", "held-out.txt", "--test", "domain.txt")
    assert again.out.splitlines()[:2] == ["9 1-grams, 10 2-grams", done.out.splitlines()[1]]
    assert again.out.splitlines()[2].startswith("domain.txt: perplexity ")
    assert "the training text itself: perplexity" in succeed("lm", "domain.txt").out
    assert succeed("lm", "domain.txt", "-q").out == ""
    assert list(Path().glob("*.arpa")) == []


@pytest.mark.usefixtures("corpus")
def test_a_named_pipe_is_read_once() -> None:
    os.mkfifo("pipe")
    lines = TEXT * 5000  # more than a pipe holds
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(Path("pipe").write_text, lines, "utf-8")
        done = run("lm", "pipe", "-o", "piped.arpa")
        writing.result()
    assert (done.code, len(done.out.splitlines())) == (0, 1)
    whole = succeed("lm", "-", "-o", "-", stdin=lines)  # the model, so that messages are notes
    assert Path("piped.arpa").read_text("utf-8") == whole.out
    assert "1-grams" in whole.err


@pytest.mark.usefixtures("corpus")
def test_a_mixture_of_language_models() -> None:
    Path("general.txt").write_text("the house\nof the law\n", "utf-8")
    Path("dev.txt").write_text("the cat\nof a law\n", "utf-8")
    texts = ("domain.txt", "general.txt")
    done = succeed("lm", "mix", *texts, "--dev", "dev.txt", "--order", 2, "--test", "held-out.txt")
    mixture = MixtureModel.fit_files([NgramModel.train([text], 2) for text in texts], ["dev.txt"])
    first, *_, last = done.out.splitlines()
    assert first.startswith(f"dev.txt: domain.txt, alpha = {mixture.weights[0]:.4f}, perplex")
    assert last == f"held-out.txt: mixture, {evaluate_text(mixture, ['held-out.txt'])}"
