"""BatchDecider: chooses from each list by the draws of a posterior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bpa_ppl.caching import jax_is_usable, prepare_jax
from bpa_ppl.decoding.confidence import Confidence, confidence_in
from bpa_ppl.decoding.rules import AlignedDraws, Rule
from bpa_ppl.errors import DataError
from bpa_ppl.models.lists import PADDING
from bpa_ppl.nbest import Float32, Float64, Int64, NBest
from bpa_ppl.posterior import Draws
from bpa_ppl.registry import RULES

_CHUNK = 16  # lists computed at once
_SMALLEST = 16  # lists are padded to this size at least
_GROUP = 512  # draws scored at once
_NUMPY = 100_000  # candidates times draws up to which NumPy is faster
_THREADS = 2  # XLA computes most of a list on one core
_SPREAD = 64  # draws that the spread of an expectation is computed from


class Decisions(NamedTuple):
    """The choice from each of some lists (S sentences): see `Reranked`.

    Attributes `derivation` and `predictive` are (hypotheses,): the probability of each derivation,
    and of what it stands for, which is its string where equal strings are summed.
    """

    choice: Int64
    probability: Float64
    canonical: Int64
    canonical_probability: Float64
    derivation: Float64
    predictive: Float64
    confidence: Confidence | None


class DecisionSettings(NamedTuple):
    """How choices are made from the scores of the draws.

    Attributes:
        derivations: `separate` or `summed`.
        temperature: probabilities are raised to the power of 1 / temperature.
        min_confidence: the canonical first-best is kept unless P(better) exceeds this value.
        confidence: whether to compute what is expected of the choices.
        metric: of the expected scores, such as `ter`; None for none of them.
        column: the column of gains whose expected value is computed, where the lists carry it.
        draws: the number of draws that are used; None for all.
    """

    derivations: str = "separate"
    temperature: float = 1.0
    min_confidence: float | None = None
    confidence: bool = False
    metric: str | None = "ter"
    column: str | None = None
    draws: int | None = None


@dataclass(frozen=True, eq=False)
class BatchDecider:
    """The draws of a posterior, aligned with certain columns, and the rule that chooses by them.

    Attributes:
        feature_names: the columns.
        rule: the decision rule.
        draws: the draws, aligned with these columns.
        canonical: (K,) the canonical weights, or None where they are not known.
        settings: how choices are made from the scores.
    """

    feature_names: tuple[str, ...]
    rule: Rule
    draws: AlignedDraws
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
        aligned = rule.align(draws, lists)
        if settings.draws is not None:
            few = aligned.thinned(settings.draws)
            aligned = few if rule.needs_density else few.with_moments_of(aligned)
        canonical = None
        if draws.canonical is not None:
            canonical = draws.aligned(lists, draws.canonical[None])[0]
        return cls(lists.feature_names, rule, aligned, canonical, settings)

    def __reduce__(self) -> tuple[Any, ...]:
        return BatchDecider, tuple(getattr(self, field.name) for field in fields(self))

    @property
    def confident(self) -> bool:
        """Whether expected scores of the choices are computed."""
        return self.settings.confidence or self.settings.min_confidence is not None

    @property
    def needs_texts(self) -> bool:
        """Whether the texts of lists matter, beyond which ones are equal."""
        return self.rule.needs_texts or self.confident

    @cached_property
    def _program(self) -> Callable[[Float32, Float32], jax.Array]:
        """The scores of hypotheses, (S, N, K), (S, N) ↦ (S, N), compiled for each shape."""
        prepare_jax()
        groups = tuple(jnp.float32(part) for part in self.draws.in_groups(_GROUP)[:3])
        return partial(_log_scores, self.rule, self.draws.exponent, groups)

    @cached_property
    def _some(self) -> Float64:
        """(K, D) some of the draws, each as often as its share is of D."""
        return np.asarray(self.draws.thinned(_SPREAD).weights, np.float64).T

    @cached_property
    def _mean(self) -> Float64:
        """(K,) the weighted mean of the draws."""
        share = np.exp(self.draws.log_weight)
        return np.asarray(share @ self.draws.weights / share.sum())

    def stripped(self, lists: NBest) -> NBest:
        """Return lists with no more than the decider uses, to be sent to a worker process."""
        kept = {*lists.extras, *lists.sentence_extras} - {self.settings.column}
        lists = lists.without("totals", "references", "sources", *kept)
        return lists if self.needs_texts else replace(lists, strings=("",) * len(lists.strings))

    def warm_up(self, size: int) -> None:
        """Compile the program for lists of some size."""
        base = np.zeros((1, padded_size(size)), np.float32)
        self._scores(np.zeros((*base.shape, len(self.feature_names)), np.float32), base)

    def probabilities(self, lists: NBest) -> Float64:
        """Return the probability of each derivation in its list, (hypotheses,)."""
        relative = self._relative(lists)
        parts = []
        # A full chunk is computed at once, and otherwise each list, without padding lists.
        at_once = len(lists) if len(lists) == _CHUNK else 1
        for start in range(0, len(lists), at_once):
            sizes = lists.sizes[start : start + at_once]
            inside = np.arange(padded_size(int(sizes.max()))) < sizes[:, None]
            features = np.zeros((*inside.shape, relative.shape[1]), np.float32)
            first, last = lists.offsets[[start, start + at_once]]
            features[inside] = relative[first:last]
            base = np.where(inside, np.float32(0), np.float32(PADDING))
            parts.append(self._shares(self._scores(features, base))[inside])
        return np.concatenate(parts)

    def _relative(self, lists: NBest) -> Float32:
        """Return features relative to one hypothesis of each list: smaller numbers are more exact.

        The hypothesis is the best one under the mean of the draws.
        """
        origins = lists.offsets[:-1] + lists.best(lists.scores(self._mean))
        relative: Float32 = lists.features - np.repeat(lists.features[origins], lists.sizes, axis=0)
        return relative

    def _shares(self, scores: Float64) -> Float64:
        """Return the probabilities of hypotheses, by their scores, (…, N)."""
        p = np.exp((scores - scores.max(axis=-1, keepdims=True)) / self.settings.temperature)
        return np.asarray(p / p.sum(axis=-1, keepdims=True))

    def _scores(self, features: Float32, base: Float32) -> Float64:
        """Return the scores, (S, N): by NumPy in a process forked from JAX's."""
        if jax_is_usable():
            return np.asarray(self._program(features, base), np.float64)
        return np.stack([self._numpy_scores(h, b) for h, b in zip(features, base, strict=True)])

    def _numpy_scores(self, features: Float32, base: npt.NDArray[np.floating[Any]]) -> Float64:
        scores = self.rule.log_scores(features.astype(float), base.astype(float), self.draws)
        return np.asarray(scores)

    def supported(self, lists: NBest, p: Float64) -> Float64:
        """Return the probability of what each row stands for: its derivation, or its string.

        Args:
            lists: some lists.
            p: (hypotheses,) of the derivations.
        """
        if self.settings.derivations == "separate":
            return p
        # One number for each string of each list.
        sentence = np.repeat(np.arange(len(lists)), lists.sizes)
        _, group = np.unique(
            sentence * len(lists.strings) + lists.string_index, return_inverse=True
        )
        return np.bincount(group, weights=p)[group].astype(np.float64)

    def choose_one(self, lists: NBest) -> Decisions:
        """Return the choice from one list; if it is short, by NumPy, which takes half the time."""
        size = len(lists.features)
        if self.rule.takes_numpy and size * len(self.draws.weights) <= _NUMPY:
            scores = self._numpy_scores(self._relative(lists), np.zeros(size))
            return self._chosen(lists, self._shares(scores))
        return self._of_chunk(lists)

    def choose(self, lists: NBest) -> Decisions:
        """Return the choice from each list."""
        if self.needs_texts:
            lists = self.stripped(lists)
        if len(lists) <= _CHUNK:
            return self._of_chunk(lists)
        with ThreadPoolExecutor(_THREADS) as threads:
            parts = list(threads.map(self._of_chunk, lists.chunks(_CHUNK)))
        return Decisions(*map(joined, zip(*parts, strict=True)))

    def _of_chunk(self, lists: NBest) -> Decisions:
        return self._chosen(lists, self.probabilities(lists))

    def _chosen(self, lists: NBest, p: Float64) -> Decisions:
        """Return the choices by the probabilities of the derivations."""
        support = self.supported(lists, p)
        canonical = np.zeros(len(lists), np.int64)
        if self.canonical is not None:
            canonical = lists.best(lists.scores(self.canonical))
        if self.rule.needs_texts:
            choice = self.rule.decide(lists, p)
        else:
            # The best derivation of the winning string represents it.
            highest = np.repeat(np.maximum.reduceat(support, lists.offsets[:-1]), lists.sizes)
            choice = lists.best(np.where(support == highest, p, -1.0))
        confidence = None
        if self.confident:
            choice, confidence = self._expected(lists, p, choice, canonical)
        first = lists.offsets[:-1]
        return Decisions(
            choice=choice,
            probability=support[first + choice],
            canonical=canonical,
            canonical_probability=support[first + canonical],
            derivation=p,
            predictive=support,
            confidence=confidence,
        )

    def _expected(
        self, lists: NBest, p: Float64, choice: Int64, canonical: Int64
    ) -> tuple[Int64, Confidence]:
        """Return the choices that are confident enough, and their expected scores."""
        scores = (lists.features.astype(np.float64) @ self._some) / self.settings.temperature
        highest = np.maximum.reduceat(scores, lists.offsets[:-1])
        by_draw = np.exp(scores - np.repeat(highest, lists.sizes, axis=0))
        by_draw /= np.repeat(np.add.reduceat(by_draw, lists.offsets[:-1]), lists.sizes, axis=0)
        return confidence_in(
            lists,
            p,
            by_draw,
            choice,
            canonical,
            self.rule.criterion or self.settings.metric or "chrf",
            self.settings,
        )


def joined(column: Sequence[Any]) -> Any:
    """Concatenate a field of several parts: lists, arrays, confidence or None.

    >>> joined([["a"], ["b", "c"]]), joined([None, None])
    (['a', 'b', 'c'], None)
    """
    if isinstance(column[0], list):
        return [item for part in column for item in part]
    if column[0] is None or isinstance(column[0], Confidence):
        return Confidence.joined(column) if column[0] else None
    return np.concatenate(column)


def padded_size(size: int) -> int:
    """Return the number of rows to which a list is padded: eleven serve up to 1024 candidates.

    >>> sorted({padded_size(n) for n in range(1, 1025)})
    [16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024]
    """
    power = max(_SMALLEST, 1 << (size - 1).bit_length())
    return 3 * power // 4 if power > 64 and size <= 3 * power // 4 else power


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
            scores: jax.Array = rule.log_scores(*arrays, AlignedDraws(*group, exponent))
            return scores

        combined: jax.Array = rule.combine(jax.lax.map(of_group, groups))
        return combined

    result: jax.Array = jax.lax.map(of_list, (features, base))
    return result
