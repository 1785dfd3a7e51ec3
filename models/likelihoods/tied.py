"""Tied oracles share: one of the hypotheses that are worth the most was chosen."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpyro
from numpyro.distributions.util import validate_sample

from bpa_ppl.models.choice import OracleChoice, each_sentence
from bpa_ppl.models.likelihoods.base import Likelihood, with_gains
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.lists import PADDING, Lists
from bpa_ppl.models.probabilities import normalised


class TiedChoice(OracleChoice):
    """The choice among the hypotheses of each list, of which only the gain was seen.

    log p = log Σ_{e: gain(e) = gain of the row} p(e | f, λ); batch shape (S,).

    Args:
        lists: from `tabulate`, with gains.
        weights: as for `OracleChoice`.
    """

    @validate_sample
    def log_prob(self, value: jax.Array) -> jax.Array:
        """Return log p of all rows that are worth as much as those at the positions, (S,)."""
        buckets, first = [], 0
        for bucket in self.lists.buckets:
            blocks, sentences = bucket.base.shape[:2]
            at = value[first : first + blocks * sentences].reshape(blocks, sentences, 1)
            first += blocks * sentences
            as_good = bucket.gain == jnp.take_along_axis(bucket.gain, at, axis=2)
            buckets.append(bucket._replace(gain=as_good))
        lists = self.lists._replace(buckets=tuple(buckets))
        return each_sentence(_log_share, lists, self.weights)


def _log_share(scores: jax.Array, chosen: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return log Σ_{e chosen} p(e), whose slope is p(e | chosen) − p(e)."""
    total, p = normalised(scores)
    share, within = normalised(jnp.where(chosen, scores, PADDING))
    return (share - total)[..., 0], within - p


class Tied(Likelihood, frozen=True):
    """log p_a = log Σ_{e: gain(e) = gain(e*)} p(e | f_a, λ): which one of them is left open.

    The published likelihood asks for one of several equally good hypotheses, the one of the
    highest canonical score; on three domains that is 0.6 to 1.1 TER better, since what is tied has
    shorter outputs among it. Not log-concave where there are ties: the search for the mode begins
    at that of the published likelihood. There is nothing to set.

    >>> Tied(), Tied().start()
    (Tied(), Oracle())
    """

    needs_gains = True
    generative = True

    def start(self) -> Likelihood:
        """Return the published likelihood."""
        return Oracle()

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Return the lists as they are.

        Raises:
            UsageError: if the lists were laid out without gains.
        """
        buckets = tuple(bucket._replace(count=None) for bucket in with_gains(lists, "tied"))
        return lists._replace(buckets=buckets), self

    def observe(self, lists: Lists, weights: Any) -> None:
        """State that one of the best was chosen; the site is `oracle`, (S,)."""
        numpyro.sample("oracle", TiedChoice(lists, weights), obs=lists.oracle)
