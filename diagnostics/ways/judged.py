"""Judged lists: the gain that they are judged by, and the gains of choices from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.errors import DataError
from bpa_ppl.features.recipe import read_gain
from bpa_ppl.gains.column import Column
from bpa_ppl.gains.gains import default_gain, resolve
from bpa_ppl.gains.gains import gains as gains_in
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.preferences import Comparisons, has_preferences, select_compared
from bpa_ppl.lists.columns import select_marked
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.posterior.draws import Draws

#: The name of the gain of preferences.
ACCURACY = "accuracy"
#: Metrics whose gains are numbers of words.
_IN_WORDS = ("ter", "bleu", "chrf", "ter+bleu", "wer")


@dataclass(frozen=True)
class Gains:
    """Lists whose candidates have gains; `Comparisons` has the same for preferences.

    Attributes:
        lists: the lists (S of them).
        gains: (candidates,); NaN for a candidate without a gain.
        left_out: the number of candidates without a gain.
    """

    lists: NBest
    gains: Float64
    left_out: int

    @property
    def list_weight(self) -> Float64:
        """(S,) the weight of each list in a mean."""
        return np.ones(len(self.lists))

    def of_scores(self, scores: Float64) -> Float64:
        """Return the gain of the highest score of each list, (S,).

        For candidates of equal score it is their mean. Candidates without a gain are ignored; if
        none of the best has a gain, the gain of the list is NaN.

        Args:
            scores: (candidates,).

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a", "b", "c"]], [[[0.0]] * 3], ["LM0"])
        >>> Gains(lists, np.array([9.0, 4.0, 5.0]), 0).of_scores(np.array([1.0, 2.0, 2.0])).tolist()
        [4.5]
        """
        starts = self.lists.offsets[:-1]
        best = np.maximum.reduceat(scores, starts)
        tied = (scores == np.repeat(best, self.lists.sizes)) & np.isfinite(self.gains)
        count = np.add.reduceat(tied.astype(np.float64), starts)
        total = np.add.reduceat(np.where(tied, self.gains, 0.0), starts)
        result: Float64 = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
        return result

    def of_choice(self, choice: Int64, scores: Float64) -> Float64:
        """Return the gain of one candidate of each list, (S,), whatever the scores are."""
        return np.asarray(self.gains[self.lists.offsets[:-1] + choice])

    def bounds(self) -> tuple[Float64, Float64]:
        """Return the mean and the highest gain of each list, (S,), over its judged candidates."""
        random = self.of_scores(np.zeros(len(self.gains)))
        return random, np.fmax.reduceat(self.gains, self.lists.offsets[:-1])

    def log_loss(self, scores: Float64) -> None:
        """Return None: gains have no probability."""

    def association(self, scores: Float64) -> float:
        """Return how far scores explain the gains within lists, in standard errors.

        The sum of the products of standardised scores and ranks of gains, over its standard
        deviation if the gains of each list were permuted: the stratified rank test of van Elteren
        (1960).

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a", "b", "c"]] * 2, [[[0.0]] * 3] * 2, ["LM0"])
        >>> judged = Gains(lists, np.array([1.0, 2.0, 3.0, 0.0, 0.5, 9.0]), 0)
        >>> round(judged.association(np.arange(6.0)), 6)
        2.0
        """
        from scipy.stats import rankdata

        values = []
        for first, end in pairwise(self.lists.offsets.tolist()):
            centred = scores[first:end] - scores[first]
            centred -= centred.mean()
            ranks = rankdata(self.gains[first:end]) - (end - first + 1) / 2  # ties get their mean
            unit = np.sqrt(centred @ centred * (ranks @ ranks) / max(end - first - 1, 1))
            values += [centred @ ranks / unit] if unit > 0 else []
        return float(np.sum(values) / np.sqrt(len(values) or 1))

    def count_best(self, scores: Float64) -> tuple[float, int]:
        """Return in how many lists the choice is one of the best, and the number of lists.

        Candidates of equal score share the choice.
        """
        is_best = self.gains == np.repeat(self.bounds()[1], self.lists.sizes)
        shares = replace(self, gains=is_best.astype(np.float64)).of_scores(scores)
        return float(shares.sum()), len(self.lists)


#: Lists whose candidates have gains, or of which some are preferred to others.
Judged = Gains | Comparisons


def read_judgements(lists: NBest, gain: Metric | None, gains: Float64 | None = None) -> Judged:
    """Return the lists with two judged candidates or a preference, and how they were judged.

    Args:
        lists: the lists.
        gain: a metric or a column; None for preferences.
        gains: (candidates,) if they are available.
    """
    if gain is None:
        return select_compared(lists)
    gains = gains_in(lists, gain) if gains is None else gains
    judged = np.isfinite(gains)
    kept, rows = select_marked(lists, judged)
    return Gains(kept, gains[rows], int(np.sum(~judged)))


def choose_gain(lists: NBest, draws: Draws) -> Metric | None:
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


def choose_compared_gain(lists: NBest, draws: Draws) -> Metric | None:
    """Return the gain, or None to compare choices by the preferences that lists have.

    These come first if the posterior was adapted to preferences.
    """
    first = uses_preferences(draws) and has_preferences(lists)
    return None if first else choose_gain(lists, draws)


def uses_preferences(draws: Draws) -> bool:
    """Return whether a posterior was adapted to preferences."""
    return draws.record.observed.kind == "preferences"


def has_inputs(lists: NBest, gain: Metric) -> bool:
    """Return whether lists have the columns, references and sources that a gain needs."""
    references = bool(lists.references) and all(lists.references or ())
    inputs = {"references": references, "sources": lists.sources is not None}
    has_columns = set(gain.columns) <= {*lists.feature_names, *lists.extras}
    return has_columns and all(inputs.get(name, True) for name in gain.needs)


def explain_missing_gains(lists: NBest, draws: Draws) -> DataError:
    """Return the error for lists that cannot be evaluated: see `choose_gain`."""
    gain, wanted = read_gain(draws.record), "a column of judgements"
    if uses_preferences(draws):
        wanted = "preferences or rankings"
    elif gain is not None and gain.columns:
        wanted = f"the column {', '.join(gain.columns)}"
    elif gain is not None and "sources" in gain.needs and lists.sources is None:
        message = f"{gain.key} needs the source of each sentence"
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
