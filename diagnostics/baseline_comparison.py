"""Compare adapted weights with simple ways to choose, by leave-one-out or on new lists.

The metric None stands for preferences, whose gain is the accuracy.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import structs

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import log_info, warn_user
from bpa_ppl.diagnostics.baseline_table import (
    ACCURACY,
    ADAPTED,
    IN_SAMPLE,
    LEFT_OUT,
    WORSE,
    BaselineComparison,
    make_rows,
    sum_gains,
)
from bpa_ppl.diagnostics.baselines import (
    FIRST,
    MEAN,
    WITHOUT,
    Answers,
    Baselines,
    Gains,
    find_indicators,
    find_prior_signs,
    judge,
    lacks_canonical,
    score_by_canonical,
    select_baselines,
)
from bpa_ppl.errors import DataError
from bpa_ppl.features.recipe import Recipe, criterion_of
from bpa_ppl.metrics.column import Column
from bpa_ppl.metrics.gains import default_metric, resolve
from bpa_ppl.metrics.gains import gains as gains_in
from bpa_ppl.metrics.metric import Metric
from bpa_ppl.metrics.preferences import compared_lists, has_preferences
from bpa_ppl.nbest import NBest, demote_to_extras
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.draws import DOMAIN, Draws, importance_weights
from bpa_ppl.posterior.record import IndicatorsRecord
from bpa_ppl.posterior.statistics import POOR_PARETO_K, loo_log_weights

if TYPE_CHECKING:
    from bpa_ppl.features.recipe import MovedFiles
    from bpa_ppl.posterior.adapter import Posterior

#: Fewer lists are not expected to separate the features.
_MIN_LISTS = 10
#: Metrics whose gains are numbers of words.
_IN_WORDS = ("ter", "bleu", "chrf", "ter+bleu", "wer")
_MAX_DRAWS = 1000  # for leave-one-out
_TINY = np.finfo(np.float64).tiny


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
    >>> result.baselines.feature, result.row("best single feature").gain
    ('Length', -0.25)
    """
    require(nbest, NBest, "baselines are compared on n-best lists (NBest)")
    if posterior is None:
        lacking = nbest.references is None and has_preferences(nbest)
        default = resolve(gain or default_metric(nbest, canonical=False), nbest)
        if gain is None and lacking and "references" in default.needs:
            return _compare(nbest, None, None)
        return _compare(demote_to_extras(nbest, default.columns), default, None)
    draws = as_draws(posterior)
    metric = choose_compared_gain(nbest, draws) if gain is None else resolve(gain, nbest)
    if metric is None and not has_preferences(nbest):
        raise explain_missing_gains(nbest, draws)
    recipe = Recipe.of(draws, moved_files)
    if choice is None:
        return _compare(recipe.for_training(nbest).nbest, metric, draws)
    comparison = compare_with_recorded(draws, recipe.apply(nbest), np.asarray(choice), metric)
    if not comparison.rows:
        raise explain_missing_gains(nbest, draws)
    return comparison


def record_comparison(
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
        gains: (candidates,) if they are available.
    """
    given = isinstance(metric, Column) or (gains is not None and lacks_canonical(draws))
    if not (given or uses_preferences(draws)) or len(judge(lists, metric, gains).lists) < 2:
        return draws
    comparison = _compare(lists, metric, draws, gains)
    if comparison.warning:
        warn_user(comparison.warning)
    if message := comparison.share_of_best if comparison.warning else comparison.summary:
        log_info(message)
    return _record(draws, comparison)


def record_comparison_without_indicators(
    draws: Draws, without: Draws, lists: NBest, metric: Metric | None, gains: Float64 | None
) -> Draws:
    """Return a posterior whose comparison has a row of the weights without indicators.

    Both are evaluated by leave-one-out. The result is logged: it is a warning if the choices
    without indicators are clearly better.

    Args:
        draws: from `record_comparison`.
        without: the posterior of the same lists where the weights of indicators are 0.
        lists: the adaptation sentences, prepared.
        metric: of the gains.
        gains: (candidates,) if they are available.
    """
    recorded = read_comparison(draws)
    if recorded is None or metric is None or recorded.evaluation != LEFT_OUT:
        return draws
    comparison = _compare(lists, metric, draws, gains, without)
    row = comparison.row(WITHOUT)
    log = warn_user if row is not None and row.verdict == WORSE else log_info
    log(comparison.of_indicators)
    return _record(draws, comparison)


def _record(draws: Draws, comparison: BaselineComparison) -> Draws:
    """Return the posterior with the comparison in its record."""
    return replace(draws, record=structs.replace(draws.record, comparison=comparison.record()))


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
    record = draws.record.comparison
    return None if record is None else BaselineComparison.from_record(record)


def choose_gain(nbest: NBest, draws: Draws) -> Metric | None:
    """Return the gain by which choices from lists are judged: the one that a posterior records.

    If the posterior records none that is installed, or the lists lack its column, it is the gain
    that `adapt` uses by default.

    Returns:
        None if the lists lack what the gain needs.
    """
    gain = criterion_of(draws.record)
    if gain is None or not set(gain.columns) <= {*nbest.feature_names, *nbest.extras}:
        gain = resolve(default_metric(nbest, canonical=draws.record.canonical))
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


def has_inputs(nbest: NBest, metric: Metric) -> bool:
    """Return whether lists have the columns, references and sources that a metric needs."""
    references = bool(nbest.references) and all(nbest.references or ())
    inputs = {"references": references, "sources": nbest.sources is not None}
    has_columns = set(metric.columns) <= {*nbest.feature_names, *nbest.extras}
    return has_columns and all(inputs.get(name, True) for name in metric.needs)


def explain_missing_gains(nbest: NBest, draws: Draws) -> DataError:
    """Return the error for lists that cannot be evaluated: see `choose_gain`."""
    gain, code = criterion_of(draws.record), "missing-references"
    message = "the lists have no references, and the posterior has no column of judgements: "
    message += "give references or preferences"
    if uses_preferences(draws):
        message = "the lists have no preferences or rankings, and no references: add one of them"
    elif gain is not None and gain.columns:
        columns = ", ".join(gain.columns)
        message = f"the lists have neither references nor the column {columns}: add one"
    elif gain is not None and "sources" in gain.needs and nbest.sources is None:
        message, code = f"{gain.key} needs the source of each sentence", "missing-sources"
    return DataError(message, nbest.origin, parameter=code.partition("-")[2], code=code)


def _compare(
    lists: NBest,
    metric: Metric | None,
    draws: Draws | None,
    gains: Float64 | None = None,
    without: Draws | None = None,
) -> BaselineComparison:
    """Return the comparison on adaptation sentences, by leave-one-out.

    Args:
        lists: the adaptation sentences, prepared.
        metric: of the gains; None for preferences.
        draws: the posterior; None compares only the baselines.
        gains: (candidates,) if they are available.
        without: the posterior whose weights of indicators are 0, if that is compared too.

    Raises:
        DataError: if fewer than two lists have two judged candidates.
    """
    judged, unit = judge(lists, metric, gains), name_gain(metric)
    nbest = judged.lists
    if len(nbest) < 2:
        message = "baselines need at least two lists with two judged candidates each"
        raise DataError(message, lists.origin, code="no-data")
    baselines, ways, log_loss = select_baselines(judged, draws)
    in_sample, doubtful, related, best, predictions = False, 0, None, None, []
    if draws is not None:
        in_sample = draws.kind == "point" or draws.pointwise is None
        scores, k_hat = _scores(draws, nbest, in_sample=in_sample)
        doubtful = int(np.sum(k_hat > POOR_PARETO_K))
        ways["adapted", ADAPTED] = judged.of_scores(scores)
        predicted = predict_answers(draws, judged, in_sample=in_sample)
        if isinstance(judged, Answers):
            log_loss |= _log_loss(judged, predicted[:, 0])
        if not in_sample:
            predictions = [(p, weight) for p, weight in predicted.round(6).tolist()]
            best = judged.count_best(scores)
            related = judged.association(scores) if len(nbest) >= _MIN_LISTS else None
    if draws is not None and without is not None:
        ways["baseline", WITHOUT] = judged.of_scores(_scores(without, nbest, in_sample=False)[0])
        weights = {name: w for name, w in without.at_point("mean").items() if w}
        columns = ", ".join(source.column for source in find_indicators(draws))
        baselines = replace(baselines, indicators=columns, without=weights)
    sums = sum_gains(ways, judged.bounds(), judged.weight, log_loss)
    evaluation = IN_SAMPLE if in_sample else LEFT_OUT
    rows, left_out = make_rows(sums, accuracy=metric is None), judged.left_out
    counts = left_out, doubtful, related, best, tuple(predictions)
    return BaselineComparison(rows, baselines, unit, evaluation, *counts)


def _scores(draws: Draws, lists: NBest, *, in_sample: bool) -> tuple[Float64, Float64]:
    """Return (candidates,) scores by the posterior, as `rerank` chooses, and k̂ of each list."""
    by_mean = not draws.record.canonical
    if in_sample and by_mean and not draws.domains:
        return lists.scores(draws.aligned(lists, draws.mean[None])[0]), np.zeros(len(lists))
    by_list, k_hat = leave_one_out(draws, lists, in_sample=in_sample, by_mean=by_mean)
    return np.concatenate(by_list), k_hat


def predict_answers(draws: Draws, judged: Gains | Answers, *, in_sample: bool = False) -> Float64:
    """Return (P, 2) the probability of each preferred one of two candidates, and its weight.

    Gains have none, unless the best one of two candidates was observed as a choice.
    """
    if isinstance(judged, Answers):
        pairs = judged.pairs
        rows, lists = np.stack([pairs.better, pairs.worse], axis=1), pairs.of_list
        weight = pairs.weight / judged.weight[lists]
    elif getattr(draws.record.likelihood, "name", "") == "oracle" and all(judged.lists.sizes == 2):
        gains = judged.gains.reshape(-1, 2)
        lists = np.flatnonzero(gains[:, 0] != gains[:, 1])
        order = np.argsort(-gains[lists], axis=1)
        rows, weight = judged.lists.offsets[lists, None] + order, np.ones(len(lists))
    else:
        return np.empty((0, 2))
    of_two = judged.lists.regroup(lists, rows.ravel(), np.full(len(rows), 2))
    p = np.reshape([leave_one_out(draws, of_two, in_sample=in_sample)[0]], (-1, 2))[:, 0]
    return np.stack([p, weight], axis=1)


def _log_loss(judged: Answers, p: Float64) -> dict[str, Float64]:
    """Return the mean −log p of the preferences about each list."""
    return {ADAPTED: judged.pairs.mean_of_lists(-np.log(np.maximum(p, _TINY)))}


def leave_one_out(
    draws: Draws, lists: NBest, *, in_sample: bool = False, by_mean: bool = False
) -> tuple[list[Float64], Float64]:
    """Return scores of candidates by the posterior without their list, and k̂ of each list.

    The posterior without a list is that of at most 1000 evenly spaced draws, by Pareto-smoothed
    importance sampling. The likelihood need not be p(e*|f): whatever it was is removed.

    Args:
        draws: with the log-likelihood of each sentence.
        lists: the adaptation sentences, prepared. All preferences about a list are left out
            together; two lists may be of the same sentence.
        in_sample: Use the posterior of all lists instead, which need not have log-likelihoods.
        by_mean: Score by the mean weights, not by the predictive probability.

    Returns:
        (N,) scores for each list; and (sentences,) Pareto k̂, above 0.7 they are unreliable.

    Raises:
        DataError: if the draws belong to other lists.
    """
    from bpa_ppl.models.probabilities import normalised

    chosen = np.unique(np.linspace(0, len(draws.flat) - 1, _MAX_DRAWS).astype(np.int64))
    likelihood = None if in_sample else _of_lists(draws, lists, chosen)
    log_weight = np.log(np.maximum(draws.importance[chosen], _TINY))
    scores, pareto_k = [], np.zeros(len(lists))
    for s, weights in enumerate(_weights_of_lists(draws, lists, chosen)):
        left_out = log_weight
        if likelihood is not None:
            smoothed, pareto_k[s] = loo_log_weights(log_weight, likelihood[:, s])
            left_out = smoothed if np.isfinite(pareto_k[s]) else log_weight  # else too few draws
        share = importance_weights(left_out)
        features = lists.features[lists.rows(s)].astype(np.float64)
        if by_mean:
            scores.append(features @ (share @ weights))
        else:
            p = normalised((features - features[:1]) @ weights.T, axis=0)[1]
            scores.append(p @ share)
    return scores, pareto_k


def _weights_of_lists(draws: Draws, lists: NBest, chosen: Int64) -> list[Float64]:
    """Return some draws of the weights of each list, which may be those of its domain, (D, K)."""
    names = lists.sentence_extras.get(DOMAIN, (None,) * len(lists))
    domains = [str(name) if str(name) in draws.domains else None for name in names]
    of_domain = {name: draws if name is None else draws.of_domain(name) for name in set(domains)}
    weights = {name: of.aligned(lists)[chosen] for name, of in of_domain.items()}
    return [weights[name] for name in domains]


def _of_lists(draws: Draws, lists: NBest, chosen: Int64) -> Float64:
    """Return the log-likelihood of each list in some draws, (D, S), as it is in the posterior."""
    # Weighted draws may have a likelihood with an exponent (Eq. 11).
    exponent = draws.record.figures.likelihood_exponent
    likelihood = exponent * np.asarray(draws.pointwise).reshape(len(draws.flat), -1)[chosen]
    count, ids = likelihood.shape[1], draws.sentence_ids
    if count == len(lists) and draws.record.observed.kind != "preferences":
        return likelihood
    if ids is None or len(ids) != count or not np.isin(lists.sentence_ids, ids).all():
        message = f"{len(lists)} lists are not those of the posterior: give its {count} lists"
        raise DataError(message, lists.origin, code="mismatch")
    names, number = np.unique(ids, return_inverse=True)
    by_name = np.zeros((len(names), len(likelihood)))
    np.add.at(by_name, number, likelihood.T)
    return np.asarray(by_name[np.searchsorted(names, lists.sentence_ids)].T)


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
    recorded = read_comparison(draws)
    best = None if recorded is None else recorded.best
    if recorded is not None:
        baselines = recorded.baselines
    else:
        spread = zip(lists.feature_names, lists.spread.tolist(), strict=True)
        varying = {name: value for name, value in spread if value > 0}
        signs = find_prior_signs(draws)
        baselines = Baselines(varying, {name: signs.get(name, 1) for name in varying})
    sums, unjudged = sum_gains_of_choices(draws, baselines, lists, choice, metric)
    rows = make_rows(sums, accuracy=metric is None)
    if not baselines.best:
        gain = {row.name: row.gain for row in rows if row.name in (FIRST, MEAN)}
        baselines = replace(baselines, best=max(gain, key=lambda name: gain[name], default=FIRST))
    return BaselineComparison(rows, baselines, name_gain(metric), unjudged=unjudged, best=best)


def sum_gains_of_choices(
    draws: Draws, baselines: Baselines, lists: NBest, choice: Int64, metric: Metric | None
) -> tuple[dict[tuple[str, str], Float64], int]:
    """Return sums of gains as `sum_gains`, and the number of candidates without a gain.

    For equal scores a baseline chooses the first. Preferences are compared by scores: those of the
    posterior, with each chosen candidate above the others.
    """
    judged: Gains | Answers
    if metric is None:
        judged = Answers(*compared_lists(lists))
        lists, choice = judged.lists, choice[judged.pairs.sentences]
        if not len(lists):
            return {}, judged.left_out
    else:
        gains = gains_in(lists, metric)
        judged = Gains(lists, gains, int(np.sum(~np.isfinite(gains))))
    first = lists.offsets[:-1]

    def gains_by(scores: Float64) -> Float64:
        if isinstance(judged, Answers):
            return judged.of_scores(scores)
        return np.asarray(judged.gains[first + lists.best(scores)])

    scores = baselines.scores(lists, score_by_canonical(draws, lists))
    single = {name: baselines.feature_scores(lists, name) for name in baselines.directions}
    log_loss = dict[str, Float64]()
    if isinstance(judged, Answers):
        utilities = baselines.utilities(scores)
        log_loss = {name: judged.pairs.log_loss(values) for name, values in utilities.items()}
        log_loss |= _log_loss(judged, predict_answers(draws, judged, in_sample=True)[:, 0])
        adapted = _scores(draws, lists, in_sample=True)[0]
        best = np.maximum.reduceat(adapted, first)
        adapted[first + choice] = np.where(adapted[first + choice] < best, np.inf, best)
        of_choice = judged.of_scores(adapted)
    else:
        of_choice = judged.gains[first + choice]
    ways = {("adapted", ADAPTED): of_choice}
    ways |= {("baseline", name): gains_by(values) for name, values in scores.items()}
    ways |= {("feature", name): gains_by(values) for name, values in single.items()}
    return sum_gains(ways, judged.bounds(), judged.weight, log_loss), judged.left_out


def name_gain(metric: Metric | None) -> str:
    """Return the name of a gain, as tables print it; None is that of preferences."""
    if metric is None:
        return ACCURACY
    if isinstance(metric, Column):
        return f"−{metric.title}" if metric.negative else metric.title
    unit = " in words" if metric.key in _IN_WORDS else ""
    return f"{metric.key} gain{unit}"
