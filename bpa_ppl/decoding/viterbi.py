"""The Viterbi rule: the single best pair of weights and translation."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from bpa_ppl.decoding.base import Rule, Voters
from bpa_ppl.models.probabilities import log_probabilities


class Viterbi(Rule, frozen=True):
    """max_λ of log p(A|λ) p(λ|T) p(e|f,λ).

    For a weighted sample the likelihoods carry its exponent 1/δ, as they do in Eq. 11.
    """

    needs_density = True

    def votes(self, features: Any, base: Any, voters: Voters) -> Any:
        """Return the maximum over these draws."""
        log_p = log_probabilities(features, voters.weights, base)
        return (voters.exponent * log_p + voters.log_joint[None, :]).max(axis=1)

    def combined(self, parts: jax.Array) -> jax.Array:
        """Return the maximum over groups."""
        return jnp.max(parts, axis=0)
