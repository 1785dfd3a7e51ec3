"""p(e | f, λ): the choice of a candidate from each n-best list, given weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro.distributions import constraints
from numpyro.distributions.util import validate_sample

from bpa_ppl.errors import UsageError
from bpa_ppl.models.likelihoods.lists import Lists
from bpa_ppl.posterior.probabilities import normalise


def _score_rows(features: jax.Array, base: jax.Array, weights: jax.Array) -> jax.Array:
    """Return λ·h + base, (S, N), of features (S, Q, N), base (S, N), and λ (Q,) or (S, Q)."""
    # One product a sentence; a single product would need the table with features first.
    of_sentences = jnp.broadcast_to(weights, features.shape[:2])
    return jnp.einsum("sq,sqn->sn", of_sentences, features) + base


def require_weights(lists: Lists, weights: Any) -> None:
    """Refuse weights that do not fit the lists.

    Raises:
        UsageError: if a model observes with other weights than one value for each free feature, or
            such values for each domain of the lists.
    """
    shape, features, domains = np.shape(weights), lists.features, len(lists.domains)
    problem = ""
    if len(shape) not in (1, 2) or shape[-1] != features:
        problem = (
            f"likelihood.observe takes weights of shape ({features},), one value for each of the "
            f"{features} free features, or (domains, {features}), not {shape}"
        )
    elif len(shape) == 2 and shape[0] < domains:
        problem = (
            f"likelihood.observe got the weights of {shape[0]} domains, but the lists are of "
            f"{domains}: give it one row for each domain"
        )
    if problem:
        raise UsageError(problem, parameter="model", code="mismatch")


class OracleChoice(dist.Distribution):  # type: ignore[misc] # NumPyro has no types
    """The n-best-normalised log-linear distribution over the rows of each list.

    p(e | f, λ) = exp(λ·h(f,e)) / Σ_{e' ∈ Γ_n(f)} exp(λ·h(f,e')); batch shape (S,). A row that
    stands for several equal derivations has the probability of all of them together.

    If k candidates of a list share the oracle (its `share` is 1/k for each), the log-probability
    of the observed row is the mean of theirs, Σ_e share(e) log p(e | f, λ).

    Scores and normalisers are computed in the precision of the table, log-probabilities are
    returned in that of the weights, so that sums over sentences can be float64.

    Args:
        lists: from `tabulate`.
        weights: (Q,) λ of the free features, or (K, Q), one vector per domain; the domain of each
            sentence is `lists.domain`.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.models.likelihoods.lists import tabulate
    >>> from bpa_ppl.weights import match
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> choice = OracleChoice(tabulate(lists, match({"LM0": 1.0}, lists)), jnp.log(3.0)[None])
    >>> jnp.exp(choice.log_prob(jnp.array([1]))).round(3).tolist()
    [0.75]
    >>> choice.sample(jax.random.key(0), (1000,)).shape
    (1000, 1)
    """

    arg_constraints = {"weights": constraints.real_vector}  # noqa: RUF012
    support = constraints.nonnegative_integer
    pytree_data_fields: tuple[str, ...] = ("lists", "weights")

    def __init__(self, lists: Lists, weights: Any, *, validate_args: bool | None = None):
        require_weights(lists, weights)
        self.lists, self.weights = lists, weights
        super().__init__(batch_shape=lists.oracle.shape, validate_args=validate_args)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        keys = jax.random.split(key, len(self.lists.buckets))
        parts, rows = _split_buckets(self.lists, self.weights), []
        for key, (bucket, _, weights) in zip(keys, parts, strict=True):
            axes = (0, 0, None if weights.ndim == 1 else 0)
            scores = jax.vmap(_score_rows, axes)(bucket["features"], bucket["base"], weights)
            shape = (*sample_shape, *bucket["base"].shape[:2])
            row = jax.random.categorical(key, scores, shape=shape)
            rows.append(row.reshape(*sample_shape, -1))
        return jnp.concatenate(rows, axis=-1)

    @validate_sample  # type: ignore[untyped-decorator]
    def log_prob(self, value: jax.Array) -> jax.Array:
        """Return log p of the rows at the positions `value`, (S,).

        With shared oracles `value` has the observed rows, each for all that are tied with it.
        """
        if "share" in self.lists.buckets[0]:
            return per_sentence(_shared_log_p, self.lists, self.weights, ("share",))
        parts = []
        for bucket, members, weights in _split_buckets(self.lists, self.weights):
            rows = value[members].reshape(bucket["base"].shape[:2])
            # From the constant table, not from the scores: the gradient then needs no scatter.
            features = _take(bucket["features"], rows[..., None, None])
            base = _take(bucket["base"], rows[..., None], fill_value=-jnp.inf)
            score = (features * jnp.broadcast_to(weights, features.shape)).sum(axis=-1) + base
            log_total = per_list(_log_total, bucket["features"], bucket["base"], None, weights)
            parts.append((score - log_total).reshape(-1))
        return jnp.concatenate(parts).astype(self.weights.dtype)


class SlippingChoice(OracleChoice):
    """The choice among the rows of each list by a judge who slips with probability ε.

    p = (1 − ε) p(e | f, λ) + ε / n, where n is the number of possible answers; batch shape (S,).

    Args:
        lists: from `tabulate`, with the number of derivations of each row.
        weights: as for `OracleChoice`.
        slip: ε, above 0 and below 1: one for all, or (S,).
    """

    pytree_data_fields = ("slip",)

    def __init__(self, lists: Lists, weights: Any, slip: Any, *, validate_args: bool | None = None):
        self.slip = slip
        super().__init__(lists, weights, validate_args=validate_args)

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> jax.Array:
        choice_key, slip_key, *keys = jax.random.split(key, 2 + len(self.lists.buckets))
        chosen = super().sample(choice_key, sample_shape)
        at_random = [
            jax.random.categorical(
                key, jnp.log(bucket["count"]), shape=(*sample_shape, *bucket["count"].shape[:2])
            ).reshape(*sample_shape, -1)
            for key, bucket in zip(keys, self.lists.buckets, strict=True)
        ]
        slip = jnp.broadcast_to(self.slip, chosen.shape)
        slips = jax.random.bernoulli(slip_key, slip, chosen.shape)
        return jnp.where(slips, jnp.concatenate(at_random, axis=-1), chosen)

    @validate_sample  # type: ignore[untyped-decorator]
    def log_prob(self, value: jax.Array) -> jax.Array:
        log_p: jax.Array = super().log_prob(value)
        shares, first = [], 0
        for bucket in self.lists.buckets:
            blocks, sentences = bucket["count"].shape[:2]
            rows = value[first : first + blocks * sentences].reshape(blocks, sentences, 1)
            first += blocks * sentences
            count = _take(bucket["count"], rows, fill_value=0.0)
            shares.append((count / bucket["count"].sum(axis=-1)).reshape(-1))
        log_slip = jnp.log(self.slip * jnp.concatenate(shares)).astype(log_p.dtype)
        return jnp.logaddexp(jnp.log1p(-self.slip) + log_p, log_slip)


def _take(table: jax.Array, rows: jax.Array, fill_value: float = 0.0) -> jax.Array:
    """Return the values of a table, (…, N), at rows (…, 1), or `fill_value` for rows from N."""
    taken = jnp.take_along_axis(table, rows, axis=-1, mode="fill", fill_value=fill_value)
    return taken[..., 0]


def _shared_log_p(scores: jax.Array, share: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return Σ_e share(e) log p(e), and its derivative by the scores, share(e) − p(e)."""
    log_total, p = normalise(scores)
    # jaxlib 0.10.2 compiles (share * scores).sum(axis=-1) − log_total wrongly on CPUs when more
    # than 32 draws are evaluated together; einsum is correct.
    return jnp.einsum("sn,sn->s", share, scores) - log_total[..., 0], share - p


def per_sentence(
    function: ScoreFunction, lists: Lists, weights: Any, columns: tuple[str, ...]
) -> jax.Array:
    """Return a function of the scores and more values of each row, for each list, (S,).

    Args:
        function: of the scores of a block, λ·h + base, and of the other values; see `per_list`.
        lists: from `tabulate`.
        weights: as for `OracleChoice`.
        columns: the columns of the buckets that hold the other values.
    """
    require_weights(lists, weights)
    fields = itemgetter(*columns)
    parts = [
        per_list(function, bucket["features"], bucket["base"], fields(bucket), part).reshape(-1)
        for bucket, _, part in _split_buckets(lists, weights)
    ]
    return jnp.concatenate(parts).astype(weights.dtype)


def _split_buckets(lists: Lists, weights: Any) -> list[tuple[dict[str, Any], slice, jax.Array]]:
    """Return each bucket, its sentences, and their weights: (Q,), or (B, S, Q) by domain."""
    weights = jnp.asarray(weights).astype(lists.buckets[0]["features"].dtype)
    parts, first = [], 0
    for bucket in lists.buckets:
        blocks, sentences = bucket["base"].shape[:2]
        members = slice(first, first + blocks * sentences)
        first = members.stop
        of_bucket = weights
        if weights.ndim == 2:
            of_bucket = weights[lists.domain[members]].reshape(blocks, sentences, -1)
        parts.append((bucket, members, of_bucket))
    return parts


#: (scores, extra), (S, N) each or a tuple of such, ↦ a value of each list, (S,), and its derivative
#: by the scores, (S, N).
ScoreFunction = Callable[[jax.Array, Any], tuple[jax.Array, jax.Array]]


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def per_list(
    function: ScoreFunction, features: jax.Array, base: jax.Array, extra: Any, weights: jax.Array
) -> jax.Array:
    """Return a function of the scores of each list of a bucket, (B, S).

    Its gradient by the weights, (Q,) or (B, S, Q), is the sum of h − h* times its derivative by the
    scores, computed in the same pass over a block of the features, (B, S, Q, N): four times as fast
    as differentiating the sum. All else, such as the further values `extra`, is constant.
    """

    def of_block(block: tuple[Any, ...]) -> jax.Array:
        features, base, extra, weights = block + shared
        return function(_score_rows(features, base, weights), extra)[0]

    blocks, shared = _split(features, base, extra, weights)
    values: jax.Array = _map_blocks(of_block, blocks)
    return values


def _map_blocks(function: Callable[[Any], Any], blocks: tuple[Any, ...]) -> Any:
    """Return a function of each block; a loop of one block would take longer to compile."""
    if len(jax.tree.leaves(blocks)[0]) > 1:
        return jax.lax.map(function, blocks)
    value = function(jax.tree.map(lambda x: x[0], blocks))
    return jax.tree.map(lambda x: x[None], value)


def _split(
    features: jax.Array, base: jax.Array, extra: Any, weights: jax.Array
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the arguments that have blocks, and those that all blocks share."""
    if weights.ndim == 1:
        return (features, base, extra), (weights,)
    return (features, base, extra, weights), ()


@per_list.defjvp
def _differentiate(
    function: ScoreFunction, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[jax.Array, jax.Array]:
    """Return the values, and their change with the weights.

    The change is linear in the tangent, so that JAX can transpose it: the same rule serves forward
    and reverse mode, and derivatives of any order.
    """

    def of_block(block: tuple[Any, ...]) -> tuple[jax.Array, jax.Array]:
        features, base, extra, weights = block + shared
        value, slope = function(_score_rows(features, base, weights), extra)
        return value, jnp.einsum("sn,sqn->sq", slope, features)

    blocks, shared = _split(*primals)
    value, gradient = _map_blocks(of_block, blocks)
    tangent = jnp.broadcast_to(tangents[-1], gradient.shape)
    return value, (tangent * gradient).sum(axis=-1)


def _log_total(scores: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
    """Return log Σ_e exp(score), and its derivative p(e|f,λ)."""
    log_total, p = normalise(scores)
    return log_total[..., 0], p
