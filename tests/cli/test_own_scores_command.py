"""Scores of their own on the command line: judged JSON lines, without references or weights."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import PROGRAM, run
from judged_lists import judged_lists, write_json_lines

import bpa_ppl
from bpa_ppl.diagnostics.baselines.comparing import recorded_comparison
from bpa_ppl.posterior import as_draws, read_draws
from bpa_ppl.quality import headroom

ADAPT = ("adapt", "lists.jsonl", "-w", "w.yaml", "--gain", "comet", "--sampler", "map")
SYSTEMS = ("--categorical", "system")


@pytest.fixture
def lists(folder: Path) -> Path:
    """The folder, with judged lists and weights of them."""
    write_json_lines(judged_lists(30), folder / "lists.jsonl")
    (folder / "w.yaml").write_text("logprob: 0.1\n")
    return folder


def test_rerank_improves_the_column(lists: Path) -> None:
    done = run(*ADAPT, *SYSTEMS, "-o", "p.nc")
    assert done.code == 0
    assert "no canonical weight for system=ann, system=bob, system=eve: the prior" in done.err
    shown = run("rerank", "lists.jsonl", "-p", "p.nc", "-o", "out")
    before, after = (float(cell) for cell in shown.out.splitlines()[1].split()[1:3])
    assert shown.out.splitlines()[1].split()[0] == "comet"
    assert after > before + 0.3
    assert [text.split()[1] for text in Path("out").read_text().splitlines()].count("eve") > 25
    room = headroom(judged_lists(30), metric="comet")
    assert after <= room.oracle.value


def test_commands_compare_with_simple_baselines(lists: Path) -> None:
    done = run(*ADAPT, *SYSTEMS, "-o", "p.nc")
    assert "best single system (eve)" in done.err
    assert "adapted weights" in done.err
    comparison = recorded_comparison(read_draws("p.nc"))
    assert comparison is not None
    assert str(comparison) in done.err.replace("note: ", "")
    shown = run("rerank", "lists.jsonl", "-p", "p.nc", "-o", "out")
    pool, draws = bpa_ppl.read_nbest("lists.jsonl"), read_draws("p.nc")
    choice = bpa_ppl.rerank(pool, draws).choice
    expected = bpa_ppl.compare_baselines(pool, draws, choice=choice)
    assert shown.out.endswith(f"\n\n{expected}\n{expected.summary}\n")
    alone = run("oracle", "lists.jsonl", "--metric", "comet")
    assert alone.out.endswith(f"\n\n{bpa_ppl.compare_baselines(pool, metric='comet')}\n")
    assert "adapted" not in alone.out


def test_rerank_of_lists_without_the_column(lists: Path) -> None:
    run(*ADAPT, *SYSTEMS, "-o", "p.nc", "-q")
    write_json_lines(judged_lists(30).without_features("comet"), Path("new.jsonl"))
    shown = run("rerank", "new.jsonl", "-p", "p.nc", "-o", "out")
    assert shown.out == ""
    assert "of 30 translations changed" in shown.err
    write_json_lines(judged_lists(30, names=("ann", "zoe")), Path("zoe.jsonl"))
    told = run("rerank", "zoe.jsonl", "-p", "p.nc", "-o", "out").err
    assert told.count("note: zoe.jsonl: system zoe did not occur in the adaptation lists") == 1


def test_oracles_and_tuning(lists: Path) -> None:
    shown = run("oracle", "lists.jsonl", "--metric", "-comet", "-w", "none")
    values = [float(row.split()[1]) for row in shown.out.splitlines()[1:4]]
    assert values[1] < values[0] < values[2]
    assert "column:comet|better:lower" in shown.out.splitlines()
    tuned = run("tune", "lists.jsonl", "-w", "none", "--gain", "comet", "-o", "new.json")
    assert (tuned.code, tuned.out) == (0, "")
    assert "comet of the lists: " in tuned.err
    assert bpa_ppl.read_weights("new.json").names == ("logprob",)


def test_weights_of_any_kind(lists: Path) -> None:
    Path("bare").write_text("0.1\n")
    Path("w.json").write_text("[0.1]")
    posteriors = []
    for weights in ("w.yaml", "bare", "w.json"):
        assert run(*ADAPT, "-w", weights, "-o", "p.nc", "-q").code == 0
        posteriors.append(as_draws(bpa_ppl.read_posterior("p.nc")).mean.tolist())
    assert posteriors[0] == posteriors[1] == posteriors[2]
    none = run(*ADAPT, "-w", "none", "-o", "p.nc", "-q")
    assert "no canonical weight for logprob: the prior has mean 0, except logprob" in none.err


def test_variances_of_single_features(lists: Path) -> None:
    chosen = ("--prior-variance", "0.5", "--prior-variance", "system=eve=2", "--prior-variance")
    assert run(*ADAPT, *SYSTEMS, *chosen, "system=ann=3", "-o", "p.nc", "-q").code == 0
    draws = as_draws(bpa_ppl.read_posterior("p.nc"))
    variance = dict(zip(draws.features, draws.constants["prior_variance"].tolist(), strict=True))
    assert variance["logprob"] == 0.5
    assert (variance["system=ann"], variance["system=eve"]) == (3, 2)
    assert variance["system=bob"] == pytest.approx(0.5 * 9 / 2, rel=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--gain", "bleurt"), "unknown metric 'bleurt': .* column of the lists: logprob, comet"),
        (("--metric", "TER"), "the lists have no references: "),
        (("--metric", "chrf:word_order=x"), "word_order must be an integer"),
        (("--metric", "column:negative=true"), "the metric column needs column"),
        (("--metric", "unbabel-comet"), "the lists have no references: "),
        (("--categorical", "text"), "the hypotheses have no column text: "),
        (("--prior-variance", "x"), "--prior-variance takes one number, and NAME=VALUE"),
        (("--prior-variance", "LM0=x"), "--prior-variance LM0 needs a number, not 'x'"),
        (("--prior-variance", "LM0=2"), "a prior variance of LM0"),
        (("--prior-variance", "1", "--prior-variance", "2"), "--prior-variance takes one number"),
        (("--gain", "logprob"), r"no weight for comet, .* \(--default\)"),
    ],
)
def test_errors_name_the_option(lists: Path, options: tuple[str, ...], message: str) -> None:
    done = run(*ADAPT, *options, "-o", "new.nc")
    assert (done.code, done.out) == (2, "")
    assert not Path("new.nc").exists()
    assert re.match(f"error: (lists.jsonl: |w.yaml: )?{message}", done.err), done.err


def test_default_weight_of_a_feature_without_a_weight(lists: Path) -> None:
    run(*ADAPT, "-o", "p.nc", "-q")
    more = judged_lists(30).without_features("comet").with_features("extra", [0.0, 0.0, -9.0] * 30)
    write_json_lines(more, Path("more.jsonl"))
    accepted = run("rerank", "more.jsonl", "-p", "p.nc")
    assert accepted.code == 0
    (note,) = (line for line in accepted.err.splitlines() if line.startswith("note: "))
    assert note.startswith("note: more.jsonl: extra not used: the posterior has no weight for it")
    assert "default weight" in note
    bare = write_json_lines(judged_lists(30).without_features("comet"), Path("bare.jsonl"))
    assert run("rerank", str(bare), "-p", "p.nc").out == accepted.out
    held = run("rerank", "more.jsonl", "-p", "p.nc", "--default", "extra=1", "-q")
    assert held.code == 0
    assert "eve" not in held.out


@pytest.mark.parametrize(
    ("command", "given", "suggested"),
    [
        ("adapt", ("--draws", "200"), "--set draws=200"),
        ("adapt", ("--proposal-variance=0.5",), "--set proposal_variance=0.5"),
        ("tune", ("--epochs", "3"), "--set epochs=3"),
        ("compare", ("--draws", "200"), "--set SAMPLER.draws=200"),
    ],
)
def test_a_setting_given_as_an_option(command: str, given: tuple[str, ...], suggested: str) -> None:
    done = run(command, "lists", "-w", "w", "-o", "o", *given)
    assert done.code == 2
    assert suggested in " ".join(done.err.split())
    assert "--set" not in run(command, "lists", "--drawn", "200").err


def test_the_shell_completes_commands_and_names() -> None:
    def completed(words: str, count: int) -> list[str]:
        asked = {"_BPA_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(count)}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, **asked},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert completed("bpa re", 1) == ["report", "rerank"]
    assert completed("bpa adapt x --sampler rw", 4) == ["rwm", "rwm-isotropic"]
    assert completed("bpa oracle x --gain b", 4) == ["bleu"]
