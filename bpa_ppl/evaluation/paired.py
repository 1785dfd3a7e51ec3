"""Two choices from the same lists: corpus scores, differences, their intervals and verdicts.

A resample of the bootstrap is the number of times that each sentence occurs (Koehn, 2004), so that
summed counts of all resamples are one matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import check_seed
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import MINUS, choose_decimals, format_fixed, format_signed, has_width
from bpa_ppl.diagnostics.page import Outcome, Table
from bpa_ppl.gains.bleu import LengthRatio
from bpa_ppl.gains.gains import count_statistics, resolve, score_choice, select_choices
from bpa_ppl.gains.metric import GAINS, Metric, Score
from bpa_ppl.lists.nbest import NBest

#: The probability of all intervals, and how they are named.
PROBABILITY = 0.95
INTERVAL = f"{100 * PROBABILITY:g}% interval"
BETTER, WORSE, UNCLEAR = "better", "worse", "unclear"
#: So many equal signs are significant at 5%: 2 / 2⁶ = 0.03.
SAME_SIGNS = 6
#: Lists that are added for the interval of an accuracy and of a difference of two (Agresti & Coull
#: 1998; Agresti & Caffo 2000): without them, intervals of few lists are too narrow.
ADDED, ADDED_DIFFERENCES = (0.0, 0.0, 1.0, 1.0), (-1.0, 1.0)
_SAMPLES = 1000  # of the paired bootstrap


def estimate_interval(
    values: npt.ArrayLike, weight: Float64, added: Sequence[float] = ()
) -> tuple[float, float, float]:
    """Return the weighted mean of numbers and its 95% interval by Student's t.

    Equal numbers have no interval, NaN: that of a few would be of no width.

    The number of degrees of freedom is (Σ w)² / Σ w² − 1, for equal weights one less than that of
    the numbers.

    Args:
        values: (n,) numbers; NaN is left out.
        weight: (n,) their weights.
        added: further numbers of a typical weight, for the interval only.

    >>> [round(x, 3) for x in estimate_interval([1.0, np.nan, 2.0, 3.0, 4.0], np.ones(5))]
    [2.5, 0.446, 4.554]
    """
    from scipy.special import stdtrit

    x, is_known = np.asarray(values, np.float64), np.isfinite(values)
    sums = _sum_moments(x[is_known], weight[is_known])
    if not sums[0]:
        return math.nan, math.nan, math.nan
    mean, typical = float(sums[2] / sums[0]), float(sums[1] / sums[0])
    sums = sums + _sum_moments(np.array(added), np.full(len(added), typical))
    weights, squared, total, weighted, squares = sums.tolist()
    freedom, centre = weights**2 / squared - 1, total / weights
    residual = squares - 2 * centre * weighted + centre**2 * squared
    # All numbers are equal, but for rounding errors.
    if freedom < 1e-9 or residual <= 1e-12 * squares:
        return mean, math.nan, math.nan
    error = math.sqrt(residual / weights**2 * (freedom + 1) / freedom)
    quantile = float(stdtrit(math.inf if len(added) else freedom, (1 + PROBABILITY) / 2))
    return mean, centre - quantile * error, centre + quantile * error


def _sum_moments(x: Float64, w: Float64) -> Float64:
    """Return Σ w, Σ w², Σ w x, Σ w² x and Σ w² x²."""
    return np.array([part.sum() for part in (w, w**2, w * x, w**2 * x, (w * x) ** 2)])


def estimate_proportion(count: float, total: float) -> tuple[float, float]:
    """Return the 95% score interval of a proportion (Wilson 1927).

    Args:
        count: of successes.
        total: of trials, at least 1.

    >>> [round(end, 3) for end in estimate_proportion(8, 10)]
    [0.49, 0.943]
    """
    z = NormalDist().inv_cdf((1 + PROBABILITY) / 2)
    centre = (count + z**2 / 2) / (total + z**2)
    reach = z * math.sqrt(count * (total - count) / total + z**2 / 4) / (total + z**2)
    return max(centre - reach, 0.0), min(centre + reach, 1.0)


def decide(difference: float, low: float, high: float, lists: int) -> str:
    """Return whether a difference is `better` or `worse` than 0, `unclear` if its interval has 0.

    Where it is the same on all lists, there is no interval (NaN), and a sign test decides.

    >>> decide(0.5, 0.1, 0.9, 40), decide(0.5, -0.1, 1.1, 40), decide(-0.5, -0.5, -0.5, 5)
    ('better', 'unclear', 'unclear')
    """
    if not has_width(high - low, difference):
        low = high = difference if lists >= SAME_SIGNS else math.nan
    return BETTER if low > 0 else WORSE if high < 0 else UNCLEAR


def format_paired(
    values: Sequence[float], paired: tuple[float, float, float], least: int
) -> list[str]:
    """Return the texts of values, of a difference, and of its interval; `–` for NaN.

    They have two significant digits of half the interval or, without one, of the difference.

    Args:
        values: one or more.
        paired: the difference, and the ends of its interval.
        least: the least number of decimals.

    >>> format_paired([1.0, 1.5], (0.5, 0.25, 0.75), 2)
    ['1.00', '1.50', '+0.50', '+0.25 to +0.75']
    >>> format_paired([50.0], (-2.0, -2.0, -2.0), 1)
    ['50.0', '−2.0', '–']
    """
    difference, low, high = paired
    spread = (high - low) / 2 if has_width(high - low, difference) else abs(difference)
    spread = spread if has_width(spread, values[0]) else abs(values[0])
    decimals = choose_decimals(spread, least)
    texts = [format_fixed(value, decimals).translate(MINUS) for value in values]
    words, *ends = (format_signed(x, decimals) for x in paired)
    interval = " to ".join(ends) if has_width(high - low, difference) else "–"
    return ["–" if "nan" in text else text for text in (*texts, words, interval)]


def estimate_error(
    difference: Float64, weight: Float64, *, accuracy: bool = False
) -> tuple[float, float]:
    """Return the weighted mean of differences, (lists,), and its standard error.

    The error of the difference of two accuracies counts half a list more for each of the two, and
    one that both have right (Agresti & Min 2005).

    >>> [round(x, 3) for x in estimate_error(np.array([1.0, 0.0, 0.0, -1.0]), np.ones(4))]
    [0.0, 0.354]
    """
    mean = float(np.average(difference, weights=weight))
    added = weight.mean() if accuracy else 0.0
    variance = np.sum((weight * (difference - mean)) ** 2) + added**2
    return mean, float(np.sqrt(variance) / (weight.sum() + 2 * added))


@dataclass(frozen=True)
class ScoreChange:
    """The scores of two choices by one metric, and their difference.

    Attributes:
        before: the score of the first choice.
        after: that of the second.
        difference: the score after minus that before.
        low: the lower end of the 95% interval of the difference; NaN without one.
        high: the upper end.
        verdict: of the second choice, `better` or `worse` if the interval excludes zero, else
            `unclear`; empty for the length, and without an interval.

    >>> before, after = (Score(value, "ter", "TER", "") for value in (52.0, 50.0))
    >>> print(ScoreChange(before, after, -2.0, -3.0, -1.0, BETTER))
    TER 52.00 → 50.00 (−2.00, 95% interval −3.00 to −1.00)
    """

    before: Score
    after: Score
    difference: float
    low: float = math.nan
    high: float = math.nan
    verdict: str = ""

    @property
    def cells(self) -> list[str]:
        """The metric, both scores, their difference, its interval, and the verdict."""
        scores, numbers = (self.before, self.after), (self.difference, self.low, self.high)
        texts = format_paired([score.value for score in scores], numbers, self.after.decimals)
        return [metric_title(self.after), *texts, self.verdict or "–"]

    def __str__(self) -> str:
        title, before, after, change, interval, _ = self.cells
        change += "" if interval == "–" else f", {INTERVAL} {interval}"
        return f"{title} {before} → {after} ({change})"


@dataclass(frozen=True)
class Scoreboard(Outcome):
    """Corpus scores of two choices from the same lists, such as the canonical and the adapted one.

    With references comes the length ratio of translations to references: a choice by TER may
    shorten translations, which lowers BLEU.

    Attributes:
        changes: the scores by each metric.
        changed: how many translations differ.
        sentences: how many there are.
        titles: the names of the two choices.
    """

    changes: tuple[ScoreChange, ...]
    changed: int
    sentences: int
    titles: tuple[str, str] = ("canonical", "adapted")

    def block(self, caption: str = "") -> Table:
        """Return the table, with a row for each metric."""
        header = ("corpus score", *self.titles, "difference", INTERVAL, "verdict")
        return Table(header, [change.cells for change in self.changes], caption).without_empty()

    @property
    def notes(self) -> list[str]:
        """How many choices are judged, where some are not, and the signatures of the scores."""
        judged, signatures = list[str](), list[str]()
        for before, after in ((change.before, change.after) for change in self.changes):
            title, details = metric_title(after), list[Any]([before.details, after.details])
            counts = [int(d.get(f"{after.name}.judged", self.sentences)) for d in details]
            if min(counts) < self.sentences:
                pairs = zip(counts, self.titles, strict=True)
                of = " and ".join(f"{count} of {way}" for count, way in pairs)
                judged.append(f"{title}: means of the choices that are judged, {of}")
            signatures += [f"{title}: {after.signature}"] if after.signature else []
        return [*judged, *signatures]

    def _summarise(self) -> tuple[str, Table, Sequence[str]]:
        changed = f"{self.changed} of {self.sentences} choices changed"
        return f"{changed} from {' to '.join(self.titles)}", self.block(), self.notes


def metric_title(score: Score) -> str:
    """Return the name of a metric in tables."""
    return score.metric.upper() if score.metric in GAINS else score.name


def choose_metrics(gain: Metric, lists: NBest | None = None) -> tuple[Metric, ...]:
    """Return the metrics that choices are scored with: the gain first, and the length last.

    TER and BLEU come together, because a choice by one of them may lower the other, and with every
    criterion if lists with references are given. The length comes with references.

    >>> from bpa_ppl import from_lists
    >>> chosen = (choose_metrics(resolve(name)) for name in ("chrf", "bleu", "ter+bleu"))
    >>> [[one.key for one in metrics] for metrics in chosen]
    [['chrf', 'length'], ['bleu', 'ter', 'length'], ['ter+bleu', 'ter', 'bleu', 'length']]
    >>> lists = from_lists([["a"]], [[[0.5]]], ["comet"], references=["a"])
    >>> [one.key for one in choose_metrics(resolve("comet", lists), lists)]
    ['comet', 'ter', 'bleu', 'length']
    """
    has_references = bool(lists is not None and lists.references and all(lists.references))
    together = has_references or gain.key in ("ter", "bleu", "ter+bleu")
    others = [resolve(name) for name in ("ter", "bleu") if together and name != gain.key]
    length = [LengthRatio()] if has_references or "references" in gain.needs else []
    return gain, *others, *length


def score_choices(lists: NBest, choice: npt.ArrayLike, gain: str | Metric) -> tuple[Score, ...]:
    """Return the corpus scores of a choice, (sentences,), that of the gain first.

    Raises:
        DataError: if a sentence lacks what the metric needs.
        UsageError: if the metric is unknown.
    """
    return tuple(
        score_choice(lists, choice, m) for m in choose_metrics(resolve(gain, lists), lists)
    )


def compare_choices(
    lists: NBest,
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    gain: str | Metric = "ter",
    titles: tuple[str, str] = ("canonical", "adapted"),
) -> Scoreboard:
    """Compare the scores of two choices, each (sentences,), from the same lists.

    Raises:
        DataError: if a sentence lacks what the metric needs.
        UsageError: if the metric is unknown.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a b c d e", "a b"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b c d e"]]
    ... )
    >>> for change in compare_choices(lists, [1], [0]).changes:
    ...     print(change)
    TER 60.00 → 0.00 (−60.00)
    BLEU 0.00 → 100.00 (+100.00)
    length 0.400 → 1.000 (+0.600)
    """
    metrics = choose_metrics(resolve(gain, lists), lists)
    changed = int(find_changed(lists, before, after).sum())
    return Scoreboard(compare_scores(lists, before, after, metrics), changed, len(lists), titles)


def find_changed(
    lists: NBest, before: npt.ArrayLike, after: npt.ArrayLike
) -> npt.NDArray[np.bool_]:
    """Return whether the texts of two choices from each list differ, (sentences,).

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"], ["c", "c"]], [[[0.0]] * 2] * 2, ["LM0"])
    >>> find_changed(lists, [0, 0], [1, 1]).tolist()
    [True, False]
    """
    texts = zip(lists.chosen(np.asarray(before)), lists.chosen(np.asarray(after)), strict=True)
    return np.array([one != other for one, other in texts], bool)


def compare_scores(
    lists: NBest,
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    metrics: Iterable[Metric],
    *,
    seed: int | None = None,
) -> tuple[ScoreChange, ...]:
    """Compare the corpus scores of two choices from the same lists.

    Args:
        lists: the lists, with references, sources or columns if the metrics need them.
        before: (sentences,) the position of a candidate in each list.
        after: (sentences,) that of the other choice.
        metrics: the metrics.
        seed: of the paired bootstrap over sentences (Koehn 2004); None estimates no intervals.

    >>> from bpa_ppl import from_lists
    >>> texts, features = [["a cat", "the cat"]], [[[1.0], [0.0]]]
    >>> lists = from_lists(texts, features, ["LM0"], references=["a cat"])
    >>> [one.difference for one in compare_scores(lists, [1], [0], [resolve("ter")], seed=0)]
    [-50.0]
    """
    choices = [select_choices(lists, choice) for choice in (before, after)]
    changes, references = list[ScoreChange](), lists.references or [()] * len(lists)
    for metric in metrics:
        counts = np.stack([count_statistics(choice, metric) for choice in choices])
        # Added from left to right, as sacreBLEU does.
        first, second = (metric.score(np.cumsum(of, axis=0)[-1], references) for of in counts)
        numbers: tuple[Any, ...] = ()
        if seed is not None:
            low, high = bootstrap_interval(counts, metric, seed=seed)
            # As resampled: sacreBLEU's BLEU may differ by rounding.
            values = metric.value(counts.sum(axis=1)).tolist()
            first, second = (
                replace(s, value=v) for s, v in zip((first, second), values, strict=True)
            )
            worst, best = sorted(metric.signed(np.array([low, high])).tolist())
            verdict = decide(metric.signed(second.value - first.value), worst, best, len(lists))
            numbers = low, high, "" if isinstance(metric, LengthRatio) else verdict
        changes.append(ScoreChange(first, second, second.value - first.value, *numbers))
    return tuple(changes)


def bootstrap_interval(
    counts: Float64, metric: str | Metric, *, seed: int = 0
) -> tuple[float, float]:
    """Return the 95% interval of the difference of two corpus scores, by the paired bootstrap.

    Args:
        counts: (2, S, K) of the metric, of the first and of the second translation.
        metric: such as "ter" or "bleu".
        seed: of the bootstrap.

    >>> worse, better = np.array([[2.0, 4.0]] * 9), np.array([[1.0, 4.0]] * 9)
    >>> bootstrap_interval(np.stack([worse, better]), "ter")
    (-25.0, -25.0)
    """
    _, sentences, kinds = counts.shape
    rng = np.random.default_rng(check_seed(seed))
    occurrences = rng.multinomial(sentences, np.full(sentences, 1 / sentences), size=_SAMPLES)
    occurrences = occurrences.astype(np.float64)
    in_columns = counts.transpose(1, 0, 2).reshape(sentences, 2 * kinds)
    values = resolve(metric).value((occurrences @ in_columns).reshape(-1, 2, kinds))
    tail = (1 - PROBABILITY) / 2
    low, high = np.quantile(values[:, 1] - values[:, 0], (tail, 1 - tail)).tolist()
    return low, high
