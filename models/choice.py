"""OracleChoice: which hypothesis of each n-best list is the oracle, given weights."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from bpa_ppl.models.data import Adaptation, Bucket
from numpyro.distributions import constraints
from numpyro.distributions.util import validate_sample


def scores(bucket: Bucket, weights: jax.Array) -> jax.Array:
    """Return λ·(h − h*) of every row, (S, N), for weights (Q,), in the precision of the table."""
    table = bucket.differences
    # The weights come first: for many chains this is one product, chains × (S·N), that needs no
    # transposition; it is about twice as fast on a CPU as the other order.
    flat = weights.astype(table.dtype) @ table.reshape(table.shape[0], -1)
    return flat.reshape(table.shape[1:]) + bucket.base


class OracleChoice(dist.Distribution):
    """The n-best-normalised log-linear distribution over the rows of each list.

    p(e | f, λ) = exp(λ·h(f,e)) / Σ_{e' ∈ Γ_n(f)} exp(λ·h(f,e')); batch shape (S,). A row that
    stands for several equal derivations has the probability of all of them together.

    Scores and normalisers are computed in the precision of the table, log-probabilities are
    returned in that of the weights, so that sums over sentences can be float64.

    Args:
        data: the lists.
        weights: (Q,) λ of the free features.
    """

    arg_constraints = {"weights": constraints.real_vector}  # noqa: RUF012
    support = constraints.nonnegative_integer
    pytree_data_fields = ("data", "weights")

    def __init__(self, data: Adaptation, weights: Any, *, validate_args: bool | None = None):
        self.data, self.weights = data, weights
        super().__init__(batch_shape=data.oracle.shape, validate_args=validate_args)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Draw a row of each list, (*sample_shape, S)."""
        keys = jax.random.split(key, len(self.data.buckets))
        drawn = [
            jax.random.categorical(
                key, scores(bucket, self.weights), shape=(*sample_shape, len(bucket.base))
            )
            for key, bucket in zip(keys, self.data.buckets, strict=True)
        ]
        return jnp.concatenate(drawn, axis=-1)

    @validate_sample
    def log_prob(self, value: jax.Array) -> jax.Array:
        """Return log p of the rows at the positions `value`, (S,)."""
        parts, first = [], 0
        for bucket in self.data.buckets:
            at = value[first : first + len(bucket.base)]
            first += len(bucket.base)
            parts.append(_chosen(bucket, self.weights, at) - _log_normaliser(bucket, self.weights))
        return jnp.concatenate(parts).astype(self.weights.dtype)


def _chosen(bucket: Bucket, weights: jax.Array, at: jax.Array) -> jax.Array:
    # Gathered from the constant table, not from the scores: the gradient then needs no scatter.
    rows = jnp.take_along_axis(bucket.differences, at[None, :, None], axis=2)[:, :, 0]
    held = jnp.take_along_axis(bucket.base, at[:, None], axis=1)[:, 0]
    return weights.astype(rows.dtype) @ rows + held


def _log_normaliser(bucket: Bucket, weights: jax.Array) -> jax.Array:
    all_scores = scores(bucket, weights)
    # Every list has a finite score, so that the general logsumexp's care for infinities, which
    # costs a third of the time, is not needed.
    highest = jax.lax.stop_gradient(all_scores.max(axis=-1, keepdims=True))
    return jnp.log(jnp.exp(all_scores - highest).sum(axis=-1)) + highest[:, 0]
