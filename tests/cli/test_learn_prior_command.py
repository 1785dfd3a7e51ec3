"""`bpa learn-prior`, and `bpa adapt` from what it wrote, with no sentence at all."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import run

import bpa_ppl as bpa
from bpa_ppl.models import Prior

ADDED = "length"


def wider(path: Path, shift: float, out: str, more: bool = False) -> None:
    """Write a posterior of the demo's features, with draws around weights of its own."""
    known = bpa.as_draws(bpa.read_posterior(path))
    names = (*known.features, *(("LengthWords",) if more else ()))
    mean = np.append(known.canonical, [0.0] * more)  # type: ignore[arg-type]
    variance = np.full(len(names), 0.1)
    rng = np.random.default_rng(len(out))
    drawn = mean + shift + 0.1 * rng.normal(size=(2, 1000, len(names)))
    attrs = {"likelihood": {"name": "oracle"}, "adaptation_sentences": 12}
    constants = {"canonical": mean, "prior_mean": mean, "prior_variance": variance}
    bpa.write_posterior(bpa.Draws({"weights": drawn}, names, constants=constants, attrs=attrs), out)


@pytest.fixture
def learned(folder: Path) -> Path:
    """The folder with two posteriors, of which one has a feature more, and a prior of them."""
    wider(folder / "good.nc", 0.2, "talks.nc")
    wider(folder / "good.nc", 0.3, "leaflets.nc", more=True)
    done = run("learn-prior", "talks.nc", "leaflets.nc", "-o", "prior.json", "--report", "p.html")
    assert done.code == 0, done.err
    assert "of leaflets alone" in done.err
    return folder


def test_the_file_is_a_prior_and_says_where_it_was_learned(learned: Path) -> None:
    prior = Prior.read("prior.json")
    assert prior.names[-1] == "LengthWords"
    said = json.loads((learned / "prior.json").read_text())
    assert list(said["domains"]) == ["talks", "leaflets"]
    assert said["domains"]["talks"]["sentences"] == 12
    canonical = bpa.read_weights("moses.ini")
    assert all(said["canonical"][name] == canonical[name] for name in prior.names[:-1])
    with pytest.warns(bpa.BpaWarning, match="only some of the domains have LengthWords"):
        same = bpa.learn_prior(["talks.nc", "leaflets.nc"])
    np.testing.assert_allclose(prior.mean, same.mean)
    np.testing.assert_allclose(prior.covariance, same.covariance)
    page = (learned / "p.html").read_text()
    assert "weights are shared by all domains" in page
    assert "leaflets" in page


def test_features_that_the_new_lists_lack_are_left_out(learned: Path) -> None:
    done = run("learn-prior", "leaflets.nc", "-o", "one.json", "--without", "LengthWords")
    assert done.code == 0, done.err
    assert "LengthWords" not in (Prior.read("one.json").names or ())
    assert "LengthWords" not in done.err


def test_no_sentences_gives_the_prior(learned: Path) -> None:
    arguments = ("adapt", "nbest", "-w", "moses.ini", "--prior", "prior.json", "--no-sentences")
    more = ("--add", ADDED, "--sampler", "laplace", "--likelihood", "margin", "-o", "zero.nc")
    done = run(*arguments, *more)
    assert done.code == 0, done.err
    draws, prior = bpa.as_draws(bpa.read_posterior("zero.nc")), Prior.read("prior.json")
    prior = prior.matched(draws.features)
    np.testing.assert_allclose(draws.constants["mode"], prior.mean, atol=1e-6)
    np.testing.assert_allclose(draws.deviation, np.sqrt(np.diag(prior.covariance)), rtol=0.2)
    assert draws.attrs["adaptation_sentences"] == 0
    assert run("rerank", "nbest", "-p", "zero.nc", "-o", "out").code == 0
    assert len(Path("out").read_text().splitlines()) == 12
    assert run("weights", "zero.nc", "-o", "weights.json", "--point", "mode").code == 0


def test_features_missing_from_the_prior_or_the_lists(folder: Path) -> None:
    """Those of the lists alone are isotropic, which is told; those of the prior alone are gone."""
    wider(folder / "good.nc", 0.2, "talks.nc")
    wider(folder / "good.nc", 0.3, "leaflets.nc")
    assert run("learn-prior", "talks.nc", "leaflets.nc", "-o", "prior.json").code == 0
    learned = Prior.read("prior.json")
    names = (*learned.names[1:], "elsewhere", learned.names[0])  # in another order, with one more
    wide = learned.completed(Prior.isotropic(dict.fromkeys(names, 0.0), 4.0))
    wide.write("prior.json")
    arguments = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "--prior", "prior.json")
    done = run(*arguments, "--add", ADDED, "--sampler", "map", "-o", "new.nc")
    assert done.code == 0, done.err
    assert "LengthWords (0 ± " in done.err
    draws = bpa.as_draws(bpa.read_posterior("new.nc"))
    found = draws.constants["prior_covariance"]
    at = draws.features.index("LengthWords")
    assert "elsewhere" not in draws.features
    assert draws.attrs["prior"] == {"name": "Gaussian", "isotropic": ["LengthWords"]}
    assert np.count_nonzero(found[at]) == 1
    rest = [name for name in draws.features if name != "LengthWords"]
    inside = np.delete(np.delete(found, at, 0), at, 1)
    given_zero = wide.conditioned({"elsewhere": 0.0}).matched(rest)
    np.testing.assert_allclose(inside, given_zero.covariance)


def test_files_without_a_common_feature_are_refused(folder: Path) -> None:
    wider(folder / "good.nc", 0.2, "talks.nc")
    own = bpa.as_draws(bpa.read_posterior("talks.nc"))
    names = tuple(f"Other{number}" for number in range(len(own.features)))
    bpa.write_posterior(replace(own, features=names), "films.nc")
    done = run("learn-prior", "talks.nc", "films.nc", "-o", "prior.json")
    assert (done.code, done.err.count("\n"), Path("prior.json").exists()) == (2, 1, False)
    assert "the posteriors talks and films have no feature in common" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("learn-prior", "good.nc", "-o", "p.json"), "good: it holds only its mode"),
        (("learn-prior", "good.nc", "none.nc", "-o", "p.json"), "none.nc: no such file"),
        (
            ("adapt", "nbest", "-w", "moses.ini", "--no-sentences", "-r", "ref", "-o", "z.nc"),
            "--no-sentences takes no --references",
        ),
    ],
)
def test_bad_usage_writes_nothing(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    before = set(folder.iterdir())
    done = run(*arguments)
    assert done.code == 2
    assert said in done.err
    assert set(folder.iterdir()) == before
