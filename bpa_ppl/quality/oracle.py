"""Oracle derivations: the best hypothesis of each n-best list, and what it leaves to gain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from bpa_ppl.columns import counted
from bpa_ppl.errors import DataError, one_of, require
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.progress import Reporter
from bpa_ppl.quality.base import Metric, Score, resolve
from bpa_ppl.quality.column import only_judged
from bpa_ppl.quality.scoreboard import cells, choice_scores
from bpa_ppl.quality.scoring import sentence_scores
from bpa_ppl.tables import text_table
from bpa_ppl.workers import check_jobs

#: Which of several best hypotheses is the oracle: that of the highest score, or all alike.
TIES = ("canonical", "shared")

_FIRST_BEST, _ORACLE, _ANTI_ORACLE = "first-best", "oracle", "anti-oracle"


@dataclass(frozen=True, eq=False)
class Oracles:
    """The oracle derivation e* of each sentence.

    Where the metric is a column of which some values are missing, only hypotheses with a value
    compete, and a list with fewer than two of them has no oracle.

    Attributes:
        index: (sentences,) int64, the position of e* in its list; where ties stay undecided, of the
            tied hypothesis whose text comes first in the alphabet; where there is no oracle, of the
            preferred hypothesis.
        score: (sentences,) float64, the sentence score of e*, in percent or the unit of the metric;
            NaN where there is no oracle.
        tied: (sentences,) int64, how many hypotheses of the list share that score, e* included; 0
            where there is no oracle.
        ties: the policy by which e* was chosen among them, "canonical" or "shared".
        metric: the name of the metric: "ter", "bleu", "chrf", or that of a column.
        signature: of the metric; sacreBLEU's for ours.
        share: (hypotheses,) float64, 1 / k for each of the k best hypotheses of a list between
            which the policy does not decide; None where it decides everywhere.

    >>> lists = NBest.from_lists(
    ...     [["a cat", "the cat", "the cat"]], [[[0.0], [1.0], [2.0]]], ["LM0"],
    ...     references=[("the cat",)],
    ... )
    >>> found = oracles(lists)
    >>> len(found), lists.chosen(found.index), found.tied.tolist(), found.metric
    (1, ['the cat'], [2], 'ter')
    """

    index: Int64
    score: Float64
    tied: Int64
    ties: str
    metric: str
    signature: str
    share: Float64 | None = None

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.index)

    @property
    def skipped(self) -> int:
        """How many lists have no oracle, because fewer than two of their hypotheses are judged.

        >>> lists = NBest.from_lists([["a", "b"], ["c", "d"]], [[[0.0], [1.0]]] * 2, ["LM0"])
        >>> oracles(lists.with_extras(mqm=[-5, 0, -1, None]), "mqm").skipped
        1
        """
        return int(np.isnan(self.score).sum())


@dataclass(frozen=True)
class Headroom:
    """What reranking could gain or lose: corpus scores of three choices from the same lists.

    Lists without an oracle (see `Oracles`) are left out, and, where the metric is a column, so are
    hypotheses without a value.

    Attributes:
        choices: of the first-best, the oracles and the anti-oracles, by name: the score that was
            asked for, then TER and BLEU where there are references.
        oracles: which hypotheses the oracles are.
    """

    choices: Mapping[str, tuple[Score, ...]]
    oracles: Oracles

    @property
    def first_best(self) -> Score:
        """The score of the hypotheses of the highest scores."""
        return self.choices[_FIRST_BEST][0]

    @property
    def oracle(self) -> Score:
        """That of the hypotheses of the best sentence score."""
        return self.choices[_ORACLE][0]

    @property
    def anti_oracle(self) -> Score:
        """That of the hypotheses of the worst sentence score."""
        return self.choices[_ANTI_ORACLE][0]

    def __str__(self) -> str:
        shown = {name: cells(scores) for name, scores in self.choices.items()}
        rows = [[name, *(value for _, value, *_ in row)] for name, row in shown.items()]
        titles = ["", *(title for title, *_ in shown[_ORACLE])]
        table = text_table(rows, titles, align="l".ljust(len(titles), "r"))
        skipped = self.oracles.skipped
        tied, count = int((self.oracles.tied > 1).sum()), len(self.oracles) - skipped
        policy = {"canonical": "broken by canonical scores", "shared": "shared"}
        notes = [f"{tied} of {count} oracles tied; ties {policy[self.oracles.ties]}"]
        if skipped:
            notes.append(
                f"{counted(skipped, 'list')} left out: fewer than two candidates are judged"
            )
        return "\n".join([table, *notes, *(s.signature for s in self.choices[_ORACLE])])


class Search(TypedDict, total=False):
    """How oracles are looked for: keywords of `oracles`, with the same defaults.

    Attributes:
        ties: "canonical" takes the most preferred of equally good hypotheses; "shared" takes all of
            them alike, whatever is preferred. The position in the list never decides.
        jobs: workers; -1 takes every core.
        cache: whether sentence scores are kept on disk and taken from there.
        progress: called with the sentences done, those in all, and a note.
    """

    ties: str
    jobs: int
    cache: bool
    progress: Reporter | None


def oracles(
    nbest: NBest,
    metric: str | Metric = "ter",
    *,
    ties: str = "canonical",
    preference: npt.ArrayLike | None = None,
    jobs: int = 1,
    cache: bool = True,
    progress: Reporter | None = None,
) -> Oracles:
    """Find the hypothesis of each list with the best sentence score.

    The same choice as scoring every hypothesis with sacreBLEU, ties included. With several
    references TER counts the edits to the nearest over the mean length, as sacreBLEU does.

    Args:
        nbest: lists, with references if the metric needs them.
        metric: "ter", "bleu" (smoothed, effective order), "chrf", settings, a function, or the
            name of a column of the lists: `comet`, or `-ter` where less is better.
        ties: "canonical" takes the most preferred of equally good hypotheses; "shared" takes all of
            them alike. Hypotheses that are equally preferred are shared in any case: see
            `Oracles.share`. The position in the list never decides.
        preference: (hypotheses,) the higher, the more preferred, such as canonical scores;
            default: the decoder's totals; where the lists have none, nothing is preferred.
        jobs: workers; -1 takes every core.
        cache: whether sentence scores are kept on disk and taken from there.
        progress: called with the sentences done, those in all, and a note.

    Raises:
        DataError: if a sentence has no reference, or `preference` does not fit.
        UsageError: if the metric or the tie policy is unknown.

    >>> lists = NBest.from_lists(
    ...     [["a cat", "the cat", "cat the"]], [[[0.0], [1.0], [2.0]]], ["LM0"],
    ...     references=[("the cat",)],
    ... )
    >>> found = oracles(lists)
    >>> found.index.tolist(), found.score.tolist(), found.tied.tolist()
    ([1], [0.0], [1])
    """
    require(nbest, NBest, "oracles are looked for in n-best lists (NBest)")
    ranking = _ranking(nbest, None if ties == "shared" else preference)
    check_jobs(jobs)
    search = Search(ties=ties, jobs=jobs, cache=cache, progress=progress)
    config = resolve(metric, nbest)
    lists, rows = judged_lists(nbest, config)
    found = _searched(lists, config, ranking[rows], only_best=True, **search).oracles
    return _of_all(found, nbest, lists, rows, ranking)


def headroom(
    nbest: NBest,
    scores: npt.ArrayLike | None = None,
    metric: str | Metric = "ter",
    **search: Unpack[Search],
) -> Headroom:
    """Return the corpus scores of the first-best, of the oracle and of the anti-oracle.

    TER, BLEU and length are among them whatever the metric is, where there are references.

    Args:
        nbest: lists, with references if the metric needs them.
        scores: (hypotheses,) the highest of a list is its first-best, and preferred among ties;
            default: the decoder's totals; where the lists have none, the first of each list is its
            first-best, and nothing is preferred among ties.
        metric: as for `oracles`.
        search: `ties`, `jobs`, `cache` and `progress`, as for `oracles`.

    Raises:
        DataError: if a sentence has no reference, or `scores` do not fit.
        UsageError: if the metric or the tie policy is unknown.

    >>> lists = NBest.from_lists(
    ...     [["a cat", "the cat", "hat"]], [[[2.0], [1.0], [0.0]]], ["LM0"],
    ...     references=[("the cat",)],
    ... )
    >>> room = headroom(lists)
    >>> room.first_best.value, room.oracle.value, room.anti_oracle.value
    (50.0, 0.0, 100.0)
    """
    require(nbest, NBest, "headroom is of n-best lists (NBest)")
    config, ranking = resolve(metric, nbest), _ranking(nbest, scores)
    lists, rows = judged_lists(nbest, config)
    found = _searched(lists, config, ranking[rows], only_best=False, **search)
    _, is_worst = _extreme(lists, found.values, lowest=not config.lower_is_better)
    worst = lists.best(np.where(is_worst, found.order, -np.inf))
    chosen = {
        _FIRST_BEST: lists.best(ranking[rows]),
        _ORACLE: found.oracles.index,
        _ANTI_ORACLE: worst,
    }
    choices = {name: choice_scores(lists, choice, config) for name, choice in chosen.items()}
    return Headroom(choices, _of_all(found.oracles, nbest, lists, rows, ranking))


def judged_lists(nbest: NBest, metric: Metric) -> tuple[NBest, Int64]:
    """Return the lists of the hypotheses that the metric has a value for, and their rows.

    Lists with fewer than two of them are left out; of a metric that is no column, none are.

    Raises:
        DataError: if no list is left.

    >>> lists = NBest.from_lists([["a", "b", "c"]], [[[0.0], [1.0], [2.0]]], ["LM0"])
    >>> kept, rows = judged_lists(lists.with_extras(mqm=[-5, None, 0]), resolve("-LM0", lists))
    >>> kept.sizes.tolist(), rows.tolist()
    ([3], [0, 1, 2])
    """
    lists, rows = nbest, np.arange(len(nbest.features))
    for name in metric.columns:
        lists, kept = only_judged(lists, name)
        rows = rows[kept]
    if len(nbest) and not len(lists):
        names = ", ".join(metric.columns)
        raise DataError(
            f"no list has two candidates with a value of {names}: judge two of a list or more",
            nbest.origin,
        )
    return lists, rows


def _of_all(found: Oracles, nbest: NBest, lists: NBest, rows: Int64, ranking: Float64) -> Oracles:
    """Return the oracles of some of the hypotheses as those of all lists.

    Args:
        found: of the lists that are left.
        nbest: all lists.
        lists: those that are left.
        rows: (hypotheses left,) in all lists.
        ranking: (hypotheses,) what is preferred where there is no oracle.
    """
    if lists is nbest:
        return found
    best = rows[lists.offsets[:-1] + found.index]
    sentences = np.searchsorted(nbest.offsets, best, side="right") - 1
    index, score = nbest.best(ranking), np.full(len(nbest), np.nan)
    tied = np.zeros(len(nbest), np.int64)
    index[sentences], score[sentences] = best - nbest.offsets[sentences], found.score
    tied[sentences] = found.tied
    share = None
    if found.share is not None:
        share = np.zeros(len(nbest.features))
        share[rows] = found.share
    return replace(found, index=index, score=score, tied=tied, share=share)


class _Found(NamedTuple):
    """Oracles, with the sentence score of every hypothesis and what breaks ties."""

    oracles: Oracles
    values: Float64
    order: Float64


def _searched(
    nbest: NBest,
    config: Metric,
    ranking: Float64,
    *,
    only_best: bool,
    ties: str = "canonical",
    jobs: int = 1,
    cache: bool = True,
    progress: Reporter | None = None,
) -> _Found:
    one_of(ties, TIES, "tie policy")
    values = sentence_scores(
        nbest, config, only_best=only_best, jobs=jobs, cache=cache, progress=progress
    )
    order = np.zeros(len(values)) if ties == "shared" else ranking
    best, is_best = _extreme(nbest, values, lowest=config.lower_is_better)
    _, is_oracle = _extreme(nbest, np.where(is_best, order, -np.inf), lowest=False)
    left = np.add.reduceat(is_oracle.astype(np.int64), nbest.offsets[:-1])
    found = Oracles(
        index=_representatives(nbest, is_oracle),
        score=best,
        tied=np.add.reduceat(is_best.astype(np.int64), nbest.offsets[:-1]),
        ties=ties,
        metric=config.key,
        signature=config.signature(nbest.references or [()] * len(nbest), sentence=True),
        share=is_oracle / np.repeat(left, nbest.sizes) if (left > 1).any() else None,
    )
    return _Found(found, values, order)


def _representatives(nbest: NBest, marked: npt.NDArray[np.bool_]) -> Int64:
    """Return the position in each list of the marked hypothesis whose text comes first.

    Of equal texts the one with the smallest features, so that positions do not matter.
    """
    index = nbest.best(marked)
    several = np.add.reduceat(marked.astype(np.int64), nbest.offsets[:-1]) > 1
    for sentence in np.flatnonzero(several).tolist():
        rows = nbest.offsets[sentence] + np.flatnonzero(marked[nbest.rows(sentence)])
        first = min(rows, key=lambda row: (nbest.text(row), nbest.features[row].tolist()))
        index[sentence] = first - nbest.offsets[sentence]
    return index


def _ranking(nbest: NBest, scores: npt.ArrayLike | None) -> Float64:
    """Return (hypotheses,) what is highest for the hypothesis to be preferred."""
    if scores is None:
        return np.zeros(len(nbest.features)) if nbest.totals is None else np.asarray(nbest.totals)
    ranking = np.asarray(scores, dtype=np.float64)
    if ranking.shape != (len(nbest.features),):
        raise DataError(
            f"preferences of shape {ranking.shape} for {len(nbest.features)} hypotheses: "
            "give one number a hypothesis"
        )
    if not np.isfinite(ranking).all():
        raise DataError("a preference is not a finite number")
    return ranking


def _extreme(
    nbest: NBest, values: Float64, *, lowest: bool
) -> tuple[Float64, npt.NDArray[np.bool_]]:
    """Return the lowest or highest value of each list, and which hypotheses have it."""
    reduce = np.minimum if lowest else np.maximum
    extreme = reduce.reduceat(values, nbest.offsets[:-1])
    return extreme, values == np.repeat(extreme, nbest.sizes)
