"""What looks wrong with the lists of an adaptation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import format_count, warn_user
from bpa_ppl.errors import list_names, locate, name_lists, quote
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.misplaced import warn_of_misplaced
from bpa_ppl.lists.candidate_columns import read_column, select_marked
from bpa_ppl.lists.nbest import (
    NBest,
    centre,
    describe_candidate,
    score_differences,
    subtract_first,
)
from bpa_ppl.weights import CANONICAL

if TYPE_CHECKING:  # it loads JAX
    from bpa_ppl.adapting.prepare import Prepared

#: An outlier is so many times as far from the median of its list as this share of the others.
_FAR, _NEAR = 10.0, 0.9
_INFLATED = 3.0  # the spread with outliers over that without them, from which they are reported


def warn_about(prepared: Prepared) -> None:
    """Warn of what looks wrong with the lists of an adaptation.

    Values of features or gains far from all others, totals of other weights, and references of
    other lists.

    Args:
        prepared: from `prepare`.
    """
    lists, match = prepared.lists, prepared.match
    if match.origin == CANONICAL and (note := describe_totals(lists, match.values)):
        warn_user(note)
    if prepared.oracles is None and prepared.likelihood.observes != "preferences":
        warn_of_misplaced(prepared.judged.lists, prepared.gain)
        if note := describe_repeated(lists, prepared.gain):
            warn_user(f"{locate(lists.origin)}{note}")
    for note in find_outliers(lists, (*lists.feature_names, *prepared.gain.columns)):
        warn_user(f"{locate(lists.origin)}{note}")


def describe_repeated(lists: NBest, gain: Metric) -> str:
    """Return a sentence about a candidate with several judgements in rows of their own, or "".

    Args:
        lists: the lists.
        gain: a column, of which candidates of equal text have different values.
    """
    for name in gain.columns:
        values = read_column(lists, name)
        places = np.repeat(np.arange(len(lists)), lists.sizes)
        key = places * len(lists.strings) + lists.string_index
        order = np.lexsort((values, key))
        same = np.diff(key[order]) == 0
        different = same & (np.diff(values[order]) != 0) & ~np.isnan(values[order[1:]])
        empty = [place for place, text in enumerate(lists.strings) if not text]
        different &= ~np.isin(lists.string_index[order[1:]], empty)  # without texts
        if different.any():
            first = int(np.argmax(different))
            rows = sorted(order[first : first + 2].tolist())
            texts = format_count(len(np.unique(key[order[1:]][different])), "candidate")
            others = {n: of for n, of in lists.extras.items() if n != name}
            differ = [n for n, of in others.items() if of[rows[0]] != of[rows[1]]]
            along = f", which also differ in {list_names(differ)}" if differ else ""
            shown = " and ".join(f"{values[row]:g}" for row in rows)
            return (
                f"{texts} in rows with different values of {name}, such as "
                f"{quote(lists.text(rows[0]))} of list {lists.ids[places[rows[0]]]} ({shown})"
                f"{along}: keep the rows of one kind of judgement, or their mean"
            )
    return ""


def describe_totals(lists: NBest, values: npt.ArrayLike, tolerance: float = 1e-3) -> str:
    """Return a note if λ·h does not reproduce the totals of the decoder, else an empty text.

    Only differences within a list are compared: terms that are constant over a list may be missing.

    Args:
        lists: lists; without totals, or with totals that may be divided by a length, nothing is
            checked.
        values: (features,) weights in the order of the columns.
        tolerance: allowed error, relative to the totals and their differences within a list.
    """
    if lists.totals is None or lists.totals_normalised or not len(lists):
        return ""
    totals = subtract_first(lists.totals, lists.sizes)
    error = np.abs(score_differences(lists, values) - totals)
    allowed = tolerance * (np.abs(totals) + np.abs(lists.totals)) + 1e-4
    wrong = float(np.mean(error > allowed))
    if wrong <= 0.05:
        return ""
    share = f"the totals of {100 * wrong:.0f}% of the candidates of {name_lists(lists.origin)}"
    return f"the weights do not reproduce {share}: check that the decoder run used them"


def find_outliers(lists: NBest, columns: Iterable[str]) -> Iterator[str]:
    """Yield a sentence about each column with values far from all others."""
    yield from filter(None, (describe_outliers(lists, name) for name in columns))


def describe_outliers(lists: NBest, name: str) -> str:
    """Return which values decide the spread of a column within lists, else an empty text.

    They are more than ten times as far from the median of their list as nine tenths of the values
    that differ from it, and the spread without them is less than a third.

    Args:
        lists: the lists.
        name: of a feature or an extra; missing values do not count.

    >>> from bpa_ppl import from_lists
    >>> table = np.random.default_rng(0).normal(size=(40, 3, 1))
    >>> describe_outliers(from_lists([["a", "b", "c"]] * 40, table.tolist(), ["qe"]), "qe")
    ''
    >>> table[17, 2] = 10_000
    >>> describe_outliers(from_lists([["a", "b", "c"]] * 40, table.tolist(), ["qe"]), "qe")
    'the spread of qe within lists is 745, but 0.763 without 1 value (10000 of candidates[2] of ...
    """
    values = read_column(lists, name)
    judged, rows = select_marked(lists, np.isfinite(values))
    values = values[rows]
    distance = measure_distances(values, judged.sizes)
    differing = distance[distance > 0]
    if not len(differing):
        return ""
    is_near = distance <= _FAR * np.quantile(differing, _NEAR, method="inverted_cdf")
    if is_near.all():
        return ""
    # The median of a list is near, so that none becomes empty.
    left = np.add.reduceat(is_near.astype(np.int64), judged.offsets[:-1])
    columns = (values, judged.sizes), (values[is_near], left)
    spread, rest = (float(np.sqrt(np.mean(centre(*column) ** 2))) for column in columns)
    if spread <= _INFLATED * rest:
        return ""
    number, farthest = int(np.count_nonzero(~is_near)), int(np.argmax(distance))
    example = f"{values[farthest]:g} of {describe_candidate(lists, int(rows[farthest]))}"
    example = f"({example})" if number == 1 else f"such as {example}"
    return (
        f"the spread of {name} within lists is {spread:.3g}, but {rest:.3g} without "
        f"{format_count(number, 'value')} {example}: correct what is wrong there, or leave out "
        "these candidates"
    )


def measure_distances(values: Float64, sizes: Int64) -> Float64:
    """Return the distance of each value from the (lower) median of its list.

    >>> measure_distances(np.array([1.0, 4.0, 2.0, 7.0]), np.array([3, 1])).tolist()
    [1.0, 2.0, 0.0, 0.0]
    """
    result, starts = np.empty_like(values), np.cumsum(sizes) - sizes
    for size in np.unique(sizes).tolist():
        rows = starts[sizes == size, None] + np.arange(size)
        middle = (size - 1) // 2
        medians = np.partition(values[rows], middle, axis=1)[:, middle, None]
        result[rows] = np.abs(values[rows] - medians)
    return result
