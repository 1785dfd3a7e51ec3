"""Preferences as what a posterior conditions on: each observed choice is a list of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from bpa_ppl.models import Likelihood, Preference
from bpa_ppl.nbest import NBest
from bpa_ppl.quality import Metric, Oracles, choice_sets
from bpa_ppl.sampling.sentences import Sentences, scored
from bpa_ppl.weights import Match


def observed(
    likelihood: Likelihood,
    nbest: NBest,
    match: Match,
    metric: Metric | None,
    oracle: Oracles | None,
    **search: Any,
) -> Sentences:
    """Return what a likelihood observes: the preferences that lists carry, or their oracles.

    Args:
        likelihood: of preferences, or of oracles.
        nbest: the lists, with the features that are adapted.
        match: the canonical weights, matched to these features.
        metric, oracle, search: of oracles, as for `scored`.

    Raises:
        DataError: if a sentence lacks what the metric needs, or a preference is not as it should
            be.
    """
    if likelihood.compares:
        return compared(nbest, match, likelihood)
    return scored(nbest, match, metric, oracle, **search)


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
