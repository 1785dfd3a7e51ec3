"""Judged lists: the gain that they are judged by, and the gains of choices from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.errors import DataError
from bpa_ppl.features.recipe import read_gain
from bpa_ppl.gains.column import Column
from bpa_ppl.gains.gains import default_gain, resolve
from bpa_ppl.gains.gains import gains as gains_in
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.preferences import Choice, has_preferences, iter_choices
from bpa_ppl.lists.columns import select_marked
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.posterior.weight_draws import WeightDraws

#: The name of the gain of preferences.
ACCURACY = "accuracy"
#: Metrics whose gains are numbers of words.
_IN_WORDS = ("ter", "bleu", "chrf", "ter+bleu", "wer")


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
    """Some lists, and how good choices from each of them are (S lists).

    The gain of preferences is the accuracy: the share of the pairs of a list that scores order as
    the judge did, ½ for equal scores. Answers of "no difference" are counted and left out.

    Attributes:
        lists: the lists.
        weight: (S,) of each list in a mean: 1, or the weight of all answers about it.
        random: (S,) the gain of a random candidate.
        best: (S,) the highest gain.
        gain_of: returns the gain of the highest score of each list, (S,), for the scores of all
            candidates.
        left_out: the number of candidates without a gain, or of answers of "no difference".
        sentences: (S,) the positions of the lists among all lists.
        gains: (candidates,); NaN for a candidate without a gain; None for preferences.
        pairs: of the preferences; None for gains.

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
    weight: Float64
    random: Float64
    best: Float64
    gain_of: Callable[[Float64], Float64]
    left_out: int
    sentences: Int64
    gains: Float64 | None = None
    pairs: Pairs | None = None

    @classmethod
    def by_gains(cls, lists: NBest, gains: Float64) -> Judged:
        """Return lists whose candidates have gains, (candidates,); NaN for those without."""
        gain_of, sentences = partial(average_best, lists, gains), np.arange(len(lists))
        random = gain_of(np.zeros(len(gains)))
        best = np.fmax.reduceat(gains, lists.offsets[:-1])
        left_out = int(np.sum(~np.isfinite(gains)))
        return cls(lists, np.ones(len(lists)), random, best, gain_of, left_out, sentences, gains)

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
        count = len(sentences)
        compared = lists if count == len(lists) else lists.select(sentences)
        better = np.repeat(np.array([choice.candidates[0] for choice in choices], np.int64), sizes)
        worse = np.array([other for choice in choices for other in choice.candidates[1:]], np.int64)
        each = np.repeat([choice.weight / choice.comparisons for choice in choices], sizes)
        first = compared.offsets[:-1][of_list]
        pairs = Pairs(first + better, first + worse, of_list, each)
        weight = np.asarray(np.bincount(of_list, each, count), np.float64)
        gain_of = partial(_measure_accuracy, pairs, weight)
        bounds, undecided = (np.full(count, 0.5), np.ones(count)), len(answers) - len(choices)
        return cls(compared, weight, *bounds, gain_of, undecided, sentences, pairs=pairs)

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
        return _average_pairs(self.pairs, self.weight, values)

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


def _measure_accuracy(pairs: Pairs, weight: Float64, scores: Float64) -> Float64:
    better, worse = scores[pairs.better], scores[pairs.worse]
    return _average_pairs(pairs, weight, (better > worse) + 0.5 * (better == worse))


def _average_pairs(pairs: Pairs, weight: Float64, values: Float64) -> Float64:
    return np.asarray(np.bincount(pairs.of_list, pairs.weight * values, len(weight)) / weight)


def read_judgements(
    lists: NBest,
    gain: Metric | None,
    gains: Float64 | None = None,
    answers: Sequence[Choice] | None = None,
) -> Judged:
    """Return the lists with two judged candidates or a preference, and how they were judged.

    Args:
        lists: the lists.
        gain: a metric or a column; None for preferences.
        gains: (candidates,) if they are available.
        answers: of preferences, if they have been read: see `iter_choices`.
    """
    if gain is None:
        return Judged.by_preferences(lists, answers)
    gains = gains_in(lists, gain) if gains is None else gains
    judged = np.isfinite(gains)
    kept, rows = select_marked(lists, judged)
    return replace(Judged.by_gains(kept, gains[rows]), left_out=int(np.sum(~judged)))


def choose_recorded_gain(lists: NBest, draws: WeightDraws) -> Metric | None:
    """Return the gain by which choices from lists are judged: the one that a posterior records.

    If the posterior records none that is installed, or the lists lack its column, it is the gain
    that `adapt` uses by default.

    Returns:
        None if the lists lack what the gain needs.
    """
    gain = read_gain(draws.record)
    if gain is None or not set(gain.columns) <= {*lists.feature_names, *lists.extras}:
        gain = resolve(default_gain(lists, canonical=draws.record.canonical))
    return gain if has_inputs(lists, gain) else None


def choose_compared_gain(lists: NBest, draws: WeightDraws) -> Metric | None:
    """Return the gain, or None to compare choices by the preferences that lists have.

    These come first if the posterior was adapted to preferences.
    """
    first = uses_preferences(draws) and has_preferences(lists)
    return None if first else choose_recorded_gain(lists, draws)


def uses_preferences(draws: WeightDraws) -> bool:
    """Return whether a posterior was adapted to preferences."""
    return draws.record.observed.kind == "preferences"


def has_inputs(lists: NBest, gain: Metric) -> bool:
    """Return whether lists have the columns, references and sources that a gain needs."""
    references = bool(lists.references) and all(lists.references or ())
    inputs = {"references": references, "sources": lists.sources is not None}
    has_columns = set(gain.columns) <= {*lists.feature_names, *lists.extras}
    return has_columns and all(inputs.get(name, True) for name in gain.needs)


def explain_missing_gains(lists: NBest, draws: WeightDraws) -> DataError:
    """Return the error for lists that cannot be evaluated: see `choose_recorded_gain`."""
    gain, wanted = read_gain(draws.record), "a column of judgements"
    if uses_preferences(draws):
        wanted = "preferences or rankings"
    elif gain is not None and gain.columns:
        wanted = f"the column {', '.join(gain.columns)}"
    elif gain is not None and "sources" in gain.needs and lists.sources is None:
        message = f"no sources, which the gain {gain.key} needs: add them"
        return DataError(message, lists.origin, parameter="sources", code="missing-sources")
    message = f"the lists have neither references nor {wanted}: add one of them"
    return DataError(message, lists.origin, parameter="references", code="missing-references")


def name_gain(gain: Metric | None) -> str:
    """Return the name of a gain, as tables print it; None is that of preferences."""
    if gain is None:
        return ACCURACY
    if isinstance(gain, Column):
        return f"−{gain.title}" if gain.negative else gain.title
    unit = " in words" if gain.key in _IN_WORDS else ""
    return f"{gain.key} gain{unit}"
