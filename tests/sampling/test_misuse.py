"""Arguments that make no sense are refused in words; uncommon ones that do are taken."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import reference_model
from external_posterior import autoregressive
from raising import raises

from bpa_ppl import DataError, adapt, rerank
from bpa_ppl.posterior.arviz_functions import inference_data

POOL = reference_model.pairs([[1.0], [-2.0], [0.5]], ["LM0"])
GIVEN: dict[str, Any] = {"oracle": reference_model.given(0, 0, 0)}


@pytest.mark.parametrize("position", [5, -1])
def test_an_oracle_outside_its_list_is_refused(position: int) -> None:
    with raises(DataError, "mismatch", parameter="oracle"):
        adapt(POOL, {"LM0": 0.5}, oracle=reference_model.given(0, position, 0), sampler="map")


def test_draws_without_feature_names_fit_no_list() -> None:
    unnamed = inference_data({"posterior": {"weights": autoregressive(0, 4, 500, 1, 0)}})
    with raises(DataError, "missing-feature", parameter="without"):
        rerank(POOL, unnamed)


def test_more_chains_than_draws_are_no_reason_to_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = adapt(POOL, {"LM0": 0.5}, sampler="imh", draws=2, **GIVEN)
    assert found["posterior"]["weights"].shape == (4, 2, 1)
