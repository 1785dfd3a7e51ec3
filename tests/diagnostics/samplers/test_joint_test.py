"""The joint test: what it finds, and its level."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, energy_distance
from support.compared_draws import NAMES, importance_sample, tied
from support.external_posterior import autoregressive
from support.records import name_array

from bpa_ppl import compare
from bpa_ppl.diagnostics.samplers.joint_test import SPLITS, Distance, measure_joint_distance


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
