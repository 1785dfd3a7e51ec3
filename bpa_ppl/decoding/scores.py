"""Scores of the hypotheses of one list under many weight vectors at once."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from bpa_ppl.models.data import PADDING


def scores(features: jax.Array, valid: jax.Array, weights: jax.Array) -> jax.Array:
    """Return λ·h, (N, D), for features (N, Q), a mask (N,) and weights (D, Q)."""
    return jnp.where(valid[:, None], features @ weights.T, PADDING)


def log_probabilities(features: jax.Array, valid: jax.Array, weights: jax.Array) -> jax.Array:
    """Return log p(e|f,λ), (N, D), likewise."""
    raw = scores(features, valid, weights)
    return raw - jax.nn.logsumexp(raw, axis=0, keepdims=True)
