"""The predictive rule: average p(e|f,λ) over the draws."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from bpa_ppl.decoding.ensemble import Ensemble
from bpa_ppl.decoding.scores import log_probabilities, scores


def votes(features: jax.Array, valid: jax.Array, ensemble: Ensemble) -> jax.Array:
    """Return log Σ_λ w(λ) p(e|f,λ)^(1/δ) of the hypotheses of one list, (N, Q) ↦ (N,).

    With equal weights and δ = 1 this is Eq. 13; with w(λ) = p(A|λ)^(1/δ) p(λ|T), Eq. 11.
    """
    if ensemble.power != 1.0:
        log_p = log_probabilities(features, valid, ensemble.weights)
        return jax.nn.logsumexp(ensemble.power * log_p + ensemble.log_weight[None, :], axis=1)
    # Without the exponent one exponential a score is enough: the sum over draws is a product
    # with the vector of w(λ) / Z(λ).
    raw = scores(features, valid, ensemble.weights)
    unnormalised = jnp.exp(raw - raw.max(axis=0, keepdims=True))
    share = jnp.exp(ensemble.log_weight) / unnormalised.sum(axis=0)
    return jnp.log(unnormalised @ share)


def combined(parts: jax.Array) -> jax.Array:
    """Return the votes of all draws from those of groups of draws, (groups, N) ↦ (N,)."""
    return jax.nn.logsumexp(parts, axis=0)
