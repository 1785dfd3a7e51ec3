"""The recorded settings of a posterior's observations, to observe new sentences alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, UsageError, require
from bpa_ppl.models import Bucket, Likelihood, Preparation
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
from bpa_ppl.sampling.sentence_buckets import sentence_buckets
from bpa_ppl.sampling.sentences import preference_sentences, score_sentences
from bpa_ppl.weights import Match

if TYPE_CHECKING:
    from bpa_ppl.features.recipes import MovedFiles


@dataclass(frozen=True, eq=False)
class ObservedSentences:
    """The observations of some sentences (S).

    Attributes:
        buckets: the tabulated list of each, or empty if the lists are not stored.
        index: (S,) the observed hypothesis.
        score: (S,) the sentence score of the oracle, nan if it is not recorded.
        ids: (S,) of the sentences, as in the file.
    """

    buckets: Sequence[Bucket]
    index: Int64
    score: Float64
    ids: npt.NDArray[Any]

    @classmethod
    def empty(cls) -> Self:
        """Return no sentences."""
        return cls((), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self.index)

    def __add__(self, other: ObservedSentences) -> ObservedSentences:
        return ObservedSentences(
            (*self.buckets, *other.buckets),
            np.concatenate([self.index, other.index]),
            np.concatenate([self.score, other.score]),
            np.concatenate([self.ids, other.ids]),
        )

    def __getitem__(self, part: slice) -> ObservedSentences:
        """Return some of the sentences, without their lists."""
        return ObservedSentences((), self.index[part], self.score[part], self.ids[part])


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
        canonical: whether there were canonical weights, whose scores break ties.
    """

    likelihood: Likelihood
    metric: str | Metric | None
    ties: str
    preparation: Preparation
    match: Match
    signature: str
    sites: tuple[str, ...] = ()
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
                "likelihood"
            )
        settings = dict(recorded)
        names = (*draws.features, *draws.fixed)
        free = np.arange(len(names)) < len(draws.features)
        preparation = Preparation.recorded(
            draws.attrs, draws.constants, moved_files, draws.features, draws.fixed
        )
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
        lists = self._prepare(nbest, training)
        if self.likelihood.observes == "preferences":
            ties = self.likelihood.settings().get("nu") is not None or LOG_NU in self.sites
            sentences = preference_sentences(lists, self.match, self.likelihood, ties=ties)
        else:
            if has_preferences(lists):
                log_info(
                    f"{lists.origin}: preferences not used: the posterior is updated with gains"
                )
            with_gains = self.likelihood.observes == "gains"
            metric = self._resolve_metric(lists) if with_gains or oracle is None else None
            if metric is not None and oracle is None:
                lists = judged_lists(lists, metric)[0]
            sentences = score_sentences(
                lists,
                self.match,
                metric,
                oracle,
                with_gains=with_gains,
                ties=self.ties,
                canonical=self.canonical,
                **search,
            )
        best = sentences.oracles
        return ObservedSentences(
            sentence_buckets(sentences.nbest, self.match, best.index, sentences.gains, best.share),
            best.index,
            best.score,
            sentences.nbest.sentence_ids,
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
            return replace(recorded, buckets=self.observe(nbest, training=True, **search).buckets)
        lists, values = self._prepare(nbest, training=True), None
        if self.likelihood.observes == "gains":
            metric = self._resolve_metric(lists)
            lists = judged_lists(lists, metric)[0]
            values = gains(lists, metric, **search)
        buckets = sentence_buckets(lists, self.match, recorded.index, values)
        return replace(recorded, buckets=buckets)

    def _prepare(self, lists: NBest, training: bool) -> NBest:
        """Return the lists with the columns of the posterior, in its order."""
        require(lists, NBest, "sentences are n-best lists (NBest): read a file with read_nbest")
        if not len(lists):
            raise UsageError("there is no sentence to add: the lists are empty")
        prepare = self.preparation
        nbest = prepare.for_training(lists).nbest if training else prepare(lists)
        names = self.match.names
        missing = [name for name in names if name not in nbest.feature_names]
        if missing:
            raise DataError(
                f"no feature {', '.join(missing)}, which the posterior has weights for: give lists "
                "with the features that the weights were adapted with",
                nbest.origin,
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
            )
        return metric
