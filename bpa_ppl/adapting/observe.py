"""Observe the lists: score their candidates and find the best ones, or read preferences."""

from __future__ import annotations

import numpy as np

from bpa_ppl._runtime.cache import prepare_jax
from bpa_ppl._runtime.messages import log_info
from bpa_ppl._runtime.progress import reporter
from bpa_ppl.adapting.observations import Observed, require_differences
from bpa_ppl.adapting.prepare import Prepared
from bpa_ppl.gains.gains import scores_and_gains
from bpa_ppl.gains.oracles import Oracles, choose_oracles, rank_candidates
from bpa_ppl.gains.preferences import agreement, choice_sets
from bpa_ppl.lists.nbest import NBest, score_differences
from bpa_ppl.models.likelihoods.likelihood import Likelihood
from bpa_ppl.weights import CANONICAL


def observe(prepared: Prepared) -> Observed:
    """Find what the likelihood observes: the best candidates and gains, or preferences.

    Args:
        prepared: from `prepare`; lists without a judgement are left out already.

    Raises:
        DataError: if a list lacks data that the gain needs, a preference is invalid, or all
            candidates of each list are equally good.

    The data of a NumPyro model, without the other steps of `adapt`:

    >>> import numpyro
    >>> from bpa_ppl import Prior, from_lists
    >>> from bpa_ppl.models.likelihoods.oracle import Oracle
    >>> from bpa_ppl.models.log_linear import log_linear
    >>> from bpa_ppl.adapting.prepare import prepare
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> observed = observe(prepare(lists, gain="ter"))
    >>> data = observed.table(), Prior.isotropic({"LM0": 0.5}), Oracle()
    >>> sorted(numpyro.handlers.trace(numpyro.handlers.seed(log_linear, 0)).get_trace(*data))
    ['oracle', 'sentence', 'weights']
    """
    observed = _observe(prepared)
    prepare_jax()
    if observed.oracles is not None:
        require_differences(observed.lists, observed.oracles)
    return observed


def _observe(prepared: Prepared) -> Observed:
    lists, gain, best = prepared.judged, prepared.gain, prepared.oracles
    with_gains, values = prepared.likelihood.observes == "gains", np.zeros(0)
    jobs, progress = prepared.jobs, prepared.progress
    if best is None and not len(lists):  # nothing is searched for
        none = np.zeros(0, np.int64)
        best = Oracles(none, np.zeros(0), none, prepared.ties, gain.key, "")
    elif prepared.likelihood.observes == "preferences":
        return _observe_preferences(lists, prepared.likelihood)
    elif best is None:
        canonical = prepared.match.origin == CANONICAL
        preference = score_differences(lists, prepared.match.values) if canonical else None
        ranking = rank_candidates(lists, None if prepared.ties == "shared" else preference)
        if prepared.values is None:
            with reporter(progress, "oracles") as report:
                scores, values = scores_and_gains(lists, gain, jobs=jobs, progress=report)
            scores = gain.signed(scores)
        else:
            scores = values = gain.signed(prepared.values)
        best = choose_oracles(lists, gain, scores, ranking, prepared.ties, lists.references)
    elif with_gains and len(lists):
        with reporter(progress, "gains") as report:
            values = scores_and_gains(lists, gain, jobs=jobs, progress=report)[1]
    return Observed(lists=lists, gain=gain, oracles=best, gains=values if with_gains else None)


def _observe_preferences(lists: NBest, likelihood: Likelihood) -> Observed:
    """Return the preferences of some lists; the agreement of raters is logged."""
    choices = choice_sets(lists, ties=likelihood.asks_ties)
    agreed = agreement(lists) if len(choices.named_raters) > 1 else None
    if agreed is not None:
        log_info(str(agreed))
    return Observed(lists=choices.lists, choices=choices, agreement=agreed)
