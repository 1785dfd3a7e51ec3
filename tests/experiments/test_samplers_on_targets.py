"""Samplers on targets with known answers: verdicts of draws whose distribution is known."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from raising import raises
from scipy.stats import binom

from bpa_ppl import Draws, UsageError
from bpa_ppl.diagnostics import Report
from bpa_ppl.experiments import known_targets
from bpa_ppl.experiments.known_targets import compare_on_targets, judged, target
from bpa_ppl.experiments.results import write_rows

GAUSSIAN = replace(target("correlated"), mean=np.zeros(10), covariance=np.eye(10))
PASSED = Report("exact", (4, 500), ())


def chains(size: int, correlation: float, seed: int, draws: int = 500) -> np.ndarray:
    """Return autoregressive draws (4, draws, size) whose stationary distribution is N(0, I)."""
    noise = np.random.default_rng(seed).normal(size=(draws, 4, size))
    noise[1:] *= np.sqrt(1 - correlation**2)
    for k in range(1, draws):
        noise[k] += correlation * noise[k - 1]
    return noise.transpose(1, 0, 2)


def of_features(values: np.ndarray) -> Draws:
    return Draws({"weights": values}, tuple(GAUSSIAN.weights)[: values.shape[-1]])


@pytest.mark.parametrize(
    ("correlation", "count"),
    [(0.5, 20), *(pytest.param(c, 150, marks=pytest.mark.slow) for c in (0.0, 0.5))],
)
def test_level_and_bound(correlation: float, count: int) -> None:
    """A correct sampler differs rarely; 95 % of the bounds hold for a bias in one weight."""
    p_values, inside = [], 0
    with patch.object(known_targets, "check", lambda run: PASSED):
        for seed in range(count):
            draws = chains(10, correlation, seed)
            p_values.append(judged(GAUSSIAN, "exact", [of_features(draws)])["p_value"])
            draws[..., 7] += 0.06
            inside += judged(GAUSSIAN, "biased", [of_features(draws)])["bound"] >= 0.06
    for level in (0.01, 0.05):
        rejected = int(np.sum(np.array(p_values) < level))
        assert rejected <= binom.ppf(0.999, count, level), (level, rejected)
    assert inside >= binom.ppf(0.001, count, 0.95)


@pytest.mark.parametrize(
    ("shift", "scale", "draws", "verdict"),
    [
        (0.0, 1.0, 2000, "agrees"),
        (0.15, 1.0, 2000, "DIFFERS"),
        (0.0, 1.15, 2000, "DIFFERS"),
        (0.0, 1.0, 300, "inconclusive"),
        (0.0, 1.0, 20, "not converged"),
    ],
)
def test_verdicts(shift: float, scale: float, draws: int, verdict: str) -> None:
    values = chains(10, 0.0, 1, draws)
    values[..., 3] = shift + scale * values[..., 3]
    result = judged(GAUSSIAN, "mine", [of_features(values)])
    assert result["verdict"] == verdict
    assert bool(result["reason"]) == (verdict != "agrees")
    if shift:
        assert "mean of F3" in result["reason"]
        assert result["mean_bias"] == pytest.approx(shift, abs=0.06)
    if scale > 1:
        assert "sd of F3" in result["reason"]
        assert result["sd_bias"] == pytest.approx(scale - 1, abs=0.05)


def test_samplers_run_on_targets_and_are_written(tmp_path: Path) -> None:
    settings = {"imh": {"draws": 2000}}
    result = compare_on_targets(["skewed"], ["imh", "map"], runs=2, settings=settings)
    good, failed = result.results
    assert (good["verdict"], good["checked"], good["runs"]) == ("agrees", 2, 2)
    assert good["ess_per_second"] > 0
    assert (failed["verdict"], failed["mean_bias"]) == ("failed", None)
    assert not result
    assert "skewed, map: 1 draws" in str(result)
    write_rows(result.results, tmp_path / "targets.csv")
    rows = list(csv.DictReader((tmp_path / "targets.csv").read_text("utf-8").splitlines()))
    assert [row["sampler"] for row in rows] == ["imh", "map"]
    assert float(rows[0]["mean_bias"]) == good["mean_bias"]


def test_mistakes_are_found_before_the_runs() -> None:
    with raises(UsageError, parameter="target", code="unknown-name"):
        compare_on_targets("bimodal", ["imh"])
    with raises(UsageError, parameter="draws", code="invalid-setting"):
        compare_on_targets("skewed", ["imh"], settings={"imh": {"draws": 0}})
    with raises(UsageError, parameter="runs"):
        compare_on_targets("skewed", ["imh"], runs=0)
    with raises(UsageError, parameter="samplers"):
        compare_on_targets("skewed", [])


def test_runs_may_differ_in_their_numbers_of_draws_and_the_order_of_their_weights() -> None:
    """As those of `auto` do; the estimates are the means of the runs."""
    known = replace(GAUSSIAN, mean=np.arange(10.0))
    runs = [of_features(chains(10, 0.0, n, 1000 * n) + np.arange(10.0)) for n in (1, 2)]
    turned = Draws({"weights": runs[1].weights[..., ::-1]}, tuple(GAUSSIAN.weights)[::-1])
    together = judged(known, "both", [runs[0], turned])
    means = np.mean([run.weights.mean(axis=(0, 1)) for run in runs], axis=0) - np.arange(10.0)
    assert together["mean_bias"] == pytest.approx(means[np.argmax(np.abs(means))])
    assert together["mean_bias_error"] == pytest.approx(np.sqrt(1 / 4000 + 1 / 8000) / 2, rel=0.2)
    assert (together["verdict"], together["checked"]) == ("agrees", 2)
