"""Lists whose candidates are compared in the tests."""

from __future__ import annotations

import numpy as np

from bpa_ppl import NBest, from_lists

NAMES = ("quality", "length", "noise")
#: A simulated rater prefers larger values of these weights.
TRUE = np.array([2.0, -1.0, 0.0])


def compared_lists(count: int = 40, size: int = 5, seed: int = 0) -> NBest:
    """Lists with three features, and a judgement `score` that two of them predict."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(count, size, 3))
    texts = [[f"text {s} {i}" for i in range(size)] for s in range(count)]
    lists = from_lists(texts, features, NAMES)
    return lists.with_extras(score=(features @ TRUE).reshape(-1).round(1))
