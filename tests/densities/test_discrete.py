"""Discrete sites are summed out: marginal densities against sums and the forward algorithm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.contrib.control_flow import scan
from scipy.special import expit, logsumexp
from scipy.stats import norm
from support.raising import raises
from support.targets import starting_at_zero

import bpa_ppl as bpa
from bpa_ppl import UsageError
from bpa_ppl.densities import discrete
from bpa_ppl.densities.model_target import make_model_target

pytestmark = pytest.mark.usefixtures("broadcasting")
RNG = np.random.default_rng(3)
DATA = np.concatenate([RNG.normal(-1.0, 1.0, 6), RNG.normal(2.0, 1.0, 4)])


@pytest.fixture
def broadcasting() -> Iterator[None]:
    """Let NumPyro sum over arrays of different ranks, in all threads."""
    jax.config.update("jax_numpy_rank_promotion", "allow")
    yield
    jax.config.update("jax_numpy_rank_promotion", "raise")


def mixture(y: Any) -> None:
    share = numpyro.sample("share", dist.Dirichlet(jnp.ones(2)))
    with numpyro.plate("component", 2):
        mean = numpyro.sample("mean", dist.Normal(jnp.array([-1.0, 2.0]), 1.0))
    numpyro.deterministic("distance", mean[1] - mean[0])
    with numpyro.plate("row", len(y)):
        component = numpyro.sample("z", dist.Categorical(share))
        numpyro.deterministic("centre", mean[component])
        numpyro.sample("y", dist.Normal(mean[component], 1.0), obs=y)


def hidden_markov(y: Any) -> None:
    change = numpyro.sample("change", dist.Dirichlet(jnp.ones((2, 2))).to_event(1))
    normal = dist.Normal(jnp.array([-1.0, 2.0]), 1.0).to_event(1)
    mean = numpyro.sample("mean", normal)

    def step(state: Any, y: Any) -> tuple[Any, None]:
        state = numpyro.sample("state", dist.Categorical(change[state]))
        numpyro.sample("y", dist.Normal(mean[state], 1.0), obs=y)
        return state, None

    scan(step, 0, jnp.asarray(y))


def constrain(z: np.ndarray) -> tuple[np.ndarray, float]:
    """Return shares, and their log density with the Jacobian, of one unconstrained value."""
    share = expit(np.concatenate([z, -z]))  # the log density of a flat Dirichlet is 0
    return share, float(np.log(share).sum())


def sum_over_components(z: np.ndarray) -> float:
    mean, (share, log_p) = z[:2], constrain(z[2:])
    log_p += norm.logpdf(mean, [-1, 2], 1).sum()
    return log_p + logsumexp(np.log(share) + norm.logpdf(DATA[:, None], mean, 1), axis=1).sum()


def forward(z: np.ndarray) -> float:
    """The forward algorithm; z has the two rows of transitions, then the means."""
    rows, mean = [constrain(z[k : k + 1]) for k in (0, 1)], z[2:]
    log_change = np.log(np.stack([share for share, _ in rows]))
    log_p = sum(density for _, density in rows) + norm.logpdf(mean, [-1, 2], 1).sum()
    alpha = log_change[0] + norm.logpdf(DATA[0], mean, 1)
    for y in DATA[1:]:
        alpha = logsumexp(alpha[:, None] + log_change, axis=0) + norm.logpdf(y, mean, 1)
    return float(log_p + logsumexp(alpha))


@pytest.mark.parametrize(
    ("program", "expected"), [(mixture, sum_over_components), (hidden_markov, forward)]
)
def test_the_density_is_the_marginal_one(
    program: Callable[[Any], None], expected: Callable[[np.ndarray], float]
) -> None:
    pytest.importorskip("funsor")
    with starting_at_zero():
        target = make_model_target(program, (DATA,))
    for z in RNG.normal(size=(3, target.dimension)):
        assert target.value_and_gradient(z)[0] == pytest.approx(expected(z), abs=1e-10)


@pytest.mark.slow
def test_a_mixture_is_sampled_without_its_components() -> None:
    """What is computed from them is left out; components of new data are drawn."""
    pytest.importorskip("funsor")
    data = bpa.sample(mixture, (DATA,), sampler="imh", predict=True, seed=1)
    assert {*data["posterior"].data_vars} == {"share", "mean", "distance"}
    assert {*data["prior"].data_vars} == {"share", "mean", "distance"}
    predicted, posterior = data["posterior_predictive"]["y"], data["posterior"]
    expected = (posterior["share"].values * posterior["mean"].values).sum(axis=-1).mean()
    assert float(predicted.mean()) == pytest.approx(expected, abs=0.1)
    assert "log_likelihood" not in data
    with raises(UsageError, "not-supported", parameter="log_likelihood", match="z"):
        bpa.sample(mixture, (DATA,), log_likelihood=True)


def test_values_without_a_plate_are_refused() -> None:
    pytest.importorskip("funsor")

    def program() -> None:
        numpyro.sample("mean", dist.Normal(jnp.zeros(2), 1.0))
        numpyro.sample("z", dist.Bernoulli(0.5))

    with raises(UsageError, "not-supported", parameter="model", match="mean .* 2 values"):
        make_model_target(program)


def test_sites_that_cannot_be_summed_out_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def count() -> None:
        numpyro.sample("rate", dist.Gamma(1.0, 1.0))
        numpyro.sample("n", dist.Poisson(1.0))

    with raises(UsageError, "not-supported", parameter="model", match="n .* enumerated"):
        make_model_target(count)
    monkeypatch.setattr(discrete, "find_spec", lambda name: None)
    with raises(UsageError, "not-supported", parameter="model", match=r"z .*bpa_ppl\[enumerate\]"):
        make_model_target(mixture, (DATA[:3],))
