"""The adaptation sentences with all that is known of their hypotheses: oracles and gains."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bpa_ppl.errors import require
from bpa_ppl.models import Likelihood
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.quality import TER, Metric, Oracles, gains, oracles
from bpa_ppl.weights import Match, deviation_within


class Sentences(NamedTuple):
    """What likelihoods look at.

    Attributes:
        nbest: the lists, with the features that are adapted.
        match: the canonical weights, laid beside those features.
        metric: what a gain is in; None where neither oracles nor gains are looked for.
        oracles: which hypotheses are the best.
        gains: (hypotheses,) what each is worth; None where nothing asked for it.
        counts: of the preferences that the lists are made from; None where they are sentences.
    """

    nbest: NBest
    match: Match
    metric: Metric | None
    oracles: Oracles
    gains: Float64 | None
    counts: dict[str, int] | None = None

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
        """Return what a posterior records of the criterion, or of the preferences."""
        if self.counts is not None:
            return {"comparisons": self.counts}
        return {
            "oracle_metric": self.oracles.metric,
            "oracle_ties": self.oracles.ties,
            "oracle_signature": self.oracles.signature,
        }

    def scores(self) -> dict[str, Float64]:
        """Return the sentence scores of the oracles by name; none of preferences."""
        return {"oracle_score": self.oracles.score} if self.counts is None else {}


def scored(
    nbest: NBest,
    match: Match,
    metric: Metric | None,
    oracle: Oracles | None,
    *,
    with_gains: bool,
    ties: str,
    jobs: int = 1,
    cache: bool = True,
    progress: bool | Reporter = False,
) -> Sentences:
    """Return the sentences with their oracles, unless those are given, and gains if asked for.

    Args:
        nbest: the lists, with the features that are adapted.
        match: the canonical weights, laid beside them: their scores break ties.
        metric: that makes oracles and gains; None where oracles are given and no gain is needed.
        oracle: oracles found before.
        with_gains: whether gains are looked for.
        ties, jobs, cache, progress: as for `oracles`.

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
                preference=nbest.scores(match.values),
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
