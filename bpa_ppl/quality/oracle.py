"""Oracle derivations: the best hypothesis of each n-best list, and what it leaves to gain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, one_of
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.progress import Reporter
from bpa_ppl.quality.base import Metric
from bpa_ppl.quality.candidates import score
from bpa_ppl.quality.corpus import corpus_score
from bpa_ppl.quality.references import References, check_references
from bpa_ppl.quality.registry import resolve
from bpa_ppl.quality.score import Score

#: Which of several best hypotheses is the oracle: that of the highest score, or the first.
TIES = ("canonical", "first")


@dataclass(frozen=True, eq=False)
class Oracles:
    """The oracle derivation e* of each sentence.

    Attributes:
        index: (sentences,) int64, the position of e* in its list.
        score: (sentences,) float64, the sentence score of e*, in percent.
        tied: (sentences,) int64, how many hypotheses of the list share that score, e* included.
        ties: the policy by which e* was chosen among them, "canonical" or "first".
        metric: "ter", "bleu" or "chrf".
        signature: sacreBLEU's.
    """

    index: Int64
    score: Float64
    tied: Int64
    ties: str
    metric: str
    signature: str

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.index)


@dataclass(frozen=True)
class Headroom:
    """What reranking could gain or lose: corpus scores of three choices from the same lists.

    Attributes:
        first_best: the hypotheses of the highest scores.
        oracle: the hypotheses of the best sentence score.
        anti_oracle: the hypotheses of the worst sentence score.
        oracles: which hypotheses the oracles are.
    """

    first_best: Score
    oracle: Score
    anti_oracle: Score
    oracles: Oracles

    def __str__(self) -> str:
        rows = (
            ("first-best", self.first_best),
            ("oracle", self.oracle),
            ("anti-oracle", self.anti_oracle),
        )
        tied, count = int((self.oracles.tied > 1).sum()), len(self.oracles)
        scores = [f"{name:<12}{value}" for name, value in rows]
        return "\n".join(
            [*scores, f"{tied} of {count} oracles tied, broken by: {self.oracles.ties}"]
        )


def oracles(
    nbest: NBest,
    metric: str | Metric = "ter",
    *,
    ties: str = "canonical",
    scores: npt.ArrayLike | None = None,
    jobs: int = 1,
    cache: bool = True,
    progress: Reporter | None = None,
) -> Oracles:
    """Find the hypothesis of each list with the best sentence score.

    The same choice as scoring every hypothesis with sacreBLEU, ties included. With several
    references TER counts the edits to the nearest over the mean length, as sacreBLEU does.

    Args:
        nbest: lists with references.
        metric: "ter", "bleu" (smoothed, effective order), "chrf", or settings.
        ties: "canonical" takes the highest of `scores` among equally good hypotheses, then the
            first; "first" takes the first of the list.
        scores: (hypotheses,) that break ties; default: the decoder's totals, and where the lists
            have none, their order.
        jobs: workers; -1 takes every core.
        cache: whether sentence scores are kept on disk and taken from there.
        progress: called with the sentences done, those in all, and a note.

    Raises:
        DataError: if a sentence has no reference, or `scores` do not fit.
        UsageError: if the metric or the tie policy is unknown.

    >>> pool = NBest.from_lists(
    ...     [["a cat", "the cat", "cat the"]], [[[0.0], [1.0], [2.0]]], ["LM0"],
    ...     references=[("the cat",)],
    ... )
    >>> found = oracles(pool)
    >>> found.index.tolist(), found.score.tolist(), found.tied.tolist()
    ([1], [0.0], [1])
    """
    config = resolve(metric)
    one_of(ties, TIES, "tie policy")
    ranking = np.zeros(len(nbest.features)) if ties == "first" else _ranking(nbest, scores)
    references = _references(nbest)
    values = score(
        nbest, references, config, only_best=True, jobs=jobs, cache=cache, progress=progress
    )
    return _best(nbest, references, config, values, ranking, ties)


def headroom(
    nbest: NBest,
    scores: npt.ArrayLike | None = None,
    metric: str | Metric = "ter",
    *,
    ties: str = "canonical",
    jobs: int = 1,
    cache: bool = True,
    progress: Reporter | None = None,
) -> Headroom:
    """Return the corpus scores of the first-best, of the oracle and of the anti-oracle.

    Args:
        nbest: lists with references.
        scores: (hypotheses,) the highest of a list is its first-best; default: the decoder's
            totals, and where the lists have none, their order.
        metric: "ter", "bleu", "chrf", or settings.
        ties: as for `oracles`.
        jobs: workers; -1 takes every core.
        cache: whether sentence scores are kept on disk and taken from there.
        progress: called with the sentences done, those in all, and a note.

    Raises:
        DataError: if a sentence has no reference, or `scores` do not fit.
        UsageError: if the metric or the tie policy is unknown.

    >>> pool = NBest.from_lists(
    ...     [["a cat", "the cat", "hat"]], [[[2.0], [1.0], [0.0]]], ["LM0"],
    ...     references=[("the cat",)],
    ... )
    >>> room = headroom(pool)
    >>> room.first_best.value, room.oracle.value, room.anti_oracle.value
    (50.0, 0.0, 100.0)
    """
    config = resolve(metric)
    one_of(ties, TIES, "tie policy")
    ranking = _ranking(nbest, scores)
    references = _references(nbest)
    values = score(
        nbest, references, config, only_best=False, jobs=jobs, cache=cache, progress=progress
    )
    order = np.zeros(len(values)) if ties == "first" else ranking
    best = _best(nbest, references, config, values, order, ties)
    _, is_worst = _extreme(nbest, values, lowest=not config.lower_is_better)

    def corpus(choice: Int64) -> Score:
        return corpus_score(nbest.chosen(choice), references, config)

    return Headroom(
        first_best=corpus(nbest.best(ranking)),
        oracle=corpus(best.index),
        anti_oracle=corpus(nbest.best(np.where(is_worst, order, -np.inf))),
        oracles=best,
    )


def _best(
    nbest: NBest,
    references: References,
    config: Metric,
    values: Float64,
    ranking: Float64,
    ties: str,
) -> Oracles:
    """Return the oracles, given the score of every hypothesis and what breaks ties."""
    best, is_best = _extreme(nbest, values, lowest=config.lower_is_better)
    return Oracles(
        index=nbest.best(np.where(is_best, ranking, -np.inf)),
        score=best,
        tied=np.add.reduceat(is_best.astype(np.int64), nbest.offsets[:-1]),
        ties=ties,
        metric=config.key,
        signature=config.signature(references, sentence=True),
    )


def _references(nbest: NBest) -> References:
    if nbest.references is None:
        raise DataError("the lists have no references: read them with references", nbest.source)
    check_references(nbest.references, nbest.source)
    return nbest.references


def _ranking(nbest: NBest, scores: npt.ArrayLike | None) -> Float64:
    """Return (hypotheses,) what is highest for the hypothesis to be preferred."""
    if scores is None:
        return np.zeros(len(nbest.features)) if nbest.totals is None else np.asarray(nbest.totals)
    ranking = np.asarray(scores, dtype=np.float64)
    if ranking.shape != (len(nbest.features),):
        raise DataError(
            f"scores of shape {ranking.shape} for {len(nbest.features)} hypotheses: "
            "give one number a hypothesis"
        )
    if not np.isfinite(ranking).all():
        raise DataError("a score is not a finite number")
    return ranking


def _extreme(
    nbest: NBest, values: Float64, *, lowest: bool
) -> tuple[Float64, npt.NDArray[np.bool_]]:
    """Return the lowest or highest value of each list, and which hypotheses have it."""
    reduce = np.minimum if lowest else np.maximum
    extreme = reduce.reduceat(values, nbest.offsets[:-1])
    return extreme, values == np.repeat(extreme, nbest.sizes)
