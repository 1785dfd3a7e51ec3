"""Samplers of BlackJAX and nutpie; without the extra `compare` only their errors are tested."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from support.moment_checks import assert_moments
from support.raising import raises
from support.reference_model import given
from support.targets import SENTENCES, TARGETS

from bpa_ppl import Isotropic, UsageError, as_weight_draws, check, log_density, sample
from bpa_ppl.samplers.sampler import SAMPLERS

needs_blackjax = pytest.mark.skipif(
    find_spec("blackjax") is None, reason="the extra `compare` is not installed: no blackjax"
)
needs_nutpie = pytest.mark.skipif(
    find_spec("nutpie") is None, reason="the extra `compare` is not installed: no nutpie"
)
CHAINS = [
    pytest.param("blackjax:nuts", {"warmup": 300}, marks=needs_blackjax),
    pytest.param("nutpie", {"warmup": 200}, marks=needs_nutpie),
]


@pytest.mark.parametrize(("sampler", "settings"), CHAINS)
def test_moments_are_those_of_quadrature(sampler: str, settings: dict[str, Any]) -> None:
    target = TARGETS["plane"]()
    posterior = target.adapt(sampler, settings)
    draws = as_weight_draws(posterior)
    assert draws.record.sampler.name == sampler
    assert draws.shape == (4, 1000)
    assert_moments(draws.weights, target.mean, target.covariance)
    assert check(posterior)
    options = {"prior": Isotropic(variance=target.variance), "gain": given(*[0] * SENTENCES)}
    density = log_density(target.pool, target.canonical, **options)
    lp = jax.vmap(density)(draws.flat[::100])
    np.testing.assert_allclose(np.ravel(draws.draws.log_density)[::100], lp, rtol=1e-6)
    # Trajectories are doubled so often; nutpie does not count the last time if it turned there.
    doubled = np.floor(np.log2(draws.draws.statistics["n_steps"])) + 1
    uncounted = {0, 1} if sampler == "nutpie" else {0}
    assert {*np.ravel(doubled - draws.draws.statistics["tree_depth"])} <= uncounted
    assert draws.draws.statistics["step_size"].min() > 0
    assert draws.draws.warmup["weights"].shape == (4, settings["warmup"], 2)
    again = as_weight_draws(target.adapt(sampler, settings))
    np.testing.assert_array_equal(again.weights, draws.weights)
    other = as_weight_draws(target.adapt(sampler, settings, seed=1))
    assert not np.array_equal(other.weights, draws.weights)


def two_modes() -> None:
    root = numpyro.sample("root", dist.Normal(0.0, 10.0))
    numpyro.sample("y", dist.Normal(root**2, 1.0), obs=25.0)


@pytest.mark.parametrize(("sampler", "settings"), CHAINS)
def test_chains_start_at_all_modes(sampler: str, settings: dict[str, Any]) -> None:
    data = sample(two_modes, sampler=SAMPLERS.resolve(sampler, {**settings, "draws": 300}))
    drawn = data["posterior"]["root"].values
    assert (drawn > 4).any()
    assert (drawn < -4).any()
    assert not check(data)


@pytest.mark.parametrize("sampler", ["blackjax:nuts", "nutpie"])
def test_a_missing_package_is_one_sentence(sampler: str) -> None:
    if find_spec(sampler.partition(":")[0]):
        pytest.skip("it is installed")
    with raises(UsageError, "missing-package", parameter="sampler", match="the extra compare"):
        TARGETS["plane"]().adapt(sampler)


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "api" / "density.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(
    "blackjax",
    [pytest.param(False, marks=pytest.mark.slow), pytest.param(True, marks=needs_blackjax)],
    ids=["numpy", "blackjax"],
)
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_examples_of_the_page_run(blackjax: bool, capsys: pytest.CaptureFixture[str]) -> None:
    scope: dict[str, Any] = {"__name__": "page"}
    first = [block for block in BLOCKS[:2] if "blackjax" not in block]
    assert len(first) == 2
    rest = [block for block in BLOCKS[2:] if ("blackjax" in block) == blackjax]
    assert rest
    for block in first + rest:
        exec(compile(block, "density.md", "exec", dont_inherit=True), scope)
    printed = capsys.readouterr().out
    if blackjax:
        assert "my NUTS, 4 chains × 500 draws: converged" in printed
        assert len(scope["texts"]) == 30
        return
    np.testing.assert_allclose(
        scope["gradient"], jax.jacfwd(scope["density"])(scope["z"]), atol=1e-3
    )
    assert "Mala, 4 chains × 1000 draws: converged" in printed
    slope = scope["density"].value_and_gradient(scope["mode"])[1]
    assert np.abs(slope).max() < 0.1
    assert (
        0.3 < as_weight_draws(scope["posterior"]).draws.statistics["acceptance_rate"].mean() < 0.95
    )
