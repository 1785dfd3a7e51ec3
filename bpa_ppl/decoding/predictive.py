"""The predictive rule: average p(e|f,λ) over the draws."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from bpa_ppl.decoding.base import Rule, Voters
from bpa_ppl.models.probabilities import log_probabilities


class Predictive(Rule, frozen=True):
    """log Σ_λ w(λ) p(e|f,λ)^(1/δ): Eq. 13 with equal weights w and δ = 1.

    With w(λ) = p(A|λ)^(1/δ) p(λ|T) it is Eq. 11.
    """

    def votes(self, features: jax.Array, base: jax.Array, voters: Voters) -> jax.Array:
        """Return the logarithm of the sum over these draws."""
        if voters.exponent != 1.0:
            log_p = log_probabilities(features, voters.weights, base)
            return jax.nn.logsumexp(voters.exponent * log_p + voters.log_weight[None, :], axis=1)
        # Without the exponent one exponential a score is enough: the sum over draws is a product
        # with the vector of w(λ) / Z(λ).
        scores = features @ voters.weights.T + base[:, None]
        unnormalised = jnp.exp(scores - scores.max(axis=0, keepdims=True))
        # Both sums are products, whose bits do not depend on the number of threads.
        share = jnp.exp(voters.log_weight) / (jnp.ones_like(base) @ unnormalised)
        return jnp.log(unnormalised @ share)

    def combined(self, parts: jax.Array) -> jax.Array:
        """Return the logarithm of the sum over groups."""
        return jax.nn.logsumexp(parts, axis=0)
