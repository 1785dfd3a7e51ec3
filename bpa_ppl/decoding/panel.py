"""The panel of voters laid beside the columns of lists: it decides, here or in a worker process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bpa_ppl.decoding.base import Rule, Voters
from bpa_ppl.errors import DataError
from bpa_ppl.jax_cache import keep_compiled
from bpa_ppl.models.lists import PADDING
from bpa_ppl.nbest import Float32, Float64, Int64, NBest
from bpa_ppl.posterior import Draws
from bpa_ppl.registry import RULES

_CHUNK = 16  # lists decided at once
_ROUND = 64  # lengths of lists are rounded up to a multiple
_GROUP = 512  # draws that vote at once


class Votes(NamedTuple):
    """The decision on each of some lists (S sentences): see `Reranked`."""

    choice: Int64
    probability: Float64
    canonical: Int64
    canonical_probability: Float64


@dataclass(frozen=True, eq=False)
class Panel:
    """Who decides on lists of certain columns, and how.

    Attributes:
        feature_names: the columns.
        rule: how votes are counted.
        groups: the voters, in groups of which one votes at once.
        canonical: (K,) the canonical weights, or None where they are not known.
        derivations: `separate` or `summed`.
    """

    feature_names: tuple[str, ...]
    rule: Rule
    groups: Voters
    canonical: Float64 | None
    derivations: str

    @classmethod
    def of(cls, draws: Draws, lists: NBest, rule: Rule, derivations: str) -> Panel:
        """Return the panel for lists with these columns.

        Raises:
            DataError: if lists and posterior do not have the same features, or the rule needs
                what the posterior does not record.
        """
        if rule.needs_density and draws.log_weight is None and draws.log_density is None:
            raise DataError(
                f"the rule {RULES.name_of(rule)} needs the density of each draw (lp), which this "
                "posterior does not record: use the rule predictive"
            )
        groups = rule.voters(draws, lists).in_groups(_GROUP)
        canonical = None
        if draws.canonical is not None:
            canonical = draws.aligned(lists, draws.canonical[None])[0]
        return cls(lists.feature_names, rule, groups, canonical, derivations)

    def __reduce__(self) -> tuple[Any, ...]:
        return Panel, tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def log_scores(self) -> Callable[[Any, Any], jax.Array]:
        """The votes for the hypotheses of some lists, (S, N, K) ↦ (S, N), compiled."""
        keep_compiled()
        return jax.jit(partial(_log_scores, self.rule, self.groups))

    def decide(self, lists: NBest) -> Votes:
        """Return the decision on each list; texts do not matter beyond which ones are equal."""
        parts = [self._chunk(chunk) for chunk in lists.chunks(_CHUNK)]
        return Votes(*map(np.concatenate, zip(*parts, strict=True)))

    def _chunk(self, lists: NBest) -> Votes:
        log_scores = np.asarray(self.log_scores(*_padded(lists)), np.float64)
        canonical = (
            np.zeros(len(lists), np.int64)
            if self.canonical is None
            else lists.best(lists.scores(self.canonical))
        )
        votes = [
            _vote(log_scores[s, :size], lists.string_index[lists.rows(s)], self.derivations)
            for s, size in enumerate(lists.sizes)
        ]
        return Votes(
            choice=np.array([best for best, _ in votes], np.int64),
            probability=np.array([p[best] for best, p in votes]),
            canonical=canonical,
            canonical_probability=np.array(
                [p[c] for c, (_, p) in zip(canonical, votes, strict=True)]
            ),
        )


def bare(lists: NBest) -> NBest:
    """Return lists with no more than a panel looks at, to be sent to it.

    >>> bare(NBest.from_lists([["a", "b"]], [[[1.0], [2.0]]], ["LM0"])).strings
    ('', '')
    """
    texts: Sequence[str] = ("",) * len(lists.strings)
    left_out = lists.without("totals", "references", "sources", *lists.extras)
    return replace(left_out.without(*lists.sentence_extras), strings=tuple(texts))


def _log_scores(rule: Rule, groups: Voters, features: jax.Array, base: jax.Array) -> jax.Array:
    """Return the votes for the hypotheses of some lists, (S, N, K) ↦ (S, N).

    List by list and group by group, so that what is in work fits into a processor's cache.
    """
    arrays = tuple(jnp.float32(part) for part in groups[:3])

    def of_list(one: tuple[jax.Array, jax.Array]) -> jax.Array:
        def of_group(group: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
            return rule.votes(*one, Voters(*group, groups.exponent))

        return rule.combined(jax.lax.map(of_group, arrays))

    return jax.lax.map(of_list, (features, base))


def _vote(log_scores: Float64, strings: np.ndarray, derivations: str) -> tuple[int, Float64]:
    """Return the position of the winner of one list, and the probability behind each position."""
    p = np.exp(log_scores - log_scores.max())
    p /= p.sum()
    best = int(np.argmax(p))
    if derivations == "separate":
        return best, p
    _, group = np.unique(strings, return_inverse=True)
    summed: Float64 = np.bincount(group, weights=p)[group].astype(np.float64)
    # The best derivation of the winning string stands for it.
    return int(np.argmax(np.where(summed == summed.max(), p, -1.0))), summed


def _padded(lists: NBest) -> tuple[Float32, Float32]:
    """Lay lists out as (`_CHUNK`, N, K), N rounded up so that few shapes are compiled.

    Features are taken relative to the first hypothesis: the smaller numbers keep float32 exact.
    With them comes what is added to every score, (`_CHUNK`, N): nothing, or `PADDING`.
    """
    longest = -(-int(lists.sizes.max()) // _ROUND) * _ROUND
    features = np.zeros((_CHUNK, longest, len(lists.feature_names)), np.float32)
    for s, size in enumerate(lists.sizes):
        own = lists.features[lists.rows(s)]
        features[s, :size] = own - own[:1]
    sizes = np.ones(_CHUNK, np.int64)
    sizes[: len(lists)] = lists.sizes
    beyond = np.arange(longest) >= sizes[:, None]
    return features, np.where(beyond, np.float32(PADDING), np.float32(0))
