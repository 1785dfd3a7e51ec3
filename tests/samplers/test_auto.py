"""`auto` takes independence proposals where they fit, and moments are fitted elsewhere."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from support.judged_lists import judged_lists
from support.known_targets import KnownTarget, target
from support.posteriors import Finding
from support.raising import raises
from support.targets import DRAWS, laplace, plane, program_target

from bpa_ppl import (
    DataError,
    Draws,
    OracleChoice,
    Prior,
    Report,
    adapt,
    as_weight_draws,
    check,
    log_density,
    sample,
)
from bpa_ppl.extending import Likelihood, Lists, Sampled
from bpa_ppl.samplers import auto, chains
from bpa_ppl.samplers.auto import Auto
from bpa_ppl.samplers.nuts import Nuts
from bpa_ppl.samplers.starting import draw_starts, find_moments


def _observe_without_effect(lists: Lists, weights: Any) -> None:
    with numpyro.plate("sentence", len(lists.oracle)):
        numpyro.sample("oracle", OracleChoice(lists, weights * 0.0), obs=lists.oracle)


def _modeless(lists: Lists, prior: Prior, likelihood: Likelihood) -> None:
    """A funnel: its density grows without bound towards a scale of zero."""
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    weights = numpyro.sample("weights", dist.Normal(prior.mean, scale).to_event(1))
    _observe_without_effect(lists, weights)


def test_auto_chooses_imh_if_its_proposals_fit() -> None:
    post = plane().adapt("auto", seed=1)
    assert post.attrs["chosen"] == "imh"
    assert "Pareto k̂" in post.attrs["chosen_because"]
    assert check(post)


@pytest.mark.parametrize(
    ("failures", "shortage", "chosen", "count", "reason"),
    [
        (0, 1.0, "imh", 128, "Pareto k̂ {} ≤ 0.5 of proposals around the mode"),
        (1, 2.0, "imh", 128, "draws failed: imh (R-hat); Pareto k̂ {}, {} ≤ 0.7 of those with"),
        (2, 2.0, "imh", 512, "earlier draws failed: imh (R-hat), imh (bulk ESS and "),
        (3, 2.0, "nuts", 128, "failed: imh (R-hat), imh (bulk ESS and tail ESS), imh (R-hat)"),
        pytest.param(4, 2.0, "nuts", 512, "nuts (divergences)", marks=pytest.mark.slow),
        pytest.param(5, 4.0, "nuts", 2048, "nuts (bulk ESS)", marks=pytest.mark.slow),
        (5, 4.1, "nuts", 512, "nuts (divergences)"),
    ],
)
def test_failed_checks_are_followed_by_fitted_proposals_more_draws_and_nuts(
    monkeypatch: pytest.MonkeyPatch,
    failures: int,
    shortage: float,
    chosen: str,
    count: int,
    reason: str,
) -> None:
    """And the title of the check says why; NUTS ends where four times as many draws are too few."""
    diagnostics = [["R-hat"], ["bulk ESS", "tail ESS"], ["R-hat"], ["divergences"], ["bulk ESS"]]
    failed = iter([*diagnostics[:failures], []])

    def report(draws: Draws) -> Report:
        return Report(
            "auto", draws.shape, tuple(Finding(n, 0, "", "", False, "") for n in next(failed))
        )

    monkeypatch.setattr(auto, "check_draws", report)
    monkeypatch.setattr(auto, "find_shortage", lambda report: shortage)
    post = plane().adapt("auto", {"draws": 128, "chains": 1}, seed=1)
    assert post.attrs["chosen"] == chosen
    assert post["posterior"]["weights"].shape[:2] == (1, count)
    assert ("drawn_again_because" in post.attrs) == (failures > 0)
    title = str(check(post)).splitlines()[0]
    assert re.search(re.escape(reason).replace(r"\{\}", ".*"), title), title
    assert ("Pareto" in title) == (chosen == "imh")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:all choices")  # the last one is the best by construction
@pytest.mark.parametrize("likelihood", ["risk", "margin"])
def test_proposals_are_fitted_to_a_posterior_far_from_its_laplace_approximation(
    likelihood: str,
) -> None:
    lists = judged_lists(20, names=(*"abcdef", "eve"))
    options = {"gain": "comet", "categorical": "system", "prior": "isotropic:variance=4.0"}
    post = adapt(lists, None, likelihood=likelihood, seed=1, **options)
    assert post.attrs["chosen"] == "imh"
    assert "> 0.5 of proposals around the mode" in post.attrs["chosen_because"]
    assert "≤ 0.7 of those with fitted moments" in post.attrs["chosen_because"]
    assert check(post)


@pytest.mark.slow
def test_it_falls_back_to_nuts() -> None:
    post = plane().adapt("auto", {"draws": 50, "chains": 2}, model=_modeless)
    assert post.attrs["chosen"] == "nuts"
    assert "n_steps" in post["sample_stats"]


def test_a_missing_mode_is_reported() -> None:
    with raises(DataError, parameter="sampler"):
        plane().adapt("imh", model=_modeless)


@pytest.fixture(scope="module")
def separable() -> KnownTarget:
    """Lists that a line separates, with a wide prior: the mode is far from the mean."""
    return target("separable")


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["imh", "nuts", "rwm"])
def test_draws_of_a_posterior_far_from_a_gaussian_pass_and_are_right(
    separable: KnownTarget, sampler: str
) -> None:
    """`imh` missed the tails, and the steps of `nuts` diverged."""
    options = {"sampler": sampler, "seed": 2, **separable.options}
    posterior = adapt(separable.lists, separable.weights, **options)
    report, draws = check(posterior), as_weight_draws(posterior)
    assert report, str(report)
    assert {one.name: one.value for one in report.rows}["bulk ESS"] > 500
    # Five standard errors of 500 effective draws.
    error = 5 / np.sqrt(500)
    np.testing.assert_allclose((draws.mean - separable.mean) / separable.sd, 0, atol=error)
    np.testing.assert_allclose(draws.weights.std(axis=(0, 1)) / separable.sd, 1, atol=error)


@pytest.mark.slow
def test_moments_are_fitted_only_where_the_mode_is_a_poor_description(
    separable: KnownTarget,
) -> None:
    def moments(known: KnownTarget) -> tuple[Any, Any]:
        density = log_density(known.lists, known.weights, **known.options)
        with jax.enable_x64(True):
            return find_moments(density, 0, lambda *_: None), laplace(density)

    fitted, mode = moments(separable)
    distance = np.abs(fitted.position - separable.mean) / separable.sd
    assert distance.max() < 0.2 < (np.abs(mode.position - separable.mean) / separable.sd).max()
    fitted, mode = moments(target("lists"))
    np.testing.assert_array_equal(fitted.position, mode.position)


def test_a_long_run_logs_a_first_estimate_of_its_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """From the second piece, since the first one has the compilation.

    A short run logs nothing, and none does without progress, as with --quiet.
    """
    clock = iter([100.0, 101.5, 100.0, 100.1, 100.0, 101.5])
    monkeypatch.setattr(chains, "perf_counter", lambda: next(clock))
    with caplog.at_level("INFO", logger="bpa_ppl"):
        for progress in (True, True, False):
            plane().adapt("rwm", {"draws": DRAWS}, progress=progress)
    messages = [r.message for r in caplog.records if "sampling takes" in r.message]
    # 2050 draws in pieces of 100, of which 1850 remain: 18.5 × 1.5 s.
    assert messages == ["sampling takes about 28 seconds (2,050 draws a chain with the warm-up)"]


@pytest.mark.parametrize(
    ("steps", "diverging", "count"), [(499, 0.0, 2), (500, 0, 1), (9, 0.01, 1)]
)
def test_nuts_ends_where_shorter_steps_do_not_help(
    monkeypatch: pytest.MonkeyPatch, steps: int, diverging: float, count: int
) -> None:
    def program() -> None:
        mean = numpyro.sample("mean", dist.Normal().expand([3]))
        numpyro.sample("effects", dist.Normal(mean, 1.0))

    statistics = {"n_steps": np.full((1, 60), steps), "diverging": np.full((1, 60), diverging)}
    z = {"mean": np.zeros((1, 60, 3)), "effects": np.zeros((1, 60, 3))}
    drawn: list[Nuts] = []

    def record(nuts: Nuts, *_: object) -> Sampled:
        drawn.append(nuts)
        return Sampled(z=z, statistics=statistics)

    monkeypatch.setattr(Nuts, "sample", record)
    with jax.enable_x64(True):
        Auto().sample(program_target(program), 0, lambda *_: None)
    assert len(drawn) == count


@pytest.mark.slow
def test_a_hierarchy_is_one_where_a_site_depends_on_another() -> None:
    """Two vectors that are independent a priori are none, and independent proposals may fit."""

    def two_vectors(y: Any) -> None:
        a, b = (numpyro.sample(n, dist.Normal().expand([2]).to_event(1)) for n in "ab")
        numpyro.sample("y", dist.Normal(a + b, np.ones(2)).to_event(1), obs=y)

    def groups(y: Any) -> None:
        mean = numpyro.sample("mean", dist.Normal().expand([2]).to_event(1))
        effect = numpyro.sample("effect", dist.Normal(mean[None], np.ones((3, 2))).to_event(2))
        numpyro.sample("y", dist.Normal(effect.sum(), 1.0), obs=y)

    vectors = sample(two_vectors, (np.array([0.5, 1.0]),), sampler="auto:draws=300")
    assert vectors.attrs["chosen"] == "imh"
    mean = vectors["posterior"]["a"].values.mean(axis=(0, 1))
    np.testing.assert_allclose(mean, np.array([0.5, 1.0]) / 3, atol=0.12)
    grouped = sample(groups, (1.0,), sampler="auto:draws=60")
    assert grouped.attrs["chosen"] == "nuts"
    assert grouped.attrs["chosen_because"] == "a hierarchy: effect depends on mean"


def test_chains_start_apart_where_no_other_modes_are_searched() -> None:
    """One in each quarter of the range of each value."""

    def many() -> None:
        numpyro.sample("x", dist.Normal(3.0, 1.0).expand([60]).to_event(1))

    target = program_target(many)
    with jax.enable_x64(True):
        start = draw_starts(target, 4, 0, lambda *_: None)[0]["x"] - np.asarray(target.start["x"])
    quarters = np.floor(np.sort(start, axis=0))
    np.testing.assert_array_equal(quarters, np.tile([[-2], [-1], [0], [1]], 60))
