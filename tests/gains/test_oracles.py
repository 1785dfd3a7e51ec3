"""Oracles: work that is done once and in parallel, and lists without references.

`test_metrics.py` compares them with brute force.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.raising import raises

from bpa_ppl import DataError, NBest, UsageError, from_lists
from bpa_ppl.extending import oracles


def lists_of(texts: list[list[str]], references: list[list[str]], **arguments: Any) -> NBest:
    features = [np.zeros((len(t), 1)) for t in texts]
    return from_lists(texts, features, ["LM0"], references=references, **arguments)


@pytest.mark.parametrize(  # in threads, and in processes
    "metric", ["ter", pytest.param("bleu", marks=pytest.mark.slow)]
)
def test_result_does_not_depend_on_workers(metric: str) -> None:
    rng = np.random.default_rng(5)
    texts = [[" ".join(rng.choice(list("abcd"), 6)) for _ in range(4)] for _ in range(40)]
    lists = lists_of(texts, [[t[0]] for t in texts])
    alone, together = oracles(lists, metric), oracles(lists, metric, jobs=2)
    for name in ("index", "score", "tied", "share"):
        np.testing.assert_array_equal(getattr(together, name), getattr(alone, name))


@pytest.mark.parametrize(
    ("arguments", "error", "code"),
    [
        ({"preference": [1.0]}, DataError, "wrong-length"),
        ({"preference": [np.nan] * 9}, DataError, "bad-number"),
        ({"ties": "last"}, UsageError, "unknown-name"),
        ({"gain": "rouge"}, UsageError, "unknown-name"),
        ({"jobs": 0}, UsageError, None),
    ],
)
def test_bad_arguments_are_refused(
    toy: NBest, arguments: dict, error: Any, code: str | None
) -> None:
    with raises(error, code, parameter=next(iter(arguments))):
        oracles(toy, **arguments)


def test_lists_without_references_are_refused(toy: NBest) -> None:
    empty = lists_of([["a"]], [["a"]]).with_references([()])
    for bare in (empty, empty.without("references")):
        with raises(DataError, "missing-references", parameter="references"):
            oracles(bare)
    with raises(DataError, "no-data"):
        oracles(toy.select(np.zeros(3, dtype=bool)))


@pytest.mark.parametrize("metric", ["ter", "chrf"])
def test_lists_without_references_are_left_out_if_others_have_some(metric: str) -> None:
    texts = [["a cat", "the cat"], ["a dog", "dog"], ["cat", "a bird"]]
    lists = lists_of(texts, [["the cat"], [], ["a bird"]])
    result, whole = oracles(lists, metric), oracles(lists.select([0, 2]), metric)
    assert result.skipped == 1
    assert result.index[[0, 2]].tolist() == whole.index.tolist() == [1, 1]
    assert np.array_equal(result.score[[0, 2]], whole.score)
    assert np.isnan(result.score[1])
    with raises(DataError, "missing-references", parameter="references"):
        oracles(lists[1:2], metric)
