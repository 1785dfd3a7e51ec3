"""The adaptation sentences with all that is known of their hypotheses: oracles and gains."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bpa_ppl.errors import require
from bpa_ppl.models import Likelihood
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.quality import TER, Metric, Oracles, gains, oracles
from bpa_ppl.weights import Match, deviation_within

#: The extra of a sentence that says to which of several domains it belongs.
DOMAIN = "domain"


class Sentences(NamedTuple):
    """What likelihoods look at.

    Attributes:
        nbest: the lists, with the features that are adapted.
        match: the canonical weights, laid beside those features.
        metric: what a gain is in; None where neither oracles nor gains are looked for.
        oracles: which hypotheses are the best.
        gains: (hypotheses,) what each is worth; None where nothing asked for it.
        counts: of the preferences that the lists are made from; None where they are sentences.
        compared: the preferences that the same lists carry besides; None where there are none.
    """

    nbest: NBest
    match: Match
    metric: Metric | None
    oracles: Oracles
    gains: Float64 | None
    counts: dict[str, int] | None = None
    compared: Sentences | None = None

    @property
    def edit(self) -> float:
        """How much of the gain is as much as one edit: see `Likelihood.scaled`."""
        if self.gains is None or isinstance(self.metric, TER) or not len(self.nbest):
            return 1.0
        return deviation_within(self.nbest, self.gains) or 1.0

    def scaled(self, likelihood: Likelihood) -> Likelihood:
        """Return the likelihood with its open settings derived from the gains."""
        if self.gains is None or not likelihood.needs_gains:
            return likelihood
        return likelihood.scaled(self.edit)

    def record(self) -> dict[str, Any]:
        """Return what a posterior records of the criterion and of the preferences."""
        others = {} if self.compared is None else self.compared.record()
        count = {"adaptation_sentences": len(self.observed)}
        if self.counts is not None:
            return {"comparisons": self.counts, **count}
        return {
            "oracle_metric": self.oracles.metric,
            "oracle_ties": self.oracles.ties,
            "oracle_signature": self.oracles.signature,
            **others,
            **count,
        }

    @property
    def observed(self) -> Int64:
        """(observations,) which hypothesis was observed of each list; preferences come last."""
        others = () if self.compared is None else (self.compared.observed,)
        return np.concatenate([self.oracles.index, *others])

    @property
    def sentence_ids(self) -> Int64:
        """(observations,) the id of the sentence of each of them."""
        others = () if self.compared is None else (self.compared.sentence_ids,)
        return np.concatenate([self.nbest.sentence_ids, *others])

    def scores(self) -> dict[str, Float64]:
        """Return the sentence scores of the oracles by name; none where there are preferences."""
        compared = self.counts is not None or self.compared is not None
        return {} if compared else {"oracle_score": self.oracles.score}


def domain_numbers(nbest: NBest, compared: Sentences | None = None) -> Int64 | None:
    """Return the number of the domain of each list and each preference, in the order of the names.

    None where the lists name no domains.

    >>> lists = NBest.from_lists([["a"], ["b"]], [[[0.0]], [[1.0]]], ["LM0"])
    >>> domain_numbers(lists.with_sentence_extras(domain=["web", "news"]))
    array([1, 0])
    """
    if DOMAIN not in nbest.sentence_extras:
        return None
    tables = [nbest] if compared is None else [nbest, compared.nbest]
    names = np.concatenate([np.asarray(table.sentence_extras[DOMAIN]) for table in tables])
    return np.asarray(np.unique(names, return_inverse=True)[1])


def scored(
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
    """Return the sentences with their oracles, unless those are given, and gains if asked for.

    Args:
        nbest: the lists, with the features that are adapted.
        match: the canonical weights, matched to them.
        metric: that makes oracles and gains; None where oracles are given and no gain is needed.
        oracle: oracles found before.
        with_gains: whether gains are looked for.
        canonical: whether there are canonical weights, whose scores break ties; else the totals
            of the lists do.
        ties: as for `oracles`.
        jobs: as for `oracles`.
        cache: as for `oracles`.
        progress: as for `oracles`.

    Raises:
        DataError: if a sentence lacks what the metric needs.
    """
    known, worth = oracle, None
    goal: Any = metric  # there is one wherever it is looked at
    if known is None and not len(nbest):
        # No sentence has an oracle: nothing is scored, and no reference is needed.
        none = np.zeros(0)
        known = Oracles(none.astype(int), none, none.astype(int), ties, goal.key, "")
    if known is None:
        with reporter(progress, "oracles") as report:
            known = oracles(
                nbest,
                goal,
                ties=ties,
                preference=nbest.scores(match.values) if canonical else None,
                jobs=jobs,
                cache=cache,
                progress=report,
            )
    require(known, Oracles, "oracles come from the function oracles")
    if with_gains:
        with reporter(progress, "gains") as report:
            more: dict[str, Any] = {"jobs": jobs, "cache": cache, "progress": report}
            worth = gains(nbest, goal, **more) if len(nbest) else np.zeros(0)
    return Sentences(nbest, match, metric, known, worth)
