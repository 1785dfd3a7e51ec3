"""`bpa judge` and `bpa adapt --judgements`."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import refused, succeed
from judged_pairs import compared_lists

import bpa_ppl as bpa
from bpa_ppl.judging import Session


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Judged lists, in the working folder."""
    monkeypatch.chdir(tmp_path)
    lists = compared_lists(count=12, size=3)
    lists = lists.without("score").with_features(["score"], lists.extras["score"][:, None])
    bpa.write_nbest(lists, tmp_path / "lists.jsonl")
    return tmp_path / "lists.jsonl"


def test_answers_are_adapted_to(file: Path) -> None:
    """Of two raters."""
    lists = bpa.read_nbest(file)
    for rater, answer in (("ann", "first"), ("bob", "tie")):
        session = Session(lists, journal=f"{rater}.jsonl", rater=rater, exclude=["score"])
        session.next()
        session.answer(answer)
    judgements = ("--judgements", "ann.jsonl", "--judgements", "bob.jsonl", "--exclude", "score")
    adapt = ("adapt", file.name, "-w", "none", "-o", "posterior.nc", "--sampler", "map")
    assert "1 pair in common, and 0 alike" in succeed(*adapt, *judgements).err
    comparisons = bpa.posterior.read_draws("posterior.nc").attrs["comparisons"]
    assert (comparisons["preferences"], comparisons["ties"]) == (1, 1)


def test_what_is_missing_is_said(file: Path) -> None:
    """In one line, before anything is written."""
    refused("judge", file.name, mention="--output")
    refused("judge", file.name, "-o", "a.jsonl", "--features", "quality2", mention="quality2")
    refused("judge", file.name, "-o", "absent/a.jsonl", mention="absent")
    Path("other.jsonl").write_text("{}\n")
    refused("judge", file.name, "-o", "other.jsonl", mention="other.jsonl:1")
    adapt = ("adapt", file.name, "-w", "none", "-o", "p.nc", "--judgements", "other.jsonl")
    refused(*adapt, mention="other.jsonl:1")
