"""Cells that a density does not depend on, as `obs_mask` adds them, against closed forms."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.infer.inspect import get_dependencies
from scipy.stats import lognorm, multivariate_normal, norm
from support.raising import raises
from support.targets import starting_at_zero

import bpa_ppl as bpa
from bpa_ppl import UsageError
from bpa_ppl.densities.model_target import make_model_target
from bpa_ppl.densities.own_models import find_parents, name_dimensions
from bpa_ppl.densities.target import inspect_model

DATA = np.array([0.3, np.nan, 1.9, 1.1, np.nan, 0.8])
OBSERVED = np.isfinite(DATA)
VECTORS = np.random.default_rng(0).normal(size=(3, 2))


VARIANCE = 1 / (OBSERVED.sum() + 1 / 4)
MEAN = VARIANCE * DATA[OBSERVED].sum()
#: Whether the program was being compiled, each time that it ran.
COMPILED: list[bool] = []


def normal_mean(y: Any, observed: Any) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    COMPILED.append(isinstance(mean, jax.core.Tracer))
    with numpyro.plate("row", len(y)):
        numpyro.sample("y", dist.Normal(mean, 1.0), obs=y, obs_mask=observed)


@pytest.fixture(scope="module")
def drawn() -> Any:
    return bpa.sample(normal_mean, (DATA, OBSERVED), sampler="imh", seed=1)


def test_cells_of_a_mask_are_constants_that_the_check_names(drawn: Any) -> None:
    """Without them a normal mean and its missing observations have their closed forms."""
    report = bpa.check(drawn)
    assert report, str(report)
    assert report.left_out == (
        "4 values of y_unobserved: constants that are not checked, because the density does not "
        "depend on them",
    )
    posterior = drawn["posterior"]
    moves = np.ptp(posterior["y_unobserved"].values, axis=(0, 1)) > 0
    np.testing.assert_array_equal(moves, ~OBSERVED)
    means = posterior["mean"].values.ravel()
    assert means.mean() == pytest.approx(MEAN, abs=0.1 * np.sqrt(VARIANCE))
    missing = posterior["y"].values[..., ~OBSERVED]
    np.testing.assert_allclose(missing.mean(axis=(0, 1)), MEAN, atol=0.1 * np.sqrt(1 + VARIANCE))
    np.testing.assert_allclose(missing.var(axis=(0, 1)), 1 + VARIANCE, rtol=0.1)
    given = np.broadcast_to(DATA[OBSERVED], posterior["y"].values[..., OBSERVED].shape)
    np.testing.assert_allclose(posterior["y"].values[..., OBSERVED], given, rtol=1e-6)


def test_a_program_runs_only_while_it_is_compiled(drawn: Any) -> None:
    """Operations of other runs would be compiled one by one, which takes seconds."""
    np.testing.assert_array_equal(drawn["observed_data"]["y_observed"], DATA)
    assert COMPILED
    assert all(COMPILED)


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
    # What is positive starts at its median.
    with nullcontext() if program is positive else starting_at_zero():
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


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["rwm", "nuts"])
def test_chains_draw_what_is_missing(sampler: str) -> None:
    """And sites without a free value, and scalars that are masked, are constants."""

    def program() -> None:
        positive()
        numpyro.sample("share", dist.Dirichlet(jnp.ones(1)))
        numpyro.sample("unused", dist.Normal(0.0, 1.0).mask(False))

    posterior = bpa.sample(program, sampler=f"{sampler}:draws=100")["posterior"]
    still = {name for name in posterior.data_vars if np.ptp(posterior[name].values) == 0}
    assert still == {"share", "unused"}
    assert np.ptp(posterior["y"].values, axis=(0, 1)).astype(bool).tolist() == [False, True]
    comparison = bpa.compare_samplers(program, samplers=[sampler], runs=1, reference="imh")
    assert comparison[sampler].verdict in ("agrees", "inconclusive")


def log_normal(mean: float, *values: float) -> float:
    return float(lognorm(1.0, scale=np.exp(mean)).logpdf(values).sum())


def test_masked_values_that_the_density_depends_on_are_drawn() -> None:
    """A uniform prior has no slope either, and a mask may leave only a prior out."""

    def program(y: Any) -> None:
        numpyro.sample("unused", dist.Uniform(0.0, 1.0).expand([2]).to_event(1))
        with handlers.mask(mask=jnp.array([True, False, False])):
            group = numpyro.sample("group", dist.Normal(jnp.zeros(3), 1.0))
        numpyro.sample("y", dist.Normal(group[:2], 1.0), obs=y)

    with starting_at_zero():
        target = make_model_target(program, (np.array([0.4, 0.9]),))
    assert (target.dimension, target.flat) == (4, {"group": 1})


def test_constants_in_a_scan_are_refused_with_a_way() -> None:
    def program(y: Any, observed: Any) -> None:
        slope = numpyro.sample("slope", dist.Uniform(-1.0, 1.0))

        def step(before: Any, row: Any) -> Any:
            value = numpyro.sample("y", dist.Normal(slope * before), obs=row[0], obs_mask=row[1])
            return value, value

        scan(step, jnp.zeros(()), (y, observed))

    match = "4 of 6 values of y_unobserved, .* outside"
    with raises(UsageError, "not-supported", parameter="model", match=match):
        make_model_target(program, (np.nan_to_num(DATA), OBSERVED))


def test_a_comparison_leaves_out_what_the_density_does_not_depend_on(drawn: Any) -> None:
    """NumPyro's own draws of these cells move, and have no posterior either."""
    shape, rng = (4, 100, len(DATA)), np.random.default_rng(2)
    mean = MEAN + np.sqrt(VARIANCE) * rng.normal(size=shape[:2])
    unobserved = mean[..., None] + rng.normal(size=shape)
    unobserved[..., OBSERVED] = rng.normal(size=(*shape[:2], OBSERVED.sum()))
    y = np.where(OBSERVED, DATA, unobserved).astype(np.float32)
    elsewhere = {"mean": mean, "y_unobserved": unobserved, "y": y}
    assert elsewhere.keys() == set(drawn["posterior"].data_vars)
    comparison = bpa.compare(drawn, elsewhere)
    left_out = "not compared, because they are values that the density does not depend on"
    assert left_out in str(comparison)


ROWS = np.random.default_rng(3).normal(size=(12, 2))
HEIGHTS = ROWS @ np.array([1.0, -0.5]) + np.random.default_rng(4).normal(size=12)
SEEN = np.arange(12) % 4 != 1
GROUPS = np.repeat(np.arange(3), 4)


def regression() -> None:
    slopes = numpyro.sample("slopes", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    with numpyro.plate("row", 12):
        numpyro.sample("y", dist.Normal(ROWS @ slopes, 1.0), obs=HEIGHTS, obs_mask=SEEN)


def hierarchy() -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    with numpyro.plate("group", 3):
        level = numpyro.sample("level", dist.Normal(mean, 1.0))
    with numpyro.plate("row", 12):
        numpyro.sample("y", dist.Normal(level[GROUPS], 1.0), obs=HEIGHTS, obs_mask=SEEN)


def table() -> None:
    level = numpyro.sample("level", dist.Normal(jnp.zeros(4), 1.0).to_event(1))
    with numpyro.plate("row", 3, dim=-2), numpyro.plate("column", 4, dim=-1):
        y, seen = HEIGHTS.reshape(3, 4), SEEN.reshape(3, 4)
        numpyro.sample("y", dist.Normal(jnp.tile(level, (3, 1)), 1.0), obs=y, obs_mask=seen)


def two_sites() -> None:
    slopes = numpyro.sample("slopes", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    with numpyro.plate("row", 12):
        first = numpyro.sample("x", dist.Normal(0.0, 1.0), obs=ROWS[:, 0], obs_mask=SEEN)
        mean = slopes[0] * first + slopes[1]
        numpyro.sample("y", dist.Normal(mean, 1.0), obs=HEIGHTS, obs_mask=~SEEN)


def of_vectors() -> None:
    level = numpyro.sample("level", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
    with numpyro.plate("row", 12):
        normal = dist.MultivariateNormal(jnp.tile(level, (12, 1)), jnp.eye(2))
        numpyro.sample("y", normal, obs=ROWS, obs_mask=SEEN)


def part_of_a_prior() -> None:
    level = numpyro.sample("level", dist.Normal(jnp.zeros(3), 1.0).mask(SEEN[:3]))
    other = numpyro.sample("other", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
    numpyro.sample("y", dist.Normal(level[:2:2] + other, 1.0), obs=HEIGHTS[:2])


WITH_GAPS = [regression, hierarchy, table, two_sites, of_vectors, part_of_a_prior]


@pytest.mark.parametrize("program", WITH_GAPS)
def test_dependencies_of_programs_with_constants_are_found(program: Callable[[], None]) -> None:
    """NumPyro computes its own with several draws at a time."""
    with starting_at_zero(), jax.numpy_rank_promotion("allow"):
        target = make_model_target(program)
    with jax.enable_x64(True), jax.numpy_rank_promotion("allow"):
        known = get_dependencies(target.program, target.data)["prior_dependencies"]
        values = jax.eval_shape(target.constrain, target.initial_position)
        latent = {name: values[name] for name in inspect_model(target).latent}
        found = find_parents(target.program, {"observed": target.data[0]}, latent)
    assert target.flat
    for site in latent:
        assert {*found[site]} - {site} == {*known[site]} - {site}


@pytest.mark.slow
@pytest.mark.parametrize("program", WITH_GAPS)
def test_auto_draws_programs_with_gaps_as_nuts(program: Callable[[], None]) -> None:
    auto = bpa.sample(program, seed=1)
    nuts = bpa.sample(program, sampler="nuts:draws=2000", seed=2)
    assert bpa.check(auto)
    assert bpa.compare(auto, nuts)["a"].verdict != "DIFFERS"


@pytest.mark.slow
def test_auto_draws_a_regression_with_gaps_as_its_closed_form() -> None:
    posterior = bpa.sample(regression, seed=1)["posterior"]
    covariance = np.linalg.inv(np.eye(2) + ROWS[SEEN].T @ ROWS[SEEN])
    mean, slopes = covariance @ ROWS[SEEN].T @ HEIGHTS[SEEN], posterior["slopes"].values
    np.testing.assert_allclose(slopes.mean((0, 1)), mean, atol=0.1 * np.sqrt(covariance.max()))
    np.testing.assert_allclose(slopes.var((0, 1)), np.diag(covariance), rtol=0.15)
    missing = posterior["y"].values[..., ~SEEN]
    spread = 1 + np.einsum("ij,jk,ik->i", ROWS[~SEEN], covariance, ROWS[~SEEN])
    np.testing.assert_allclose(missing.mean((0, 1)), ROWS[~SEEN] @ mean, atol=0.12)
    np.testing.assert_allclose(missing.var((0, 1)), spread, rtol=0.15)
