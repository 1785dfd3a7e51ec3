"""Every sampler of the posterior against posteriors that a grid integrates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit
from support.moment_checks import assert_moments, assert_weighted_moments
from support.targets import DRAWS, SENTENCES, TARGETS

from bpa_ppl import check
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.arviz_functions import InferenceData
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.sampling.laplace import fit_skewed
from bpa_ppl.sampling.mode import find_mode

Posteriors = Callable[..., InferenceData]


def assert_known(draws: Draws, mean: npt.ArrayLike, covariance: npt.ArrayLike) -> None:
    """Assert that draws, weighted or not, have these moments."""
    if draws.log_weight is None:
        assert_moments(draws.weights, mean, covariance)
    else:
        assert_weighted_moments(draws.flat, draws.log_weight[0], mean, covariance)


def test_a_sampler_agrees_with_quadrature_and_passes_its_check(
    posteriors: Posteriors, sampler: str
) -> None:
    target, posterior = TARGETS["plane"](), posteriors(sampler, "plane", draws=DRAWS)
    draws, report = as_draws(posterior), check(posterior)
    assert_known(draws, target.mean, target.covariance)
    assert report, str(report)
    assert len({tuple(chain[-1]) for chain in draws.weights}) == len(draws.weights)
    of_chains = {"R-hat", "bulk ESS", "burn-in (|z|)"}
    checked_by = {"ESS of the weights", "Pareto k̂"} if draws.kind == "weighted" else of_chains
    assert checked_by <= {finding.name for finding in report.findings}
    # lp is the log posterior of each draw, up to a constant.
    centre = np.array(list(target.canonical.values()))
    log_prior = -0.5 * ((draws.weights - centre) ** 2).sum(axis=-1) / target.variance
    constant = draws.log_density - draws.pointwise.sum(axis=-1) - log_prior
    np.testing.assert_allclose(constant, constant.mean(), atol=1e-4)


@pytest.mark.parametrize("sampler", ["imh", "rwm", "laplace"])
def test_one_weight_is_a_case_of_its_own(posteriors: Posteriors, sampler: str) -> None:
    target = TARGETS["skewed"]()
    assert target.skewness[0] < -0.7
    draws = as_draws(posteriors(sampler, "skewed", draws=DRAWS))
    assert_known(draws, target.mean, target.covariance)


def test_the_third_derivatives_of_a_posterior_are_those_of_logistic_regression() -> None:
    """By hand: the gradient on both sides of the mode, Σ r expit(r λ) + (λ − λ_T) / σ_T."""
    known = TARGETS["plane"]()
    names = list(known.canonical)
    target = known.density()
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
