"""OracleChoice: which hypothesis of each n-best list is the oracle, given weights."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from bpa_ppl.models.data import Adaptation
from jax.scipy.special import logsumexp
from numpyro.distributions import constraints
from numpyro.distributions.util import validate_sample


def scores(data: Adaptation, weights: jax.Array) -> jax.Array:
    """Return λ·(h − h*) of every hypothesis, (S, N), for weights (Q,), in the table's precision."""
    narrow = weights.astype(data.differences.dtype)
    return jnp.einsum("snq,q->sn", data.differences, narrow) + data.base


class OracleChoice(dist.Distribution):
    """The n-best-normalised log-linear distribution over the positions of each list.

    p(e | f, λ) = exp(λ·h(f,e)) / Σ_{e' ∈ Γ_n(f)} exp(λ·h(f,e')); batch shape (S,).

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
        super().__init__(batch_shape=data.base.shape[:1], validate_args=validate_args)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        """Draw a position in each list, (*sample_shape, S)."""
        logits = scores(self.data, self.weights)
        return jax.random.categorical(key, logits, shape=(*sample_shape, *self.batch_shape))

    @validate_sample
    def log_prob(self, value: jax.Array) -> jax.Array:
        """Return log p of the hypotheses at the positions `value`, (S,)."""
        # The chosen rows are gathered from the constant table, not from the scores: the gradient
        # then needs no scatter.
        at = value[:, None]
        rows = jnp.take_along_axis(self.data.differences, at[:, :, None], axis=1)[:, 0]
        held = jnp.take_along_axis(self.data.base, at, axis=1)[:, 0]
        chosen = rows @ self.weights.astype(rows.dtype) + held
        log_normaliser = logsumexp(scores(self.data, self.weights), axis=-1)
        return (chosen - log_normaliser).astype(self.weights.dtype)
