"""The posterior as InferenceData: what it holds, that it survives a file, that ArviZ reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import plain
import pytest
from foreign import autoregressive, foreign
from scipy.special import log_expit
from scipy.stats import norm
from targets import SENTENCES, TARGETS, integrated

from bpa_ppl import (
    DataError,
    NBest,
    UsageError,
    Weights,
    adapt,
    check,
    point_weights,
    read_posterior,
    rerank,
    write_posterior,
)
from bpa_ppl.posterior import import_arviz, inference_data
from bpa_ppl.posterior.arviz_functions import data_tree

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

NAMES = ("LM0", "TM0[0]", "TM0[1]", "UnknownWordPenalty0")
CANONICAL = Weights(dict(zip(NAMES, (0.4, 0.1, -0.3, 1.0), strict=True)))
SIZES = (4, 1, 3, 4, 2, 3)
SAMPLERS = ("imh", "rwm-isotropic", "heuristic", "laplace", "map")


@pytest.fixture(scope="module")
def lists() -> NBest:
    """Six lists whose ids have gaps, one sentence twice, as a draw of A with replacement has."""
    rng = np.random.default_rng(17)
    texts = [[f"t{i}" for i in range(n)] for n in SIZES]
    pool = NBest.from_lists(texts, [rng.normal(size=(n, 4)) for n in SIZES], NAMES)
    return pool.select([0, 1, 2, 3, 5, 5])


@pytest.fixture(scope="module")
def posteriors(lists: NBest) -> dict[str, InferenceData]:
    oracle = plain.given(1, 0, 2, 3, 1, 1)
    return {
        name: adapt(lists, CANONICAL, sampler=name, oracle=oracle, prior_variance=0.5)
        for name in SAMPLERS
    }


@pytest.mark.parametrize("name", SAMPLERS)
def test_groups_and_coordinates_are_those_promised(
    posteriors: dict[str, InferenceData], lists: NBest, name: str
) -> None:
    posterior = posteriors[name]
    groups = {"posterior", "prior", "log_likelihood", "observed_data", "constant_data"}
    assert groups <= set(data_tree(posterior).children)
    weights = posterior["posterior"]["weights"]
    assert weights.dims == ("chain", "draw", "feature")
    assert weights["feature"].values.tolist() == list(NAMES[:3])
    likelihood = posterior["log_likelihood"]["oracle"]
    assert likelihood.dims == ("chain", "draw", "sentence")
    assert likelihood["sentence"].values.tolist() == lists.sentence_ids.tolist()
    assert posterior["observed_data"]["oracle"].values.tolist() == [1, 0, 2, 3, 1, 1]
    constants = posterior["constant_data"]
    assert constants["canonical"].values.tolist() == CANONICAL.values_array[:3].tolist()
    assert constants["prior_variance"].values.tolist() == [0.5] * 3
    assert constants["fixed"].values.tolist() == [1.0]
    assert constants["fixed"]["fixed_feature"].values.tolist() == ["UnknownWordPenalty0"]


@pytest.mark.parametrize("name", SAMPLERS)
def test_attributes_tell_how_it_was_made(posteriors: dict[str, InferenceData], name: str) -> None:
    attrs = posteriors[name].attrs
    assert (attrs["sampler"], attrs["seed"], attrs["model"]) == (name, 0, "log_linear")
    assert attrs["adaptation_sentences"] == 6
    settings = json.loads(attrs["settings"])
    assert ("draws" in settings) == (name != "map")
    assert {"bpa_ppl", "numpyro", "jax", "arviz"} <= set(json.loads(attrs["versions"]))


def test_the_warm_up_is_kept_apart(posteriors: dict[str, InferenceData]) -> None:
    warmup = posteriors["rwm-isotropic"]["warmup_posterior"]["weights"]
    assert warmup.shape == (4, 500, 3)
    assert posteriors["rwm-isotropic"]["posterior"]["weights"].shape == (4, 1000, 3)


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_log_likelihood_is_scipy_s_sentence_by_sentence(
    posteriors: dict[str, InferenceData], lists: NBest, name: str
) -> None:
    draws = posteriors[name]["posterior"]["weights"].values
    recorded = posteriors[name]["log_likelihood"]["oracle"].values
    for chain, draw in ((0, 0), (-1, -1), (-1, len(draws[0]) // 2)):
        weights = np.append(draws[chain, draw], 1.0)
        expected = plain.log_likelihood(lists, [1, 0, 2, 3, 1, 1], weights)
        np.testing.assert_allclose(recorded[chain, draw], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_log_prior_is_scipy_s(posteriors: dict[str, InferenceData], name: str) -> None:
    draws = posteriors[name]["posterior"]["weights"].values
    expected = norm.logpdf(draws, CANONICAL.values_array[:3], np.sqrt(0.5)).sum(axis=-1)
    recorded = posteriors[name]["log_prior"]["weights"]
    assert recorded.dims == ("chain", "draw")
    np.testing.assert_allclose(recorded.values, expected, atol=1e-4)


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_posterior_survives_its_file(
    posteriors: dict[str, InferenceData], lists: NBest, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "posterior.nc"
    write_posterior(posteriors[name], path)
    again, before = read_posterior(path), posteriors[name]
    assert list(data_tree(again).children) == list(data_tree(before).children)
    for group, values in data_tree(before).children.items():
        assert data_tree(again)[group].equals(values), group
    for key, value in before.attrs.items():
        assert again.attrs[key] == value, key
    ours, theirs = check(before).findings, check(again).findings
    assert [f.name for f in ours] == [f.name for f in theirs]
    assert [f.value for f in ours] == pytest.approx([f.value for f in theirs])
    assert point_weights(again) == point_weights(before)
    first, second = (rerank(lists, p, unchecked=True) for p in (before, again))
    np.testing.assert_array_equal(first.choice, second.choice)


def test_plain_arviz_opens_it_and_summarises_it(
    posteriors: dict[str, InferenceData], tmp_path: Path
) -> None:
    write_posterior(posteriors["imh"], tmp_path / "posterior.nc")
    data = import_arviz().from_netcdf(str(tmp_path / "posterior.nc"))
    summary = import_arviz().summary(data, var_names=["weights"])
    assert list(summary.index) == [f"weights[{name}]" for name in NAMES[:3]]


def test_leaving_one_out_is_what_quadrature_leaves_out() -> None:
    target = TARGETS["balanced"]()
    oracle = plain.given(*[0] * SENTENCES)
    posterior = adapt(target.pool, target.canonical, sampler="imh", oracle=oracle, draws=4000)
    differences = target.pool.features[1::2].astype(np.float64)

    def log_likelihood(weights: plain.Array) -> plain.Array:
        return np.asarray(log_expit(-weights @ differences.T))

    def log_density(weights: plain.Array) -> plain.Array:
        log_prior = norm.logpdf(weights[:, 0], target.canonical["LM0"], np.sqrt(0.1))
        return np.asarray(log_likelihood(weights).sum(axis=1) + log_prior)

    grid, p = integrated(log_density, [0.0], 5.0)
    exact = -np.log(p @ np.exp(-log_likelihood(grid)))
    theirs = import_arviz().loo(posterior, pointwise=True)
    pointwise = theirs.elpd_i if hasattr(theirs, "elpd_i") else theirs.loo_i
    np.testing.assert_allclose(pointwise, exact, atol=0.01)


@pytest.mark.parametrize("content", [b"", b"not a posterior", b"\x89HDF\r\n\x1a\n cut short"])
def test_what_is_no_posterior_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "posterior.nc"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"posterior\.nc: not a readable NetCDF posterior"):
        read_posterior(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_posterior(tmp_path / "none.nc")


def test_a_file_without_weights_is_refused(tmp_path: Path) -> None:
    other = inference_data({"posterior": {"mu": np.zeros((2, 10))}})
    other.to_netcdf(str(tmp_path / "other.nc"))
    with pytest.raises(DataError, match="no draws of a variable called weights"):
        read_posterior(tmp_path / "other.nc")


def test_a_foreign_posterior_can_be_checked_reranked_and_averaged(
    lists: NBest, tmp_path: Path
) -> None:
    made = foreign(autoregressive(0.1, 4, 500, 4, seed=3), NAMES)
    made.to_netcdf(str(tmp_path / "foreign.nc"))
    posterior = read_posterior(tmp_path / "foreign.nc")
    assert check(posterior)
    assert len(rerank(lists, posterior).choice) == len(lists)
    expected = posterior["posterior"]["weights"].values.mean(axis=(0, 1))
    np.testing.assert_allclose(point_weights(posterior).values_array, expected)
    assert point_weights(posterior).names == NAMES


def test_points_of_a_posterior(posteriors: dict[str, InferenceData]) -> None:
    posterior = posteriors["imh"]
    draws = posterior["posterior"]["weights"].values
    assert point_weights(posterior, "draw", 1003).values_array[:3].tolist() == draws[1, 3].tolist()
    mean = point_weights(posterior)
    np.testing.assert_allclose(mean.values_array[:3], draws.mean(axis=(0, 1)))
    assert mean["UnknownWordPenalty0"] == 1.0


@pytest.mark.parametrize("draw", [-1, 4000])
def test_a_draw_that_does_not_exist_is_refused(
    posteriors: dict[str, InferenceData], draw: int
) -> None:
    with pytest.raises(DataError, match="0 to 3999"):
        point_weights(posteriors["imh"], "draw", draw)


def test_an_unknown_point_is_refused(posteriors: dict[str, InferenceData]) -> None:
    with pytest.raises(UsageError, match="choose one of mean, mode, draw"):
        point_weights(posteriors["imh"], "median")
