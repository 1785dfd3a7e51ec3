"""The posterior as InferenceData: its content, its file, and reading it with ArviZ."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy.stats import norm
from support import reference_model
from support.raising import raises

from bpa_ppl import DataError, NBest, UsageError, Weights, adapt, from_lists, point_weights
from bpa_ppl.posterior.arviz_functions import split_groups

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

NAMES = ("LM0", "TM0[0]", "TM0[1]", "UnknownWordPenalty0")
CANONICAL = Weights(dict(zip(NAMES, (0.4, 0.1, -0.3, 1.0), strict=True)))
SIZES = (4, 1, 3, 4, 2, 3)
SAMPLERS = ("rwm-isotropic", "map")


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Six lists with gaps in the ids and one sentence twice, like a sample with replacement."""
    rng = np.random.default_rng(17)
    texts = [[f"t{i}" for i in range(n)] for n in SIZES]
    pool = from_lists(texts, [rng.normal(size=(n, 4)) for n in SIZES], NAMES)
    return pool.select([0, 1, 2, 3, 5, 5])


@pytest.fixture(scope="module")
def posteriors(lists: NBest) -> dict[str, InferenceData]:
    oracle = reference_model.given(1, 0, 2, 3, 1, 1)
    return {
        name: adapt(lists, CANONICAL, sampler=name, gain=oracle, prior="isotropic:variance=0.5")
        for name in SAMPLERS
    }


@pytest.mark.parametrize("name", SAMPLERS)
def test_groups_coordinates_and_attributes(
    posteriors: dict[str, InferenceData], lists: NBest, name: str
) -> None:
    posterior = posteriors[name]
    groups = {"posterior", "prior", "log_likelihood", "observed_data", "constant_data"}
    assert groups <= set(split_groups(posterior)[0])
    weights = posterior["posterior"]["weights"]
    assert weights.dims == ("chain", "draw", "feature")
    assert weights["feature"].values.tolist() == list(NAMES[:3])
    if name == "rwm-isotropic":
        assert weights.shape == (4, 1000, 3)
        assert posterior["warmup_posterior"]["weights"].shape == (4, 500, 3)
    likelihood = posterior["log_likelihood"]["oracle"]
    assert likelihood.dims == ("chain", "draw", "sentence")
    assert likelihood["sentence"].values.tolist() == lists.sentence_ids.tolist()
    assert posterior["observed_data"]["oracle"].values.tolist() == [1, 0, 2, 3, 1, 1]
    constants = posterior["constant_data"]
    assert constants["canonical"].values.tolist() == CANONICAL.values_array[:3].tolist()
    assert constants["prior_variance"].values.tolist() == [0.5] * 3
    assert constants["fixed"].values.tolist() == [1.0]
    assert constants["fixed"]["fixed_feature"].values.tolist() == ["UnknownWordPenalty0"]
    attrs = posterior.attrs
    assert (attrs["sampler"], attrs["seed"], attrs["model"]) == (name, 0, "log_linear")
    assert attrs["adaptation_sentences"] == 6
    assert ("draws" in json.loads(attrs["settings"])) == (name != "map")
    versions = {"bpa_ppl", "numpyro", "jax", "jaxlib", "numpy", "python", "arviz", "arviz-stats"}
    assert versions <= set(json.loads(attrs["versions"]))
    assert "cpu" in attrs["machine"]


@pytest.mark.parametrize("name", SAMPLERS)
def test_log_likelihood_and_log_prior_agree_with_scipy(
    posteriors: dict[str, InferenceData], lists: NBest, name: str
) -> None:
    draws = posteriors[name]["posterior"]["weights"].values
    recorded = posteriors[name]["log_likelihood"]["oracle"].values
    for chain, draw in ((0, 0), (-1, -1), (-1, len(draws[0]) // 2)):
        weights = np.append(draws[chain, draw], 1.0)
        expected = reference_model.log_likelihood(lists, [1, 0, 2, 3, 1, 1], weights)
        np.testing.assert_allclose(recorded[chain, draw], expected, rtol=1e-5, atol=1e-6)
    log_prior = posteriors[name]["log_prior"]["weights"]
    assert log_prior.dims == ("chain", "draw")
    expected = norm.logpdf(draws, CANONICAL.values_array[:3], np.sqrt(0.5)).sum(axis=-1)
    np.testing.assert_allclose(log_prior.values, expected, atol=1e-4)


def test_point_weights(posteriors: dict[str, InferenceData]) -> None:
    posterior = posteriors["rwm-isotropic"]
    draws = posterior["posterior"]["weights"].values
    one = point_weights(posterior, "draw", 1003, unchecked=True)
    assert one.values_array[:3].tolist() == draws[1, 3].tolist()
    mean = point_weights(posterior, unchecked=True)
    np.testing.assert_allclose(mean.values_array[:3], draws.mean(axis=(0, 1)))
    assert mean["UnknownWordPenalty0"] == 1.0
    for draw in (-1, 4000):
        with raises(DataError, parameter="draw", match=f"{draw}.* 0 to 3999"):
            point_weights(posterior, "draw", draw, unchecked=True)
    with raises(UsageError, "unknown-name", parameter="point"):
        point_weights(posterior, "median", unchecked=True)
