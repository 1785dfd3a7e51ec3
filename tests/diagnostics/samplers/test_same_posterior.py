"""Posteriors of other data or of another model are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.compared_draws import NAMES, tied
from support.external_posterior import autoregressive, inference_data
from support.raising import raises
from support.records import ComponentRecord, ObservedRecord, PriorRecord, Record, name_weights

from bpa_ppl import DataError, Draws, as_draws, compare
from bpa_ppl.diagnostics.samplers.same_posterior import check_same_posterior


def recorded(**changes: object) -> Draws:
    """Draws with what `adapt` records of its data and of its model."""
    known = {
        "record": Record(
            observed=ObservedRecord(sentences=3, gain="ter"),
            likelihood=ComponentRecord("margin", {"gamma": 2.0}),
            prior=PriorRecord("isotropic", {"variance": 0.1}),
        ),
        "observed": {"oracle": np.array([4, 0, 2])},
        "sentence_ids": np.array([0, 1, 2]),
        "constants": {"prior_mean": np.arange(3.0), "prior_variance": np.full(3, 0.1)},
    }
    draws = tied(autoregressive(0.3, 4, 300, 3, seed=5))
    return name_weights(draws, NAMES, **{**known, **changes})


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        (
            {"record": Record(observed=ObservedRecord(sentences=4))},
            "number of sentences is 4, not 3",
        ),
        ({"sentence_ids": np.array([0, 2, 1])}, "sentence_ids"),
        ({"sentence_ids": np.array(["0", "1", "2"])}, "sentence_ids"),
        ({"observed": {"oracle": np.array([4, 1, 2])}}, "values of oracle"),
        ({"observed": {"oracle": np.array([4, 1])}}, "values of oracle"),
        (
            {"record": Record(likelihood=ComponentRecord("oracle"))},
            "oracle.*, not .*margin.*gamma.*2.0",
        ),
        (
            {"record": Record(prior=PriorRecord("horseshoe"))},
            "horseshoe.*, not .*isotropic.*variance.*0.1",
        ),
        ({"constants": {"prior_mean": np.ones(3)}}, "values of prior_mean"),
    ],
)
def test_posteriors_of_other_data_or_models_are_refused(changes: dict, named: str) -> None:
    with raises(DataError, "mismatch", match=f"mine is a posterior of other .*{named}.*;"):
        compare({"mine": [recorded(**changes)]}, [recorded()])


@pytest.mark.parametrize(
    ("oracle", "effective", "problem"),
    [
        (np.zeros(5, int), 3, ""),  # two sentences are padding
        (np.zeros(5, int), 2, ""),  # a list of one candidate has no effect
        (np.zeros(5, int), None, ""),
        (np.zeros(2, int), None, "there are 3 lists, and tables of only 2"),
        (np.zeros(5, int), 4, "there are 3 lists, and tables of 4"),
        (np.array([0, 0, 1, 0, 0]), 3, "other values of oracle"),
    ],
)
def test_rows_of_tables_are_the_oracles_of_lists(
    oracle: np.ndarray, effective: int | None, problem: str
) -> None:
    """As NumPyro records them: row 0 of each list is its oracle, and padding comes last."""
    draws = autoregressive(0.3, 4, 300, 3, seed=6)
    parts: dict[str, Any] = {"observed_data": {"oracle": oracle}}
    if effective is not None:
        parts["log_likelihood"] = {
            "oracle": -1.0 * (np.arange(len(oracle)) < effective) + draws[..., :1] * 0
        }
    labels = {"coords": {"feature": list(NAMES)}, "dims": {"weights": ["feature"]}}
    mine = as_draws(inference_data({"posterior": {"weights": draws}, **parts}, **labels))
    for pair in ((mine, recorded().draws), (recorded().draws, mine)):
        if problem:
            with raises(DataError, "mismatch", match=problem):
                check_same_posterior("mine", *pair)
        else:
            check_same_posterior("mine", *pair)


def test_texts_that_are_equal_are_the_same_data() -> None:
    texts = {"sentence_ids": np.array(["a", "b", "c"])}
    with raises(DataError, "mismatch", match="other values of sentence_ids"):
        other = recorded(sentence_ids=np.array(["a"] * 3)).draws
        check_same_posterior("mine", recorded(**texts).draws, other)
    check_same_posterior("mine", recorded(**texts).draws, recorded(**texts).draws)
