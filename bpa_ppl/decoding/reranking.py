"""rerank: choose a translation from each n-best list with a checked posterior."""

from __future__ import annotations

import reprlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bpa_ppl.decoding.batches import BatchDecider, Decisions, DecisionSettings
from bpa_ppl.decoding.confidence import Confidence
from bpa_ppl.decoding.rules import Rule
from bpa_ppl.diagnostics import refuse_unconverged
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.models import Preparation
from bpa_ppl.models.preparing import gain_column
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.options import RerankOptions, with_options
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.quality.pairs import PAIRED
from bpa_ppl.weights import Weights
from bpa_ppl.workers import number_of, parallel_workers

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

_TABLE = 64  # lists per task of a worker: a multiple of the batch of a decider
_SMALL = 100_000  # hypotheses; up to this number, starting worker processes takes longer
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
        confidence: what is expected of the choices, if it was computed.
        ids: (S,) the ids of the user: texts, or the integers of `sentence_ids`.

    >>> from bpa_ppl import Draws
    >>> lists = NBest.from_lists([["a", "b"], ["c"]], [[[0.0], [1.0]], [[0.0]]], ["LM0"])
    >>> draws = Draws({"weights": np.ones((1, 4, 1))}, ("LM0",), constants={"canonical": [-1.0]})
    >>> result = rerank(lists, draws, unchecked=True)
    >>> result
    Reranked(2 sentences, 1 changed)
    >>> result.texts, result.canonical_texts, result.changed.tolist()
    (['b', 'c'], ['a', 'c'], [True, False])
    """

    sentence_ids: Int64
    choice: Int64
    probability: Float64
    canonical: Int64
    canonical_probability: Float64
    texts: list[str]
    canonical_texts: list[str]
    references: list[tuple[str, ...]]
    confidence: Confidence | None = None
    ids: list[int | str] = field(default_factory=list)

    @property
    def changed(self) -> np.ndarray:
        """(S,) bool: whether the translation differs from the canonical first-best."""
        pairs = zip(self.texts, self.canonical_texts, strict=True)
        return np.array([choice != canonical for choice, canonical in pairs], dtype=bool)

    def __repr__(self) -> str:
        return f"Reranked({len(self.texts)} sentences, {int(self.changed.sum())} changed)"

    def _repr_html_(self) -> str:
        """Return the first changes side by side, for notebooks."""
        first = np.flatnonzero(self.changed)[:_SHOWN]
        rows = "".join(
            f"<tr><td>{escape(str(self.ids[s]))}</td><td>{escape(self.canonical_texts[s])}</td>"
            f"<td>{escape(self.texts[s])}</td><td>{self.probability[s]:.2f}</td></tr>"
            for s in first
        )
        head = "<tr><th>sentence</th><th>canonical</th><th>chosen</th><th>probability</th></tr>"
        return f"<p>{escape(repr(self))}</p>" + (f"<table>{head}{rows}</table>" if rows else "")


@with_options(RerankOptions)
def rerank(
    nbest: NBest | Iterable[NBest], posterior: Posterior, options: RerankOptions
) -> Reranked:
    """Choose a translation from each list by the posterior.

    Args:
        nbest: lists, or a stream of them (`iter_nbest`), of which few are in memory at a time.
        posterior: from `adapt`, or any other with a variable `weights` and feature names.
        options: the fields of `bpa_ppl.options.RerankOptions`, as keyword arguments.

    Raises:
        NotConverged: if the posterior fails `check` and `unchecked` is false.
        DataError: if lists and posterior do not have the same features, or a file that features
            are computed from is missing or has changed.
        UsageError: if there is no such rule, treatment of derivations or backend, or no worker.

    >>> from bpa_ppl import Draws
    >>> drawn = np.random.default_rng(0).normal(1.0, 0.1, size=(4, 500, 1))
    >>> posterior = Draws({"weights": drawn}, ("LM0",))
    >>> lists = NBest.from_lists([["a", "b"]], [[[0.0], [np.log(3)]]], ["LM0"])
    >>> result = rerank(lists, posterior)
    >>> result.texts, result.probability.round(2).tolist()
    (['b'], [0.75])
    >>> rerank(lists, Draws({"weights": drawn[:, :20]}, ("LM0",)))
    Traceback (most recent call last):
    bpa_ppl.errors.NotConverged: the posterior failed its check, so it is not used...
    """
    parts = [part.result for part in reranked_parts(nbest, posterior, options)]
    columns: list[list[Any]] = [[getattr(part, f.name) for part in parts] for f in fields(Reranked)]
    return Reranked(*map(_concatenated, columns))


@with_options(RerankOptions)
def rerank_stream(
    nbest: NBest | Iterable[NBest], posterior: Posterior, options: RerankOptions
) -> Iterator[Reranked]:
    """Rerank as `rerank` does, and yield the choices part by part; same arguments and errors.

    Args:
        nbest: as for `rerank`.
        posterior: as for `rerank`.
        options: as for `rerank`.

    >>> from bpa_ppl import Draws
    >>> lists = NBest.from_lists([["a", "b"]] * 100, [[[0.0], [1.0]]] * 100, ["LM0"])
    >>> draws = Draws({"weights": np.ones((1, 4, 1))}, ("LM0",))
    >>> [len(part.texts) for part in rerank_stream(lists, draws, unchecked=True)]
    [64, 36]
    """
    return (part.result for part in reranked_parts(nbest, posterior, options))


class RerankedPart(NamedTuple):
    """Some lists, and the choices from them."""

    lists: NBest
    result: Reranked


def reranked_parts(
    nbest: NBest | Iterable[NBest], posterior: Posterior, options: RerankOptions
) -> Iterator[RerankedPart]:
    """Yield lists and the choices from them, a part at a time; errors as those of `rerank`.

    A posterior that cannot be used is refused before the lists are read.
    """
    draws = with_defaults(as_draws(posterior), options.defaults)
    if not options.unchecked:
        refuse_unconverged(draws)
    temperature = options.temperature
    if temperature is None:
        temperature = float(draws.attrs.get("temperature", 1.0))
    gain, metric = gain_column(draws.attrs), draws.attrs.get("oracle_metric", "ter")
    settings = DecisionSettings(
        options.derivations,
        temperature,
        options.min_confidence,
        options.confidence,
        # The texts of a list cannot be compared by other metrics, such as a column of the lists.
        metric if metric in PAIRED else None,
        None if gain is None else gain.column,
    )
    deciders = _Deciders(draws, options.rule_for(draws), settings)
    tables = Preparation.recorded(draws, options.moved_files).stream(_tables(nbest))
    if options.backend == "local" and number_of(options.jobs) == 1:
        parts = _in_this_process(tables, deciders)
    else:
        parts = _in_workers(tables, deciders, options)
    return _reported(parts, len(nbest) if isinstance(nbest, NBest) else 0, options.progress)


def _reported(
    parts: Iterable[RerankedPart], total: int, progress: bool | Reporter
) -> Iterator[RerankedPart]:
    """Yield the parts, and report the number of sentences.

    Raises:
        UsageError: if there is no part.
    """
    done = 0
    with reporter(progress, "rerank") as report:
        for part in parts:
            yield part
            done += len(part.lists)
            report(done, max(total, done), "sentences")
    if not done:
        raise UsageError("there is no list to rerank", parameter="nbest", code="no-data")


def with_defaults(draws: Draws, defaults: Mapping[str, float] | None) -> Draws:
    """Return draws with more fixed weights, of features that they do not have.

    Raises:
        DataError: if the posterior knows one of them.
        UsageError: if they are not given by name.
    """
    weights = Weights(defaults or {}, "the defaults")
    clashes = [name for name in weights if name in (*draws.features, *draws.fixed)]
    if clashes:
        raise DataError(
            f"the posterior has weights of {', '.join(clashes)}: leave out their default weights",
            parameter="defaults",
            code="duplicate",
        )
    return replace(draws, fixed=draws.fixed.updated(weights)) if weights else draws


def _concatenated(column: list[Any]) -> Any:
    if isinstance(column[0], list):
        return [item for part in column for item in part]
    if column[0] is None or isinstance(column[0], Confidence):
        return Confidence.joined(column) if column[0] else None
    return np.concatenate(column)


def _tables(nbest: NBest | Iterable[NBest]) -> Iterator[NBest]:
    """Yield lists, or those of a stream, a few at a time."""
    is_stream = isinstance(nbest, Iterable) and not isinstance(nbest, NBest)
    for lists in nbest if is_stream else [nbest]:
        if not isinstance(lists, NBest):
            raise UsageError(
                "rerank takes n-best lists (NBest) or a stream of them (iter_nbest), not "
                f"{reprlib.repr(nbest)}",
                parameter="nbest",
                code="wrong-type",
            )
        yield from lists.chunks(_TABLE)


class _Deciders:
    """The decider for the columns of each table: the same one as long as the columns are equal."""

    def __init__(self, draws: Draws, rule: Rule, settings: DecisionSettings):
        self._arguments = draws, rule, settings
        self._last: BatchDecider | None = None

    def of(self, lists: NBest) -> BatchDecider:
        if self._last is None or self._last.feature_names != lists.feature_names:
            draws, rule, settings = self._arguments
            self._last = BatchDecider.of(draws, lists, rule, settings)
        return self._last


def _in_this_process(tables: Iterable[NBest], deciders: _Deciders) -> Iterator[RerankedPart]:
    for lists in tables:
        yield _part(lists, deciders.of(lists).choose(lists))


def _in_workers(
    tables: Iterator[NBest], deciders: _Deciders, options: RerankOptions
) -> Iterator[RerankedPart]:
    first: deque[NBest] = deque()
    if options.backend == "local":
        waiting = 0
        while waiting < _SMALL and (lists := next(tables, None)) is not None:
            first.append(lists)
            waiting += len(lists.features)
        if waiting < _SMALL:
            yield from _in_this_process(first, deciders)
            return
    from joblib import delayed

    def call(lists: NBest) -> Any:
        decider = deciders.of(lists)
        return delayed(BatchDecider.choose)(decider, decider.stripped(lists))

    queued = (first.popleft() for _ in range(len(first)))
    calls = ((lists, call(lists)) for lists in chain(queued, tables))
    with parallel_workers(options.jobs, options.backend, options.scheduler) as parallel:
        for lists, decisions in parallel.in_order(calls):
            yield _part(lists, decisions)


def _part(lists: NBest, decisions: Decisions) -> RerankedPart:
    result = Reranked(
        sentence_ids=lists.sentence_ids,
        **decisions._asdict(),
        texts=lists.chosen(decisions.choice),
        canonical_texts=lists.chosen(decisions.canonical),
        references=list(lists.references or ()),
        ids=list(lists.ids),
    )
    return RerankedPart(lists, result)
