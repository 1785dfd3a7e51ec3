"""Simulated oracles and answers: as the model says, and samplers are calibrated on them."""

from __future__ import annotations

from typing import Any

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest
from support import reference_model
from support.raising import raises
from support.registries import SAMPLERS
from support.targets import plane

from bpa_ppl import Isotropic, NBest, UsageError, calibrate, log_density
from bpa_ppl.adapting.simulation import make_density_simulation, make_lists_simulation
from bpa_ppl.extending import Sampler

TARGET = plane()
#: A walk of the published step would need far more draws where the prior is as wide as here.
SETTINGS: dict[str, dict[str, Any]] = {
    "imh": {"draws": 250},
    "laplace": {"draws": 1000},
    "nuts": {"draws": 250},
    "numpyro:BarkerMH": {"draws": 250, "warmup": 200, "thinning": 4},
    "numpyro:ESS": {"draws": 100, "warmup": 50},
    "rwm": {"draws": 250},
    "rwm-isotropic": {"draws": 250, "proposal_variance": 2.0, "thinning": 5},
}


def calibrated(sampler: Sampler) -> Any:
    prior = Isotropic(variance=TARGET.variance)
    simulation = make_lists_simulation(TARGET.pool, TARGET.canonical, prior=prior)
    return calibrate(simulation, samplers=[sampler], replications=60)[0]


def test_a_simulation_keeps_its_types_in_a_worker() -> None:
    simulation = make_lists_simulation(TARGET.pool, TARGET.canonical)
    with jax.enable_x64(False):  # as in a worker
        copy = cloudpickle.loads(cloudpickle.dumps(simulation))
    data = simulation.simulate(jax.random.key(0)).data
    densities = [one.given(data) for one in (simulation, copy)]
    types = [[part.dtype for part in jax.tree.leaves(one.data)] for one in densities]
    assert types[0] == types[1]


def test_weights_are_simulated_from_the_prior_and_oracles_from_the_model() -> None:
    oracle = reference_model.given(*[0] * len(TARGET.pool))
    options = {"likelihood": "oracle", "gain": oracle, "prior": Isotropic(variance=TARGET.variance)}
    target = log_density(TARGET.pool, TARGET.canonical, **options)
    keys = jax.random.split(jax.random.key(0), 4000)
    simulation = make_density_simulation(target)
    weights, simulated, likelihood = jax.jit(jax.vmap(simulation.simulate))(keys)
    oracle = simulated["oracle"].astype(int)
    centre = list(TARGET.canonical.values())
    z = (np.asarray(weights) - centre) / np.sqrt(TARGET.variance)
    assert all(kstest(z[:, k], "norm").pvalue > 0.001 for k in range(2))
    rows = {int(s): j for j, s in enumerate(target.lists.sentence) if s >= 0}
    lists = [TARGET.pool.features[TARGET.pool.rows(s)] for s in rows]
    some = np.asarray(weights)[:500]
    p = np.exp([[reference_model.log_choice(features, w) for features in lists] for w in some])
    second = np.asarray(oracle)[:500][:, list(rows.values())]
    expected = p[..., 1].sum(axis=0)
    counts = second.sum(axis=0)
    spread = (p[..., 1] * p[..., 0]).sum(axis=0)
    assert np.abs((counts - expected) / np.sqrt(spread)).max() < 4
    chosen = np.take_along_axis(p, second[..., None], axis=2)[..., 0]
    np.testing.assert_allclose(np.log(chosen).sum(axis=1), likelihood[:500], atol=1e-4)


#: What compiles for long, and walks.
_LONG = ("imh", "nuts", "numpyro:BarkerMH", "numpyro:ESS", "rwm", "rwm-isotropic")


@pytest.mark.parametrize(
    "sampler", [pytest.param(n, marks=pytest.mark.slow) if n in _LONG else n for n in SETTINGS]
)
def test_the_exact_samplers_are_calibrated(sampler: str) -> None:
    found = calibrated(SAMPLERS.resolve(sampler, SETTINGS[sampler]))
    assert found, str(found)
    assert found.names == (*TARGET.canonical, "log likelihood")


class DriftingSampler(SAMPLERS["rwm"], frozen=True):
    """Chains of a walk with a drift that its accept ratio ignores."""

    def initialise(self, target: Any, covariance: Any, keys: jax.Array, z: Any) -> Any:
        start, step, collect = super().initialise(target, covariance, keys, z)
        drift = 0.5 * jnp.linalg.cholesky(covariance).sum(axis=1)[None]

        def drifting(state: Any) -> Any:
            weights, energy = state[0]["weights"], state[1]
            after = step(({"weights": weights + drift}, *state[1:]))
            accepted = (after[1] != energy)[:, None]
            return {"weights": jnp.where(accepted, after[0]["weights"], weights)}, *after[1:]

        return start, drifting, collect


@pytest.mark.slow
def test_a_wrong_accept_ratio_is_found() -> None:
    found = calibrated(DriftingSampler(draws=250, scale=2.0))
    assert not found
    assert found.sampler == "DriftingSampler"
    assert found.ess > 99  # the draws that are ranked; not because of too few draws
    assert "too large" in str(found)


@pytest.mark.parametrize("likelihood", ["margin", "risk", "pairs"])
def test_answers_can_be_simulated_but_no_gains(toy: NBest, likelihood: str) -> None:
    weights = dict.fromkeys(toy.feature_names, 0.5)
    with raises(UsageError, "not-supported", parameter="likelihood"):
        make_lists_simulation(toy, weights, likelihood=likelihood)
    with raises(UsageError, "not-supported", parameter="likelihood"):
        make_density_simulation(log_density(toy, weights, gain="ter", likelihood=likelihood))
    judged = toy.with_sentence_extras(preferences=[[[0, 1]]] * 3)
    assert make_lists_simulation(judged, weights, likelihood="preference").names[:2] == (
        *toy.feature_names[:2],
    )


def test_a_density_has_its_simulation_and_is_none() -> None:
    prior = Isotropic(variance=TARGET.variance)
    oracle = reference_model.given(*[0] * len(TARGET.pool))
    density = log_density(
        TARGET.pool, TARGET.canonical, likelihood="oracle", gain=oracle, prior=prior
    )
    one = make_density_simulation(density)
    other = make_lists_simulation(TARGET.pool, TARGET.canonical, prior=prior)
    samplers, count = ["laplace:draws=200"], 20
    ranks = [calibrate(s, samplers=samplers, replications=count)[0].ranks for s in (one, other)]
    np.testing.assert_array_equal(*ranks)
    with raises(UsageError, "wrong-type", parameter="model", match="make_density_simulation"):
        calibrate(density, samplers=samplers)
