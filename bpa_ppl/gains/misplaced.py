"""References that seem to belong to other lists."""

from __future__ import annotations

from itertools import islice

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.errors import DataError, locate
from bpa_ppl.gains.gains import text_metrics
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.pairwise import make_pairs
from bpa_ppl.lists.nbest import NBest

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
#: References are refused if there are so many different ones, and the share whose own reference is
#: nearer than that of the next or the previous list is below this one. docs/lists.md has the shares
#: of right references and of those of a neighbour. Candidates that resemble no reference have a
#: half on average: of 20 lists with references in random order, 6 to 9 % are below a third.
_FEWEST_REFUSED, REFUSED_BELOW = 20, 0.2


def check_references(lists: NBest, gain: Metric, *, unchecked: bool = False) -> None:
    """Refuse references of the next or the previous list, and warn of those of other lists.

    See `describe_misplaced`.

    Args:
        lists: the lists; those without a reference are left out.
        gain: what the references are for.
        unchecked: warn in place of refusing.

    Raises:
        DataError: if nearly all lists have the reference of a neighbour.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.gains.gains import resolve
    >>> words = [chr(97 + k) * 3 for k in range(20)]
    >>> lists = from_lists([[word] for word in words], [[[0.0]]] * 20, ["lm"], references=words)
    >>> check_references(lists.with_references([*words[1:], words[0]]), resolve("ter"))
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: the references seem to be those of other lists: in 0% of 20 lists ...
    """
    message, refused = _find_misplaced(lists, gain)
    if refused and not unchecked:
        raise DataError(
            f"{message}; if these are right, say so (--unchecked; in Python unchecked=True)",
            lists.origin,
            parameter="references",
            code="mismatch",
        )
    if message:
        warn_user(f"{locate(lists.origin)}{message}")


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
    return _find_misplaced(lists, gain)[0]


def measure_neighbours(lists: NBest) -> float:
    """Return the share of lists whose own reference is nearer than that of a neighbour.

    Of the next and the previous lists, it is that with the lower share; NaN if most of them have
    the same references.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["on"], ["to"], ["by"]], [[[0.0]]] * 3, ["lm"], references=["on"] * 3)
    >>> measure_neighbours(lists.with_references(["on", "to", "by"]))
    1.0
    """
    rows = np.arange(len(lists))
    return float(np.min(_compare(lists, rows, _list_neighbours(len(lists), rows))))


def _find_misplaced(lists: NBest, gain: Metric) -> tuple[str, bool]:
    """Return what `describe_misplaced` does, and whether the references are refused."""
    with_reference = np.flatnonzero([bool(of_list) for of_list in lists.references or ()])
    if gain.key not in text_metrics() or len(with_reference) < min(_BOUNDS):
        return "", False
    lists = lists if len(with_reference) == len(lists) else lists.select(with_reference)
    references, count = lists.references or (), len(lists)
    if len({*references}) == 1:
        firsts = {lists.texts(place)[0] for place in range(count)}
        same = f"all {count} lists have the same reference: give each list its own"
        return (same if len(firsts) > 1 else ""), False
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(count, min(count, _MOST_LISTS), replace=False))
    others = [*_list_neighbours(count, rows), *_list_random(rows, rng)]
    shares = _compare(lists, rows, others)
    if np.isnan(shares).all():
        return "", False
    refused = len({*references}) >= _FEWEST_REFUSED and (shares[:2] < REFUSED_BELOW).any()
    worst = int(np.nanargmin(shares[:2] if refused else shares))
    bound = next(b for n, b in _BOUNDS.items() if len(rows) >= n)
    if shares[worst] >= bound:
        return "", False
    other = ("the next", "the previous")[worst] if worst < 2 else "another"
    message = (
        f"the references seem to be those of other lists: in {shares[worst]:.0%} of {len(rows)} "
        f"lists the candidates are nearer to their own reference than to that of {other} list "
        f"(references that belong to their lists: above {bound:.0%}): give a reference for each "
        "list, in the order of the lists"
    )
    return message, bool(refused)


def _list_neighbours(count: int, rows: Int64) -> list[Int64]:
    """Return the next and the previous list of each of some lists."""
    return [(rows + 1) % count, (rows - 1) % count]


def _list_random(rows: Int64, rng: np.random.Generator) -> list[Int64]:
    """Return, in several orders, another list for each of some lists."""
    order, random = rng.permutation(len(rows)), []
    for k in range(1, 1 + min(_MOST_ORDERS, len(rows) - 1)):
        other = np.empty_like(rows)
        other[order] = rows[np.roll(order, -k)]
        random.append(other)
    return random


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
