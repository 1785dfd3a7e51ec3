"""Moments with their errors and the joint test: what they find, and their levels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, energy_distance
from support.compared_draws import NAMES, importance_sample, tied
from support.posteriors import autoregressive, name_array

from bpa_ppl import Draws, compare
from bpa_ppl.diagnostics.samplers.comparison import MAX_BIAS
from bpa_ppl.diagnostics.samplers.efficiency import smallest_ess
from bpa_ppl.diagnostics.samplers.joint_test import SPLITS, Distance, measure_joint_distance
from bpa_ppl.diagnostics.samplers.moments import bound_bias, compare_moments, estimate_share, holm
from bpa_ppl.diagnostics.samplers.runs import concatenate_runs


def test_the_distance_is_the_energy_distance() -> None:
    one = name_array(autoregressive(0.0, 4, 500, 1, seed=5), ("LM0",))
    other = name_array(1 + autoregressive(0.0, 4, 500, 1, seed=6), ("LM0",))
    found = measure_joint_distance(one, other)
    x, y = one.flat[:, 0], other.flat[:, 0]
    deviation = np.concatenate([x, y]).std()
    assert found.value == pytest.approx(energy_distance(x / deviation, y / deviation), abs=0.03)
    # All three statistics are beyond those of every split: the adjustment counts them.
    assert found.p_value <= 3 / (SPLITS + 1)
    assert (found.moment, round(found.difference)) == ("the mean of LM0", -1)


def test_dependence_without_correlation_is_found() -> None:
    """|z₂| = |z₁|, and z₃ with the sign of z₁ z₂: marginals and correlations are those of z."""
    for dimensions in (8, 3):
        truth, z = (autoregressive(0.0, 4, 500, dimensions, seed) for seed in (1, 2))
        first, second, *_ = np.moveaxis(z, -1, 0)
        if dimensions == 8:
            second[:] = np.abs(first) * np.sign(second)
        else:
            z[..., 2] = np.abs(z[..., 2]) * np.sign(first * second)
        names = tuple(f"f{k}" for k in range(dimensions))
        distance = measure_joint_distance(*(name_array(x, names) for x in (z, truth)))
        assert distance.p_value < 0.005
        if dimensions == 8:
            assert distance.moment == "the correlation of the square of f0 and the square of f1"
        else:
            assert distance.neighbours_p_value < 0.005 < distance.moment_p_value


@pytest.mark.parametrize("shift", [0.1, 0.2, -0.3])
def test_a_shift_is_named_as_a_shift(shift: float) -> None:
    truth, x = np.random.default_rng(1).normal(size=(2, 4, 1000, 3))
    x[..., 1] += shift
    _, reason = judge(x, truth)
    # A shift changes no variance and no correlation.
    assert "variance" not in reason
    assert "correlation" not in reason
    assert f"most of all the mean of b: by {'+' if shift > 0 else '−'}" in reason


def test_what_differs_is_named() -> None:
    truth, x = np.random.default_rng(2).normal(size=(2, 4, 1000, 3))
    wide = x * [1.0, 1.0, 1.2]
    assert "most of all the variance of c: by +" in judge(wide, truth)[1]
    correlated = x.copy()
    correlated[..., 1] = 0.3 * x[..., 0] + np.sqrt(1 - 0.3**2) * x[..., 1]
    found, reason = judge(correlated, truth)
    assert "most of all the correlation of a and b: by +" in reason
    # Neither the energy distance nor the neighbours see it: they are no reason.
    assert found.distance_p_value > 0.005
    assert "energy distance" not in reason
    # Across a ridge, a shift of half its width is too small for the mean of either variable.
    ridge = [[1.0, 1.0, 0.0], [0.05, -0.05, 0.0], [0.0, 0.0, 1.0]]
    found, reason = judge((x + np.array([0.0, 0.5, 0.0])) @ ridge, truth @ ridge)
    assert found.moment == "the mean of principal component 3 (mostly a, b)"
    assert "the mean of principal component 3 (mostly a, b): by " in reason


def judge(values: np.ndarray, truth: np.ndarray) -> tuple[Distance, str]:
    """Return the joint test, and the reason that a comparison gives for it."""
    ours, theirs = (name_array(x, ("a", "b", "c")) for x in (values, truth))
    arrays = ({n: x[..., k] for k, n in enumerate("abc")} for x in (values, truth))
    return measure_joint_distance(ours, theirs), compare(*arrays)["a"].reason


def test_pairs_of_very_many_variables_are_chosen_by_their_correlation() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 4, 250, 80))
    names = tuple(f"x{k}" for k in range(80))
    assert measure_joint_distance(*(name_array(z, names) for z in (x, y))).p_value > 0.01
    x[..., 79] = 0.4 * x[..., 70] + np.sqrt(1 - 0.4**2) * x[..., 79]
    found = measure_joint_distance(*(name_array(z, names) for z in (x, y)))
    assert (found.moment, found.p_value < 0.005) == ("the correlation of x70 and x79", True)


def test_p_values_of_equal_distributions_are_uniform() -> None:
    """Their mean is 1/2, with a standard deviation of 0.03 in 100 comparisons."""
    rng, p_values = np.random.default_rng(0), []
    for seed in range(100):
        drawn = rng.normal(size=(2, 4, 15, 2))
        one, other = (name_array(values, ("LM0", "TM0")) for values in drawn)
        p_values.append(measure_joint_distance(one, other, seed).p_value)
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [True, False])
def test_the_joint_test_keeps_its_level(weighted: bool) -> None:
    """A level of 5% that is 20% would be found in 120 runs with a probability of 99%."""
    p_values = []
    for seed in range(120):  # a fresh reference each time, with another autocorrelation
        ours = importance_sample(seed, 600)
        if not weighted:
            ours = name_array(tied(autoregressive(0.6, 4, 300, 3, seed=seed)), NAMES)
        theirs = name_array(tied(autoregressive(0.2, 4, 250, 3, seed=9000 + seed)), NAMES)
        p_values.append(measure_joint_distance(ours, theirs, seed).p_value)
    for level in (0.01, 0.05, 0.3):
        rejected = np.sum(np.array(p_values) <= level)
        assert binom.cdf(rejected, len(p_values), level) > 1e-3
        assert binom.sf(rejected - 1, len(p_values), level) > 1e-3


def test_holm_is_that_of_r() -> None:
    # p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm") of R 4.3
    np.testing.assert_allclose(holm([0.05, 0.02, 0.03, 0.04, 0.01]), [0.09, 0.08, 0.09, 0.09, 0.05])


def test_each_z_has_the_sign_of_its_difference() -> None:
    truth, x = np.random.default_rng(3).normal(size=(2, 4, 1000, 1))
    for changed in (x + 0.3, x - 0.3, 1.3 * x, 0.7 * x + 0.2):
        rows = compare_moments(*(name_array(z, ("LM0",)) for z in (changed, truth)))
        assert {row["quantity"] for row in rows} == {"mean", "sd", "q5", "q50", "q95"}
        for row in rows:
            assert row["bias"] == pytest.approx(row["value"] - row["reference"], rel=0.05)
            assert row["z"] * row["bias"] > 0 or abs(row["z"]) < 1
    shifted = compare_moments(*(name_array(z, ("LM0",)) for z in (x + 0.3, truth)))
    # A shift moves the quantiles, and leaves the standard deviation.
    off = {row["quantity"] for row in shifted if row["p_value"] < 0.005}
    assert off == {"mean", "q5", "q50", "q95"}
    wider = compare_moments(*(name_array(z, ("LM0",)) for z in (1.3 * x, truth)))
    assert {row["quantity"] for row in wider if row["p_value"] < 0.005} == {"sd", "q5", "q95"}


def test_draws_on_one_side_of_a_quantile_have_the_error_of_the_worst_mixing() -> None:
    draws = name_array(autoregressive(0.9, 4, 500, 1, seed=1), ("LM0",))
    error = estimate_share(draws, draws.array > 99, 0.05).error
    assert error == pytest.approx(np.sqrt(0.05 * 0.95 / smallest_ess(draws)))


def test_right_samplers_are_hardly_ever_accused(reference: list[Draws]) -> None:
    truth, accused = concatenate_runs(reference), 0
    for seed in range(30):
        draws = name_array(tied(autoregressive(0.8, 4, 600, 3, seed=2000 + seed)), NAMES)
        accused += min(gap["p_value"] for gap in compare_moments(draws, truth)) < 0.05
    # A level of 5% gives 1.5 of 30; 7 or more have a probability of 0.1%.
    assert accused < 7


@pytest.mark.slow
def test_the_bound_is_above_the_bias() -> None:
    """In one dimension with a probability of 95%; what may agree is off by less than the limit."""
    count, covered, accepted = 200, 0, 0
    for seed in range(count):
        ours = name_array(0.1 + autoregressive(0.5, 4, 600, 1, seed), ("LM0",))
        theirs = name_array(autoregressive(0.3, 4, 2000, 1, seed=9000 + seed), ("LM0",))
        bound = bound_bias(ours, theirs)[0]
        covered += bound >= 0.1
        accepted += bound <= MAX_BIAS
    assert binom.ppf(1e-3, count, 0.95) <= covered <= binom.ppf(0.999, count, 0.95)
    assert accepted <= 0.1 * count
