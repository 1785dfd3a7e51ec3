"""Judged lists: which candidates have gains or preferences, and the gains of choices from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.errors import DataError
from bpa_ppl.gains.column import Column
from bpa_ppl.gains.gains import gains as gains_in
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.preferences import Choice, iter_choices
from bpa_ppl.lists.candidate_columns import describe_singles, read_column, select_marked
from bpa_ppl.lists.nbest import NBest


class Pairs(NamedTuple):
    """Which candidates are preferred to which others (P pairs of candidates in S lists).

    A ranking consists of the pairs that it orders, which share its weight.

    Attributes:
        better: (P,) the row of the preferred candidate.
        worse: (P,) the row of the other one.
        of_list: (P,) the list, from 0 to S − 1.
        weight: (P,) of the answer, divided by the number of pairs that it orders.
    """

    better: Int64
    worse: Int64
    of_list: Int64
    weight: Float64


@dataclass(frozen=True, eq=False)
class Judged:
    """The judged candidates of some lists, and how good choices from each list are (S lists).

    The gain of preferences is the accuracy: the share of the pairs of a list that scores order as
    the judge did, ½ for equal scores. Answers of "no difference" are counted and left out.

    Attributes:
        lists: the lists.
        rows: (candidates,) the rows of the candidates among those of all lists.
        sentences: (S,) the positions of the lists among all lists.
        gains: (candidates,) NaN for a candidate without a gain; None for preferences, and for a
            metric before they are computed.
        pairs: of the preferences; None for gains.
        of_two: whether the gain is a column that says which of two candidates was chosen, such as 1
            and 0: there are two lists or more, each with two candidates, and two values in all of
            them; in a tie both candidates have the same one.
        left_out: the number of candidates without a gain, or of answers of "no difference".

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b", "c"]], [[[0.0], [1.0], [5.0]]], ["LM0"])
    >>> Judged.by_gains(lists, np.array([9.0, 4.0, 5.0])).gain_of(np.array([1.0, 2.0, 2.0]))
    array([4.5])
    >>> judged = Judged.by_preferences(lists.with_sentence_extras(rankings=[[[2, 0, 1]]]))
    >>> judged.pairs.better.tolist(), judged.pairs.worse.tolist()
    ([2, 2, 0], [0, 1, 1])
    >>> judged.gain_of(np.array([1.0, 1.0, 2.0])).round(3).tolist()  # (1 + 1 + 1/2) / 3
    [0.833]
    """

    lists: NBest
    rows: Int64
    sentences: Int64
    gains: Float64 | None = None
    pairs: Pairs | None = None
    of_two: bool = False
    left_out: int = 0

    @classmethod
    def by_gains(cls, lists: NBest, gains: Float64 | None = None) -> Judged:
        """Return all candidates of lists with their gains, (candidates,), NaN for those without."""
        left_out = 0 if gains is None else int(np.sum(~np.isfinite(gains)))
        rows, sentences = np.arange(len(lists.features)), np.arange(len(lists))
        return cls(lists, rows, sentences, gains, left_out=left_out)

    @classmethod
    def by_preferences(cls, lists: NBest, answers: Sequence[Choice] | None = None) -> Judged:
        """Return the lists with a candidate that is preferred to another one.

        Args:
            lists: lists with preferences, ties or rankings.
            answers: these as `iter_choices` yields them, if they have been read.

        Raises:
            DataError: as `choice_sets`, for an entry that is not valid.
        """
        answers = list(iter_choices(lists)) if answers is None else answers
        choices = [choice for choice in answers if choice.chosen == 0]
        sizes = np.array([len(choice.candidates) - 1 for choice in choices], np.int64)
        sentence = np.repeat(np.array([choice.sentence for choice in choices], np.int64), sizes)
        sentences, of_list = np.unique(sentence, return_inverse=True)
        compared = lists if len(sentences) == len(lists) else lists.select(sentences)
        better = np.repeat(np.array([choice.candidates[0] for choice in choices], np.int64), sizes)
        worse = np.array([other for choice in choices for other in choice.candidates[1:]], np.int64)
        each = np.repeat([choice.weight / choice.comparisons for choice in choices], sizes)
        first = compared.offsets[:-1][of_list]
        pairs = Pairs(first + better, first + worse, of_list, each)
        rows = np.flatnonzero(np.repeat(np.isin(np.arange(len(lists)), sentences), lists.sizes))
        undecided = len(answers) - len(choices)
        return cls(compared, rows, sentences, pairs=pairs, left_out=undecided)

    def scored(self, gain: Metric | None) -> Judged:
        """Return the candidates with a gain, which is computed if it is not known; or preferences.

        Args:
            gain: a metric or a column; None for preferences.
        """
        if gain is None:
            return self
        gains = gains_in(self.lists, gain) if self.gains is None else self.gains
        kept, rows = select_marked(self.lists, np.isfinite(gains))
        left_out = int(np.sum(~np.isfinite(gains)))
        return replace(Judged.by_gains(kept, gains[rows]), left_out=left_out)

    @cached_property
    def weight(self) -> Float64:
        """(S,) The weight of each list in a mean: 1, or the weight of all answers about it."""
        if self.pairs is None:
            return np.ones(len(self.lists))
        weights = np.bincount(self.pairs.of_list, self.pairs.weight, len(self.lists))
        return np.asarray(weights, np.float64)

    @cached_property
    def random(self) -> Float64:
        """(S,) The gain of a random candidate."""
        if self.gains is None:
            return np.full(len(self.lists), 0.5)
        return self.gain_of(np.zeros(len(self.lists.features)))

    @cached_property
    def best(self) -> Float64:
        """(S,) The highest gain."""
        if self.gains is None:
            return np.ones(len(self.lists))
        return np.asarray(np.fmax.reduceat(self.gains, self.lists.offsets[:-1]))

    def gain_of(self, scores: Float64) -> Float64:
        """Return the gain of the highest score of each list, (S,).

        Args:
            scores: (candidates,).
        """
        if self.pairs is None:
            assert self.gains is not None
            return average_best(self.lists, self.gains, scores)
        better, worse = scores[self.pairs.better], scores[self.pairs.worse]
        return self.mean_of_pairs((better > worse) + 0.5 * (better == worse))

    def of_choice(self, choice: Int64, scores: Float64) -> Float64:
        """Return the gain of one candidate of each list, (S,).

        Preferences are ordered by the scores, with the candidate above the others.

        Args:
            choice: (S,) its position.
            scores: (candidates,) only for preferences.
        """
        rows = self.lists.offsets[:-1] + choice
        if self.gains is not None:
            return np.asarray(self.gains[rows])
        best, raised = np.maximum.reduceat(scores, self.lists.offsets[:-1]), scores.copy()
        raised[rows] = np.where(scores[rows] < best, np.inf, best)
        return self.gain_of(raised)

    def log_loss(self, scores: Float64) -> Float64 | None:
        """Return the mean −log p of the answers about each list, (S,), p = σ(score difference).

        None for gains, which have no probability.

        Args:
            scores: (candidates,).
        """
        if self.pairs is None:
            return None
        difference = scores[self.pairs.worse] - scores[self.pairs.better]
        return self.mean_of_pairs(np.logaddexp(0.0, difference))

    def mean_of_pairs(self, values: Float64) -> Float64:
        """Return the weighted mean of each list, (S,), of a value for each pair, (P,)."""
        assert self.pairs is not None
        of_list, weight = self.pairs.of_list, self.pairs.weight
        return np.asarray(np.bincount(of_list, weight * values, len(self.lists)) / self.weight)

    def association(self, scores: Float64) -> float:
        """Return how far scores explain the gains within lists, in standard errors.

        For gains the sum of the products of standardised scores and ranks of gains, over its
        standard deviation if the gains of each list were permuted: the stratified rank test of van
        Elteren (1960). For preferences how far the accuracy is above ½, in standard errors if there
        is no association.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a", "b", "c"]] * 2, [[[0.0]] * 3] * 2, ["LM0"])
        >>> judged = Judged.by_gains(lists, np.array([1.0, 2.0, 3.0, 0.0, 0.5, 9.0]))
        >>> round(judged.association(np.arange(6.0)), 6)
        2.0
        >>> lists = from_lists([["a", "b"]] * 4, [[[0.0], [1.0]]] * 4, ["LM0"])
        >>> lists = lists.with_sentence_extras(preferences=[[[0, 1]]] * 4)
        >>> scores = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0])
        >>> Judged.by_preferences(lists).association(scores)
        1.0
        """
        from scipy.stats import rankdata

        if self.gains is None:
            above = self.weight * (self.gain_of(scores) - 0.5)
            size = float(np.sqrt(above @ above))
            return float(above.sum()) / size if size else 0.0
        values = []
        for first, end in pairwise(self.lists.offsets.tolist()):
            centred = scores[first:end] - scores[first]
            centred -= centred.mean()
            ranks = rankdata(self.gains[first:end]) - (end - first + 1) / 2  # ties get their mean
            unit = np.sqrt(centred @ centred * (ranks @ ranks) / max(end - first - 1, 1))
            values += [centred @ ranks / unit] if unit > 0 else []
        return float(np.sum(values) / np.sqrt(len(values) or 1))

    def count_best(self, scores: Float64) -> tuple[float, int] | None:
        """Return in how many lists the choice is one of the best, and the number of lists.

        Candidates of equal score share the choice. None for preferences.
        """
        if self.gains is None:
            return None
        is_best = self.gains == np.repeat(self.best, self.lists.sizes)
        shares = average_best(self.lists, is_best.astype(np.float64), scores)
        return float(shares.sum()), len(self.lists)


def average_best(lists: NBest, gains: Float64, scores: Float64) -> Float64:
    """Return the gain of the highest score of each list, (S,).

    For candidates of equal score it is their mean. Candidates without a gain are ignored; if none
    of the best has a gain, the gain of the list is NaN.

    Args:
        lists: the lists (S of them).
        gains: (candidates,) NaN for candidates without a gain.
        scores: (candidates,).
    """
    starts = lists.offsets[:-1]
    best = np.maximum.reduceat(scores, starts)
    tied = (scores == np.repeat(best, lists.sizes)) & np.isfinite(gains)
    count = np.add.reduceat(tied.astype(np.float64), starts)
    total = np.add.reduceat(np.where(tied, gains, 0.0), starts)
    result: Float64 = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    return result


def find_judged(lists: NBest, gain: Metric) -> Judged:
    """Return the candidates that a gain has a value for; its columns are read once, here.

    Of a column, lists with fewer than two of them are left out; of a gain that needs references,
    lists without any, if others have some.

    Args:
        lists: the lists.
        gain: a metric or a column.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b", "c"]] * 2, [[[0.0], [1.0], [2.0]]] * 2, ["LM0"])
    >>> values = {"chosen": [1, None, 0, None, 0, 1], "graded": [-5, None, 0, -2, None, None]}
    >>> lists = lists.with_extras(**values)
    >>> chosen, graded = (find_judged(lists, Column(column=name)) for name in values)
    >>> chosen.rows.tolist(), chosen.of_two, graded.rows.tolist(), graded.of_two
    ([0, 2, 4, 5], True, [0, 2], False)
    """
    marked, of_two, gains = np.ones(len(lists.features), np.bool_), False, None
    having = [bool(references) for references in lists.references or ()]
    if "references" in gain.needs and any(having) and not all(having):
        marked = np.repeat(having, lists.sizes)
    columns = [read_column(lists, name) for name in gain.columns]
    if columns:
        judged, rows = select_marked(lists, marked & np.isfinite(columns).all(axis=0))
    else:  # whole lists
        judged, rows = lists if marked.all() else lists.select(having), np.flatnonzero(marked)
    if isinstance(gain, Column):
        gains = gain.signed(columns[0][rows])
        several = len(judged) > 1 and judged.sizes.max() == 2
        of_two = bool(several and len(np.unique(gains)) == 2)
    sentences = np.unique(np.repeat(np.arange(len(lists)), lists.sizes)[rows])
    return Judged(judged, rows, sentences, gains, of_two=of_two)


def select_judged(lists: NBest, gain: Metric, judged: Judged | None = None) -> Judged:
    """Return the judged candidates of lists: see `find_judged`.

    Args:
        lists: the lists.
        gain: a metric or a column.
        judged: from `find_judged`, of lists with the same candidates; None finds them.

    Raises:
        DataError: if no list is left.
    """
    if judged is None:
        judged = find_judged(lists, gain)
    elif len(judged.rows) == len(lists.features):
        judged = replace(judged, lists=lists)
    else:
        kept = lists.regroup(judged.sentences, judged.rows, judged.lists.sizes)
        judged = replace(judged, lists=kept)
    if len(lists) and not len(judged.lists):
        names = ", ".join(gain.columns)
        remedy = describe_singles(lists) or "judge two or more of a list"
        message = f"no list has two candidates with a value of {names}: {remedy}"
        raise DataError(message, lists.origin, code="no-data")
    return judged
