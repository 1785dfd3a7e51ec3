"""Samplers by name where the Laplace approximation is poor: their moments are fitted."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from bpa_ppl import adapt, check
from bpa_ppl.adapting import build_problem
from bpa_ppl.experiments.known_targets import KnownTarget, target
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.sampling import chains
from bpa_ppl.sampling.laplace import find_moments
from bpa_ppl.sampling.mode import mode_of


@pytest.fixture(scope="module")
def separable() -> KnownTarget:
    """Lists that a line separates, with a wide prior: the mode is far from the mean."""
    return target("separable")


@pytest.mark.parametrize("sampler", ["imh", "nuts", "rwm"])
def test_draws_of_a_posterior_far_from_a_gaussian_pass_and_are_right(
    separable: KnownTarget, sampler: str
) -> None:
    """`imh` missed the tails, and the steps of `nuts` diverged."""
    options = {"sampler": sampler, "seed": 2, **separable.options}
    posterior = adapt(separable.lists, separable.weights, **options)
    report, draws = check(posterior), as_draws(posterior)
    assert report, str(report)
    assert {one.name: one.value for one in report.findings}["bulk ESS"] > 500
    # Five standard errors of 500 effective draws.
    error = 5 / np.sqrt(500)
    np.testing.assert_allclose((draws.mean - separable.mean) / separable.sd, 0, atol=error)
    np.testing.assert_allclose(draws.weights.std(axis=(0, 1)) / separable.sd, 1, atol=error)


def test_moments_are_fitted_only_where_the_mode_is_a_poor_description(
    separable: KnownTarget,
) -> None:
    def moments(known: KnownTarget) -> tuple[Any, Any]:
        density = build_problem(known.lists, known.weights, **known.options).target
        with jax.enable_x64(True):
            return find_moments(density), mode_of(density)

    fitted, mode = moments(separable)
    assert fitted is not mode
    distance = np.abs(fitted.position - separable.mean) / separable.sd
    assert distance.max() < 0.2 < (np.abs(mode.position - separable.mean) / separable.sd).max()
    fitted, mode = moments(target("lists"))
    assert fitted is mode


def test_a_long_run_logs_a_first_estimate_of_its_time(
    separable: KnownTarget, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """From the second piece, since the first one has the compilation; a short run logs nothing."""
    clock = iter([100.0, 101.5, 100.0, 100.1])
    monkeypatch.setattr(chains, "perf_counter", lambda: next(clock))
    options = {"sampler": "rwm:warmup=10,draws=190,chains=1", **separable.options}
    with caplog.at_level("INFO", logger="bpa_ppl"):
        for _ in range(2):
            adapt(separable.lists, separable.weights, **options)
    messages = [r.message for r in caplog.records if "sampling takes" in r.message]
    # 20 pieces of 10 draws, of which 18 remain: 18 × 1.5 s.
    assert messages == ["sampling takes about 27 seconds (200 draws a chain with the warm-up)"]
