"""Lists of random candidates, some of them derivations of equal strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bpa_ppl import NBest, from_lists

NAMES = ("LM0", "TM0", "WP0")
WORDS = ("the", "a", "cat", "dog", "sat", "on", "mat")


def random_lists(
    sizes: Sequence[int], *, words: bool = False, scale: float = 4.0, **parts: Any
) -> NBest:
    """Return lists of three features.

    Args:
        sizes: the number of candidates of each list; half of them are different strings.
        words: whether the strings are of two to seven words, not of one.
        scale: the standard deviation of the features.
        parts: of the lists, such as `references`.
    """
    rng, texts = np.random.default_rng(4), []
    for n in sizes:
        strings = [f"t{k}" for k in range(1 + n // 2)]
        if words:
            strings = [" ".join(rng.choice(WORDS, size=rng.integers(2, 8))) for _ in strings]
        texts.append([str(text) for text in rng.choice(strings, n)])
    features = [rng.normal(-20, scale, size=(n, len(NAMES))) for n in sizes]
    return from_lists(texts, features, NAMES, **parts)


def random_sizes(count: int, most: int) -> list[int]:
    """Return sizes of lists, from 1 to less than `most`."""
    return np.random.default_rng(3).integers(1, most, count).tolist()
