"""What reranking could gain or lose: the corpus scores of the best and the worst choices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import require, require_one_of
from bpa_ppl._runtime.arrays import Int64
from bpa_ppl._runtime.messages import format_count
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.diagnostics.page import Outcome, Table
from bpa_ppl.errors import DataError
from bpa_ppl.evaluation.paired import format_paired, metric_title, score_choices
from bpa_ppl.gains.gains import resolve
from bpa_ppl.gains.metric import Metric, Score
from bpa_ppl.gains.oracles import TIES, Oracles, find_highest, judge_candidates, rank_candidates
from bpa_ppl.lists.candidate_columns import read_column
from bpa_ppl.lists.nbest import NBest, subtract_first

_FIRST_BEST, _ORACLE, _ANTI_ORACLE = "first-best", "oracle", "anti-oracle"


@dataclass(frozen=True)
class Headroom(Outcome):
    """What reranking could gain or lose: corpus scores of three choices from the same lists.

    Lists without an oracle (see `Oracles`) are left out, and, if the metric is a column, so are
    candidates without a value.

    Attributes:
        choices: the scores of the first-best, the oracles and the anti-oracles, by name: of the
            metric, then TER and BLEU where there are references.
        oracles: the oracles.
    """

    choices: Mapping[str, tuple[Score, ...]]
    oracles: Oracles

    @property
    def first_best(self) -> Score:
        """The score of the candidates with the highest scores."""
        return self.choices[_FIRST_BEST][0]

    @property
    def oracle(self) -> Score:
        """The score of the candidates with the best sentence scores."""
        return self.choices[_ORACLE][0]

    @property
    def anti_oracle(self) -> Score:
        """The score of the candidates with the worst sentence scores."""
        return self.choices[_ANTI_ORACLE][0]

    def _summarise(self) -> tuple[str, Table, Sequence[str]]:
        columns = [("choice", *self.choices)]
        for scores in zip(*self.choices.values(), strict=True):
            _, best, worst = values = [score.value for score in scores]
            texts = format_paired(values, (best - worst, math.nan, math.nan), scores[0].decimals)
            columns.append((metric_title(scores[0]), *texts[:3]))
        header, *rows = zip(*columns, strict=True)
        skipped = self.oracles.skipped
        tied, count = int((self.oracles.tied > 1).sum()), len(self.oracles) - skipped
        policy = {"canonical": "broken by canonical scores", "shared": "shared"}
        notes = [f"{tied} of {count} oracles tied; ties {policy[self.oracles.ties]}"]
        if skipped:
            reason = "fewer than two candidates are judged, or no reference"
            notes.append(f"{format_count(skipped, 'list')} left out: {reason}")
        notes += [score.signature for score in self.choices[_ORACLE] if score.signature]
        return "", Table(header, rows), notes


def headroom(
    lists: NBest,
    scores: npt.ArrayLike | None = None,
    gain: str | Metric = "ter",
    *,
    ties: str = "canonical",
    jobs: int = 1,
    progress: Reporter | None = None,
) -> Headroom:
    """Return the corpus scores of the first-best, of the oracle and of the anti-oracle.

    They include TER, BLEU and length for any metric, where there are references.

    Args:
        lists: lists, with references if the metric needs them.
        scores: (candidates,) the highest of a list is its first-best, and preferred among ties;
            default: the totals of the decoder; without totals, the first of each list is its
            first-best, and nothing is preferred among ties.
        gain: as for `oracles`, like the other arguments.
        ties: "canonical" or "shared".
        jobs: workers; -1 uses all cores.
        progress: called with the sentences done, their total, and a note.

    Raises:
        DataError: if a sentence has no reference, or `scores` has another shape.
        UsageError: if the metric or the tie policy is unknown.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a cat", "the cat", "hat"]], [[[2.0], [1.0], [0.0]]], ["LM0"],
    ...     references=[("the cat",)],
    ... )
    >>> room = headroom(lists)
    >>> room.first_best.value, room.oracle.value, room.anti_oracle.value
    (50.0, 0.0, 100.0)
    """
    require(lists, NBest, "headroom is of n-best lists (NBest)", "lists")
    require_one_of(ties, TIES, "tie policy", "ties")
    config, ranking = resolve(gain, lists), rank_candidates(lists, scores, "scores")
    best, values = judge_candidates(lists, config, ranking, ties, jobs=jobs, progress=progress)
    is_judged = ~np.isnan(values)
    order = np.zeros(len(ranking)) if ties == "shared" else ranking
    _, is_worst = find_highest(lists, np.where(is_judged, -values, -np.inf))
    choices = {
        _FIRST_BEST: lists.best(np.where(is_judged, ranking, -np.inf)),
        _ORACLE: best.index,
        _ANTI_ORACLE: lists.best(np.where(is_worst & is_judged, order, -np.inf)),
    }
    kept = np.flatnonzero(~np.isnan(best.score))
    scored = lists.select(kept) if best.skipped else lists
    corpus_scores = {n: score_choices(scored, c[kept], config) for n, c in choices.items()}
    return Headroom(corpus_scores, best)


def headroom_won(lists: NBest, choices: Int64, column: str) -> float:
    """Return the share of the headroom that choices win.

    It is (mean of the chosen candidates − mean of all) / (mean of the best − mean of all), averaged
    over the lists before the division.

    Raises:
        DataError: if a candidate has no number, or all candidates of each list are equal.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> lists = lists.with_extras(quality=[3.0, 5.0])
    >>> [headroom_won(lists, np.array([choice]), "quality") for choice in (1, 0)]
    [1.0, -1.0]
    """
    values = read_column(lists, column)
    if not np.isfinite(values).all():
        message = f"no {column} of some candidates: give lists that are fully judged"
        raise DataError(message, lists.origin, code="no-data")
    starts, values = lists.offsets[:-1], subtract_first(values, lists.sizes)
    average = (np.add.reduceat(values, starts) / lists.sizes).mean()
    best = np.maximum.reduceat(values, starts).mean()
    if best <= average:
        raise DataError(f"all candidates have the same {column}", lists.origin, code="no-data")
    return float((values[starts + choices].mean() - average) / (best - average))
