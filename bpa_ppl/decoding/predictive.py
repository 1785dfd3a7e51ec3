"""The predictive rule: average p(e|f,λ) over the draws."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from bpa_ppl.decoding.base import Rule, Voters
from bpa_ppl.models.probabilities import exp2, log_probabilities

_LARGEST = 1e24  # sums of exp(score) up to which 32 bits hold shares of them


class Predictive(Rule, frozen=True):
    """log Σ_λ w(λ) p(e|f,λ)^(1/δ): Eq. 13 with equal weights w and δ = 1.

    With w(λ) = p(A|λ)^(1/δ) p(λ|T) it is Eq. 11.
    """

    def votes(self, features: Any, base: Any, voters: Voters) -> Any:
        """Return the logarithm of the sum over these draws."""
        is_numpy = isinstance(features, np.ndarray)

        def carefully() -> Any:
            log_p = log_probabilities(features, voters.weights, base)
            log_joint = voters.exponent * log_p + voters.log_weight[None, :]
            return (logsumexp if is_numpy else jax.nn.logsumexp)(log_joint, axis=1)

        if is_numpy or voters.exponent != 1.0:
            return carefully()
        # Without the exponent one exponential a score is enough: the sum over draws is a product
        # with the vector of w(λ) / Z(λ). One hypothesis has the score 0 with every draw, so that
        # no Z(λ) is near 0; hardly ever is one too high to do without the highest score, the
        # search for which takes a quarter of the time. To `base`, 0 or huge, no unit matters.
        unnormalised = exp2((features / math.log(2)) @ voters.weights.T + base[:, None])
        # Both sums are products, whose bits do not depend on the number of threads.
        totals = jnp.ones_like(base) @ unnormalised
        share = jnp.exp(voters.log_weight) / totals
        finite = jnp.all(totals < _LARGEST)
        result: jax.Array = jax.lax.cond(finite, lambda: jnp.log(unnormalised @ share), carefully)
        return result

    def combined(self, parts: jax.Array) -> jax.Array:
        """Return the logarithm of the sum over groups."""
        return jax.nn.logsumexp(parts, axis=0)
