"""The pair of candidates that shows what is learned, for each kind of gain."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from support.command_line import succeed

import bpa_ppl as bpa
from bpa_ppl.extending import observe, oracles, prepare

LISTS = bpa.from_lists(
    [["a cat", "the cat", "hat"]] * 3,
    [[[-2.0], [-1.0], [-4.0]], [[-2.0], [-1.0], [-4.5]], [[-2.0], [-1.0], [-3.0]]],
    ["lm"],
    references=["the cat"] * 3,
)
RANKED = LISTS.with_extras(
    rank=[2, 2, 2, 2, 1, 3, 2, 3, 1], ok=[None, 0, 1, 1, 0, None, 1, 0, None]
)
BETTER = {
    "rank": '"hat" (rank 3) is better than "the cat" (rank 1)',
    "-rank": '"the cat" (rank 1) is better than "hat" (rank 3)',
    "ok": '"hat" (ok 1) is better than "the cat" (ok 0)',
    "ter": '"the cat" (TER 0) is better than "hat" (TER 100)',
    "chrf": '"the cat" (CHRF 100) is better than "hat" (CHRF 26.12)',
}


def learned_from(lists: bpa.NBest, **settings: Any) -> str:
    return observe(prepare(lists, sampler="map", **settings)).example


@pytest.mark.parametrize("gain", BETTER)
def test_gains_show_the_best_and_the_worst_of_the_first_list_that_differs(gain: str) -> None:
    place = int("rank" in gain)  # all have the same rank in the first list
    expected = f"list {place}: {BETTER[gain]}"
    assert learned_from(RANKED, gain=gain) == expected
    assert expected in bpa.describe(RANKED, gain).facts


def test_oracles_that_were_found_before_show_the_first_one() -> None:
    found = oracles(LISTS, "ter")
    shown = learned_from(LISTS, gain=found, likelihood="oracle")
    assert shown == 'list 0: "the cat" is the best candidate by ter'


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"preferences": [None, [[2, 0]], [[1, 0]]]}, '1: "hat" was preferred to "a cat"'),
        ({"ties": [[[0, 2]], None, None]}, '0: no difference between "a cat" and "hat"'),
        (
            {"ties": [[[0, 2]], None, None], "preferences": [None, None, [[1, 0]]]},
            '2: "the cat" was preferred to "a cat"',
        ),
        ({"rankings": [[[2, 0, 1]], None, None]}, '0: "hat" was preferred to "the cat"'),
    ],
)
def test_answers_show_which_candidate_was_preferred(answers: Any, expected: str) -> None:
    lists = LISTS.with_sentence_extras(**answers)
    assert learned_from(lists, likelihood="preference") == f"list {expected}"


def test_texts_are_shortened_to_one_line_and_lists_have_their_ids() -> None:
    texts = ["a\nb" + "x" * 100 + "end", "c"]
    lists = bpa.from_lists([texts], [[[1.0], [0.0]]], ["lm"], extras={"mqm": [[-1.5, -5.0]]})
    lists = lists.with_sentence_extras(id=["q7"])
    shown = learned_from(lists, gain="mqm")
    assert shown.startswith(r'list q7: "a\nbxx')
    assert shown.endswith('xend" (mqm -1.5) is better than "c" (mqm -5)')
    assert len(shown) < 150


def test_python_logs_it_and_commands_print_it_unless_they_are_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    ranks = [[1, 3], [3, 1], [1, 3], [2, 1]]
    lines = [
        json.dumps({"id": f"q{k}", "text": f"{text} {k}", "lm": score, "rank": rank})
        for k, pair in enumerate(ranks)
        for text, score, rank in zip(("yes", "no"), (float(k), 1.0), pair, strict=True)
    ]
    Path("dev.jsonl").write_text("\n".join(lines), "utf-8")
    adapt = ("adapt", "dev.jsonl", "-w", "none", "--features", "lm", "--sampler", "map")
    adapt = (*adapt, "-o", "p.nc", "--gain", "rank")
    expected = 'list q0: "no 0" (rank 3) is better than "yes 0" (rank 1)'
    assert "is better than" not in succeed(*adapt, "-q").err
    assert f"- {expected}" in succeed("lists", "dev.jsonl", "--gain", "rank").out.splitlines()
    caplog.set_level(logging.INFO, "bpa_ppl")
    bpa.adapt(bpa.read_nbest("dev.jsonl"), gain="rank", features="lm", sampler="map")
    assert expected in caplog.messages
