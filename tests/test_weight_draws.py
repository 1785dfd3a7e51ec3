"""Draws of weights: read from any posterior, and in units that can be compared."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.posteriors import (
    FeatureScale,
    draws_of_all_kinds,
    inference_data,
    record_of,
    to_arviz,
    with_parts,
)
from support.raising import raises

from bpa_ppl import DataError, Draws, WeightDraws, as_draws, as_weight_draws, check
from bpa_ppl.weight_draws import name_weights, show_standardised, standardise

NAMES = ("LM0", "TM0")
WEIGHTS = np.random.default_rng(0).normal(size=(4, 200, 2))


def test_weights_are_shown_per_standard_deviation() -> None:
    scales = {"LM0": FeatureScale(3.0), "TM0": FeatureScale(0.1)}
    parts = {"warmup": {"weights": WEIGHTS[:, :30] + 5.0}, "constants": {"mode": np.ones(2)}}
    draws = name_weights(WEIGHTS, NAMES, record=record_of(feature_scales=scales), **parts).draws
    scaled, note = show_standardised(draws)
    assert note == "Weights are per standard deviation."
    np.testing.assert_allclose(scaled.array, WEIGHTS * [3.0, 0.1])
    np.testing.assert_allclose(scaled.warmup["weights"], draws.warmup["weights"] * [3.0, 0.1])
    np.testing.assert_allclose(scaled.constants["mode"], [3.0, 0.1])
    without = replace(draws, record=record_of(feature_scales={"LM0": FeatureScale(3.0)}))
    assert show_standardised(without) == (without, "Weights are in raw units.")
    others = Draws({"mu": WEIGHTS})
    assert show_standardised(others) == (others, "")
    assert standardise(others) is None


@pytest.mark.parametrize("dim", ["feature", "judge", "weights_dim_0"])
def test_labels_of_any_dimension_name_weights(dim: str) -> None:
    """Draws of any program have main sites if the dimension is `feature`, as the page shows it."""
    groups = {"posterior": {"weights": WEIGHTS}}
    data = inference_data(groups, {dim: list(NAMES)}, {"weights": [dim]})
    assert as_weight_draws(data).features == NAMES
    draws = as_draws(data)
    assert draws.main == (("weights",) if dim == "feature" else ())
    names = NAMES if dim == "feature" else tuple(f"weights[{name}]" for name in NAMES)
    assert draws.names == names
    assert as_weight_draws(draws).features == NAMES


def test_tables_of_weights_are_features_by_their_cells() -> None:
    groups = {"posterior": {"weights": np.stack([WEIGHTS, 2 * WEIGHTS], axis=2)}}
    coords = {"feature": list(NAMES), "domain": ["news", "talks"]}
    data = inference_data(groups, coords, {"weights": ["domain", "feature"]})
    names = ("news, LM0", "news, TM0", "talks, LM0", "talks, TM0")
    draws = as_weight_draws(data)
    assert (draws.features, as_draws(data).names) == (names, names)
    np.testing.assert_array_equal(draws.weights[..., 2:], 2 * WEIGHTS)


def test_positions_of_oracles_have_no_fractions() -> None:
    """Predictions add a fraction to the positions, which the file has."""
    draws = draws_of_all_kinds()
    fractions = {"oracle": np.array([0.5, 1.0, 2.25, 3.0, 4.75])}
    tree = to_arviz(replace(draws.draws, observed=fractions))
    observed = as_weight_draws(tree).draws.observed["oracle"]
    assert observed.tolist() == [0, 1, 2, 3, 4]
    assert observed.dtype == np.int64
    np.testing.assert_array_equal(as_draws(tree).observed["oracle"], fractions["oracle"])


def test_a_prior_of_other_features_is_refused() -> None:
    constants = {"prior_covariance": np.eye(2)}
    draws = name_weights(WEIGHTS, NAMES, constants=constants)
    with raises(DataError, "mismatch", match="prior_covariance is not of the features LM0, TM0"):
        with_parts(draws, coords={"other_feature": ("LM0", "WP0")})


def test_functions_of_any_draws_take_those_of_weights() -> None:
    draws = name_weights(WEIGHTS, NAMES)
    assert isinstance(draws, WeightDraws)
    assert as_draws(draws) is draws.draws
    assert str(check(draws)) == str(check(draws.draws))
