"""Buckets: lists of similar length, padded to one."""

from __future__ import annotations

import numpy as np
import pytest

from bpa_ppl import from_lists
from bpa_ppl.extending import match, tabulate


@pytest.mark.parametrize(("count", "buckets"), [(40, 1), (100, 2), (400, 4)])
def test_padding_and_the_number_of_buckets_are_bounded(count: int, buckets: int) -> None:
    sizes = np.random.default_rng(1).integers(1, 501, size=count).tolist()
    pool = from_lists([["a"] * n for n in sizes], [np.zeros((n, 1)) for n in sizes], ["LM0"])
    table = tabulate(pool, match({"LM0": 1.0}, pool))
    assert len(table.buckets) == buckets
    rows = sum(bucket["base"].size for bucket in table.buckets)
    # A bucket fewer costs at most as many rows as a compilation.
    assert rows < 1.5 * sum(sizes) + (4 - buckets) * 2 * 4096
