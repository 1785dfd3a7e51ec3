"""The comparison of adapted weights with baselines as a table of gains, headroom and intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from bpa_ppl.columns import counted
from bpa_ppl.diagnostics.baselines.selection import Baselines
from bpa_ppl.diagnostics.pages.page import Table
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64
from bpa_ppl.tables import text_table

ADAPTED = "adapted weights"
RANDOM = "random candidate"
BEST = "best candidate"
LEFT_OUT, IN_SAMPLE, NEW = "leave-one-out", "in-sample", "new lists"
PROBABILITY = 0.95
_PERCENT = f"{100 * PROBABILITY:g}%"
_MAX_FEATURES = 10  # in a printed table
_MINUS = str.maketrans("-", "−")


class BaselineRow(NamedTuple):
    """One way to choose, compared with the adapted weights.

    Attributes:
        name: of the way to choose.
        kind: `adapted`, `baseline`, `feature` (a single one), or `bound` (the random and the best
            candidate).
        lists: the number of lists whose chosen candidate is judged.
        gain: the mean gain.
        headroom: the share of the difference between the random and the best candidate.
        difference: the mean gain of the adapted weights minus that of this row, over the lists
            where both choices are judged; NaN if there are none.
        low: lower end of the 95% interval of the difference, by Student's t over lists.
        high: upper end.

    >>> row = BaselineRow("first candidate", "baseline", 40, 1.0, 0.2, 0.5, 0.25, 0.75)
    >>> row.clear, row.cells
    (True, ['first candidate', '1.000', '20%', '+0.500', '+0.250 to +0.750'])
    """

    name: str
    kind: str
    lists: int
    gain: float
    headroom: float
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def clear(self) -> bool:
        """Whether the interval of the difference excludes 0."""
        return self.low > 0 or self.high < 0

    @property
    def cells(self) -> list[str]:
        """The cells of the printed row."""
        interval = "–"
        if math.isfinite(self.low):
            interval = f"{self.low:+.3f} to {self.high:+.3f}"
        cells = [_number(self.gain, ".3f"), _number(100 * self.headroom, ".0f", "%")]
        cells += [_number(self.difference, "+.3f"), interval]
        return [self.name, *(text.translate(_MINUS) for text in cells)]


@dataclass(frozen=True)
class BaselineComparison:
    """Adapted weights compared with baselines on lists with gains.

    Attributes:
        rows: the adapted weights (if they were compared), the baselines, single features, the
            random and the best candidate.
        baselines: as selected on the adaptation sentences.
        unit: the name of the gain.
        evaluation: `leave-one-out`: choices from a list do not use its gains; `in-sample`: those
            of the adapted weights do; or `new lists`.
        unjudged: the number of candidates without a gain.
        doubtful: the number of lists where leave-one-out is unreliable (Pareto k̂ > 0.7).

    >>> rows = [
    ...     BaselineRow("adapted weights", "adapted", 9, 1.0, 0.5),
    ...     BaselineRow("best single feature", "baseline", 9, 1.5, 0.75, -0.5, -1.25, 0.25),
    ... ]
    >>> selected = Baselines(feature="comet", directions={"comet": 1}, best="best single feature")
    >>> result = BaselineComparison(tuple(rows), selected, "mqm")
    >>> result.adapted.gain, result.baseline.gain, result.row("best single feature").headroom
    (1.0, 1.5, 0.75)
    >>> result.verdict, result.is_beaten, result.notes
    ('unclear', True, [])
    >>> print(result.warning)
    on 9 lists the best single feature (comet) has a higher mean mqm than the adapted weights, ...
    >>> print(result.summary)
    the adapted weights are not clearly different from the best single feature (comet) ...
    >>> result.block().header == result.table()[0]
    True
    >>> result.table()[0]
    ('choice', 'mean mqm', 'of headroom', 'adapted − it', '95% interval')
    """

    rows: tuple[BaselineRow, ...]
    baselines: Baselines
    unit: str
    evaluation: str = NEW
    unjudged: int = 0
    doubtful: int = 0

    @property
    def adapted(self) -> BaselineRow | None:
        """The row of the adapted weights; None if they were not compared."""
        return self.row(ADAPTED)

    @property
    def baseline(self) -> BaselineRow | None:
        """The row of the best baseline, as selected on the adaptation sentences."""
        return self.row(self.baselines.best)

    @property
    def verdict(self) -> str:
        """`better` or `worse` than the best baseline if the interval excludes 0, or `unclear`."""
        row = self.baseline
        if row is None or not row.clear:
            return "unclear"
        return "better" if row.difference > 0 else "worse"

    @property
    def is_beaten(self) -> bool:
        """Whether the best baseline has a higher mean gain than the adapted weights."""
        return self.baseline is not None and self.baseline.difference < 0

    @property
    def warning(self) -> str:
        """A warning if the best baseline has a higher mean gain than the adapted weights."""
        row = self.baseline
        if row is None or not self.is_beaten:
            return ""
        advice = self.baselines.advice(row.name)
        remedy = f"to use it, {advice}"
        if not row.clear:
            remedy = f"the difference may be chance: judge more sentences, or {advice}"
        return (
            f"on {counted(row.lists, 'list')} the {self._named(row)} has a higher mean {self.unit} "
            f"than the adapted weights, by {-row.difference:.3g} ({_PERCENT} interval of adapted "
            f"minus baseline {row.cells[-1]}; {self.evaluation}); {remedy}"
        )

    @property
    def summary(self) -> str:
        """One sentence on the adapted weights and the best baseline."""
        row = self.baseline
        if row is None or self.adapted is None:
            return ""
        baseline_gain = {
            "better": "better than",
            "worse": "worse than",
            "unclear": "not clearly different from",
        }[self.verdict]
        return (
            f"the adapted weights are {baseline_gain} the {self._named(row)} "
            f"(difference {row.cells[-2]} {self.unit}, {_PERCENT} interval {row.cells[-1]})"
        )

    @property
    def notes(self) -> list[str]:
        """Sentences on how the numbers were computed."""
        lines = []
        if self.evaluation == LEFT_OUT:
            lines.append("Leave-one-out: choices from a list do not use its gains.")
        if self.evaluation == IN_SAMPLE:
            lines.append("In-sample: the adapted weights use the gains of these lists.")
        if self.doubtful:
            lines.append(f"Unreliable for {counted(self.doubtful, 'list')} (Pareto k̂ > 0.7).")
        if self.unjudged:
            candidates = counted(self.unjudged, "candidate")
            lines.append(f"{candidates} without a gain left out.")
        return lines

    def row(self, name: str) -> BaselineRow | None:
        """Return the row of one way to choose; None if there is none."""
        return next((row for row in self.rows if row.name == name and row.kind != "feature"), None)

    def table(self) -> tuple[tuple[str, ...], list[list[str]]]:
        """Return the names of the columns, and the rows, with at most ten single features."""
        gains = (f"mean {self.unit}", "of headroom")
        header: tuple[str, ...] = ("choice", *gains, "adapted − it", f"{_PERCENT} interval")
        single = sorted((r for r in self.rows if r.kind == "feature"), key=lambda row: -row.gain)
        kept = {row.name for row in single[:_MAX_FEATURES]}
        shown = [row for row in self.rows if row.kind != "feature" or row.name in kept]
        columns = slice(0, 3 if self.adapted is None else None)
        rows = [[self._named(row), *row.cells[1:]][columns] for row in shown]
        return header[columns], rows

    def block(self) -> Table:
        """Return the table of a page."""
        explained = (
            f"Mean {self.unit} of each way to choose, its share of the difference between the "
            "random and the best candidate, and the difference of the adapted weights from it, "
            "with a 95% interval (Student's t, paired over lists). Features and systems are those "
            "selected on the adaptation sentences."
        )
        return Table(*self.table(), " ".join([explained, *self.notes]))

    def __str__(self) -> str:
        header, rows = self.table()
        return "\n".join([text_table(rows, header, align="l".ljust(len(header), "r")), *self.notes])

    def record(self) -> dict[str, Any]:
        """Return the comparison as plain values, which `from_record` reads."""
        rows = [
            [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row]
            for row in self.rows
        ]
        return {
            "unit": self.unit,
            "evaluation": self.evaluation,
            "unjudged": self.unjudged,
            "doubtful": self.doubtful,
            "baselines": asdict(self.baselines),
            "rows": rows,
        }

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
            cells = [[math.nan if cell is None else cell for cell in row] for row in record["rows"]]
            rows = tuple(BaselineRow._make(row) for row in cells)
            rest = {name: record[name] for name in ("unit", "evaluation", "unjudged", "doubtful")}
            return cls(rows=rows, baselines=Baselines(**record["baselines"]), **rest)
        except (KeyError, TypeError) as error:
            raise DataError(
                f"the posterior's comparison with baselines cannot be read ({error}): adapt again",
                code="damaged",
            ) from error

    def _named(self, row: BaselineRow) -> str:
        if row.kind == "feature":
            return f"low {row.name}" if self.baselines.directions[row.name] < 0 else row.name
        return self.baselines.named(row.name)


class GainSums:
    """Sums over lists from which rows are computed, for lists that are read in parts.

    >>> sums, first = GainSums(), np.array([1.0, 3.0])
    >>> bounds = {RANDOM: np.zeros(2), BEST: np.full(2, 4.0)}
    >>> sums.add(bounds, {"first candidate": first}, {}, np.array([3.0, 3.0]))
    >>> row = sums.rows()[1]
    >>> row.name, row.gain, row.headroom, row.difference
    ('first candidate', 2.0, 0.5, 1.0)
    """

    def __init__(self) -> None:
        kinds = ("adapted", "baseline", "feature", "bound")
        self._sums: dict[str, dict[str, Float64]] = {kind: {} for kind in kinds}

    def add(
        self,
        bounds: Mapping[str, Float64],
        baselines: Mapping[str, Float64],
        features: Mapping[str, Float64],
        adapted: Float64 | None,
    ) -> None:
        """Add the gains of lists; all arrays are (sentences,), NaN where a choice is not judged.

        Args:
            bounds: of a random candidate and of the best.
            baselines: by name.
            features: of the choices by single features, by name.
            adapted: of the choices by adapted weights; None if they are not compared.
        """
        chosen = {} if adapted is None else {ADAPTED: adapted}
        parts = {"baseline": baselines, "feature": features, "bound": bounds, "adapted": chosen}
        unknown = np.full(len(bounds[BEST]), np.nan)
        for kind, gains in parts.items():
            for name, values in gains.items():
                judged = np.isfinite(values)
                of_choice = (judged, values, bounds[RANDOM], bounds[BEST])
                sums = [float(np.sum(part, where=judged)) for part in of_choice]
                difference = unknown if adapted is None or kind == "adapted" else adapted - values
                both = np.isfinite(difference)
                moments = (both, difference, difference**2)
                sums += [float(np.sum(part, where=both)) for part in moments]
                self._sums[kind][name] = self._sums[kind].get(name, 0.0) + np.array(sums)

    def rows(self) -> list[BaselineRow]:
        """Return the rows of the adapted weights, baselines, single features and bounds."""
        rows = []
        for kind, by_name in self._sums.items():
            for name, sums in by_name.items():
                count, gain, random, best, pairs, difference, squares = sums.tolist()
                if not count:
                    rows.append(BaselineRow(name, kind, 0, math.nan, math.nan))
                    continue
                headroom = (gain - random) / (best - random) if best > random else math.nan
                interval = mean_interval(int(pairs), difference, squares)
                rows.append(BaselineRow(name, kind, int(count), gain / count, headroom, *interval))
        return rows


def mean_interval(count: int, total: float, squares: float) -> tuple[float, float, float]:
    """Return the mean of n numbers and its 95% interval by Student's t.

    Args:
        count: n.
        total: the sum of the numbers.
        squares: the sum of their squares.

    >>> [round(x, 3) for x in mean_interval(4, 10.0, 30.0)]  # of 1, 2, 3, 4
    [2.5, 0.446, 4.554]
    """
    if not count:
        return math.nan, math.nan, math.nan
    mean = total / count
    if count == 1:
        return mean, math.nan, math.nan
    variance = max(squares - total * mean, 0.0) / (count - 1)
    reach = float(stdtrit(count - 1, (1 + PROBABILITY) / 2)) * math.sqrt(variance / count)
    return mean, mean - reach, mean + reach


def _number(value: float, form: str, unit: str = "") -> str:
    return f"{value:{form}}{unit}" if math.isfinite(value) else "–"
