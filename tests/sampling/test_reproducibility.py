"""The same seed gives the same draws to the bit; more draws begin with the same ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.targets import DRAWS, OWN, TARGETS

from bpa_ppl.posterior.arviz_functions import InferenceData

Posteriors = Callable[..., InferenceData]
TESTS = Path(__file__).resolve().parent.parent

#: Strict JAX is the tests' own: a user's process has neither x64 nor the rule on ranks.
FRESH = """
import sys
sys.path.insert(0, {tests!r})
from support.targets import DRAWS, TARGETS
import numpy as np
posterior = TARGETS["plane"]().adapt({sampler!r}, seed=0, draws=DRAWS)
np.save({path!r}, posterior["posterior"]["weights"].values)
"""


def drawn(sampler: str, seed: int, **settings: Any) -> np.ndarray:
    posterior = TARGETS["plane"]().adapt(sampler, seed=seed, **{"draws": DRAWS, **settings})
    return np.asarray(posterior["posterior"]["weights"].values)


@pytest.mark.parametrize(
    "sampler",
    [
        pytest.param(name, marks=pytest.mark.slow) if name == "numpyro" else name  # NUTS as `nuts`
        for name in OWN
        if name not in ("map", "auto", "weight-trace")
    ],
)
def test_a_seed_gives_its_draws_and_no_others(posteriors: Posteriors, sampler: str) -> None:
    first = posteriors(sampler, "plane", draws=DRAWS)["posterior"]["weights"].values
    told: list[tuple[int, int]] = []
    again = drawn(sampler, seed=0, progress=lambda done, total, note: told.append((done, total)))
    np.testing.assert_array_equal(again, first)
    assert told, "progress is told to the end"
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1]
    other = drawn(sampler, seed=1)
    assert other.shape == first.shape
    assert not np.array_equal(other, first)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["rwm", "imh"])
def test_a_fresh_process_without_strict_jax_gives_the_same_draws(
    posteriors: Posteriors, sampler: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "draws.npy")
    script = FRESH.format(tests=str(TESTS), sampler=sampler, path=path)
    compiling = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "false"}  # itself, and not loading
    subprocess.run([sys.executable, "-c", script], check=True, cwd=TESTS.parent, env=compiling)
    ours = posteriors(sampler, "plane", draws=DRAWS)["posterior"]["weights"].values
    np.testing.assert_array_equal(np.load(path), ours)


@pytest.mark.parametrize("sampler", ["rwm", "rwm-isotropic"])
def test_fewer_draws_are_the_first_of_more(posteriors: Posteriors, sampler: str) -> None:
    # Their number decides the pieces in which a chain is run, which must not show.
    many = posteriors(sampler, "plane", draws=DRAWS)["posterior"]["weights"].values
    few = posteriors(sampler, "plane", draws=1001)["posterior"]["weights"].values
    np.testing.assert_array_equal(few, many[:, :1001])
