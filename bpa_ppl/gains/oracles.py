"""Oracle derivations: the best candidate of each n-best list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import require, require_one_of
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.errors import bad_value, wrong_shape
from bpa_ppl.gains.gains import resolve, scores_and_gains
from bpa_ppl.gains.judged import select_judged
from bpa_ppl.gains.metric import Metric, References
from bpa_ppl.lists.nbest import NBest

#: Which of several best candidates is the oracle: the one with the highest score, or all.
TIES = ("canonical", "shared")


@dataclass(frozen=True, eq=False)
class Oracles:
    """The oracle derivation e* of each sentence.

    Where the metric is a column of which some values are missing, only candidates with a value
    compete, and a list with fewer than two of them has no oracle.

    Attributes:
        index: (sentences,) int64, the position of e* in its list; of undecided ties, that of the
            candidate whose text sorts first; without an oracle, that of the preferred candidate.
        score: (sentences,) float64, the sentence score of e*, in percent or the unit of the metric;
            NaN without an oracle.
        tied: (sentences,) int64, how many candidates of the list have that score, e* included; 0
            without an oracle.
        ties: the policy that chose e* among them, "canonical" or "shared".
        gain: its name: "ter", "bleu", "chrf", or that of a column.
        signature: of the metric; sacreBLEU's for TER, BLEU and chrF.
        share: (candidates,) float64, 1 / k for each of the k best candidates of a list between
            which the policy does not decide; None if it always decides.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a cat", "the cat", "the cat"]], [[[0.0], [1.0], [2.0]]], ["LM0"],
    ...     references=[("the cat",)],
    ... )
    >>> best = oracles(lists)
    >>> len(best), lists.chosen(best.index), best.tied.tolist(), best.gain
    (1, ['the cat'], [2], 'ter')
    """

    index: Int64
    score: Float64
    tied: Int64
    ties: str
    gain: str
    signature: str
    share: Float64 | None = None

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.index)

    @property
    def skipped(self) -> int:
        """The number of lists without an oracle: fewer than two of their candidates are judged.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a", "b"], ["c", "d"]], [[[0.0], [1.0]]] * 2, ["LM0"])
        >>> oracles(lists.with_extras(mqm=[-5, 0, -1, None]), "mqm").skipped
        1
        """
        return int(np.isnan(self.score).sum())


def oracles(
    lists: NBest,
    gain: str | Metric = "ter",
    *,
    ties: str = "canonical",
    preference: npt.ArrayLike | None = None,
    jobs: int = 1,
    progress: Reporter | None = None,
) -> Oracles:
    """Return the candidate of each list with the best sentence score, as sacreBLEU computes it.

    Args:
        lists: lists, with references if the metric needs them.
        gain: a metric with settings, a function, or the name of a column of the lists: `comet`, or
            `-ter` if lower is better.
        ties: "canonical" takes the most preferred of equally good candidates, "shared" all of them.
        preference: (candidates,) higher is preferred; default: the totals of the decoder, if any.
        jobs: workers; -1 uses all cores.
        progress: called with the sentences done, their total, and a note.

    Raises:
        DataError: if a sentence has no reference, or `preference` has another shape.
        UsageError: if the metric or the tie policy is unknown.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a cat", "the cat", "cat the"]], [[[0.0], [1.0], [2.0]]], ["LM0"],
    ...     references=[("the cat",)],
    ... )
    >>> best = oracles(lists)
    >>> best.index.tolist(), best.score.tolist(), best.tied.tolist()
    ([1], [0.0], [1])
    """
    require(lists, NBest, "oracles are chosen from n-best lists (NBest)", "lists")
    require_one_of(ties, TIES, "tie policy", "ties")
    ranking = rank_candidates(lists, None if ties == "shared" else preference)
    options: dict[str, Any] = {"jobs": jobs, "progress": progress}
    return judge_candidates(lists, resolve(gain, lists), ranking, ties, **options)[0]


def judge_candidates(
    lists: NBest, gain: Metric, ranking: Float64, ties: str, **options: Any
) -> tuple[Oracles, Float64]:
    """Return oracles, and (candidates,) scores: NaN for candidates without a value of the gain."""
    judged, values = select_judged(lists, gain), np.full(len(ranking), np.nan)
    values[judged.rows] = gain.signed(scores_and_gains(judged.lists, gain, **options)[0])
    return choose_oracles(lists, gain, values, ranking, ties, judged.lists.references), values


def choose_oracles(
    lists: NBest,
    gain: Metric,
    values: Float64,
    ranking: Float64,
    ties: str,
    references: References | None,
) -> Oracles:
    """Return the best candidates of lists that were scored.

    Args:
        lists: the lists.
        gain: a metric or a column.
        values: (candidates,) sentence scores, higher is better; NaN for candidates that do not
            compete.
        ranking: (candidates,) from `rank_candidates`.
        ties: as for `oracles`.
        references: of the lists that were scored.
    """
    order = np.zeros(len(ranking)) if ties == "shared" else ranking
    is_judged = ~np.isnan(values)
    highest, is_best = find_highest(lists, np.where(is_judged, values, -np.inf))
    is_best &= is_judged
    _, is_oracle = find_highest(lists, np.where(is_best, order, -np.inf))
    is_oracle &= is_best
    tied, remaining = (
        np.add.reduceat(marks, lists.offsets[:-1], dtype=np.int64) for marks in (is_best, is_oracle)
    )
    # Without an oracle the preferred candidate. Of several oracles the one whose text sorts first;
    # of equal texts the one with the smallest features, so that positions do not matter.
    index = lists.best(np.where(np.repeat(tied > 0, lists.sizes), is_oracle, ranking))
    for sentence in np.flatnonzero(remaining > 1).tolist():
        equal = lists.offsets[sentence] + np.flatnonzero(is_oracle[lists.rows(sentence)])
        first = min(equal, key=lambda row: (lists.text(row), lists.features[row].tolist()))
        index[sentence] = first - lists.offsets[sentence]
    shares = is_oracle / np.repeat(np.maximum(remaining, 1), lists.sizes)
    return Oracles(
        index=index,
        score=np.where(tied > 0, gain.signed(highest), np.nan),
        tied=tied,
        ties=ties,
        gain=gain.key,
        signature=gain.signature(references or [()] * len(lists), sentence=True),
        share=shares if (remaining > 1).any() else None,
    )


def rank_candidates(
    lists: NBest, scores: npt.ArrayLike | None, parameter: str = "preference"
) -> Float64:
    """Return (candidates,) a value that is highest for the preferred candidate."""
    if scores is None:
        return np.zeros(len(lists.features)) if lists.totals is None else np.asarray(lists.totals)
    ranking = np.asarray(scores, dtype=np.float64)
    if ranking.shape != (shape := (len(lists.features),)):
        raise wrong_shape(parameter, ranking.shape, shape, parameter=parameter)
    if not np.isfinite(ranking).all():
        value = float(ranking[~np.isfinite(ranking)][0])
        raise bad_value(f"a number of {parameter}", value, "a finite number", parameter=parameter)
    return ranking


def find_highest(lists: NBest, values: Float64) -> tuple[Float64, npt.NDArray[np.bool_]]:
    """Return the highest value of each list, and which candidates have it."""
    highest = np.maximum.reduceat(values, lists.offsets[:-1])
    return highest, values == np.repeat(highest, lists.sizes)
