"""The horseshoe: a prior for many features of which few matter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.components import Positive
from bpa_ppl.models.priors.isotropic import Isotropic
from bpa_ppl.models.priors.prior import Prior, PriorFamily
from bpa_ppl.weights import Match

if TYPE_CHECKING:
    from bpa_ppl.models.likelihoods.likelihood import Likelihood
    from bpa_ppl.models.likelihoods.lists import Lists

#: s of sparse features, in nats within a list: wide, because the prior itself shrinks most of them.
_SCALE = 6 * math.sqrt(0.1)


def _is_sparse(match: Match) -> tuple[bool, ...]:
    """Return for each free feature whether its weight is sparse: if it has no canonical weight.

    If all have one, the shifts of all of them are sparse.

    >>> _is_sparse(Match(("LM0", "talks"), np.zeros(2), np.ones(2, bool), np.array([np.nan, 1.0])))
    (False, True)
    """
    without = match.free_spread
    return tuple(name in without or not without for name in match.free_names)


class Horseshoe(PriorFamily, frozen=True):
    """The regularised horseshoe: most weights are near their prior mean, and a few may be far away.

    It is the prior of the features without a canonical weight, or of all features if each has one;
    the others have the isotropic prior (see `SparseLogLinear`). Weights are a function of several
    sites, which needs the sampler `nuts`, or `auto`, which chooses it.

    The overall scale τ ~ C⁺(0, τ₀) has the median τ₀ = p₀ / (D − p₀) for D sparse features of which
    p₀ = `relevant` are expected to matter (Piironen & Vehtari 2017); D − p₀ is at least 1. Their
    factor σ / √n is left out: τ₀ is in units of s, for any number of sentences.

    Args:
        relevant: p₀.
        variance: the variance of the isotropic prior, σ_T. For sparse features with a canonical
            weight it is s²; s of those without one is 1.9 / (their standard deviation in a list).

    >>> match = Match(("LM0", "talks"), np.zeros(2), np.ones(2, bool), np.array([np.nan, 1.0]))
    >>> family = Horseshoe(relevant=0.5)
    >>> family.build(match).variance.round(3).tolist(), family.model(match).sparse
    ([0.1, 3.6], (False, True))
    """

    relevant: Positive = 5.0
    variance: Positive = 0.1

    def build(self, match: Match) -> Prior:
        return Isotropic(variance=self.variance, scale=_SCALE, mean=0.0).build(match)

    def model(self, match: Match) -> SparseLogLinear:
        sparse = _is_sparse(match)
        scale = self.relevant / max(sum(sparse) - self.relevant, 1.0)
        return SparseLogLinear(sparse, scale)


@dataclass(frozen=True)
class SparseLogLinear:
    """λ_q = m_q + s_q z_q for dense weights, m_q + s_q τ l̃_q z_q for sparse ones (z ~ N(0, I)).

    m and s are mean and standard deviation of the prior; l̃_q² = c² l_q² / (c² + τ² l_q²) with
    l_q ~ C⁺(0, 1), τ ~ C⁺(0, `scale`) and c² ~ Inv-Γ(2, 2): the regularised horseshoe (Piironen &
    Vehtari 2017) in its non-centred form, in units of s. Where τ l_q is large, the weight has the
    Student t of 4 degrees of freedom and scale s_q.

    Sites: `unit` (Q,) is z, `local` (sparse,) l, `overall` () τ, `slab` () c²; `weights` (Q,) is a
    function of them.

    Args:
        sparse: for each of the Q weights whether it is sparse.
        scale: of τ.
    """

    sparse: tuple[bool, ...]
    scale: float

    def __call__(self, lists: Lists, prior: Prior, likelihood: Likelihood) -> None:
        """Run the model."""
        import jax.numpy as jnp
        import numpyro
        import numpyro.distributions as dist

        index, size = np.flatnonzero(self.sparse), (len(self.sparse),)
        unit = numpyro.sample("unit", dist.Normal(0.0, 1.0).expand(size).to_event(1))
        local = numpyro.sample("local", dist.HalfCauchy(1.0).expand((len(index),)).to_event(1))
        overall = numpyro.sample("overall", dist.HalfCauchy(self.scale))
        slab = numpyro.sample("slab", dist.InverseGamma(2.0, 2.0))
        wide = overall * local
        # wide c / √(c² + wide²), written so that neither limit overflows.
        shrunk = wide / jnp.sqrt(1.0 + wide**2 / slab)
        factor = jnp.ones(size).at[index].set(shrunk)
        deviation = jnp.sqrt(jnp.asarray(prior.variance))
        weights = numpyro.deterministic("weights", prior.mean + deviation * factor * unit)
        likelihood = likelihood.sample_parameters()
        with numpyro.plate("sentence", len(lists.oracle)):
            likelihood.observe(lists, weights)
