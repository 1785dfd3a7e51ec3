"""Preferences on the command line: no references, no weights, a posterior all the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import run

import bpa_ppl
from bpa_ppl.posterior import as_draws


@pytest.fixture
def compared(folder: Path) -> Path:
    """The folder, with lists whose candidates with more of `kiwi` were preferred, as a rule."""
    rng = np.random.default_rng(4)
    for name, first in (("first", 0), ("second", 40)):
        lines = []
        for s in range(first, first + 40):
            kiwi, noise = rng.normal(size=(2, 3)).round(3).tolist()
            worth = kiwi + rng.logistic(size=3) / 2
            ranking = np.argsort(-worth).tolist()
            candidates = [
                {"id": label, "text": f"{s} {label}", "kiwi": k, "noise": n}
                for label, k, n in zip("ABC", kiwi, noise, strict=True)
            ]
            given = {"preferences": [["ABC"[k] for k in ranking[::2]]], "rankings": [ranking[:2]]}
            lines.append(json.dumps({"id": s, **given, "candidates": candidates}))
        (folder / f"{name}.jsonl").write_text("\n".join([*lines, ""]))
    return folder


@pytest.mark.usefixtures("compared")
def test_adapt_check_update_and_rerank() -> None:
    done = run("adapt", "first.jsonl", "-w", "none", "-o", "p.nc", "--set", "draws=500")
    assert done.code == 0, done.err
    before = as_draws(bpa_ppl.read_posterior("p.nc"))
    assert before.attrs["likelihood"]["name"] == "preference"
    assert before.attrs["comparisons"] == {
        "lists": 40, "preferences": 40, "ties": 0, "rankings": 40
    }  # fmt: skip
    assert before.mean[0] > 3 * before.deviation[0]
    assert run("check", "p.nc").code == 0
    assert run("report", "p.nc", "-o", "p.html").code == 0
    grown = run("update", "p.nc", "second.jsonl", "-o", "q.nc")
    assert grown.code == 0, grown.err
    assert "80 sentences added" in grown.err
    after = as_draws(bpa_ppl.read_posterior("q.nc"))
    assert after.deviation[0] < before.deviation[0]
    chosen = run("rerank", "second.jsonl", "-p", "q.nc", "-o", "out", "--first-id", 40)
    assert chosen.code == 0, chosen.err
    lists = bpa_ppl.read_nbest("second.jsonl")
    best = lists.chosen(lists.best(lists.features[:, 0]))
    assert np.mean(np.array(Path("out").read_text().splitlines()) == best) > 0.8


@pytest.mark.usefixtures("compared")
def test_settings_of_the_likelihood_and_calibration() -> None:
    chosen = ("--likelihood", "preference:slip=0.1,nu=0.5", "--sampler", "map")
    assert run("adapt", "first.jsonl", "-w", "none", *chosen, "-o", "p.nc").code == 0
    recorded = bpa_ppl.read_posterior("p.nc").attrs["likelihood"]
    assert json.loads(recorded) == {"name": "preference", "slip": 0.1, "nu": 0.5}
    found = run(
        "calibrate", "first.jsonl", "-w", "none", "--likelihood", "preference",
        "--samplers", "laplace", "--replications", "20", "-q",
    )  # fmt: skip
    assert "kiwi" in found.out
    assert found.code == 0, found.out


@pytest.mark.usefixtures("compared")
def test_a_wrong_preference_is_one_line() -> None:
    text = Path("first.jsonl").read_text()
    Path("wrong.jsonl").write_text(text.replace('"rankings": [[', '"rankings": [[7, ', 1))
    done = run("adapt", "wrong.jsonl", "-w", "none", "-o", "p.nc")
    assert done.code == 2
    assert "wrong.jsonl: rankings[0] of sentence 0 names candidate 7 of a list of 3" in done.err
