"""Judged lists, and the simple ways to choose that are best on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import structs

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.diagnostics.baseline_table import KINDS, BaselineRow, Key, Way, values_of
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.features.recipe import Recipe
from bpa_ppl.metrics.column import select_marked
from bpa_ppl.metrics.gains import gains as gains_in
from bpa_ppl.metrics.metric import Metric
from bpa_ppl.metrics.paired import sum_moments
from bpa_ppl.metrics.preferences import Comparisons, select_compared
from bpa_ppl.nbest import NBest, centre, measure_deviation, root_mean_square
from bpa_ppl.posterior.draws import Draws

#: Extras that may name the system of each candidate.
_SYSTEM_COLUMNS = ("system", "model")
#: A system is considered if it has a candidate in at least this share of the lists.
_MIN_SHARE = 0.5
#: Parts of the lists that are left out in turn to evaluate a regression.
_FOLDS = 10
#: Of the ridge regression of standardised gains on standardised features, the largest first.
_PENALTIES = np.logspace(5, -1, 13)
#: The ridge regression is computed from products of candidates if there are at most so many for
#: each feature.
_DUAL = 2
_SIGNS = (1.0, -1.0)
_BOUNDS = Way.RANDOM, Way.BEST
#: Returns the weights of some columns by the folds that are not left out.
_Fit = Callable[[frozenset[int]], Float64]


@dataclass(frozen=True)
class Gains:
    """Lists whose candidates have gains; `Comparisons` has the same for preferences.

    Attributes:
        lists: the lists (S of them).
        gains: (candidates,); NaN for a candidate without a gain.
        left_out: the number of candidates without a gain.
    """

    lists: NBest
    gains: Float64
    left_out: int

    @property
    def list_weight(self) -> Float64:
        """(S,) the weight of each list in a mean."""
        return np.ones(len(self.lists))

    def of_scores(self, scores: Float64) -> Float64:
        """Return the gain of the highest score of each list, (S,).

        For candidates of equal score it is their mean. Candidates without a gain are ignored; if
        none of the best has a gain, the gain of the list is NaN.

        Args:
            scores: (candidates,).

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a", "b", "c"]], [[[0.0]] * 3], ["LM0"])
        >>> Gains(lists, np.array([9.0, 4.0, 5.0]), 0).of_scores(np.array([1.0, 2.0, 2.0])).tolist()
        [4.5]
        """
        starts = self.lists.offsets[:-1]
        best = np.maximum.reduceat(scores, starts)
        tied = (scores == np.repeat(best, self.lists.sizes)) & np.isfinite(self.gains)
        count = np.add.reduceat(tied.astype(np.float64), starts)
        total = np.add.reduceat(np.where(tied, self.gains, 0.0), starts)
        result: Float64 = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
        return result

    def of_choice(self, choice: Int64, scores: Float64) -> Float64:
        """Return the gain of one candidate of each list, (S,), whatever the scores are."""
        return np.asarray(self.gains[self.lists.offsets[:-1] + choice])

    def bounds(self) -> tuple[Float64, Float64]:
        """Return the mean and the highest gain of each list, (S,), over its judged candidates."""
        random = self.of_scores(np.zeros(len(self.gains)))
        return random, np.fmax.reduceat(self.gains, self.lists.offsets[:-1])

    def log_loss(self, scores: Float64) -> None:
        """Return None: gains have no probability."""

    def association(self, scores: Float64) -> float:
        """Return how far scores explain the gains within lists, in standard errors.

        The sum of the products of standardised scores and ranks of gains, over its standard
        deviation if the gains of each list were permuted: the stratified rank test of van Elteren
        (1960).

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a", "b", "c"]] * 2, [[[0.0]] * 3] * 2, ["LM0"])
        >>> judged = Gains(lists, np.array([1.0, 2.0, 3.0, 0.0, 0.5, 9.0]), 0)
        >>> round(judged.association(np.arange(6.0)), 6)
        2.0
        """
        from scipy.stats import rankdata

        values = []
        for first, end in pairwise(self.lists.offsets.tolist()):
            centred = scores[first:end] - scores[first]
            centred -= centred.mean()
            ranks = rankdata(self.gains[first:end]) - (end - first + 1) / 2  # ties get their mean
            unit = np.sqrt(centred @ centred * (ranks @ ranks) / max(end - first - 1, 1))
            values += [centred @ ranks / unit] if unit > 0 else []
        return float(np.sum(values) / np.sqrt(len(values) or 1))

    def count_best(self, scores: Float64) -> tuple[float, int]:
        """Return in how many lists the choice is one of the best, and the number of lists.

        Candidates of equal score share the choice.
        """
        is_best = self.gains == np.repeat(self.bounds()[1], self.lists.sizes)
        shares = replace(self, gains=is_best.astype(np.float64)).of_scores(scores)
        return float(shares.sum()), len(self.lists)


def judge(lists: NBest, gain: Metric | None, gains: Float64 | None = None) -> Gains | Comparisons:
    """Return the lists with two judged candidates or a preference, and how they were judged.

    Args:
        lists: the lists.
        gain: a metric or a column; None for preferences.
        gains: (candidates,) if they are available.
    """
    if gain is None:
        return select_compared(lists)
    gains = gains_in(lists, gain) if gains is None else gains
    judged = np.isfinite(gains)
    nbest, rows = select_marked(lists, judged)
    return Gains(nbest, gains[rows], int(np.sum(~judged)))


class Scored(NamedTuple):
    """A way to choose, and how good it is on each of some lists.

    Attributes:
        row: the way, without estimates.
        gains: (sentences,) of its choices, NaN where one is not judged.
        log_loss: (sentences,) the mean −log p of the answers; None if the choices have no p.
    """

    row: BaselineRow
    gains: Float64
    log_loss: Float64 | None = None


def fit_ways(judged: Gains | Comparisons, draws: Draws | None = None) -> Iterator[Scored]:
    """Fit each simple way to choose to judged lists, and evaluate it by leave-one-out.

    For equal scores, the gain of a list is the mean over the candidates with the best score. With
    more than ten lists, a regression leaves out a tenth of them at a time. The gain of preferences
    is the accuracy, the regression is logistic, and systems are ignored.

    Args:
        judged: at least two lists, with finite gains or preferences.
        draws: as for `list_simple_ways`. The indicators are not baselines.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]] * 4, [[[0.0], [1.0]]] * 4, ["TER"])
    >>> gains = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    >>> _, _, best, *_ = fit_ways(Gains(lists, gains, 0))
    >>> best.row.label, best.gains.tolist()
    ('best single feature (low TER)', [1.0, 0.0, 1.0, 1.0])
    """
    nbest = judged.lists
    *simple, mean = list_simple_ways(nbest, draws)
    for row in simple:
        if (scores := row.scores(nbest)) is not None:
            yield Scored(row, judged.of_scores(scores))
    if (scores := mean.scores(nbest)) is not None:
        log_loss = None
        if isinstance(judged, Comparisons) and measure_deviation(nbest, scores):
            # The mean of the features orders the candidates by itself, without its slope.
            slope, left_out = _cross_fit(judged, {mean.name: scores})
            log_loss = judged.log_loss(left_out)
            mean = structs.replace(mean, slope=slope[mean.name])
        yield Scored(mean, judged.of_scores(scores), log_loss)
        yield from _select_features(judged, [*mean.weights])
    varying = np.array(nbest.feature_names)[nbest.spread > 0].tolist()
    columns = {name: values_of(nbest, name) for name in varying}
    if isinstance(judged, Comparisons) and columns:
        weights, left_out = _cross_fit(judged, columns)
        row = BaselineRow(Way.LOGISTIC, weights=weights, slope=1.0)
        yield Scored(row, judged.of_scores(left_out), judged.log_loss(left_out))
    elif isinstance(judged, Gains):
        yield from _select_system(judged, [] if draws is None else find_indicators(draws))
        if columns and centre(judged.gains, nbest.sizes).any():
            weights, left_out = _cross_fit(judged, columns)
            yield Scored(BaselineRow(Way.RIDGE, weights=weights), judged.of_scores(left_out))


def list_simple_ways(nbest: NBest, draws: Draws | None = None) -> list[BaselineRow]:
    """Return the ways to choose that need no judgements, the mean of the features last.

    Args:
        nbest: the lists.
        draws: a posterior, for the canonical weights, the signs of the prior means, and the
            indicators, which are no part of the mean.
    """
    prior, canonical, ignored = dict[str, float](), dict[str, float](), set[str]()
    if draws is not None:
        sources = find_indicators(draws)
        ignored = {f"{source.column}={value}" for source in sources for value in source.values}
        prior = _name_weights(draws, draws.constants.get("prior_mean", draws.canonical))
        canonical = {} if lacks_canonical(draws) else _name_weights(draws, draws.canonical)
    spread = zip(nbest.feature_names, nbest.spread.tolist(), strict=True)
    mean = {
        name: (-1 if prior.get(name, 0.0) < 0 else 1) / deviation
        for name, deviation in spread
        if deviation > 0 and name not in ignored
    }
    ways = {Way.FIRST: {}, Way.TOTAL: {}, Way.CANONICAL: canonical, Way.MEAN: mean}
    return [BaselineRow(name, weights=weights) for name, weights in ways.items()]


def _name_weights(draws: Draws, free: Float64 | None) -> dict[str, float]:
    """Return a vector of weights by name, fixed weights included; empty if there is none."""
    if free is None:
        return dict(draws.fixed)
    return {**draws.fixed, **dict(zip(draws.features, np.asarray(free).tolist(), strict=True))}


def sum_gains(judged: Gains | Comparisons, scored: Iterable[Scored]) -> dict[Key, Float64]:
    """Return sums over lists for `estimate_rows`; those of more lists can be added to them.

    Args:
        judged: the lists.
        scored: the ways to choose.

    Returns:
        (14,) sums for each way, in the order of a table, with a random candidate and the best one.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.diagnostics.baseline_table import estimate_rows
    >>> lists = from_lists([["a", "b"]] * 2, [[[0.0], [1.0]]] * 2, ["LM0"])
    >>> judged = Gains(lists, np.array([0.0, 4.0, 4.0, 0.0]), 0)
    >>> first = Scored(BaselineRow("first candidate"), np.array([0.0, 4.0]))
    >>> adapted = Scored(BaselineRow("adapted weights", "adapted"), np.array([4.0, 4.0]))
    >>> row = estimate_rows((), sum_gains(judged, [first, adapted]))[1]
    >>> row.name, row.gain, row.share, row.difference
    ('first candidate', 2.0, 0.0, 2.0)
    """
    weight, bounds, result = judged.list_weight, judged.bounds(), dict[Key, Float64]()
    missing = np.full(len(weight), np.nan)
    random, best = map(Scored, (BaselineRow(name, "bound") for name in _BOUNDS), bounds)
    every = sorted([*scored, random, best], key=lambda way: KINDS.index(way.row.kind))
    adapted = next((way.gains for way in every if way.row.kind == "adapted"), missing)
    for row, gains, log_loss in every:
        difference = missing if row.kind == "adapted" else adapted - gains
        loss = missing if log_loss is None else log_loss
        parts = np.ones(len(weight)), *(weight * x for x in (*bounds, loss))
        sums = [np.sum(part, where=np.isfinite(gains)) for part in parts]
        sums += [*sum_moments(gains, weight), *sum_moments(difference, weight)]
        result[row.kind, row.name] = np.array(sums)
    return result


def find_indicators(draws: Draws) -> list[Indicators]:
    """Return the indicators of categories, such as systems, that a posterior has weights for."""
    return [one for one in Recipe.of(draws).sources if isinstance(one, Indicators)]


def lacks_canonical(draws: Draws) -> bool:
    """Return whether a posterior has no canonical weights, or does not record them."""
    return draws.canonical is None or not draws.record.canonical


def _select_left_out(
    gains: Float64, weight: Float64, middle: Float64 | None = None
) -> tuple[Float64, Float64]:
    """Select one of several ways to choose, for each list by the others.

    Args:
        gains: (sentences, ways) gain of each list by each way, NaN for one that it does not have.
        weight: (sentences,) of each list.
        middle: (sentences,) what is subtracted from the gains of a list to compare ways that some
            lists do not have, and the gain of a list without a way that others have.

    Returns:
        (sentences,) the gain of each list by the way with the highest mean gain on the other lists;
        and (ways,) the mean gain of each way.

    >>> table = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> [part.round(2).tolist() for part in _select_left_out(table, np.ones(3))]
    [[0.0, 1.0, 0.0], [0.33, 1.33]]
    """
    middle = np.zeros(len(gains)) if middle is None else middle
    has = np.isfinite(gains) * weight[:, None]
    total = has * np.nan_to_num(gains - middle[:, None])
    others = has.sum(axis=0) - has
    usable = (has > 0) & (others > 0)
    mean = np.full_like(total, -np.inf)
    np.divide(total.sum(axis=0) - total, others, out=mean, where=usable)
    chosen = gains[np.arange(len(gains)), np.argmax(mean, axis=1)]
    return np.where(usable.any(axis=1), chosen, middle), total.sum(axis=0) / has.sum(axis=0)


def find_system_column(nbest: NBest, categorical: Iterable[str] = ()) -> str:
    """Return the extra that names the system of each candidate; empty if there is none.

    Args:
        nbest: the lists.
        categorical: extras to try first, before `system` and `model`.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]] * 2, [[[0.0]] * 2] * 2, ["LM0"])
    >>> find_system_column(lists), find_system_column(lists.with_extras(system=["X", "Y"] * 2))
    ('', 'system')
    """
    return _find_systems(nbest, categorical)[0]


def _find_systems(
    nbest: NBest, categorical: Iterable[str]
) -> tuple[str, dict[str, npt.NDArray[np.bool_]]]:
    """Return the column of the systems, and which candidates are of each, (candidates,).

    A system has candidates in at least half of the lists, and a column names two or more.
    """
    starts, least = nbest.offsets[:-1], _MIN_SHARE * len(nbest)
    for column in (*categorical, *_SYSTEM_COLUMNS):
        texts = nbest.extras.get(column, ())
        if any(isinstance(text, str) and text for text in texts):
            names = np.array([str(text or "") for text in texts])
            values, counts = np.unique(names, return_counts=True)
            masks = {name: names == name for name in values[counts >= least].tolist() if name}
            lists = {name: np.logical_or.reduceat(mask, starts) for name, mask in masks.items()}
            members = {name: mask for name, mask in masks.items() if lists[name].sum() >= least}
            if len(members) > 1:
                return column, members
    return "", {}


def _select_features(judged: Gains | Comparisons, names: Sequence[str]) -> Iterator[Scored]:
    """Yield the best single feature, and each feature, in the direction that is better."""
    options = [(name, sign) for name in names for sign in _SIGNS]
    gains = [judged.of_scores(sign * values_of(judged.lists, name)) for name, sign in options]
    chosen, means = _select_left_out(np.column_stack(gains), judged.list_weight)
    name, sign = options[int(means.argmax())]
    yield Scored(BaselineRow(Way.FEATURE, weights={name: sign}), chosen)
    for k, name in enumerate(names):
        # By all lists: the one left out would turn the direction of a feature that is right in
        # half of them, and count as wrong.
        best = 2 * k + int(means[2 * k + 1] > means[2 * k])
        yield Scored(BaselineRow(name, "feature", weights=dict([options[best]])), gains[best])


def _select_system(judged: Gains, indicators: Sequence[Indicators]) -> Iterator[Scored]:
    """Yield the best single system, if candidates are of systems.

    Systems are ranked by the mean difference of their candidates from the mean of the list, which
    is the order of the mean gains if each list has all systems. For a list without the best
    system, the best system of the list is used.
    """
    nbest, (random, _) = judged.lists, judged.bounds()
    column, members = _find_systems(nbest, [source.column for source in indicators])
    if members:
        has = [np.logical_or.reduceat(rows, nbest.offsets[:-1]) for rows in members.values()]
        gains = [judged.of_scores(rows.astype(np.float64)) for rows in members.values()]
        table = np.where(has, gains, np.nan).T
        chosen, above = _select_left_out(table, judged.list_weight, random)
        ranking = np.array([*members])[np.argsort(-above, kind="stable")].tolist()
        weights = {name: float(len(ranking) - place) for place, name in enumerate(ranking)}
        yield Scored(BaselineRow(Way.SYSTEM, weights=weights, column=column), chosen)


def _cross_fit(
    judged: Gains | Comparisons, columns: dict[str, Float64]
) -> tuple[dict[str, float], Float64]:
    """Return the weights of columns by a regression, and scores by those of the other folds.

    Args:
        judged: at least two lists; a fold is a tenth of them.
        columns: (candidates,) values that vary within the lists, by name. The regression gets them
            minus their means of each list, and divided by their spread within the lists.

    Returns:
        the weights by name; and (candidates,) scores.
    """
    sizes = judged.lists.sizes
    table = np.column_stack([centre(column, sizes) for column in columns.values()])
    spread = np.sqrt(np.mean(table**2, axis=0))
    table /= spread
    folds = np.repeat(np.arange(len(sizes)) % min(len(sizes), _FOLDS), sizes)
    if isinstance(judged, Comparisons):
        fit = _prepare_logistic(judged, table, folds)
    else:
        fit = _prepare_ridge(centre(judged.gains, sizes), table, folds)
    every, scores = frozenset(folds.tolist()), np.zeros(len(table))
    for fold in every:
        scores[folds == fold] = table[folds == fold] @ fit(every - {fold})
    return dict(zip(columns, (fit(every) / spread).tolist(), strict=True)), scores


def _prepare_ridge(gains: Float64, table: Float64, folds: Int64) -> _Fit:
    """Return the ridge regression of gains on features.

    Neither the means of each list, which are subtracted, nor the scale of the gains change the
    choice from a list. The penalty has the highest mean R² on left-out folds of lists, as in
    `RidgeCV` of scikit-learn with folds of lists. The same numbers are computed here from sums of
    squares, which is faster.

    With 10 judged lists and all metrics of WMT 2023, this penalty wins 0.60 of the headroom of
    held-out lists, the one of the lowest mean squared error 0.55, and that of the highest evidence
    (`BayesianRidge`) 0.49: few candidates with large errors determine them.
    """
    target = gains / root_mean_square(gains)
    if len(table) <= _DUAL * table.shape[1]:
        return _prepare_dual_ridge(target, table, folds)
    parts = [(table[folds == fold], target[folds == fold]) for fold in range(folds.max() + 1)]
    squares = np.stack([x.T @ x for x, _ in parts])
    products = np.stack([x.T @ y for x, y in parts])

    @cache
    def path(kept: frozenset[int]) -> Float64:
        """Return the weights from some folds, (penalties, features)."""
        values, vectors = np.linalg.eigh(squares[[*kept]].sum(axis=0))
        along = vectors.T @ products[[*kept]].sum(axis=0)
        return np.asarray(along / (values + _PENALTIES[:, None]) @ vectors.T)

    def fit(kept: frozenset[int]) -> Float64:
        """Return the weights with the penalty of the highest mean R², but for sign and constant."""
        error = np.zeros(len(_PENALTIES))
        for fold in kept:
            w, y = path(kept - {fold}), parts[fold][1]
            sums = np.sum((w @ squares[fold] - 2 * products[fold]) * w, axis=1)
            error += sums / (y @ y or 1.0)
        return np.asarray(path(kept)[np.argmin(error)])

    return fit


def _prepare_dual_ridge(target: Float64, table: Float64, folds: Int64) -> _Fit:
    """Return the same regression from products of candidates, for tables with many features.

    With C = (X Xᵀ + penalty I)⁻¹ the weights are Xᵀ C y. Without the candidates B they are
    Xᵀ (C y − C_B C_BB⁻¹ (C y)_B), and the errors of these candidates are C_BB⁻¹ (C y)_B.
    """
    members = [np.flatnonzero(folds == fold) for fold in range(folds.max() + 1)]
    values, vectors = np.linalg.eigh(table @ table.T)
    along = vectors.T @ target

    count = len(members)
    # Without each fold, and at the end without none.
    errors = np.zeros((count + 1, len(_PENALTIES)))
    dual = np.zeros((count + 1, len(_PENALTIES), len(target)))
    for k, penalty in enumerate(_PENALTIES):
        inverse = (vectors / (values + penalty)) @ vectors.T
        dual[:, k] = weights = vectors @ (along / (values + penalty))
        for first, rows in enumerate(members):
            left_out = np.linalg.solve(inverse[np.ix_(rows, rows)], weights[rows])
            errors[count, k] += _error(left_out, target[rows])
            dual[first, k] -= inverse[:, rows] @ left_out
            for second, others in enumerate(members[:first]):
                both = np.concatenate([rows, others])
                left_out = np.linalg.solve(inverse[np.ix_(both, both)], weights[both])
                errors[second, k] += _error(left_out[: len(rows)], target[rows])
                errors[first, k] += _error(left_out[len(rows) :], target[others])

    def fit(kept: frozenset[int]) -> Float64:
        """Return the weights with the penalty of the highest mean R², without at most one fold."""
        place = next(iter({*range(count)} - kept), count)
        return np.asarray(table.T @ dual[place, np.argmin(errors[place])])

    return fit


def _error(difference: Float64, values: Float64) -> float:
    """Return −R² of predictions with some differences from the values, but for a constant."""
    squares = values @ values
    return float((difference @ difference - squares) / (squares or 1.0))


def _prepare_logistic(pairs: Comparisons, table: Float64, folds: Int64) -> _Fit:
    """Return the logistic regression of preferences on differences of two candidates."""
    from sklearn.linear_model import LogisticRegression

    differences, basis = table[pairs.better] - table[pairs.worse], None
    if len(differences) < differences.shape[1]:  # the weights are in the span of the differences
        basis = np.linalg.qr(differences.T)[0]
        differences = differences @ basis

    def fit(kept: frozenset[int]) -> Float64:
        """Return the weights from some folds; half of each answer is written the other way."""
        used = np.isin(folds[pairs.better], [*kept])
        x, weight = differences[used], np.tile(pairs.weight[used] / 2, 2)
        model = LogisticRegression(fit_intercept=False, solver="newton-cholesky", tol=1e-10)
        model.fit(np.vstack([x, -x]), np.repeat([1, 0], len(x)), weight)
        weights = model.coef_[0] if basis is None else basis @ model.coef_[0]
        return np.asarray(weights)

    return fit
