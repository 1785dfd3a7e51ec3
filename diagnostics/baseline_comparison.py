"""Compare adapted weights with simple ways to choose, by leave-one-out or on new lists.

The gain None stands for preferences, whose gain is the accuracy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import structs

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import log_info, warn_user
from bpa_ppl.diagnostics.baseline_table import (
    ACCURACY,
    IN_SAMPLE,
    LEFT_OUT,
    BaselineComparison,
    BaselineRow,
    Key,
    Way,
    estimate_rows,
)
from bpa_ppl.diagnostics.baselines import (
    Gains,
    Scored,
    find_indicators,
    fit_ways,
    judge,
    lacks_canonical,
    list_simple_ways,
    sum_gains,
)
from bpa_ppl.diagnostics.check import check_and_record
from bpa_ppl.diagnostics.left_out import TINY, predict_answers, score_left_out
from bpa_ppl.errors import DataError
from bpa_ppl.features.recipe import Recipe, read_gain
from bpa_ppl.metrics.column import Column
from bpa_ppl.metrics.gains import default_gain, resolve
from bpa_ppl.metrics.gains import gains as gains_in
from bpa_ppl.metrics.metric import Metric
from bpa_ppl.metrics.paired import WORSE
from bpa_ppl.metrics.preferences import Comparisons, has_preferences, select_compared
from bpa_ppl.nbest import NBest, demote_to_extras
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.record import IndicatorsRecord
from bpa_ppl.posterior.statistics import POOR_PARETO_K

if TYPE_CHECKING:
    from bpa_ppl.features.recipe import MovedFiles
    from bpa_ppl.posterior.adapter import Posterior

#: Fewer lists are not expected to separate the features.
_MIN_LISTS = 10
#: Metrics whose gains are numbers of words.
_IN_WORDS = ("ter", "bleu", "chrf", "ter+bleu", "wer")


def compare_baselines(
    nbest: NBest,
    posterior: Posterior | None = None,
    *,
    choice: npt.ArrayLike | None = None,
    gain: str | Metric | None = None,
    moved_files: MovedFiles | None = None,
) -> BaselineComparison:
    """Compare adapted weights with simple ways to choose, on lists with gains or preferences.

    The baselines are the first candidate, the total of the decoder, the canonical weights, the
    mean of the standardised features, the best single feature, the best single system, and a ridge
    regression of the gains on all features.

    The gain of preferences is the accuracy: 1 for a pair of candidates that the scores order as the
    judge did, ½ if the scores are equal. The pairs of a ranking share its weight; answers of "no
    difference" are left out, and counted. There is a logistic regression in place of the ridge
    regression and of the best system. Without a chosen gain, preferences are compared if the
    posterior was adapted to some, or if the lists have nothing else to compare by.

    On the adaptation sentences everything is leave-one-out: feature, direction and system are
    selected on the other sentences, and the posterior is that without the sentence, by
    Pareto-smoothed importance sampling (Vehtari et al. 2017). The regressions leave a tenth
    of the sentences out at a time. If the posterior is a single point, or has no log-likelihood of
    the sentences, it is evaluated in-sample, which favours it.

    Args:
        nbest: the lists that the posterior was adapted to, in the same order; or new ones.
        posterior: from `adapt`; None compares only the baselines.
        choice: (sentences,) the position that `rerank` chose from each new list; the baselines are
            then those selected on the adaptation sentences. None compares by leave-one-out.
        gain: of the gains; None uses that of the posterior, or the default of `adapt` without
            canonical weights.
        moved_files: as for `rerank`.

    Raises:
        DataError: if lists and posterior do not fit together, or fewer than two lists have two
            judged candidates or a preference.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists(
    ...     [["a", "b"]] * 4, [[[0.0, 0.5], [1.0, 0.75]]] * 4, ["Length", "comet"],
    ...     extras={"mqm": [[-1.0, 0.0], [-1.0, 0.0], [-2.0, 0.0], [0.0, -1.0]]},
    ... )
    >>> result = compare_baselines(lists, gain="mqm")
    >>> result.row("best single feature").label, result.row("best single feature").gain
    ('best single feature (Length)', -0.25)
    """
    require(nbest, NBest, "baselines are compared on n-best lists (NBest)")
    if posterior is None:
        metric = resolve(gain or default_gain(nbest, canonical=False), nbest)
        lacking = gain is None and "references" in metric.needs and nbest.references is None
        if lacking and has_preferences(nbest):
            return _compare(judge(nbest, None), None)
        return _compare(judge(demote_to_extras(nbest, metric.columns), metric), metric)
    draws = as_draws(posterior)
    gain = choose_compared_gain(nbest, draws) if gain is None else resolve(gain, nbest)
    if gain is None and not has_preferences(nbest):
        raise explain_missing_gains(nbest, draws)
    recipe = Recipe.of(draws, moved_files)
    if choice is None:
        return _compare(judge(recipe.for_training(nbest).nbest, gain), gain, draws)
    choices = ChoiceGains(draws, gain).add(recipe.apply(nbest), np.asarray(choice))
    if not choices.sums:
        raise explain_missing_gains(nbest, draws)
    return choices.comparison


def record_comparison(
    draws: Draws,
    lists: NBest,
    gain: Metric | None,
    gains: Float64 | None,
    without: Draws | None = None,
) -> Draws:
    """Return a posterior with its comparison recorded, and log the result.

    It is a warning where a baseline is better, or the judgements do not separate the features. The
    result of draws that fail their check is not logged, since it may be that of other weights. Only
    if there are preferences, gains are judgements or there are no canonical weights; otherwise the
    comparison with the canonical weights is relevant.

    Args:
        draws: from `adapt`.
        lists: the adaptation sentences, prepared, with their preferences.
        gain: a metric or a column; None for preferences.
        gains: (candidates,) if they are available.
        without: the posterior of the same lists where the weights of indicators are 0. Then only
            the comparison with it is logged, as a warning if its choices are clearly better.
    """
    given = isinstance(gain, Column) or (gains is not None and lacks_canonical(draws))
    if not (given or uses_preferences(draws)):
        return draws
    judged = judge(lists, gain, gains)
    if len(judged.lists) < 2:
        return draws
    comparison = _compare(judged, gain, draws, without)
    draws, report = check_and_record(draws)
    if report and without is not None:
        row = comparison.row(Way.WITHOUT)
        log = warn_user if row is not None and row.verdict == WORSE else log_info
        log(comparison.of_indicators)
    elif report and comparison.warning:
        warn_user(comparison.warning)
        log_info(comparison.share_of_best)
    elif report:
        log_info(comparison.summary)
    recorded = msgspec.to_builtins(comparison)
    return replace(draws, record=structs.replace(draws.record, comparison=recorded))


def describe_left_out(indicators: IndicatorsRecord) -> str:
    """Return a sentence on indicators that `adapt` has left out.

    >>> describe_left_out(IndicatorsRecord(-4.1, ("system",)))[:43]
    'the indicators of system are left out: they'
    """
    return (
        f"the indicators of {', '.join(indicators.left_out)} are left out: they do not explain the "
        "order of the candidates of the judged lists (log Bayes factor "
        f"{indicators.log_bayes_factor:.1f}); to keep them, choose a prior variance"
    )


def describe_indicators(draws: Draws) -> list[str]:
    """Return the sentences on the indicators of a posterior, such as those of systems."""
    indicators, comparison = draws.record.indicators, read_comparison(draws)
    left_out = describe_left_out(indicators) if indicators and indicators.left_out else ""
    return [note for note in (left_out, comparison and comparison.of_indicators) if note]


def read_comparison(draws: Draws) -> BaselineComparison | None:
    """Return the comparison on the adaptation sentences that a posterior records, or None.

    Raises:
        DataError: if it cannot be read.
    """
    if draws.record.comparison is None:
        return None
    try:
        return msgspec.convert(draws.record.comparison, BaselineComparison)
    except msgspec.ValidationError as error:
        message = f"the comparison with baselines cannot be read ({error}): adapt again"
        raise DataError(message, code="damaged") from error


def choose_gain(nbest: NBest, draws: Draws) -> Metric | None:
    """Return the gain by which choices from lists are judged: the one that a posterior records.

    If the posterior records none that is installed, or the lists lack its column, it is the gain
    that `adapt` uses by default.

    Returns:
        None if the lists lack what the gain needs.
    """
    gain = read_gain(draws.record)
    if gain is None or not set(gain.columns) <= {*nbest.feature_names, *nbest.extras}:
        gain = resolve(default_gain(nbest, canonical=draws.record.canonical))
    return gain if has_inputs(nbest, gain) else None


def uses_preferences(draws: Draws) -> bool:
    """Return whether a posterior was adapted to preferences."""
    return draws.record.observed.kind == "preferences"


def choose_compared_gain(nbest: NBest, draws: Draws) -> Metric | None:
    """Return the gain, or None to compare choices by the preferences that lists have.

    These come first if the posterior was adapted to preferences.
    """
    first = uses_preferences(draws) and has_preferences(nbest)
    return None if first else choose_gain(nbest, draws)


def has_inputs(nbest: NBest, gain: Metric) -> bool:
    """Return whether lists have the columns, references and sources that a gain needs."""
    references = bool(nbest.references) and all(nbest.references or ())
    inputs = {"references": references, "sources": nbest.sources is not None}
    has_columns = set(gain.columns) <= {*nbest.feature_names, *nbest.extras}
    return has_columns and all(inputs.get(name, True) for name in gain.needs)


def explain_missing_gains(nbest: NBest, draws: Draws) -> DataError:
    """Return the error for lists that cannot be evaluated: see `choose_gain`."""
    gain, wanted = read_gain(draws.record), "a column of judgements"
    if uses_preferences(draws):
        wanted = "preferences or rankings"
    elif gain is not None and gain.columns:
        wanted = f"the column {', '.join(gain.columns)}"
    elif gain is not None and "sources" in gain.needs and nbest.sources is None:
        message = f"{gain.key} needs the source of each sentence"
        return DataError(message, nbest.origin, parameter="sources", code="missing-sources")
    message = f"the lists have neither references nor {wanted}: add one of them"
    return DataError(message, nbest.origin, parameter="references", code="missing-references")


def _compare(
    judged: Gains | Comparisons,
    gain: Metric | None,
    draws: Draws | None = None,
    without: Draws | None = None,
) -> BaselineComparison:
    """Return the comparison on adaptation sentences, by leave-one-out.

    Args:
        judged: the adaptation sentences, prepared.
        gain: of the gains; None for preferences.
        draws: the posterior; None compares only the baselines.
        without: the posterior whose weights of indicators are 0, if that is compared too.

    Raises:
        DataError: if fewer than two lists have two judged candidates.
    """
    lists, details = judged.lists, dict[str, Any](evaluation=LEFT_OUT, unjudged=judged.left_out)
    if len(lists) < 2:
        message = "baselines need at least two lists with two judged candidates each"
        raise DataError(message, lists.origin, code="no-data")
    scored = [*fit_ways(judged, draws)]
    if draws is not None:
        in_sample = draws.kind == "point" or draws.pointwise is None
        scores, k_hat = score_left_out(draws, lists, in_sample=in_sample)
        predicted = predict_answers(draws, judged, in_sample=in_sample)
        scored.append(_score_adapted(judged, judged.of_scores(scores), predicted))
        details["doubtful"] = int(np.sum(k_hat > POOR_PARETO_K))
        if in_sample:
            details["evaluation"] = IN_SAMPLE
        else:
            details["predictions"] = tuple(map(tuple, predicted.round(6).tolist()))
            details["best"] = judged.count_best(scores) if isinstance(judged, Gains) else None
            if len(lists) >= _MIN_LISTS:
                details["association"] = judged.association(scores)
    if draws is not None and without is not None:
        weights = {name: w for name, w in without.at_point("mean").items() if w}
        columns = ", ".join(source.column for source in find_indicators(draws))
        row = BaselineRow(Way.WITHOUT, weights=weights, column=columns)
        scored.append(Scored(row, judged.of_scores(score_left_out(without, lists)[0])))
    ways, sums = [way.row for way in scored], sum_gains(judged, scored)
    rows = estimate_rows(ways, sums, accuracy=gain is None)
    simple = [row for row in rows if row.kind == "baseline" and row.name != Way.WITHOUT]
    best = max(simple, key=lambda row: row.gain, default=BaselineRow(""))
    return BaselineComparison(rows, name_gain(gain), best.name, **details)


def _score_adapted(judged: Gains | Comparisons, gains: Float64, predicted: Float64) -> Scored:
    """Return the adapted weights with their gains, and the log loss from `predict_answers`."""
    row = BaselineRow(Way.ADAPTED, "adapted")
    if isinstance(judged, Gains):
        return Scored(row, gains)
    log_loss = judged.mean_of_lists(-np.log(np.maximum(predicted[:, 0], TINY)))
    return Scored(row, gains, log_loss)


class ChoiceGains:
    """Gains of choices from new lists, and of baselines, which add up part by part.

    If the posterior does not record baselines that were selected on its adaptation sentences, the
    better of the first candidate and the mean of the standardised features is used, by the gains of
    the new lists, which favours the baseline.

    Args:
        draws: the posterior.
        gain: a metric or a column; None for preferences.

    Attributes:
        recorded: the comparison on the adaptation sentences; None if it is not recorded.
        sums: from `sum_gains`; empty before any list is judged.
    """

    def __init__(self, draws: Draws, gain: Metric | None):
        self.recorded, self.sums = read_comparison(draws), dict[Key, Float64]()
        self._draws, self._gain, self._unjudged = draws, gain, 0
        self._ways = () if self.recorded is None else self.recorded.rows

    def add(self, lists: NBest, choice: Int64) -> ChoiceGains:
        """Add lists with the features of the posterior, and choices from them; return all.

        For equal scores a baseline chooses the first. Preferences are compared by scores: those of
        the posterior, with each chosen candidate above the others.

        Args:
            lists: the lists (S of them).
            choice: (S,) positions.
        """
        judged: Gains | Comparisons
        if self._gain is None:
            judged = select_compared(lists)
            lists, choice = judged.lists, choice[judged.sentences]
        else:
            gains = gains_in(lists, self._gain)
            judged = Gains(lists, gains, int(np.sum(~np.isfinite(gains))))
        self._unjudged += judged.left_out
        if not len(lists):
            return self
        self._ways = self._ways or tuple(list_simple_ways(lists, self._draws))
        scored = list[Scored]()
        for row in (BaselineRow(Way.FIRST), BaselineRow(Way.TOTAL), *self._ways):
            if (scores := row.scores(lists)) is not None:
                gains = judged.of_choice(lists.best(scores), scores)
                has_p = np.isfinite(row.slope)
                log_loss = judged.log_loss(row.slope * scores) if has_p else None
                scored.append(Scored(row, gains, log_loss))
        adapted = predicted = np.empty(0)
        if isinstance(judged, Comparisons):
            adapted, _ = score_left_out(self._draws, lists, in_sample=True)
            predicted = predict_answers(self._draws, judged, in_sample=True)
        scored.append(_score_adapted(judged, judged.of_choice(choice, adapted), predicted))
        sums = sum_gains(judged, scored)
        self.sums |= {key: self.sums.get(key, 0.0) + of_part for key, of_part in sums.items()}
        return self

    @property
    def comparison(self) -> BaselineComparison:
        """The comparison of the choices with the baselines."""
        rows = estimate_rows(self._ways, self.sums, accuracy=self._gain is None)
        result = BaselineComparison(rows, name_gain(self._gain), unjudged=self._unjudged)
        if self.recorded is not None:
            return replace(result, selected=self.recorded.selected, best=self.recorded.best)
        simple = [row for row in rows if row.name in (Way.FIRST, Way.MEAN)]
        best = max(simple, key=lambda row: row.gain, default=BaselineRow(Way.FIRST))
        return replace(result, selected=best.name)


def name_gain(gain: Metric | None) -> str:
    """Return the name of a gain, as tables print it; None is that of preferences."""
    if gain is None:
        return ACCURACY
    if isinstance(gain, Column):
        return f"−{gain.title}" if gain.negative else gain.title
    unit = " in words" if gain.key in _IN_WORDS else ""
    return f"{gain.key} gain{unit}"
