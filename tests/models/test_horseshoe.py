"""The horseshoe prior: its density, the scale of the shifts, and its draws by brute force."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import log_expit
from scipy.stats import halfcauchy, invgamma, norm
from support import reference_model
from support.raising import raises

from bpa_ppl import UsageError, adapt, as_weight_draws
from bpa_ppl.densities.target import ListData, constrain, potential
from bpa_ppl.extending import Match, StartingWeights, Target, match, tabulate
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.priors.sparse import Horseshoe

#: A dense weight and three sparse ones.
NAMES = ("LM0", "a", "b", "c")
SPREAD = np.array([np.nan, 6.0, 3.0, 6.0])
MATCH = Match(NAMES, np.array([0.5, 0.0, 0.0, 0.0]), np.ones(4, dtype=bool), SPREAD)


def test_horseshoe_density_agrees_with_scipy() -> None:
    lists = reference_model.pairs(np.random.default_rng(0).normal(size=(5, 4)), NAMES)
    family = Horseshoe(relevant=1.0)
    table = tabulate(lists, match(dict.fromkeys(NAMES, 0.0), lists), np.zeros(5))
    model, prior = family.model(MATCH), family.build(MATCH)._replace(names=None)
    z = {
        "unit": jnp.array([0.3, -1.0, 0.5, 2.0]),
        "local": jnp.array([0.2, -0.4, 1.5]),
        "overall": jnp.array(-0.7),
        "slab": jnp.array(0.4),
    }
    data = ListData(table, prior)
    target = Target(model=model, data=data, start=z, likelihood=Oracle())
    local, overall, slab = (np.exp(np.asarray(z[n])) for n in ("local", "overall", "slab"))
    kappa = np.sqrt(slab * local**2 / (slab + overall**2 * local**2))
    factor = np.append(1.0, overall * kappa)
    spread = np.sqrt(0.1) * np.array([1.0, 1.0, 2.0, 1.0])  # 6 over the spread within lists
    weights = np.array([0.5, 0, 0, 0]) + spread * factor * np.asarray(z["unit"])
    expected = norm.logpdf(np.asarray(z["unit"])).sum()
    expected += (halfcauchy.logpdf(local) + np.log(local)).sum()
    expected += halfcauchy.logpdf(overall, scale=0.5) + np.log(overall)
    expected += invgamma.logpdf(slab, 2.0, scale=2.0) + np.log(slab)
    expected += reference_model.log_likelihood(lists, np.zeros(5, int), weights).sum()
    with jax.enable_x64(True):
        assert float(-potential(target, z)) == pytest.approx(expected, abs=1e-4)
        np.testing.assert_allclose(constrain(target, z)["weights"], weights)


def test_all_shifts_are_sparse_if_all_weights_are_canonical() -> None:
    every = Match(("LM0", "WP0"), np.array([0.5, -1.0]), np.ones(2, dtype=bool))
    assert Horseshoe(relevant=0.5).model(every).sparse == (True, True)
    assert Horseshoe(relevant=0.5).model(every).scale == pytest.approx(1 / 3)
    with raises(UsageError, "invalid-setting", parameter="relevant"):
        Horseshoe(relevant=0.0)


def by_brute_force(rows: np.ndarray, draws: int = 400_000) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means and variances of two sparse weights of unit σ = √0.1 · 6 / spread.

    The horseshoe of relevant = 1 is drawn from, and each draw is weighted by the likelihood.
    """
    rng = np.random.default_rng(0)
    local, overall = np.abs(rng.standard_cauchy((draws, 2))), np.abs(rng.standard_cauchy(draws))
    slab = 2.0 / rng.gamma(2.0, size=draws)
    wide = overall[:, None] * local
    factor = wide / np.sqrt(1 + wide**2 / slab[:, None])
    # The deviation within lists of two is half of their difference.
    spread = np.sqrt(np.mean((rows / 2) ** 2, axis=0))
    weights = np.sqrt(0.1) * 6 / spread * factor * rng.normal(size=(draws, 2))
    log_weight = log_expit(-weights @ rows.T).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    assert weight.sum() ** 2 / (weight**2).sum() > 20_000
    mean = np.average(weights, axis=0, weights=weight)
    return mean, np.average((weights - mean) ** 2, axis=0, weights=weight)


@pytest.mark.slow
def test_the_horseshoe_is_sampled_as_brute_force_says() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(30, 2)) * [1.5, 0.7]
    rows[:, 0] = -np.abs(rows[:, 0]) * np.where(rng.uniform(size=30) < 0.85, 1, -1)
    lists = reference_model.pairs(rows, ["a", "b"])
    options = {"sampler": "nuts:target_accept=0.95,draws=1500", "likelihood": "oracle"}
    options |= {"prior": Horseshoe(relevant=1.0), "gain": reference_model.given(*[0] * 30)}
    start = StartingWeights({}, defaults={"a": 0.0, "b": 0.0})
    draws = as_weight_draws(adapt(lists, start, **options))
    mean, variance = by_brute_force(lists.features[1::2].astype(np.float64))
    np.testing.assert_allclose(draws.mean, mean, atol=0.1 * np.sqrt(variance).max())
    np.testing.assert_allclose(draws.deviation**2, variance, rtol=0.2)
