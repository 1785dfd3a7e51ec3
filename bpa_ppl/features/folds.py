"""Folds: sentences are left out together when a source learns from the lists that it judges."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from bpa_ppl.errors import UsageError
from bpa_ppl.nbest import Float64, Int64, NBest

_SEED = 0  # fixed: the same sentences are always divided in the same way


def fold_of(keys: Sequence[Hashable], folds: int) -> Int64:
    """Return the fold of each key; equal keys stand in the same fold.

    The distinct keys, in the order in which they come, are shuffled with a fixed seed and dealt
    out in turn: two folds differ by at most one in their number of distinct keys. There are as
    many folds as distinct keys where these are fewer (leaving one out).

    Args:
        keys: (n,) what must not be torn apart, such as the reference of each sentence.
        folds: how many, from 2 on.

    Returns:
        (n,) int64, from 0 to min(folds, distinct keys) - 1.

    Raises:
        UsageError: if there are fewer than two folds: each is judged by what the others teach.

    >>> fold_of(["a", "b", "a", "c"], 2).tolist()
    [1, 0, 1, 0]
    """
    if folds < 2:
        raise UsageError(f"leaving sentences out needs at least two folds, not {folds}")
    numbers: dict[Hashable, int] = {}
    which = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
    dealt = np.empty(len(numbers), dtype=np.int64)
    shuffled = np.random.default_rng(_SEED).permutation(len(numbers))
    dealt[shuffled] = np.arange(len(numbers)) % folds
    return dealt[which]


def cross_fitted(
    nbest: NBest, folds: Int64, learned: Callable[[Int64], Callable[[NBest], dict[str, Float64]]]
) -> dict[str, Float64]:
    """Return columns of which those of each fold are computed by what was learned without it.

    Args:
        nbest: the lists.
        folds: (sentences,) from `fold_of`.
        learned: from the sentences of a fold to what computes its columns: called once a fold.
    """
    columns: dict[str, Float64] = {}
    for fold in range(folds.max(initial=-1) + 1):
        inside = folds == fold
        rows = np.repeat(inside, nbest.sizes)
        computed = learned(np.flatnonzero(inside))(nbest.select(inside))
        for name, values in computed.items():
            columns.setdefault(name, np.empty(len(rows)))[rows] = values
    return columns
