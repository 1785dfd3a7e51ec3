"""rerank: choose a translation from each n-best list with a checked posterior."""

from __future__ import annotations

import reprlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from bpa_ppl.decoding.base import Rule
from bpa_ppl.decoding.confidence import Confidence
from bpa_ppl.decoding.deciding import Deciding, Options
from bpa_ppl.decoding.panel import Panel, Settings, Votes, bare
from bpa_ppl.diagnostics import refuse_unconverged
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.models import Preparation
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.quality.pairs import PAIRED
from bpa_ppl.weights import Weights
from bpa_ppl.workers import number_of, parallel_workers

if TYPE_CHECKING:
    from bpa_ppl.features.recipes import Where
    from bpa_ppl.posterior.adapter import Posterior

_TABLE = 64  # lists handed to a worker at once: a multiple of what a panel decides at once
_SMALL = 100_000  # hypotheses that are decided sooner than worker processes have started
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
        confidence: what is expected of the choices, where it was asked for.
        ids: (S,) the ids of the user: texts, or the whole numbers of `sentence_ids`.

    >>> from bpa_ppl import Draws
    >>> lists = NBest.from_lists([["a", "b"], ["c"]], [[[0.0], [1.0]], [[0.0]]], ["LM0"])
    >>> draws = Draws({"weights": np.ones((1, 4, 1))}, ("LM0",), constants={"canonical": [-1.0]})
    >>> found = rerank(lists, draws, unchecked=True)
    >>> found
    Reranked(2 sentences, 1 changed)
    >>> found.texts, found.canonical_texts, found.changed.tolist()
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
        return np.array([ours != theirs for ours, theirs in pairs], dtype=bool)

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


def rerank(
    nbest: NBest | Iterable[NBest],
    posterior: Posterior,
    *,
    rule: str | Rule | None = None,
    derivations: str = "separate",
    sure: float | None = None,
    temperature: float | None = None,
    confidence: bool = False,
    defaults: Mapping[str, float] | None = None,
    where: Where | None = None,
    unchecked: bool = False,
    jobs: int = 1,
    backend: str = "local",
    scheduler: str | None = None,
    progress: bool | Reporter = False,
) -> Reranked:
    """Choose a translation from each list by the posterior.

    Args:
        nbest: lists, or a stream of them (`iter_nbest`), of which few are held at a time.
        posterior: from `adapt`, or anybody's with a variable `weights` and feature names.
        rule: `predictive` (Eq. 11 for weighted samples, Eq. 13 for Markov chains), `viterbi`
            (the best pair of weights and translation), `map` or `mean` (one weight vector), `mbr`
            (the translation that is expected to be worth most), or a rule with its settings. None
            takes what the posterior records, else `predictive`: `adapt` records `mean` where there
            were no canonical weights.
        derivations: `separate` scores each derivation, as published; `summed` adds up those of
            equal strings.
        sure: change the canonical first-best only where the choice is better than it with a higher
            probability than this (0 to 1), see `Confidence`. None always takes the choice.
        temperature: probabilities of derivations are raised to the power of 1 / temperature, before
            those of equal strings are added up. None takes what the posterior records (see
            `diagnostics.calibrated`), else 1. The order of derivations stays, so that `predictive`
            chooses the same; sums over strings, and `mbr`, may choose others.
        confidence: also return what is expected of the choices: `Reranked.confidence`.
        defaults: weights of features that the posterior does not know, such as one that was
            fixed when somebody else made it.
        where: where files lie now that features are computed from and that have moved since the
            weights were adapted, by the label of the source: `{"lm": "texts/domain.txt"}`.
        unchecked: use the posterior although it fails its check.
        jobs: processes that decide; -1 takes every core. Few lists are decided in this process,
            and the choices are the same.
        backend: `local`, or `dask` for all workers of an existing cluster.
        scheduler: the address of the cluster's scheduler, such as `tcp://host:8786`.
        progress: True draws a bar on standard error.

    Raises:
        NotConverged: if the posterior fails `check` and `unchecked` is false.
        DataError: if lists and posterior do not have the same features, or a file that some are
            computed from is missing or has changed.
        UsageError: if there is no such rule, treatment of derivations or backend, or no worker.

    >>> from bpa_ppl import Draws
    >>> drawn = np.random.default_rng(0).normal(1.0, 0.1, size=(4, 500, 1))
    >>> posterior = Draws({"weights": drawn}, ("LM0",))
    >>> lists = NBest.from_lists([["a", "b"]], [[[0.0], [np.log(3)]]], ["LM0"])
    >>> found = rerank(lists, posterior)
    >>> found.texts, found.probability.round(2).tolist()
    (['b'], [0.75])
    >>> rerank(lists, Draws({"weights": drawn[:, :20]}, ("LM0",)))
    Traceback (most recent call last):
    bpa_ppl.errors.NotConverged: the posterior failed its check, so it is not used...
    """
    deciding = Deciding(
        rule=rule,
        derivations=derivations,
        sure=sure,
        temperature=temperature,
        confidence=confidence,
        defaults=defaults,
        where=where,
        unchecked=unchecked,
        jobs=jobs,
        backend=backend,
        scheduler=scheduler,
    )
    stream = decisions(nbest, posterior, deciding)
    total = len(nbest) if isinstance(nbest, NBest) else 0
    parts: list[Reranked] = []
    done = 0
    with reporter(progress, "rerank") as report:
        for _, part in stream:
            parts.append(part)
            done += len(part.choice)
            report(done, max(total, done), "sentences")
    if not parts:
        raise UsageError("there is no list to rerank")
    return _joined(parts)


def rerank_stream(
    nbest: NBest | Iterable[NBest], posterior: Posterior, **options: Unpack[Options]
) -> Iterator[Reranked]:
    """Do what `rerank` does, and yield the choices part by part; same arguments and errors.

    >>> from bpa_ppl import Draws
    >>> lists = NBest.from_lists([["a", "b"]] * 100, [[[0.0], [1.0]]] * 100, ["LM0"])
    >>> draws = Draws({"weights": np.ones((1, 4, 1))}, ("LM0",))
    >>> [len(part.texts) for part in rerank_stream(lists, draws, unchecked=True)]
    [64, 36]
    """
    decided = decisions(nbest, posterior, Deciding(**options))
    return (choices for _, choices in decided)


class Decided(NamedTuple):
    """Some lists, and the choices from them."""

    lists: NBest
    choices: Reranked


def decisions(
    nbest: NBest | Iterable[NBest], posterior: Posterior, deciding: Deciding
) -> Iterator[Decided]:
    """Yield lists and choices part by part; arguments and errors as those of `rerank`."""
    draws = with_defaults(as_draws(posterior), deciding.defaults)
    if not deciding.unchecked:
        refuse_unconverged(draws)
    panels = _Panels(draws, deciding.rule_for(draws), _settings(deciding, draws))
    prepared = Preparation.recorded(
        draws.attrs, draws.constants, deciding.where, draws.features, draws.fixed
    )
    tables = prepared.stream(_tables([nbest] if isinstance(nbest, NBest) else nbest))
    if deciding.backend == "local" and number_of(deciding.jobs) == 1:
        return _decided_here(tables, panels)
    return _decided_by_workers(tables, panels, deciding)


def _settings(deciding: Deciding, draws: Draws) -> Settings:
    temperature = deciding.temperature
    if temperature is None:
        temperature = float(draws.attrs.get("temperature", 1.0))
    metric = expected_metric(draws.attrs)
    return Settings(deciding.derivations, temperature, deciding.sure, deciding.confidence, metric)


def expected_metric(attrs: Mapping[str, Any]) -> str | None:
    """Return the metric in which the choices of a posterior are expected to be good.

    That is the criterion of the posterior, TER if it records none. None where texts of a list
    cannot be compared by it, as where it is a column of the lists.

    >>> expected_metric({}), expected_metric({"oracle_metric": "mqm"})
    ('ter', None)
    """
    name = attrs.get("oracle_metric", "ter")
    return name if name in PAIRED else None


def with_defaults(draws: Draws, defaults: Mapping[str, float] | None) -> Draws:
    """Return draws with more fixed weights, of features that they do not know.

    Raises:
        DataError: if the posterior knows one of them.
        UsageError: if they are not given by name.
    """
    given = Weights(defaults or {}, "the defaults")
    known = [name for name in given if name in (*draws.features, *draws.fixed)]
    if known:
        raise DataError(
            f"the posterior knows the weight of {', '.join(known)}: leave the default out"
        )
    return replace(draws, fixed=draws.fixed.updated(given)) if given else draws


def _joined(parts: Iterable[Reranked]) -> Reranked:
    """Return the choices of several parts as one."""
    columns: list[list[Any]] = [[getattr(part, f.name) for part in parts] for f in fields(Reranked)]
    return Reranked(*(_concatenated(column) for column in columns))


def _concatenated(column: list[Any]) -> Any:
    if isinstance(column[0], list):
        return [item for part in column for item in part]
    if column[0] is None or isinstance(column[0], Confidence):
        return Confidence.joined(column) if column[0] else None
    return np.concatenate(column)


def _tables(stream: Iterable[NBest]) -> Iterator[NBest]:
    """Yield the lists of a stream a few at a time."""
    if isinstance(stream, str | bytes) or not isinstance(stream, Iterable):
        raise _no_lists(stream)
    for lists in stream:
        if not isinstance(lists, NBest):
            raise _no_lists(stream)
        yield from lists.chunks(_TABLE)


def _no_lists(given: Any) -> UsageError:
    return UsageError(
        "what is reranked are n-best lists (NBest) or a stream of them (iter_nbest), not "
        f"{reprlib.repr(given)}"
    )


class _Panels:
    """The panel for the columns of each table: the same one as long as they are the same."""

    def __init__(self, draws: Draws, rule: Rule, settings: Settings):
        self._what = draws, rule, settings
        self._panel: Panel | None = None

    def of(self, lists: NBest) -> Panel:
        if self._panel is None or self._panel.feature_names != lists.feature_names:
            draws, rule, settings = self._what
            self._panel = Panel.of(draws, lists, rule, settings)
        return self._panel


def _decided_here(tables: Iterable[NBest], panels: _Panels) -> Iterator[Decided]:
    for lists in tables:
        yield _decided(lists, panels.of(lists).decide(lists))


def _decided_by_workers(
    tables: Iterator[NBest], panels: _Panels, deciding: Deciding
) -> Iterator[Decided]:
    first: deque[NBest] = deque()
    if deciding.backend == "local":
        waiting = 0
        while waiting < _SMALL and (lists := next(tables, None)) is not None:
            first.append(lists)
            waiting += len(lists.features)
        if waiting < _SMALL:
            yield from _decided_here(first, panels)
            return
    from joblib import delayed

    def call(lists: NBest) -> Any:
        panel = panels.of(lists)
        return delayed(Panel.decide)(panel, bare(lists, texts=panel.needs_texts))

    calls = ((lists, call(lists)) for lists in chain(_drained(first), tables))
    with parallel_workers(deciding.jobs, deciding.backend, deciding.scheduler) as parallel:
        for lists, votes in parallel.in_order(calls):
            yield _decided(lists, votes)


def _drained(waiting: deque[NBest]) -> Iterator[NBest]:
    while waiting:
        yield waiting.popleft()


def _decided(lists: NBest, votes: Votes) -> Decided:
    choices = Reranked(
        sentence_ids=lists.sentence_ids,
        **votes._asdict(),
        texts=lists.chosen(votes.choice),
        canonical_texts=lists.chosen(votes.canonical),
        references=list(lists.references or ()),
        ids=list(lists.ids),
    )
    return Decided(lists, choices)
