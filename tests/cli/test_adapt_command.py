"""`bpa adapt`: samplers, likelihoods, priors, several files of lists, temperature."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import refused, succeed

import bpa_ppl as bpa
from bpa_ppl.models import Margin
from bpa_ppl.posterior import read_draws

ADAPT = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "-q")
MAP = (*ADAPT, "--sampler", "map", "-o", "new.nc")


def adapted(**options: object) -> bpa.Draws:
    """What the library finds on the same files."""
    lists = bpa.read_nbest("nbest", references="ref")
    return bpa.as_draws(bpa.adapt(lists, bpa.read_weights("moses.ini"), sampler="map", **options))


def test_the_posterior_is_that_of_the_library(folder: Path) -> None:
    np.testing.assert_array_equal(read_draws("good.nc").mean, adapted().mean)
    likelihood = ("--likelihood", "margin:gamma=3")
    succeed(*MAP, *likelihood, "--prior", "isotropic:variance=0.3")
    ours = read_draws("new.nc")
    margin = Margin(gamma=3.0)
    theirs = adapted(likelihood=margin, prior_variance=0.3)
    np.testing.assert_array_equal(ours.mean, theirs.mean)
    assert ours.attrs["likelihood"] == theirs.attrs["likelihood"]


def test_fixed_features_default_weights_and_standard_output(folder: Path) -> None:
    weights = Path("moses.ini").read_text("utf-8").replace("LM0= 0.109821", "")
    Path("moses.ini").write_text(weights, "utf-8")
    chosen = ("--default", "LM0=0.25", "--fixed", "LM0")
    succeed(*MAP, *chosen)
    assert bpa.point_weights(read_draws("new.nc"))["LM0"] == 0.25
    assert "HDF" in succeed(*MAP, *chosen, "-o", "-").out


def test_an_adaptation_is_repeated(folder: Path) -> None:
    prior = ("--prior", "prior.json", "--seed", 3, "--likelihood", "margin:gamma=3")
    names = ("LM0", "WordPenalty0")
    covariance = 0.1 + np.eye(2) / 3
    bpa.Prior.gaussian(dict.fromkeys(names, 0.25), covariance).write("prior.json")
    succeed(*MAP, *prior)
    like = ("adapt", "nbest", "-r", "ref", "--like", "new.nc", "-o", "again.nc")
    Path("moses.ini").unlink()  # the weights and the prior are in the posterior
    Path("prior.json").unlink()
    assert "the draws are those of new.nc" in succeed(*like).err
    assert Path("again.nc").read_bytes() == Path("new.nc").read_bytes()
    assert "other sampler, seed" in succeed(*like, "--seed", 0, "--sampler", "laplace").err
    assert read_draws("again.nc").attrs["seed"] == 0
    refused("adapt", "nbest", "-r", "ref", "-o", "again.nc", mention="--weights")


def test_weight_trace_takes_the_second_set(folder: Path) -> None:
    published = ("--sampler", "weight-trace", "--likelihood", "oracle")
    trace = (*ADAPT, "-o", "new.nc", *published)
    refused(*trace, mention="weight-trace needs the lists")
    extra = ("--extra", "nbest", "--extra-references", "ref")
    succeed(*trace, *extra, "--set", "restarts=2", "--set", "delta=20")
    draws = read_draws("new.nc")
    assert (draws.kind, draws.attrs["extra"]) == ("weighted", "nbest")
    assert draws.attrs["likelihood_exponent"] == 1 / 20
    assert {"restarts": 2, "delta": 20}.items() <= draws.attrs["settings"].items()


def divide(name: str, first: int, prefix: str) -> None:
    """Cut a file in two: its first lines or lists, and the rest."""
    lines = Path(name).read_text("utf-8").splitlines(keepends=True)
    of = [int(line.split(" ||| ")[0]) if " ||| " in line else n for n, line in enumerate(lines)]
    for part in (0, 1):
        kept = [line for n, line in zip(of, lines, strict=True) if (n >= first) == part]
        Path(f"{prefix}{part}").write_text("".join(kept), "utf-8")


@pytest.fixture
def pools(folder: Path) -> Path:
    """The lists in two files, `n0` and `n1`, with ids of their own, and `r0` and `r1`."""
    divide("nbest", 5, "n")
    divide("ref", 5, "r")
    rest = [line.partition(" ||| ") for line in Path("n1").read_text("utf-8").splitlines(True)]
    Path("n1").write_text("".join(f"{int(n) - 5}{mark}{end}" for n, mark, end in rest), "utf-8")
    return folder


POOL = ("-w", "moses.ini", "--sampler", "map", "-q", "-o")


def test_several_files_are_as_one(pools: Path) -> None:
    for part in "01":
        text = Path(f"r{part}").read_text("utf-8").replace("the", "a")
        Path(f"other{part}").write_text(text, "utf-8")
    Path("other").write_text("".join(Path(f"other{n}").read_text("utf-8") for n in "01"), "utf-8")
    add = ("--add", "length:ratio=true")
    one = ("-r", "ref", "-r", "other", "-s", "ref", *add)
    two = ("-r", "r0,r1", "-r", "other0,other1", "-s", "r0,r1", *add)
    succeed("adapt", "nbest", *one, *POOL, "whole.nc")
    succeed("adapt", "n0", "n1", *two, *POOL, "parts.nc")
    np.testing.assert_array_equal(read_draws("parts.nc").weights, read_draws("whole.nc").weights)
