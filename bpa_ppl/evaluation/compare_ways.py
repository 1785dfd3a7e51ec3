"""Compare adapted weights with simple ways to choose, by leave-one-out or on new lists.

The gain None stands for preferences, whose gain is the accuracy.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import Note, format_count
from bpa_ppl.adaptation_record import AdaptationRecord
from bpa_ppl.diagnostics.page import Outcome, Table
from bpa_ppl.errors import DataError
from bpa_ppl.evaluation.gain import (
    ACCURACY,
    choose_compared_gain,
    explain_missing_gains,
    find_lengths,
    name_gain,
    uses_preferences,
)
from bpa_ppl.evaluation.leave_one_out import leave_out, require_adapted
from bpa_ppl.evaluation.paired import (
    ADDED,
    ADDED_DIFFERENCES,
    BETTER,
    INTERVAL,
    UNCLEAR,
    WORSE,
    estimate_interval,
    estimate_proportion,
)
from bpa_ppl.evaluation.simple_ways import BaselineRow, Evaluation, Way, fit_ways, list_simple_ways
from bpa_ppl.features.recipe import Recipe
from bpa_ppl.gains.column import Column
from bpa_ppl.gains.gains import default_gain, resolve
from bpa_ppl.gains.gains import gains as gains_in
from bpa_ppl.gains.judged import Judged
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.preferences import has_preferences
from bpa_ppl.lists.nbest import NBest, demote_to_extras, to_choice
from bpa_ppl.posterior.statistics import POOR_PARETO_K
from bpa_ppl.weight_draws import WeightDraws, as_weight_draws

if TYPE_CHECKING:
    from bpa_ppl.features.recipe import MovedFiles
    from bpa_ppl.posterior.arviz_data import Posterior

#: Fewer lists are not expected to separate the features.
_MIN_LISTS = 10
#: The least probability, whose logarithm is finite.
_TINY = np.finfo(np.float64).tiny
#: The kinds of rows, in the order of the table.
_ROW_KINDS = ("adapted", "baseline", "feature", "bound")
LEFT_OUT, IN_SAMPLE, NEW = "leave-one-out", "in-sample", "new lists"
#: Notes on the evaluation.
_EVALUATED = {
    LEFT_OUT: "Leave-one-out: choices from a list do not use its judgements, except for the "
    "direction of each feature alone.",
    IN_SAMPLE: "In-sample: the adapted weights use the judgements of these lists.",
    NEW: "",
}
_MAX_FEATURES = 10  # in a printed table
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
    "(Student's t, paired over lists), unclear if it contains 0."
)
_OF_ACCURACY = (
    "Share of the pairs of candidates that each way to choose orders as the judge did, ½ for equal "
    "scores; the mean −log p of the answers (log loss), of the mean of the features that with one "
    "fitted slope; and the difference of the adapted weights, unclear if its interval contains 0. "
    "Intervals are over lists. Equal weights choose by the mean of the standardised features."
)
_SELECTED = "Features, systems and regressions are those of the adaptation sentences."
#: How a verdict is named in a sentence.
_COMPARED = {BETTER: BETTER, UNCLEAR: "not clearly better", WORSE: WORSE}


@dataclass(frozen=True)
class BaselineComparison(Outcome):
    """Adapted weights compared with baselines on lists with gains.

    Attributes:
        rows: the adapted weights (if they were compared), the baselines, single features, the
            random and the best candidate.
        unit: the name of the gain; `accuracy` for preferences.
        selected: the name of the baseline: that of the highest mean gain on the adaptation
            sentences or, for choices that are compared with earlier ones, how those were made.
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
    (1.5, 'unclear', 0.5)
    >>> print(result.messages[0].message)
    the adapted weights are not clearly better than the best single feature (comet): mean mqm ...
    >>> print(result)
    choice                       mean mqm  random 0%, best 100%  adapted − it  95% interval  ...
    adapted weights              1.000     50%                   –             –             ...
    best single feature (comet)  1.500     75%                   −0.500        −1.250 to +0.250 ...
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
        """The row of the selected baseline."""
        return self.row(self.selected)

    def sentence(self, row: BaselineRow, *, advise: bool = True) -> str:
        """Return one sentence on how the adapted weights compare with a way to choose.

        Args:
            row: one of the rows, with a difference; otherwise the sentence is empty.
            advise: Add how to use the way, if the adapted weights are not better than it.
        """
        if not row.verdict:
            return ""
        article = "a" if row.kind == "bound" else "the"
        is_new = self.evaluation == NEW
        lists = format_count(row.lists, "new list" if is_new else "list")
        advice = row.advice if advise and row.difference <= 0 else ""
        if advice and row.verdict == UNCLEAR:
            advice += ", if more lists confirm it"
        elif advice and self.evaluation == LEFT_OUT and row.weights and row.name != Way.SYSTEM:
            advice += ", or choose by the rule best"
        return (
            f"the adapted weights are {_COMPARED[row.verdict]} than {article} {row.label}: "
            f"{row.change(self.measure)} on {lists}{'' if is_new else f', {self.evaluation}'}"
            f"{advice and f'; {advice}'}"
        )

    @property
    def messages(self) -> list[Note]:
        """Messages on the best baseline, others that are not beaten, and the best candidates.

        The first one is a warning if the best baseline is better than the adapted weights, or the
        scores of these do not explain the gains.
        """
        row, level = self.baseline, logging.INFO
        first = "" if row is None else self.sentence(row)
        if row is not None and row.verdict == WORSE:
            level = logging.WARNING
        elif self.association is not None and self.association < _CHANCE:
            level = logging.WARNING
            simple = f"; {first}" if row is not None and row.difference <= 0 else ""
            first = (
                "the judgements do not separate the features: the adapted weights barely explain "
                f"them ({self.association:.1f} standard errors above chance, {self.evaluation})"
                f"{simple}; give more of them, or add features"
            )
        others = (self.sentence(other) for other in self.others)
        notes = Note(level, first), *(Note(logging.INFO, m) for m in (*others, self.share_of_best))
        return [note for note in notes if note.message]

    @property
    def others(self) -> list[BaselineRow]:
        """Other ways that the choices from new lists do not beat, if they beat the baseline."""
        if self.evaluation != NEW or self.baseline is None or self.baseline.verdict != BETTER:
            return []
        return [r for r in self.rows if r.kind != "feature" and r.verdict in (UNCLEAR, WORSE)]

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
    def notes(self) -> list[str]:
        """Sentences on how the numbers were computed."""
        notes = list(filter(None, [_EVALUATED[self.evaluation]]))
        if self.doubtful:
            notes.append(f"Unreliable for {format_count(self.doubtful, 'list')} (Pareto k̂ > 0.7).")
        if self.unjudged and self.unit == ACCURACY:
            notes.append(f"{format_count(self.unjudged, 'answer')} of “no difference” left out.")
        elif self.unjudged:
            notes.append(f"{format_count(self.unjudged, 'candidate')} without a gain left out.")
        return notes

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
        header = ["choice", self.measure, INTERVAL, "log loss", "random 0%, best 100%"]
        header += ["adapted − it", INTERVAL, "adapted is"]
        rows = [row.cells for row in self.rows if row not in left_out]
        caption = " ".join([explained, _SELECTED, *self.notes])
        return Table(header, rows, caption).without_empty()

    def _summarise(self) -> tuple[str, Table, Sequence[str]]:
        return "", self.block(), self.notes


def compare_baselines(
    lists: NBest,
    posterior: Posterior | None = None,
    *,
    choice: npt.ArrayLike | None = None,
    gain: str | Metric | None = None,
    moved_files: MovedFiles | None = None,
) -> BaselineComparison:
    """Compare adapted weights with simple ways to choose, on lists with gains or preferences.

    The baselines are the first candidate, the total of the decoder, the canonical weights, the mean
    of the standardised features, the best single feature, the best single system, and a ridge
    regression of the gains on all features; for preferences, a logistic regression. The gain of
    preferences is the accuracy, ½ where scores are equal.

    On the adaptation sentences everything is leave-one-out, the posterior by Pareto-smoothed
    importance sampling (Vehtari et al. 2017); regressions leave out a tenth of the sentences at a
    time.

    Args:
        lists: the lists that the posterior was adapted to; with `choice`, new ones.
        posterior: from `adapt`; None compares only the baselines.
        choice: (sentences,) the position that `rerank` chose from each new list. None compares by
            leave-one-out.
        gain: None uses that of the posterior, or the default of `adapt` without canonical weights.
        moved_files: as for `rerank`.

    Raises:
        DataError: if lists and posterior do not fit together, such as by the ids of the lists, or
            fewer than two lists have two judged candidates or a preference.
        UsageError: if a choice is not a position in each list.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a", "b"]] * 4, [[[0.0, 0.5], [1.0, 0.75]]] * 4, ["Length", "comet"],
    ...     extras={"mqm": [[-1.0, 0.0], [-1.0, 0.0], [-2.0, 0.0], [0.0, -1.0]]},
    ... )
    >>> result = compare_baselines(lists, gain="mqm")
    >>> result.row("best single feature").label, result.row("best single feature").gain
    ('best single feature (Length)', -0.25)
    """
    require(lists, NBest, "baselines are compared on n-best lists (NBest)")
    if posterior is None:
        metric = resolve(gain or default_gain(lists, canonical=False), lists)
        lacking = gain is None and "references" in metric.needs and lists.references is None
        if lacking and has_preferences(lists):
            return _compare(Judged.by_preferences(lists), None)
        judged = Judged.by_gains(demote_to_extras(lists, metric.columns))
        return _compare(judged.scored(metric), metric)
    draws = as_weight_draws(posterior)
    gain = choose_compared_gain(lists, draws) if gain is None else resolve(gain, lists)
    if gain is None and not has_preferences(lists):
        raise explain_missing_gains(lists, draws)
    recipe = Recipe.of(draws, moved_files)
    if choice is None:
        judge = Judged.by_preferences if gain is None else Judged.by_gains
        return _compare(judge(recipe.for_training(lists).lists).scored(gain), gain, draws)
    positions = to_choice(lists, choice)
    choices = NewChoices(draws, gain).add(recipe.apply(lists), positions)
    if (comparison := choices.comparison) is None:
        raise explain_missing_gains(lists, draws)
    return comparison


def compare_adapted(
    draws: WeightDraws, judged: Judged, gain: Metric | None
) -> BaselineComparison | None:
    """Return the comparison of adapted weights that a posterior records.

    None if fewer than two lists are judged, or the gain is a metric and there are canonical
    weights: then the comparison with these is relevant.
    """
    has_gains = isinstance(gain, Column) or (judged.gains is not None and draws.lacks_canonical)
    if not (has_gains or uses_preferences(draws)):
        return None
    judged = judged.scored(gain)
    return None if len(judged.lists) < 2 else _compare(judged, gain, draws)


def to_record(comparison: BaselineComparison) -> dict[str, Any]:
    """Return a comparison as a posterior records it: see `read_comparison`."""
    recorded: dict[str, Any] = msgspec.to_builtins(comparison)
    defaults = vars(BaselineRow(""))
    recorded["rows"] = [
        {name: value for name, value in row.items() if value == value and value != defaults[name]}
        for row in recorded["rows"]
    ]
    return recorded


def read_comparison(record: AdaptationRecord) -> BaselineComparison | None:
    """Return the comparison on the adaptation sentences that a posterior records, or None.

    Raises:
        DataError: if it cannot be read.
    """
    if record.comparison is None:
        return None
    try:
        return msgspec.convert(record.comparison, BaselineComparison)
    except msgspec.ValidationError as error:
        message = f"not a comparison with baselines ({error}): adapt again"
        raise DataError(message, code="damaged") from error


def _compare(
    judged: Judged, gain: Metric | None, draws: WeightDraws | None = None
) -> BaselineComparison:
    """Return the comparison on adaptation sentences, by leave-one-out.

    Args:
        judged: the adaptation sentences, prepared.
        gain: of the gains; None for preferences.
        draws: the posterior; None compares only the baselines.

    Raises:
        DataError: if fewer than two lists have two judged candidates.
    """
    lists, details = judged.lists, dict[str, Any](evaluation=LEFT_OUT, unjudged=judged.left_out)
    if len(lists) < 2:
        message = "no second list with two judged candidates: a comparison needs at least two"
        raise DataError(message, lists.origin, code="no-data")
    ways = fit_ways(judged, draws)
    if draws is not None:
        require_adapted(draws, lists)
        in_sample = draws.draws.kind == "point" or draws.pointwise is None
        left_out = leave_out(draws, lists, in_sample=in_sample)
        scores, predicted = left_out.score(), left_out.predict_answers(judged)
        ways.append(_evaluate_adapted(judged, judged.gain_of(scores), predicted))
        details["doubtful"] = int(np.sum(left_out.pareto_k > POOR_PARETO_K))
        if in_sample:
            details["evaluation"] = IN_SAMPLE
        else:
            details["predictions"] = tuple(map(tuple, predicted.round(6).tolist()))
            details["best"] = judged.count_best(scores)
            if len(lists) >= _MIN_LISTS:
                details["association"] = judged.association(scores)
    rows = estimate_rows(judged.weight, with_bounds(judged, ways), accuracy=gain is None)
    rows = _divide(rows, float(np.average(find_lengths(lists, gain), weights=judged.weight)))
    simple = [row for row in rows if row.kind == "baseline"]
    best = max(simple, key=lambda row: row.gain, default=BaselineRow(""))
    return BaselineComparison(rows, name_gain(gain), best.name, **details)


def _divide(rows: Iterable[BaselineRow], length: float) -> tuple[BaselineRow, ...]:
    """Return rows whose gains, and their differences, are divided by a mean length."""
    if length == 1 or not length > 0:
        return tuple(rows)
    names = "gain", "difference", "low", "high"
    return tuple(replace(row, **{n: getattr(row, n) / length for n in names}) for row in rows)


def _evaluate_adapted(judged: Judged, gains: Float64, predicted: Float64) -> Evaluation:
    """Return the adapted weights with their gains, and the log loss from predicted answers."""
    row = BaselineRow(Way.ADAPTED, "adapted")
    if judged.pairs is None:
        return Evaluation(row, gains)
    return Evaluation(row, gains, judged.mean_of_pairs(-np.log(np.maximum(predicted[:, 0], _TINY))))


def with_bounds(judged: Judged, ways: Iterable[Evaluation]) -> list[Evaluation]:
    """Return ways in the order of a table, with a random candidate and the best one."""
    bounds = (Way.RANDOM, judged.random), (Way.BEST, judged.best)
    ways = [*ways, *(Evaluation(BaselineRow(name, "bound"), gains) for name, gains in bounds)]
    return sorted(ways, key=lambda way: _ROW_KINDS.index(way.row.kind))


def estimate_rows(
    weight: Float64, ways: Sequence[Evaluation], *, accuracy: bool = False
) -> tuple[BaselineRow, ...]:
    """Return the rows of ways to choose: their means over lists, and differences with intervals.

    Args:
        weight: (lists,) of each list.
        ways: from `with_bounds`, with gains of these lists.
        accuracy: whether the gain is the accuracy. The first candidate is left out if its order
            was made from the answers.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]] * 2, [[[0.0], [1.0]]] * 2, ["LM0"])
    >>> judged = Judged.by_gains(lists, np.array([0.0, 4.0, 4.0, 0.0]))
    >>> first = Evaluation(BaselineRow("first candidate"), np.array([0.0, 4.0]))
    >>> adapted = Evaluation(BaselineRow("adapted weights", "adapted"), np.array([4.0, 4.0]))
    >>> row = estimate_rows(judged.weight, with_bounds(judged, [first, adapted]))[1]
    >>> row.name, row.gain, row.share, row.difference
    ('first candidate', 2.0, 0.0, 2.0)
    """
    gains_of, result = {way.row.name: way.gains for way in ways if way.row.kind != "feature"}, []
    adapted = gains_of.get(Way.ADAPTED, np.full(len(weight), np.nan))
    added, added_differences = (ADDED, ADDED_DIFFERENCES) if accuracy else ((), ())
    for way, gains, log_loss in ways:
        is_judged = np.isfinite(gains)
        mean, low, high = estimate_interval(gains, weight, added)
        numbers: dict[str, Any] = {"lists": int(is_judged.sum()), "gain": mean}
        if way.kind != "adapted":
            estimated = estimate_interval(adapted - gains, weight, added_differences)
            numbers |= zip(("difference", "low", "high"), estimated, strict=True)
        if accuracy:
            numbers |= {"gain_low": max(low, 0.0), "gain_high": min(high, 1.0)}
            if log_loss is not None:
                loss = float(np.sum(weight * log_loss, where=is_judged))
                numbers["log_loss"] = loss / float(weight[is_judged].sum())
        else:
            bounds = (gains_of[name] for name in (Way.RANDOM, Way.BEST))
            random, best = (float(np.sum(weight * of, where=is_judged)) for of in bounds)
            total = float(np.sum((weight * gains)[is_judged]))
            numbers["share"] = (total - random) / (best - random) if best > random else math.nan
        # In data sets of `chosen` and `rejected` answers, the order was made from the answers.
        ordered = accuracy and mean == 1 and numbers["lists"] >= _ORDERED
        if not (ordered and way.name == Way.FIRST):
            numbers |= {"weights": way.weights, "column": way.column, "slope": way.slope}
            result.append(BaselineRow(str(way.name), way.kind, **numbers))
    return tuple(result)


class NewChoices:
    """Choices from new lists, compared with simple ways to choose, part by part.

    If the posterior does not record baselines that were selected on its adaptation sentences, the
    better of the first candidate and the mean of the standardised features is used, by the gains of
    the new lists, which favours the baseline.

    Args:
        draws: the posterior.
        gain: a metric or a column; None for preferences.

    Attributes:
        recorded: the comparison on the adaptation sentences; None if it is not recorded.
    """

    def __init__(self, draws: WeightDraws, gain: Metric | None):
        self.recorded = read_comparison(draws.adaptation)
        self._draws, self._gain, self._unjudged = draws, gain, 0
        self._ways = () if self.recorded is None else self.recorded.rows
        #: Of each part, the weights of its lists, and the ways to choose.
        self._parts: list[tuple[Float64, list[Evaluation]]] = []
        self._lengths: list[Float64] = []

    def add(self, lists: NBest, choice: Int64) -> NewChoices:
        """Add lists with the features of the posterior, and choices from them; return all.

        For equal scores a baseline chooses the first. Preferences are compared by scores: those of
        the posterior, with each chosen candidate above the others.

        Args:
            lists: the lists (S of them).
            choice: (S,) positions.
        """
        if self._gain is None:
            judged = Judged.by_preferences(lists)
            lists, choice = judged.lists, choice[judged.sentences]
        else:
            judged = Judged.by_gains(lists, gains_in(lists, self._gain))
        self._unjudged += judged.left_out
        if not len(lists):
            return self
        self._ways = self._ways or tuple(list_simple_ways(lists, self._draws))
        ways = list[Evaluation]()
        for row in (BaselineRow(Way.FIRST), BaselineRow(Way.TOTAL), *self._ways):
            if (scores := row.scores(lists)) is not None:
                gains = judged.of_choice(lists.best(scores), scores)
                has_p = np.isfinite(row.slope)
                log_loss = judged.log_loss(row.slope * scores) if has_p else None
                ways.append(Evaluation(row, gains, log_loss))
        adapted = predicted = np.empty(0)
        if judged.pairs is not None:
            of_all = leave_out(self._draws, lists, in_sample=True)
            adapted, predicted = of_all.score(), of_all.predict_answers(judged)
        ways.append(_evaluate_adapted(judged, judged.of_choice(choice, adapted), predicted))
        self._parts.append((judged.weight, with_bounds(judged, ways)))
        self._lengths.append(find_lengths(judged.lists, self._gain))
        return self

    @property
    def comparison(self) -> BaselineComparison | None:
        """The comparison of the choices with the baselines; None before any list is judged."""
        if not self._parts:
            return None
        weight, ways = self._join()
        lengths = np.concatenate(self._lengths)
        rows = estimate_rows(weight, ways, accuracy=self._gain is None)
        rows = _divide(rows, float(np.average(lengths, weights=weight)))
        result = BaselineComparison(rows, name_gain(self._gain), unjudged=self._unjudged)
        if self.recorded is not None:
            return replace(result, selected=self.recorded.selected, best=self.recorded.best)
        simple = [row for row in rows if row.name in (Way.FIRST, Way.MEAN)]
        best = max(simple, key=lambda row: row.gain, default=BaselineRow(Way.FIRST))
        return replace(result, selected=best.name)

    def _join(self) -> tuple[Float64, list[Evaluation]]:
        """Return the weights of all lists, and all ways to choose from them.

        A way has no gain, NaN, in parts where the lists lack what it chooses by.
        """
        missing = [np.full(len(weight), np.nan) for weight, _ in self._parts]
        joined = dict[tuple[str, str], tuple[BaselineRow, list[Float64], list[Float64]]]()
        for place, (_, ways) in enumerate(self._parts):
            for row, gains, log_loss in ways:
                _, *parts = joined.setdefault((row.kind, row.name), (row, [*missing], [*missing]))
                parts[0][place] = gains
                parts[1][place] = missing[place] if log_loss is None else log_loss
        evaluated = [Evaluation(row, *map(np.concatenate, of)) for row, *of in joined.values()]
        return np.concatenate([weight for weight, _ in self._parts]), evaluated
