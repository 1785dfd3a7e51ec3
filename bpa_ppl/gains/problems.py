"""What looks wrong with lists: misplaced references, outliers, several judgements, other totals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import format_count, warn_user
from bpa_ppl.errors import list_names, locate, name_lists, quote
from bpa_ppl.gains.gains import text_metrics
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.pairwise import make_pairs
from bpa_ppl.lists.candidate_columns import read_column, select_marked
from bpa_ppl.lists.nbest import NBest, centre, describe_candidate, score_differences, subtract_first

#: Of the lists, at most so many are looked at, the first texts of each, and so many random orders
#: of their references, without those of the next and the previous list.
_MOST_LISTS, _MOST_TEXTS, _MOST_ORDERS = 100, 5, 4
#: The share of lists, from a number of lists on, whose own reference is nearer than another one; in
#: the worst order it is below if references are misplaced. On 23 collections of translations,
#: transcripts and summaries, with 400 samples of 10, 20, 50 and 100 lists of each, the lowest share
#: of right references was 0.70, 0.85, 0.90 and 0.94: no warning in 36,800 samples. References of
#: the next list are missed in 7 %, 0.8 %, 0 and 0 of the samples, those of the 50th list after it
#: in 0.6 %, 0, 0 and 0, reversed ones in 0.1 %, 0, 0 and 0; and in 33 %, 14 %, 4 % and 6 % if only
#: the second half of the lists has those of the next one.
_BOUNDS = {50: 0.85, 20: 0.8, 10: 0.7}
#: An outlier is so many times as far from the median of its list as this share of the others.
_FAR, _QUANTILE = 10.0, 0.9
_INFLATED = 3.0  # the spread with outliers over that without them, from which they are reported


def warn_of_misplaced(lists: NBest, gain: Metric) -> None:
    """Warn of references that seem to belong to other lists; see `describe_misplaced`."""
    if note := describe_misplaced(lists, gain):
        warn_user(f"{locate(lists.origin)}{note}")


def describe_misplaced(lists: NBest, gain: Metric) -> str:
    """Return a sentence about references that seem to belong to other lists, or an empty text.

    The candidates of a list are to be nearer to their own reference, by chrF, than to those of
    the next list, of the previous one, and of others in random orders (with a fixed seed). Lists
    with a common reference are not compared. Less than ten lists say nothing.

    Args:
        lists: the lists; those without a reference are left out.
        gain: what the references are for: only metrics of this package compare texts for sure.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.gains.gains import resolve
    >>> words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    >>> lists = from_lists([[word] for word in words], [[[0.0]]] * 10, ["lm"], references=words)
    >>> describe_misplaced(lists, resolve("ter"))
    ''
    >>> print(describe_misplaced(lists.with_references([*words[1:], words[0]]), resolve("ter")))
    the references seem to be those of other lists: in 0% of 10 lists the candidates are nearer ...
    """
    with_reference = np.flatnonzero([bool(of_list) for of_list in lists.references or ()])
    if gain.key not in text_metrics() or len(with_reference) < min(_BOUNDS):
        return ""
    lists = lists if len(with_reference) == len(lists) else lists.select(with_reference)
    references, count = lists.references or (), len(lists)
    if len({*references}) == 1:
        firsts = {lists.texts(place)[0] for place in range(count)}
        same = f"all {count} lists have the same reference: give each list its own"
        return same if len(firsts) > 1 else ""
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(count, min(count, _MOST_LISTS), replace=False))
    shares = _compare(lists, rows, _list_others(count, rows, rng))
    if np.isnan(shares).all():
        return ""
    worst, bound = int(np.nanargmin(shares)), next(b for n, b in _BOUNDS.items() if len(rows) >= n)
    if shares[worst] >= bound:
        return ""
    other = ("the next", "the previous")[worst] if worst < 2 else "another"
    return (
        f"the references seem to be those of other lists: in {shares[worst]:.0%} of {len(rows)} "
        f"lists the candidates are nearer to their own reference than to that of {other} list "
        f"(references that belong to their lists: above {bound:.0%}): give a reference for each "
        "list, in the order of the lists"
    )


def _list_others(count: int, rows: Int64, rng: np.random.Generator) -> list[Int64]:
    """Return, in several orders, a list other than itself for each of some lists."""
    order, random = rng.permutation(len(rows)), []
    for k in range(1, 1 + min(_MOST_ORDERS, len(rows) - 1)):
        other = np.empty_like(rows)
        other[order] = rows[np.roll(order, -k)]
        random.append(other)
    return [(rows + 1) % count, (rows - 1) % count, *random]


def _compare(lists: NBest, rows: Int64, others: list[Int64]) -> Float64:
    """Return in which share of some lists their reference is nearer than another, in each order.

    Equally near ones count half; NaN if fewer than half of the lists have another reference.
    """
    references = lists.references or ()
    wins = np.full((len(others), len(rows)), np.nan)
    for column, row in enumerate(rows.tolist()):
        texts = list(islice(dict.fromkeys(map(str.lower, lists.texts(row))), _MOST_TEXTS))
        places = [row, *(int(other[column]) for other in others)]
        reference_texts = [[text.lower() for text in references[place]] for place in places]
        flat = [text for of_place in reference_texts for text in of_place]
        pairs = make_pairs([*texts, *flat], "chrf")
        candidates = np.arange(len(texts))
        scores = pairs.scores(candidates, len(texts) + np.arange(len(flat)))
        starts = np.cumsum([0, *map(len, reference_texts[:-1])])
        near = np.maximum.reduceat(scores, starts, axis=1).mean(axis=0)
        differ = [set(reference_texts[0]).isdisjoint(of_place) for of_place in reference_texts[1:]]
        wins[differ, column] = (np.sign(near[0] - near[1:])[differ] + 1) / 2
    compared = np.isfinite(wins).sum(axis=1)
    with np.errstate(invalid="ignore"):
        shares = np.nansum(wins, axis=1) / compared
    return np.asarray(np.where(2 * compared >= len(rows), shares, np.nan))


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
    is_near = distance <= _FAR * np.quantile(differing, _QUANTILE, method="inverted_cdf")
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
