"""What is sampled, chosen on the command line: likelihoods, priors, and the second set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import run

import bpa_ppl
from bpa_ppl.models import Margin, Prior

BASE = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "-o", "p.nc", "-q", "--sampler", "map")


def adapted(**options: object) -> bpa_ppl.Draws:
    lists = bpa_ppl.read_nbest("nbest", references="ref")
    weights = bpa_ppl.read_weights("moses.ini")
    return bpa_ppl.as_draws(bpa_ppl.adapt(lists, weights, sampler="map", **options))


def written() -> bpa_ppl.Draws:
    return bpa_ppl.as_draws(bpa_ppl.read_posterior("p.nc"))


def test_a_likelihood_with_a_setting(folder: Path) -> None:
    assert run(*BASE, "--likelihood", "margin:gamma=4").code == 0
    assert written().attrs["likelihood"] == {"name": "margin", "gamma": 4}
    np.testing.assert_array_equal(written().mean, adapted(likelihood=Margin(gamma=4.0)).mean)


def test_the_paper_s_model_by_one_option(folder: Path) -> None:
    short = ("--set", "draws=50", "--set", "warmup=50")
    done = run(*BASE[:-2], "--preset", "published", *short)
    assert done.code == 0, done.err
    assert written().attrs["sampler"] == "rwm-isotropic"
    assert written().attrs["likelihood"] == {"name": "oracle"}
    assert run(*BASE).code == 0
    assert written().attrs["likelihood"] == {"name": "margin", "gamma": 2}


def test_a_prior_from_a_file(folder: Path) -> None:
    canonical = bpa_ppl.read_weights("moses.ini")
    free = {name: value for name, value in canonical.items() if name != "UnknownWordPenalty0"}
    matrix = 0.05 * np.eye(len(free)) + 0.02
    Prior.gaussian(free, matrix).write("prior.json")
    assert run(*BASE, "--prior", "prior.json").code == 0
    assert set(written().features) == set(free)
    np.testing.assert_allclose(written().constants["prior_covariance"], matrix)


def test_a_family_of_priors_with_a_setting(folder: Path) -> None:
    assert run(*BASE, "--prior", "isotropic:variance=0.3").code == 0
    np.testing.assert_array_equal(written().mean, adapted(prior_variance=0.3).mean)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--likelihood", "hinge"), "unknown likelihood 'hinge': choose one of oracle, margin"),
        (("--likelihood", "margin:delta=1"), "has no setting delta: it has gamma"),
        (
            ("--likelihood", "margin:gamma"),
            "settings of --likelihood margin are written NAME=VALUE, not 'gamma'",
        ),
        (
            ("--likelihood", "margin:gamma=-1"),
            "gamma must be a number ≥ 0 or nothing, not -1",
        ),
        (("--preset", "paper"), "unknown preset 'paper': choose one of published"),
        (("--prior", "flat"), "unknown prior 'flat': choose one of isotropic"),
        (("--prior", "none.json"), "none.json: no such file"),
        (("--extra", "nbest"), "--extra and --extra-references go together"),
    ],
)
def test_what_makes_no_sense_is_refused(
    folder: Path, options: tuple[str, ...], message: str
) -> None:
    done = run(*BASE, *options)
    assert done.code == 2
    assert message in done.err
    assert not Path("p.nc").exists()


def test_weight_trace_takes_the_second_set(folder: Path) -> None:
    command = [*BASE[:-1], "weight-trace", "--extra", "nbest", "--extra-references", "ref"]
    assert run(*command, "--set", "restarts=2", "--set", "delta=20").code == 0
    assert written().kind == "weighted"
    settings = written().attrs["settings"]
    assert (settings["restarts"], settings["delta"]) == (2, 20)
    assert settings["visited"].endswith(" vectors")
    assert written().attrs["extra"] == "nbest"
    assert written().attrs["likelihood_exponent"] == 1 / 20
    assert "weight-trace needs the lists" in run(*BASE[:-1], "weight-trace").err
