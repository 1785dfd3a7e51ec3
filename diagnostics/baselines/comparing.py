"""Compare adapted weights with baselines, on the adaptation sentences and on new lists.

The metric None stands for preferences, whose gain is the accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import structs

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.diagnostics.baselines.table import (
    ACCURACY,
    ADAPTED,
    BEST,
    FIRST,
    IN_SAMPLE,
    LEFT_OUT,
    MEAN,
    RANDOM,
    WITHOUT,
    WORSE,
    BaselineComparison,
    Baselines,
    gain_sums,
    gains_of_best,
    rows_of,
    select_baselines,
    system_column,
)
from bpa_ppl.diagnostics.leave_one_out import leave_one_out
from bpa_ppl.errors import DataError
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.features.recipe import Recipe, criterion_of
from bpa_ppl.nbest import NBest, demote_to_extras
from bpa_ppl.notes import log_info, warn_user
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.record import IndicatorsRecord
from bpa_ppl.posterior.statistics import POOR_PARETO_K
from bpa_ppl.quality.base import Metric
from bpa_ppl.quality.column import Column, with_judged
from bpa_ppl.quality.gains import default_metric, resolve
from bpa_ppl.quality.gains import gains as gains_in
from bpa_ppl.quality.preferences import Comparisons, compared_lists, has_preferences

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
    metric: str | Metric | None = None,
    moved_files: MovedFiles | None = None,
) -> BaselineComparison:
    """Compare adapted weights with simple ways to choose, on lists with gains or preferences.

    The baselines are the first candidate, the total of the decoder, the canonical weights, the
    mean of the standardised features, the best single feature, the best single system, and a ridge
    regression of the gains on all features.

    The gain of preferences is the accuracy: 1 for a pair of candidates that the scores order as the
    judge did, ½ if the scores are equal. The pairs of a ranking share its weight; answers of "no
    difference" are left out, and counted. There is a logistic regression in place of the ridge
    regression and of the best system. Without a chosen metric, preferences are compared if the
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
        metric: of the gains; None uses that of the posterior, or the default of `adapt` without
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
    >>> result = compare_baselines(lists, metric="mqm")
    >>> result.baselines.feature, result.row("best single feature").gain
    ('Length', -0.25)
    """
    require(nbest, NBest, "baselines are compared on n-best lists (NBest)")
    if posterior is None:
        lacking = nbest.references is None and has_preferences(nbest)
        gain = resolve(metric or default_metric(nbest, canonical=False), nbest)
        if metric is None and lacking and "references" in gain.needs:
            return _compared(nbest, None, None)
        return _compared(demote_to_extras(nbest, gain.columns), gain, None)
    draws = as_draws(posterior)
    goal = compared_by(nbest, draws) if metric is None else resolve(metric, nbest)
    if goal is None and not has_preferences(nbest):
        raise no_gains(nbest, draws)
    recipe = Recipe.of(draws, moved_files)
    if choice is None:
        return _compared(recipe.for_training(nbest).nbest, goal, draws)
    comparison = compare_with_recorded(draws, recipe.apply(nbest), np.asarray(choice), goal)
    if not comparison.rows:
        raise no_gains(nbest, draws)
    return comparison


def with_baselines(
    draws: Draws, lists: NBest, metric: Metric | None, gains: Float64 | None
) -> Draws:
    """Return a posterior with its comparison recorded, and log the result.

    It is a warning where a baseline is better, or the judgements do not separate the features. Only
    if there are preferences, gains are judgements or there are no canonical weights; otherwise the
    comparison with the canonical weights is relevant.

    Args:
        draws: from `adapt`.
        lists: the adaptation sentences, prepared, with their preferences.
        metric: of the gains; None for preferences.
        gains: (hypotheses,) if they are available.
    """
    judged = isinstance(metric, Column) or (gains is not None and without_canonical(draws))
    if not (judged or of_preferences(draws)) or len(_judged(lists, metric, gains)[0]) < 2:
        return draws
    comparison = _compared(lists, metric, draws, gains)
    if comparison.warning:
        warn_user(comparison.warning)
    if message := comparison.share_of_best if comparison.warning else comparison.summary:
        log_info(message)
    record = structs.replace(draws.record, comparison=comparison.record())
    return replace(draws, record=record)


def with_indicators_compared(
    draws: Draws, without: Draws, lists: NBest, metric: Metric | None, gains: Float64 | None
) -> Draws:
    """Return a posterior whose comparison has a row of the weights without indicators.

    Both are evaluated by leave-one-out. The result is logged: it is a warning if the choices
    without indicators are clearly better.

    Args:
        draws: from `with_baselines`.
        without: the posterior of the same lists where the weights of indicators are 0.
        lists: the adaptation sentences, prepared.
        metric: of the gains.
        gains: (hypotheses,) if they are available.
    """
    comparison = recorded_comparison(draws)
    if comparison is None or metric is None or comparison.evaluation != LEFT_OUT:
        return draws
    all_gains = gains_in(lists, metric) if gains is None else gains
    nbest, judged = with_judged(lists, np.isfinite(all_gains))
    gains, by_mean = all_gains[judged], not draws.record.canonical
    with_them, of_others = (
        gains_of_best(nbest, np.concatenate(leave_one_out(one, nbest, by_mean=by_mean)[0]), gains)
        for one in (draws, without)
    )
    row = next(
        row
        for row in rows_of(gain_sums(_bounds(nbest, gains), {WITHOUT: of_others}, {}, with_them))
        if row.name == WITHOUT
    )
    baselines = replace(
        comparison.baselines,
        indicators=", ".join(source.column for source in indicators_of(draws)),
        without={name: w for name, w in without.at_point("mean").items() if w},
    )
    at = next((k for k, r in enumerate(comparison.rows) if r.kind == "feature"), None)
    position = len(comparison.rows) - 2 if at is None else at  # before features and bounds
    rows = (*comparison.rows[:position], row, *comparison.rows[position:])
    comparison = replace(comparison, rows=rows, baselines=baselines)
    if row.verdict == WORSE:
        warn_user(comparison.of_indicators)
    else:
        log_info(comparison.of_indicators)
    record = structs.replace(draws.record, comparison=comparison.record())
    return replace(draws, record=record)


def left_out_note(indicators: IndicatorsRecord) -> str:
    """Return a sentence on indicators that `adapt` has left out.

    >>> left_out_note(IndicatorsRecord(-4.1, ("system",)))[:43]
    'the indicators of system are left out: they'
    """
    return (
        f"the indicators of {', '.join(indicators.left_out)} are left out: they do not explain the "
        "order of the candidates of the judged lists (log Bayes factor "
        f"{indicators.log_bayes_factor:.1f}); to keep them, choose a prior variance"
    )


def notes_on_indicators(draws: Draws) -> list[str]:
    """Return the sentences on the indicators of a posterior, such as those of systems."""
    indicators, comparison = draws.record.indicators, recorded_comparison(draws)
    left_out = left_out_note(indicators) if indicators and indicators.left_out else ""
    return [note for note in (left_out, comparison and comparison.of_indicators) if note]


def recorded_comparison(draws: Draws) -> BaselineComparison | None:
    """Return the comparison on the adaptation sentences that a posterior records, or None.

    Raises:
        DataError: if it cannot be read.
    """
    record = draws.record.comparison
    return None if record is None else BaselineComparison.from_record(record)


def criterion(nbest: NBest, draws: Draws) -> Metric | None:
    """Return the criterion of a posterior, which choices from lists are judged by.

    If the posterior records none that is installed, or the lists lack its column, it is the gain
    that `adapt` uses by default.

    Returns:
        None if the lists lack what the criterion needs.
    """
    goal = criterion_of(draws.record)
    if goal is None or not set(goal.columns) <= {*nbest.feature_names, *nbest.extras}:
        goal = resolve(default_metric(nbest, canonical=draws.record.canonical))
    return goal if has_inputs(nbest, goal) else None


def of_preferences(draws: Draws) -> bool:
    """Return whether a posterior was adapted to preferences."""
    return draws.record.observed.kind == "preferences"


def compared_by(nbest: NBest, draws: Draws) -> Metric | None:
    """Return the criterion, or None to compare choices by the preferences that lists have.

    These come first if the posterior was adapted to preferences.
    """
    first = of_preferences(draws) and has_preferences(nbest)
    return None if first else criterion(nbest, draws)


def has_inputs(nbest: NBest, metric: Metric) -> bool:
    """Return whether lists have the columns, references and sources that a metric needs."""
    references = bool(nbest.references) and all(nbest.references or ())
    inputs = {"references": references, "sources": nbest.sources is not None}
    has_columns = set(metric.columns) <= {*nbest.feature_names, *nbest.extras}
    return has_columns and all(inputs.get(name, True) for name in metric.needs)


def no_gains(nbest: NBest, draws: Draws) -> DataError:
    """Return the error for lists that cannot be evaluated: see `criterion`."""
    goal, code = criterion_of(draws.record), "missing-references"
    message = "the lists have no references, and the posterior has no column of judgements: "
    message += "give references or preferences"
    if of_preferences(draws):
        message = "the lists have no preferences or rankings, and no references: add one of them"
    elif goal is not None and goal.columns:
        columns = ", ".join(goal.columns)
        message = f"the lists have neither references nor the column {columns}: add one"
    elif goal is not None and "sources" in goal.needs and nbest.sources is None:
        message, code = f"{goal.key} needs the source of each sentence", "missing-sources"
    return DataError(message, nbest.origin, parameter=code.partition("-")[2], code=code)


def _judged(
    lists: NBest, metric: Metric | None, gains: Float64 | None = None
) -> tuple[NBest, Float64 | Comparisons, int]:
    """Return the judged lists, their gains or preferences, and the number of those left out."""
    if metric is None:
        compared, pairs = compared_lists(lists)
        return compared, pairs, pairs.undecided
    gains = gains_in(lists, metric) if gains is None else gains
    nbest, judged = with_judged(lists, np.isfinite(gains))
    return nbest, gains[judged], int(np.sum(~np.isfinite(gains)))


def _compared(
    lists: NBest, metric: Metric | None, draws: Draws | None, gains: Float64 | None = None
) -> BaselineComparison:
    """Return the comparison on adaptation sentences, by leave-one-out.

    Raises:
        DataError: if fewer than two lists have two judged candidates.
    """
    nbest, judged, unjudged = _judged(lists, metric, gains)
    if len(nbest) < 2:
        message = "baselines need at least two lists with two judged candidates each"
        raise DataError(message, lists.origin, code="no-data")
    indicators = [] if draws is None else indicators_of(draws)
    selected = select_baselines(
        nbest,
        judged,
        signs={} if draws is None else _signs(draws),
        canonical=None if draws is None else canonical_scores(draws, nbest),
        column=system_column(nbest, [source.column for source in indicators]),
        ignore=[f"{source.column}={value}" for source in indicators for value in source.values],
    )
    adapted, doubtful, related, evaluation, best = None, 0, None, LEFT_OUT, None
    losses = selected.log_loss
    if draws is not None:
        if draws.kind == "point" or draws.pointwise is None:
            evaluation = IN_SAMPLE
        in_sample = evaluation == IN_SAMPLE
        scores, k_hat = _scores(draws, nbest, in_sample=in_sample)
        if isinstance(judged, Comparisons):
            adapted = judged.accuracy(scores)
            losses = losses | _log_loss(draws, nbest, judged, in_sample=in_sample)
            related = accuracy_association(adapted, judged.list_weight)
        else:
            adapted = gains_of_best(nbest, scores, judged)
            related = association(scores, judged, nbest.offsets)
            best = None if in_sample else _chosen_best(nbest, scores, judged)
        related = None if in_sample or len(nbest) < _MIN_LISTS else related
        doubtful = int(np.sum(k_hat > POOR_PARETO_K))
    sums = _sums(nbest, judged, selected.gains, selected.features, adapted, losses)
    rows, unit = rows_of(sums, accuracy=metric is None), name_of_gain(metric)
    return BaselineComparison(
        rows, selected.baselines, unit, evaluation, unjudged, doubtful, related, best
    )


def _chosen_best(nbest: NBest, scores: Float64, gains: Float64) -> tuple[float, int]:
    """Return in how many lists the choice is among the best candidates, and how many there are.

    Candidates of equal score share the choice.
    """
    best = np.repeat(_bounds(nbest, gains)[BEST], nbest.sizes)
    among_best = (gains == best).astype(np.float64)
    return float(gains_of_best(nbest, scores, among_best).sum()), len(nbest)


def _scores(draws: Draws, lists: NBest, *, in_sample: bool) -> tuple[Float64, Float64]:
    """Return (candidates,) scores by the posterior, as `rerank` chooses, and k̂ of each list."""
    by_mean = not draws.record.canonical
    if in_sample and by_mean:
        return lists.scores(draws.aligned(lists, draws.mean[None])[0]), np.zeros(len(lists))
    by_list, k_hat = leave_one_out(draws, lists, in_sample=in_sample, by_mean=by_mean)
    return np.concatenate(by_list), k_hat


def _log_loss(
    draws: Draws, lists: NBest, pairs: Comparisons, *, in_sample: bool
) -> dict[str, Float64]:
    """Return the mean −log p of the preferences about each list by the posterior."""
    rows = np.stack([pairs.better, pairs.worse], axis=1).ravel()
    of_two = lists.regroup(pairs.of_list, rows, np.full(len(pairs.weight), 2))
    p = np.concatenate(leave_one_out(draws, of_two, in_sample=in_sample)[0])[::2]
    return {ADAPTED: pairs.mean_of_lists(-np.log(np.maximum(p, np.finfo(np.float64).tiny)))}


def _sums(
    nbest: NBest,
    judged: Float64 | Comparisons,
    baselines: Mapping[str, Float64],
    features: Mapping[str, Float64],
    adapted: Float64 | None,
    losses: Mapping[str, Float64],
) -> dict[tuple[str, str], Float64]:
    """Return sums of gains: see `gain_sums`."""
    if not isinstance(judged, Comparisons):
        return gain_sums(_bounds(nbest, judged), baselines, features, adapted)
    ones, weight = np.ones(len(nbest)), judged.list_weight
    bounds = {RANDOM: ones / 2, BEST: ones}
    return gain_sums(bounds, baselines, features, adapted, weight=weight, log_loss=losses)


def indicators_of(draws: Draws) -> list[Indicators]:
    """Return the indicators of categories, such as systems, that a posterior has weights for."""
    sources = Recipe.of(draws).sources
    return [source for source in sources if isinstance(source, Indicators)]


def association(scores: Float64, gains: Float64, offsets: Int64) -> float:
    """Return how far scores explain gains within lists, in standard errors.

    The sum of the products of standardised scores and ranks of gains, over its standard deviation
    if the gains of each list were permuted: the stratified rank test of van Elteren (1960).

    >>> offsets = np.array([0, 3, 6])
    >>> round(association(np.arange(6.0), np.array([1.0, 2.0, 3.0, 0.0, 0.5, 9.0]), offsets), 6)
    2.0
    """
    total, variance = 0.0, 0.0
    for first, end in pairwise(offsets.tolist()):
        _, place, counts = np.unique(gains[first:end], return_inverse=True, return_counts=True)
        ranks = np.cumsum(counts) - (counts - 1) / 2  # ties get their mean rank
        ranked = ranks[place] - (end - first + 1) / 2
        centred = scores[first:end] - scores[first:end].mean()
        unit = np.sqrt(centred @ centred * (ranked @ ranked) / max(end - first - 1, 1))
        if unit > 0:
            total += float(centred @ ranked / unit)
            variance += 1.0
    return float(total / np.sqrt(variance)) if variance else 0.0


def accuracy_association(accuracy: Float64, weight: Float64) -> float:
    """Return how far an accuracy is above ½, in standard errors if there is no association.

    Args:
        accuracy: (sentences,) of each list.
        weight: (sentences,) of each list.

    >>> accuracy_association(np.array([1.0, 1.0, 0.0, 1.0]), np.ones(4))
    1.0
    """
    above = weight * (accuracy - 0.5)
    size = float(np.sqrt(above @ above))
    return float(above.sum()) / size if size else 0.0


def _bounds(nbest: NBest, gains: Float64) -> dict[str, Float64]:
    """Return the mean and the highest gain of each list, over its judged candidates."""
    starts, judged = nbest.offsets[:-1], np.isfinite(gains)
    count = np.add.reduceat(judged.astype(np.float64), starts)
    with np.errstate(invalid="ignore"):
        mean = np.add.reduceat(np.where(judged, gains, 0.0), starts) / count
    best = np.maximum.reduceat(np.where(judged, gains, -np.inf), starts)
    return {RANDOM: mean, BEST: np.where(count > 0, best, np.nan)}


def without_canonical(draws: Draws) -> bool:
    """Return whether a posterior has no canonical weights, or does not record them."""
    return draws.canonical is None or not draws.record.canonical


def canonical_scores(draws: Draws, lists: NBest) -> Float64 | None:
    """Return (hypotheses,) scores by the canonical weights; None if there are none."""
    if draws.canonical is None or without_canonical(draws):
        return None
    return lists.scores(draws.aligned(lists, draws.canonical[None])[0])


def _signs(draws: Draws) -> dict[str, int]:
    """Return the signs of the prior means of the weights; 1 if one is 0."""
    mean = draws.constants.get("prior_mean", draws.canonical)
    free = {} if mean is None else dict(zip(draws.features, np.asarray(mean).tolist(), strict=True))
    return {name: -1 if value < 0 else 1 for name, value in {**draws.fixed, **free}.items()}


def compare_with_recorded(
    draws: Draws, lists: NBest, choice: Int64, metric: Metric | None
) -> BaselineComparison:
    """Compare choices from new lists with the baselines selected on the adaptation sentences.

    If a posterior does not record any, the better of the first candidate and the mean of the
    standardised features is used, by the gains of the new lists, which favours the baseline.

    Args:
        draws: the posterior.
        lists: with its features.
        choice: (sentences,) positions.
        metric: of the gains; None for preferences.
    """
    recorded = recorded_comparison(draws)
    best = None if recorded is None else recorded.best
    if recorded is not None:
        baselines = recorded.baselines
    else:
        spread = zip(lists.feature_names, lists.spread.tolist(), strict=True)
        varying = {name: value for name, value in spread if value > 0}
        signs = _signs(draws)
        baselines = Baselines(varying, {name: signs.get(name, 1) for name in varying})
    sums, unjudged = sums_of_choices(draws, baselines, lists, choice, metric)
    rows = rows_of(sums, accuracy=metric is None)
    if not baselines.best:
        gain = {row.name: row.gain for row in rows if row.name in (FIRST, MEAN)}
        baselines = replace(baselines, best=max(gain, key=lambda name: gain[name], default=FIRST))
    return BaselineComparison(rows, baselines, name_of_gain(metric), unjudged=unjudged, best=best)


def sums_of_choices(
    draws: Draws, baselines: Baselines, lists: NBest, choice: Int64, metric: Metric | None
) -> tuple[dict[tuple[str, str], Float64], int]:
    """Return sums of gains as `gain_sums`, and the number of candidates without a gain.

    For equal scores a baseline chooses the first. Preferences are compared by scores: those of the
    posterior, with each chosen candidate above the others.
    """
    if metric is None:
        lists, pairs = compared_lists(lists)
        if not len(lists):
            return {}, pairs.undecided
        choice = choice[pairs.sentences]
    else:
        gains = gains_in(lists, metric)
    first = lists.offsets[:-1]
    scores = baselines.scores(lists, canonical_scores(draws, lists))
    single = {name: baselines.feature_scores(lists, name) for name in baselines.directions}

    def of(ways: Mapping[str, Float64]) -> dict[str, Float64]:
        if metric is None:
            return {name: pairs.accuracy(values) for name, values in ways.items()}
        return {name: gains[first + lists.best(values)] for name, values in ways.items()}

    if metric is not None:
        sums = _sums(lists, gains, of(scores), of(single), gains[first + choice], {})
        return sums, int(np.sum(~np.isfinite(gains)))
    losses = {name: pairs.log_loss(u) for name, u in baselines.utilities(scores).items()}
    losses |= _log_loss(draws, lists, pairs, in_sample=True)
    adapted = _scores(draws, lists, in_sample=True)[0]
    best = np.maximum.reduceat(adapted, first)
    adapted[first + choice] = np.where(adapted[first + choice] < best, np.inf, best)
    adapted_accuracy = pairs.accuracy(adapted)
    return _sums(lists, pairs, of(scores), of(single), adapted_accuracy, losses), pairs.undecided


def name_of_gain(metric: Metric | None) -> str:
    """Return the name of a gain, as tables print it; None is that of preferences."""
    if metric is None:
        return ACCURACY
    if isinstance(metric, Column):
        return f"−{metric.title}" if metric.negative else metric.title
    unit = " in words" if metric.key in _IN_WORDS else ""
    return f"{metric.key} gain{unit}"
