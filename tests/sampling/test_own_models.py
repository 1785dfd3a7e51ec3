"""A user's own NumPyro model in place of the default one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import reference_model
from moment_checks import assert_moments
from scipy.special import log_expit, logsumexp
from scipy.stats import lognorm, norm
from targets import SENTENCES, STEPS, TARGETS

from bpa_ppl import UsageError, adapt, point_weights, rerank
from bpa_ppl.models import OracleChoice

MEDIAN, SPREAD = 0.8, 0.4


def learned_scale(lists: Any, prior: Any, likelihood: Any) -> None:
    scale = numpyro.sample("scale", dist.LogNormal(np.log(MEDIAN), SPREAD))
    weights = numpyro.sample("weights", dist.Normal(prior.mean, scale).to_event(1))
    numpyro.deterministic("twice", 2 * scale)
    with numpyro.plate("sentence", len(lists.oracle)):
        numpyro.sample("oracle", OracleChoice(lists, weights), obs=lists.oracle)


def moments() -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of (weight, scale) by quadrature over (weight, log scale)."""
    target = TARGETS["balanced"]()
    differences = target.pool.features[1::2, 0].astype(np.float64)
    weight = np.linspace(-8, 8, 1201)
    scale = np.exp(np.linspace(-3.5, 2.5, 601))
    log_p = (
        log_expit(-np.outer(weight, differences)).sum(axis=1)[:, None]
        + norm.logpdf(weight[:, None], target.canonical["LM0"], scale)
        + lognorm.logpdf(scale, SPREAD, scale=MEDIAN)
        + np.log(scale)
    )
    p = np.exp(log_p - logsumexp(log_p)).reshape(-1)
    grid = np.stack(np.meshgrid(weight, scale, indexing="ij"), axis=-1).reshape(-1, 2)
    mean = p @ grid
    return mean, (grid - mean).T @ ((grid - mean) * p[:, None])


@pytest.mark.parametrize(
    "sampler",
    [
        pytest.param("nuts", marks=pytest.mark.slow),
        pytest.param("rwm", marks=pytest.mark.slow),
        pytest.param("rwm-isotropic", marks=pytest.mark.slow),
        "imh",
    ],
)
def test_a_prior_with_a_learned_scale_is_sampled_as_quadrature_says(sampler: str) -> None:
    target = TARGETS["balanced"]()
    posterior = adapt(
        target.pool,
        target.canonical,
        sampler=sampler,
        oracle=reference_model.given(*[0] * SENTENCES),
        model=learned_scale,
        draws=5000,
        **STEPS.get(sampler, {}),
    )
    sites = posterior["posterior"]
    draws = np.stack([sites["weights"].values[..., 0], sites["scale"].values], axis=-1)
    assert_moments(draws, *moments())
    np.testing.assert_allclose(sites["twice"].values, 2 * sites["scale"].values)
    weight, scale = draws[..., 0], draws[..., 1]
    known = {
        "scale": lognorm.logpdf(scale, SPREAD, scale=MEDIAN),
        "weights": norm.logpdf(weight, target.canonical["LM0"], scale),
    }
    assert set(posterior["log_prior"].data_vars) == set(known)
    for name, expected in known.items():
        np.testing.assert_allclose(posterior["log_prior"][name].values, expected, atol=1e-9)
    # The density that is sampled is of the logarithm of the scale.
    likelihood = posterior["log_likelihood"]["oracle"].values.sum(axis=-1)
    density = sum(known.values()) + likelihood + np.log(scale)
    np.testing.assert_allclose(posterior["sample_stats"]["lp"].values, density, atol=1e-4)
    assert posterior.attrs["model"] == "learned_scale"
    assert len(rerank(target.pool, posterior, unchecked=True).choice) == SENTENCES
    assert list(point_weights(posterior)) == ["LM0"]


def without_weights(lists: Any, prior: Any, likelihood: Any) -> None:
    numpyro.sample("lambda", dist.Normal(prior.mean, 1.0).to_event(1))


@pytest.mark.parametrize("sampler", ["nuts", "map"])
def test_a_model_without_the_weights_is_refused(sampler: str) -> None:
    target = TARGETS["balanced"]()
    with pytest.raises(UsageError, match="needs a site `weights`"):
        adapt(
            target.pool,
            target.canonical,
            sampler=sampler,
            oracle=reference_model.given(*[0] * SENTENCES),
            model=without_weights,
        )
