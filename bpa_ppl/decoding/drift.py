"""Drift: features of new lists that vary, or agree, otherwise than in the adaptation lists.

Weights are wrong without an error if a column has another unit, another sign, or no longer varies.
`feature_scales` describes the features of the adaptation lists; `DriftMonitor` compares the last
new lists with them: the spread and the sign of each feature. The limits were chosen on halves of
real collections: `benchmarks/bench_drift.py`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import write_option
from bpa_ppl.lists.nbest import NBest, centre
from bpa_ppl.posterior.record import FeatureScale

_FACTOR = 3.0  # of the spread within lists, from which a change is reported
_LEVEL = 0.001  # of the tests of the spread of all features together
_FAR = 3.5  # standard errors from which an agreement has turned
_MIRRORED = 0.5  # an agreement has turned below minus this share of the recorded one
_RARE = 1e-3  # the probability of lists in which a feature is constant
_MIN_LISTS = 5  # adaptation lists; fewer are too few to compare with
_MANY = 10  # new lists; of fewer only a spread far out of the range is reported
_LISTS_TOGETHER = 512  # that are compared
_REST = 16  # lists at the end of a stream that are compared all the same
_QUANTILES = np.linspace(0, 1, 11)


def feature_scales(lists: NBest, weights: npt.ArrayLike) -> dict[str, FeatureScale]:
    """Return how each feature varies within lists, by name; {} without lists.

    Args:
        lists: the adaptation lists.
        weights: (features,) of the score, the posterior mean.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]] * 5, [[[1.0, -3.0], [3.0, 0.0]]] * 5, ["LM0", "W0"])
    >>> feature_scales(lists, [1.0, 1.0])["LM0"].agreement
    1.0
    """
    if not len(lists):
        return {}
    several = lists.sizes > 1
    varied = _Lists.of(lists.features[np.repeat(several, lists.sizes)], lists.sizes[several])
    weights = np.asarray(weights, np.float64)
    agreement, count = varied.agreement(weights), int(several.sum())
    means = lists.features.mean(axis=0, dtype=np.float64)
    slopes = _fit_slopes(lists.features - means, weights)
    result = {}
    for k, name in enumerate(lists.feature_names):
        varying = varied.deviations[:, k]
        varying, present = varying[varying > 0], agreement[:, k][~np.isnan(agreement[:, k])]
        result[name] = FeatureScale(
            spread=float(lists.spread[k]),
            lists=count,
            varying=len(varying),
            deviations=tuple(np.quantile(varying, _QUANTILES).tolist()) if len(varying) else (),
            sign=int(varied.sign[k]),
            agreement=float(present.mean()) if len(present) else 0.0,
            agreement_deviation=float(present.std(ddof=1)) if len(present) > 1 else 0.0,
            agreeing=len(present),
            mean=float(means[k]),
            slope=float(slopes[k]),
        )
    return result


def _fit_slopes(values: Float64, weights: Float64) -> Float64:
    """Return (K,) the slopes of the regressions of centred features on the score by the others."""
    # The bits of a matrix product may depend on the number of threads.
    score = np.einsum("rk,k->r", values, weights)
    others = score[:, None] - values * weights
    of_others = np.einsum("rk,rk->k", others, others)
    varies = of_others > 1e-9 * np.einsum("r,r->", score, score)
    product = np.einsum("rk,rk->k", others, values)
    return np.where(varies, product / np.where(varies, of_others, 1.0), 0.0)


class _Lists(NamedTuple):
    """S lists of two or more candidates, R in all, with K features.

    Attributes:
        centred: (R, K) the features minus their mean in the list.
        starts: (S,) the first row of each list.
        squares: (S, K) the sum of squares of the former.
        deviations: (S, K) the standard deviation in each list, over its median for normal values,
            so that lists of different sizes can be compared.
        sign: (K,) of all values; 0 if they have several.
    """

    centred: Float64
    starts: Int64
    squares: Float64
    deviations: Float64
    sign: Int64

    @classmethod
    def of(cls, table: npt.NDArray[Any], sizes: Int64) -> _Lists:
        """Return the statistics of a table, (R, K), of lists of these sizes, (S,)."""
        if not len(sizes):
            none = np.zeros((0, table.shape[1]))
            return cls(none, np.zeros(0, np.int64), none, none, np.zeros(table.shape[1], np.int64))
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        values = centre(table, sizes)
        squares = np.add.reduceat(values**2, starts)
        freedom = (sizes - 1)[:, None]
        # The median of a variance (Wilson & Hilferty 1931).
        deviations = np.sqrt(squares / freedom / (1 - 2 / (9 * freedom)) ** 3)
        sign = (table.min(axis=0) > 0).astype(np.int64) - (table.max(axis=0) < 0)
        return cls(values, starts, squares, deviations, sign)

    def agreement(self, weights: Float64) -> Float64:
        """Return the correlation of each feature with the score by the others in each list.

        (S, K); NaN where one of the two is constant.
        """
        if not len(self.starts):
            return self.deviations
        # The bits of a matrix product may depend on the number of threads.
        score = np.einsum("rk,k->r", self.centred, weights)
        product = np.add.reduceat(self.centred * score[:, None], self.starts)
        of_all = np.add.reduceat(score**2, self.starts)[:, None]
        of_others = of_all - 2 * weights * product + weights**2 * self.squares
        product -= weights * self.squares
        size = np.sqrt(self.squares * np.maximum(of_others, 0.0))
        # What rounding leaves of a constant score is not a correlation.
        varies = (of_others > 1e-9 * of_all) & (size > 0)
        return np.where(varies, product / np.where(varies, size, 1.0), np.nan)


def _find_changes(
    names: Sequence[str],
    scales: Mapping[str, FeatureScale],
    weights: Float64,
    checked: Collection[str],
    lists: _Lists,
) -> dict[tuple[str, str], str]:
    """Return a sentence for each feature that has changed, by what has changed and its name.

    Args:
        names: of the columns of the new lists.
        scales: of the adaptation lists.
        weights: (K,) of the score.
        checked: the features that are tested.
        lists: the new lists, at least one.
    """
    count, result = len(lists.starts), dict[tuple[str, str], str]()
    last = "the last list" if count == 1 else f"the last {count} lists"
    several, kind = count >= _MANY, "if the texts are of another kind, judge some and adapt again"
    for k, name in enumerate(names):
        scale, deviations = scales[name], lists.deviations[:, k]
        varying = deviations[deviations > 0]
        share = scale.varying / (scale.lists + 1)
        if name not in checked:
            continue
        if several and lists.sign[k] * scale.sign < 0 and scale.lists >= _MANY:
            result["sign", name] = (
                f"all values of {name} in {last} have the sign opposite to that in the adaptation "
                "lists: check the sign"
            )
        elif several and not len(varying) and (1 - share) ** count < _RARE:
            result["constant", name] = (
                f"{name} is constant within each of {last}, but varied in {scale.varying} of "
                f"{scale.lists} adaptation lists: check what computes it, or leave it out "
                f"({write_option('without', [name])})"
            )
        elif len(varying) and scale.varying >= _MIN_LISTS:
            median, (low, *_, high) = float(np.median(varying)), scale.deviations
            times = median / scale.deviations[len(_QUANTILES) // 2]
            if several:
                far = _compare_spreads(varying, scale) < _LEVEL / len(checked)
            else:  # far out of the recorded range
                margin = _FACTOR * (1 + _MANY / scale.varying)
                far = median > margin * high or (median < low / margin and len(varying) > 1)
            if far and max(times, 1 / times) > _FACTOR:
                shown = f"{times:.0f}" if times >= 10 else f"{times:.2g}"
                result["unit", name] = (
                    f"{name} varies {shown} times as much within {last} as in the adaptation "
                    f"lists: check the unit or, {kind}"
                )
    if several and not result:  # without a column, or in another unit, the agreement is another
        agreement = lists.agreement(weights)
        present = ~np.isnan(agreement)
        number = np.maximum(present.sum(axis=0), 1)
        means = np.where(present, agreement, 0.0).sum(axis=0) / number
        excess = np.array(
            [_turned(scales[n], m, c) for n, m, c in zip(names, means, number, strict=True)]
        )
        largest = max(_FAR, (1 - 1e-6) * excess.max())
        for name, mean, size in zip(names, means, excess, strict=True):
            if size >= largest and name in checked:
                result["sign", name] = (
                    f"{name} has turned against the other features in {last} (mean correlation "
                    f"{mean:.2f}, in the adaptation lists {scales[name].agreement:.2f}): check the "
                    f"sign or, {kind}"
                )
    return result


def _compare_spreads(deviations: Float64, scale: FeatureScale) -> float:
    """Return the p-value of Wilcoxon's test of new (n,) and recorded deviations of a feature.

    The recorded ones are known by their quantiles, among which the mean place of the new ones is
    nearly normal.
    """
    recorded = np.log(scale.deviations)
    # Equal values have the mean of the places below and above them.
    both = (np.interp(np.log(deviations) + d, recorded, _QUANTILES) for d in (-1e-9, 1e-9))
    shift = float(np.mean(list(both))) - 0.5
    error = math.sqrt((1 / len(deviations) + 1 / scale.varying) / 12)
    return math.erfc(abs(shift) / error / math.sqrt(2))


def _turned(scale: FeatureScale, mean: float, count: int) -> float:
    """Return by how many standard errors an agreement has changed its sign; 0 if it has not.

    Args:
        scale: of the adaptation lists.
        mean: of the agreement in new lists.
        count: the number of the new lists.
    """
    if scale.agreeing < _MIN_LISTS or count < _MANY:
        return 0.0
    if mean * scale.agreement >= 0 or abs(mean) < _MIRRORED * abs(scale.agreement):
        return 0.0
    error = scale.agreement_deviation * math.sqrt(1 / count + 1 / scale.agreeing)
    return abs(mean - scale.agreement) / max(error, 1e-12)


class DriftMonitor:
    """Compares new lists with the adaptation lists every 512 lists, and warns once of each change.

    It can be used from several threads at once.

    Args:
        scales: of the adaptation lists. Without them nothing is compared.
        weights: of features, the posterior mean.
        checked: the features that are tested; the others count for the agreement.

    Attributes:
        messages: what has changed in the last lists that were compared, one sentence a feature;
            they stay the same until a feature changes or no longer does.
    """

    def __init__(
        self,
        scales: Mapping[str, FeatureScale],
        weights: Mapping[str, float],
        checked: Collection[str],
    ) -> None:
        self._scales = {name: scale for name, scale in scales.items() if name in weights}
        self._weights, self._checked = weights, frozenset(checked)
        # Names, table and sizes of the lists since the last comparison, and their number.
        self._parts: list[tuple[tuple[str, ...], npt.NDArray[Any], Int64]] = []
        self._pending, self._step, self._lock = 0, 1, Lock()
        self._warned = self._changed = frozenset[tuple[str, str]]()
        self.messages: tuple[str, ...] = ()

    def add(self, names: tuple[str, ...], table: npt.NDArray[Any], sizes: Int64) -> None:
        """Add lists, a table (candidates, columns), and compare them if enough are new."""
        if self._scales:
            with self._lock:
                self._parts.append((names, table, sizes))
                self._pending += len(sizes)
            if self._pending >= self._step:
                self._report()

    def add_one(self, names: tuple[str, ...], table: npt.NDArray[Any]) -> None:
        """Add one list, whose table is copied."""
        if self._scales:
            self.add(names, table.copy(), np.array([len(table)]))

    def finish(self) -> None:
        """Compare the lists at the end of a stream, unless they are few."""
        if self._pending >= _REST:
            self._report()

    def _report(self) -> None:
        """Compare the lists since the last comparison, and warn of what is new."""
        with self._lock:
            if not self._parts:  # another thread has compared them
                return
            changes = self._compare()
            # Often at first, so that an error is found early.
            self._parts, self._pending, self._step = [], 0, min(4 * self._step, _LISTS_TOGETHER)
            if changes.keys() != self._changed:
                self._changed, self.messages = frozenset(changes), tuple(changes.values())
            unseen = [message for key, message in changes.items() if key not in self._warned]
            self._warned |= changes.keys()
        for message in unseen:
            warn_user(message)

    def _compare(self) -> dict[tuple[str, str], str]:
        """Return what has changed in the lists since the last comparison."""
        latest = self._parts[-1][0]
        same = [(table, sizes) for names, table, sizes in self._parts if names == latest]
        table, sizes = (np.concatenate(parts) for parts in zip(*same, strict=True))
        names = [name for name in latest if name in self._scales]
        several = sizes > 1
        if not names or not several.any():
            return {}
        places = [place for place, name in enumerate(latest) if name in self._scales]
        table = table[np.repeat(several, sizes)][:, places]
        weights = np.array([self._weights[name] for name in names])
        lists = _Lists.of(table, sizes[several])
        return _find_changes(names, self._scales, weights, self._checked, lists)
