"""The same posterior on one device and on four."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import warnings
from contextlib import redirect_stdout

import numpy as np
import pytest

from bpa_ppl import BpaWarning

pytestmark = pytest.mark.slow  # it compiles everything for four devices
_SCRIPT = """
import json
import jax
import numpy as np
from bpa_ppl import NBest, adapt
from bpa_ppl.models import Prior, tabulate
from bpa_ppl.sampling.target import place
from bpa_ppl.weights import match

rng = np.random.default_rng(3)
sizes = rng.integers(2, 60, size=30)
texts = [[f"w{h}" for h in range(n)] for n in sizes]
pool = NBest.from_lists(texts, [rng.normal(size=(n, 3)) for n in sizes], ["A", "B", "C"],
                        references=[("w0",)] * len(sizes))
canonical = {"A": 0.1, "B": 0.2, "C": 0.3}
found = {"devices": len(jax.devices())}
table = tabulate(pool, match(canonical, pool), np.zeros(30, int), multiple=found["devices"])
prior = Prior.isotropic(canonical)._replace(names=None)
shards = place(table, prior)[0].buckets[0]["features"].addressable_shards
found["rows held by one device"] = [shard.data.shape[1] for shard in shards]
found["rows"] = table.buckets[0]["features"].shape[1]
for sampler in ("map", "imh", "nuts"):
    settings = {} if sampler == "map" else {"draws": 200}
    post = adapt(pool, canonical, sampler=sampler, seed=1, **settings)
    found[sampler] = post["posterior"]["weights"].values.mean((0, 1)).tolist()
    found[sampler + " sd"] = post["posterior"]["weights"].values.std((0, 1)).tolist()
    found[sampler + " fit"] = post["log_likelihood"]["oracle"].values[0, 0].tolist()
print(json.dumps(found))
"""


def _here() -> dict:
    """Run it in this process, whose processor is one device."""
    told = io.StringIO()
    with redirect_stdout(told), warnings.catch_warnings():
        warnings.simplefilter("ignore", BpaWarning)
        exec(_SCRIPT, {})
    return json.loads(told.getvalue())


def _on(devices: int) -> dict:
    flags = f"--xla_force_host_platform_device_count={devices}"
    run = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(run.stdout)


@pytest.fixture(scope="module")
def results() -> tuple[dict, dict]:
    return _here(), _on(4)


def test_sentences_are_shared_out_evenly(results: tuple[dict, dict]) -> None:
    one, four = results
    assert (one["devices"], four["devices"]) == (1, 4)
    assert len(one["rows held by one device"]) == 1
    assert four["rows held by one device"] == [four["rows"] // 4] * 4


def test_mode_and_independence_draws_are_the_same(results: tuple[dict, dict]) -> None:
    one, four = results
    np.testing.assert_allclose(four["map"], one["map"], atol=1e-5)
    np.testing.assert_allclose(four["imh"], one["imh"], atol=1e-5)
    np.testing.assert_allclose(four["map fit"], one["map fit"], rtol=1e-4)


def test_nuts_agrees_within_monte_carlo_error(results: tuple[dict, dict]) -> None:
    # Trajectories part company by rounding, so that only moments can agree: 800 draws each.
    one, four = results
    error = np.array(one["nuts sd"]) * np.sqrt(2 / 200)
    assert np.all(np.abs(np.subtract(four["nuts"], one["nuts"])) < 5 * error)
