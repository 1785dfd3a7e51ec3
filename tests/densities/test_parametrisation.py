"""Sites that NumPyro can write in other coordinates are found, and no others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.infer.reparam import LocScaleReparam
from support.targets import centred_schools, program_target

from bpa_ppl.densities.target import inspect_model


def horseshoe() -> None:
    """Non-centred: the slopes are products."""
    common = numpyro.sample("common", dist.HalfCauchy(0.1))
    with numpyro.plate("features", 5):
        local = numpyro.sample("local", dist.HalfCauchy(1))
        z = numpyro.sample("z", dist.Normal(0, 1))
    numpyro.sample("y", dist.Normal(jnp.sum(common * local * z), 1.0), obs=2.0)


def annotators() -> None:
    """Sites without a location and a scale."""
    shares = numpyro.sample("shares", dist.Dirichlet(jnp.ones(3)))
    numpyro.sample("others", dist.Dirichlet(1 + 10 * shares))


def volatility() -> None:
    """A walk whose step is unknown, and one variable whose degrees of freedom are."""
    step = numpyro.sample("step", dist.Exponential(50.0))
    numpyro.sample("walk", dist.GaussianRandomWalk(step, 20))
    degrees = numpyro.sample("degrees", dist.Exponential(0.1))
    numpyro.sample("shock", dist.StudentT(degrees, 0.0, 1.0))
    numpyro.sample("rate", dist.LogNormal(0.0, step))


def correlated() -> None:
    scale = numpyro.sample("scale", dist.HalfNormal(1))
    numpyro.sample("x", dist.MultivariateNormal(jnp.zeros(3), scale * jnp.eye(3)))


def several_levels() -> None:
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    with numpyro.plate("countries", 3):
        a = numpyro.sample("a", dist.Normal(mu, 1.0))
        numpyro.sample("b", dist.StudentT(4.0, a, 2.0))
    numpyro.sample("c", dist.Laplace(0.0, jnp.exp(mu)).expand([2]).to_event(1))


def walk_in_scan() -> None:
    step = numpyro.sample("step", dist.HalfNormal(1))

    def move(before: Any, _: Any) -> Any:
        level = numpyro.sample("level", dist.Normal(before, step))
        return level, level

    scan(move, jnp.zeros(()), jnp.zeros(5))


@pytest.mark.parametrize(
    ("program", "centred"),
    [
        (centred_schools, {"theta": "LocScaleReparam(0)"}),
        (handlers.reparam(centred_schools, config={"theta": LocScaleReparam(0)}), {}),
        *((horseshoe, {}), (annotators, {}), (volatility, {}), (correlated, {})),
        (
            several_levels,
            {
                "a": "LocScaleReparam(0)",
                "b": "LocScaleReparam(0, shape_params=['df'])",
                "c": "LocScaleReparam(0)",
            },
        ),
        (walk_in_scan, {"level": "LocScaleReparam(0)"}),
    ],
)
def test_centred_sites_are_those_that_numpyro_can_write_non_centred(
    program: Callable[[], None], centred: dict[str, str]
) -> None:
    assert inspect_model(program_target(program)).reparametrisations == centred
    names = {"LocScaleReparam": LocScaleReparam}
    config = {name: eval(call, names) for name, call in centred.items()}
    if program is not walk_in_scan:  # where the step of the scan needs it
        handlers.seed(handlers.reparam(program, config=config), 0)()
