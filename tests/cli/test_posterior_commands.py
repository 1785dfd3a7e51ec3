"""`bpa check`, `bpa trace`, `bpa report`, `bpa rerank` and `bpa weights`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from support.command_line import refused, run, succeed
from support.posteriors import name_weights, read_weight_draws

import bpa_ppl as bpa

RERANK = ("rerank", "nbest", "-p", "good.nc")
SENTENCES = 12  # in the lists of the fixture


def test_check_prints_the_verdict(folder: Path) -> None:
    good, poor = run("check", "good.nc"), run("check", "poor.nc")
    assert (good.code, poor.code, "NOT converged" in good.out) == (0, 3, False)
    assert "rwm, 2 chains × 10 draws: NOT converged" in poor.out
    as_json = run("check", "poor.nc", "--json")
    report = json.loads(as_json.out)
    assert (as_json.code, report["passed"], report["draws"]) == (3, False, 10)
    assert {"R-hat", "bulk ESS"} <= {finding["name"] for finding in report["findings"]}


def test_traces_are_written(folder: Path) -> None:
    poor = read_weight_draws("poor.nc")
    names = poor.features[:5]
    bpa.write_posterior(name_weights(poor.weights[..., :5], names), "few.nc")
    succeed("trace", "few.nc", "-o", "all.png", "-q")
    for figure, written in {"t.png": "t.png, t.html", "page.html": "page.html"}.items():
        result = succeed("trace", "few.nc", "-o", figure, "--html", "--var-names", *names[:2])
        assert result.err == f"wrote {written}\n"
    sizes = [int.from_bytes(Path(f"{n}.png").read_bytes()[20:24]) for n in ("all", "t")]
    assert sizes[0] > 2 * sizes[1] > 0  # the heights
    page = Path("t.html").read_text("utf-8")
    assert page == Path("page.html").read_text("utf-8")
    assert f'alt="Traces of {names[0]}, {names[1]}"' in page


@pytest.mark.usefixtures("without_drawing")
def test_several_weights_follow_one_option(folder: Path) -> None:
    a, b, c = names = bpa.as_weight_draws(bpa.read_posterior("poor.nc")).features[:3]
    repeated = ("--var-names", a, "--var-names", b, "--var-names", c)
    mixed = ("poor.nc", "--var-names", a, b, "--var-names", c)
    together = ("--var-names", *names, "--", "poor.nc")
    for words in (mixed, (*repeated, "-q", "poor.nc"), together):
        succeed("trace", "-o", "x.html", *words)
        assert f'alt="Traces of {a}, {b}, {c}"' in Path("x.html").read_text("utf-8")


def test_rerank_scores_where_there_are_references(folder: Path) -> None:
    apart = succeed(*RERANK, "-r", "ref", "-o", "out", "--details", "table")
    mixed = succeed(*RERANK, "-r", "ref")
    texts = Path("out").read_text("utf-8").splitlines()
    assert (mixed.out.splitlines(), mixed.err, len(texts)) == (texts, apart.out, SENTENCES)
    assert "TER" in apart.out
    assert f"of {SENTENCES} choices changed from canonical weights to adapted weights" in apart.out
    alone = succeed(*RERANK, "-o", "out")
    assert f"of {SENTENCES} choices changed from canonical weights to adapted" in alone.err
    assert Path("table").read_text("utf-8").count("\n") == 1 + SENTENCES


@pytest.mark.filterwarnings("ignore:.*the others are not used:bpa_ppl.errors.BpaWarning")
def test_sentences_without_lists(folder: Path) -> None:
    """Twelve sources, and lists of all but the fourth and the last."""
    Path("src").write_text("".join(f"source {n}\n" for n in range(12)))
    kept = [n for n in range(12) if n not in (3, 11)]
    bpa.write_nbest(bpa.read_nbest("nbest").select(kept), "lists", format="moses")
    rerank = ("rerank", "lists", "-p", "good.nc", "-o", "new.txt")
    assert "(--gaps)" in refused(*rerank, mention="no list for sentence 3")
    refused(*rerank, "--gaps", "source", mention="(--sources)")
    refused(*rerank[:-1], "new.jsonl", "-s", "src", mention="no list for sentence 3")
    done = succeed(*rerank, "--gaps", "source", "-s", "src")
    assert "2 sentences without a list: source line" in done.err
    filled = Path("new.txt").read_text("utf-8").splitlines()
    assert [(n, text) for n, text in enumerate(filled) if text.startswith("source ")] == [
        (3, "source 3"),
        (11, "source 11"),
    ]


def test_weights_for_the_decoder(folder: Path) -> None:
    succeed("weights", "good.nc", "-o", "new.ini", "--template", "moses.ini")
    succeed("weights", "good.nc", "-o", "new.json")
    dense = succeed("weights", "good.nc", "-o", "-")
    assert dense.err == ""
    Path("dense").write_text(dense.out, "utf-8")
    written = [dict(bpa.read_weights(name)) for name in ("new.ini", "new.json", "dense")]
    assert written[1] == written[2] == pytest.approx(written[0], abs=1e-12)
    assert np.abs(list(written[0].values())).sum() == pytest.approx(1)
    point = bpa.point_weights(bpa.read_posterior("good.nc"))  # with a fixed weight
    norm = sum(map(abs, point.values()))
    assert written[1] == pytest.approx({name: weight / norm for name, weight in point.items()})
    lists = bpa.read_nbest("nbest")
    best = lists.best(lists.scores([written[1][name] for name in lists.feature_names]))
    assert succeed(*RERANK).out.splitlines() == lists.chosen(best)


def test_the_report_has_the_name_of_the_file(folder: Path) -> None:
    report = ("report", "complete.nc", "-o", "report.html")
    assert run(*report) == (0, "", "wrote report.html\n")
    page = Path("report.html").read_text("utf-8")
    assert "<title>Posterior complete.nc</title>" in page
    assert "What moved" in page
    assert "the 2 of " in succeed("report", "poor.nc", "-o", "-", "--top", 2).out


def test_report_on_new_lists(folder: Path) -> None:
    html = succeed("report", "good.nc", "--lists", "nbest", "-r", "ref", "-o", "-").out
    ter = re.search(r"TER (\d+\.\d\d) → (\d+\.\d\d)", html)
    assert ter
    scores = succeed(*RERANK, "-r", "ref", "-o", "out").out
    assert re.search(rf"TER +{ter[1]} +{ter[2]}", scores), scores


def test_probabilities_of_all_candidates(folder: Path) -> None:
    succeed(*RERANK, "-o", "out", "--probabilities", "p.jsonl", "--details", "details")
    chosen = Path("out").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in Path("p.jsonl").read_text("utf-8").splitlines()]
    choices = bpa.Reranker("good.nc", unchecked=True)(bpa.read_nbest("nbest"))
    for s, (row, text) in enumerate(zip(rows, chosen, strict=True)):
        assert row["candidates"][row["choice"]]["text"] == text
        probabilities = [candidate["probability"] for candidate in row["candidates"]]
        assert probabilities == choices[s].tolist()
        gains = [candidate["expected_gain"] for candidate in row["candidates"]]
        assert gains == choices.expected_gain()[choices.lists.rows(s)].tolist()


@contextmanager
def piped(content: bytes) -> Iterator[Path]:
    """Provide a named pipe into which something is written."""
    path = Path("pipe")
    os.mkfifo(path)

    def write() -> None:
        with suppress(BrokenPipeError), open(path, "wb") as file:
            file.write(content)

    writer = Thread(target=write, daemon=True)
    writer.start()
    yield path
    writer.join(60)
    assert not writer.is_alive()
    path.unlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "command",
    [
        "check POSTERIOR",
        "weights POSTERIOR -o -",
        "rerank nbest -p POSTERIOR -q",
        "adapt nbest -r ref --prior POSTERIOR -w none --sampler map -o new.nc",  # no covariance
        "learn-prior POSTERIOR poor.nc -o new.json",
    ],
)
def test_a_posterior_from_a_pipe_is_read_as_a_file_is(folder: Path, command: str) -> None:
    expected = run(*command.replace("POSTERIOR", "good.nc").split())
    with piped(Path("good.nc").read_bytes()) as path:
        done = run(*command.replace("POSTERIOR", str(path)).split())
    assert [str(part).replace("pipe", "good.nc") for part in done] == [*map(str, expected)]


def test_the_first_id_is_set_in_the_format_of_the_posterior(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = ["seg\thyp\tlm\tquality", *(f"{n // 3}\tt{n}\t{n % 3}\t{n % 3}" for n in range(3, 15))]
    Path("lists.tsv").write_text("\n".join([*rows, ""]))
    names = ("--format", "tsv:id=seg,text=hyp", "--features", "lm", "--gain", "quality")
    succeed("adapt", "lists.tsv", *names, "-w", "none", "--sampler", "map", "-o", "posterior.nc")
    again = ("rerank", "lists.tsv", "-p", "posterior.nc")
    error = refused(*again, mention="no list for sentence 0")
    (format,) = re.findall(r"--format (\S+);", error)
    assert succeed(*again, "--format", format).out.splitlines()[:4] == ["t5", "t8", "t11", "t14"]
