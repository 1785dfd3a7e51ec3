"""Select baselines, simple ways to choose from n-best lists, on lists with gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.weights import spread_within

FIRST = "first candidate"
TOTAL = "total of the decoder"
CANONICAL = "canonical weights"
MEAN = "mean of the standardised features"
FEATURE = "best single feature"
SYSTEM = "best single system"
#: Extras that may name the system of each candidate.
_SYSTEM_COLUMNS = ("system", "model")
#: A system is considered if it has a candidate in at least this share of the lists.
_MIN_SHARE = 0.5


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

    >>> lists = NBest.from_lists([["a", "b"]], [[[1.0, 0.0], [2.0, 3.0]]], ["LM0", "Length"])
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
        return result

    def feature_scores(self, nbest: NBest, name: str) -> Float64:
        """Return the scores of a single feature in its better direction, (hypotheses,)."""
        return self.directions.get(name, 1) * _column(nbest, name)

    def choice(self, nbest: NBest, name: str, canonical: Float64 | None = None) -> Int64:
        """Return the position that a baseline chooses from each list, (sentences,).

        Among equal scores it is the first.
        """
        return nbest.best(self.scores(nbest, canonical)[name])

    def detail(self, name: str) -> str:
        """Return the feature or the system of a baseline; empty for the others."""
        if name == FEATURE:
            return f"low {self.feature}" if self.directions[self.feature] < 0 else self.feature
        return str(self.systems[0]) if name == SYSTEM and self.systems else ""

    def named(self, name: str) -> str:
        """Return the name of a baseline with its feature or system.

        >>> Baselines(feature="TER", directions={"TER": -1}).named(FEATURE)
        'best single feature (low TER)'
        """
        detail = self.detail(name)
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
            SYSTEM: f"take the candidates of {self.detail(SYSTEM)}",
        }[name]


class Selected(NamedTuple):
    """Baselines selected on N judged lists, and their gains by leave-one-out.

    Attributes:
        baselines: selected on all lists.
        gains: name -> (N,) gain of each list by the baseline; selections are made on the other
            lists.
        features: feature -> (N,) gain of each list by the feature alone, likewise.
    """

    baselines: Baselines
    gains: dict[str, Float64]
    features: dict[str, Float64]


def select_baselines(
    nbest: NBest,
    gains: Float64,
    *,
    signs: Mapping[str, int] | None = None,
    canonical: Float64 | None = None,
    column: str = "",
    ignore: Sequence[str] = (),
) -> Selected:
    """Select the best feature, its direction and the best system, and evaluate by leave-one-out.

    For equal scores, the gain of a list is the mean over the candidates with the best score.

    Args:
        nbest: at least two lists.
        gains: (hypotheses,) finite.
        signs: 1 or −1 of features in the mean of the standardised features; 1 unless given.
        canonical: (hypotheses,) scores by the canonical weights, where there are any.
        column: the extra that names the system of a candidate; empty if there is none.
        ignore: features that are not baselines, such as indicators of systems.

    >>> lists = NBest.from_lists([["a", "b"]] * 4, [[[0.0], [1.0]]] * 4, ["TER"])
    >>> result = select_baselines(lists, np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0]))
    >>> result.baselines.directions, result.gains["best single feature"].tolist()
    ({'TER': -1}, [1.0, 0.0, 1.0, 1.0])
    """
    spread = dict(zip(nbest.feature_names, spread_within(nbest).tolist(), strict=True))
    spread = {name: s for name, s in spread.items() if s > 0 and name not in ignore}
    by_sign = {
        name: np.column_stack(
            [gains_of_best(nbest, sign * _column(nbest, name), gains) for sign in _SIGNS]
        )
        for name in spread
    }
    means = {name: pair.mean(axis=0).max() for name, pair in by_sign.items()}
    ranking, by_system = _systems(nbest, gains, column)
    baselines = Baselines(
        spread=spread,
        signs={name: (signs or {}).get(name, 1) for name in spread},
        directions={n: _SIGNS[int(pair.sum(axis=0).argmax())] for n, pair in by_sign.items()},
        feature=max(means, key=lambda name: means[name], default=""),
        column=column if ranking else "",
        systems=ranking,
    )
    gains_by_name = {
        name: gains_of_best(nbest, scores, gains)
        for name, scores in baselines.scores(nbest, canonical).items()
    }
    if by_sign:
        gains_by_name[FEATURE] = left_out_gains(np.column_stack(list(by_sign.values())))
    if by_system is not None:
        gains_by_name[SYSTEM] = by_system
    best = max(gains_by_name, key=lambda name: gains_by_name[name].mean())
    features = {name: left_out_gains(pair) for name, pair in by_sign.items()}
    return Selected(replace(baselines, best=best), gains_by_name, features)


_SIGNS = (1, -1)


def gains_of_best(nbest: NBest, scores: Float64, gains: Float64) -> Float64:
    """Return the gain of the highest score of each list, (sentences,).

    For candidates of equal score it is their mean. Candidates without a gain (NaN) are ignored; if
    none of the best has a gain, the gain of the list is NaN.

    Args:
        nbest: the lists.
        scores: (hypotheses,).
        gains: (hypotheses,).

    >>> lists = NBest.from_lists([["a", "b", "c"]], [[[0.0]] * 3], ["LM0"])
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


def left_out_gains(gains: Float64) -> Float64:
    """Return the gain of each list by the way with the highest mean gain on the other lists.

    Args:
        gains: (sentences, ways) gain of each list by several ways to choose.

    >>> left_out_gains(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])).tolist()
    [0.0, 1.0, 0.0]
    """
    chosen = np.argmax(gains.sum(axis=0) - gains, axis=1)
    return np.asarray(gains[np.arange(len(gains)), chosen])


def system_column(nbest: NBest, categorical: Sequence[str] = ()) -> str:
    """Return the extra that names the system of each candidate; empty if there is none.

    Args:
        nbest: the lists.
        categorical: extras to try first, before `system` and `model`.

    >>> lists = NBest.from_lists([["a", "b"]] * 2, [[[0.0]] * 2] * 2, ["LM0"])
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
    if not len(texts) or not any(isinstance(text, str) and text for text in texts):
        return {}
    names, index = np.unique([str(text or "") for text in texts], return_inverse=True)
    list_of = np.repeat(np.arange(len(nbest)), nbest.sizes)
    order = np.argsort(index, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(index, minlength=len(names)))[:-1])
    min_lists = _MIN_SHARE * len(nbest)
    return {
        str(name): rows
        for name, rows in zip(names, groups, strict=True)
        if name and len(rows) >= min_lists and len(np.unique(list_of[rows])) >= min_lists
    }


def _systems(nbest: NBest, gains: Float64, column: str) -> tuple[list[str], Float64 | None]:
    """Return the systems, best first, and the gain of each list by leave-one-out selection.

    Systems are ranked by the mean difference of their candidates from the mean of the list, which
    is the order of the mean gains if each list has all systems. For a list without the best
    system, the best system of the list is used.
    """
    rows = _recurring(nbest, column) if column else {}
    if not rows:
        return [], None
    list_of = np.repeat(np.arange(len(nbest)), nbest.sizes)
    mean = np.add.reduceat(gains, nbest.offsets[:-1]) / nbest.sizes
    table = np.full((len(nbest), len(rows)), np.nan)
    for j, of_system in enumerate(rows.values()):
        sentences, weight = list_of[of_system], gains[of_system]
        count = np.bincount(sentences, minlength=len(nbest))
        total = np.bincount(sentences, weights=weight, minlength=len(nbest))
        table[count > 0, j] = total[count > 0] / count[count > 0]
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


def _column(nbest: NBest, name: str) -> Float64:
    return nbest.features[:, nbest.feature_names.index(name)].astype(np.float64)
