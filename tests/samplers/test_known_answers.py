"""Every sampler: posteriors that a grid integrates, priors, tight priors, and its seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.interpolate import CubicSpline
from scipy.special import expit, logsumexp
from scipy.stats import norm
from support import targets
from support.known_targets import KnownTarget, target
from support.moment_checks import assert_moments, assert_weighted_moments
from support.posteriors import InferenceData
from support.reference_model import Array
from support.targets import DRAWS, EXACT, NAMES, OWN, STEPS, TARGETS, laplace

from bpa_ppl import Draws, Isotropic, NBest, adapt, as_weight_draws, check, from_lists, rerank
from bpa_ppl.samplers.proposals import fit_skewed
from bpa_ppl.samplers.sampler import SAMPLERS

Posteriors = Callable[..., InferenceData]


def assert_known(draws: Draws, mean: npt.ArrayLike, covariance: npt.ArrayLike) -> None:
    """Assert that draws, weighted or not, have these moments."""
    if draws.draws.log_weight is None:
        assert_moments(draws.weights, mean, covariance)
    else:
        assert_weighted_moments(draws.flat, draws.draws.log_weight[0], mean, covariance)


def test_a_sampler_agrees_with_quadrature_and_passes_its_check(
    posteriors: Posteriors, sampler: str
) -> None:
    target, posterior = TARGETS["plane"](), posteriors(sampler, "plane", draws=DRAWS)
    draws, report = as_weight_draws(posterior), check(posterior)
    assert_known(draws, target.mean, target.covariance)
    assert report, str(report)
    assert len({tuple(chain[-1]) for chain in draws.weights}) == len(draws.weights)
    of_chains = {"R-hat", "bulk ESS", "burn-in (|z|)"}
    checked_by = {"ESS of the weights", "Pareto k̂"} if draws.draws.kind == "weighted" else of_chains
    assert checked_by <= {finding.name for finding in report.rows}
    target.check_density(draws)
    # The same settings are made from the record.
    recorded = draws.record.sampler
    engine = SAMPLERS.resolve(sampler, {**STEPS.get(sampler, {}), "draws": DRAWS})
    again = SAMPLERS.restore(recorded.name, recorded.settings)
    assert (again, hash(again)) == (engine, hash(engine))


@pytest.mark.parametrize(
    "sampler", ["imh", *(pytest.param(n, marks=pytest.mark.slow) for n in ("rwm", "laplace"))]
)
def test_one_weight_is_a_case_of_its_own(posteriors: Posteriors, sampler: str) -> None:
    target = TARGETS["skewed"]()
    assert target.skewness[0] < -0.7
    draws = as_weight_draws(posteriors(sampler, "skewed", draws=DRAWS))
    assert_known(draws, target.mean, target.covariance)


def test_the_third_derivatives_of_a_posterior_are_those_of_logistic_regression() -> None:
    """By hand: the gradient on both sides of the mode, Σ r expit(r λ) + (λ − λ_T) / σ_T."""
    known = TARGETS["plane"]()
    target = known.density()
    mode = laplace(target)
    found = fit_skewed(target, mode).cubic
    rows, centre, factor = known.rows, mode.position, np.linalg.cholesky(mode.covariance)

    def gradient(weights: np.ndarray) -> np.ndarray:
        shift = weights - list(known.canonical.values())
        return rows.T @ expit(rows @ weights) + shift / known.variance

    for direction in np.eye(2):
        step = 1.5 * factor @ direction
        bend = -(gradient(centre + step) + gradient(centre - step)) @ factor / 1.5**2
        np.testing.assert_allclose(found @ direction @ direction, bend, atol=1e-4)
    assert np.abs(found).max() > 0.05


CANONICAL = {"LM0": 0.7, "WP0": -0.4}
MEAN = np.array(list(CANONICAL.values()))
VARIANCE = np.array([0.5, 2.0])


@pytest.fixture(scope="module")
def lists() -> NBest:
    rng = np.random.default_rng(31)
    sizes = rng.integers(1, 12, size=25)
    texts = [[str(i) for i in range(n)] for n in sizes]
    return from_lists(texts, [rng.normal(size=(n, 2)) for n in sizes], NAMES)


@pytest.fixture(scope="module")
def priors(lists: NBest) -> Any:
    """The function sampler ↦ posterior of no sentence at all, which remembers."""
    options: dict[str, Any] = {
        "prior": Isotropic(variance=VARIANCE),
        "likelihood": "none",
        "seed": 1,
    }

    @cache
    def prior_by(sampler: str) -> Any:
        engine = SAMPLERS.resolve(sampler, {"draws": 4000, **STEPS.get(sampler, {})})
        return adapt(lists, CANONICAL, sampler=engine, **options)

    return prior_by


@pytest.mark.parametrize(
    "sampler",
    [n if n in ("imh", "laplace") else pytest.param(n, marks=pytest.mark.slow) for n in EXACT],
)
def test_without_sentences_the_posterior_is_the_prior(priors: Any, sampler: str) -> None:
    posterior = priors(sampler)
    assert_known(as_weight_draws(posterior), MEAN, np.diag(VARIANCE))
    assert check(posterior)


def test_prior_draws_are_of_the_prior(priors: Any) -> None:
    draws = priors("imh")["prior"]["weights"].values
    assert draws.shape == (1, 1000, 2)
    assert_moments(draws, MEAN, np.diag(VARIANCE))


@pytest.mark.parametrize("sampler", ["imh", "map"])
def test_a_tight_prior_gives_the_canonical_first_best(lists: NBest, sampler: str) -> None:
    settings = {} if sampler == "map" else {"draws": 4000}
    target = TARGETS["plane"]()._replace(canonical=CANONICAL)
    posterior = target.adapt(sampler, settings, prior="isotropic:variance=1e-10")
    result = rerank(lists, posterior)
    np.testing.assert_array_equal(result.choice, lists.best(lists.scores(MEAN)))
    np.testing.assert_array_equal(result.choice, result.canonical)
    assert not result.changed.any()


TESTS = Path(__file__).resolve().parent.parent

#: Strict JAX is the tests' own: a user's process has neither x64 nor the rule on ranks.
FRESH = """
import sys
sys.path.insert(0, {tests!r})
from support.targets import DRAWS, TARGETS
import numpy as np
posterior = TARGETS["plane"]().adapt({sampler!r}, {{"draws": DRAWS}}, seed=0)
np.save({path!r}, posterior["posterior"]["weights"].values)
"""


#: Fewer draws of walks are the first of more. Their number decides the pieces in which a chain is
#: run, which must not show.
FEWER = {"rwm": 1001, "rwm-isotropic": 1001}


def drawn(sampler: str, seed: int, **options: Any) -> np.ndarray:
    draws = FEWER.get(sampler, DRAWS)
    posterior = TARGETS["plane"]().adapt(sampler, {"draws": draws}, seed=seed, **options)
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
    first = first[:, : FEWER.get(sampler)]
    steps: list[tuple[int, int, str]] = []
    again = drawn(sampler, seed=0, progress=lambda *step: steps.append(step))
    np.testing.assert_array_equal(again, first)
    reports = [step[:2] for step in steps if step[2] != "diagnostics"]
    assert reports, "progress is reported to the end"
    assert reports == sorted(reports)
    assert reports[-1][0] == reports[-1][1]
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


def log_density(known: KnownTarget, weights: Array) -> Array:
    """Return the log posterior of (points, Q) weights by multinomial logistic regression."""
    canonical = np.array(list(known.weights.values()))
    deviation = np.sqrt(known.options["prior"].variance)
    total = norm.logpdf(weights, canonical, deviation).sum(axis=1)
    for s in range(len(known.lists)):
        scores = weights @ known.lists.features[known.lists.rows(s)].T.astype(np.float64)
        total += scores[:, 0] - np.logaddexp.reduce(scores, axis=1)
    return np.asarray(total)


@pytest.mark.parametrize(
    ("name", "width", "points", "tolerance"),
    [
        ("skewed", 16.0, 601, 1e-8),
        ("two-candidates", 9.0, 201, 1e-8),
        ("separable", 80.0, 501, 1e-3),
        ("lists", 2.5, 31, 1e-6),
    ],
)
def test_moments_on_another_grid(name: str, width: float, points: int, tolerance: float) -> None:
    known = target(name)
    grid, p = targets.integrated(lambda x: log_density(known, x), known.mean, width, points)
    np.testing.assert_allclose(known.mean, p @ grid, atol=tolerance)
    deviation = grid - known.mean
    covariance = deviation.T @ (deviation * p[:, None])
    np.testing.assert_allclose(known.covariance, covariance, atol=tolerance)


@pytest.mark.parametrize("name", ["correlated", "50-features"])
def test_rotated_targets_are_products_of_densities_along_their_principal_axes(name: str) -> None:
    """So that the density along an axis through the mean is the marginal one of that direction."""
    known = target(name)
    variances, axes = np.linalg.eigh(known.covariance)
    log_marginals = []
    for variance, axis in zip(variances, axes.T, strict=True):
        t = np.linspace(-12, 12, 121) * np.sqrt(variance)
        log_p = log_density(known, known.mean + t[:, None] * axis)
        p = np.exp(log_p - logsumexp(log_p))
        assert p @ t == pytest.approx(0.0, abs=1e-4 * np.sqrt(variance))
        assert p @ t**2 == pytest.approx(variance, rel=1e-4)
        log_marginals.append(CubicSpline(t, log_p - log_p[60]))
    u = np.random.default_rng(0).normal(0, 2 * np.sqrt(variances), size=(5, len(variances)))
    expected = sum(of_axis(x) for x, of_axis in zip(u.T, log_marginals, strict=True))
    centre = log_density(known, known.mean[None])
    np.testing.assert_allclose(
        log_density(known, known.mean + u @ axes.T) - centre, expected, atol=1e-2
    )
