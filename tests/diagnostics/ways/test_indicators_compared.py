"""Indicators of systems: left out by the evidence, or compared by leave-one-out."""

from __future__ import annotations

import json
import logging
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from bpa_ppl import Draws, NBest, adapt, as_draws, compare_baselines, from_lists, rerank
from bpa_ppl._runtime.messages import Note, capture_notes
from bpa_ppl.diagnostics.pages.report import posterior_page
from bpa_ppl.diagnostics.ways.compare_ways import (
    BaselineComparison,
    describe_indicators,
    describe_left_out,
    read_comparison,
)
from bpa_ppl.diagnostics.ways.simple_ways import Way

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


def compared(nbest: NBest, **options: Any) -> tuple[Draws, Any, Note]:
    """Adapt, and return the draws, the comparison, and the only note on indicators."""
    with capture_notes() as notes:
        draws = as_draws(adapt(nbest, None, **{**WITH, **options}))
    about = "the indicators of system", "adapted weights without indicators (system)"
    (note,) = [note for note in notes if any(words in note.message for words in about)]
    assert describe_indicators(draws) == [note.message]
    return draws, read_comparison(draws), note


def log_evidence(draws: Draws, nbest: NBest) -> float:
    """Laplace's approximation for the order of all pairs of a list, with plain matrices."""
    names, prior = draws.features, draws.record.prior
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
    mean = draws.constants["prior_mean"]

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
def test_indicators_that_explain_nothing_are_left_out() -> None:
    pool = lists(effect=0.0, noise=1.0)
    draws, comparison, note = compared(pool)
    record = draws.record.indicators
    assert record.left_out == ("system",)
    assert record.log_bayes_factor < -3
    assert note.level == logging.WARNING
    assert note.message == describe_left_out(record)
    assert comparison.row(Way.WITHOUT) is None
    assert note.message[1:] in posterior_page(draws)
    # The posterior is that of the lists without the column.
    plain = as_draws(adapt(pool, None, **LAPLACE))
    assert draws.features == plain.features == ("comet",)
    assert draws.record.likelihood == plain.record.likelihood
    np.testing.assert_allclose(draws.flat, plain.flat, rtol=1e-5)
    assert not draws.fixed
    new = lists(effect=0.0, noise=1.0, seed=1).without("system")
    assert rerank(new, draws).choice.tolist() == rerank(new, plain).choice.tolist()
    # A prior that the user has chosen keeps them.
    kept = as_draws(adapt(pool, None, **WITH, prior="isotropic:variance=0.1"))
    assert len(kept.features) == 11
    assert kept.record.indicators is None


@pytest.fixture(scope="module")
def helpful() -> tuple[NBest, Draws, Any, Note, Draws]:
    """Lists whose systems differ, what `compared` returns, and draws without the indicators."""
    pool = lists(effect=2.0, noise=2.0)
    with capture_notes():  # the best system alone is better
        plain = as_draws(adapt(pool, None, **LAPLACE))
    return pool, *compared(pool), plain


def test_indicators_that_help_are_kept(helpful: tuple[NBest, Draws, Any, Note, Draws]) -> None:
    pool, draws, comparison, note, plain = helpful
    record = draws.record.indicators
    assert not record.left_out
    expected = log_evidence(draws, pool) - log_evidence(plain, pool)
    assert record.log_bayes_factor == pytest.approx(expected, abs=0.01)
    assert comparison.row(Way.WITHOUT).low > 0
    row = comparison.row(Way.WITHOUT)
    assert (note.level, note.message) == (logging.INFO, comparison.sentence(row))
    assert note.message.startswith("the adapted weights are better than the adapted weights with")


def test_the_row_without_indicators_is_that_of_lists_without_the_column(
    helpful: tuple[NBest, Draws, Any, Note, Draws],
) -> None:
    pool, _, comparison, note, plain = helpful
    assert (describe_indicators(plain), plain.record.indicators) == ([], None)
    assert read_comparison(plain).row(Way.WITHOUT) is None
    alone = compare_baselines(pool, plain).row(Way.ADAPTED)
    row = comparison.row(Way.WITHOUT)
    assert (row.lists, row.gain) == (30, pytest.approx(alone.gain))
    assert row.difference == pytest.approx(comparison.row(Way.ADAPTED).gain - alone.gain)
    new = lists(effect=2.0, noise=2.0, seed=1)
    assert row.choose(new).tolist() == rerank(new, plain, unchecked=True).choice.tolist()
    # The record is read back as it was.
    record = json.loads(json.dumps(msgspec.to_builtins(comparison)))
    assert msgspec.convert(record, BaselineComparison).sentence(row) == note.message
    assert "adapted weights without indicators (system)" in str(comparison)


@pytest.mark.slow
def test_adapt_warns_of_indicators_that_cost() -> None:
    """Each system has the best candidate once, so that the other lists speak against it."""
    names = [f"S{k}" for k in range(20)]
    gains = 3.0 * np.eye(20)
    score = gains + np.random.default_rng(0).normal(size=gains.shape)
    extras = {"system": [names] * 20, "mqm": gains.tolist()}
    pool = from_lists([names] * 20, score[..., None].tolist(), ["comet"], extras=extras)
    _, comparison, note = compared(pool, prior="isotropic:variance=0.5,mean=0")
    assert comparison.row(Way.WITHOUT).high < 0
    row = comparison.row(Way.WITHOUT)
    assert (note.level, note.message) == (logging.WARNING, comparison.sentence(row))
    assert note.message.endswith(": leave out categorical system, or choose by the rule best")


@pytest.mark.slow
def test_posteriors_without_a_comparison() -> None:
    """A single point is evaluated in-sample, and systems alone leave no other feature."""
    pool = lists(effect=1.0, noise=1.0)
    assert describe_indicators(as_draws(adapt(pool, None, **{**WITH, "sampler": "map"}))) == []
    with capture_notes():  # of choices from one system
        alone = as_draws(adapt(pool, None, **WITH, exclude=["comet"]))
    assert describe_indicators(alone) == []
