"""Sampling in other coordinates: units of features, and the span of lists with many features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.stats import chi2, kstest, norm
from support.moment_checks import assert_equal_moments, assert_moments
from support.posteriors import name_weights, with_parts
from support.raising import raises
from support.registries import SAMPLERS
from support.targets import draw_in_span, evaluate, starting_at_zero, with_common_scale

from bpa_ppl import (
    DataError,
    Isotropic,
    NBest,
    Prior,
    UsageError,
    WeightDraws,
    adapt,
    as_weight_draws,
    check,
    from_lists,
    log_density,
)
from bpa_ppl.adapting.weights_target import choose_coordinates
from bpa_ppl.extending import NoLikelihood, Sampled, Target

FEATURES, LISTS, SIZE = 100, 3, 3
#: The differences within lists have so many dimensions.
DIRECTIONS = LISTS * (SIZE - 1)
NAMES = [f"f{k}" for k in range(FEATURES)]
CANONICAL = dict(zip(NAMES, np.linspace(-1, 1, FEATURES).tolist(), strict=True))


def judged(
    unit: Any = 1.0, features: int = FEATURES, lists: int = LISTS, size: int = SIZE
) -> NBest:
    """Return lists whose first three features say how good a candidate is."""
    rng = np.random.default_rng(1)
    table = rng.normal(size=(lists, size, features))
    gains = table[..., :3] @ [1.5, -1.0, 0.7] + rng.gumbel(size=(lists, size))
    texts = [[f"{s} {c}" for c in range(size)] for s in range(lists)]
    names = [f"f{k}" for k in range(features)]
    extras = {"quality": gains.tolist()}
    return from_lists(texts, (table * unit).tolist(), names, extras=extras)


def adapted(lists: NBest, weights: Any = None, **options: Any) -> WeightDraws:
    return as_weight_draws(adapt(lists, weights, **options))


def correlated() -> Prior:
    """Return a Gaussian with correlations of all weights."""
    matrix = np.random.default_rng(2).normal(size=(FEATURES, 2 * FEATURES))
    return Prior.gaussian(CANONICAL, matrix @ matrix.T / FEATURES)


#: Arguments of `adapt`.
PRIORS: dict[str, dict[str, Any]] = {
    "canonical": {"weights": CANONICAL, "prior": Isotropic(variance=0.3)},
    "two variances": {"weights": {}, "prior": Isotropic(variance=0.5, single={"f0": 9.0})},
    "correlated": {"weights": CANONICAL, "prior": correlated()},
    "learned": {},
}


#: Chains that stay where they are in most of their steps.
WALK = SAMPLERS["rwm"](draws=500, thinning=1)


def build(name: str, likelihood: str = "oracle") -> Target:
    options = dict(PRIORS[name])
    weights = options.pop("weights", None)
    weights = dict.fromkeys(NAMES, 0.0) if weights == {} else weights
    return log_density(judged(), weights, gain="quality", likelihood=likelihood, **options)


def in_span(target: Target, sampler: Any) -> Sampled:
    with jax.enable_x64(True):
        assert choose_coordinates(target).dimension == DIRECTIONS
        return draw_in_span(sampler, target)


def rows_of(target: Target) -> np.ndarray:
    """Return h − h* of all candidates but the oracles."""
    (bucket,) = target.lists.buckets
    rows = np.swapaxes(np.asarray(bucket["features"], np.float64), 2, 3)
    return rows[:, :, 1:].reshape(-1, FEATURES)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "likelihood"), [("correlated", "oracle"), ("canonical", "risk")])
def test_the_span_has_the_moments_of_the_weights(name: str, likelihood: str) -> None:
    target = build(name, likelihood)
    sampled = in_span(target, SAMPLERS["imh"](draws=1000))
    with jax.enable_x64(True):
        direct = SAMPLERS["nuts"]().sample(target, 0, lambda *_: None)
    assert_equal_moments(sampled.z["weights"], direct.z["weights"])


@pytest.mark.parametrize(
    ("name", "sampler"),
    [*((name, SAMPLERS["laplace"]()) for name in PRIORS), ("learned", WALK)],
)
def test_log_densities_are_those_of_the_weights(name: str, sampler: Any) -> None:
    target = build(name)
    sampled = in_span(target, sampler)
    with jax.enable_x64(True):
        log_density, log_likelihood = evaluate(target, sampled.z)
    np.testing.assert_allclose(sampled.log_density, log_density, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(
        sampled.log_likelihood["oracle"], log_likelihood["oracle"], atol=1e-4
    )


@pytest.mark.parametrize(
    "name", [n if n == "correlated" else pytest.param(n, marks=pytest.mark.slow) for n in PRIORS]
)
def test_directions_outside_of_the_span_have_their_prior(name: str) -> None:
    target = build(name)
    sampled = in_span(target, SAMPLERS["imh"](draws=500))
    factor = np.linalg.cholesky(target.prior.full_covariance)
    difference = sampled.z["weights"] - np.asarray(target.prior.mean)
    units = np.linalg.solve(factor, difference[..., None])[..., 0]
    outside = units @ null_space(rows_of(target) @ factor)
    assert outside.shape[2] == FEATURES - DIRECTIONS
    assert_moments(outside, np.zeros(outside.shape[2]), np.eye(outside.shape[2]))


def test_the_mode_and_the_evidence_are_those_of_the_weights() -> None:
    target = build("correlated")
    in_directions = in_span(target, SAMPLERS["map"]())
    with jax.enable_x64(True):
        direct = SAMPLERS["map"]().sample(target, 0, lambda *_: None)
    np.testing.assert_allclose(in_directions.mode, direct.mode, atol=1e-3)
    np.testing.assert_allclose(in_directions.z["weights"][0, 0], in_directions.mode)
    evidence = direct.figures.log_evidence
    assert in_directions.figures.log_evidence == pytest.approx(evidence, abs=1e-4)
    np.testing.assert_allclose(in_directions.log_density, direct.log_density, atol=1e-4)


def scaled_target(deviation: float) -> Target:
    """Return a posterior whose first nine weights have a common scale."""
    target = build("canonical")
    shared = np.arange(FEATURES) < 9
    matrix = np.where(np.equal.outer(shared, shared), 0.3, 0.0) + 0.5 * np.eye(FEATURES)
    given = target.prior._replace(variance=None, covariance=matrix)
    given = with_common_scale(given, deviation, shared)
    return replace(target, data=target.data._replace(prior=given))


@pytest.mark.slow
def test_nuts_draws_the_common_scale_of_many_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights are those of the integral over the scale, which independent proposals sample."""
    target = scaled_target(0.5)
    with jax.enable_x64(True):
        independent = draw_in_span(SAMPLERS.resolve("auto:draws=6000"), target)
        monkeypatch.setattr("bpa_ppl.adapting.common_scale.MANY_SCALED", 2 * DIRECTIONS - 1)
        scaled = draw_in_span(SAMPLERS.resolve("auto:draws=2000"), target)
        log_density, log_likelihood = evaluate(target, scaled.z)
    assert independent.figures.chosen == "imh"
    assert scaled.figures.chosen_because == "12 directions have a common scale"
    assert scaled.figures.drawn_again_because is None
    assert_equal_moments(scaled.z["weights"], independent.z["weights"])
    np.testing.assert_allclose(scaled.log_density, log_density, rtol=1e-5, atol=1e-4)
    expected = log_likelihood["oracle"]
    np.testing.assert_allclose(scaled.log_likelihood["oracle"], expected, atol=1e-4)


@pytest.mark.slow
def test_a_common_scale_is_drawn_for_all_directions() -> None:
    """|z|² of nine weights is τ² χ²(9), and of the others χ²(91)."""
    target = replace(scaled_target(0.5), likelihood=NoLikelihood())
    prior, matrix = target.prior, target.prior.covariance
    with jax.enable_x64(True):
        spanned = choose_coordinates(target)
        assert spanned.dimension == 2 * DIRECTIONS
        sampled = draw_in_span(SAMPLERS["laplace"](draws=4000), target)
        log_density, _ = evaluate(target, sampled.z)
    # Sums over log τ have other nodes, which matters far from the centre.
    np.testing.assert_allclose(sampled.log_density, log_density, rtol=3e-3)
    one = name_weights(
        sampled.z["weights"], NAMES, kind="weighted", log_weight=sampled.log_weight
    ).marginal.resampled()
    difference = one.flat - np.asarray(prior.mean)
    units = np.linalg.solve(np.linalg.cholesky(matrix), difference.T)
    log_scales = np.linspace(-3, 3, 201)
    weight = norm.pdf(log_scales, 0.0, 0.5)

    def cdf(squared: np.ndarray) -> np.ndarray:
        given_scale = chi2.cdf(np.outer(squared, np.exp(-2 * log_scales)), 9)
        return np.asarray(given_scale @ weight / weight.sum())

    # Few draws are repeated: the weights of importance are nearly equal.
    assert kstest(np.square(units[:9]).sum(axis=0), cdf).pvalue > 1e-3
    assert kstest(np.square(units[9:]).sum(axis=0), chi2(FEATURES - 9).cdf).pvalue > 1e-3


def test_chains_that_stay_keep_all_weights() -> None:
    target = build("learned")
    sampled = in_span(target, WALK)
    weights, directions = sampled.z["weights"], sampled.directions
    assert directions.shape == (4, 500, DIRECTIONS)
    stays = (np.diff(directions, axis=1) == 0).all(axis=2)
    assert 0.5 < stays.mean() < 0.9
    np.testing.assert_array_equal(stays, (np.diff(weights, axis=1) == 0).all(axis=2))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the judgements do not separate the features")
def test_many_features_are_adapted_and_checked() -> None:
    """300 features of 10 lists have 50 directions, which the check examines with the weights."""
    steps = list[tuple[int, int, str]]()
    draws = adapted(
        judged(features=300, lists=10, size=6),
        gain="quality",
        sampler="auto:draws=400",
        progress=lambda *step: steps.append(step),
    )
    assert draws.draws.sites == ("weights", "directions")
    assert draws.draws.values["directions"].shape == (4, 400, 50)
    assert draws.weights.shape == (4, 400, 300)
    report = check(draws)
    assert report, str(report)
    scales = [step for step in steps if step[2] == "scale of the prior"]
    assert len(scales) > 9
    assert all(done <= total for done, total, _ in scales)
    stuck = dict(draws.draws.values)
    stuck["directions"] = draws.draws.values["directions"].copy()
    stuck["directions"][0, :, 7] += 3.0
    failed = check(with_parts(draws, values=stuck))
    assert {one.where for one in failed.failures} >= {"directions[7]"}


UNITS = (1e-30, 1e-8, 1.0, 1e20, 1e30)
TUNED = np.array([1.0, -0.5, 0.2])


def adapt_in(unit: Any, *, canonical: bool, **options: Any) -> np.ndarray:
    """Return the choices of weights that are adapted to features in some units."""
    lists, units = judged(unit, features=3, lists=30, size=6), np.ones(3) * unit
    if canonical:
        options["weights"] = dict(zip(lists.feature_names, TUNED / units, strict=True))
        variances = dict(zip(lists.feature_names, (0.1 / units**2).tolist(), strict=True))
        options["prior"] = Isotropic(variance=variances)
    draws = adapted(lists, gain="quality", **options)
    assert check(draws), str(check(draws))
    return draws.mean * units


@pytest.mark.slow
@pytest.mark.parametrize("canonical", [False, True])
@pytest.mark.parametrize("sampler", ["auto", "imh", "nuts", "rwm", "laplace", "map"])
def test_units_do_not_matter_to_samplers(sampler: str, canonical: bool) -> None:
    options = {"sampler": sampler, "canonical": canonical, "likelihood": "oracle"}
    units = (1.0, UNITS[0], UNITS[-1], np.array([1e20, 1.0, 1e-20]))
    found = np.array([adapt_in(unit, **options) for unit in units])
    np.testing.assert_allclose(found, [found[0]] * 4, atol=0.05)


@pytest.mark.parametrize("canonical", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("likelihood", ["margin", "risk", "pairs", "oracle"])
def test_units_do_not_matter_to_likelihoods(likelihood: str, canonical: bool) -> None:
    options = {"sampler": "map", "canonical": canonical, "likelihood": likelihood}
    found = np.array([adapt_in(unit, **options) for unit in UNITS])
    np.testing.assert_allclose(found, [found[2]] * 5, rtol=1e-3)


@pytest.fixture(scope="module")
def under_a_flat_prior() -> np.ndarray:
    """The mean of the weights that the lists alone decide on."""
    lists, prior = judged(1.0, features=3, lists=30, size=6), Isotropic(variance=1e6)
    options: dict[str, Any] = {"gain": "quality", "prior": prior, "likelihood": "oracle"}
    return adapted(lists, dict(zip(lists.feature_names, TUNED, strict=True)), **options).mean


@pytest.mark.parametrize("unit", [1e8, 1e20, 1e30])
def test_the_published_variance_is_wide_for_features_in_small_units(
    unit: float, under_a_flat_prior: np.ndarray
) -> None:
    """The prior of a canonical weight is N(λ_T, 0.1) in its own unit: the lists decide alone."""
    lists = judged(unit, features=3, lists=30, size=6)
    weights = dict(zip(lists.feature_names, TUNED / unit, strict=True))
    draws = adapted(lists, weights, gain="quality", likelihood="oracle")
    assert check(draws), str(check(draws))
    np.testing.assert_allclose(draws.mean * unit, under_a_flat_prior, atol=0.05)


def test_a_prior_without_numbers_is_refused() -> None:
    """A weight of 1e20 ± 0.3 is one number."""
    weights = dict(zip(("f0", "f1", "f2"), TUNED * [1e20, 1.0, 1.0], strict=True))
    lists = judged(np.array([1e-20, 1.0, 1.0]), features=3, lists=30, size=6)
    with raises(DataError, "bad-number", parameter="prior", match=r"f0, 1e\+20 ± 0.32"):
        adapted(lists, weights, gain="quality")


def test_a_hierarchy_of_many_features_is_refused() -> None:
    options = {"gain": "quality", "likelihood": "oracle", "prior": "horseshoe"}
    with starting_at_zero():
        target = log_density(judged(features=501), **options)
    with raises(UsageError, "not-supported", parameter="sampler", match="501"):
        draw_in_span(SAMPLERS["auto"](), target)
    with raises(DataError, "not-supported", parameter="sampler", match="1,004"):
        draw_in_span(SAMPLERS["map"](), target)
