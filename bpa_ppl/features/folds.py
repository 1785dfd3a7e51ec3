"""Folds: which sentences are left out together when a source learns from the lists it judges."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from bpa_ppl.errors import UsageError
from bpa_ppl.nbest import Int64

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
