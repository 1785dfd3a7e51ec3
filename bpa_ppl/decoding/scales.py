"""How features vary: what a posterior records of its lists, and a guard of the first new ones.

Weights are wrong without an error if a column has another unit, another sign, or no longer varies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.adaptation_record import FeatureScale
from bpa_ppl.errors import write_option
from bpa_ppl.lists.nbest import NBest, centre

_FACTOR = 10.0  # of the spread within lists, from which a change is warned about
_FEWEST = 5  # adaptation lists in which a feature varies; fewer are too few to compare with
_FIRST = 10  # new lists that are compared, at least


def feature_scales(lists: NBest, weights: npt.ArrayLike) -> dict[str, FeatureScale]:
    """Return how each feature varies within lists, by name; {} without lists.

    Args:
        lists: the adaptation lists.
        weights: (features,) of the score, the posterior mean.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]] * 5, [[[1.0, -3.0], [3.0, 0.0]]] * 5, ["LM0", "W0"])
    >>> scale = feature_scales(lists, [1.0, 1.0])["LM0"]
    >>> scale.deviation, scale.sign
    (1.0, 1)
    """
    if not len(lists):
        return {}
    deviations = _measure_deviations(lists.features, lists.sizes)
    lowest, highest = lists.features.min(axis=0), lists.features.max(axis=0)
    means = lists.features.mean(axis=0, dtype=np.float64)
    slopes = _fit_slopes(lists.features - means, np.asarray(weights, np.float64))
    result = {}
    for k, name in enumerate(lists.feature_names):
        varying = deviations[deviations[:, k] > 0, k]
        often = len(varying) >= max(_FEWEST, len(deviations) / 2)
        result[name] = FeatureScale(
            spread=float(lists.spread[k]),
            deviation=float(np.median(varying)) if often else 0.0,
            # A few values among zeros have no typical sign.
            sign=_sign(lowest[k], highest[k]) if often or lists.features[:, k].all() else 0,
            mean=float(means[k]),
            slope=float(slopes[k]),
        )
    return result


def _measure_deviations(table: npt.NDArray[np.floating], sizes: Int64) -> Float64:
    """Return (lists, features) the standard deviation in each list of two or more candidates."""
    several = sizes > 1
    table, sizes = table[np.repeat(several, sizes)], sizes[several]
    if not len(sizes):
        return np.zeros((0, table.shape[1]))
    squares = np.add.reduceat(centre(table, sizes) ** 2, np.cumsum(sizes) - sizes)
    return np.asarray(np.sqrt(squares / sizes[:, None]))


def _sign(lowest: float, highest: float) -> int:
    """Return the sign of all values other than 0; 0 if they have both signs or are all 0."""
    return int(lowest >= 0 < highest) - int(highest <= 0 > lowest)


def _fit_slopes(values: Float64, weights: Float64) -> Float64:
    """Return (K,) the slopes of the regressions of centred features on the score by the others."""
    # The bits of a matrix product may depend on the number of threads.
    score = np.einsum("rk,k->r", values, weights)
    others = score[:, None] - values * weights
    of_others = np.einsum("rk,rk->k", others, others)
    varies = of_others > 1e-9 * np.einsum("r,r->", score, score)
    product = np.einsum("rk,rk->k", others, values)
    return np.where(varies, product / np.where(varies, of_others, 1.0), 0.0)


class ScaleGuard:
    """Warns of features whose unit or sign differs in the first new lists, or that do not vary.

    These are the first ten lists of two or more candidates, with those that come together with the
    tenth. Later ones are not compared. Threads may use it at once: at worst two of them warn.

    Args:
        scales: of the adaptation lists. Without them nothing is compared.
        names: the features that are compared.
    """

    def __init__(self, scales: Mapping[str, FeatureScale], names: Iterable[str]) -> None:
        self._scales = {name: scales[name] for name in names if name in scales}
        # Of each feature in each part of the first lists: (lists,) the deviations, and the range.
        self._first: list[dict[str, tuple[Float64, float, float]]] = []
        self._count, self._done = 0, not self._scales

    def add(self, names: tuple[str, ...], table: npt.NDArray[np.floating], sizes: Int64) -> None:
        """Add lists, a table (candidates, columns), unless the first ones were compared before."""
        if self._done or not len(deviations := _measure_deviations(table, sizes)):
            return
        ends = table.min(axis=0).tolist(), table.max(axis=0).tolist()
        self._first.append(dict(zip(names, zip(deviations.T, *ends, strict=True), strict=True)))
        self._count += len(deviations)
        if self._count < _FIRST:
            return
        first, self._first, self._done = self._first, [], True
        for name, scale in self._scales.items():
            if not (parts := [part[name] for part in first if name in part]):
                continue
            of_parts, lowest, highest = zip(*parts, strict=True)
            deviations, sign = np.concatenate(of_parts), _sign(min(lowest), max(highest))
            if len(deviations) >= _FIRST and (
                change := _describe_change(name, scale, deviations, sign)
            ):
                warn_user(change)


def _describe_change(name: str, scale: FeatureScale, deviations: Float64, sign: int) -> str:
    """Return a sentence if a feature has changed, else an empty text.

    Args:
        name: of the feature.
        scale: in the adaptation lists.
        deviations: (lists,) in new lists.
        sign: of its values in these lists.
    """
    lists, varying = f"the first {len(deviations)} lists", deviations[deviations > 0]
    if scale.sign and sign == -scale.sign:
        return (
            f"all values of {name} in {lists} have the sign opposite to that in the adaptation "
            "lists: check the sign"
        )
    if scale.deviation and not len(varying):
        return (
            f"{name} is constant within each of {lists}, but varied in the adaptation lists: check "
            f"what computes it, or leave it out ({write_option('without', [name])})"
        )
    times = float(np.median(varying)) / scale.deviation if scale.deviation else 1.0
    if 1 / _FACTOR <= times <= _FACTOR:
        return ""
    shown = f"{times:,.0f}" if times > 1 else f"{times:.2g}"
    return (
        f"{name} varies {shown} times as much within {lists} as in the adaptation lists: check "
        "the unit or, if the texts are of another kind, judge some and adapt again"
    )
