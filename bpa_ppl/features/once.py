"""Once: what is the same for equal strings of a list is computed once for each of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bpa_ppl.nbest import Int64, NBest


class Distinct(NamedTuple):
    """The different (group, string) pairs of a table; those of one group stand together.

    Attributes:
        group: (pairs,) the group of each, ascending.
        string: (pairs,) its text, a number in `nbest.strings`.
        inverse: (hypotheses,) the pair of each hypothesis.
    """

    group: Int64
    string: Int64
    inverse: Int64


def distinct(nbest: NBest, group: Int64) -> Distinct:
    """Return the different strings of each group of lists.

    Args:
        nbest: the lists.
        group: (sentences,) the group of each list: its own number, or that of its source.

    >>> lists = NBest.from_lists([["b", "a", "b"], ["a"]], [[[0.0]] * 3, [[0.0]]], ["LM0"])
    >>> [part.tolist() for part in distinct(lists, np.array([0, 1]))]
    [[0, 0, 1], [0, 1, 1], [0, 1, 0, 2]]
    """
    count = max(len(nbest.strings), 1)
    keys = np.repeat(np.asarray(group, dtype=np.int64), nbest.sizes) * count + nbest.string_index
    found, inverse = np.unique(keys, return_inverse=True)
    return Distinct(found // count, found % count, inverse)
