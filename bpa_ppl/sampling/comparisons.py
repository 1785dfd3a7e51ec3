"""Preferences as what a posterior conditions on: each observed choice is a list of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from bpa_ppl.columns import counted
from bpa_ppl.models import Likelihood, Lists, Preference, tabulate
from bpa_ppl.models.likelihoods.mixed import Mixed, joined
from bpa_ppl.nbest import NBest
from bpa_ppl.notes import log_info
from bpa_ppl.quality import Metric, Oracles, choice_sets, has_preferences, judged_lists
from bpa_ppl.sampling.sentences import Sentences, scored
from bpa_ppl.weights import Match


def observed(
    likelihood: Likelihood,
    nbest: NBest,
    match: Match,
    metric: Metric,
    oracle: Oracles | None,
    **search: Any,
) -> Sentences:
    """Return what is observed of some lists: their preferences, their oracles, or both.

    Args:
        likelihood: of preferences, or of oracles; preferences are then observed besides.
        nbest: the lists, with the features that are adapted.
        match: the canonical weights, matched to these features.
        metric: as for `scored`.
        oracle: as for `scored`.
        **search: as for `scored`.

    Raises:
        DataError: if a sentence lacks what the metric needs, or a preference is not as it should
            be.
    """
    if likelihood.compares:
        return compared(nbest, match, likelihood)
    if oracle is not None:
        return scored(nbest, match, metric, oracle, **search)
    lists = judged_lists(nbest, metric)[0] if len(nbest) else nbest
    rated = scored(lists, match, metric, oracle, **search)
    if not has_preferences(nbest):
        if (skipped := len(nbest) - len(lists)) > 0:
            log_info(f"{counted(skipped, 'list')} left out: fewer than two candidates are judged")
        return rated
    choices = compared(nbest, match, Preference())
    log_info(
        f"{nbest.origin}: {len(rated.nbest)} rated lists and {len(choices.nbest)} choices between "
        "candidates are observed together"
    )
    return rated._replace(compared=choices)


def with_choices(
    lists: Lists, likelihood: Likelihood, choices: Sentences, domain: Any, multiple: int
) -> tuple[Lists, Likelihood]:
    """Return rated lists and preferences in one table, and the likelihood of both.

    Args:
        lists: rated lists, laid out.
        likelihood: of the rated lists.
        choices: the preferences.
        domain: (choices,) number of the domain of each, or None.
        multiple: the number of sentences in a block is a multiple of this.
    """
    found = (choices.nbest, choices.match, choices.oracles.index)
    more = tabulate(*found, gains=choices.gains, domain=domain, multiple=multiple)
    both = Mixed(rated=likelihood, compared=Preference(), buckets=len(lists.buckets))
    return joined(lists, more), both


def compared(
    nbest: NBest, match: Match, likelihood: Likelihood, ties: bool | None = None
) -> Sentences:
    """Return the choices that the preferences of some lists stand for, as sentences.

    Args:
        nbest: lists with all their features, whose sentences carry preferences.
        match: the canonical weights, matched to these features.
        likelihood: of preferences.
        ties: whether "no difference" is a possible answer; None leaves it to the likelihood, and
            where that leaves it open, to the data.

    Raises:
        DataError: if there is no preference, or one is not as it should be.

    >>> from bpa_ppl.weights import match
    >>> lists = NBest.from_lists([["a", "b", "c"]], [[[0.0], [1.0], [5.0]]], ["LM0"])
    >>> lists = lists.with_sentence_extras(preferences=[[[2, 0], [2, 1]]])
    >>> found = compared(lists, match({"LM0": 0.0}, lists), Preference())
    >>> found.nbest.texts(1), found.oracles.index.tolist(), found.counts["preferences"]
    (['c', 'b'], [0, 0], 2)
    """
    if ties is None and isinstance(likelihood, Preference) and likelihood.nu is not None:
        ties = True
    found = choice_sets(nbest, ties=ties)
    unknown = np.full(len(found.chosen), np.nan)
    chosen = Oracles(found.chosen, unknown, np.ones_like(found.chosen), "", "", "")
    return Sentences(found.nbest, match, None, chosen, found.tie, found.counts)
