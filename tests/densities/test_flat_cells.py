"""Cells that a density does not depend on, as `obs_mask` adds them, against closed forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from scipy.stats import lognorm, multivariate_normal, norm

import bpa_ppl as bpa
from bpa_ppl.densities.model_target import make_model_target
from bpa_ppl.densities.own_models import name_dimensions

DATA = np.array([0.3, np.nan, 1.9, 1.1, np.nan, 0.8])
OBSERVED = np.isfinite(DATA)
VECTORS = np.random.default_rng(0).normal(size=(3, 2))


def normal_mean(y: Any, observed: Any) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    with numpyro.plate("row", len(y)):
        numpyro.sample("y", dist.Normal(mean, 1.0), obs=y, obs_mask=observed)


def test_cells_of_a_mask_are_constants_that_the_check_names() -> None:
    """Without them a normal mean and its missing observations have their closed forms."""
    data = bpa.sample(normal_mean, (DATA, OBSERVED), sampler="imh", seed=1)
    report = bpa.check(data)
    assert report, str(report)
    assert report.left_out == (
        "4 values of y_unobserved: constants that are not checked, because the density does not "
        "depend on them",
    )
    posterior = data["posterior"]
    drawn = np.ptp(posterior["y_unobserved"].values, axis=(0, 1)) > 0
    np.testing.assert_array_equal(drawn, ~OBSERVED)
    variance = 1 / (OBSERVED.sum() + 1 / 4)
    mean, drawn = variance * DATA[OBSERVED].sum(), posterior["mean"].values.ravel()
    assert drawn.mean() == pytest.approx(mean, abs=0.1 * np.sqrt(variance))
    missing = posterior["y"].values[..., ~OBSERVED]
    np.testing.assert_allclose(missing.mean(axis=(0, 1)), mean, atol=0.1 * np.sqrt(1 + variance))
    np.testing.assert_allclose(missing.var(axis=(0, 1)), 1 + variance, rtol=0.1)
    given = np.broadcast_to(DATA[OBSERVED], posterior["y"].values[..., OBSERVED].shape)
    np.testing.assert_allclose(posterior["y"].values[..., OBSERVED], given, rtol=1e-6)


def test_a_program_runs_only_while_it_is_compiled() -> None:
    """Operations of other runs would be compiled one by one, which takes seconds."""
    traced = []

    def program(y: Any, observed: Any) -> None:
        normal_mean(y, observed)
        traced.append(isinstance(numpyro.sample("scale", dist.Gamma(2.0, 1.0)), jax.core.Tracer))

    data = bpa.sample(program, (DATA, OBSERVED), sampler="map")
    np.testing.assert_array_equal(data["observed_data"]["y_observed"], DATA)
    assert all(traced)


def nothing_missing() -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    y = jnp.array([0.5, 1.0])
    numpyro.sample("y", dist.LogNormal(mean, 1.0), obs=y, obs_mask=jnp.array([True, True]))


def positive() -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    y = jnp.array([0.5, 1.0])
    numpyro.sample("y", dist.LogNormal(mean, 1.0), obs=y, obs_mask=jnp.array([True, False]))


def vectors() -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    normal = dist.Normal(mean, 1.0).expand([2]).to_event(1)
    with numpyro.plate("row", 3):
        numpyro.sample("y", normal, obs=VECTORS, obs_mask=jnp.array([True, False, True]))


def log_density_of_vectors(mean: float, y: np.ndarray) -> float:
    rows = np.stack([VECTORS[0], y, VECTORS[2]])
    return float(norm.logpdf(mean, 0, 2) + multivariate_normal([mean] * 2).logpdf(rows).sum())


@pytest.mark.parametrize(
    ("program", "dimension", "expected"),
    [
        (nothing_missing, 1, lambda z: norm.logpdf(z[0], 0, 2) + log_normal(z[0], 0.5, 1.0)),
        (
            positive,
            2,
            lambda z: norm.logpdf(z[0], 0, 2) + log_normal(z[0], 0.5, np.exp(z[1])) + z[1],
        ),
        (vectors, 3, lambda z: log_density_of_vectors(z[0], z[1:])),
    ],
)
def test_the_density_is_that_of_what_is_drawn(
    program: Callable[[], None], dimension: int, expected: Callable[[np.ndarray], float]
) -> None:
    target = make_model_target(program)
    assert target.dimension == dimension
    for z in np.random.default_rng(1).normal(size=(3, dimension)):
        assert target.value_and_gradient(z)[0] == pytest.approx(expected(z), abs=1e-9)
    with jax.enable_x64(True):
        values = target.constrain(target.initial_position)
    assert np.isfinite(values["y_unobserved"]).all()


def test_masked_vectors_in_a_plate_have_its_dimension() -> None:
    """The computed site `y` has vectors, too, which only its shape shows."""
    sites = handlers.trace(handlers.seed(vectors, 0)).get_trace()
    dims = name_dimensions(sites)
    assert dims["y"] == ("row", "y_dim_1")
    assert dims["y_unobserved"] == ("row", "y_unobserved_dim_1")


def log_normal(mean: float, *values: float) -> float:
    return float(lognorm(1.0, scale=np.exp(mean)).logpdf(values).sum())


def test_masked_values_that_the_density_depends_on_are_drawn() -> None:
    """A uniform prior has no slope either, and a mask may leave only a prior out."""

    def program(y: Any) -> None:
        numpyro.sample("unused", dist.Uniform(0.0, 1.0).expand([2]).to_event(1))
        with handlers.mask(mask=jnp.array([True, False, False])):
            group = numpyro.sample("group", dist.Normal(jnp.zeros(3), 1.0))
        numpyro.sample("y", dist.Normal(group[:2], 1.0), obs=y)

    target = make_model_target(program, (np.array([0.4, 0.9]),))
    assert (target.dimension, target.flat) == (4, {"group": 1})


def test_a_comparison_leaves_out_what_the_density_does_not_depend_on() -> None:
    """NumPyro's own draws of these cells move, and have no posterior either."""
    data = bpa.sample(normal_mean, (DATA, OBSERVED), sampler="imh", seed=1)
    other = bpa.sample(normal_mean, (DATA, OBSERVED), sampler="imh", seed=3)
    elsewhere = {name: values.values.copy() for name, values in other["posterior"].items()}
    rng = np.random.default_rng(2)
    shape = elsewhere["y_unobserved"][..., OBSERVED].shape
    elsewhere["y_unobserved"][..., OBSERVED] = rng.normal(size=shape)
    elsewhere["y"] = elsewhere["y"].astype(np.float32)
    comparison = bpa.compare(data, elsewhere)
    left_out = "not compared, because they are values that the density does not depend on"
    assert left_out in str(comparison)
