"""`bpa learn-prior`, and `bpa adapt` with a learned prior or a posterior as its prior."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.command_line import succeed

import bpa_ppl as bpa
from bpa_ppl.models.priors.prior import Prior
from bpa_ppl.posterior.files import read_draws
from bpa_ppl.posterior.record import ComponentRecord, Observed, Record


def write_shifted(path: Path, shift: float, out: str, more: bool = False) -> None:
    """Write a posterior of the demo's features, with draws around shifted weights."""
    original = read_draws(path)
    names = (*original.features, *(("LengthWords",) if more else ()))
    mean = np.append(original.canonical, [0.0] * more)  # type: ignore[arg-type]
    variance = np.full(len(names), 0.1)
    rng = np.random.default_rng(len(out))
    drawn = mean + shift + 0.1 * rng.normal(size=(2, 1000, len(names)))
    record = Record(likelihood=ComponentRecord("oracle"), observed=Observed(sentences=12))
    constants = {"canonical": mean, "prior_mean": mean, "prior_variance": variance}
    draws = bpa.Draws({"weights": drawn}, names, constants=constants, record=record)
    bpa.write_posterior(draws, out)


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
    done = succeed("learn-prior", "leaflets.nc", "-o", "one.json", "--without", "LengthWords")
    assert "LengthWords" not in (Prior.read("one.json").names or ())
    assert "LengthWords" not in done.err


@pytest.mark.parametrize("name", ["talks.nc", "talks"])
def test_a_posterior_is_the_prior_of_more_sentences(folder: Path, name: str) -> None:
    """Its Gaussian, whatever the file is called; the new posterior records it."""
    write_shifted(folder / "good.nc", 0.2, name)
    adapt = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "--sampler", "map", "-q")
    succeed(*adapt, "--prior", name, "-o", "new.nc")
    lists, weights = bpa.read_nbest("nbest", references="ref"), bpa.read_weights("moses.ini")
    prior = Prior.of(read_draws(name))
    bpa.write_posterior(bpa.adapt(lists, weights, prior=prior, sampler="map"), "python.nc")
    assert Path("python.nc").read_bytes() == Path("new.nc").read_bytes()
    Path(name).unlink()  # the prior is in the new posterior
    succeed("adapt", "nbest", "-r", "ref", "--like", "new.nc", "-o", "again.nc", "-q")
    assert Path("again.nc").read_bytes() == Path("new.nc").read_bytes()
