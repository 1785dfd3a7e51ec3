"""Evaluate on new lists whether adapting the weights, and each added feature, improved choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.arrays import Float64, Int64
from bpa_ppl.decoding.reranking import Reranker, with_defaults
from bpa_ppl.diagnostics.baselines.comparing import (
    compare_with_recorded,
    criterion,
    gains_of,
    no_gains,
    recorded_comparison,
    without_canonical,
)
from bpa_ppl.diagnostics.baselines.table import CANONICAL, FIRST, BaselineComparison, Baselines
from bpa_ppl.diagnostics.choices import (
    ChoiceChanges,
    column_of_systems,
    explanations,
    system_shares,
)
from bpa_ppl.diagnostics.improvement import (
    BETTER,
    PROBABILITY,
    UNCLEAR,
    WORSE,
    Change,
    Contribution,
    Improvement,
)
from bpa_ppl.errors import DataError
from bpa_ppl.features.recipes import columns_of
from bpa_ppl.models import Preparation
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.quality import Column, Metric
from bpa_ppl.quality.bleu import LengthRatio
from bpa_ppl.quality.bootstrap import score_difference
from bpa_ppl.quality.scoreboard import Scoreboard, metrics_of, title_of
from bpa_ppl.quality.scoring import choice_score, statistics

if TYPE_CHECKING:
    from bpa_ppl.features.recipes import MovedFiles
    from bpa_ppl.posterior.adapter import Posterior


def evaluate_improvement(
    nbest: NBest,
    posterior: Posterior,
    *,
    defaults: Mapping[str, float] | None = None,
    moved_files: MovedFiles | None = None,
    seed: int = 0,
) -> Improvement:
    """Compare the predictive decisions with the choices of a baseline, on new lists.

    The baseline are the canonical weights. Where none were given, it is the best of the simple
    ways to choose, as selected on the adaptation sentences: see `bpa_ppl.compare_baselines`.
    A posterior that fails its check is used all the same. Scores are those by the criterion of the
    posterior; with TER and BLEU comes the other one.

    Args:
        nbest: lists with what the criterion of the posterior needs, references or its column; best
            ones that the posterior has not seen. Where they lack its column and have references,
            the criterion is the default gain of `adapt`.
        posterior: from `adapt`, or another one with a variable `weights`.
        defaults: as for `rerank`.
        moved_files: as for `rerank`.
        seed: of the paired bootstrap over sentences (Koehn 2004).

    Raises:
        DataError: if lists and posterior do not fit together, or have nothing to score by.

    >>> lists = NBest.from_lists(
    ...     [["a cat sat", "the cat sat"]] * 9, [[[1.0], [0.0]]] * 9, ["LM0"],
    ...     references=[("the cat sat",)] * 9,
    ... )
    >>> from bpa_ppl.posterior import Draws
    >>> after = Draws({"weights": -np.ones((2, 9, 1))}, ("LM0",), constants={"canonical": [1.0]})
    >>> print(evaluate_improvement(lists, after).changes[0])
    TER 33.33 → 0.00 (−33.33, 95% interval −33.33 to −33.33)
    """
    draws = with_defaults(as_draws(posterior), defaults)
    goal = criterion(nbest, draws)
    if goal is None:
        raise no_gains(nbest, draws)
    choices, comparison = _choices(nbest, draws, goal, moved_files)
    judged = _judged(nbest, goal, choices.before, choices.after)
    lists, before, after = nbest[judged], choices.before[judged], choices.after[judged]
    metrics = list(metrics_of(goal))
    pairs = zip(lists.chosen(before), lists.chosen(after), strict=True)
    scores = Scoreboard(
        before=tuple(choice_score(lists, before, metric) for metric in metrics),
        after=tuple(choice_score(lists, after, metric) for metric in metrics),
        changed=sum(old != new for old, new in pairs),
        sentences=len(lists),
    )
    names = [title_of(score) for score in scores.after]
    if "references" in goal.needs:
        metrics, names = [*metrics, LengthRatio()], [*names, "length"]
    pair = _one_each(lists, before), _one_each(lists, after)
    changes = tuple(_change(n, pair, m, seed) for n, m in zip(names, metrics, strict=True))
    left_out = len(nbest) - len(lists)
    return Improvement(
        lists,
        before,
        after,
        scores,
        changes,
        goal,
        choices,
        choices.baseline,
        comparison,
        left_out,
    )


def compare_choices(
    nbest: NBest,
    posterior: Posterior,
    *,
    defaults: Mapping[str, float] | None = None,
    moved_files: MovedFiles | None = None,
) -> ChoiceChanges:
    """Compare the predictive decisions with the choices of a baseline, on lists without gains too.

    The result explains each changed choice by the features, and has the shares of the systems. The
    baseline is that of `evaluate_improvement`; where lists lack gains and the posterior records no
    baseline, it is the first candidate.

    Args:
        nbest: any lists that the posterior can rerank.
        posterior: from `adapt`, or another one with a variable `weights`.
        defaults: as for `rerank`.
        moved_files: as for `rerank`.

    Raises:
        DataError: if lists and posterior do not fit together.

    >>> lists = NBest.from_lists([["a", "b"]], [[[1.0, 0.0], [0.5, 2.0]]], ["LM0", "qe"])
    >>> from bpa_ppl.posterior import Draws
    >>> draws = Draws(
    ...     {"weights": np.ones((2, 9, 2))}, ("LM0", "qe"), constants={"canonical": [1.0, 0.0]}
    ... )
    >>> changes = compare_choices(lists, draws)
    >>> changes.explanations[0].deciding, changes.baseline
    (('qe',), 'canonical weights')
    """
    draws = with_defaults(as_draws(posterior), defaults)
    return _choices(nbest, draws, criterion(nbest, draws), moved_files)[0]


def _choices(
    nbest: NBest, draws: Draws, goal: Metric | None, moved_files: MovedFiles | None
) -> tuple[ChoiceChanges, BaselineComparison | None]:
    """Return the choices before and after, and their comparison with all baselines if needed."""
    parts = list(Reranker(draws, moved_files=moved_files, unchecked=True).parts(nbest))
    prepared = NBest.concatenate([part.lists for part in parts], renumber=True)
    after = np.concatenate([part.result.choice for part in parts])
    before = np.concatenate([part.result.canonical for part in parts])
    baseline, recorded, comparison = CANONICAL, recorded_comparison(draws), None
    unknown = without_canonical(draws)
    if goal is not None and (unknown or recorded is not None):
        comparison = compare_with_recorded(draws, prepared, after, goal)
    if unknown:
        known = comparison or recorded
        selected = Baselines(best=FIRST) if known is None else known.baselines
        before, baseline = selected.choice(prepared, selected.best), selected.named(selected.best)
    column = column_of_systems(nbest, draws)
    judgement = goal.column if isinstance(goal, Column) else None
    changes = ChoiceChanges(
        nbest,
        before,
        after,
        baseline,
        tuple(explanations(prepared, draws, after, before)),
        tuple(system_shares(nbest, before, after, judgement=judgement, column=column)),
        column,
    )
    return changes, comparison


def _judged(nbest: NBest, metric: Metric, *choices: Int64) -> Int64:
    """Return the sentences in which all choices have a gain.

    Raises:
        DataError: if there are none.
    """
    if not isinstance(metric, Column):
        return np.arange(len(nbest))
    gains = gains_of(nbest, metric)
    judged = np.all([np.isfinite(gains[nbest.offsets[:-1] + c]) for c in choices], axis=0)
    if not judged.any():
        raise DataError(
            f"none of the chosen candidates has a {metric.column}", nbest.origin, code="no-data"
        )
    return np.flatnonzero(judged)


def _change(name: str, pair: tuple[NBest, NBest], metric: Metric, seed: int) -> Change:
    before, after = (statistics(lists, metric) for lists in pair)
    score = score_difference(after, before, metric, probability=PROBABILITY, seed=seed)
    low, high = sorted(metric.signed(np.array([score.low, score.high])).tolist())
    verdict = BETTER if low > 0 else WORSE if high < 0 else UNCLEAR
    label = "" if isinstance(metric, LengthRatio) else verdict
    return Change(name, score, label, metric.decimals)


def _one_each(lists: NBest, choice: Int64) -> NBest:
    """Return lists of one hypothesis each."""
    return lists.regroup(slice(None), lists.offsets[:-1] + choice, np.ones(len(lists), np.int64))


def contributions(
    nbest: NBest,
    posterior: Posterior,
    *,
    metrics: Sequence[str | Metric] | None = None,
    defaults: Mapping[str, float] | None = None,
    moved_files: MovedFiles | None = None,
) -> list[Contribution]:
    """Compare the choices with those that would be made without each added feature.

    One weight vector decides: the posterior mean. Without a feature it is the mean given that the
    weight of the feature is 0, as if the posterior were Gaussian: others may take its place, as
    they would if the weights were adapted without it. (On real lists within 0.05 TER of what
    adapting again without a source gives, and within 0.5 where all sources are left out.)

    Args:
        nbest: lists as for `evaluate_improvement`.
        posterior: from `adapt(add=…)`.
        metrics: in which the choices are scored; None is as in `evaluate_improvement`.
        defaults: as for `rerank`.
        moved_files: as for `rerank`.

    Returns:
        the canonical choices, those with all features, those without any of the added ones, and
        those without each source, and each feature of a source that has several.

    Raises:
        DataError: if no feature was added, or the lists lack references or what features need.
    """
    draws = with_defaults(as_draws(posterior), defaults)
    sources = columns_of(draws.attrs)
    if not sources:
        raise DataError(
            "the posterior has no added features: adapt with some (add)", code="missing-feature"
        )
    if metrics is None:
        if (goal := criterion(nbest, draws)) is None:
            raise no_gains(nbest, draws)
        metrics = metrics_of(goal)
    lists = Preparation.recorded(draws, moved_files)(nbest)
    complete = lists.best(lists.scores(draws.aligned(lists, draws.mean[None])[0]))

    def of(label: str, features: tuple[str, ...], weights: Float64) -> Contribution:
        choice = lists.best(lists.scores(draws.aligned(lists, weights[None])[0]))
        scores = tuple(choice_score(lists, choice, metric) for metric in metrics)
        pairs = zip(lists.chosen(choice), lists.chosen(complete), strict=True)
        return Contribution(label, features, scores, sum(a != b for a, b in pairs))

    rows = [] if draws.canonical is None else [of("canonical", (), draws.canonical)]
    rows.append(of("adapted", (), draws.mean))
    for label, features in _left_out(sources):
        rows.append(of(label, features, mean_without(draws, features)))
    return rows


def mean_without(draws: Draws, features: Sequence[str]) -> Float64:
    """Return the posterior mean of the weights given that some are 0, (Q,), if it is Gaussian.

    Where a feature never moves, such as in a single draw, the others stay where they are.

    >>> rng = np.random.default_rng(1)
    >>> both = rng.multivariate_normal([1, 2], [[1, 0.5], [0.5, 1]], (1, 50000))
    >>> mean_without(Draws({"weights": both}, ("a", "b")), ["b"]).round(1).tolist()
    [0.0, 0.0]
    """
    out = np.isin(draws.features, list(features))
    mean = draws.mean
    if len(draws.flat) > 1:
        covariance = np.atleast_2d(np.cov(draws.flat.T, aweights=draws.importance))
        shift = np.linalg.pinv(covariance[np.ix_(out, out)]) @ mean[out]
        mean = mean - covariance[:, out] @ shift
    return np.asarray(np.where(out, 0.0, mean))


def _left_out(sources: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if len(sources) > 1:
        yield "without any of them", tuple(name for names in sources.values() for name in names)
    for label, names in sources.items():
        yield f"without {label}", names
        if len(names) > 1:
            yield from ((f"without the column {name}", (name,)) for name in names)
