"""Log-probabilities of the hypotheses of one list under many weight vectors at once."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from bpa_ppl.models.data import PADDING


def log_probabilities(features: jax.Array, valid: jax.Array, weights: jax.Array) -> jax.Array:
    """Return log p(e|f,λ), (N, D), for features (N, Q), a mask (N,) and weights (D, Q)."""
    scores = jnp.where(valid[:, None], features @ weights.T, PADDING)
    return scores - jax.nn.logsumexp(scores, axis=0, keepdims=True)
