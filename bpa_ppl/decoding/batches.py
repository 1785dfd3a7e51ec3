"""BatchDecider: chooses from each list by the draws of a posterior."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bpa_ppl.caching import enable_jax_cache
from bpa_ppl.decoding.confidence import Confidence, confidence_in
from bpa_ppl.decoding.rules import AlignedDraws, Rule
from bpa_ppl.errors import DataError
from bpa_ppl.models.probabilities import padded
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.posterior import Draws
from bpa_ppl.registry import RULES

_CHUNK = 16  # lists decided at once
_ROUND = 64  # lengths of lists are rounded up to a multiple
_GROUP = 512  # draws scored at once
_THREADS = 2  # chunks decided at once: XLA computes most of a chunk on one core
_SPREAD = 64  # draws that the spread of an expectation is computed from


class Decisions(NamedTuple):
    """The choice from each of some lists (S sentences): see `Reranked`."""

    choice: Int64
    probability: Float64
    canonical: Int64
    canonical_probability: Float64
    confidence: Confidence | None


class DecisionSettings(NamedTuple):
    """How choices are made from the scores of the draws.

    Attributes:
        derivations: `separate` or `summed`.
        temperature: probabilities are raised to the power of 1 / temperature.
        min_confidence: the canonical first-best is kept unless P(better) exceeds this value.
        confidence: whether to compute what is expected of the choices.
        metric: of the expected scores: `ter`, `bleu` or `chrf`; None for none of them.
        column: the column of gains whose expected value is computed, where the lists carry it.
    """

    derivations: str = "separate"
    temperature: float = 1.0
    min_confidence: float | None = None
    confidence: bool = False
    metric: str | None = "ter"
    column: str | None = None


@dataclass(frozen=True, eq=False)
class BatchDecider:
    """The draws of a posterior, aligned with certain columns, and the rule that chooses by them.

    Attributes:
        feature_names: the columns.
        rule: the decision rule.
        groups: the draws, in groups that are scored at once.
        canonical: (K,) the canonical weights, or None where they are not known.
        settings: how choices are made from the scores.
    """

    feature_names: tuple[str, ...]
    rule: Rule
    groups: AlignedDraws
    canonical: Float64 | None
    settings: DecisionSettings

    @classmethod
    def of(cls, draws: Draws, lists: NBest, rule: Rule, settings: DecisionSettings) -> BatchDecider:
        """Return the decider for lists with these columns.

        Raises:
            DataError: if lists and posterior do not have the same features, or the rule needs
                what the posterior does not record.
        """
        if rule.needs_density and draws.log_weight is None and draws.log_density is None:
            raise DataError(
                f"the rule {RULES.name_of(rule)} needs the density of each draw (lp), which this "
                "posterior does not record: use the rule predictive",
                parameter="rule",
                code="not-supported",
            )
        groups = rule.align(draws, lists).in_groups(_GROUP)
        canonical = None
        if draws.canonical is not None:
            canonical = draws.aligned(lists, draws.canonical[None])[0]
        return cls(lists.feature_names, rule, groups, canonical, settings)

    def __reduce__(self) -> tuple[Any, ...]:
        return BatchDecider, tuple(getattr(self, field.name) for field in fields(self))

    @cached_property
    def log_scores(self) -> Callable[[Any, Any], jax.Array]:
        """The scores of the hypotheses of some lists, (S, N, K) ↦ (S, N), compiled."""
        enable_jax_cache()
        arrays = tuple(jnp.float32(part) for part in self.groups[:3])
        return partial(_log_scores, self.rule, self.groups.exponent, arrays)

    @property
    def confident(self) -> bool:
        """Whether expected scores of the choices are computed."""
        return self.settings.confidence or self.settings.min_confidence is not None

    @property
    def needs_texts(self) -> bool:
        """Whether the texts of lists matter, beyond which ones are equal."""
        return self.rule.needs_texts or self.confident

    @cached_property
    def subset(self) -> Float64:
        """(K, D) a subset of the draws, resampled by their importance."""
        weights = np.asarray(self.groups.weights, np.float64)
        share = np.cumsum(np.exp(np.asarray(self.groups.log_weight, np.float64)).reshape(-1))
        flat = weights.reshape(-1, weights.shape[-1])
        marks = (np.arange(_SPREAD) + 0.5) / _SPREAD * share[-1]
        result: Float64 = flat[np.searchsorted(share, marks)].T
        return result

    @cached_property
    def mean(self) -> Float64:
        """(K,) the weighted mean of the draws."""
        share = np.exp(np.asarray(self.groups.log_weight, np.float64))
        weights = np.asarray(self.groups.weights, np.float64)
        result: Float64 = np.einsum("gd,gdk->k", share, weights) / share.sum()
        return result

    def stripped(self, lists: NBest) -> NBest:
        """Return lists with no more than the decider uses, to be sent to a worker process."""
        kept = {*lists.extras, *lists.sentence_extras} - {self.settings.column}
        lists = lists.without("totals", "references", "sources", *kept)
        return lists if self.needs_texts else replace(lists, strings=("",) * len(lists.strings))

    def choose(self, lists: NBest) -> Decisions:
        """Return the choice from each list."""
        if self.needs_texts:
            lists = self.stripped(lists)
        with ThreadPoolExecutor(_THREADS) as threads:
            chunks = lists.chunks(_CHUNK)
            parts = list(threads.map(partial(self._of_chunk, self.log_scores), chunks))
        *arrays, confidence = zip(*parts, strict=True)
        joined = Confidence.joined(confidence) if self.confident else None
        return Decisions._make([*map(np.concatenate, arrays), joined])

    def _of_chunk(self, scored: Callable[[Any, Any], jax.Array], lists: NBest) -> Decisions:
        origins = lists.best(lists.scores(self.mean))
        # Rounded up, so that few shapes are compiled.
        longest = -(-int(lists.sizes.max()) // _ROUND) * _ROUND
        arrays = padded(lists, _CHUNK, longest, origins)
        log_scores = np.asarray(scored(*arrays), np.float64)
        canonical = (
            np.zeros(len(lists), np.int64)
            if self.canonical is None
            else lists.best(lists.scores(self.canonical))
        )
        decisions = [
            _list_decision(log_scores[s, :size], lists.string_index[lists.rows(s)], self.settings)
            for s, size in enumerate(lists.sizes)
        ]
        choice = np.array([one.best for one in decisions], np.int64)
        p = np.concatenate([one.p for one in decisions])
        if self.rule.needs_texts:
            choice = self.rule.decide(lists, p)
        confidence = None
        if self.confident:
            choice, confidence = self._expected(lists, p, choice, canonical)

        def support(positions: Int64) -> Float64:
            pairs = zip(decisions, positions, strict=True)
            return np.array([one.support[position] for one, position in pairs])

        return Decisions(choice, support(choice), canonical, support(canonical), confidence)

    def _expected(
        self, lists: NBest, p: Float64, choice: Int64, canonical: Int64
    ) -> tuple[Int64, Confidence]:
        """Return the choices that are confident enough, and their expected scores."""
        scores = (lists.features.astype(np.float64) @ self.subset) / self.settings.temperature
        highest = np.maximum.reduceat(scores, lists.offsets[:-1])
        by_draw = np.exp(scores - np.repeat(highest, lists.sizes, axis=0))
        by_draw /= np.repeat(np.add.reduceat(by_draw, lists.offsets[:-1]), lists.sizes, axis=0)
        gain = self.rule.criterion
        return confidence_in(lists, p, by_draw, choice, canonical, gain, self.settings)


@partial(jax.jit, static_argnums=(0, 1))
def _log_scores(
    rule: Rule, exponent: float, groups: tuple[jax.Array, ...], features: jax.Array, base: jax.Array
) -> jax.Array:
    """Return the scores of the hypotheses of some lists, (S, N, K) ↦ (S, N).

    List by list and group by group, so that the arrays fit into a processor's cache. The draws are
    arguments of the program, which then serves other posteriors as well.
    """

    def of_list(arrays: tuple[jax.Array, jax.Array]) -> jax.Array:
        def of_group(group: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
            return rule.log_scores(*arrays, AlignedDraws(*group, exponent))

        return rule.combine(jax.lax.map(of_group, groups))

    result: jax.Array = jax.lax.map(of_list, (features, base))
    return result


class _ListDecision(NamedTuple):
    """The decision on one list of N hypotheses.

    Attributes:
        best: the position of the winner.
        support: (N,) the probability at each position: of the derivation or of the string.
        p: (N,) the probability of each derivation.
    """

    best: int
    support: Float64
    p: Float64


def _list_decision(
    log_scores: Float64, strings: np.ndarray, settings: DecisionSettings
) -> _ListDecision:
    """Return the decision on one list."""
    p = np.exp((log_scores - log_scores.max()) / settings.temperature)
    p /= p.sum()
    best = int(np.argmax(p))
    if settings.derivations == "separate":
        return _ListDecision(best, p, p)
    _, group = np.unique(strings, return_inverse=True)
    summed: Float64 = np.bincount(group, weights=p)[group].astype(np.float64)
    # The best derivation of the winning string represents it.
    return _ListDecision(int(np.argmax(np.where(summed == summed.max(), p, -1.0))), summed, p)
