"""The Viterbi rule: the single best pair of weights and translation."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from bpa_ppl.decoding.ensemble import Ensemble
from bpa_ppl.decoding.scores import log_probabilities


def votes(features: jax.Array, valid: jax.Array, ensemble: Ensemble) -> jax.Array:
    """Return max_λ of log p(A|λ) p(λ|T) p(e|f,λ) of the hypotheses of one list, (N, Q) ↦ (N,).

    For a weighted sample the likelihoods carry its exponent 1/δ, as they do in Eq. 11.
    """
    log_p = log_probabilities(features, valid, ensemble.weights)
    return jnp.max(ensemble.power * log_p + ensemble.log_joint[None, :], axis=1)


def combined(parts: jax.Array) -> jax.Array:
    """Return the votes of all draws from those of groups of draws, (groups, N) ↦ (N,)."""
    return jnp.max(parts, axis=0)
