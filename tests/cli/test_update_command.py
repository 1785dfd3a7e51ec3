"""`bpa update` and `bpa next`: a posterior grows, and says what it wants to know next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import run

import bpa_ppl as bpa

UPDATE = ("update", "drawn.nc", "rest", "-r", "rest.ref", "-o", "new.nc")


@pytest.fixture
def work(folder: Path) -> Path:
    """The current folder, with draws around the mode of its posterior, and four lists more."""
    mode = bpa.as_draws(bpa.read_posterior("good.nc"))
    weights = mode.flat[0] + 0.03 * np.random.default_rng(0).normal(
        size=(4, 500, mode.flat.shape[1])
    )
    drawn = replace(
        mode,
        values={"weights": weights},
        kind="chains",
        log_density=None,
        log_likelihood={},
        log_prior={},
        observed={},
        sentence_ids=None,
        statistics={},
        constants={n: v for n, v in mode.constants.items() if n != "oracle_score"},
        attrs={**mode.attrs, "sampler": "imh"},
    )
    bpa.write_posterior(drawn, "drawn.nc")
    lists = bpa.read_nbest("nbest", references="ref")
    rest = bpa.NBest.concatenate([lists[8:]], renumber=True)
    bpa.write_nbest(rest, "rest", format="moses")
    one = next(name for name in lists.feature_names if name.startswith("Distortion"))
    bpa.write_nbest(rest.without_features(one), "few", format="moses")
    lines = (folder / "ref").read_text().splitlines(keepends=True)
    (folder / "rest.ref").write_text("".join(lines[8:]))
    return folder


def test_update_adds_sentences_and_extends_the_record(work: Path) -> None:
    done = run(*UPDATE, "--adaptation-lists", "nbest", "--adaptation-references", "ref")
    assert done.code == 0, done.err
    assert "4 sentences added: Pareto k̂" in done.err
    assert "converged" in done.err
    new, old = (bpa.as_draws(bpa.read_posterior(name)) for name in ("new.nc", "drawn.nc"))
    assert new.attrs["adaptation_sentences"] == 16
    assert new.sentence_ids.tolist() == [0, 1, 2, 3]
    assert new.attrs["update_command"].startswith("bpa update")
    assert new.attrs["command"] == old.attrs["command"]
    assert [step["sentences"] for step in new.attrs["updates"]] == [4]
    assert not np.array_equal(new.mean, old.mean)
    assert run("check", "new.nc").code == 0
    assert run("rerank", "nbest", "-p", "new.nc", "-o", "out").code == 0
    # In place, and once more: nothing is in the way.
    again = run("update", "new.nc", "rest", "-r", "rest.ref", "-o", "new.nc", "-q")
    assert (again.code, again.out, again.err) == (0, "", "")
    assert bpa.as_draws(bpa.read_posterior("new.nc")).attrs["adaptation_sentences"] == 20


def test_a_damaged_file_is_refused(work: Path) -> None:
    (work / "drawn.nc").write_bytes((work / "drawn.nc").read_bytes()[:2000])
    done = run(*UPDATE)
    assert done.code == 2
    assert "drawn.nc" in done.err
    assert "Traceback" not in done.err
    assert not (work / "new.nc").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("update", "drawn.nc", "rest", "-o", "new.nc"), 2, "--references"),
        (("update", "good.nc", "rest", "-r", "rest.ref", "-o", "new.nc"), 2, "single point"),
        (("update", "poor.nc", "rest", "-r", "rest.ref", "-o", "new.nc"), 3, "--unchecked"),
        ((*UPDATE, "--metric", "bleu"), 2, "another metric, "),
        ((*UPDATE, "--adaptation-references", "ref"), 2, "go with --adaptation-lists"),
        (
            (*UPDATE, "--adaptation-lists", "rest", "--adaptation-references", "rest.ref"),
            2,
            "adapted to 12",
        ),
        ((*UPDATE, "--sampler", "gibbs"), 2, "unknown sampler"),
        (
            ("update", "drawn.nc", "few", "-r", "rest.ref", "-o", "new.nc"),
            2,
            "no feature Distortion0",
        ),
        (("update", "drawn.nc", "none", "-r", "rest.ref", "-o", "new.nc"), 2, "none"),
        (("next", "good.nc", "rest"), 2, "single point"),
        (("next", "poor.nc", "rest"), 3, "--unchecked"),
        (("next", "drawn.nc", "rest", "--criterion", "luck"), 2, "unknown criterion"),
        (("next", "drawn.nc", "rest", "--count", "0"), 2, "count"),
    ],
)
def test_errors_write_nothing(work: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    before = set(work.iterdir())
    done = run(*arguments)
    assert done.code == code, done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert set(work.iterdir()) == before


def test_next_lists_sentences_in_order(work: Path) -> None:
    done = run("next", "drawn.nc", "nbest", "--count", "3", "-q")
    assert done.code == 0, done.err
    head, *rows = [line.split("\t") for line in done.out.splitlines()]
    assert head == ["rank", "sentence", "information", "entropy", "text"]
    lists = bpa.read_nbest("nbest")
    asked = bpa.next_sentences(lists, bpa.read_posterior("drawn.nc"))
    best = asked.ranking[:3]
    assert [int(row[1]) for row in rows] == lists.sentence_ids[best].tolist()
    assert [float(row[2]) for row in rows] == pytest.approx(asked.information[best], abs=1e-4)
    assert rows[0][4] == lists.chosen([0] * len(lists))[best[0]].strip()
    sources = [f"source {n}" for n in range(12)]
    (work / "src").write_text("\n".join([*sources, ""]))
    more = ("--sources", "src", "-o", "table", "--criterion", "entropy")
    assert run("next", "drawn.nc", "nbest", *more).code == 0
    first = (work / "table").read_text().splitlines()[1].split("\t")
    assert first[4] == f"source {np.argmax(asked.entropy)}"
