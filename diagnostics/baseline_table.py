"""Simple ways to choose, compared with adapted weights: a table, and sentences about it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from msgspec import Struct, structs

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import choose_decimals, format_count, format_table
from bpa_ppl.diagnostics.pages.page import Table
from bpa_ppl.metrics.paired import (
    ADDED,
    ADDED_DIFFERENCES,
    BETTER,
    INTERVAL,
    MINUS,
    TIE,
    WORSE,
    decide,
    estimate_mean,
    estimate_proportion,
    format_difference,
)
from bpa_ppl.nbest import NBest, find_feature, subtract_first


class Way(StrEnum):
    """The names of the ways to choose, other than single features."""

    ADAPTED = "adapted weights"
    FIRST = "first candidate"
    TOTAL = "total of the decoder"
    CANONICAL = "canonical weights"
    MEAN = "mean of the standardised features"
    FEATURE = "best single feature"
    SYSTEM = "best single system"
    RIDGE = "ridge regression"
    LOGISTIC = "logistic regression"
    WITHOUT = "adapted weights without indicators"
    RANDOM = "random candidate"
    BEST = "best candidate"


#: How to use each baseline instead of the adapted weights.
_ADVICE: Mapping[str, str] = {
    Way.FIRST: "take the first candidate of each list",
    Way.TOTAL: "take the candidate of the highest total",
    Way.CANONICAL: "keep the canonical weights",
    Way.MEAN: "choose by the mean of the standardised features, or adapt from equal weights",
    Way.FEATURE: "choose by {} alone",
    Way.SYSTEM: "take the candidates of {}",
    Way.RIDGE: "fit RidgeCV of scikit-learn to gains and features minus their means of each list",
    Way.LOGISTIC: "fit LogisticRegression of scikit-learn to differences of two candidates",
    Way.WITHOUT: "leave out categorical {}",
}
#: The kinds of rows, in the order of the table.
KINDS = ("adapted", "baseline", "feature", "bound")
#: The unit of the gain of a way to choose where preferences are observed.
ACCURACY = "accuracy"
LEFT_OUT, IN_SAMPLE, NEW = "leave-one-out", "in-sample", "new lists"
#: Notes on the evaluation.
_EVALUATED = {
    LEFT_OUT: "Leave-one-out: choices from a list do not use its judgements, except for the "
    "direction of each feature alone.",
    IN_SAMPLE: "In-sample: the adapted weights use the judgements of these lists.",
    NEW: "",
}
_MAX_FEATURES = 10  # in a printed table
_DECIMALS = 3  # of a gain, and more where its interval is narrower
#: If the first candidate is the preferred one in so many lists or more, and in all of them, the
#: order of the candidates was made from the answers.
_ORDERED = 5
#: Scores do not explain the gains if their association is below this. So it is for six of seven
#: samples of gains permuted within lists, and for fewer than one of ten of real collections, where
#: it is 2 to 8.
_CHANCE = 1.5
#: What the columns of a table are.
_OF_GAIN = (
    "Mean {unit} of each way to choose, its share of the difference between the random and the "
    "best candidate, and the difference of the adapted weights from it, with a 95% interval "
    "(Student's t, paired over lists), a tie if it contains 0."
)
_OF_ACCURACY = (
    "Share of the pairs of candidates that each way to choose orders as the judge did, ½ for equal "
    "scores; the mean −log p of the answers (log loss), of the mean of the features that with one "
    "fitted slope; and the difference of the adapted weights, a tie if its interval contains 0. "
    "Intervals are over lists. Equal weights choose by the mean of the standardised features."
)
_SELECTED = "Features, systems and regressions are those of the adaptation sentences."
#: The kind and the name of a row.
Key = tuple[str, str]


class BaselineRow(Struct, frozen=True, omit_defaults=True):
    """One way to choose: how it scores candidates, and how it compares with the adapted weights.

    Attributes:
        name: of the way to choose.
        kind: `adapted`, `baseline`, `feature` (a single one), or `bound` (the random and the best
            candidate).
        lists: the number of lists whose chosen candidate is judged.
        gain: the mean gain.
        share: of the headroom, which is the difference between the random and the best candidate;
            NaN for an accuracy.
        difference: the mean gain of the adapted weights minus that of this row, over the lists
            where both choices are judged; NaN if there are none.
        low: lower end of the 95% interval of the difference, by Student's t over lists.
        high: upper end.
        gain_low: lower end of the 95% interval of an accuracy; NaN for another gain.
        gain_high: upper end.
        log_loss: the mean −log p of the answers; NaN if the choice has no probability.
        weights: of the features or, of the best system, of the systems, the best one first; as
            selected on the adaptation lists.
        column: the column that names the systems, or the columns whose indicators are left out.
        slope: the factor of the scores whose differences are the logits of preferences; NaN if the
            choice has no probability.

    >>> row = BaselineRow("first candidate", "baseline", 40, 1.0, 0.2, 0.5, 0.25, 0.75)
    >>> row.verdict, row.cells[-3:]
    ('better', ['+0.500', '+0.250 to +0.750', 'better'])
    >>> BaselineRow("adapted weights", "adapted", 9, 0.75, gain_low=0.5, gain_high=0.9).cells
    ['adapted weights', '0.750', '0.500 to 0.900', '–', '–', '–', '–', '–']
    >>> row = BaselineRow("best single feature", weights={"TER": -1.0})
    >>> row.label, row.advice
    ('best single feature (low TER)', 'choose by low TER alone')
    """

    name: str
    kind: str = "baseline"
    lists: int = 0
    gain: float = math.nan
    share: float = math.nan
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    gain_low: float = math.nan
    gain_high: float = math.nan
    log_loss: float = math.nan
    weights: dict[str, float] = {}
    column: str = ""
    slope: float = math.nan

    @property
    def label(self) -> str:
        """The name with the feature, the system or the indicators, as it is printed."""
        if self.kind == "feature":
            return f"low {self.name}" if self.weights.get(self.name, 1) < 0 else self.name
        return f"{self.name} ({self._detail})" if self._detail else self.name

    @property
    def advice(self) -> str:
        """How to use a baseline instead of the adapted weights."""
        return _ADVICE[self.name].format(self._detail)

    @property
    def _detail(self) -> str:
        first = next(iter(self.weights), "")
        low = "low " if self.weights.get(first, 1) < 0 else ""
        of: dict[str, str] = {Way.FEATURE: low + first, Way.SYSTEM: first, Way.WITHOUT: self.column}
        return of.get(self.name, "")

    def scores(self, nbest: NBest) -> Float64 | None:
        """Return the scores by which it chooses, (candidates,); None if the lists have none.

        Those of features are relative to the first candidate of each list.

        A feature that no candidate has is 0, as in `rerank`.

        Args:
            nbest: lists with the features that the weights were selected from.
        """
        if self.name == Way.FIRST:
            return -np.arange(len(nbest.features), dtype=np.float64)
        if self.name == Way.TOTAL and nbest.totals is not None:
            return nbest.totals
        if self.name == Way.SYSTEM and self.column in nbest.extras:
            systems = map(str, nbest.extras[self.column])
            return np.array([self.weights.get(system, 0.0) for system in systems])
        if self.name == Way.SYSTEM or not self.weights:
            return None
        columns = ((weight, values_of(nbest, name)) for name, weight in self.weights.items())
        return np.asarray(sum(w * subtract_first(of, nbest.sizes) for w, of in columns))

    def choose(self, nbest: NBest) -> Int64:
        """Return the position of the choice from each list, (sentences,); the first of equal ones.

        Args:
            nbest: as for `scores`; without scores it is the first candidate.
        """
        scores = self.scores(nbest)
        return nbest.best(np.zeros(len(nbest.features)) if scores is None else scores)

    @property
    def verdict(self) -> str:
        """Whether the adapted weights are `better` or `worse`, or `tie` if the interval has 0.

        Empty if there is no difference. Where it is the same on all lists, there is no interval,
        and a sign test decides.
        """
        if math.isnan(self.difference):
            return ""
        return decide(self.difference, self.low, self.high, self.lists)

    @property
    def difference_in_words(self) -> str:
        """The difference, with its interval if it has one.

        >>> BaselineRow("first candidate", "baseline", 5, 1.0, 0.2, 0.5).difference_in_words
        '+0.500'
        """
        return self._texts[-1]

    @property
    def _decimals(self) -> int:
        spread = abs(self.gain) if math.isnan(self.low) else (self.high - self.low) / 2
        return choose_decimals(spread, _DECIMALS)

    @property
    def _texts(self) -> tuple[str, str, str]:
        return format_difference(self.difference, self.low, self.high, self._decimals)

    @property
    def cells(self) -> list[str]:
        """The cells of the printed row."""
        numbers = (
            f"{self.gain:.{self._decimals}f}",
            f"{self.gain_low:.3f} to {self.gain_high:.3f}",
            f"{self.log_loss:.3f}",
            f"{self.share:.0%}",
            *self._texts[:2],
            self.verdict or "nan",
        )
        return [self.label, *("–" if "nan" in n else n.translate(MINUS) for n in numbers)]


@dataclass(frozen=True)
class BaselineComparison:
    """Adapted weights compared with baselines on lists with gains.

    Attributes:
        rows: the adapted weights (if they were compared), the baselines, single features, the
            random and the best candidate.
        unit: the name of the gain; `accuracy` for preferences.
        selected: the name of the baseline of the highest mean gain on the adaptation sentences.
        evaluation: `leave-one-out`: choices from a list do not use its gains; `in-sample`: those
            of the adapted weights do; or `new lists`.
        unjudged: the number of candidates without a gain, or of answers of "no difference".
        doubtful: the number of lists where leave-one-out is unreliable (Pareto k̂ > 0.7).
        association: of the scores of the adapted weights and the gains, in standard errors, by
            leave-one-out; None if it was not computed.
        best: in how many adaptation lists the adapted weights choose one of the best candidates, by
            leave-one-out (of k candidates with the highest score, each counts 1/k), and the number
            of those lists; None if it was not computed.
        predictions: by leave-one-out, the probability of the preferred one of two candidates, and
            the weight of the answer, which sums to 1 over each list.

    >>> rows = [
    ...     BaselineRow("adapted weights", "adapted", 9, 1.0, 0.5),
    ...     BaselineRow(
    ...         *("best single feature", "baseline", 9, 1.5, 0.75, -0.5, -1.25, 0.25),
    ...         weights={"comet": 1.0},
    ...     ),
    ... ]
    >>> result = BaselineComparison(tuple(rows), "mqm", "best single feature")
    >>> result.baseline.gain, result.baseline.verdict, result.row("adapted weights").share
    (1.5, 'tie', 0.5)
    >>> result.warning, result.notes
    ('', [])
    >>> print(result.summary)
    the adapted weights are not better than the best single feature (comet), as far as 9 lists ...
    >>> result.block().header
    ['choice', 'mean mqm', 'of headroom', 'adapted − it', '95% interval', 'adapted is']
    """

    rows: tuple[BaselineRow, ...]
    unit: str
    selected: str = ""
    evaluation: str = NEW
    unjudged: int = 0
    doubtful: int = 0
    association: float | None = None
    best: tuple[float, int] | None = None
    predictions: tuple[tuple[float, float], ...] = ()

    @property
    def measure(self) -> str:
        """What is compared: the accuracy, or a mean gain."""
        return self.unit if self.unit == ACCURACY else f"mean {self.unit}"

    @property
    def baseline(self) -> BaselineRow | None:
        """The row of the best baseline, as selected on the adaptation sentences."""
        return self.row(self.selected)

    @property
    def warning(self) -> str:
        """A warning if the best baseline is better than the adapted weights, or nothing is learned.

        Empty otherwise.
        """
        row = self.baseline
        if row is not None and row.verdict == WORSE:
            return f"{self._than_baseline}, {self.evaluation}; to use that baseline, {row.advice}"
        if self.association is None or self.association >= _CHANCE:
            return ""
        simple = f"; {self._than_baseline}" if row is not None and row.difference <= 0 else ""
        return (
            "the judgements do not separate the features: the adapted weights barely explain them "
            f"({self.association:.1f} standard errors above chance, {self.evaluation}){simple}; "
            "give more of them, or add features"
        )

    @property
    def summary(self) -> str:
        """One sentence on the adapted weights and the best baseline, and on the best candidates."""
        others = f"they are {self.than_others}" if self.than_others else ""
        return "; ".join(filter(None, [self._than_baseline, others, self.share_of_best]))

    @property
    def than_others(self) -> str:
        """Which other baselines the choices from new lists do not beat, if they beat the best.

        The best baseline is that of the adaptation lists; on new ones another may be better. Empty
        if there are none.
        """
        if self.evaluation != NEW or self.baseline is None or self.baseline.verdict != BETTER:
            return ""
        parts = []
        for verdict, words in ((TIE, "not clearly better than"), (WORSE, "worse than")):
            rows = [row for row in self.rows if (row.kind, row.verdict) == ("baseline", verdict)]
            found = [f"the {row.label} (difference {row.difference_in_words})" for row in rows]
            parts += [f"{words} {' and '.join(found)}"] if found else []
        return ", and ".join(parts)

    @property
    def _than_baseline(self) -> str:
        row = self.baseline
        return f"the adapted weights are {self._than(row)}" if row and row.verdict else ""

    def _than(self, row: BaselineRow) -> str:
        """Return how the adapted weights compare with a baseline."""
        words = f"{row.verdict} than the {row.label}"
        if row.verdict == TIE:
            words = "as good as" if row.difference > 0 else "not better than"
            words += f" the {row.label}, as far as {format_count(row.lists, 'list')} show"
        _, gain, *_ = structs.replace(row, gain=row.gain + row.difference).cells
        return (
            f"{words} ({self.measure} {gain} against {row.cells[1]}, difference "
            f"{row.difference_in_words})"
        )

    @property
    def share_of_best(self) -> str:
        """How often the adapted weights choose one of the best candidates, as far as is known.

        This estimates how often choices are right, which the predictive distribution does not.
        Empty if it was not computed.
        """
        if self.best is None:
            return ""
        (count, lists), (low, high) = self.best, estimate_proportion(*self.best)
        return (
            f"of {format_count(lists, 'adaptation list')}, {count / lists:.0%} have a choice among "
            f"the best candidates ({LEFT_OUT}, {INTERVAL} {low:.0%} to {high:.0%})"
        )

    @property
    def of_indicators(self) -> str:
        """One sentence on whether to keep the indicators; empty if they were not compared.

        >>> rows = [
        ...     BaselineRow("adapted weights", "adapted", 20, -1.5, 0.25),
        ...     BaselineRow(
        ...         *("adapted weights without indicators", "baseline", 20, -1.25, 0.5),
        ...         *(-0.25, -0.375, -0.125), column="system",
        ...     ),
        ... ]
        >>> print(BaselineComparison(tuple(rows), "mqm", evaluation="leave-one-out").of_indicators)
        with the indicators of system the choices are worse than the adapted weights without ...
        """
        row = self.row(Way.WITHOUT)
        if row is None or not row.verdict:
            return ""
        advice = f"keep categorical {row.column}" if row.verdict == BETTER else row.advice
        if row.verdict == TIE:
            more = f"; {advice} if more lists confirm it" if row.difference < 0 else ""
            advice = f"the difference is not clear{more}"
        choices = f"with the indicators of {row.column} the choices are"
        return f"{choices} {self._than(row)}, {self.evaluation}: {advice}"

    @property
    def notes(self) -> list[str]:
        """Sentences on how the numbers were computed."""
        lacking = f"{format_count(self.unjudged, 'candidate')} without a gain left out."
        if self.unit == ACCURACY:
            lacking = f"{format_count(self.unjudged, 'answer')} of “no difference” left out."
        doubtful = f"Unreliable for {format_count(self.doubtful, 'list')} (Pareto k̂ > 0.7)."
        notes = (
            _EVALUATED[self.evaluation],
            doubtful if self.doubtful else "",
            lacking if self.unjudged else "",
        )
        return [note for note in notes if note]

    def row(self, name: str) -> BaselineRow | None:
        """Return the row of one way to choose; None if there is none."""
        return next((row for row in self.rows if row.name == name and row.kind != "feature"), None)

    def block(self) -> Table:
        """Return the table, with at most ten single features."""
        single = sorted((r for r in self.rows if r.kind == "feature"), key=lambda r: -r.gain)
        left_out, explained = single[_MAX_FEATURES:], _OF_GAIN.format(unit=self.unit)
        if self.unit == ACCURACY:  # a random candidate is right in half of the pairs
            left_out += [row for row in self.rows if row.kind == "bound"]
            explained = _OF_ACCURACY
        header = ["choice", self.measure, INTERVAL, "log loss", "of headroom"]
        header += ["adapted − it", INTERVAL, "adapted is"]
        columns = zip(header, *(r.cells for r in self.rows if r not in left_out), strict=True)
        kept = (column for column in columns if {*column[1:]} != {"–"})
        names, *rows = map(list, zip(*kept, strict=True))
        return Table(names, rows, " ".join([explained, _SELECTED, *self.notes]))

    def _repr_html_(self) -> str:
        return self.block().html()

    def __str__(self) -> str:
        table = self.block()
        rows, align = [list(map(str, row)) for row in table.rows], "r" * (len(table.header) - 1)
        return "\n".join([format_table(rows, table.header, align=f"l{align}"), *self.notes])


def values_of(nbest: NBest, name: str) -> Float64:
    """Return the values of a feature, (candidates,): 0 if no candidate has it, as in `rerank`."""
    feature = find_feature(nbest, name)
    return np.zeros(len(nbest.features)) if feature is None else feature


def estimate_rows(
    rows: Iterable[BaselineRow], sums: Mapping[Key, Float64], *, accuracy: bool = False
) -> tuple[BaselineRow, ...]:
    """Return the rows of the adapted weights, baselines, single features and bounds.

    Args:
        rows: of the ways to choose that have weights.
        sums: from `baselines.sum_gains`.
        accuracy: whether the gain is the accuracy. The first candidate is left out if its order
            was made from the answers.
    """
    by_key, result = {(row.kind, row.name): row for row in rows}, []
    added, added_differences = (ADDED, ADDED_DIFFERENCES) if accuracy else ((), ())
    for (kind, name), values in sums.items():
        count, random, best, loss, weight, _, gain, *_ = values.tolist()
        mean, low, high = estimate_mean(values[4:9], added)
        numbers: dict[str, Any] = {"lists": int(count), "gain": mean}
        estimated = estimate_mean(values[9:], added_differences)
        numbers |= zip(("difference", "low", "high"), estimated, strict=True)
        if accuracy:
            numbers |= {"gain_low": max(low, 0.0), "gain_high": min(high, 1.0)}
            numbers["log_loss"] = loss / weight
        elif best > random:
            numbers["share"] = (gain - random) / (best - random)
        way = by_key.get((kind, name), BaselineRow(name))
        numbers |= {"weights": way.weights, "column": way.column, "slope": way.slope}
        known = {field: value for field, value in numbers.items() if value == value}  # not NaN
        # In data sets of `chosen` and `rejected` answers, the order was made from the answers.
        if not (accuracy and name == Way.FIRST and mean == 1 and count >= _ORDERED):
            result.append(BaselineRow(str(name), kind, **known))
    return tuple(result)
