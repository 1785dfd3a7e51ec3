"""The memory of large programs, in processes of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SCRIPT = """
import sys

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

import bpa_ppl as bpa


def computed(size):
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    numpyro.deterministic("table", mean * jnp.ones((size, size)) + jnp.arange(size))
    numpyro.sample("y", dist.Normal(mean, 1.0), obs=1.0)


def peak():  # of this program: `getrusage` counts the process that started it, too
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


for size in (3, 150):
    before = peak()
    data = bpa.sample(computed, (size,), sampler=sys.argv[1])
    draws = data["posterior"]["table"].values
    expected = data["posterior"]["mean"].values[..., None] + list(range(size))
    assert (draws[..., 2, :] == expected).all()
    bpa.check(data)
print((peak() - before) / draws.nbytes)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs the figures of Linux")
@pytest.mark.parametrize("sampler", ["nuts", "imh"])
def test_a_large_deterministic_site_needs_little_more_memory_than_its_draws(sampler: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, sampler], capture_output=True, text=True, check=True
    )
    assert 0.9 < float(done.stdout) < 1.6
