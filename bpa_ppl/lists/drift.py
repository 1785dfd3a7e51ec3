"""Drift: features of new lists that vary, or agree, otherwise than in the adaptation lists.

Weights are wrong without an error if a column has another unit, another sign, or no longer varies.
`feature_scales` describes the features of the adaptation lists; `DriftMonitor` compares the last
new lists with them. The limits depend on the numbers of lists, and were chosen on halves of real
collections: `benchmarks/bench_drift.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from statistics import NormalDist
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.lists.nbest import NBest, centre
from bpa_ppl.posterior.record import FeatureScale

#: Of the two-sided tests of one kind, together.
_LEVEL = 0.005
_FACTOR = 3.0  # of the spread within lists, from which a change is reported
_MIRRORED = 0.5  # an agreement has turned below minus this share of the recorded one
_FEW = 5  # adaptation lists; fewer are too few to compare with
_MANY = 10  # new lists; of fewer only a spread far out of the range is reported
_WINDOW = 128  # lists that are compared
_STEP = 512  # lists from one comparison to the next, so that it costs little
_REST = 16  # lists at the end of a stream that are compared all the same
_CANDIDATES = 50  # of a list that are compared
_QUANTILES = np.linspace(0, 1, 11)
#: Trapezoidal weights of the quantiles, for moments.
_SHARES = np.r_[0.5, np.ones(9), 0.5] / 10


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
        varying, known = varying[varying > 0], agreement[:, k][~np.isnan(agreement[:, k])]
        result[name] = FeatureScale(
            spread=float(lists.spread[k]),
            lists=count,
            varying=len(varying),
            deviations=tuple(np.quantile(varying, _QUANTILES).tolist()) if len(varying) else (),
            sign=int(varied.sign[k]),
            agreement=float(known.mean()) if len(known) else 0.0,
            agreement_deviation=float(known.std(ddof=1)) if len(known) > 1 else 0.0,
            agreeing=len(known),
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
    known = of_others > 1e-9 * np.einsum("r,r->", score, score)
    product = np.einsum("rk,rk->k", others, values)
    return np.where(known, product / np.where(known, of_others, 1.0), 0.0)


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
        known = (of_others > 1e-9 * of_all) & (size > 0)
        return np.where(known, product / np.where(known, size, 1.0), np.nan)


class Change(NamedTuple):
    """A feature that has changed.

    Attributes:
        kind: `unit`, `sign` (of all values), `turned` (against the other features) or `constant`.
        feature: its name.
        size: how many times as large the spread is, or the mean agreement.
        before: that in the adaptation lists: the agreement, or the share of lists where it varied.
    """

    kind: str
    feature: str
    size: float = 0.0
    before: float = 0.0

    @property
    def key(self) -> tuple[str, str]:
        """What is reported once: both kinds of signs are one."""
        return "turned" if self.kind == "sign" else self.kind, self.feature

    @property
    def times(self) -> str:
        """The size as a factor."""
        return f"{self.size:.0f}" if self.size >= 10 else f"{self.size:.2g}"


class _Limits:
    """The record of K features as arrays, and what does not depend on the new lists.

    Args:
        scales: by name.
        weights: the posterior mean, by name.
        checked: the names of the features that are tested.
    """

    def __init__(
        self,
        scales: Mapping[str, FeatureScale],
        weights: Mapping[str, float],
        checked: Collection[str],
    ) -> None:
        self.names, rows = tuple(scales), list(scales.values())
        self.weights = np.array([weights[name] for name in scales])
        self.checked = np.array([name in checked for name in self.names])
        self.lists, self.varying, self.agreeing, self.sign = (
            np.array([getattr(row, name) for row in rows])
            for name in ("lists", "varying", "agreeing", "sign")
        )
        self.agreement, self.agreement_deviation = (
            np.array([getattr(row, name) for row in rows])
            for name in ("agreement", "agreement_deviation")
        )
        self.level = _LEVEL / max(int(self.checked.sum()), 1)
        self.z = NormalDist().inv_cdf(1 - self.level / 2)
        deciles = np.ones((len(rows), len(_QUANTILES)))
        for k, row in enumerate(rows):
            if row.varying:
                deciles[k] = row.deviations
        self.lowest, self.median, self.highest = deciles.T[[0, 5, 10]]
        self.root = np.sqrt(deciles) @ _SHARES
        self.t = _student_quantiles(self.z, self.varying - 1)
        self.log_deviation, self.root_deviation = (
            np.sqrt((values - (values @ _SHARES)[:, None]) ** 2 @ _SHARES)
            for values in (np.log(deciles), np.sqrt(deciles))
        )

    def changes(self, lists: _Lists) -> list[Change]:
        """Return what has changed in new lists."""
        count = len(lists.starts)
        varying = (lists.deviations > 0).sum(axis=0)
        units, ratio = self._units(lists, varying)
        share = (self.varying + 0.5) / (self.lists + 1)
        constant = self.checked & (varying == 0) & (self.varying > 0) & (count >= _MANY)
        constant &= (1 - share) ** count <= self.level
        sign = self.checked & (lists.sign * self.sign < 0)
        sign &= (count >= _MANY) & (self.lists >= _MANY)
        # A unit that may have changed is not a change of the agreement.
        large = np.maximum(ratio, 1 / ratio) > _FACTOR
        weights = self.weights / np.where(large, ratio, 1.0) * np.where(sign, -1, 1)
        # Without a column that others agreed with, their agreement may turn.
        turned = [] if constant.any() else self._find_turned(lists, weights, sign)
        names = np.array(self.names, object)
        return [
            *(Change("unit", *pair) for pair in zip(names[units], ratio[units], strict=True)),
            *(Change("sign", name) for name in names[sign]),
            *turned,
            *(
                Change("constant", name, before=varied / of)
                for name, varied, of in zip(
                    names[constant], self.varying[constant], self.lists[constant], strict=True
                )
            ),
        ]

    def _units(self, lists: _Lists, varying: Int64) -> tuple[npt.NDArray[np.bool_], Float64]:
        """Return which features have another spread, and how many times as large it is, (K,).

        Of few lists, the deviation has to be out of the range of the recorded ones; of more, the
        median of its logarithm and the mean of its root have to differ: one of them has little
        power, or a wrong level, where deviations are near 0 or have a heavy tail.
        """
        # Constant lists are first.
        ordered, columns = np.sort(lists.deviations, axis=0), np.arange(len(varying))
        first = len(ordered) - varying
        middle = [np.minimum(first + (varying - k) // 2, len(ordered) - 1) for k in (1, 0)]
        some = varying > 0
        median = np.where(
            some, np.sqrt(ordered[middle[0], columns] * ordered[middle[1], columns]), 1
        )
        ratio = np.where(some, median / self.median, 1.0)
        number = np.maximum(varying, 1)
        limit = self.t * np.sqrt(1 / number + 1 / np.maximum(self.varying, 1))
        root = np.sqrt(lists.deviations).sum(axis=0) / number
        by_median = np.abs(np.log(ratio)) > 1.25 * limit * self.log_deviation
        by_root = np.abs(root - self.root) > limit * self.root_deviation
        factor = _FACTOR * (1 + 20 / np.maximum(self.varying, 1))
        outside = median > factor * self.highest
        outside |= (median < self.lowest / factor) & (varying > 1)
        changed = np.where(varying < _MANY, outside, by_median & by_root)
        large = np.maximum(ratio, 1 / ratio) > _FACTOR
        return self.checked & some & (self.varying >= _FEW) & large & changed, ratio

    def _find_turned(
        self, lists: _Lists, weights: Float64, named: npt.NDArray[np.bool_]
    ) -> list[Change]:
        """Return the features whose agreement with the others has turned.

        If one turns, others that agreed with it may seem to: the one is taken first that explains
        most of them, and counts with the opposite sign for the others.

        Args:
            lists: the new lists.
            weights: (K,) of the score.
            named: (K,) features that are known to have the opposite sign.
        """
        result: list[Change] = []
        named = named.copy()
        excess, agreement = self._excess(lists, weights)
        excess[named] = 0
        while (candidates := np.flatnonzero(excess > 1)).size:
            flipped = {
                k: np.where(np.arange(len(weights)) == k, -weights, weights) for k in candidates
            }
            left = {
                k: np.sum((self._excess(lists, flipped[k])[0] > 1)[candidates]) for k in candidates
            }
            least = min(left.values())
            largest = max(excess[k] for k in candidates if left[k] == least)
            # Two features that agree with each other alone have the same numbers.
            chosen = [
                k for k in candidates if left[k] == least and excess[k] > largest * (1 - 1e-6)
            ]
            if explains_none := least >= len(candidates):
                chosen = list(candidates)
            result += [
                Change("turned", self.names[k], agreement[k], self.agreement[k]) for k in chosen
            ]
            if explains_none:
                break
            named[chosen] = True
            weights = flipped[chosen[0]]
            excess, agreement = self._excess(lists, weights)
            excess[named] = 0
        return result

    def _excess(self, lists: _Lists, weights: Float64) -> tuple[Float64, Float64]:
        """Return the change of the agreement over its limit, 0 unless turned, and it, (K,)."""
        agreement = lists.agreement(weights)
        known = ~np.isnan(agreement)
        count = known.sum(axis=0)
        number = np.maximum(count, 1)
        filled = np.where(known, agreement, 0.0)
        mean = filled.sum(axis=0) / number
        variance = ((filled - mean) ** 2 * known).sum(axis=0) / np.maximum(number - 1, 1)
        before = self.agreement_deviation**2
        variance = np.maximum(variance, before) / number
        error = np.sqrt(variance + before / np.maximum(self.agreeing, 1))
        fewer = np.minimum(self.agreeing, count)
        t = _student_quantiles(self.z, fewer - 1)
        turned = (mean * self.agreement < 0) & (np.abs(mean) > _MIRRORED * np.abs(self.agreement))
        turned &= self.checked & (self.agreeing >= _FEW) & (count >= _MANY)
        difference = np.abs(mean - self.agreement)
        return np.where(turned, difference / np.maximum(t * error, 1e-12), 0.0), mean


def _student_quantiles(z: float, freedom: Int64) -> Float64:
    """Return the quantiles of Student's t where the normal one is z.

    Abramowitz & Stegun (1964), 26.7.5.

    >>> _student_quantiles(1.96, np.array([20, 1000])).round(2).tolist()
    [2.09, 1.96]
    """
    v = np.maximum(freedom, 1)
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
    return np.asarray(z + (z**3 + z) / (4 * v) + second)


class DriftMonitor:
    """Compares the last lists with the adaptation lists, and warns once of each change.

    It can be used from several threads at once.

    Args:
        scales: of the adaptation lists. Without them nothing is compared.
        weights: of features, the posterior mean.
        checked: the features that are tested; the others count for the agreement.

    Attributes:
        messages: what has changed in the last lists that were compared, one sentence a kind; they
            stay the same until a feature changes or no longer does.
    """

    def __init__(
        self,
        scales: Mapping[str, FeatureScale],
        weights: Mapping[str, float],
        checked: Collection[str],
    ) -> None:
        self._scales = {name: scale for name, scale in scales.items() if name in weights}
        self._weights, self._checked = weights, frozenset(checked)
        self._limits: _Limits | None = None
        self._window: deque[tuple[tuple[str, ...], npt.NDArray[Any], Int64]] = deque()
        self._size = self._pending = 0  # lists in the window, and since the last comparison
        self._step, self._lock = 1, Lock()
        self._warned = self._changed = frozenset[tuple[str, str]]()
        self.messages: tuple[str, ...] = ()

    def add(self, names: tuple[str, ...], table: npt.NDArray[Any], sizes: Int64) -> None:
        """Add lists, and compare the last ones if enough are new.

        Args:
            names: of the columns.
            table: (candidates, columns), which must not change afterwards.
            sizes: (lists,) the numbers of candidates.
        """
        if self._scales:
            self._pending += len(sizes)
            self._keep(names, *_thin(table, sizes))

    def add_one(self, names: tuple[str, ...], table: npt.NDArray[Any]) -> None:
        """Add one list, whose table is copied, if it will be in the window that is compared."""
        if self._scales:
            self._pending += 1
            if self._pending > self._step - _WINDOW:
                table = table[:: -(-len(table) // _CANDIDATES)].copy()
                self._keep(names, table, np.array([len(table)]))

    def _keep(self, names: tuple[str, ...], table: npt.NDArray[Any], sizes: Int64) -> None:
        """Put lists into the window, and compare it if enough lists are new."""
        with self._lock:
            self._window.append((names, table, sizes))
            self._size += len(sizes)
            while self._size - len(self._window[0][2]) >= _WINDOW:
                self._size -= len(self._window.popleft()[2])
        if self._pending >= self._step:
            self._report()

    def finish(self) -> None:
        """Compare the lists at the end of a stream, unless they are few."""
        if self._pending >= _REST:
            self._report()

    def _report(self) -> None:
        """Compare the lists of the window, and warn of what is new."""
        with self._lock:
            # Often at first, so that an error is found early.
            self._pending, self._step = 0, min(4 * self._step, _STEP)
            changes, count = self._compare()
            keys = frozenset(change.key for change in changes)
            if keys != self._changed:
                self._changed, self.messages = keys, tuple(_describe_changes(changes, count))
            unseen = keys - self._warned
            self._warned |= keys
        for message in _describe_changes([c for c in changes if c.key in unseen], count):
            warn_user(message)

    def _compare(self) -> tuple[list[Change], int]:
        """Return what has changed in the lists of the window, and their number."""
        latest = self._window[-1][0]
        places = {name: place for place, name in enumerate(latest)}
        scales = {name: scale for name, scale in self._scales.items() if name in places}
        if self._limits is None or self._limits.names != tuple(scales):
            self._limits = _Limits(scales, self._weights, self._checked)
        same = [(table, sizes) for names, table, sizes in self._window if names == latest]
        table, sizes = (np.concatenate(parts) for parts in zip(*same, strict=True))
        several = sizes > 1
        if not scales or not several.any():
            return [], 0
        if not several.all():
            table, sizes = table[np.repeat(several, sizes)], sizes[several]
        table = table[:, [places[name] for name in scales]]
        return self._limits.changes(_Lists.of(table, sizes)), len(sizes)


def _thin(table: npt.NDArray[Any], sizes: Int64) -> tuple[npt.NDArray[Any], Int64]:
    """Return every second, third, … candidate of long lists.

    >>> _thin(np.zeros((122, 1)), np.array([120, 2]))[1]
    array([40,  2])
    """
    step = -(-sizes // _CANDIDATES)
    if step.max(initial=1) == 1:
        return table, sizes
    position = np.arange(len(table)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return table[position % np.repeat(step, sizes) == 0], -(-sizes // step)


def _describe_changes(changes: Sequence[Change], lists: int) -> list[str]:
    r"""Return a sentence on each kind of change: the features, the size, and a remedy.

    >>> print(*_describe_changes([Change("unit", "qe", 20.0), Change("sign", "lm")], 64), sep="\n")
    within the last 64 lists qe varies 20 times as much as in the adaptation lists: ...
    all values of lm in the last 64 lists have the sign opposite to that in the adaptation ...
    """
    last = "the last list" if lists == 1 else f"the last {lists} lists"
    parts = {
        "unit": (
            f"within {last} ",
            "{0.feature} varies {0.times} times as much",
            " as in the adaptation lists: check the unit or, if the texts are of another kind, "
            "judge some of them and adapt again",
        ),
        "sign": (
            "all values of ",
            "{0.feature}",
            f" in {last} have the sign opposite to that in the adaptation lists: check the sign",
        ),
        "turned": (
            "",
            "{0.feature} (mean correlation {0.size:.2f}, in the adaptation lists {0.before:.2f})",
            f": turned against the other features in {last}: check the sign or, if the texts are "
            "of another kind, judge some of them and adapt again",
        ),
        "constant": (
            "",
            "{0.feature} (varied in {0.before:.0%} of the adaptation lists)",
            f": constant within each of {last}: check what computes the column, or leave it out "
            "(without)",
        ),
    }
    result = []
    for kind, (start, form, end) in parts.items():
        if features := [form.format(change) for change in changes if change.kind == kind]:
            result.append(f"{start}{', '.join(features)}{end}")
    return result
