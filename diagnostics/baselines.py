"""Simple ways to choose from n-best lists, selected on judged lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement, pairwise
from typing import NamedTuple

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.features.recipe import Recipe
from bpa_ppl.metrics.column import select_marked
from bpa_ppl.metrics.gains import gains as gains_in
from bpa_ppl.metrics.metric import Metric
from bpa_ppl.metrics.preferences import Comparisons, select_compared
from bpa_ppl.nbest import NBest, centre, find_feature, measure_deviation
from bpa_ppl.posterior.draws import Draws

FIRST = "first candidate"
TOTAL = "total of the decoder"
CANONICAL = "canonical weights"
MEAN = "mean of the standardised features"
FEATURE = "best single feature"
SYSTEM = "best single system"
RIDGE = "ridge regression"
LOGISTIC = "logistic regression"
WITHOUT = "adapted weights without indicators"
#: How to use each way to choose instead of the adapted weights, in the order of the tables.
_ADVICE = {
    FIRST: "take the first candidate of each list",
    TOTAL: "take the candidate of the highest total",
    CANONICAL: "keep the canonical weights",
    MEAN: "choose by the mean of the standardised features, or adapt from there (equal weights)",
    FEATURE: "choose by the {extreme} {feature} alone",
    SYSTEM: "take the candidates of {system}",
    RIDGE: "choose by RidgeCV of scikit-learn, fitted to gains and features minus their means of "
    "each list",
    LOGISTIC: "choose by LogisticRegression of scikit-learn, fitted to the differences of the "
    "features of two candidates",
    WITHOUT: "leave out categorical {indicators}",
}
RANDOM, BEST = "random candidate", "best candidate"
#: Extras that may name the system of each candidate.
_SYSTEM_COLUMNS = ("system", "model")
#: A system is considered if it has a candidate in at least this share of the lists.
_MIN_SHARE = 0.5
#: Parts of the lists that are left out in turn to evaluate a regression.
_FOLDS = 10
#: Of the ridge regression of standardised gains on standardised features, the largest first.
_PENALTIES = np.logspace(5, -1, 13)
#: If the first candidate is the preferred one in so many lists or more, and in all of them, the
#: order of the candidates was made from the answers.
_ORDERED = 5
_SIGNS = (1, -1)


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
        """Return the scores by which each baseline chooses, (candidates,) by name.

        Args:
            nbest: lists with the features that the baselines were selected from.
            canonical: (candidates,) scores by the canonical weights, where there are any.
        """
        start = np.repeat(nbest.offsets[:-1], nbest.sizes)
        result: dict[str, Float64] = {FIRST: (start - np.arange(len(start))).astype(np.float64)}
        if nbest.totals is not None:
            result[TOTAL] = nbest.totals.astype(np.float64)
        if canonical is not None:
            result[CANONICAL] = np.asarray(canonical, np.float64)
        if self.column and self.column in nbest.extras:
            names = {name: -rank for rank, name in enumerate(self.systems)}
            texts = nbest.extras[self.column]
            result[SYSTEM] = np.array([names.get(str(t), -len(names)) for t in texts], np.float64)
        mean = {name: self.signs.get(name, 1) / spread for name, spread in self.spread.items()}
        single = {self.feature: self.directions.get(self.feature, 1)} if self.feature else {}
        linear: dict[str, Mapping[str, float]] = {
            MEAN: mean,
            FEATURE: single,
            RIDGE: self.ridge,
            LOGISTIC: self.logistic,
            WITHOUT: self.without,
        }
        for name, weights in linear.items():
            if weights:
                parts = (weight * _column(nbest, name) for name, weight in weights.items())
                result[name] = np.asarray(sum(parts))
        return {name: result[name] for name in _ADVICE if name in result}

    def utilities(self, scores: Mapping[str, Float64]) -> dict[str, Float64]:
        """Return the scores whose differences are the logits of preferences, by name.

        Args:
            scores: from `scores`.
        """
        result = {LOGISTIC: scores[LOGISTIC]} if self.logistic else {}
        return {MEAN: self.slope * scores[MEAN], **result} if self.slope else result

    def feature_scores(self, nbest: NBest, name: str) -> Float64:
        """Return the scores of a single feature in its better direction, (candidates,)."""
        return self.directions.get(name, 1) * _column(nbest, name)

    def choice(self, nbest: NBest, name: str, canonical: Float64 | None = None) -> Int64:
        """Return the position that a baseline chooses from each list, (sentences,).

        Among equal scores it is the first.
        """
        return nbest.best(self.scores(nbest, canonical)[name])

    def described(self, feature: str) -> str:
        """Return the name of a feature with its better direction, if that is low."""
        return f"low {feature}" if self.directions.get(feature, 1) < 0 else feature

    def named(self, name: str) -> str:
        """Return the name of a baseline with its feature or system.

        >>> Baselines(feature="TER", directions={"TER": -1}).named(FEATURE)
        'best single feature (low TER)'
        """
        feature, system = self.described(self.feature), next(iter(self.systems), "")
        details = {FEATURE: feature, SYSTEM: system, WITHOUT: self.indicators}
        return f"{name} ({details[name]})" if details.get(name) else name

    def advice(self, name: str) -> str:
        """Return how to use a baseline instead of the adapted weights.

        >>> Baselines(systems=["B", "A"]).advice(SYSTEM)
        'take the candidates of B'
        """
        return _ADVICE[name].format(
            extreme="lowest" if self.directions.get(self.feature, 1) < 0 else "highest",
            feature=self.feature,
            system=next(iter(self.systems), ""),
            indicators=self.indicators,
        )


@dataclass(frozen=True)
class Gains:
    """Lists whose candidates have gains.

    Attributes:
        lists: the lists.
        gains: (candidates,); NaN for a candidate without a gain.
        left_out: the number of candidates without a gain.
    """

    lists: NBest
    gains: Float64
    left_out: int

    @property
    def weight(self) -> Float64:
        """(sentences,) the weight of each list in a mean."""
        return np.ones(len(self.lists))

    def of_scores(self, scores: Float64) -> Float64:
        """Return the gain of each list if scores choose, (sentences,): see `find_best_gains`."""
        return find_best_gains(self.lists, scores, self.gains)

    def association(self, scores: Float64) -> float:
        """Return how far scores explain the gains, in standard errors (`measure_association`)."""
        return measure_association(scores, self.gains, self.lists.offsets)

    def count_best(self, scores: Float64) -> tuple[float, int]:
        """Return in how many lists the choice is one of the best, and the number of lists.

        Candidates of equal score share the choice.
        """
        is_best = self.gains == np.repeat(self.bounds()[BEST], self.lists.sizes)
        shares = find_best_gains(self.lists, scores, is_best.astype(np.float64))
        return float(shares.sum()), len(self.lists)

    def bounds(self) -> dict[str, Float64]:
        """Return the mean and the highest gain of each list, over its judged candidates."""
        starts, judged = self.lists.offsets[:-1], np.isfinite(self.gains)
        count = np.add.reduceat(judged.astype(np.float64), starts)
        with np.errstate(invalid="ignore"):
            mean = np.add.reduceat(np.where(judged, self.gains, 0.0), starts) / count
        best = np.maximum.reduceat(np.where(judged, self.gains, -np.inf), starts)
        return {RANDOM: mean, BEST: np.where(count > 0, best, np.nan)}


@dataclass(frozen=True)
class Answers:
    """Lists with preferences between their candidates; the gain is the accuracy.

    Attributes:
        lists: the lists.
        pairs: their preferences.
    """

    lists: NBest
    pairs: Comparisons

    @property
    def left_out(self) -> int:
        """The number of answers of "no difference"."""
        return self.pairs.undecided

    @property
    def weight(self) -> Float64:
        """(sentences,) the weight of the answers about each list."""
        return self.pairs.list_weight

    def of_scores(self, scores: Float64) -> Float64:
        """Return the accuracy of scores on each list, (sentences,)."""
        return self.pairs.accuracy(scores)

    def association(self, scores: Float64) -> float:
        """Return how far the accuracy is above ½, in standard errors if there is no association.

        >>> from bpa_ppl import from_lists
        >>> lists = from_lists([["a", "b"]] * 4, [[[0.0], [1.0]]] * 4, ["LM0"])
        >>> lists = lists.with_sentence_extras(preferences=[[[0, 1]]] * 4)
        >>> scores = np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.0])
        >>> Answers(*select_compared(lists)).association(scores)
        1.0
        """
        above = self.weight * (self.of_scores(scores) - 0.5)
        size = float(np.sqrt(above @ above))
        return float(above.sum()) / size if size else 0.0

    def count_best(self, scores: Float64) -> None:
        """Return None: the best candidate of a list is not known."""

    def bounds(self) -> dict[str, Float64]:
        """Return the accuracy of random and of the best scores on each list."""
        ones = np.ones(len(self.lists))
        return {RANDOM: ones / 2, BEST: ones}


def judge(lists: NBest, gain: Metric | None, gains: Float64 | None = None) -> Gains | Answers:
    """Return the lists with two judged candidates or a preference, and how they were judged.

    Args:
        lists: the lists.
        gain: a metric or a column; None for preferences.
        gains: (candidates,) if they are available.
    """
    if gain is None:
        return Answers(*select_compared(lists))
    gains = gains_in(lists, gain) if gains is None else gains
    judged = np.isfinite(gains)
    nbest, rows = select_marked(lists, judged)
    return Gains(nbest, gains[rows], int(np.sum(~judged)))


class Selected(NamedTuple):
    """Baselines that were selected on S lists, and evaluated on them by leave-one-out.

    Attributes:
        baselines: as selected on all lists.
        ways: (S,) the gain of each list, by kind and name of the way to choose; the kinds are
            `baseline` and `feature`, which is a single one.
        log_loss: (S,) the mean −log p of the answers about each list, of baselines with a p.
    """

    baselines: Baselines
    ways: dict[tuple[str, str], Float64]
    log_loss: dict[str, Float64]


def select_baselines(judged: Gains | Answers, draws: Draws | None = None) -> Selected:
    """Select the best feature, its direction and the best system, and evaluate by leave-one-out.

    For equal scores, the gain of a list is the mean over the candidates with the best score. A
    regression is fitted too; with more than ten lists, a tenth of them is left out at a time.

    The gain of preferences is the accuracy, the regression is logistic, and systems are ignored.

    Args:
        judged: at least two lists, with finite gains or preferences.
        draws: a posterior, for the canonical weights, the signs of the prior means, and the
            indicators, which are not baselines.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]] * 4, [[[0.0], [1.0]]] * 4, ["TER"])
    >>> gains = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0])
    >>> baselines, ways, _ = select_baselines(Gains(lists, gains, 0))
    >>> baselines.directions, ways["baseline", "best single feature"].tolist()
    ({'TER': -1}, [1.0, 0.0, 1.0, 1.0])
    """
    signs = {} if draws is None else find_prior_signs(draws)
    sources = [] if draws is None else find_indicators(draws)
    ignored = {f"{source.column}={value}" for source in sources for value in source.values}
    nbest, weight = judged.lists, judged.weight
    varying = zip(nbest.feature_names, nbest.spread.tolist(), strict=True)
    of_all = {name: s for name, s in varying if s > 0}
    spread = {name: s for name, s in of_all.items() if name not in ignored}
    by_sign = {
        name: np.column_stack([judged.of_scores(sign * _column(nbest, name)) for sign in _SIGNS])
        for name in spread
    }
    means = {name: (weight @ pair).max() for name, pair in by_sign.items()}
    baselines = Baselines(
        spread=spread,
        signs={name: signs.get(name, 1) for name in spread},
        directions={n: _SIGNS[int((weight @ pair).argmax())] for n, pair in by_sign.items()},
        feature=max(means, key=lambda name: means[name], default=""),
    )
    selected, log_loss = dict[str, Float64](), dict[str, Float64]()
    if by_sign:
        selected[FEATURE] = _select_left_out(np.column_stack(list(by_sign.values())), weight)
    if isinstance(judged, Answers):
        baselines, left_out = _logistic(judged, of_all, baselines)
        log_loss = {name: judged.pairs.log_loss(scores) for name, scores in left_out.items()}
        # The mean of the features orders the candidates by itself, without its slope.
        left_out.pop(MEAN, None)
    else:
        ridge, left_out = _ridge(judged, of_all)
        column = find_system_column(nbest, [source.column for source in sources])
        systems, of_systems = _systems(judged, column)
        baselines = replace(
            baselines, column=column if systems else "", systems=systems, ridge=ridge
        )
        selected |= of_systems
    canonical = None if draws is None else score_by_canonical(draws, nbest)
    scores = baselines.scores(nbest, canonical) | left_out
    gains = {name: judged.of_scores(values) for name, values in scores.items()} | selected
    if isinstance(judged, Answers) and is_ordered(gains[FIRST].mean(), len(nbest)):
        del gains[FIRST]
    best = max(gains, key=lambda name: weight @ gains[name], default="")
    ways = {("baseline", name): values for name, values in gains.items()}
    ways |= {("feature", name): _select_left_out(pair, weight) for name, pair in by_sign.items()}
    return Selected(replace(baselines, best=best), ways, log_loss)


def find_indicators(draws: Draws) -> list[Indicators]:
    """Return the indicators of categories, such as systems, that a posterior has weights for."""
    sources = Recipe.of(draws).sources
    return [source for source in sources if isinstance(source, Indicators)]


def lacks_canonical(draws: Draws) -> bool:
    """Return whether a posterior has no canonical weights, or does not record them."""
    return draws.canonical is None or not draws.record.canonical


def score_by_canonical(draws: Draws, lists: NBest) -> Float64 | None:
    """Return (candidates,) scores by the canonical weights; None if there are none."""
    if draws.canonical is None or lacks_canonical(draws):
        return None
    return lists.scores(draws.aligned(lists, draws.canonical[None])[0])


def find_prior_signs(draws: Draws) -> dict[str, int]:
    """Return the signs of the prior means of the weights; 1 if one is 0."""
    mean = draws.constants.get("prior_mean", draws.canonical)
    free = {} if mean is None else dict(zip(draws.features, np.asarray(mean).tolist(), strict=True))
    return {name: -1 if value < 0 else 1 for name, value in {**draws.fixed, **free}.items()}


def find_best_gains(nbest: NBest, scores: Float64, gains: Float64) -> Float64:
    """Return the gain of the highest score of each list, (sentences,).

    For candidates of equal score it is their mean. Candidates without a gain (NaN) are ignored; if
    none of the best has a gain, the gain of the list is NaN.

    Args:
        nbest: the lists.
        scores: (candidates,).
        gains: (candidates,).

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b", "c"]], [[[0.0]] * 3], ["LM0"])
    >>> find_best_gains(lists, np.array([1.0, 2.0, 2.0]), np.array([9.0, 4.0, 5.0])).tolist()
    [4.5]
    """
    starts = nbest.offsets[:-1]
    best = np.maximum.reduceat(scores, starts)
    tied = (scores == np.repeat(best, nbest.sizes)) & np.isfinite(gains)
    count = np.add.reduceat(tied.astype(np.float64), starts)
    total = np.add.reduceat(np.where(tied, gains, 0.0), starts)
    result: Float64 = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    return result


def measure_association(scores: Float64, gains: Float64, offsets: Int64) -> float:
    """Return how far scores explain gains within lists, in standard errors.

    The sum of the products of standardised scores and ranks of gains, over its standard deviation
    if the gains of each list were permuted: the stratified rank test of van Elteren (1960).

    >>> gains, offsets = np.array([1.0, 2.0, 3.0, 0.0, 0.5, 9.0]), np.array([0, 3, 6])
    >>> round(measure_association(np.arange(6.0), gains, offsets), 6)
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


def is_ordered(accuracy: float, lists: int) -> bool:
    """Return whether candidates are in the order of the answers, such as `chosen` and `rejected`.

    Args:
        accuracy: of the choice of the first candidate.
        lists: the number of lists.
    """
    return lists >= _ORDERED and accuracy == 1


def _select_left_out(gains: Float64, weight: Float64) -> Float64:
    """Return the gain of each list by the way with the highest mean gain on the other lists.

    Args:
        gains: (sentences, ways) gain of each list by several ways to choose.
        weight: (sentences,) of each list.

    >>> _select_left_out(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]]), np.ones(3)).tolist()
    [0.0, 1.0, 0.0]
    """
    weighted = weight[:, None] * gains
    chosen = np.argmax(weighted.sum(axis=0) - weighted, axis=1)
    return np.asarray(gains[np.arange(len(gains)), chosen])


def find_system_column(nbest: NBest, categorical: Sequence[str] = ()) -> str:
    """Return the extra that names the system of each candidate; empty if there is none.

    Args:
        nbest: the lists.
        categorical: extras to try first, before `system` and `model`.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]] * 2, [[[0.0]] * 2] * 2, ["LM0"])
    >>> find_system_column(lists), find_system_column(lists.with_extras(system=["X", "Y"] * 2))
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


def _systems(judged: Gains, column: str) -> tuple[list[str], dict[str, Float64]]:
    """Return the systems, best first, and the gain of each list by leave-one-out selection.

    Systems are ranked by the mean difference of their candidates from the mean of the list, which
    is the order of the mean gains if each list has all systems. For a list without the best
    system, the best system of the list is used. Both are empty if there are no systems.
    """
    nbest, gains = judged.lists, judged.gains
    rows, size = _recurring(nbest, column), len(nbest)
    if not rows:
        return [], {}
    list_of = np.repeat(np.arange(size), nbest.sizes)
    mean = np.add.reduceat(gains, nbest.offsets[:-1]) / nbest.sizes
    count = np.column_stack([np.bincount(list_of[r], minlength=size) for r in rows.values()])
    total = [np.bincount(list_of[r], gains[r], size) for r in rows.values()]
    with np.errstate(invalid="ignore"):  # a list without a system has no gain of it
        table = np.column_stack(total) / count
    present, above = count > 0, np.nan_to_num(table - mean[:, None])
    names, lists = list(rows), present.sum(axis=0)
    ranking = np.argsort(-above.sum(axis=0) / lists, kind="stable")
    others = lists - present
    left_out = (above.sum(axis=0) - above) / np.maximum(others, 1)
    left_out = np.where(present & (others > 0), left_out, -np.inf)
    chosen = table[np.arange(size), np.argmax(left_out, axis=1)]
    by_system = np.where(np.isfinite(left_out).any(axis=1), chosen, mean)
    return [names[j] for j in ranking], {SYSTEM: by_system}


def _ridge(
    judged: Gains, spread: Mapping[str, float]
) -> tuple[dict[str, float], dict[str, Float64]]:
    """Return the weight of each feature by ridge regression, and (candidates,) left-out scores.

    Gains and features are regressed minus their means of each list, which the choice from a list
    does not depend on, and divided by their spread within the lists. The penalty has the highest
    mean R² on left-out folds of lists, as in `RidgeCV` of scikit-learn with folds of lists. The
    same numbers are computed here from sums of squares, which is faster. Both penalty and weights
    that score a list are from other folds.

    With 10 judged lists and all metrics of WMT 2023, this penalty wins 0.60 of the headroom of
    held-out lists, the one of the lowest mean squared error 0.55, and that of the highest evidence
    (`BayesianRidge`) 0.49: few candidates with large errors determine them.

    Args:
        judged: at least two lists with finite gains.
        spread: of each feature that varies within the lists.

    Returns:
        no weights and no scores if neither features nor gains vary within the lists.
    """
    nbest, target = judged.lists, centre(judged.gains, judged.lists.sizes)
    deviation = float(np.sqrt(np.mean(target**2)))
    if not spread or not deviation:
        return {}, {}
    columns = [centre(_column(nbest, name), nbest.sizes) / s for name, s in spread.items()]
    table, target = np.column_stack(columns), target / deviation
    fold = np.repeat(_folds(nbest), nbest.sizes)
    rows = [fold == number for number in range(fold.max() + 1)]
    squares = np.stack([table[r].T @ table[r] for r in rows])
    products = np.stack([table[r].T @ target[r] for r in rows])
    total = [float(target[r] @ target[r]) or 1.0 for r in rows]

    def weights(*left_out: int) -> Float64:
        """Return the weights from the other folds, (penalties, features)."""
        kept = [number for number in range(len(rows)) if number not in left_out]
        values, vectors = np.linalg.eigh(squares[kept].sum(axis=0))
        along = vectors.T @ products[kept].sum(axis=0)
        return np.asarray(along / (values + _PENALTIES[:, None]) @ vectors.T)

    # R² of the first fold of a pair, but for sign and a constant, if both are left out.
    error = np.zeros((len(rows), len(rows), len(_PENALTIES)))
    for one, other in combinations_with_replacement(range(len(rows)), 2):
        w = weights(one, other)
        for first, second in {(one, other), (other, one)}:
            sums = np.sum((w @ squares[first] - 2 * products[first]) * w, axis=1)
            error[first, second] = sums / total[first]
    own = np.einsum("iip->ip", error)
    best, scores = np.argmin(error.sum(axis=0) - own, axis=1), np.zeros(len(target))
    for number, row in enumerate(rows):
        scores[row] = table[row] @ weights(number)[best[number]]
    of_all = weights()[np.argmin(own.sum(axis=0))] / list(spread.values())
    return dict(zip(spread, of_all.tolist(), strict=True)), {RIDGE: scores}


def _logistic(
    judged: Answers, spread: Mapping[str, float], baselines: Baselines
) -> tuple[Baselines, dict[str, Float64]]:
    """Add logistic regressions of preferences on all features, and on the mean of them alone.

    As `LogisticRegression(fit_intercept=False)` of scikit-learn, with its penalty C = 1, on
    differences of two candidates. Features and mean are divided by their spread within the lists.

    Args:
        judged: at least two lists with preferences.
        spread: of each feature that varies within the lists.
        baselines: with the features of the mean.

    Returns:
        the baselines, and the scores by weights from the other folds, (candidates,) by name.
    """
    nbest, pairs, fold = judged.lists, judged.pairs, _folds(judged.lists)
    rows, left_out = np.repeat(fold, nbest.sizes), dict[str, Float64]()

    def fit(name: str, columns: Mapping[str, Float64], spread: Mapping[str, float]) -> list[float]:
        """Return the weights of some columns, and keep their left-out scores."""
        table = np.column_stack([columns[name] / s for name, s in spread.items()])
        differences, scores = table[pairs.better] - table[pairs.worse], np.zeros(len(table))
        for number in range(fold.max() + 1):
            kept, part = fold[pairs.of_list] != number, rows == number
            scores[part] = table[part] @ _logistic_weights(differences[kept], pairs.weight[kept])
        left_out[name] = scores
        weights = _logistic_weights(differences, pairs.weight) / list(spread.values())
        return list(weights.tolist())

    mean = baselines.scores(nbest).get(MEAN)
    if mean is not None and (deviation := measure_deviation(nbest, mean)):
        (slope,) = fit(MEAN, {MEAN: mean}, {MEAN: deviation})
        baselines = replace(baselines, slope=slope)
    if spread:
        weights = fit(LOGISTIC, {name: _column(nbest, name) for name in spread}, spread)
        baselines = replace(baselines, logistic=dict(zip(spread, weights, strict=True)))
    return baselines, left_out


def _logistic_weights(differences: Float64, weight: Float64) -> Float64:
    """Return the penalised weights of the features from differences of the features of pairs.

    Args:
        differences: (pairs, features) of the preferred candidate minus the other one.
        weight: (pairs,).
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    def loss(w: Float64) -> tuple[float, Float64]:
        margin = differences @ w
        value = float(weight @ np.logaddexp(0.0, -margin) + w @ w / 2)
        return value, w - differences.T @ (weight * expit(-margin))

    start = np.zeros(differences.shape[1])
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", tol=1e-10).x)


def _folds(nbest: NBest) -> Int64:
    """Return which part of the lists each list is in, (sentences,)."""
    return np.arange(len(nbest)) % min(len(nbest), _FOLDS)


def _column(nbest: NBest, name: str) -> Float64:
    """Return the values of a feature, (candidates,): 0 if no candidate has it, as in `rerank`."""
    feature = find_feature(nbest, name)
    return np.zeros(len(nbest.features)) if feature is None else feature.astype(np.float64)
