"""The horseshoe prior: its density, and the scale of the shifts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import halfcauchy, invgamma, norm
from support import reference_model
from support.raising import raises

from bpa_ppl import UsageError
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.lists import tabulate
from bpa_ppl.models.priors.sparse import Horseshoe
from bpa_ppl.sampling.target import Target, constrain, potential
from bpa_ppl.weights import Match, match

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
    target = Target(model, Oracle(), table, prior, z)
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
