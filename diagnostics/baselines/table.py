"""Simple ways to choose from n-best lists, and adapted weights compared with them in a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.diagnostics.pages.page import Table
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import NBest, centred, deviation_within, feature_of
from bpa_ppl.notes import counted
from bpa_ppl.quality.preferences import Comparisons
from bpa_ppl.tables import decimals_for, text_table

FIRST = "first candidate"
TOTAL = "total of the decoder"
CANONICAL = "canonical weights"
MEAN = "mean of the standardised features"
FEATURE = "best single feature"
SYSTEM = "best single system"
RIDGE = "ridge regression"
LOGISTIC = "logistic regression"
#: The unit of the gain of a way to choose where preferences are observed.
ACCURACY = "accuracy"
WITHOUT = "adapted weights without indicators"
#: Extras that may name the system of each candidate.
_SYSTEM_COLUMNS = ("system", "model")
#: A system is considered if it has a candidate in at least this share of the lists.
_MIN_SHARE = 0.5
#: Parts of the lists that are left out in turn to evaluate a regression.
_FOLDS = 10
#: Of the ridge regression of standardised gains on standardised features, the largest first.
_PENALTIES = np.logspace(5, -1, 13)
ADAPTED = "adapted weights"
RANDOM = "random candidate"
BEST = "best candidate"
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
#: Lists that are added for the interval of an accuracy and of a difference of two (Agresti & Coull
#: 1998; Agresti & Caffo 2000): without them, intervals of few lists are too narrow.
_ADDED, _ADDED_DIFFERENCES = (0.0, 0.0, 1.0, 1.0), (-1.0, 1.0)
#: If the first candidate is the preferred one in so many lists or more, and in all of them, the
#: order of the candidates was made from the answers.
_ORDERED = 5
#: Fields of baselines that are recorded if there are indicators.
_OF_INDICATORS = ("indicators", "without")
#: Fields of a comparison that are recorded as they are.
_RECORDED = ("unit", "evaluation", "unjudged", "doubtful", "association")


@dataclass(frozen=True)
class Baselines:
    """Simple ways to choose from n-best lists, as selected on lists with gains.

    Attributes:
        spread: the standard deviation of each feature within those lists.
        signs: 1 or −1 for each feature, its sign in the mean of the standardised features.
        directions: 1 where the highest value of a feature was the better choice, else −1.
        feature: the best single feature; empty if no feature varies.
        column: the extra that names the system of a candidate; empty if there is none.
        systems: the systems by mean gain, best first.
        best: the name of the baseline of the highest mean gain; empty if none was selected.
        ridge: the weight of each feature by ridge regression; empty if it was not fitted.
        logistic: the weight of each feature by logistic regression of preferences; empty if it was
            not fitted.
        slope: the factor of the mean of the standardised features in the same regression on this
            mean alone.
        indicators: the columns whose values are features of 0 and 1, such as `system`; empty if
            there are none, or weights without them were not adapted.
        without: the weight of each other feature, adapted without these indicators.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[1.0, 0.0], [2.0, 3.0]]], ["LM0", "Length"])
    >>> baselines = Baselines({"LM0": 0.5, "Length": 1.5}, {"LM0": 1, "Length": 1}, {"Length": -1})
    >>> {name: scores.tolist() for name, scores in baselines.scores(lists).items()}
    {'first candidate': [0.0, -1.0], 'mean of the standardised features': [2.0, 6.0]}
    """

    spread: Mapping[str, float] = field(default_factory=dict)
    signs: Mapping[str, int] = field(default_factory=dict)
    directions: Mapping[str, int] = field(default_factory=dict)
    feature: str = ""
    column: str = ""
    systems: Sequence[str] = ()
    best: str = ""
    ridge: Mapping[str, float] = field(default_factory=dict)
    logistic: Mapping[str, float] = field(default_factory=dict)
    slope: float = 0.0
    indicators: str = ""
    without: Mapping[str, float] = field(default_factory=dict)

    def scores(self, nbest: NBest, canonical: Float64 | None = None) -> dict[str, Float64]:
        """Return the scores by which each baseline chooses, (hypotheses,) by name.

        Args:
            nbest: lists with the features that the baselines were selected from.
            canonical: (hypotheses,) scores by the canonical weights, where there are any.
        """
        start = np.repeat(nbest.offsets[:-1], nbest.sizes)
        result: dict[str, Float64] = {FIRST: (start - np.arange(len(start))).astype(np.float64)}
        if nbest.totals is not None:
            result[TOTAL] = nbest.totals.astype(np.float64)
        if canonical is not None:
            result[CANONICAL] = np.asarray(canonical, np.float64)
        if self.spread:
            parts = (
                self.signs.get(name, 1) / spread * _column(nbest, name)
                for name, spread in self.spread.items()
            )
            result[MEAN] = np.asarray(sum(parts))
        if self.feature:
            result[FEATURE] = self.feature_scores(nbest, self.feature)
        if self.column and self.column in nbest.extras:
            names = {name: -rank for rank, name in enumerate(self.systems)}
            texts = nbest.extras[self.column]
            result[SYSTEM] = np.array([names.get(str(t), -len(names)) for t in texts], np.float64)
        of_features = {RIDGE: self.ridge, LOGISTIC: self.logistic, WITHOUT: self.without}
        for name, weights in of_features.items():
            if weights:
                result[name] = _weighted(nbest, weights)
        return result

    def utilities(self, scores: Mapping[str, Float64]) -> dict[str, Float64]:
        """Return the scores whose differences are the logits of preferences, by name.

        Args:
            scores: from `scores`.
        """
        result = {LOGISTIC: scores[LOGISTIC]} if self.logistic else {}
        return {MEAN: self.slope * scores[MEAN], **result} if self.slope else result

    def feature_scores(self, nbest: NBest, name: str) -> Float64:
        """Return the scores of a single feature in its better direction, (hypotheses,)."""
        return self.directions.get(name, 1) * _column(nbest, name)

    def choice(self, nbest: NBest, name: str, canonical: Float64 | None = None) -> Int64:
        """Return the position that a baseline chooses from each list, (sentences,).

        Among equal scores it is the first.
        """
        return nbest.best(self.scores(nbest, canonical)[name])

    def described(self, feature: str) -> str:
        """Return the name of a feature with its better direction, if that is low."""
        return f"low {feature}" if self.directions[feature] < 0 else feature

    def named(self, name: str) -> str:
        """Return the name of a baseline with its feature or system.

        >>> Baselines(feature="TER", directions={"TER": -1}).named(FEATURE)
        'best single feature (low TER)'
        """
        detail = self.described(self.feature) if name == FEATURE else ""
        if name == SYSTEM:
            detail = self.systems[0]
        if name == WITHOUT:
            detail = self.indicators
        return f"{name} ({detail})" if detail else name

    def advice(self, name: str) -> str:
        """Return how to use a baseline instead of the adapted weights.

        >>> Baselines(systems=["B", "A"]).advice(SYSTEM)
        'take the candidates of B'
        """
        direction = "lowest" if self.directions.get(self.feature, 1) < 0 else "highest"
        return {
            FIRST: "take the first candidate of each list",
            TOTAL: "take the candidate of the highest total",
            CANONICAL: "keep the canonical weights",
            MEAN: "choose by the mean of the standardised features, or adapt from there "
            "(equal weights)",
            FEATURE: f"choose by the {direction} {self.feature} alone",
            SYSTEM: f"take the candidates of {next(iter(self.systems), '')}",
            RIDGE: "choose by RidgeCV of scikit-learn, fitted to gains and features minus their "
            "means of each list",
            LOGISTIC: "choose by LogisticRegression of scikit-learn, fitted to the differences of "
            "the features of two candidates",
            WITHOUT: f"leave out categorical {self.indicators}",
        }[name]


class Selected(NamedTuple):
    """Baselines that were selected on S lists, and evaluated on them by leave-one-out.

    Attributes:
        baselines: as selected on all lists.
        gains: (S,) the gain of each list by each baseline.
        features: (S,) by each feature alone.
        log_loss: (S,) the mean −log p of the answers about each list, of baselines with a p.
    """

    baselines: Baselines
    gains: dict[str, Float64]
    features: dict[str, Float64]
    log_loss: dict[str, Float64]


def select_baselines(
    nbest: NBest,
    gains: Float64 | Comparisons,
    *,
    signs: Mapping[str, int] | None = None,
    canonical: Float64 | None = None,
    column: str = "",
    ignore: Sequence[str] = (),
) -> Selected:
    """Select the best feature, its direction and the best system, and evaluate by leave-one-out.

    For equal scores, the gain of a list is the mean over the candidates with the best score. A
    regression is fitted too; with more than ten lists, a tenth of them is left out at a time.

    The gain of preferences is the accuracy, the regression is logistic, and systems are ignored.

    Args:
        nbest: at least two lists.
        gains: (hypotheses,) finite; or the preferences of these lists.
        signs: 1 or −1 of features in the mean of the standardised features; 1 unless given.
        canonical: (hypotheses,) scores by the canonical weights, where there are any.
        column: the extra that names the system of a candidate; empty if there is none.
        ignore: features that are not baselines, such as indicators of systems.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]] * 4, [[[0.0], [1.0]]] * 4, ["TER"])
    >>> gains = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    >>> baselines, gains_by_name, *_ = select_baselines(lists, gains)
    >>> baselines.directions, gains_by_name["best single feature"].tolist()
    ({'TER': -1}, [1.0, 0.0, 1.0, 1.0])
    """
    of_scores: Callable[[Float64], Float64]
    if isinstance(gains, Comparisons):
        of_scores, weight = gains.accuracy, gains.list_weight
    else:
        of_scores = partial(gains_of_best, nbest, gains=gains)
        weight = np.ones(len(nbest))
    of_all = dict(zip(nbest.feature_names, nbest.spread.tolist(), strict=True))
    of_all = {name: s for name, s in of_all.items() if s > 0}
    spread = {name: s for name, s in of_all.items() if name not in ignore}
    by_sign = {
        name: np.column_stack([of_scores(sign * _column(nbest, name)) for sign in _SIGNS])
        for name in spread
    }
    means = {name: (weight @ pair).max() for name, pair in by_sign.items()}
    baselines = Baselines(
        spread=spread,
        signs={name: (signs or {}).get(name, 1) for name in spread},
        directions={n: _SIGNS[int((weight @ pair).argmax())] for n, pair in by_sign.items()},
        feature=max(means, key=lambda name: means[name], default=""),
    )
    by_system, losses = None, dict[str, Float64]()
    if isinstance(gains, Comparisons):
        baselines, utilities = _logistic(nbest, gains, of_all, baselines)
        losses = {name: gains.log_loss(scores) for name, scores in utilities.items()}
        # The mean of the features orders the candidates by itself, without its slope.
        left_out = {name: utilities[name] for name in utilities if name != MEAN}
    else:
        ranking, by_system = _systems(nbest, gains, column)
        ridge, scores = _ridge(nbest, gains, of_all)
        column = column if ranking else ""
        baselines = replace(baselines, column=column, systems=ranking, ridge=ridge)
        left_out = {RIDGE: scores} if ridge else {}
    every = baselines.scores(nbest, canonical) | left_out
    gains_by_name = {name: of_scores(scores) for name, scores in every.items()}
    if by_sign:
        ways = np.column_stack(list(by_sign.values()))
        gains_by_name[FEATURE] = left_out_gains(ways, weight)
    if by_system is not None:
        gains_by_name[SYSTEM] = by_system
    if isinstance(gains, Comparisons) and _is_ordered(gains_by_name[FIRST].mean(), len(nbest)):
        del gains_by_name[FIRST]
    best = max(gains_by_name, key=lambda name: weight @ gains_by_name[name], default="")
    features = {name: left_out_gains(pair, weight) for name, pair in by_sign.items()}
    return Selected(replace(baselines, best=best), gains_by_name, features, losses)


_SIGNS = (1, -1)


def gains_of_best(nbest: NBest, scores: Float64, gains: Float64) -> Float64:
    """Return the gain of the highest score of each list, (sentences,).

    For candidates of equal score it is their mean. Candidates without a gain (NaN) are ignored; if
    none of the best has a gain, the gain of the list is NaN.

    Args:
        nbest: the lists.
        scores: (hypotheses,).
        gains: (hypotheses,).

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b", "c"]], [[[0.0]] * 3], ["LM0"])
    >>> gains_of_best(lists, np.array([1.0, 2.0, 2.0]), np.array([9.0, 4.0, 5.0])).tolist()
    [4.5]
    """
    starts = nbest.offsets[:-1]
    best = np.maximum.reduceat(scores, starts)
    tied = (scores == np.repeat(best, nbest.sizes)) & np.isfinite(gains)
    count = np.add.reduceat(tied.astype(np.float64), starts)
    total = np.add.reduceat(np.where(tied, gains, 0.0), starts)
    result: Float64 = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    return result


def _is_ordered(accuracy: float, lists: int) -> bool:
    """Say whether candidates are in the order of the answers, such as `chosen` and `rejected`.

    Args:
        accuracy: of the choice of the first candidate.
        lists: the number of lists.
    """
    return lists >= _ORDERED and accuracy == 1


def left_out_gains(gains: Float64, weight: Float64) -> Float64:
    """Return the gain of each list by the way with the highest mean gain on the other lists.

    Args:
        gains: (sentences, ways) gain of each list by several ways to choose.
        weight: (sentences,) of each list.

    >>> left_out_gains(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]]), np.ones(3)).tolist()
    [0.0, 1.0, 0.0]
    """
    weighted = weight[:, None] * gains
    chosen = np.argmax(weighted.sum(axis=0) - weighted, axis=1)
    return np.asarray(gains[np.arange(len(gains)), chosen])


def system_column(nbest: NBest, categorical: Sequence[str] = ()) -> str:
    """Return the extra that names the system of each candidate; empty if there is none.

    Args:
        nbest: the lists.
        categorical: extras to try first, before `system` and `model`.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]] * 2, [[[0.0]] * 2] * 2, ["LM0"])
    >>> system_column(lists), system_column(lists.with_extras(system=["X", "Y"] * 2))
    ('', 'system')
    """
    for column in (*categorical, *_SYSTEM_COLUMNS):
        if len(_recurring(nbest, column)) > 1:
            return column
    return ""


def _recurring(nbest: NBest, column: str) -> dict[str, Int64]:
    """Return the rows of each value of an extra that occurs in at least half of the lists."""
    texts = nbest.extras.get(column, ())
    if not any(isinstance(text, str) and text for text in texts):
        return {}
    names, index = np.unique([str(text or "") for text in texts], return_inverse=True)
    list_of = np.repeat(np.arange(len(nbest)), nbest.sizes)
    # The number of lists that each value occurs in.
    lists = np.bincount(np.unique(np.stack([index, list_of]), axis=1)[0])
    return {
        name: np.flatnonzero(index == k)
        for k, name in enumerate(names.tolist())
        if name and lists[k] >= _MIN_SHARE * len(nbest)
    }


def _systems(nbest: NBest, gains: Float64, column: str) -> tuple[list[str], Float64 | None]:
    """Return the systems, best first, and the gain of each list by leave-one-out selection.

    Systems are ranked by the mean difference of their candidates from the mean of the list, which
    is the order of the mean gains if each list has all systems. For a list without the best
    system, the best system of the list is used.
    """
    rows = _recurring(nbest, column)
    if not rows:
        return [], None
    list_of, size = np.repeat(np.arange(len(nbest)), nbest.sizes), len(nbest)
    mean = np.add.reduceat(gains, nbest.offsets[:-1]) / nbest.sizes
    count = np.column_stack([np.bincount(list_of[r], minlength=size) for r in rows.values()])
    total = [np.bincount(list_of[r], gains[r], size) for r in rows.values()]
    with np.errstate(invalid="ignore"):  # a list without a system has no gain of it
        table = np.column_stack(total) / count
    above = table - mean[:, None]
    present, filled = np.isfinite(above), np.nan_to_num(above)
    names = list(rows)
    ranking = np.argsort(-filled.sum(axis=0) / present.sum(axis=0), kind="stable")
    others = present.sum(axis=0) - present
    left_out = (filled.sum(axis=0) - filled) / np.maximum(others, 1)
    left_out = np.where(present & (others > 0), left_out, -np.inf)
    chosen = np.take_along_axis(table, np.argmax(left_out, axis=1)[:, None], axis=1)[:, 0]
    gains_of_lists = np.where(np.isfinite(left_out).any(axis=1), chosen, mean)
    return [names[j] for j in ranking], gains_of_lists


def _ridge(
    nbest: NBest, gains: Float64, spread: Mapping[str, float]
) -> tuple[dict[str, float], Float64]:
    """Return the weight of each feature by ridge regression, and (hypotheses,) left-out scores.

    Gains and features are regressed minus their means of each list, which the choice from a list
    does not depend on, and divided by their spread within the lists. The penalty has the highest
    mean R² on left-out folds of lists, as in `RidgeCV` of scikit-learn with folds of lists. The
    same numbers are computed here from sums of squares, which is faster. Both penalty and weights
    that score a list are from other folds.

    With 10 judged lists and all metrics of WMT 2023, this penalty wins 0.60 of the headroom of
    held-out lists, the one of the lowest mean squared error 0.55, and that of the highest evidence
    (`BayesianRidge`) 0.49: few candidates with large errors determine them.

    Args:
        nbest: at least two lists.
        gains: (hypotheses,) finite.
        spread: of each feature that varies within the lists.

    Returns:
        no weights if neither features nor gains vary within the lists.
    """
    target, scores = centred(gains, nbest.sizes), np.zeros(len(gains))
    deviation = float(np.sqrt(np.mean(target**2)))
    if not spread or not deviation:
        return {}, scores
    columns = [centred(_column(nbest, name), nbest.sizes) / s for name, s in spread.items()]
    table, target = np.column_stack(columns), target / deviation
    count = min(len(nbest), _FOLDS)
    fold = np.repeat(np.arange(len(nbest)) % count, nbest.sizes)
    rows = [fold == number for number in range(count)]
    squares = np.stack([table[r].T @ table[r] for r in rows])
    products = np.stack([table[r].T @ target[r] for r in rows])
    total = [float(target[r] @ target[r]) or 1.0 for r in rows]

    def weights(*left_out: int) -> Float64:
        """Return the weights from the other folds, (penalties, features)."""
        kept = [number for number in range(count) if number not in left_out]
        values, vectors = np.linalg.eigh(squares[kept].sum(axis=0))
        along = vectors.T @ products[kept].sum(axis=0)
        return np.asarray(along / (values + _PENALTIES[:, None]) @ vectors.T)

    # R² of the first fold of a pair, but for sign and a constant, if both are left out.
    error = np.zeros((count, count, len(_PENALTIES)))
    by_fold = [weights(number) for number in range(count)]
    for one, other in combinations_with_replacement(range(count), 2):
        w = by_fold[one] if one == other else weights(one, other)
        for first, second in {(one, other), (other, one)}:
            sums = np.sum((w @ squares[first] - 2 * products[first]) * w, axis=1)
            error[first, second] = sums / total[first]
    own = np.einsum("iip->ip", error)
    best = np.argmin(error.sum(axis=0) - own, axis=1)
    for number, row in enumerate(rows):
        scores[row] = table[row] @ by_fold[number][best[number]]
    of_all = weights()[np.argmin(own.sum(axis=0))] / list(spread.values())
    return dict(zip(spread, of_all.tolist(), strict=True)), scores


def _logistic(
    nbest: NBest, pairs: Comparisons, spread: Mapping[str, float], baselines: Baselines
) -> tuple[Baselines, dict[str, Float64]]:
    """Add logistic regressions of preferences on all features, and on the mean of them alone.

    As `LogisticRegression(fit_intercept=False)` of scikit-learn, with its penalty C = 1, on
    differences of two candidates. Features and mean are divided by their spread within the lists.

    Args:
        nbest: at least two lists.
        pairs: their preferences.
        spread: of each feature that varies within the lists.
        baselines: with the features of the mean.

    Returns:
        the baselines, and the scores by weights from the other folds, (candidates,) by name.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    count = min(len(nbest), _FOLDS)
    fold = np.arange(len(nbest)) % count
    rows = np.repeat(fold, nbest.sizes)

    def fit(columns: Sequence[Float64]) -> tuple[Float64, Float64]:
        """Return the weights of some columns, and (candidates,) left-out scores."""
        table = np.column_stack(columns)
        differences = table[pairs.better] - table[pairs.worse]

        def weights(kept: npt.NDArray[np.bool_]) -> Float64:
            x, weight = differences[kept], pairs.weight[kept]

            def loss(w: Float64) -> tuple[float, Float64]:
                margin = x @ w
                value = float(weight @ np.logaddexp(0.0, -margin) + w @ w / 2)
                return value, w - x.T @ (weight * expit(-margin))

            start = np.zeros(x.shape[1])
            return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", tol=1e-10).x)

        scores = np.zeros(len(table))
        for number in range(count):
            part = rows == number
            scores[part] = table[part] @ weights(fold[pairs.of_list] != number)
        return weights(np.ones(len(differences), bool)), scores

    left_out = {}
    mean = baselines.scores(nbest).get(MEAN)
    deviation = 0.0 if mean is None else deviation_within(nbest, mean)
    if mean is not None and deviation:
        (slope,), left_out[MEAN] = fit([mean / deviation])
        baselines = replace(baselines, slope=float(slope / deviation))
    if spread:
        of_all, left_out[LOGISTIC] = fit([_column(nbest, n) / s for n, s in spread.items()])
        scaled = of_all / list(spread.values())
        baselines = replace(baselines, logistic=dict(zip(spread, scaled.tolist(), strict=True)))
    return baselines, left_out


def _column(nbest: NBest, name: str) -> Float64:
    """Return the values of a feature, (hypotheses,): 0 if no hypothesis has it, as in `rerank`."""
    feature = feature_of(nbest, name)
    return np.zeros(len(nbest.features)) if feature is None else feature.astype(np.float64)


def _weighted(nbest: NBest, weights: Mapping[str, float]) -> Float64:
    """Return the scores by the weights of some features, (hypotheses,)."""
    return np.asarray(sum(weight * _column(nbest, name) for name, weight in weights.items()))


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
        digits = f".{decimals_for(spread, _DECIMALS)}f"
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
                f"on {counted(row.lists, 'list')} the {self._named(row)} has a higher "
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
            lists = counted(row.lists, "list")
            compared += f" the {self._named(row)}, as far as {lists} show"
        both = ""
        if self.unit == ACCURACY and (adapted := self.row(ADAPTED)) is not None:
            both = f"accuracy {adapted.gain:.3f} against {row.gain:.3f}, "
        unit = "" if both else self.unit
        return (
            f"the adapted weights are {compared} ({both}difference {row.difference_in_words(unit)})"
        )

    def _not_better(self, row: BaselineRow) -> bool:
        """Say whether the adapted weights have no higher accuracy than a baseline."""
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
        low, high = proportion_interval(count, lists)
        return (
            f"of {counted(lists, 'adaptation list')}, {100 * count / lists:.0f}% have a choice "
            f"among the best candidates ({LEFT_OUT}, {_PERCENT} interval {100 * low:.0f}% to "
            f"{100 * high:.0f}%)"
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
            f"({counted(row.lists, 'list')}, {self.evaluation}; difference "
            f"{row.difference_in_words()}): {advice}"
        )

    @property
    def notes(self) -> list[str]:
        """Sentences on how the numbers were computed."""
        used = "answers" if self.unit == ACCURACY else "gains"
        how = {
            LEFT_OUT: f"Leave-one-out: choices from a list do not use its {used}.",
            IN_SAMPLE: f"In-sample: the adapted weights use the {used} of these lists.",
        }
        lines = [how[self.evaluation]] if self.evaluation in how else []
        if self.doubtful:
            lines.append(f"Unreliable for {counted(self.doubtful, 'list')} (Pareto k̂ > 0.7).")
        if self.unjudged and self.unit == ACCURACY:
            answers = counted(self.unjudged, "answer")
            lines.append(f"{answers} of “no difference” left out.")
        elif self.unjudged:
            candidates = counted(self.unjudged, "candidate")
            lines.append(f"{candidates} without a gain left out.")
        return lines

    def row(self, name: str) -> BaselineRow | None:
        """Return the row of one way to choose; None if there is none."""
        return next((row for row in self.rows if row.name == name and row.kind != "feature"), None)

    def block(self) -> Table:
        """Return the table, with at most ten single features."""
        accuracy = self.unit == ACCURACY
        header = ["choice", self.measure, "of headroom"]
        if accuracy:
            header[2:] = [f"{_PERCENT} interval", "log loss"]
        columns = len(header)
        if compared := self.row(ADAPTED) is not None:
            header += ["adapted − it", f"{_PERCENT} interval", "adapted is"]
        single = sorted((r for r in self.rows if r.kind == "feature"), key=lambda row: -row.gain)
        hidden = single[_MAX_FEATURES:]
        shown = [row for row in self.rows if row not in hidden]
        if accuracy:  # a random candidate is right in half of the pairs
            shown = [row for row in shown if row.kind != "bound"]
        rows = [
            [self._named(row), *row.cells[1:]][: None if compared else columns] for row in shown
        ]
        explained = (
            _OF_ACCURACY if accuracy else _OF_GAIN.format(unit=self.unit)
        ) + " Features, systems and regressions are those of the adaptation sentences."
        return Table(header, rows, " ".join([explained, *self.notes]))

    def _repr_html_(self) -> str:
        return self.block().html()

    def __str__(self) -> str:
        table = self.block()
        text = text_table(
            [list(map(str, row)) for row in table.rows],
            table.header,
            align="l" + "r" * (len(table.header) - 1),
        )
        return "\n".join([text, *self.notes])

    def record(self) -> dict[str, Any]:
        """Return the comparison as plain values, which `from_record` reads."""
        rows = [
            [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in row]
            for row in self.rows
        ]
        rest = {name: getattr(self, name) for name in _RECORDED}
        baselines = asdict(self.baselines)
        if not self.baselines.indicators:
            baselines = {n: v for n, v in baselines.items() if n not in _OF_INDICATORS}
        return {**rest, "best": self.best, "baselines": baselines, "rows": rows}

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
            rest = {name: record[name] for name in _RECORDED}
            if (best := record.get("best")) is not None:  # earlier versions did not record it
                count, lists = best
                rest["best"] = count, lists
            return cls(rows=rows, baselines=Baselines(**record["baselines"]), **rest)
        except (KeyError, TypeError, ValueError) as error:
            message = f"the comparison with baselines cannot be read ({error}): adapt again"
            raise DataError(message, code="damaged") from error

    def _named(self, row: BaselineRow) -> str:
        baselines = self.baselines
        return baselines.described(row.name) if row.kind == "feature" else baselines.named(row.name)


def gain_sums(
    bounds: Mapping[str, Float64],
    baselines: Mapping[str, Float64],
    features: Mapping[str, Float64],
    adapted: Float64 | None,
    *,
    weight: Float64 | None = None,
    log_loss: Mapping[str, Float64] | None = None,
) -> dict[tuple[str, str], Float64]:
    """Return sums over lists for `rows_of`; those of more lists can be added to them.

    All arrays are (sentences,), NaN where a choice is not judged.

    Args:
        bounds: gains of a random candidate and of the best.
        baselines: of the choices by baselines, by name.
        features: of the choices by single features, by name.
        adapted: of the choices by adapted weights; None if they are not compared.
        weight: of each list; 1 unless given.
        log_loss: the mean −log p of the answers, of ways to choose that have a p.

    Returns:
        (14,) sums by kind and name of a way to choose.

    >>> bounds = {RANDOM: np.zeros(2), BEST: np.full(2, 4.0)}
    >>> sums = gain_sums(bounds, {"first candidate": [1.0, 3.0]}, {}, np.array([3.0, 3.0]))
    >>> row = rows_of(sums)[1]
    >>> row.name, row.gain, row.share, row.difference
    ('first candidate', 2.0, 0.5, 1.0)
    """
    chosen = {} if adapted is None else {ADAPTED: adapted}
    parts = {"adapted": chosen, "baseline": baselines, "feature": features, "bound": bounds}
    weight = np.ones(len(bounds[BEST])) if weight is None else weight
    result = {}
    for kind, gains in parts.items():
        compared = weight * np.nan if adapted is None or kind == "adapted" else adapted
        for name, values in gains.items():
            loss = (log_loss or {}).get(name, weight * np.nan)
            of_choice = weight**0, weight * bounds[RANDOM], weight * bounds[BEST], weight * loss
            sums = [np.sum(part, where=np.isfinite(values)) for part in of_choice]
            difference = np.asarray(compared - values)
            result[kind, name] = np.array(
                [*sums, *moments(values, weight), *moments(difference, weight)]
            )
    return result


def moments(values: npt.ArrayLike, weight: Float64) -> list[float]:
    """Return Σ w, Σ w², Σ w x, Σ w² x and Σ w² x² of finite values x with weights w.

    >>> moments([1.0, np.nan, 3.0], np.array([1.0, 1.0, 2.0]))
    [3.0, 5.0, 7.0, 13.0, 37.0]
    """
    x = np.asarray(values, np.float64)
    x, w = x[np.isfinite(x)], weight[np.isfinite(x)]
    return [float(part.sum()) for part in (w, w**2, w * x, w**2 * x, (w * x) ** 2)]


def rows_of(
    sums: Mapping[tuple[str, str], Float64], *, accuracy: bool = False
) -> tuple[BaselineRow, ...]:
    """Return the rows of the adapted weights, baselines, single features and bounds.

    Args:
        sums: from `gain_sums`.
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
        interval = mean_interval(of_difference, _ADDED_DIFFERENCES if accuracy else ())
        row = BaselineRow(name, kind, int(count), gain / weight, headroom, *interval)
        if accuracy:
            _, low, high = mean_interval(of_gain, _ADDED)
            low, high = max(low, 0.0), min(high, 1.0)
            row = row._replace(gain_low=low, gain_high=high, log_loss=loss / weight)
        if not (accuracy and name == FIRST and _is_ordered(row.gain, row.lists)):
            rows.append(row)
    return tuple(rows)


def mean_interval(sums: npt.ArrayLike, added: Sequence[float] = ()) -> tuple[float, float, float]:
    """Return the weighted mean of numbers and its 95% interval by Student's t.

    Equal numbers have no interval, NaN: that of a few would be of no width.

    The number of degrees of freedom is (Σ w)² / Σ w² − 1, for equal weights one less than that of
    the numbers.

    Args:
        sums: (5,) from `moments`.
        added: further numbers of a typical weight, for the interval only.

    >>> [round(x, 3) for x in mean_interval(moments([1.0, 2.0, 3.0, 4.0], np.ones(4)))]
    [2.5, 0.446, 4.554]
    """
    from scipy.special import stdtrit

    sums = np.asarray(sums, np.float64)
    if not sums[0]:
        return math.nan, math.nan, math.nan
    mean, typical = float(sums[2] / sums[0]), float(sums[1] / sums[0])
    sums = sums + moments(added, np.full(len(added), typical))
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


def proportion_interval(count: float, total: int) -> tuple[float, float]:
    """Return the 95% score interval of a proportion (Wilson 1927).

    Args:
        count: of successes.
        total: of trials, at least 1.

    >>> [round(end, 3) for end in proportion_interval(8, 10)]
    [0.49, 0.943]
    """
    from scipy.special import ndtri

    z = float(ndtri((1 + PROBABILITY) / 2))
    centre = (count + z**2 / 2) / (total + z**2)
    reach = z * math.sqrt(count * (total - count) / total + z**2 / 4) / (total + z**2)
    return max(centre - reach, 0.0), min(centre + reach, 1.0)


def _number(value: float, form: str, unit: str = "") -> str:
    return f"{value:{form}}{unit}" if math.isfinite(value) else "–"
