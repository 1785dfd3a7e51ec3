"""Lists as people have them, on the command line: partly judged, with ids of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from judged_lists import judged_lists

from bpa_ppl.posterior import read_draws

ADAPT = ("adapt", "lists.jsonl", "-w", "none", "--sampler", "map", "-o", "p.nc")


def records(count: int, seed: int, missing: int = 0) -> list[dict[str, Any]]:
    """Return sentences with text ids; of every other one, the first `missing` have no judgement."""
    lists = judged_lists(count, seed)
    found = []
    for s in range(count):
        candidates = [
            {"text": lists.text(row), "logprob": float(lists.features[row, 0])}
            | ({} if s % 2 and k < missing else {"mqm": float(lists.features[row, 1])})
            for k, row in enumerate(range(lists.offsets[s], lists.offsets[s + 1]))
        ]
        found.append({"id": f"doc-{s}", "candidates": candidates})
    return found


def written(name: str, lines: list[dict[str, Any]]) -> None:
    Path(name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written("lists.jsonl", records(20, seed=1))


def test_oracle_counts_lists_with_fewer_than_two_judged() -> None:
    written("partly.jsonl", records(20, seed=1, missing=2))
    done = run("oracle", "partly.jsonl", "--metric", "mqm", "-o", "out")
    assert done.code == 0
    assert "mqm is missing for 20 of 60 candidates: kept as a judgement" in done.err
    assert "10 lists left out: fewer than two candidates are judged" in done.out
    assert len(Path("out").read_text().splitlines()) == 20


def test_new_lists_with_a_human_score_are_reranked_alike() -> None:
    sampled = [word if word != "map" else "laplace" for word in ADAPT]
    assert run(*sampled, "--gain", "mqm", "-q").code == 0
    new = records(12, seed=2)
    with_more = [
        {**line, "candidates": [{**one, "da": k} for k, one in enumerate(line["candidates"])]}
        for line in new
    ]
    written("new.jsonl", new)
    written("more.jsonl", with_more)
    plain, more = (run("rerank", f"{name}.jsonl", "-p", "p.nc") for name in ("new", "more"))
    assert plain.code == more.code == 0
    assert more.out == plain.out
    notes = [line for line in more.err.splitlines() if line.startswith("note: ")]
    assert len(notes) == 1
    assert notes[0].startswith("note: more.jsonl: da not used: the posterior has no weight for it")
    for command in (("update", "p.nc", "more.jsonl", "-o", "q.nc"), ("report", "p.nc")):
        lists = ("--lists", "more.jsonl", "-o", "page.html") if command[0] == "report" else ()
        done = run(*command, *lists)
        assert done.code == 0, done.err
        assert "da not used" in done.err


def test_a_new_list_without_a_feature_is_an_error() -> None:
    run(*ADAPT, "--gain", "mqm", "-q")
    lines = records(3, seed=2)
    del lines[1]["candidates"][0]["logprob"]
    written("new.jsonl", lines)
    done = run("rerank", "new.jsonl", "-p", "p.nc")
    assert done.code == 2
    assert "no feature logprob (logprob: missing for some candidates)" in done.err


def test_columns_that_are_features_are_chosen_and_recorded() -> None:
    lines = records(20, seed=1)
    for line in lines:
        for k, one in enumerate(line["candidates"]):
            one |= {"qe_a": k, "qe_b": -k, "place": k}
    written("lists.jsonl", lines)
    for options, expected in (
        (("--exclude", "place"), ("logprob", "qe_a", "qe_b")),
        (("--exclude", "place", "--exclude", "qe_b"), ("logprob", "qe_a")),
        (("--features", "logprob", "--features", "qe_a"), ("logprob", "qe_a")),
        (("--features", "qe_a", "--exclude", "mqm"), ("qe_a",)),
    ):
        done = run(*ADAPT, "--gain", "mqm", *options, "-q")
        assert done.code == 0, done.err
        assert read_draws("p.nc").features == expected
        new = run("rerank", "lists.jsonl", "-p", "p.nc", "-o", "out", "-q")
        assert new.code == 0
        assert "not used" not in new.err
    refused = run(*ADAPT, "--gain", "mqm", "--features", "qe_c")
    message = "qe_c is not a feature of the lists: choose from logprob, mqm, qe_a, qe_b, place"
    assert message in refused.err
    del lines[0]["candidates"][0]["qe_a"]
    written("lists.jsonl", lines)
    refused = run(*ADAPT, "--gain", "mqm", "--features", "qe_a")
    assert (
        "qe_a is not a feature of the lists (it is not a number, or missing for some" in refused.err
    )


@pytest.mark.parametrize("name", ["details.jsonl", "details.jsonl.gz", "details.tsv"])
def test_details_have_the_ids_of_the_user(name: str) -> None:
    import gzip

    run(*ADAPT, "--gain", "mqm", "-q")
    done = run("rerank", "lists.jsonl", "-p", "p.nc", "-o", "out", "--details", name)
    assert done.code == 0
    assert "expected TER" not in done.err  # texts cannot be compared by a human score
    data = Path(name).read_bytes()
    lines = (gzip.decompress(data) if name.endswith(".gz") else data).decode().splitlines()
    texts = Path("out").read_text().splitlines()
    if name.endswith(".tsv"):
        header, *rows = [line.split("\t") for line in lines]
        assert header[-3:] == ["better", "worse", "expected_mqm"]
        assert [row[0] for row in rows] == [f"doc-{s}" for s in range(20)]
        return
    found = list(map(json.loads, lines))
    assert [one["id"] for one in found] == [f"doc-{s}" for s in range(20)]
    assert [one["text"] for one in found] == texts
    candidates = [line["candidates"] for line in records(20, seed=1)]
    for one, those in zip(found, candidates, strict=True):
        assert those[one["choice"]]["text"] == one["text"]
        assert those[one["canonical_choice"]]["text"] == one["canonical_text"]
        assert one["changed"] is (one["text"] != one["canonical_text"])
        assert 0 < one["probability"] <= 1
        assert set(one) == {
            *("id", "text", "choice", "changed", "probability", "better", "worse"),
            "expected_mqm",
            *("canonical_text", "canonical_choice", "canonical_probability"),
        }


def test_equal_weights_need_no_judgement_and_judgements_improve_on_them() -> None:
    """The references inside the lists are not used."""
    written("new.jsonl", [r | {"references": ["a"]} for r in records(20, seed=3)])
    equal = ("--weights", "equal", "--lower-is-better", "logprob", "-o", "p.nc")
    done = run("adapt", "new.jsonl", *equal, "--exclude", "mqm", "--no-sentences")
    assert (done.code, read_draws("p.nc").attrs["adaptation_sentences"]) == (0, 0)
    assert read_draws("p.nc").canonical[0] < 0
    assert run("rerank", "new.jsonl", "-p", "p.nc", "-o", "out").code == 0
    assert run("adapt", "lists.jsonl", *equal, "--gain", "mqm", "--sampler", "map").code == 0
    assert read_draws("p.nc").attrs["canonical_weights"] == "equal"
    refused = run("adapt", "new.jsonl", *equal, "--lower-is-better", "comet", "--no-sentences")
    assert refused.code == 2
    assert "comet is not a feature" in refused.err


def test_ties_are_shared_where_nothing_decides() -> None:
    lines = records(20, seed=1)
    for line in lines:
        for candidate in line["candidates"][:2]:
            candidate["mqm"] = 9.0
    written("tied.jsonl", lines)
    assert (
        "20 of 20 oracles tied; ties shared" in run("oracle", "tied.jsonl", "--metric", "mqm").out
    )
    done = run("adapt", "tied.jsonl", "-w", "none", "--gain", "mqm", "-o", "p.nc")
    assert "20 of 20 lists have several best candidates" in done.err
    for line in lines:
        for candidate in line["candidates"]:
            candidate["mqm"] = 0.0
    written("same.jsonl", lines)
    done = run("adapt", "same.jsonl", "-w", "none", "--gain", "mqm", "-o", "p.nc")
    assert (done.code, "nothing can be learned from them" in done.err) == (2, True)
