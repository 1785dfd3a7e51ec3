"""Every sampler of the posterior against posteriors that a grid integrates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from moment_checks import assert_moments, assert_weighted_moments
from scipy.special import expit
from targets import EXACT, SENTENCES, TARGETS

from bpa_ppl import NotConverged, check, rerank
from bpa_ppl.models import Isotropic
from bpa_ppl.posterior import as_draws
from bpa_ppl.posterior.arviz_functions import InferenceData
from bpa_ppl.sampling import target_of
from bpa_ppl.sampling.mode import find_mode
from bpa_ppl.sampling.proposals import fit_skewed
from bpa_ppl.weights import match

Posteriors = Callable[..., InferenceData]


#: One weight is a case of its own for samplers that are written here.
ONE_WEIGHT = [(name, "skewed") for name in ("imh", "rwm", "laplace")]


@pytest.mark.parametrize(("sampler", "name"), [*((s, "plane") for s in EXACT), *ONE_WEIGHT])
def test_mean_and_covariance_are_those_of_quadrature(
    posteriors: Posteriors, sampler: str, name: str
) -> None:
    target, posterior = TARGETS[name](), posteriors(sampler, name, draws=4000)
    weights = posterior["posterior"]["weights"].values
    log_weight = as_draws(posterior).log_weight
    if log_weight is None:
        assert_moments(weights, target.mean, target.covariance)
    else:
        assert_weighted_moments(weights[0], log_weight[0], target.mean, target.covariance)


def test_a_target_is_asymmetric() -> None:
    assert TARGETS["skewed"]().skewness[0] < -0.7


def test_posteriors_of_these_targets_pass_their_check(posteriors: Posteriors, sampler: str) -> None:
    posterior = posteriors(sampler, "plane", draws=4000)
    report = check(posterior)
    assert report, str(report)
    weighted = as_draws(posterior).kind == "weighted"
    checked_by = (
        {"ESS of the weights", "Pareto k̂"} if weighted else {"R-hat", "bulk ESS", "drift (|z|)"}
    )
    assert checked_by <= {finding.name for finding in report.findings}


def test_a_walk_that_is_too_short_is_refused(posteriors: Posteriors) -> None:
    posterior = posteriors("rwm-isotropic", "plane", draws=40)
    with pytest.raises(NotConverged, match="bulk ESS"):
        rerank(TARGETS["plane"]().pool, posterior)


def test_lp_is_the_log_posterior_of_each_draw_up_to_a_constant(
    posteriors: Posteriors, sampler: str
) -> None:
    posterior = posteriors(sampler, "plane", draws=4000)
    lp = posterior["sample_stats"]["lp"].values[0]
    log_likelihood = posterior["log_likelihood"]["oracle"].values[0].sum(axis=1)
    weights = posterior["posterior"]["weights"].values[0]
    target = TARGETS["plane"]()
    centre = np.array(list(target.canonical.values()))
    log_prior = -0.5 * ((weights - centre) ** 2).sum(axis=1) / target.variance
    constant = lp - log_likelihood - log_prior
    np.testing.assert_allclose(constant, constant.mean(), atol=1e-4)


def test_the_third_derivatives_of_a_posterior_are_those_of_logistic_regression() -> None:
    """By hand: the gradient on both sides of the mode, Σ r expit(r λ) + (λ − λ_T) / σ_T."""
    known = TARGETS["plane"]()
    names = list(known.canonical)
    matched = match(known.canonical, known.pool)
    prior = Isotropic(variance=known.variance).build(matched)
    target = target_of(known.pool, matched, prior, oracle=[0] * SENTENCES)
    mode = find_mode(target)
    found = fit_skewed(target, mode).cubic
    assert found is not None
    features = known.pool.features.astype(np.float64).reshape(SENTENCES, 2, len(names))
    rows, canonical = features[:, 1] - features[:, 0], np.array(list(known.canonical.values()))

    def gradient(weights: np.ndarray) -> np.ndarray:
        return rows.T @ expit(rows @ weights) + (weights - canonical) / known.variance

    centre, factor = np.asarray(mode.position), np.linalg.cholesky(mode.covariance)
    for direction in np.eye(len(names)):
        step = 1.5 * factor @ direction
        bend = -(gradient(centre + step) + gradient(centre - step)) @ factor / 1.5**2
        np.testing.assert_allclose(found @ direction @ direction, bend, atol=1e-4)
    assert np.abs(found).max() > 0.05
