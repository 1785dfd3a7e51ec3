"""The adaptation sentences with their observations: oracles and gains, or preferences."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bpa_ppl.columns import counted
from bpa_ppl.errors import require
from bpa_ppl.models import Likelihood, Lists, Preference, tabulate
from bpa_ppl.models.likelihoods.mixed import Mixed, join_lists
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.notes import log_info
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.quality import (
    TER,
    Metric,
    Oracles,
    choice_sets,
    gains,
    has_preferences,
    judged_lists,
    oracles,
)
from bpa_ppl.weights import Match, deviation_within

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
    """

    nbest: NBest
    match: Match
    metric: Metric | None
    oracles: Oracles
    gains: Float64 | None
    counts: dict[str, int] | None = None
    preferences: Sentences | None = None

    def resolve_defaults(self, likelihood: Likelihood) -> Likelihood:
        """Return the likelihood with its default settings derived from the gains."""
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
            return {"comparisons": self.counts, **count}
        return {
            "oracle_metric": self.oracles.metric,
            "oracle_ties": self.oracles.ties,
            "oracle_signature": self.oracles.signature,
            **({} if self.preferences is None else self.preferences.record()),
            **count,
        }

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
        """Return the sentence scores of the oracles by name; empty with preferences."""
        with_preferences = self.counts is not None or self.preferences is not None
        return {} if with_preferences else {"oracle_score": self.oracles.score}


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
        return preference_sentences(nbest, match, likelihood)
    with_gains = likelihood.observes == "gains"
    if oracle is not None:
        return score_sentences(nbest, match, metric, oracle, with_gains=with_gains, **search)
    lists = judged_lists(nbest, metric)[0] if len(nbest) else nbest
    judged = score_sentences(lists, match, metric, oracle, with_gains=with_gains, **search)
    if not has_preferences(nbest):
        if (skipped := len(nbest) - len(lists)) > 0:
            log_info(f"{counted(skipped, 'list')} left out: fewer than two candidates are judged")
        return judged
    preferences = preference_sentences(nbest, match, Preference())
    log_info(
        f"{nbest.origin}: {len(judged.nbest)} judged lists and {len(preferences.nbest)} choices "
        "between candidates are observed together"
    )
    return judged._replace(preferences=preferences)


def add_preferences(
    lists: Lists, likelihood: Likelihood, preferences: Sentences, domain: Any, multiple: int
) -> tuple[Lists, Likelihood]:
    """Return judged lists and preferences in one table, and the likelihood of both.

    Args:
        lists: the tabulated judged lists.
        likelihood: of the judged lists.
        preferences: the preferences.
        domain: (choices,) number of the domain of each, or None.
        multiple: the number of sentences in a block is a multiple of this.
    """
    choices = tabulate(
        preferences.nbest,
        preferences.match,
        preferences.oracles.index,
        gains=preferences.gains,
        domain=domain,
        multiple=multiple,
    )
    both = Mixed(judged=likelihood, preferences=Preference(), buckets=len(lists.buckets))
    return join_lists(lists, choices), both


def preference_sentences(
    nbest: NBest, match: Match, likelihood: Likelihood, ties: bool | None = None
) -> Sentences:
    """Return the choices that the preferences of some lists represent, as sentences.

    Args:
        nbest: lists with all their features, whose sentences carry preferences.
        match: the canonical weights, matched to these features.
        likelihood: of preferences.
        ties: whether "no difference" is a possible answer; None infers it from the likelihood, or
            else from the data.

    Raises:
        DataError: if there is no preference, or one is invalid.

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
    return Sentences(choices.nbest, match, None, chosen, choices.tie, choices.counts)


def domain_numbers(nbest: NBest, preferences: Sentences | None = None) -> Int64 | None:
    """Return the number of the domain of each list and each preference, in alphabetical order.

    None if the lists name no domains.

    >>> lists = NBest.from_lists([["a"], ["b"]], [[[0.0]], [[1.0]]], ["LM0"])
    >>> domain_numbers(lists.with_sentence_extras(domain=["web", "news"]))
    array([1, 0])
    """
    if DOMAIN not in nbest.sentence_extras:
        return None
    tables = [nbest] if preferences is None else [nbest, preferences.nbest]
    names = np.concatenate([np.asarray(table.sentence_extras[DOMAIN]) for table in tables])
    return np.asarray(np.unique(names, return_inverse=True)[1])


def score_sentences(
    nbest: NBest,
    match: Match,
    metric: Metric | None,
    oracle: Oracles | None,
    *,
    with_gains: bool,
    ties: str,
    canonical: bool = True,
    jobs: int = 1,
    cache: bool = True,
    progress: bool | Reporter = False,
) -> Sentences:
    """Return the sentences with their oracles, and with gains if needed.

    Args:
        nbest: the lists, with the features that are adapted.
        match: the canonical weights, matched to them.
        metric: of oracles and gains; None if oracles are given and gains are not needed.
        oracle: precomputed oracles, or None.
        with_gains: whether gains are computed.
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
    if oracle is None and not len(nbest):
        # Without sentences nothing is scored, and no reference is needed.
        empty = np.zeros(0)
        oracle = Oracles(empty.astype(int), empty, empty.astype(int), ties, criterion.key, "")
    if oracle is None:
        preference = nbest.scores(match.values) if canonical else None
        with reporter(progress, "oracles") as report:
            oracle = oracles(
                nbest, criterion, ties=ties, preference=preference, progress=report, **options
            )
    require(oracle, Oracles, "oracles come from the function oracles")
    values = None
    if with_gains:
        with reporter(progress, "gains") as report:
            values = np.zeros(0)
            if len(nbest):
                values = gains(nbest, criterion, progress=report, **options)
    return Sentences(nbest, match, metric, oracle, values)
