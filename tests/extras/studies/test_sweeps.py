"""Sweeps over settings of a sampler, a likelihood and a prior."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from support.command_line import run_command
from support.posteriors import import_arviz
from support.raising import raises
from support.registries import LIKELIHOODS, SAMPLERS

from bpa_ppl import (
    Isotropic,
    NBest,
    UsageError,
    adapt,
    as_draws,
    as_weight_draws,
    corpus_score,
    read_nbest,
    read_weights,
    rerank,
)
from bpa_ppl.extras.studies.sweeps import SweepResult, sweep

GRID = {"proposal_variance": [1e-6, 1e-3, 10.0], "warmup": [200]}


@pytest.fixture(scope="module")
def lists(originals: Path) -> NBest:
    return read_nbest(originals / "nbest", references=originals / "ref")


@pytest.fixture(scope="module")
def walk(originals: Path, lists: NBest) -> SweepResult:
    options = {"settings": {"draws": 200}, "likelihood": "oracle", "runs": 2}
    weights = read_weights(originals / "moses.ini")
    return sweep(lists[:6], weights, "rwm-isotropic", GRID, test=lists[6:], **options)


@pytest.mark.slow
def test_the_runs_are_those_of_adapt(originals: Path, lists: NBest, walk: SweepResult) -> None:
    combinations = [tuple(settings.values()) for settings, _ in walk.combinations()]
    assert combinations == list(product(*GRID.values()))
    names = ["R-hat", "acceptance", "ESS", "passed", "TER", "BLEU", "length"]
    assert (list(walk.varied), walk.quantities) == (list(GRID), names)
    rates = [np.mean(of["acceptance"]) for _, of in walk.combinations()]
    assert rates[0] > 0.95
    assert rates[0] > rates[1] > rates[2]
    assert rates[2] < 0.05
    assert not walk
    assert "0 of 2" in str(walk)
    settings = {"proposal_variance": 1e-3, "warmup": 200}
    weights = read_weights(originals / "moses.ini")
    options = {"likelihood": "oracle", "seed": 1}
    sampler = SAMPLERS.resolve("rwm-isotropic", settings | {"draws": 200})
    posterior = adapt(lists[:6], weights, sampler=sampler, **options)
    (row,) = (row for row in walk.runs if row.items() >= (settings | {"run": 1}).items())
    statistics = as_weight_draws(posterior).draws.statistics["acceptance_rate"]
    assert row["acceptance"] == pytest.approx(float(np.mean(statistics)))
    r_hat = import_arviz().rhat(posterior, var_names=["weights"])["weights"].max()
    assert row["R-hat"] == pytest.approx(float(r_hat))
    texts = rerank(lists[6:], posterior, unchecked=True).texts
    for name in ("TER", "BLEU"):
        expected = corpus_score(texts, lists[6:].references, name.lower()).value
        assert row[name] == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["isotropic", Isotropic(variance=0.3)])
def test_settings_of_the_likelihood_and_of_the_prior(lists: NBest, prior: str | Isotropic) -> None:
    weights, test = None, lists[6:]  # without canonical weights, the variance is scaled
    grid = {"variance": [1e-4, 3.0], "draws": [50], "gamma": [0.0, 5.0]}
    options = {"likelihood": "margin", "prior": prior, "gain": "ter"}
    result = sweep(lists[:6], weights, "laplace", grid, runs=1, test=test, **options)
    assert result.varied == tuple(grid)
    assert len({row["TER"] for row in result.runs}) > 1
    for row in result.runs:
        posterior = adapt(
            lists[:6],
            weights,
            gain="ter",
            likelihood=LIKELIHOODS["margin"](gamma=row["gamma"]),
            prior=Isotropic(variance=row["variance"]),
            sampler="laplace:draws=50",
        )
        texts = rerank(test, posterior, unchecked=True).texts
        assert row["TER"] == pytest.approx(corpus_score(texts, test.references, "ter").value)
        assert row["ESS"] == pytest.approx(1 / np.sum(as_draws(posterior).importance ** 2))


@pytest.mark.usefixtures("without_drawing")
def test_the_command_varies_the_variance_of_the_prior(originals: Path, tmp_path: Path) -> None:
    command = (
        f"sweep {originals}/nbest -r {originals}/ref -w {originals}/moses.ini --quiet --runs 1"
    )
    vary = "--sampler laplace --vary variance=0.01,1 --prior isotropic:variance=0.5"
    run_command([*command.split(), *vary.split(), "-o", str(tmp_path / "sweep")])
    table = (tmp_path / "sweep" / "sweep.csv").read_text("utf-8")
    rows = list(csv.DictReader(table.splitlines()))
    assert [float(row["variance"]) for row in rows] == [0.01, 1]
    assert len({row["ESS"] for row in rows}) == 2


@pytest.mark.parametrize(
    ("values", "parameter", "code"),
    [
        ({}, "values", None),
        ({"draws": ["many"]}, "values", "wrong-type"),
        ({"draws": [100, 0]}, "draws", "invalid-setting"),
        ({"steps": [100]}, "steps", "unknown-setting"),
        ({"variance": [0.1, -1]}, "variance", "bad-number"),
    ],
)
def test_grids_that_cannot_be_run(lists: NBest, values: dict, parameter: str, code: str) -> None:
    with raises(UsageError, parameter=parameter, code=code):
        sweep(lists, {}, "imh", values)
