"""rerank: choose a translation from each n-best list with a checked posterior."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bpa_ppl.decoding.base import Rule, Voters
from bpa_ppl.diagnostics import check
from bpa_ppl.errors import DataError, NotConverged, UsageError, one_of
from bpa_ppl.jax_cache import keep_compiled
from bpa_ppl.models.lists import PADDING
from bpa_ppl.nbest import Float32, Float64, Int64, NBest
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.registry import RULES

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

#: What competes in a list: each derivation, or each string with its derivations summed.
DERIVATIONS = ("separate", "summed")
_CHUNK = 16  # lists decided at once
_ROUND = 64  # lengths of lists are rounded up to a multiple
_GROUP = 512  # draws that vote at once
_SHOWN = 5  # changes in a notebook


@dataclass(frozen=True, eq=False)
class Reranked:
    """The choice from each list (S sentences).

    Attributes:
        sentence_ids: (S,) as printed in the file.
        choice: (S,) position of the chosen hypothesis in its list.
        probability: (S,) its predictive probability, of the derivation or of the string.
        canonical: (S,) position of the first-best under the canonical weights.
        canonical_probability: (S,) the predictive probability of that one.
        texts: the chosen translations.
        canonical_texts: those of the canonical weights.
        references: the references of each sentence, as far as the lists have them.
    """

    sentence_ids: Int64
    choice: Int64
    probability: Float64
    canonical: Int64
    canonical_probability: Float64
    texts: list[str]
    canonical_texts: list[str]
    references: list[tuple[str, ...]]

    @property
    def changed(self) -> np.ndarray:
        """(S,) bool: whether the translation differs from the canonical first-best."""
        pairs = zip(self.texts, self.canonical_texts, strict=True)
        return np.array([ours != theirs for ours, theirs in pairs], dtype=bool)

    def __repr__(self) -> str:
        return f"Reranked({len(self.texts)} sentences, {int(self.changed.sum())} changed)"

    def _repr_html_(self) -> str:
        """Return the first changes side by side, for notebooks."""
        first = np.flatnonzero(self.changed)[:_SHOWN]
        rows = "".join(
            f"<tr><td>{int(self.sentence_ids[s])}</td><td>{escape(self.canonical_texts[s])}</td>"
            f"<td>{escape(self.texts[s])}</td><td>{self.probability[s]:.2f}</td></tr>"
            for s in first
        )
        head = "<tr><th>sentence</th><th>canonical</th><th>chosen</th><th>probability</th></tr>"
        return f"<p>{escape(repr(self))}</p>" + (f"<table>{head}{rows}</table>" if rows else "")


def rerank(
    nbest: NBest | Iterable[NBest],
    posterior: Posterior,
    *,
    rule: str | Rule = "predictive",
    derivations: str = "separate",
    unchecked: bool = False,
    progress: bool | Reporter = False,
) -> Reranked:
    """Choose a translation from each list by the posterior.

    Args:
        nbest: lists, or a stream of them (`iter_nbest`), of which one chunk is held at a time.
        posterior: from `adapt`, or anybody's with a variable `weights` and feature names.
        rule: `predictive` (Eq. 11 for weighted samples, Eq. 13 for Markov chains), `viterbi`
            (the best pair of weights and translation), `map` or `mean` (one weight vector), or a
            rule with its settings.
        derivations: `separate` scores each derivation, as published; `summed` adds up those of
            equal strings.
        unchecked: use the posterior although it fails its check.
        progress: True draws a bar on standard error.

    Raises:
        NotConverged: if the posterior fails `check` and `unchecked` is false.
        DataError: if lists and posterior do not have the same features.
        UsageError: if there is no such rule or treatment of derivations.
    """
    stream = rerank_stream(
        nbest, posterior, rule=rule, derivations=derivations, unchecked=unchecked
    )
    total = len(nbest) if isinstance(nbest, NBest) else 0
    parts: list[Reranked] = []
    with reporter(progress, f"rerank {RULES.name_of(RULES.resolve(rule))}") as report:
        for part in stream:
            parts.append(part)
            done = sum(len(p.choice) for p in parts)
            report(done, max(total, done), "sentences")
    if not parts:
        raise UsageError("there is no list to rerank")
    return _joined(parts)


def rerank_stream(
    nbest: NBest | Iterable[NBest],
    posterior: Posterior,
    *,
    rule: str | Rule = "predictive",
    derivations: str = "separate",
    unchecked: bool = False,
) -> Iterator[Reranked]:
    """Do what `rerank` does, and yield the choices chunk by chunk; same arguments and errors."""
    chosen = RULES.resolve(rule)
    one_of(derivations, DERIVATIONS, "treatment of derivations")
    draws = as_draws(posterior)
    if not unchecked:
        refuse_unconverged(draws)
    stream = [nbest] if isinstance(nbest, NBest) else nbest
    return _decisions(stream, draws, chosen, derivations)


def refuse_unconverged(posterior: Posterior) -> None:
    """Raise NotConverged, with the table of the check, if a posterior fails it."""
    report = check(posterior)
    if not report:
        raise NotConverged(
            f"the posterior failed its check, so it is not used (`unchecked` overrides):\n{report}"
        )


def _joined(parts: Iterable[Reranked]) -> Reranked:
    """Return the choices of several chunks as one."""
    columns: list[list[Any]] = [[getattr(part, f.name) for part in parts] for f in fields(Reranked)]
    return Reranked(*(_concatenated(column) for column in columns))


def _concatenated(column: list[Any]) -> Any:
    if isinstance(column[0], list):
        return [item for part in column for item in part]
    return np.concatenate(column)


def _decisions(
    stream: Iterable[NBest], draws: Draws, rule: Rule, derivations: str
) -> Iterator[Reranked]:
    keep_compiled()
    panel: _Panel | None = None
    for lists in stream:
        if panel is None or panel.feature_names != lists.feature_names:
            panel = _panel(draws, lists, rule)
        for chunk in lists.chunks(_CHUNK):
            yield _choose(chunk, panel, derivations)


class _Panel(NamedTuple):
    """Who decides, laid beside the columns of the lists."""

    feature_names: tuple[str, ...]
    canonical: Float64 | None
    log_scores: Callable[[Any, Any], jax.Array]


def _panel(draws: Draws, lists: NBest, rule: Rule) -> _Panel:
    if rule.needs_density and draws.log_weight is None and draws.log_density is None:
        raise DataError(
            f"the rule {RULES.name_of(rule)} needs the density of each draw (lp), which this "
            "posterior does not record: use the rule predictive"
        )
    groups = rule.voters(draws, lists).in_groups(_GROUP)
    canonical = None
    if draws.canonical is not None:
        canonical = draws.aligned(lists, draws.canonical[None])[0]
    return _Panel(lists.feature_names, canonical, jax.jit(partial(_log_scores, rule, groups)))


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


def _choose(lists: NBest, panel: _Panel, derivations: str) -> Reranked:
    log_scores = np.asarray(panel.log_scores(*_padded(lists)), np.float64)
    canonical = (
        np.zeros(len(lists), np.int64)
        if panel.canonical is None
        else lists.best(lists.scores(panel.canonical))
    )
    votes = [
        _vote(log_scores[s, :size], lists.string_index[lists.rows(s)], derivations)
        for s, size in enumerate(lists.sizes)
    ]
    choice = np.array([best for best, _ in votes], np.int64)
    return Reranked(
        sentence_ids=lists.sentence_ids,
        choice=choice,
        probability=np.array([p[best] for best, p in votes]),
        canonical=canonical,
        canonical_probability=np.array([p[c] for c, (_, p) in zip(canonical, votes, strict=True)]),
        texts=lists.chosen(choice),
        canonical_texts=lists.chosen(canonical),
        references=list(lists.references or ()),
    )


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
