"""Distributions of one's own whose log densities have another shape than their batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.distributions import constraints
from scipy.stats import norm
from support.raising import raises
from support.targets import starting_at_zero

from bpa_ppl import UsageError
from bpa_ppl.densities.model_target import make_model_target
from bpa_ppl.densities.own_models import CheckedSites

DATA = np.array([1.0, 2.0])
MASK = np.array([True, False])


class Own(dist.Distribution):  # type: ignore[misc] # NumPyro has no types
    """A normal distribution with the scale 1."""

    support = constraints.real
    arg_constraints: dict[str, Any] = {}  # noqa: RUF012
    pytree_data_fields = ("loc",)

    def __init__(self, loc: Any):
        self.loc = loc
        super().__init__(jnp.shape(loc))

    def sample(self, key: Any, sample_shape: Any = ()) -> Any:
        return self.loc + jax.random.normal(key, sample_shape + self.batch_shape)

    def log_prob(self, value: Any) -> Any:
        return -0.5 * (value - self.loc) ** 2 - 0.5 * np.log(2 * np.pi)


class Added(Own):
    """One number for all observations, which a plate repeats for each of them."""

    def log_prob(self, value: Any) -> Any:
        return super().log_prob(value).sum()


class Twice(Own):
    """Each log density twice, as where a column and a row are subtracted."""

    def log_prob(self, value: Any) -> Any:
        return jnp.stack([super().log_prob(value)] * 2, axis=-1)


class Vector(dist.Distribution):  # type: ignore[misc] # NumPyro has no types
    """Two standard normal values."""

    support = constraints.real_vector

    def __init__(self) -> None:
        super().__init__((), (2,))

    def log_prob(self, value: Any) -> Any:
        return -0.5 * (value**2).sum(axis=-1)

    def sample(self, key: Any, sample_shape: Any = ()) -> Any:
        return jax.random.normal(key, (*sample_shape, 2))


class OfOneVector(Vector):
    """A log density that takes one vector at a time."""

    def log_prob(self, value: Any) -> Any:
        return -0.5 * value @ jnp.eye(2) @ value


class NotAdded(Vector):
    def log_prob(self, value: Any) -> Any:
        return -0.5 * value**2


@pytest.fixture(autouse=True)
def as_outside_of_tests() -> Iterator[None]:
    """NumPyro itself subtracts arrays of several ranks."""
    with jax.numpy_rank_promotion("allow"):
        yield


def in_a_plate(make: Any, mean: Any) -> None:
    with numpyro.plate("row", 2):
        numpyro.sample("y", make(mean), obs=DATA)


def masked(make: Any, mean: Any) -> None:
    with handlers.mask(mask=MASK):
        numpyro.sample("y", make(mean * jnp.ones(2)), obs=DATA)


def in_a_scan(make: Any, mean: Any) -> None:
    def step(before: Any, of: Any) -> Any:
        numpyro.sample("y", make(mean + before), obs=of)
        return of, None

    scan(step, jnp.zeros(()), DATA)


def with_gaps(make: Any, mean: Any) -> None:
    numpyro.sample("y", make(mean).expand([2]), obs=DATA, obs_mask=MASK)


def latent(make: Any, mean: Any) -> None:
    with numpyro.plate("row", 2):
        x = numpyro.sample("x", make(0.0))
    numpyro.sample("y", dist.Normal(mean + x, 1.0), obs=DATA)


def observing(distribution: Callable[[Any, Any], Any]) -> Callable[[Any, Any], None]:
    return lambda make, mean: numpyro.sample("y", distribution(make, mean), obs=DATA)


PLACES: dict[str, Callable[[Any, Any], Any]] = {
    "plate": in_a_plate,
    "mask": masked,
    "obs_mask": with_gaps,
    "latent": latent,
    "batch": observing(lambda make, mean: make(mean * jnp.ones(2))),
    "expand": observing(lambda make, mean: make(mean).expand([2])),
    "to_event": observing(lambda make, mean: make(mean * jnp.ones(2)).to_event(1)),
    "expanded event": observing(lambda make, mean: make(mean).expand([2]).to_event(1)),
    "mixture": observing(
        lambda make, mean: dist.MixtureSameFamily(
            dist.Categorical(jnp.ones(2) / 2), make(jnp.array([0.0, 1.0]) + mean)
        ).expand([2])
    ),
    "transformed": observing(
        lambda make, mean: dist.TransformedDistribution(
            make(mean * jnp.ones(2)), dist.transforms.ExpTransform()
        )
    ),
}


def program_of(place: str, make: Any) -> Callable[[], None]:
    return lambda: PLACES[place](make, numpyro.sample("mean", dist.Normal(0.0, 1.0)))


@pytest.mark.parametrize("place", [*PLACES, "scan"])
def test_a_log_density_of_the_shape_of_its_batch_is_accepted(place: str) -> None:
    make = in_a_scan if place == "scan" else PLACES[place]
    program = CheckedSites(lambda: make(Own, numpyro.sample("mean", dist.Normal(0.0, 1.0))))
    assert handlers.trace(handlers.seed(program, 0)).get_trace()


@pytest.mark.parametrize("wrong", [Added, Twice])
@pytest.mark.parametrize("place", PLACES)
def test_a_log_density_of_another_shape_is_refused_with_both_shapes(place: str, wrong: Any) -> None:
    shape = r"\(2, 2(, 2)?\)" if wrong is Twice else r"\(\)"
    match = rf"log_prob of {wrong.__name__}, .* site [xy]\w* of .* {shape} in place of \(2,( 2)?\)"
    with raises(UsageError, "mismatch", parameter="model", match=match):
        make_model_target(program_of(place, wrong))


def test_events_are_added_and_vectors_may_come_one_at_a_time() -> None:
    for kind in (Vector, OfOneVector):
        program = CheckedSites(lambda kind=kind: numpyro.sample("y", kind(), obs=DATA))
        assert handlers.trace(handlers.seed(program, 0)).get_trace()
    with raises(UsageError, "mismatch", parameter="model", match=r"\(2,\) in place of \(\)"):
        make_model_target(lambda: numpyro.sample("x", NotAdded()))


def test_one_sum_of_several_observations_counts_them_once() -> None:
    """Without a plate, the sum of a distribution is the log likelihood."""
    with starting_at_zero():
        target = make_model_target(
            lambda: numpyro.sample(
                "y", Added(numpyro.sample("mean", dist.Normal(0.0, 1.0))), obs=DATA
            )
        )
    expected = norm.logpdf(0.3) + norm.logpdf(DATA, 0.3).sum()
    assert target.value_and_gradient([0.3])[0] == pytest.approx(expected)


#: Distributions of NumPyro, with batches, events and parts.
OF_NUMPYRO: list[Any] = [
    dist.AsymmetricLaplace(0.0, 1.0, 2.0),
    dist.Beta(jnp.ones(3), 2.0),
    dist.BetaBinomial(2.0, 3.0, 10),
    dist.BetaProportion(0.4, 3.0),
    dist.Cauchy(jnp.zeros((2, 3)), 1.0),
    dist.Chi2(3.0),
    dist.Dirichlet(jnp.ones((4, 3))),
    dist.DirichletMultinomial(jnp.ones(3), 5),
    dist.Exponential(jnp.ones(2)),
    dist.FoldedDistribution(dist.Normal(0.0, jnp.ones(2))),
    dist.Gamma(2.0, jnp.ones(2)),
    dist.GaussianRandomWalk(1.0, 5),
    dist.Gompertz(1.0, 2.0),
    dist.Gumbel(0.0, jnp.ones(2)),
    dist.HalfCauchy(jnp.ones(2)),
    dist.HalfNormal(jnp.ones((2, 1))),
    dist.InverseGamma(3.0, 2.0),
    dist.Kumaraswamy(2.0, jnp.ones(2)),
    dist.LKJ(3, 1.0),
    dist.LKJCholesky(3, 1.0),
    dist.Laplace(0.0, jnp.ones(2)),
    dist.LeftTruncatedDistribution(dist.Normal(jnp.zeros(2), 1.0), 0.5),
    dist.Levy(0.0, 1.0),
    dist.LogNormal(jnp.zeros(2), 1.0),
    dist.LogUniform(1.0, jnp.full(2, 3.0)),
    dist.Logistic(0.0, 1.0),
    dist.LowRankMultivariateNormal(jnp.zeros(3), jnp.ones((3, 1)), jnp.ones(3)),
    dist.MatrixNormal(jnp.zeros((2, 3)), jnp.eye(2), jnp.eye(3)),
    dist.MixtureGeneral(
        dist.Categorical(jnp.ones(2) / 2), [dist.Normal(0.0, 1.0), dist.StudentT(3.0, 0.0, 1.0)]
    ),
    dist.MixtureSameFamily(dist.Categorical(jnp.ones(2) / 2), dist.Normal(jnp.zeros(2), 1.0)),
    dist.Multinomial(5, jnp.ones(3) / 3),
    dist.MultivariateNormal(jnp.zeros((2, 3)), jnp.eye(3)),
    dist.MultivariateStudentT(4.0, jnp.zeros(2), jnp.eye(2)),
    dist.NegativeBinomial2(2.0, jnp.ones(2)),
    dist.Normal(0.0, 1.0).expand([3, 2]).to_event(1),
    dist.Normal(jnp.zeros(2), 1.0).mask(MASK),
    dist.Pareto(1.0, jnp.ones(2)),
    dist.Poisson(jnp.ones(2)),
    dist.RelaxedBernoulli(0.5, jnp.zeros(2)),
    dist.SineBivariateVonMises(0.0, 0.0, 1.0, 1.0, weighted_correlation=0.5),
    dist.SoftLaplace(0.0, jnp.ones(2)),
    dist.StudentT(3.0, jnp.zeros(2), 1.0),
    dist.TransformedDistribution(dist.Normal(jnp.zeros(2), 1.0), dist.transforms.ExpTransform()),
    dist.TruncatedNormal(jnp.zeros(2), 1.0, low=0.0),
    dist.TwoSidedTruncatedDistribution(dist.Cauchy(0.0, 1.0), 0.0, 2.0),
    dist.Uniform(jnp.zeros(2), 1.0),
    dist.VonMises(0.0, jnp.ones(2)),
    dist.Weibull(1.0, jnp.ones(2)),
    dist.Wishart(4.0, jnp.eye(2)),
    dist.ZeroInflatedPoisson(0.3, jnp.ones(2)),
    dist.ZeroSumNormal(1.0, (4,)),
]


@pytest.mark.parametrize("distribution", OF_NUMPYRO, ids=lambda one: type(one).__name__)
def test_those_of_numpyro_are_accepted(distribution: Any) -> None:
    """Also where they are derived from, as one's own."""
    kind = type(distribution)
    own = type(f"Own{kind.__name__}", (kind,), {"__module__": __name__})
    derived = copy(distribution)
    derived.__class__ = own

    def run(key: Any) -> None:
        with handlers.seed(rng_seed=key), CheckedSites(lambda: None):
            for one in (distribution, derived):
                value = numpyro.sample(type(one).__name__, one)
                numpyro.sample(f"{type(one).__name__} observed", one, obs=value)

    jax.eval_shape(run, jax.random.key(0))
