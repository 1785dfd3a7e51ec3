"""`bpa update`, `bpa learn-prior`, and `bpa adapt` with a learned prior."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import succeed, write_draws_around

import bpa_ppl as bpa
from bpa_ppl.models import Prior
from bpa_ppl.posterior import read_draws

UPDATE = ("update", "drawn.nc", "rest", "-r", "rest.ref", "-o", "new.nc")


@pytest.fixture
def work(folder: Path) -> Path:
    """The current folder, with draws around the mode of its posterior, and four lists more."""
    write_draws_around(folder / "good.nc", folder / "drawn.nc", (4, 500), "imh", likelihood=False)
    lists = bpa.read_nbest("nbest", references="ref")
    rest = bpa.NBest.concatenate([lists[8:]], renumber=True)
    bpa.write_nbest(rest, "rest", format="moses")
    lines = (folder / "ref").read_text().splitlines(keepends=True)
    (folder / "rest.ref").write_text("".join(lines[8:]))
    return folder


def test_update_adds_sentences_and_extends_the_record(work: Path) -> None:
    done = succeed(*UPDATE, "--adaptation-lists", "nbest", "--adaptation-references", "ref")
    assert "4 sentences added: Pareto k̂" in done.err
    assert "converged" in done.err
    new, old = read_draws("new.nc"), read_draws("drawn.nc")
    assert new.attrs["adaptation_sentences"] == 16
    assert new.sentence_ids.tolist() == [0, 1, 2, 3]
    assert [step["sentences"] for step in new.attrs["updates"]] == [4]
    assert not np.array_equal(new.mean, old.mean)
    succeed("check", "new.nc")
    succeed("rerank", "nbest", "-p", "new.nc", "-o", "out")
    # The output may be the input.
    again = succeed("update", "new.nc", "rest", "-r", "rest.ref", "-o", "new.nc", "-q")
    assert (again.out, again.err) == ("", "")
    assert read_draws("new.nc").attrs["adaptation_sentences"] == 20


def write_shifted(path: Path, shift: float, out: str, more: bool = False) -> None:
    """Write a posterior of the demo's features, with draws around shifted weights."""
    original = read_draws(path)
    names = (*original.features, *(("LengthWords",) if more else ()))
    mean = np.append(original.canonical, [0.0] * more)  # type: ignore[arg-type]
    variance = np.full(len(names), 0.1)
    rng = np.random.default_rng(len(out))
    drawn = mean + shift + 0.1 * rng.normal(size=(2, 1000, len(names)))
    attrs = {"likelihood": {"name": "oracle"}, "adaptation_sentences": 12}
    constants = {"canonical": mean, "prior_mean": mean, "prior_variance": variance}
    bpa.write_posterior(bpa.Draws({"weights": drawn}, names, constants=constants, attrs=attrs), out)


LEARN = ("learn-prior", "talks.nc", "leaflets.nc", "-o", "prior.json")


@pytest.fixture
def learned(folder: Path) -> Path:
    """The folder with two posteriors, of which one has a feature more, and a prior of them."""
    write_shifted(folder / "good.nc", 0.2, "talks.nc")
    write_shifted(folder / "good.nc", 0.3, "leaflets.nc", more=True)
    assert "of leaflets alone" in succeed(*LEARN).err
    return folder


def test_the_file_is_a_prior_and_records_its_domains(learned: Path) -> None:
    prior = Prior.read("prior.json")
    assert prior.names[-1] == "LengthWords"
    record = json.loads((learned / "prior.json").read_text())
    assert list(record["domains"]) == ["talks", "leaflets"]
    assert record["domains"]["talks"]["sentences"] == 12
    canonical = bpa.read_weights("moses.ini")
    assert all(record["canonical"][name] == canonical[name] for name in prior.names[:-1])
    with pytest.warns(bpa.BpaWarning, match="LengthWords"):
        same = bpa.learn_prior(["talks.nc", "leaflets.nc"])
    np.testing.assert_allclose(prior.mean, same.mean)
    np.testing.assert_allclose(prior.covariance, same.covariance)
    succeed(*LEARN, "--report", "p.html")
    assert "leaflets" in (learned / "p.html").read_text()
    done = succeed("learn-prior", "leaflets.nc", "-o", "one.json", "--without", "LengthWords")
    assert "LengthWords" not in (Prior.read("one.json").names or ())
    assert "LengthWords" not in done.err
