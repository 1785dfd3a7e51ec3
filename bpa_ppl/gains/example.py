"""What was judged, by one example: a pair of candidates of which one is better."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.errors import abbreviate
from bpa_ppl.gains.column import Column
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.oracles import Oracles
from bpa_ppl.gains.preferences import Choice
from bpa_ppl.lists.nbest import NBest

_OF_TEXT = 60  # characters


def describe_pair(lists: NBest, gain: Metric, scores: Float64) -> str:
    """Return which candidate is better than which, in the first list whose candidates differ.

    They are the best one and the worst one, each with its value of the column or the metric. A
    column that was named without its sign is seen by them.

    Args:
        lists: the lists.
        gain: a metric or a column.
        scores: (candidates,) sentence scores, higher is better; NaN for those that are not judged.

    Returns:
        a sentence; an empty text if no list differs.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"], ["c", "d"]], [[[1.0], [2.0]]] * 2, ["lm"])
    >>> describe_pair(lists, Column(column="rank", negative=True), np.array([-1, -1, -3, -2]))
    'list 1: "d" (rank 2) is better than "c" (rank 3)'
    """
    starts = lists.offsets[:-1]
    highest, lowest = (of.reduceat(scores, starts) for of in (np.fmax, np.fmin))
    differing = np.flatnonzero(highest > lowest)
    if not differing.size:
        return ""
    first = int(differing[0])
    rows = np.arange(len(scores))[lists.rows(first)]
    name, form = (gain.column, ".6g") if isinstance(gain, Column) else (gain.title, ".4g")
    better, worse = (
        f"{_show(lists, int(rows[of(scores[rows])]))} ({name} {value + 0.0:{form}})"
        for of, value in zip(
            (np.nanargmax, np.nanargmin),
            gain.signed(np.array([highest[first], lowest[first]])).tolist(),
            strict=True,
        )
    )
    return f"list {lists.ids[first]}: {better} is better than {worse}"


def describe_oracle(lists: NBest, best: Oracles) -> str:
    """Return which candidate is the oracle of the first list; of no lists, an empty text."""
    if not len(lists):
        return ""
    oracle = _show(lists, int(lists.offsets[0] + best.index[0]))
    return f"list {lists.ids[0]}: {oracle} is the best candidate by {best.gain}"


def describe_preference(lists: NBest, answers: Iterable[Choice]) -> str:
    """Return which candidate was preferred to which, or was equal to it if none was.

    It is the first answer; of a ranking, the first and the last candidate.

    Args:
        lists: the lists.
        answers: about them, from `iter_choices`.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a", "b"]], [[[1.0], [2.0]]], ["lm"])
    >>> tie, answer = Choice(0, (0, 1), 2, pair=True), Choice(0, (1, 0), 0, pair=True)
    >>> describe_preference(lists, [tie, answer]), describe_preference(lists, [tie])
    ('list 0: "b" was preferred to "a"', 'list 0: no difference between "a" and "b"')
    """
    answer = min(answers, key=lambda choice: choice.chosen != 0, default=None)
    if answer is None:
        return ""
    start, places = lists.offsets[answer.sentence], answer.candidates
    first, last = (_show(lists, int(start + places[end])) for end in (0, -1))
    compared = f"{first} was preferred to {last}"
    if answer.chosen:
        compared = f"no difference between {first} and {last}"
    return f"list {lists.ids[answer.sentence]}: {compared}"


def _show(lists: NBest, row: int) -> str:
    return f'"{abbreviate(lists.text(row), _OF_TEXT)}"'
