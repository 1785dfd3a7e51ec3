"""Lists with judgements, without references or weights: all commands, from JSON lines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.command_line import refused, run, succeed
from support.judged_lists import judged_lists, write_json_lines
from support.posteriors import read_weight_draws, recorded_comparison, with_record

import bpa_ppl as bpa
from bpa_ppl.cli.options import Reading

LISTS = ("adapt", "lists.jsonl", "-o", "p.nc")
ADAPT = (*LISTS, "-w", "w.txt", "--gain", "comet", "--sampler", "map")
RERANK = ("rerank", "lists.jsonl", "-p", "p.nc", "-o", "out")
SYSTEMS = ("--categorical", "system")


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with lists of systems and a column comet, weights, a posterior, and its messages."""
    folder = tmp_path_factory.mktemp("judged")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("w.txt").write_text("logprob 0.1\n")
        write_json_lines(judged_lists(30), Path("lists.jsonl"))
        Path("messages").write_text(succeed(*ADAPT, *SYSTEMS).err, "utf-8")
    return folder


def test_commands_compare_with_simple_baselines(folder: Path) -> None:
    messages = Path("messages").read_text("utf-8")
    assert "no canonical weight for system=ann, system=bob, system=eve: the prior" in messages
    assert "best single system (eve)" in messages
    (note,) = (line for line in messages.splitlines() if line.startswith("note: "))
    assert note.startswith("note: all choices from 30 adaptation lists with several systems come")
    assert "system eve: use only its candidates" in note
    assert "leave out categorical system" in note
    pool, draws = bpa.read_nbest("lists.jsonl"), read_weight_draws("p.nc")
    assert str(recorded_comparison(draws)) in messages.replace("note: ", "")
    expected = bpa.compare_baselines(pool, draws, choice=bpa.rerank(pool, draws).choice)
    done = succeed(*RERANK)
    shown = done.out
    assert "|sampler:" not in done.err  # `bpa check` prints the signature
    messages = (note.message for note in replace(expected, selected="canonical weights").messages)
    assert shown.endswith("\n".join(["\n", f"{expected}", *messages, ""]))
    assert "adapted weights are better than the canonical weights: mean comet " in shown
    name, before, after = shown.splitlines()[2].split()[:3]
    assert (name, float(after) > float(before) + 0.3) == ("comet", True)
    assert [text.split()[1] for text in Path("out").read_text().splitlines()].count("eve") > 25
    alone = succeed("oracle", "lists.jsonl", "--gain", "comet").out
    assert alone.endswith(f"\n\n{bpa.compare_baselines(pool, gain='comet')}\n")
    assert "adapted" not in alone


def test_draws_that_have_not_converged_are_not_compared(folder: Path) -> None:
    """All that is printed of them is their check."""
    noted = succeed(*LISTS, *ADAPT[4:-1], "imh:draws=5", *SYSTEMS).err
    assert recorded_comparison(read_weight_draws("p.nc")) is not None
    assert "NOT converged" in noted
    for advice in ("baseline", "best single system", "adapted weights", "all choices from"):
        assert advice not in noted


def test_the_share_of_best_choices_is_shown_for_lists_without_judgements(folder: Path) -> None:
    noted = succeed("adapt", "lists.jsonl", "-o", "l.nc", *ADAPT[4:-1], "laplace").err
    comparison = recorded_comparison(read_weight_draws("l.nc"))
    assert comparison is not None
    assert comparison.share_of_best.startswith("of 30 adaptation lists, ")
    assert comparison.share_of_best in noted
    rows = [json.loads(line) for line in Path("lists.jsonl").read_text("utf-8").splitlines()]
    for row in rows:
        for candidate in row["candidates"]:
            del candidate["features"]["comet"]
    Path("new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    shown = succeed("rerank", "new.jsonl", "-p", "l.nc", "-o", "out").err
    assert comparison.share_of_best in shown


def test_a_lower_column_is_better(folder: Path) -> None:
    shown = succeed("oracle", "lists.jsonl", "--gain", "-comet", "-w", "none").out.splitlines()
    values = [float(row.split()[1].replace("−", "-")) for row in shown[1:4]]
    assert values[1] < values[0] < values[2]
    assert "- column:comet|better:lower" in shown


def test_variances_of_single_features(folder: Path) -> None:
    prior = "isotropic:variance=0.5,single.system=eve=2,single.system=ann=3"
    succeed(*ADAPT, *SYSTEMS, "--prior", prior)
    draws = read_weight_draws("p.nc")
    variance = dict(
        zip(draws.features, draws.draws.constants["prior_variance"].tolist(), strict=True)
    )
    assert variance["logprob"] == 0.5
    assert (variance["system=ann"], variance["system=eve"]) == (3, 2)
    assert variance["system=bob"] == pytest.approx(0.5 * 9 / 2, rel=1e-5)
    refused(*ADAPT, "--gain", "logprob", mention="no weight for")


def write_renamed(name: str, first: int, count: int) -> None:
    """Write a table whose columns have other names, and a missing value."""
    rows = ["q,answer,gpt,claude,good"]
    for k in range(first, first + count):
        for good in (0, 1):
            gpt = "" if k == first else f"{good + 0.1 * (k % 7):.1f}"
            rows.append(f"{k},answer {k} {good},{gpt},{good - 0.2 * (k % 3):.1f},{good}")
    Path(name).write_text("\n".join(rows) + "\n", "utf-8")


@pytest.mark.needs_extras
def test_the_recorded_file_is_read_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_renamed("one.csv", 0, 4)
    write_renamed("two.csv", 4, 4)
    how = ("--format", "csv:id=q,text=answer", "--missing", "gpt=0")
    options = ("-w", "none", "--features", "gpt", "claude", "--gain", "good", "--sampler", "map")
    options += ("--prior", "isotropic:variance=0.5,mean=0")
    adapted = ("adapt", "one.csv", "two.csv", *how, *options, "-q")
    succeed(*adapted, "-o", "p.nc")
    assert read_weight_draws("p.nc").adaptation.reading == {
        "format": how[1],
        "missing": {"gpt": 0.0},
    }
    shown = succeed("judges", "p.nc", "--unchecked")
    assert shown.out.startswith("8 judged lists")
    succeed("adapt", "one.csv", "two.csv", "--like", "p.nc", "-q", "-o", "again.nc")
    assert Path("again.nc").read_bytes() == Path("p.nc").read_bytes()
    chosen = succeed("rerank", "one.csv", "-p", "p.nc", "--unchecked", "-q").out
    assert chosen == succeed("rerank", "one.csv", "-p", "p.nc", "--unchecked", "-q", *how).out
    write_renamed("new.csv", 0, 3)  # a new file of this ending has the same format
    rerank = ("rerank", "new.csv", "-p", "p.nc", "--unchecked", "-q")
    assert succeed(*rerank).out == succeed(*rerank, *how).out
    piped = run("rerank", "-", *rerank[2:], stdin=Path("new.csv").read_text("utf-8"))
    assert piped.out == succeed(*rerank).out
    refused(*rerank, "--format", "csv", mention="no columns id and text")
    Path("new.csv").rename("new.txt")  # one of another ending has its own
    refused("rerank", "new.txt", *rerank[2:], mention="new.txt")
    scored = with_record(
        read_weight_draws("p.nc"), reading={"format": "plain:list_size=2,scores=lm.npy"}
    )
    assert (
        Reading().of_recorded(scored.adaptation, ["new.csv"]) == Reading()
    )  # those scores are of others
    assert Reading().of_recorded(scored.adaptation, ["one.csv"]) != Reading()
    refused("judges", "p.nc", "--format", "tsv", mention="no columns id and text")
