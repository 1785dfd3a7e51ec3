"""Draws that do not fit into memory are refused before sampling."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import pytest
from support.raising import raises
from support.targets import program_target, starting_at_zero

import bpa_ppl as bpa
from bpa_ppl import UsageError
from bpa_ppl.samplers.memory import fits_into_memory
from bpa_ppl.samplers.sampler import SAMPLERS


def with_large_results() -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    numpyro.deterministic("field", mean * jnp.ones((3000, 3000)))
    numpyro.sample("y", dist.Normal(mean, 1.0), obs=0.5)


def with_many_values() -> None:
    values = numpyro.sample("values", dist.Normal(0.0, 1.0).expand([1000]).to_event(1))
    numpyro.sample("y", dist.Normal(values.sum(), 1.0), obs=0.5)


@pytest.mark.parametrize("sampler", ["auto", "nuts", "imh", "rwm", "numpyro:HMC"])
def test_a_large_deterministic_site_is_refused_with_its_size(sampler: str) -> None:
    """9 million values of 8 bytes, 4,000 times."""
    match = (
        r"4,000 draws of 9,000,000 values of the site field are 288\.0 GB; leave out the "
        "deterministic site field"
    )
    with starting_at_zero(), raises(UsageError, "not-supported", parameter="sampler", match=match):
        bpa.sample(with_large_results, sampler=sampler)


def test_fewer_draws_are_named_where_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 values of 4 chains of 4,000 draws are 128 MB, twice."""
    available = SimpleNamespace(available=200e6)
    monkeypatch.setattr("bpa_ppl.samplers.memory.virtual_memory", lambda: available)
    with starting_at_zero():
        target = program_target(with_many_values)
    match = r"16,000 draws of 1,000 values of the site values are 0\.1 GB; draw fewer, such as "
    with raises(UsageError, "not-supported", parameter="sampler", match=match) as error:
        bpa.sample(with_many_values, sampler="imh:draws=4000")
    advised = str(error.value).split("such as ")[1]
    assert fits_into_memory(target, SAMPLERS.resolve(advised))
    assert not fits_into_memory(target, SAMPLERS.resolve("imh:draws=4000"))


@pytest.mark.parametrize(
    ("sampler", "values"),
    [
        ("imh:draws=500,warmup=0", 3000),  # 4 chains, and 1,000 draws of the prior
        ("nuts:draws=500,warmup=250", 4000),
        ("nuts:draws=500,warmup=250,chains=2", 2500),
        ("map", 1001),
    ],
)
def test_draws_warmup_and_draws_of_the_prior_are_counted(
    sampler: str, values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with starting_at_zero():
        target = program_target(with_many_values)
    engine: Any = SAMPLERS.resolve(sampler)
    for available, fits in ((2 * 8 * 1000 * values, True), (2 * 8 * 1000 * values - 1, False)):
        memory = SimpleNamespace(available=available)
        monkeypatch.setattr("bpa_ppl.samplers.memory.virtual_memory", lambda of=memory: of)
        assert fits_into_memory(target, engine) == fits
