"""Moments with their errors: correct samplers rarely differ, and the bound holds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from support.compared_draws import NAMES, tied
from support.external_posterior import autoregressive
from support.records import name_array

from bpa_ppl import Draws
from bpa_ppl.diagnostics.samplers.comparison import MAX_BIAS
from bpa_ppl.diagnostics.samplers.efficiency import smallest_ess
from bpa_ppl.diagnostics.samplers.moments import (
    bound_bias,
    compare_moments,
    estimate_share,
    holm,
)
from bpa_ppl.diagnostics.samplers.runs import concatenate_runs


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
