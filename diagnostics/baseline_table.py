"""Adapted weights compared with simple ways to choose: a table, and sentences about it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import choose_decimals, format_count, format_table
from bpa_ppl.diagnostics.baselines import BEST, FIRST, RANDOM, WITHOUT, Baselines, is_ordered
from bpa_ppl.diagnostics.pages.page import Table
from bpa_ppl.errors import DataError

ADAPTED = "adapted weights"
#: The kinds of rows, in the order of the table.
_KINDS = ("adapted", "baseline", "feature", "bound")
#: The unit of the gain of a way to choose where preferences are observed.
ACCURACY = "accuracy"
BETTER, WORSE, TIE = "better", "worse", "tie"
LEFT_OUT, IN_SAMPLE, NEW = "leave-one-out", "in-sample", "new lists"
PROBABILITY = 0.95
_PERCENT = f"{100 * PROBABILITY:g}%"
_MAX_FEATURES = 10  # in a printed table
_DECIMALS = 3  # of a gain, and more where its interval is narrower
#: So many equal signs are significant at 5%: 2 / 2⁶ = 0.03.
SAME_SIGNS = 6
#: Scores do not explain the gains if their association is below this. So it is for six of seven
#: samples of gains permuted within lists, and for fewer than one of ten of real collections, where
#: it is 2 to 8.
_CHANCE = 1.5
_MINUS = str.maketrans("-", "−")
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
#: Lists that are added for the interval of an accuracy and of a difference of two (Agresti & Coull
#: 1998; Agresti & Caffo 2000): without them, intervals of few lists are too narrow.
_ADDED, _ADDED_DIFFERENCES = (0.0, 0.0, 1.0, 1.0), (-1.0, 1.0)


class BaselineRow(NamedTuple):
    """One way to choose, compared with the adapted weights.

    Attributes:
        name: of the way to choose.
        kind: `adapted`, `baseline`, `feature` (a single one), or `bound` (the random and the best
            candidate).
        lists: the number of lists whose chosen candidate is judged.
        gain: the mean gain.
        share: of the headroom, which is the difference between the random and the best candidate.
        difference: the mean gain of the adapted weights minus that of this row, over the lists
            where both choices are judged; NaN if there are none.
        low: lower end of the 95% interval of the difference, by Student's t over lists.
        high: upper end.
        gain_low: lower end of the 95% interval of an accuracy; NaN for another gain.
        gain_high: upper end.
        log_loss: the mean −log p of the answers; NaN if the choice has no probability.

    >>> row = BaselineRow("first candidate", "baseline", 40, 1.0, 0.2, 0.5, 0.25, 0.75)
    >>> row.verdict, row.cells
    ('better', ['first candidate', '1.000', '20%', '+0.500', '+0.250 to +0.750', 'better'])
    >>> BaselineRow("adapted weights", "adapted", 9, 0.75, 0.5, gain_low=0.5, gain_high=0.9).cells
    ['adapted weights', '0.750', '0.500 to 0.900', '–', '–', '–', '–']
    """

    name: str
    kind: str
    lists: int
    gain: float
    share: float
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    gain_low: float = math.nan
    gain_high: float = math.nan
    log_loss: float = math.nan

    @property
    def verdict(self) -> str:
        """Whether the adapted weights are `better` or `worse`, or `tie` if the interval has 0.

        Empty if there is no difference. Where it is the same on all lists, there is no interval,
        and a sign test decides.
        """
        if math.isnan(self.difference):
            return ""
        low, high = self.low, self.high
        if math.isnan(low) and self.lists >= SAME_SIGNS:
            low = high = self.difference
        return BETTER if low > 0 else WORSE if high < 0 else TIE

    def difference_in_words(self, unit: str = "") -> str:
        """Return the difference in a unit, with its interval if it has one.

        >>> BaselineRow("first candidate", "baseline", 5, 1.0, 0.2, 0.5).difference_in_words("mqm")
        '+0.500 mqm'
        """
        *_, difference, interval, _ = self.cells
        words = f"{difference} {unit}".rstrip()
        return f"{words}, {_PERCENT} interval {interval}" if math.isfinite(self.low) else words

    @property
    def cells(self) -> list[str]:
        """The cells of the printed row."""
        interval, spread = "–", abs(self.gain)
        if math.isfinite(self.low):
            spread = (self.high - self.low) / 2
        digits = f".{choose_decimals(spread, _DECIMALS)}f"
        if math.isfinite(self.low):
            interval = f"{self.low:+{digits}} to {self.high:+{digits}}"
        cells = [_number(self.gain, digits), _number(100 * self.share, ".0f", "%")]
        if math.isfinite(self.gain_low):
            of_gain = f"{self.gain_low:.3f} to {self.gain_high:.3f}"
            cells[1:] = [of_gain, _number(self.log_loss, ".3f")]
        cells += [_number(self.difference, f"+{digits}"), interval, self.verdict or "–"]
        return [self.name, *(text.translate(_MINUS) for text in cells)]


@dataclass(frozen=True)
class BaselineComparison:
    """Adapted weights compared with baselines on lists with gains.

    Attributes:
        rows: the adapted weights (if they were compared), the baselines, single features, the
            random and the best candidate.
        baselines: as selected on the adaptation sentences.
        unit: the name of the gain; `accuracy` for preferences.
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
    ...     BaselineRow("best single feature", "baseline", 9, 1.5, 0.75, -0.5, -1.25, 0.25),
    ... ]
    >>> selected = Baselines(feature="comet", directions={"comet": 1}, best="best single feature")
    >>> result = BaselineComparison(tuple(rows), selected, "mqm")
    >>> result.baseline.gain, result.baseline.verdict, result.row("adapted weights").share
    (1.5, 'tie', 0.5)
    >>> result.warning, result.notes
    ('', [])
    >>> print(result.summary)
    the adapted weights are as good as the best single feature (comet), as far as 9 lists show ...
    >>> result.block().header
    ['choice', 'mean mqm', 'of headroom', 'adapted − it', '95% interval', 'adapted is']
    """

    rows: tuple[BaselineRow, ...]
    baselines: Baselines
    unit: str
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
        return self.row(self.baselines.best)

    @property
    def warning(self) -> str:
        """A warning if the best baseline is better than the adapted weights, or nothing is learned.

        Empty otherwise.
        """
        row = self.baseline
        if row is not None and row.verdict == WORSE:
            return (
                f"on {format_count(row.lists, 'list')} the {self._named(row)} has a higher "
                f"{self.measure} than the adapted weights (adapted minus baseline: "
                f"{row.difference_in_words()}; {self.evaluation}); to use it, "
                f"{self.baselines.advice(row.name)}"
            )
        if self.association is None or self.association >= _CHANCE:
            return ""
        explained = f"({self.association:.1f} standard errors above chance, {self.evaluation})"
        if self.unit == ACCURACY:
            simple = f"; {self.summary}" if row is not None and self._not_better(row) else ""
            return (
                "the answers do not separate the features: the adapted weights barely explain them "
                f"{explained}{simple}; give more answers, or add features"
            )
        return (
            "the judged lists do not separate the features: the adapted weights barely explain the "
            f"gains of their candidates {explained}; judge more lists, or add features"
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
        best, parts = self.baseline, []
        if self.evaluation != NEW or best is None or best.verdict != BETTER:
            return ""
        for verdict, words in ((TIE, "not clearly better than"), (WORSE, "worse than")):
            rows = [row for row in self.rows if (row.kind, row.verdict) == ("baseline", verdict)]
            found = [
                f"the {self._named(row)} (difference {row.difference_in_words()})" for row in rows
            ]
            parts += [f"{words} {' and '.join(found)}"] if found else []
        return ", and ".join(parts)

    @property
    def _than_baseline(self) -> str:
        row = self.baseline
        if row is None or not row.verdict:
            return ""
        compared = f"{row.verdict} than the {self._named(row)}"
        if row.verdict == TIE:
            compared = "not better than" if self._not_better(row) else "as good as"
            lists = format_count(row.lists, "list")
            compared += f" the {self._named(row)}, as far as {lists} show"
        both = ""
        if self.unit == ACCURACY and (adapted := self.row(ADAPTED)) is not None:
            both = f"accuracy {adapted.gain:.3f} against {row.gain:.3f}, "
        unit = "" if both else self.unit
        return (
            f"the adapted weights are {compared} ({both}difference {row.difference_in_words(unit)})"
        )

    def _not_better(self, row: BaselineRow) -> bool:
        """Return whether the adapted weights have no higher accuracy than a baseline."""
        return self.unit == ACCURACY and row.difference <= 0

    @property
    def share_of_best(self) -> str:
        """How often the adapted weights choose one of the best candidates, as far as is known.

        This estimates how often choices are right, which the predictive distribution does not.
        Empty if it was not computed.
        """
        if self.best is None:
            return ""
        count, lists = self.best
        low, high = estimate_proportion(count, lists)
        return (
            f"of {format_count(lists, 'adaptation list')}, {100 * count / lists:.0f}% have a "
            f"choice among the best candidates ({LEFT_OUT}, {_PERCENT} interval {100 * low:.0f}% "
            f"to {100 * high:.0f}%)"
        )

    @property
    def of_indicators(self) -> str:
        """One sentence on whether to keep the indicators; empty if they were not compared.

        >>> rows = [
        ...     BaselineRow("adapted weights", "adapted", 20, -1.5, 0.25),
        ...     BaselineRow(WITHOUT, "baseline", 20, -1.25, 0.5, -0.25, -0.375, -0.125),
        ... ]
        >>> result = BaselineComparison(tuple(rows), Baselines(indicators="system"), "mqm")
        >>> print(result.of_indicators)
        with the indicators of system the choices have a mean mqm of -1.5, without them -1.25 ...
        """
        row = self.row(WITHOUT)
        if row is None or not row.verdict:
            return ""
        remedy = self.baselines.advice(WITHOUT)
        advice = {
            BETTER: f"keep categorical {self.baselines.indicators}",
            WORSE: remedy,
            TIE: "the difference is not clear"
            + (f"; {remedy} if more lists confirm it" if row.difference < 0 else ""),
        }[row.verdict]
        return (
            f"with the indicators of {self.baselines.indicators} the choices have a mean "
            f"{self.unit} of {row.gain + row.difference:.3g}, without them {row.gain:.3g} "
            f"({format_count(row.lists, 'list')}, {self.evaluation}; difference "
            f"{row.difference_in_words()}): {advice}"
        )

    @property
    def notes(self) -> list[str]:
        """Sentences on how the numbers were computed."""
        used, judgement, lacking = "gains", "candidate", "without a gain"
        if self.unit == ACCURACY:
            used, judgement, lacking = "answers", "answer", "of “no difference”"
        notes = []
        if self.evaluation == LEFT_OUT:
            notes.append(f"Leave-one-out: choices from a list do not use its {used}.")
        if self.evaluation == IN_SAMPLE:
            notes.append(f"In-sample: the adapted weights use the {used} of these lists.")
        if self.doubtful:
            notes.append(f"Unreliable for {format_count(self.doubtful, 'list')} (Pareto k̂ > 0.7).")
        if self.unjudged:
            notes.append(f"{format_count(self.unjudged, judgement)} {lacking} left out.")
        return notes

    def row(self, name: str) -> BaselineRow | None:
        """Return the row of one way to choose; None if there is none."""
        return next((row for row in self.rows if row.name == name and row.kind != "feature"), None)

    def block(self) -> Table:
        """Return the table, with at most ten single features."""
        accuracy = self.unit == ACCURACY
        measures = [f"{_PERCENT} interval", "log loss"] if accuracy else ["of headroom"]
        header = ["choice", self.measure, *measures]
        if self.row(ADAPTED) is not None:
            header += ["adapted − it", f"{_PERCENT} interval", "adapted is"]
        left_out = sorted((r for r in self.rows if r.kind == "feature"), key=lambda r: -r.gain)
        left_out = left_out[_MAX_FEATURES:]
        if accuracy:  # a random candidate is right in half of the pairs
            left_out += [row for row in self.rows if row.kind == "bound"]
        cells = [
            [self._named(row), *row.cells[1:]][: len(header)]
            for row in self.rows
            if row not in left_out
        ]
        explained = _OF_ACCURACY if accuracy else _OF_GAIN.format(unit=self.unit)
        return Table(header, cells, " ".join([explained, _SELECTED, *self.notes]))

    def _repr_html_(self) -> str:
        return self.block().html()

    def __str__(self) -> str:
        table = self.block()
        rows, align = [list(map(str, row)) for row in table.rows], "r" * (len(table.header) - 1)
        return "\n".join([format_table(rows, table.header, align=f"l{align}"), *self.notes])

    def record(self) -> dict[str, Any]:
        """Return the comparison as plain values, which `from_record` reads."""
        record = asdict(self)
        record["rows"] = [[None if cell != cell else cell for cell in row] for row in self.rows]
        if not self.baselines.indicators:
            del record["baselines"]["indicators"], record["baselines"]["without"]
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> BaselineComparison:
        """Return a comparison from its record.

        Raises:
            DataError: if it is invalid.

        >>> row = BaselineRow("adapted weights", "adapted", 9, 1.0, 0.5)
        >>> one = BaselineComparison((row,), Baselines(), "mqm")
        >>> str(BaselineComparison.from_record(one.record())) == str(one)
        True
        """
        try:
            rows = [[math.nan if cell is None else cell for cell in row] for row in record["rows"]]
            return msgspec.convert({**record, "rows": rows}, cls)
        except (KeyError, TypeError, msgspec.ValidationError) as error:
            message = f"the comparison with baselines cannot be read ({error}): adapt again"
            raise DataError(message, code="damaged") from error

    def _named(self, row: BaselineRow) -> str:
        baselines = self.baselines
        return baselines.described(row.name) if row.kind == "feature" else baselines.named(row.name)


def sum_gains(
    ways: Mapping[tuple[str, str], Float64],
    bounds: Mapping[str, Float64],
    weight: Float64,
    log_loss: Mapping[str, Float64] | None = None,
) -> dict[tuple[str, str], Float64]:
    """Return sums over lists for `make_rows`; those of more lists can be added to them.

    All arrays are (sentences,), NaN where a choice is not judged.

    Args:
        ways: gains of the ways to choose by kind and name; the kinds are `adapted`, `baseline` and
            `feature`.
        bounds: gains of a random candidate and of the best.
        weight: of each list.
        log_loss: the mean −log p of the answers, of ways to choose that have a p.

    Returns:
        (14,) sums by kind and name, the bounds last.

    >>> bounds = {RANDOM: np.zeros(2), BEST: np.full(2, 4.0)}
    >>> ways = {("adapted", ADAPTED): np.array([3.0, 3.0]), ("baseline", FIRST): np.array([1.0, 3])}
    >>> row = make_rows(sum_gains(ways, bounds, np.ones(2)))[1]
    >>> row.name, row.gain, row.share, row.difference
    ('first candidate', 2.0, 0.5, 1.0)
    """
    missing, result = weight * np.nan, {}
    adapted = ways.get(("adapted", ADAPTED), missing)
    ways = {**ways, **{("bound", name): gains for name, gains in bounds.items()}}
    for kind, name in sorted(ways, key=lambda way: _KINDS.index(way[0])):
        gains = ways[kind, name]
        loss = (log_loss or {}).get(name, missing)
        parts = weight**0, weight * bounds[RANDOM], weight * bounds[BEST], weight * loss
        sums = [np.sum(part, where=np.isfinite(gains)) for part in parts]
        difference = missing if kind == "adapted" else adapted - gains
        result[kind, name] = np.array(
            [*sums, *sum_moments(gains, weight), *sum_moments(difference, weight)]
        )
    return result


def sum_moments(values: npt.ArrayLike, weight: Float64) -> list[float]:
    """Return Σ w, Σ w², Σ w x, Σ w² x and Σ w² x² of finite values x with weights w.

    >>> sum_moments([1.0, np.nan, 3.0], np.array([1.0, 1.0, 2.0]))
    [3.0, 5.0, 7.0, 13.0, 37.0]
    """
    x = np.asarray(values, np.float64)
    x, w = x[np.isfinite(x)], weight[np.isfinite(x)]
    return [float(part.sum()) for part in (w, w**2, w * x, w**2 * x, (w * x) ** 2)]


def make_rows(
    sums: Mapping[tuple[str, str], Float64], *, accuracy: bool = False
) -> tuple[BaselineRow, ...]:
    """Return the rows of the adapted weights, baselines, single features and bounds.

    Args:
        sums: from `sum_gains`.
        accuracy: whether the gain is the accuracy. The first candidate is left out if its order
            was made from the answers.
    """
    rows = []
    for (kind, name), values in sums.items():
        count, random, best, loss = values[:4].tolist()
        of_gain, of_difference = values[4:9], values[9:]
        if not count:
            rows.append(BaselineRow(name, kind, 0, math.nan, math.nan))
            continue
        weight, _, gain, *_ = of_gain.tolist()
        headroom = (gain - random) / (best - random) if best > random else math.nan
        interval = estimate_mean(of_difference, _ADDED_DIFFERENCES if accuracy else ())
        row = BaselineRow(name, kind, int(count), gain / weight, headroom, *interval)
        if accuracy:
            _, low, high = estimate_mean(of_gain, _ADDED)
            low, high = max(low, 0.0), min(high, 1.0)
            row = row._replace(gain_low=low, gain_high=high, log_loss=loss / weight)
        if not (accuracy and name == FIRST and is_ordered(row.gain, row.lists)):
            rows.append(row)
    return tuple(rows)


def estimate_mean(sums: npt.ArrayLike, added: Sequence[float] = ()) -> tuple[float, float, float]:
    """Return the weighted mean of numbers and its 95% interval by Student's t.

    Equal numbers have no interval, NaN: that of a few would be of no width.

    The number of degrees of freedom is (Σ w)² / Σ w² − 1, for equal weights one less than that of
    the numbers.

    Args:
        sums: (5,) from `sum_moments`.
        added: further numbers of a typical weight, for the interval only.

    >>> [round(x, 3) for x in estimate_mean(sum_moments([1.0, 2.0, 3.0, 4.0], np.ones(4)))]
    [2.5, 0.446, 4.554]
    """
    from scipy.special import stdtrit

    sums = np.asarray(sums, np.float64)
    if not sums[0]:
        return math.nan, math.nan, math.nan
    mean, typical = float(sums[2] / sums[0]), float(sums[1] / sums[0])
    sums = sums + sum_moments(added, np.full(len(added), typical))
    weight, squared, total, weighted, squares = sums.tolist()
    freedom, centre = weight**2 / squared - 1, total / weight
    if freedom < 1e-9:
        return mean, math.nan, math.nan
    residual = squares - 2 * centre * weighted + centre**2 * squared
    if residual <= 1e-12 * squares:  # all numbers are equal, but for rounding errors
        return mean, math.nan, math.nan
    spread = residual / weight**2
    variance = spread * (freedom + 1) / freedom
    quantile = stdtrit(math.inf if len(added) else freedom, (1 + PROBABILITY) / 2)
    reach = float(quantile) * math.sqrt(variance)
    return mean, centre - reach, centre + reach


def estimate_proportion(count: float, total: int) -> tuple[float, float]:
    """Return the 95% score interval of a proportion (Wilson 1927).

    Args:
        count: of successes.
        total: of trials, at least 1.

    >>> [round(end, 3) for end in estimate_proportion(8, 10)]
    [0.49, 0.943]
    """
    from scipy.special import ndtri

    z = float(ndtri((1 + PROBABILITY) / 2))
    centre = (count + z**2 / 2) / (total + z**2)
    reach = z * math.sqrt(count * (total - count) / total + z**2 / 4) / (total + z**2)
    return max(centre - reach, 0.0), min(centre + reach, 1.0)


def _number(value: float, form: str, unit: str = "") -> str:
    return f"{value:{form}}{unit}" if math.isfinite(value) else "–"
