"""Models of many features of which few matter: the regularised horseshoe."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.lists import Lists
from bpa_ppl.models.priors.base import Prior


@dataclass(frozen=True)
class SparseLogLinear:
    """λ_q = m_q + s_q z_q for dense weights, m_q + s_q τ κ_q z_q for sparse ones (z ~ N(0, I)).

    m and s are mean and standard deviation of the prior; κ_q² = c² l_q² / (c² + τ² l_q²) with
    l_q ~ C⁺(0, 1), τ ~ C⁺(0, `scale`) and c² ~ Inv-Γ(2, 2): the regularised horseshoe (Piironen &
    Vehtari 2017) in its non-centred form, in units of s.

    Sites: `unit` (Q,) is z, `local` (sparse,) l, `overall` () τ, `slab` () c²; `weights` (Q,) is a
    function of them.

    Args:
        sparse: which of the Q weights are sparse.
        scale: of τ.
    """

    sparse: tuple[bool, ...]
    scale: float

    def __call__(self, lists: Lists, prior: Prior, likelihood: Likelihood) -> None:
        """Run the model."""
        at = [k for k, sparse in enumerate(self.sparse) if sparse]
        size = (len(self.sparse),)
        unit = numpyro.sample("unit", dist.Normal(0.0, 1.0).expand(size).to_event(1))
        local = numpyro.sample("local", dist.HalfCauchy(1.0).expand((len(at),)).to_event(1))
        overall = numpyro.sample("overall", dist.HalfCauchy(self.scale))
        slab = numpyro.sample("slab", dist.InverseGamma(2.0, 2.0))
        wide = overall * local
        # wide c / √(c² + wide²), written so that neither limit overflows.
        shrunk = wide / jnp.sqrt(1.0 + wide**2 / slab)
        factor = jnp.ones(size).at[jnp.array(at)].set(shrunk)
        spread = jnp.sqrt(jnp.asarray(prior.variance))
        weights = numpyro.deterministic("weights", prior.mean + spread * factor * unit)
        likelihood = likelihood.sample_parameters()
        with numpyro.plate("sentence", len(lists.oracle)):
            likelihood.observe(lists, weights)
