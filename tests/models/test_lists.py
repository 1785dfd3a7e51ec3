"""Lists as models use them: buckets, multiplicities and rounding."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from support import reference_model
from support.raising import raises

from bpa_ppl import DataError, NBest, UsageError, adapt, from_lists
from bpa_ppl.models.choice import OracleChoice
from bpa_ppl.models.lists import Lists, find_order, tabulate
from bpa_ppl.weights import match

CANONICAL = {"A": 0.3, "B": -0.2}


def _random_lists(sizes: list[int], seed: int = 0, *, whole: bool = False) -> NBest:
    rng = np.random.default_rng(seed)
    # Of whole numbers many rows are equal.
    tables = [rng.normal(size=(n, 2)).astype(np.float32) for n in sizes]
    tables = [np.round(table) for table in tables] if whole else tables
    return from_lists([[f"w{h}" for h in range(n)] for n in sizes], tables, ["A", "B"])


@pytest.mark.parametrize("whole", [False, True])
def test_likelihood_of_ragged_lists_agrees_with_scipy(whole: bool) -> None:
    sizes = [1, 2, 3, 9, 17, 33, 70, 71, 150, 300, 5, 500]
    pool = _random_lists(sizes, whole=whole)
    oracle = np.array([n // 2 for n in sizes])
    result = adapt(pool, CANONICAL, sampler="map", gain=reference_model.given(*oracle))
    weights = result["posterior"]["weights"].values[0, 0]
    ours = result["log_likelihood"]["oracle"].values[0, 0]
    expected = reference_model.log_likelihood(pool, oracle, weights)
    np.testing.assert_allclose(ours, expected, rtol=2e-6, atol=2e-6)


@jax.jit
def log_prob(table: Lists, weights: jax.Array, rows: jax.Array) -> jax.Array:
    return OracleChoice(table, weights).log_prob(rows)


def test_rows_have_the_probabilities_of_their_candidates() -> None:
    """Also those of other rows than the oracle, with a fixed feature and equal candidates."""
    rng, sizes, oracle = np.random.default_rng(3), (4, 1, 6, 2, 40), (3, 0, 1, 0, 17)
    features = [rng.normal(size=(n, 2)) for n in sizes]
    for table in features:
        table[1::3] = table[0]
    texts = [[str(i) for i in range(n)] for n in sizes]
    pool = from_lists(texts, features, ["LM0", "WP0"])
    matched = match({"LM0": 0.1, "WP0": 0.7}, pool, fixed=["WP0"])
    data = tabulate(pool, matched, oracle)
    order, rows = find_order(data), np.arange(max(sizes))
    of_rows = jax.vmap(log_prob, in_axes=(None, None, 0))
    log_p = np.asarray(of_rows(data, np.array([0.4]), np.tile(rows[:, None], len(data.oracle))))
    candidates = [
        bucket["candidate"].reshape(-1, bucket["base"].shape[-1]) for bucket in data.buckets
    ]
    places = [row for bucket in candidates for row in bucket]
    for sentence, place in enumerate(order):
        table = pool.features[pool.rows(sentence)]
        p = np.exp(reference_model.log_choice(table, [0.4, 0.7]))
        represented = places[place][places[place] >= 0]
        others = np.arange(len(p)) != oracle[sentence]
        expected = [
            p[h] if row == 0 else p[others & (table == table[h]).all(axis=1)].sum()
            for row, h in enumerate(represented)
        ]
        assert sum(expected) == pytest.approx(1.0)
        result = np.exp(log_p[: len(expected), place])
        np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_padding_is_bounded() -> None:
    sizes = np.random.default_rng(1).integers(1, 501, size=400).tolist()
    pool = _random_lists(sizes)
    table = tabulate(pool, match(CANONICAL, pool), np.zeros(400, int))
    assert len(table.buckets) <= 4
    rows = sum(bucket["base"].size for bucket in table.buckets)
    assert rows < 1.5 * sum(sizes)
    assert rows < 0.8 * 400 * 500


ONE = from_lists([["a", "b"]] * 2, [np.eye(2)] * 2, ["A", "B"])
MATCHED = match(CANONICAL, ONE)


@pytest.mark.parametrize(
    ("arguments", "code", "parameter"),
    [
        ({"nbest": "lists"}, "wrong-type", "nbest"),
        ({"match": CANONICAL}, "wrong-type", "match"),
        ({"oracle": reference_model.given(0, 0)}, "wrong-type", "oracle"),
        ({"gains": "ter"}, "wrong-type", "gain"),
        ({"oracle": [0.5, 0]}, "mismatch", "oracle"),
        ({"oracle": [0, 2]}, "mismatch", "oracle"),
        ({"oracle": [-1, 0]}, "mismatch", "oracle"),
        ({"domain": [-1, 0]}, "mismatch", "domain"),
        ({"rater": [1, -1]}, "mismatch", "rater"),
        ({"weight": [1.0, 0.0]}, "mismatch", "weight"),
        ({"weight": [1.0]}, "wrong-length", "weight"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    arguments: dict[str, Any], code: str, parameter: str
) -> None:
    kind = DataError if code in ("mismatch", "wrong-length") else UsageError
    with raises(kind, code, parameter=parameter):
        tabulate(**{"nbest": ONE, "match": MATCHED, **arguments})
