"""Judged lists, and their oracle derivations: the best candidate of each n-best list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import require, require_one_of
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.errors import DataError, bad_value, wrong_shape
from bpa_ppl.gains.column import Column
from bpa_ppl.gains.gains import resolve, scores_and_gains
from bpa_ppl.gains.metric import Metric, References
from bpa_ppl.lists.columns import describe_singles, read_column, select_marked
from bpa_ppl.lists.nbest import NBest

#: Which of several best candidates is the oracle: the one with the highest score, or all.
TIES = ("canonical", "shared")


class JudgedRows(NamedTuple):
    """The candidates that a gain may be computed of.

    Of a column they have a value, as does another one of their list; of a gain that needs
    references their list has one, if any has.

    Attributes:
        marked: (candidates,) which ones they are.
        values: (candidates,) of the column; None for another gain.
        of_two: whether the column says which of two candidates was chosen, such as 1 and 0: there
            are two lists or more, each with two of these candidates, and two values in all of them;
            in a tie both candidates have the same one.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"], ["c", "d"]], [[[0.0], [1.0]]] * 2, ["judge"])
    >>> chosen, graded = [[1, 0], [0, 1]], [[1, 0], [0, 2]]
    >>> lists = lists.with_extras(chosen=np.ravel(chosen), graded=np.ravel(graded))
    >>> [find_judged(lists, Column(column=name)).of_two for name in ("chosen", "graded")]
    [True, False]
    """

    marked: npt.NDArray[np.bool_]
    values: Float64 | None
    of_two: bool


def find_judged(lists: NBest, gain: Metric) -> JudgedRows:
    """Return the candidates that a gain may be computed of; its columns are read once, here.

    Args:
        lists: the lists.
        gain: a metric or a column.
    """
    marked, values, of_two = np.ones(len(lists.features), np.bool_), None, False
    having = [bool(references) for references in lists.references or ()]
    if "references" in gain.needs and any(having) and not all(having):
        marked = np.repeat(having, lists.sizes)
    columns = [read_column(lists, name) for name in gain.columns]
    if columns:
        marked = marked & np.isfinite(columns).all(axis=0)
        counts = np.diff(np.concatenate([[0], np.cumsum(marked)])[lists.offsets])
        marked = marked & np.repeat(counts > 1, lists.sizes)
    if isinstance(gain, Column):
        (values,) = columns
        several = np.sum(counts > 1) > 1 and counts.max() == 2
        of_two = bool(several and len(np.unique(values[marked])) == 2)
    return JudgedRows(marked, values, of_two)


def select_judged(
    lists: NBest, gain: Metric, found: JudgedRows | None = None
) -> tuple[NBest, Int64]:
    """Return the lists of the candidates that a gain has a value for, and their rows.

    Of a column, lists with fewer than two of them are left out; of a gain that needs references,
    lists without any, if others have some.

    Args:
        lists: the lists.
        gain: a metric or a column.
        found: from `find_judged`, of lists with the same candidates; None finds them.

    Raises:
        DataError: if no list is left.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b", "c"]], [[[0.0], [1.0], [2.0]]], ["LM0"])
    >>> gain = Column(column="mqm", negative=True)
    >>> kept, rows = select_judged(lists.with_extras(mqm=[-5, None, 0]), gain)
    >>> kept.sizes.tolist(), rows.tolist()
    ([2], [0, 2])
    """
    marked = (find_judged(lists, gain) if found is None else found).marked
    if gain.columns:
        judged, rows = select_marked(lists, marked)
    else:  # whole lists
        rows = np.flatnonzero(marked)
        is_whole = len(rows) == len(marked)
        judged = lists if is_whole else lists.select(np.flatnonzero(marked[lists.offsets[:-1]]))
    if len(lists) and not len(judged):
        names = ", ".join(gain.columns)
        remedy = describe_singles(lists) or "judge two or more of a list"
        message = f"no list has two candidates with a value of {names}: {remedy}"
        raise DataError(message, lists.origin, code="no-data")
    return judged, rows


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
    """Return the candidate of each list with the best sentence score.

    The same choice as scoring every candidate with sacreBLEU, ties included. With several
    references TER counts the edits to the nearest over the mean length, as sacreBLEU does.

    Args:
        lists: lists, with references if the metric needs them.
        gain: "ter", "bleu" (smoothed, effective order), "chrf", settings, a function, or the
            name of a column of the lists: `comet`, or `-ter` if lower is better.
        ties: "canonical" takes the most preferred of equally good candidates; "shared" takes all of
            them alike. Equally preferred candidates are shared in any case: see `Oracles.share`.
            The position in the list never decides.
        preference: (candidates,) higher is preferred, such as canonical scores; default: the totals
            of the decoder; without totals, nothing is preferred.
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
    """Score the candidates that have values of the gain, and choose oracles.

    Args:
        lists: the lists.
        gain: a metric or a column.
        ranking: (candidates,) from `rank_candidates`.
        ties: as for `oracles`.
        options: `jobs` and `progress`, as for `oracles`.

    Returns:
        the oracles; and (candidates,) sentence scores, higher is better, and NaN for candidates
        that do not compete.
    """
    judged, rows = select_judged(lists, gain)
    values = np.full(len(ranking), np.nan)
    values[rows] = gain.signed(scores_and_gains(judged, gain, **options)[0])
    return choose_oracles(lists, gain, values, ranking, ties, judged.references), values


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
