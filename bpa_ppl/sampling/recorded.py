"""What a posterior records of how sentences were observed, to observe more in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, UsageError, require
from bpa_ppl.models import Likelihood, Preparation
from bpa_ppl.models.likelihoods.preference import LOG_NU
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.notes import log_info
from bpa_ppl.posterior import Draws
from bpa_ppl.quality import (
    Metric,
    Oracles,
    choice_sets,
    gains,
    has_preferences,
    judged_lists,
    resolve,
)
from bpa_ppl.quality.scoring import no_references
from bpa_ppl.registry import LIKELIHOODS, METRICS
from bpa_ppl.sampling.comparisons import compared
from bpa_ppl.sampling.growing import OneList, one_by_one
from bpa_ppl.sampling.sentences import Sentences, scored
from bpa_ppl.weights import Match

if TYPE_CHECKING:
    from bpa_ppl.features.recipes import MovedFiles

#: Parts of a signature in which lists of one criterion may differ.
_VARYING = ("nrefs:", "version:")


@dataclass(frozen=True, eq=False)
class Seen:
    """What was seen of some sentences (S).

    Attributes:
        lists: what a model sees of each, as far as that is kept.
        index: (S,) the hypothesis that is observed.
        score: (S,) the sentence score of the oracle, nan where it is not recorded.
        ids: (S,) of the sentences, as printed in the file.
    """

    lists: Sequence[OneList]
    index: Int64
    score: Float64
    ids: npt.NDArray[Any]

    @classmethod
    def none(cls) -> Self:
        """Return no sentence."""
        return cls((), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.index)

    def __add__(self, more: Seen) -> Seen:
        return Seen(
            (*self.lists, *more.lists),
            np.concatenate([self.index, more.index]),
            np.concatenate([self.score, more.score]),
            np.concatenate([self.ids, more.ids]),
        )

    def first(self, count: int) -> Seen:
        """Return the first ones, without their lists."""
        return Seen((), self.index[:count], self.score[:count], self.ids[:count])

    def last(self, count: int) -> Seen:
        """Return the last ones, without their lists."""
        after = len(self) - count
        return Seen((), self.index[after:], self.score[after:], self.ids[after:])


@dataclass(frozen=True, eq=False)
class Recorded:
    """How the sentences of a posterior were observed.

    Attributes:
        likelihood: with a number for each of its settings.
        metric: that makes oracles and gains; None where it cannot be known by name.
        ties: how ties between oracles are broken.
        prepared: what is done to lists before.
        match: the canonical weights in the order of the columns that are observed: the free
            features in the order of the posterior, then the fixed ones.
        signature: of the metric, or an empty text.
        sites: the sampled sites of the posterior.
        canonical: whether there were canonical weights, whose scores break ties.
    """

    likelihood: Likelihood
    metric: str | Metric | None
    ties: str
    prepared: Preparation
    match: Match
    signature: str
    sites: tuple[str, ...] = ()
    canonical: bool = True

    @classmethod
    def of(
        cls, draws: Draws, metric: str | Metric | None = None, moved_files: MovedFiles | None = None
    ) -> Recorded:
        """Return what a posterior records.

        Args:
            draws: of the posterior.
            metric: the criterion, where it is none by name or has settings of its own.
            moved_files: as for `rerank`.

        Raises:
            DataError: if the posterior does not record its likelihood and canonical weights, or a
                file that features are computed from is missing or has changed.
        """
        recorded, canonical = draws.attrs.get("likelihood"), draws.canonical
        if not isinstance(recorded, dict) or "name" not in recorded or canonical is None:
            raise DataError(
                "the posterior does not record its likelihood and its canonical weights, so that "
                "no sentence can be added to it: use one that adapt made with a model that "
                "observes its likelihood"
            )
        settings = dict(recorded)
        names = (*draws.features, *draws.fixed)
        free = np.arange(len(names)) < len(draws.features)
        match = Match(names, np.append(canonical, draws.fixed.values_array), free)
        prepared = Preparation.recorded(
            draws.attrs, draws.constants, moved_files, draws.features, draws.fixed
        )
        return cls(
            likelihood=LIKELIHOODS.resolve(settings.pop("name"), settings),
            metric=_metric(metric, draws.attrs.get("oracle_metric"), prepared),
            ties=str(draws.attrs.get("oracle_ties", "canonical")),
            prepared=prepared,
            match=match,
            signature=str(draws.attrs.get("oracle_signature", "")),
            sites=draws.sites,
            canonical="canonical_weights" not in draws.attrs,
        )

    def observe(
        self, nbest: NBest, oracle: Oracles | None = None, *, own: bool = False, **search: Any
    ) -> Seen:
        """Return what is seen of some sentences.

        Args:
            nbest: their lists, with references if the metric needs them.
            oracle: oracles found before.
            own: these are the sentences that the posterior was adapted to.
            search: `jobs`, `cache` and `progress` of the search for oracles.

        Raises:
            DataError: if the lists do not have the features of the posterior, or no references.
            UsageError: if there is no sentence, or the metric is not that of the posterior.
        """
        lists = self._prepared(nbest, own)
        if self.likelihood.compares:
            known = self._compared(lists)
        else:
            if has_preferences(lists):
                log_info(
                    f"{lists.origin}: preferences not used: the posterior is updated with gains"
                )
            looks = self.likelihood.needs_gains
            goal = self._goal(lists) if looks or oracle is None else None
            if goal is not None and oracle is None:
                lists = judged_lists(lists, goal)[0]
            known = scored(
                lists,
                self.match,
                goal,
                oracle,
                with_gains=looks,
                ties=self.ties,
                canonical=self.canonical,
                **search,
            )
        best = known.oracles
        return Seen(
            one_by_one(known.nbest, self.match, best.index, known.gains, best.share),
            best.index,
            best.score,
            known.nbest.sentence_ids,
        )

    def _compared(self, lists: NBest) -> Sentences:
        """Return the preferences that lists carry, with the answers that the posterior knows."""
        fixed = self.likelihood.settings().get("nu") is not None
        return compared(lists, self.match, self.likelihood, ties=fixed or LOG_NU in self.sites)

    def observations(self, nbest: NBest) -> int:
        """Return how many observations some lists hold: a sentence each, or a choice each."""
        return len(choice_sets(nbest).chosen) if self.likelihood.compares else len(nbest)

    def observe_again(self, nbest: NBest, seen: Seen, **search: Any) -> Seen:
        """Return sentences that the posterior was adapted to with what a model sees of them.

        Args:
            nbest: their lists, with references if the likelihood looks at gains.
            seen: what the posterior records of them.
            search: as for `observe`.

        Raises:
            DataError: as `observe`.
            UsageError: as `observe`.
        """
        if self.likelihood.compares or not self.canonical:
            return replace(seen, lists=self.observe(nbest, own=True, **search).lists)
        lists = self._prepared(nbest, own=True)
        worth = None
        if self.likelihood.needs_gains:
            goal = self._goal(lists)
            lists = judged_lists(lists, goal)[0]
            worth = gains(lists, goal, **search)
        return replace(seen, lists=one_by_one(lists, self.match, seen.index, worth))

    def _prepared(self, given: NBest, own: bool) -> NBest:
        """Return the lists with the columns of the posterior, in its order."""
        require(given, NBest, "sentences are n-best lists (NBest): read a file with read_nbest")
        if not len(given):
            raise UsageError("there is no sentence to add: the lists are empty")
        nbest = self.prepared.of_own(given).nbest if own else self.prepared(given)
        names = self.match.names
        missing = [name for name in names if name not in nbest.feature_names]
        if missing:
            raise DataError(
                f"no {', '.join(missing)}, which the posterior has weights for: give lists with "
                "the features that the weights were adapted with",
                nbest.origin,
            )
        if nbest.feature_names == names:
            return nbest
        columns = [nbest.feature_names.index(name) for name in names]
        return replace(nbest, features=nbest.features[:, columns], feature_names=names)

    def _goal(self, nbest: NBest) -> Metric:
        """Return the metric, if it is the one by which the posterior's oracles were found."""
        if self.metric is None:
            raise UsageError(
                "the posterior was adapted to a metric that has no name: give the same metric",
                parameter="metric",
            )
        goal = resolve(self.metric, nbest)
        if "references" in goal.needs and nbest.references is None:
            raise no_references(nbest.origin)
        here = goal.signature(nbest.references or [()] * len(nbest), sentence=True)
        if self.signature and _constant(here) != _constant(self.signature):
            raise UsageError(
                f"the posterior was adapted to another metric, {self.signature}, than {here}: "
                "give the same metric",
                parameter="metric",
            )
        return goal


def _metric(
    given: str | Metric | None, recorded: Any, prepared: Preparation
) -> str | Metric | None:
    if given is not None:
        return given
    if prepared.gain is not None:
        return prepared.gain
    return METRICS.resolve(recorded) if recorded in METRICS else None


def _constant(signature: str) -> set[str]:
    return {part for part in signature.split("|") if not part.startswith(_VARYING)}
