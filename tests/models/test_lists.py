"""Lists as models use them: buckets, multiplicities, rounding and memory."""

from __future__ import annotations

import numpy as np
import psutil
import pytest
import reference_model
from raising import raises

from bpa_ppl import DataError, NBest, adapt
from bpa_ppl.models import tabulate
from bpa_ppl.models.lists import PADDING, in_order
from bpa_ppl.weights import match

CANONICAL = {"A": 0.3, "B": -0.2}


def _random_lists(sizes: list[int], seed: int = 0, *, whole: bool = False) -> NBest:
    rng = np.random.default_rng(seed)
    # Of whole numbers many rows are equal.
    tables = [rng.normal(size=(n, 2)).astype(np.float32) for n in sizes]
    tables = [np.round(table) for table in tables] if whole else tables
    return NBest.from_lists([[f"w{h}" for h in range(n)] for n in sizes], tables, ["A", "B"])


@pytest.mark.parametrize("whole", [False, True])
def test_likelihood_of_ragged_lists_agrees_with_scipy(whole: bool) -> None:
    sizes = [1, 2, 3, 9, 17, 33, 70, 71, 150, 300, 5, 500]
    pool = _random_lists(sizes, whole=whole)
    oracle = np.array([n // 2 for n in sizes])
    result = adapt(pool, CANONICAL, sampler="map", oracle=reference_model.given(*oracle))
    weights = result["posterior"]["weights"].values[0, 0]
    ours = result["log_likelihood"]["oracle"].values[0, 0]
    expected = reference_model.log_likelihood(pool, oracle, weights)
    np.testing.assert_allclose(ours, expected, rtol=2e-6, atol=2e-6)


def test_equal_derivations_are_merged() -> None:
    pool = _random_lists([200], whole=True)
    table = tabulate(pool, match(CANONICAL, pool), [0])
    base = table.buckets[0]["base"][0, 0]
    used = base > PADDING / 2
    distinct = len(np.unique(np.delete(pool.features, 0, axis=0), axis=0))
    assert used.sum() == distinct + 1 < 100
    # The oracle has multiplicity 1, the other rows together 199.
    assert np.exp(base[used]).sum() == pytest.approx(200, rel=1e-5)


def test_padding_is_bounded() -> None:
    sizes = np.random.default_rng(1).integers(1, 501, size=400).tolist()
    pool = _random_lists(sizes)
    table = tabulate(pool, match(CANONICAL, pool), np.zeros(400, int))
    assert len(table.buckets) <= 4
    rows = sum(bucket["base"].size for bucket in table.buckets)
    assert rows < 1.5 * sum(sizes)
    assert rows < 0.8 * 400 * 500


def test_in_order_restores_sentence_order() -> None:
    pool = _random_lists([300, 2, 40, 300, 3, 41])
    table = tabulate(pool, match(CANONICAL, pool), np.zeros(6, int), multiple=4)
    assert table.sentence[in_order(table)].tolist() == list(range(6))
    assert all(bucket["base"].shape[1] % 4 == 0 for bucket in table.buckets)
    assert (table.domain == 0).all()  # of padding sentences too


@pytest.mark.parametrize("enough", [False, True])
def test_table_and_its_copy_must_fit_into_memory(
    monkeypatch: pytest.MonkeyPatch, enough: bool
) -> None:
    pool = _random_lists([50] * 10 + [20] * 3)
    table = tabulate(pool, match(CANONICAL, pool))
    needed = 2 * sum(part.nbytes for bucket in table.buckets for part in bucket.values())
    free = type("Memory", (), {"available": needed if enough else needed - 1})
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    if enough:
        tabulate(pool, match(CANONICAL, pool))
    else:
        with raises(DataError, "too-large"):
            tabulate(pool, match(CANONICAL, pool))
