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
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import (
    MINUS,
    choose_decimals,
    format_fixed,
    format_signed,
    format_table,
    has_width,
)
from bpa_ppl.gains.bleu import LengthRatio
from bpa_ppl.gains.gains import count_statistics, resolve, score_choice, select_choices
from bpa_ppl.gains.metric import GAINS, Metric, Score
from bpa_ppl.lists.nbest import NBest

#: The probability of all intervals, and how they are named.
PROBABILITY = 0.95
INTERVAL = f"{100 * PROBABILITY:g}% interval"
BETTER, WORSE, TIE, UNCLEAR = "better", "worse", "tie", "unclear"
#: How the verdicts of changes of scores are named.
VERDICTS = {BETTER: BETTER, WORSE: WORSE, TIE: UNCLEAR}
#: So many equal signs are significant at 5%: 2 / 2⁶ = 0.03.
SAME_SIGNS = 6
#: Lists that are added for the interval of an accuracy and of a difference of two (Agresti & Coull
#: 1998; Agresti & Caffo 2000): without them, intervals of few lists are too narrow.
ADDED, ADDED_DIFFERENCES = (0.0, 0.0, 1.0, 1.0), (-1.0, 1.0)
#: (B, S) how often each test sentence occurs in each of B resamples, and (B, D) their draws of A.
#: All methods use the same, so that their differences are paired.
_Resamples = tuple[Float64, Int64]
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
    """Return whether a difference is `better` or `worse` than 0, or `tie` if its interval has 0.

    Where it is the same on all lists, there is no interval (NaN), and a sign test decides.

    >>> decide(0.5, 0.1, 0.9, 40), decide(0.5, -0.1, 1.1, 40), decide(-0.5, -0.5, -0.5, 5)
    ('better', 'tie', 'tie')
    """
    if not has_width(high - low, difference):
        low = high = difference if lists >= SAME_SIGNS else math.nan
    return BETTER if low > 0 else WORSE if high < 0 else TIE


def format_difference(
    difference: float, low: float, high: float, decimals: int
) -> tuple[str, str, str]:
    """Return the texts of a difference, of its interval, and of both; `–` if there is no interval.

    >>> format_difference(0.5, 0.25, 0.75, 2)
    ('+0.50', '+0.25 to +0.75', '+0.50, 95% interval +0.25 to +0.75')
    >>> format_difference(-2.0, -2.0, -2.0, 1)
    ('−2.0', '–', '−2.0')
    """
    words, *ends = (format_signed(x, decimals) for x in (difference, low, high))
    if not has_width(high - low, difference):
        return words, "–", words
    interval = " to ".join(ends)
    return words, interval, f"{words}, {INTERVAL} {interval}"


def estimate_error(
    difference: Float64, weight: Float64, *, accuracy: bool = False
) -> tuple[float, float]:
    """Return a weighted mean difference and its standard error.

    With few lists often no choice differs. Therefore the error of an accuracy counts half a list
    more for each of the two, and one that both have right (Agresti & Min 2005).

    Args:
        difference: (lists,).
        weight: (lists,) of each list.
        accuracy: whether it is the difference of two accuracies.

    >>> [round(x, 3) for x in estimate_error(np.array([1.0, 0.0, 0.0, -1.0]), np.ones(4))]
    [0.0, 0.354]
    """
    mean = float(np.average(difference, weights=weight))
    added = weight.mean() if accuracy else 0.0
    variance = np.sum((weight * (difference - mean)) ** 2) + added**2
    return mean, float(np.sqrt(variance) / (weight.sum() + 2 * added))


@dataclass(frozen=True)
class Scoreboard:
    """Corpus scores of the canonical first-best and of the chosen translations.

    With BLEU comes the length ratio of translations to references: a choice by TER may shorten
    translations, which lowers BLEU.

    Attributes:
        before: one score per metric, of the first choice.
        after: likewise, of the second choice.
        changed: how many translations differ.
        sentences: how many there are.
        titles: the names of the two choices.
    """

    before: tuple[Score, ...]
    after: tuple[Score, ...]
    changed: int
    sentences: int
    titles: tuple[str, str] = ("canonical", "adapted")

    def __str__(self) -> str:
        table = format_table(self._rows(), ("", *self.titles, "change"), align="rrrr", least=9)
        changed = f"{self.changed} of {self.sentences} choices changed"
        lines = [table, f"{changed} from {self.titles[0]} to {self.titles[1]}"]
        for before, after in zip(self.before, self.after, strict=True):
            details: list[Any] = [before.details, after.details]
            counts = [int(d.get(f"{after.name}.judged", self.sentences)) for d in details]
            if min(counts) < self.sentences:
                old, new = (f"{n} {title}" for n, title in zip(counts, self.titles, strict=True))
                of = f"{old} and {new} of {self.sentences}"
                lines.append(f"{metric_title(after)}: means of the choices that are judged, {of}")
        return "\n".join([*lines, *(score.signature for score in self.after)])

    @property
    def changes(self) -> list[str]:
        """One text per score, such as `TER 50.00 → 40.00`."""
        return [f"{name} {old} → {new}" for name, old, new, _ in self._rows()]

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """Return name, both values, and their difference, as text."""
        rows = []
        for (name, old, n), (_, new, _) in zip(
            to_cells(self.before), to_cells(self.after), strict=False
        ):
            change = new - old
            if name.lower() not in (*GAINS, "length") and has_width(abs(change), new):
                n = choose_decimals(abs(change), n)  # a column of any scale
            before, after = format_fixed(old, n), format_fixed(new, n)
            rows.append((name, before, after, format_fixed(change, n, "+")))
        return rows


def to_cells(scores: tuple[Score, ...]) -> list[tuple[str, float, int]]:
    """Return name, value and decimals of scores, the length ratio at the end."""
    rows = [(metric_title(score), score.value, score.decimals) for score in scores]
    ratios = (score.details.get("length_ratio") for score in scores)
    return rows + [("length", ratio, 3) for ratio in ratios if isinstance(ratio, float)]


def metric_title(score: Score) -> str:
    """Return the name of a metric in tables."""
    return score.metric.upper() if score.metric in GAINS else score.name


def choose_metrics(gain: Metric, lists: NBest | None = None) -> tuple[Metric, ...]:
    """Return the metrics that choices are scored with: the gain comes first.

    TER and BLEU come together, because a choice by one of them may lower the other, and with every
    criterion if lists with references are given.

    >>> from bpa_ppl import from_lists
    >>> chosen = (choose_metrics(resolve(name)) for name in ("chrf", "bleu", "ter+bleu"))
    >>> [[one.key for one in metrics] for metrics in chosen]
    [['chrf'], ['bleu', 'ter'], ['ter+bleu', 'ter', 'bleu']]
    >>> lists = from_lists([["a"]], [[[0.5]]], ["comet"], references=["a"])
    >>> [one.key for one in choose_metrics(resolve("comet", lists), lists)]
    ['comet', 'ter', 'bleu']
    """
    has_references = lists is not None and lists.references and all(lists.references)
    together = has_references or gain.key in ("ter", "bleu", "ter+bleu")
    others = ("ter", "bleu") if together else ()
    return gain, *(resolve(name) for name in others if name != gain.key)


def score_choices(lists: NBest, choice: npt.ArrayLike, gain: str | Metric) -> tuple[Score, ...]:
    """Return the corpus scores of one candidate of each list: the metric, TER and BLEU.

    Args:
        lists: the lists, with references, sources or columns if the metric needs them.
        choice: (sentences,) the position of a candidate in each list.
        gain: a name, a metric, or the name of a column of the lists: its score comes first.

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
    """Compare the scores of two choices from the same lists.

    Args:
        lists: the lists, with references, sources or columns if the metric needs them.
        before: (sentences,) the position of a candidate in each list.
        after: likewise.
        gain: the first of the scores; see `score_choices`.
        titles: the names of the two choices.

    Raises:
        DataError: if a sentence lacks what the metric needs.
        UsageError: if the metric is unknown.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a b c d e", "a b"]], [[[1.0], [2.0]]], ["LM0"], references=[["a b c d e"]]
    ... )
    >>> compare_choices(lists, [1], [0]).changes
    ['TER 60.00 → 0.00', 'BLEU 0.00 → 100.00', 'length 0.400 → 1.000']
    """
    first, second = (score_choices(lists, choice, gain) for choice in (before, after))
    changed = int(find_changed(lists, before, after).sum())
    return Scoreboard(first, second, changed, len(lists), titles)


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


@dataclass(frozen=True)
class ScoreChange:
    """The difference of the corpus scores of two translations.

    Attributes:
        metric: its name, such as `ter`.
        score: of the first translation.
        difference: the score of the first minus that of the second.
        low: the lower end of the 95% interval of the difference.
        high: the upper end.
        title: the name of the metric in tables.
        verdict: of the first translation, `better` or `worse` if the interval excludes zero, else
            `unclear`; empty for the length.
        decimals: the least number of decimals to print.
        signature: of the score; empty for the length.

    >>> print(ScoreChange("ter", 50.0, -2.0, -3.0, -1.0, "TER", BETTER))
    TER 52.00 → 50.00 (−2.00, 95% interval −3.00 to −1.00), better
    """

    metric: str
    score: float
    difference: float
    low: float
    high: float
    title: str
    verdict: str = ""
    decimals: int = 2
    signature: str = ""

    @property
    def cells(self) -> list[str]:
        """The scores of the second and of the first, the difference, its interval, and both."""
        width = self.high - self.low
        spread = width / 2 if has_width(width, self.difference) else 0.0
        decimals = choose_decimals(spread, self.decimals)
        plain = (format_fixed(x, decimals) for x in (self.score - self.difference, self.score))
        signed = format_difference(self.difference, self.low, self.high, decimals)
        return [*(text.translate(MINUS) for text in plain), *signed]

    def __str__(self) -> str:
        before, after, *_, change = self.cells
        return f"{self.title} {before} → {after} ({change}){self.verdict and f', {self.verdict}'}"


def draw_resamples(count: int, sentences: int, draws: int = 0, seed: int = 0) -> _Resamples:
    """Draw B = `count` bootstrap samples of sentences and draws.

    >>> occurrences, chosen = draw_resamples(3, sentences=4, draws=2)
    >>> occurrences.sum(axis=1).tolist(), chosen.shape
    ([4.0, 4.0, 4.0], (3, 2))
    """
    rng = np.random.default_rng(check_seed(seed))
    uniform = np.full(sentences, 1 / sentences)
    occurrences = rng.multinomial(sentences, uniform, size=count).astype(np.float64)
    chosen = rng.integers(draws, size=(count, draws)) if draws else np.zeros((count, 0), np.int64)
    return occurrences, chosen


def score_resamples(
    counts: Float64, metric: str | Metric, new: _Resamples
) -> tuple[Float64, Float64, Float64]:
    """Return the corpus score, averaged over draws of A, of each resample.

    Source: Koehn (2004) for test sentences; draws of A are resampled likewise.

    Args:
        counts: (D, S, K) of the translations chosen with each draw of A.
        metric: such as "ter" or "bleu".
        new: B resamples.

    Returns:
        (B,) the scores of resampled sentences and draws; (B,) those of resampled sentences with the
        original draws; and (B,) those of resampled draws with the original sentences.

    >>> counts = np.array([[[1.0, 4.0], [1.0, 4.0]], [[2.0, 4.0], [2.0, 4.0]]])
    >>> _, of_sentences, _ = score_resamples(counts, "ter", draw_resamples(2, 2, 2))
    >>> of_sentences.tolist()
    [37.5, 37.5]
    """
    config, (occurrences, draws) = resolve(metric), new
    values, all_values = (
        _score_resamples(counts, config, occurrences),
        config.value(counts.sum(axis=1)),
    )
    both = np.take_along_axis(values, draws, axis=1).mean(axis=1)
    return both, values.mean(axis=1), all_values[draws].mean(axis=1)


def compare_scores(
    first: Float64,
    second: Float64,
    metric: str | Metric,
    *,
    seed: int = 0,
) -> ScoreChange:
    """Compare two translations of the same sentences.

    Args:
        first: (S, K) counts of the metric, of the first translation.
        second: likewise, of the second.
        metric: such as "ter" or "bleu".
        seed: of the bootstrap.

    >>> better, worse = np.array([[1.0, 4.0]] * 9), np.array([[2.0, 4.0]] * 9)
    >>> result = compare_scores(better, worse, "ter")
    >>> result.score, result.difference, result.high
    (25.0, -25.0, -25.0)
    """
    config, counts = resolve(metric), np.stack([first, second])
    score, other = config.value(counts.sum(axis=1))
    values = _score_resamples(counts, config, draw_resamples(_SAMPLES, len(first), seed=seed)[0])
    tail = (1 - PROBABILITY) / 2
    low, high = np.quantile(values[:, 0] - values[:, 1], (tail, 1 - tail)).tolist()
    difference, title, verdict = float(score - other), config.title, ""
    if not isinstance(config, LengthRatio):
        title = config.key.upper() if config.key in GAINS else title
        worst, best = sorted(config.signed(np.array([low, high])).tolist())
        verdict = VERDICTS[decide(config.signed(difference), worst, best, len(first))]
    numbers = float(score), difference, low, high
    return ScoreChange(config.key, *numbers, title, verdict, config.decimals)


def bootstrap_changes(
    lists: NBest,
    before: npt.ArrayLike,
    after: npt.ArrayLike,
    metrics: Iterable[Metric],
    *,
    seed: int = 0,
) -> tuple[ScoreChange, ...]:
    """Compare the corpus scores of two choices from the same lists by the paired bootstrap.

    Args:
        lists: the lists, with references, sources or columns if the metrics need them.
        before: (sentences,) the position of a candidate in each list.
        after: likewise; differences are those of its scores.
        metrics: the metrics.
        seed: of the bootstrap over sentences (Koehn 2004).

    >>> from bpa_ppl import from_lists
    >>> texts, features = [["a cat", "the cat"]], [[[1.0], [0.0]]]
    >>> lists = from_lists(texts, features, ["LM0"], references=["a cat"])
    >>> [one.difference for one in bootstrap_changes(lists, [1], [0], [resolve("ter")])]
    [-50.0]
    """
    first, second = (select_choices(lists, choice) for choice in (after, before))
    changes, references = list[ScoreChange](), lists.references or [()] * len(lists)
    for metric in metrics:
        counts = count_statistics(first, metric), count_statistics(second, metric)
        change = compare_scores(*counts, metric, seed=seed)
        changes.append(replace(change, signature=change.verdict and metric.signature(references)))
    return tuple(changes)


def _score_resamples(counts: Float64, metric: Metric, occurrences: Float64) -> Float64:
    """Return (B, C) the corpus scores in each resample of C translations, (C, S, K) counts."""
    choices, sentences, kinds = counts.shape
    in_columns = counts.transpose(1, 0, 2).reshape(sentences, choices * kinds)
    return metric.value((occurrences @ in_columns).reshape(-1, choices, kinds))
