"""Indicators of systems are left out by the evidence."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from support.command_line import succeed
from support.raising import capture_notes

from bpa_ppl import Draws, NBest, adapt, as_weight_draws, from_lists, rerank, write_posterior

NAMES = [f"S{k}" for k in range(10)]
LAPLACE: dict[str, Any] = {"gain": "mqm", "sampler": "laplace"}
WITH: dict[str, Any] = {**LAPLACE, "categorical": "system"}


def lists(effect: float, noise: float, count: int = 30, seed: int = 0) -> NBest:
    """Return one candidate of each system, whose gain is its quality plus that of its system.

    Args:
        effect: the standard deviation of the quality of the systems.
        noise: that of the error of the feature `comet`, which measures the rest of the quality.
        count: the number of lists.
        seed: of the random numbers.
    """
    rng = np.random.default_rng(seed)
    of_system = effect * rng.normal(size=len(NAMES))
    quality = rng.normal(size=(count, len(NAMES)))
    score = quality + noise * rng.normal(size=quality.shape)
    return from_lists(
        [NAMES] * count,
        score[..., None].tolist(),
        ["comet"],
        extras={"system": [NAMES] * count, "mqm": (quality + of_system).tolist()},
    )


def log_evidence(draws: Draws, nbest: NBest) -> float:
    """Laplace's approximation for the order of all pairs of a list, with plain matrices."""
    names, prior = draws.features, draws.adaptation.prior
    systems = np.array(nbest.extras["system"])
    columns = [
        nbest.features[:, 0] if name == "comet" else systems == name.partition("=")[2]
        for name in names
    ]
    precision = np.array([prior.spread[name] / prior.scale for name in names]) ** 2
    table = np.column_stack(columns).reshape(len(nbest), len(NAMES), -1).astype(float)
    gains = np.array(nbest.extras["mqm"]).reshape(len(nbest), -1)
    better = gains[:, :, None] > gains[:, None, :]
    rows = (table[:, :, None] - table[:, None])[better]
    weight = 2 * 1.5 / len(NAMES)
    mean = draws.draws.constants["prior_mean"]

    def loss(weights: np.ndarray) -> float:
        fit = weight * np.logaddexp(0, -rows @ weights).sum()
        return float(fit + precision @ (weights - mean) ** 2 / 2)

    def slope(weights: np.ndarray) -> np.ndarray:
        return precision * (weights - mean) - weight * expit(-rows @ weights) @ rows

    mode = minimize(loss, np.zeros(len(names)), jac=slope, method="BFGS", options={"gtol": 1e-7})
    p = expit(rows @ mode.x)
    hessian = weight * rows.T @ (rows * (p * (1 - p))[:, None]) + np.diag(precision)
    return -mode.fun + (np.log(precision).sum() - np.linalg.slogdet(hessian)[1]) / 2


@pytest.mark.slow
@pytest.mark.usefixtures("without_drawing")
def test_indicators_that_explain_nothing_are_left_out(tmp_path: Path) -> None:
    pool = lists(effect=0.0, noise=1.0)
    with capture_notes() as notes:
        draws = as_weight_draws(adapt(pool, None, **WITH))
    (note,) = [note for note in notes if "the indicators of system" in note.message]
    record = draws.adaptation.indicators
    assert record.left_out == ("system",)
    assert record.log_bayes_factor < -3
    assert note.level == logging.WARNING
    assert note.message == str(record)
    write_posterior(draws, tmp_path / "p.nc")
    succeed("report", tmp_path / "p.nc", "-o", tmp_path / "page.html")
    assert note.message[1:] in (tmp_path / "page.html").read_text("utf-8")
    # The posterior is that of the lists without the column.
    plain = as_weight_draws(adapt(pool, None, **LAPLACE))
    assert draws.features == plain.features == ("comet",)
    assert draws.adaptation.likelihood == plain.adaptation.likelihood
    np.testing.assert_allclose(draws.flat, plain.flat, rtol=1e-5)
    assert not draws.fixed
    new = lists(effect=0.0, noise=1.0, seed=1).without("system")
    assert rerank(new, draws).choice.tolist() == rerank(new, plain).choice.tolist()
    # A prior that the user has chosen keeps them.
    kept = as_weight_draws(adapt(pool, None, **WITH, prior="isotropic:variance=0.1"))
    assert len(kept.features) == 11
    assert kept.adaptation.indicators is None


@pytest.mark.slow
def test_indicators_that_help_are_kept() -> None:
    pool = lists(effect=2.0, noise=2.0)
    with capture_notes():  # the best system alone is better
        plain, draws = (
            as_weight_draws(adapt(pool, None, **options)) for options in (LAPLACE, WITH)
        )
    record = draws.adaptation.indicators
    assert not record.left_out
    expected = log_evidence(draws, pool) - log_evidence(plain, pool)
    assert record.log_bayes_factor == pytest.approx(expected, abs=0.01)
    assert str(record) == ""
    assert plain.adaptation.indicators is None
