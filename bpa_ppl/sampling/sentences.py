"""Sentences with their observations: oracles and gains, or preferences.

`observe_sentences` observes adaptation sentences; an `ObservationRecipe` observes further sentences
in the way that a posterior records.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bpa_ppl.arrays import Float64, Int64
from bpa_ppl.caching import content_hash, key_of
from bpa_ppl.columns import counted
from bpa_ppl.errors import DataError, UsageError, quoted, require
from bpa_ppl.models import Likelihood, Preference, Preparation
from bpa_ppl.models.likelihoods.preference import LOG_NU, RATER, RATERS
from bpa_ppl.nbest import NBest, deviation_within
from bpa_ppl.notes import log_info
from bpa_ppl.posterior import Draws
from bpa_ppl.progress import Reporter, inherited_progress, reporter
from bpa_ppl.quality import TER, Metric, Oracles, agreement, gains, oracles, resolve
from bpa_ppl.quality.agreement import AGREEMENT, Agreement
from bpa_ppl.quality.column import judged_lists
from bpa_ppl.quality.oracle import oracles_and_gains
from bpa_ppl.quality.preferences import choice_sets, has_preferences
from bpa_ppl.quality.scoring import no_references
from bpa_ppl.registry import LIKELIHOODS, METRICS
from bpa_ppl.sampling.sentence_buckets import (
    SCORE,
    ObservedSentences,
    sentence_buckets,
    weight_constants,
)
from bpa_ppl.weights import Match

if TYPE_CHECKING:
    from bpa_ppl.features.recipes import MovedFiles

#: The sentence extra that names the domain of a sentence.
DOMAIN = "domain"


class Sentences(NamedTuple):
    """The observations that likelihoods use.

    Attributes:
        nbest: the lists, with the features that are adapted.
        match: the canonical weights, matched to those features.
        metric: of the gains; None if neither oracles nor gains are computed.
        oracles: the best hypotheses.
        gains: (hypotheses,) the gain of each; None if not needed.
        counts: of the preferences that the lists were made from; None for sentences.
        preferences: the preferences of the same lists in addition to gains, or None.
        weight: (observations,) the exponent of the probability of each preference, or None.
        rater: (observations,) the number of the rater of each preference, or None.
        raters: the names of the raters, by number.
        named_raters: the number of choices of each rater who has a name.
        agreement: of the raters; None if fewer than two have names.
    """

    nbest: NBest
    match: Match
    metric: Metric | None
    oracles: Oracles
    gains: Float64 | None
    counts: dict[str, int] | None = None
    preferences: Sentences | None = None
    weight: Float64 | None = None
    rater: Int64 | None = None
    raters: tuple[str, ...] = ()
    named_raters: Mapping[str, int] = MappingProxyType({})
    agreement: Agreement | None = None

    def resolve_defaults(self, likelihood: Likelihood) -> Likelihood:
        """Return the likelihood with its default settings derived from the gains or the raters."""
        if isinstance(likelihood, Preference):
            return likelihood.for_raters(len(self.named_raters))
        if self.gains is None or likelihood.observes == "oracles":
            return likelihood
        edit = 1.0
        if not isinstance(self.metric, TER) and len(self.nbest):
            edit = deviation_within(self.nbest, self.gains) or 1.0
        return likelihood.with_defaults(edit)

    def record(self) -> dict[str, Any]:
        """Return the attributes of a posterior that describe criterion and preferences."""
        count = {"adaptation_sentences": len(self.observed)}
        if self.counts is not None:
            return {"comparisons": self.counts, **self._raters_record(), **count}
        return {
            "oracle_metric": self.oracles.metric,
            "oracle_ties": self.oracles.ties,
            "oracle_signature": self.oracles.signature,
            **({} if self.preferences is None else self.preferences.record()),
            **count,
        }

    def hashes(self) -> dict[str, str]:
        """Return short hashes of the data: the same for other file names, formats or compression.

        `texts` are the ids and candidates of the lists, `features` the values that are adapted;
        the others are what was observed, and the references that it was scored with.
        """
        nbest = self.nbest
        order = np.argsort(nbest.feature_names)
        names = [nbest.feature_names[column] for column in order]
        oracles = [self.oracles.index, self.oracles.share, self.weight, self.rater]
        content: dict[str, list[Any]] = {
            "features": [key_of(names), nbest.features[:, order]],
            "oracles": [*oracles, key_of(self.raters)],
        }
        if self.gains is not None and self.counts is None:
            content["gains"] = [self.gains]
        if self.metric is not None and "references" in self.metric.needs and nbest.references:
            content["references"] = [key_of(nbest.references)]
        if self.preferences is not None:
            content["preferences"] = [key_of(sorted(self.preferences.hashes().items()))]
        others = {name: _short_hash(parts) for name, parts in content.items()}
        return {"texts": content_hash(nbest), **others}

    def _raters_record(self) -> dict[str, Any]:
        """Return the attributes that describe the raters, if any has a name."""
        record: dict[str, Any] = {RATERS: dict(self.named_raters)} if self.named_raters else {}
        return record | ({} if self.agreement is None else {AGREEMENT: self.agreement.record()})

    def all_raters(self) -> tuple[str, ...]:
        """Return the names of the raters of all preferences."""
        return self.raters if self.preferences is None else self.preferences.raters

    @property
    def observed(self) -> Int64:
        """(observations,) the observed hypothesis of each list; preferences come last."""
        preferences = () if self.preferences is None else (self.preferences.observed,)
        return np.concatenate([self.oracles.index, *preferences])

    @property
    def sentence_ids(self) -> Int64:
        """(observations,) the sentence id of each of them."""
        preferences = () if self.preferences is None else (self.preferences.sentence_ids,)
        return np.concatenate([self.nbest.sentence_ids, *preferences])

    def scores(self) -> dict[str, Float64]:
        """Return the sentence scores of the oracles, or weights and raters of preferences."""
        if self.weight is not None and self.rater is not None:
            return weight_constants(self.weight, self.rater)
        return {SCORE: self.oracles.score} if self.preferences is None else {}


def _short_hash(parts: Iterable[Any]) -> str:
    """Return a hash of texts and arrays; None is skipped."""
    content = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            content.update(f"{part.dtype.str}{part.shape}".encode())
            content.update(np.ascontiguousarray(part).data)
        elif part is not None:
            content.update(part.encode())
    return content.hexdigest()[:16]


def observe_sentences(
    likelihood: Likelihood,
    nbest: NBest,
    match: Match,
    metric: Metric,
    oracle: Oracles | None,
    **search: Any,
) -> Sentences:
    """Return the observations of some lists: their preferences, their oracles, or both.

    Args:
        likelihood: of preferences; or of oracles, and then preferences are observed in addition.
        nbest: the lists, with the features that are adapted.
        match: the canonical weights, matched to these features.
        metric: as for `score_sentences`.
        oracle: as for `score_sentences`.
        **search: as for `score_sentences`.

    Raises:
        DataError: if a sentence lacks data that the metric needs, or a preference is invalid.
    """
    if likelihood.observes == "preferences":
        sentences = preference_sentences(nbest, match, likelihood)
        if sentences.agreement is not None:
            log_info(str(sentences.agreement))
        return sentences
    if oracle is not None:
        return score_sentences(likelihood, nbest, match, metric, oracle, **search)
    lists = judged_lists(nbest, metric)[0] if len(nbest) else nbest
    judged = score_sentences(likelihood, lists, match, metric, oracle, **search)
    if not has_preferences(nbest):
        if (skipped := len(nbest) - len(lists)) > 0:
            reason = "fewer than two candidates are judged" if metric.columns else "no reference"
            log_info(f"{counted(skipped, 'list')} left out: {reason}")
        return judged
    preferences = preference_sentences(nbest, match, Preference())
    if preferences.agreement is not None:
        log_info(str(preferences.agreement))
    log_info(
        f"{nbest.origin}: {len(judged.nbest)} judged lists and {len(preferences.nbest)} choices "
        "between candidates are observed together"
    )
    return judged._replace(preferences=preferences)


def preference_sentences(
    nbest: NBest,
    match: Match,
    likelihood: Likelihood,
    ties: bool | None = None,
    raters: tuple[str, ...] = (),
) -> Sentences:
    """Return the choices that the preferences of some lists represent, as sentences.

    Args:
        nbest: lists with all their features, whose sentences carry preferences.
        match: the canonical weights, matched to these features.
        likelihood: of preferences.
        ties: whether "no difference" is a possible answer; None infers it from the likelihood, or
            else from the data.
        raters: the names of the raters of a posterior, by number; none takes those of the lists.

    Raises:
        DataError: if there is no preference, one is invalid, or its rater is not one of these.

    >>> from bpa_ppl.weights import match
    >>> lists = NBest.from_lists([["a", "b", "c"]], [[[0.0], [1.0], [5.0]]], ["LM0"])
    >>> lists = lists.with_sentence_extras(preferences=[[[2, 0], [2, 1]]])
    >>> choices = preference_sentences(lists, match({"LM0": 0.0}, lists), Preference())
    >>> choices.nbest.texts(1), choices.oracles.index.tolist(), choices.counts["preferences"]
    (['c', 'b'], [0, 0], 2)
    """
    if ties is None and isinstance(likelihood, Preference) and likelihood.nu is not None:
        ties = True
    choices = choice_sets(nbest, ties=ties)
    no_score = np.full(len(choices.chosen), np.nan)
    chosen = Oracles(choices.chosen, no_score, np.ones_like(choices.chosen), "", "", "")
    rater = choices.rater
    if raters:
        for name in choices.raters:
            if name not in raters:
                raise DataError(
                    f"the posterior has no slip rate of the rater {quoted(name)}: adapt to all "
                    "answers together",
                    nbest.origin,
                    parameter=RATER,
                    code="mismatch",
                )
        rater = np.array([raters.index(name) for name in choices.raters])[rater]
    named = choices.named_raters
    return Sentences(
        choices.nbest,
        match,
        None,
        chosen,
        choices.tie,
        choices.counts,
        weight=choices.weight,
        rater=rater,
        raters=raters or choices.raters,
        named_raters=named,
        agreement=agreement(nbest) if len(named) > 1 else None,
    )


def domain_numbers(nbest: NBest, preferences: Sentences | None = None) -> Int64 | None:
    """Return the number of the domain of each list and each preference, in alphabetical order.

    None if the lists name no domains.

    Raises:
        DataError: if some lists name one and others do not.

    >>> lists = NBest.from_lists([["a"], ["b"]], [[[0.0]], [[1.0]]], ["LM0"])
    >>> domain_numbers(lists.with_sentence_extras(domain=["web", "news"]))
    array([1, 0])
    """
    if DOMAIN not in nbest.sentence_extras:
        return None
    tables = [nbest] if preferences is None else [nbest, preferences.nbest]
    for table in tables:
        for ident, name in zip(table.sentence_ids, table.sentence_extras[DOMAIN], strict=True):
            if name is None or name != name:
                raise DataError(
                    f"list {ident} has no {DOMAIN}, which the model needs: give it to every list",
                    table.origin,
                    parameter=DOMAIN,
                    code="missing-column",
                )
    names = np.concatenate([np.asarray(table.sentence_extras[DOMAIN]) for table in tables])
    return np.asarray(np.unique(names, return_inverse=True)[1])


def score_sentences(
    likelihood: Likelihood,
    nbest: NBest,
    match: Match,
    metric: Metric | None,
    oracle: Oracles | None,
    *,
    ties: str,
    canonical: bool = True,
    jobs: int = 1,
    cache: bool = True,
    progress: bool | Reporter = False,
) -> Sentences:
    """Return the sentences with their oracles, and with gains if needed.

    Args:
        likelihood: whether it observes gains.
        nbest: the lists, with the features that are adapted.
        match: the canonical weights, matched to them.
        metric: of oracles and gains; None if oracles are given and gains are not needed.
        oracle: precomputed oracles, or None.
        canonical: whether there are canonical weights, whose scores break ties; without them the
            total scores of the lists do.
        ties: as for `oracles`.
        jobs: as for `oracles`.
        cache: as for `oracles`.
        progress: as for `oracles`.

    Raises:
        DataError: if a sentence lacks data that the metric needs.
    """
    options: dict[str, Any] = {"jobs": jobs, "cache": cache}
    criterion: Any = metric  # there is one wherever it is used
    with_gains, values = likelihood.observes == "gains", None
    if not len(nbest):
        # Without sentences nothing is scored, and no reference is needed.
        empty, none = np.zeros(0), np.zeros(0, int)
        values = empty if with_gains else None
        if oracle is None:
            oracle = Oracles(none, empty, none, ties, criterion.key, "")
    elif oracle is None:
        options |= {"ties": ties, "preference": nbest.scores(match.values) if canonical else None}
        with reporter(progress, "oracles") as report:
            if with_gains:
                oracle, values = oracles_and_gains(nbest, criterion, progress=report, **options)
            else:
                oracle = oracles(nbest, criterion, progress=report, **options)
    elif with_gains:
        with reporter(progress, "gains") as report:
            values = gains(nbest, criterion, progress=report, **options)
    require(oracle, Oracles, "oracles come from the function oracles", "oracle")
    return Sentences(nbest, match, metric, oracle, values)


@dataclass(frozen=True, eq=False)
class ObservationRecipe:
    """How the sentences of a posterior were observed.

    Attributes:
        likelihood: with a number for each of its settings.
        metric: of oracles and gains; None if the posterior does not record it by name.
        ties: how ties between oracles are broken.
        preparation: of the features of lists.
        match: the canonical weights in the order of the observed columns: the free features in
            the order of the posterior, then the fixed ones.
        signature: of the metric, or an empty string.
        sites: the sampled sites of the posterior.
        raters: the names of the raters who have own slip rates in the posterior.
        canonical: whether there were canonical weights, whose scores break ties.
    """

    likelihood: Likelihood
    metric: str | Metric | None
    ties: str
    preparation: Preparation
    match: Match
    signature: str
    sites: tuple[str, ...] = ()
    raters: tuple[str, ...] = ()
    canonical: bool = True

    @classmethod
    def of(
        cls, draws: Draws, metric: str | Metric | None = None, moved_files: MovedFiles | None = None
    ) -> ObservationRecipe:
        """Return the recipe that a posterior records.

        Args:
            draws: of the posterior.
            metric: the criterion, if it has no name or has its own settings.
            moved_files: as for `rerank`.

        Raises:
            DataError: if the posterior does not record its likelihood and canonical weights, or a
                file that features are computed from is missing or has changed.
        """
        recorded, canonical = draws.attrs.get("likelihood"), draws.canonical
        if not isinstance(recorded, dict) or "name" not in recorded or canonical is None:
            raise DataError(
                "the posterior does not record its likelihood and its canonical weights, so no "
                "sentence can be added to it: use a posterior from adapt whose model observes its "
                "likelihood",
                parameter="posterior",
            )
        settings = dict(recorded)
        names = (*draws.features, *draws.fixed)
        free = np.arange(len(names)) < len(draws.features)
        preparation = Preparation.recorded(draws, moved_files)
        name: Any = draws.attrs.get("oracle_metric")
        if metric is None:
            metric = preparation.gain or (METRICS.resolve(name) if name in METRICS else None)
        return cls(
            likelihood=LIKELIHOODS.resolve(settings.pop("name"), settings),
            metric=metric,
            ties=str(draws.attrs.get("oracle_ties", "canonical")),
            preparation=preparation,
            match=Match(names, np.append(canonical, draws.fixed.values_array), free),
            signature=str(draws.attrs.get("oracle_signature", "")),
            sites=draws.sites,
            raters=draws.coords.get(RATER, ()),
            canonical="canonical_weights" not in draws.attrs,
        )

    def count(self, nbest: NBest) -> int:
        """Return the number of observations in some lists: of sentences, or of choices."""
        if self.likelihood.observes == "preferences":
            return len(choice_sets(nbest).chosen)
        return len(nbest)

    def observe(
        self, nbest: NBest, oracle: Oracles | None = None, *, training: bool = False, **search: Any
    ) -> ObservedSentences:
        """Observe some sentences.

        Args:
            nbest: their lists, with references if the metric needs them.
            oracle: precomputed oracles, or None.
            training: whether the posterior was adapted to these sentences.
            search: `jobs`, `cache` and `progress` of the search for oracles.

        Raises:
            DataError: if the lists do not have the features of the posterior, or no references.
            UsageError: if there is no sentence, or the metric is not that of the posterior.
        """
        with inherited_progress(search.get("progress", False)):
            lists = self._prepare(nbest, training)
        if self.likelihood.observes == "preferences":
            ties = self.likelihood.settings().get("nu") is not None or LOG_NU in self.sites
            sentences = preference_sentences(
                lists, self.match, self.likelihood, ties=ties, raters=self.raters
            )
        else:
            if has_preferences(lists):
                log_info(
                    f"{lists.origin}: preferences not used: the posterior is updated with gains"
                )
            with_gains = self.likelihood.observes == "gains"
            metric = self._resolve_metric(lists) if with_gains or oracle is None else None
            if metric is not None and oracle is None:
                lists = judged_lists(lists, metric)[0]
            search |= {"ties": self.ties, "canonical": self.canonical}
            sentences = score_sentences(
                self.likelihood, lists, self.match, metric, oracle, **search
            )
        best = sentences.oracles
        return ObservedSentences(
            sentence_buckets(sentences.nbest, self.match, best.index, sentences.gains, best.share),
            best.index,
            best.score,
            sentences.nbest.sentence_ids,
            np.ones(len(best.index)) if sentences.weight is None else sentences.weight,
            np.zeros(len(best.index), np.int64) if sentences.rater is None else sentences.rater,
        )

    def observe_again(
        self, nbest: NBest, recorded: ObservedSentences, **search: Any
    ) -> ObservedSentences:
        """Add the lists of sentences that the posterior was adapted to.

        Args:
            nbest: their lists, with references if the likelihood needs gains.
            recorded: the sentences as the posterior records them, without lists.
            search: as for `observe`.

        Raises:
            DataError, UsageError: as `observe`.
        """
        if self.likelihood.observes == "preferences" or not self.canonical:
            again = self.observe(nbest, training=True, **search)
            return replace(recorded, buckets=again.buckets, weight=again.weight, rater=again.rater)
        lists, values = self._prepare(nbest, training=True), None
        if self.likelihood.observes == "gains":
            metric = self._resolve_metric(lists)
            lists = judged_lists(lists, metric)[0]
            values = gains(lists, metric, **search)
        buckets = sentence_buckets(lists, self.match, recorded.index, values)
        return replace(recorded, buckets=buckets)

    def _prepare(self, lists: NBest, training: bool) -> NBest:
        """Return the lists with the columns of the posterior, in its order."""
        what = "sentences are n-best lists (NBest): read a file with read_nbest"
        require(lists, NBest, what, "nbest")
        if not len(lists):
            problem = "there is no sentence to add: the lists are empty"
            raise UsageError(problem, parameter="nbest", code="no-data")
        prepare = self.preparation
        nbest = prepare.for_training(lists).nbest if training else prepare(lists)
        names = self.match.names
        missing = [name for name in names if name not in nbest.feature_names]
        if missing:
            raise DataError(
                f"no feature {', '.join(missing)}, which the posterior has weights for: give lists "
                "with the features that the weights were adapted with",
                nbest.origin,
                code="missing-feature",
            )
        if nbest.feature_names == names:
            return nbest
        columns = [nbest.feature_names.index(name) for name in names]
        return replace(nbest, features=nbest.features[:, columns], feature_names=names)

    def _resolve_metric(self, nbest: NBest) -> Metric:
        """Return the metric after checking that the posterior's oracles were found by it."""
        if self.metric is None:
            raise UsageError(
                "the posterior was adapted to a metric that has no name: give the same metric",
                parameter="metric",
                code="missing-setting",
            )
        metric = resolve(self.metric, nbest)
        if "references" in metric.needs and nbest.references is None:
            raise no_references(nbest.origin)

        def fixed_parts(signature: str) -> set[str]:
            # Lists of one criterion may differ in the number of references and the version.
            parts = signature.split("|")
            return {part for part in parts if not part.startswith(("nrefs:", "version:"))}

        signature = metric.signature(nbest.references or [()] * len(nbest), sentence=True)
        if self.signature and fixed_parts(signature) != fixed_parts(self.signature):
            raise UsageError(
                f"the posterior was adapted to another metric, {self.signature}, than "
                f"{signature}: give the same metric",
                parameter="metric",
                code="mismatch",
            )
        return metric
