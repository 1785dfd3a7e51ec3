"""`bpa judge` and `bpa adapt --judgements`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command_line import succeed
from support.judged_pairs import compared_lists

import bpa_ppl as bpa
from bpa_ppl.judging.session import Session
from bpa_ppl.posterior.files import read_draws


def test_answers_are_adapted_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two raters."""
    monkeypatch.chdir(tmp_path)
    lists = compared_lists(count=12, size=3)
    lists = lists.without("score").with_features(["score"], lists.extras["score"][:, None])
    bpa.write_nbest(lists, "lists.jsonl")
    lists = bpa.read_nbest("lists.jsonl")
    for rater, answer in (("ann", "first"), ("bob", "tie")):
        session = Session(lists, journal=f"{rater}.jsonl", rater=rater, exclude=["score"])
        session.next()
        session.answer(answer)
    judgements = ("--judgements", "ann.jsonl", "--judgements", "bob.jsonl", "--exclude", "score")
    adapt = ("adapt", "lists.jsonl", "-w", "none", "-o", "posterior.nc", "--sampler", "map")
    assert "1 pair in common, and 0 alike" in succeed(*adapt, *judgements).err
    comparisons = read_draws("posterior.nc").record.observed.comparisons
    assert (comparisons["preferences"], comparisons["ties"]) == (1, 1)
