"""Settings that make no sense: an error, or draws that their check refuses; nothing in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.raising import raises

from bpa_ppl import UsageError, adapt, check, from_lists
from bpa_ppl.sampling.sampler import SAMPLERS

LISTS = from_lists([["a", "b"]] * 5, [np.eye(2)] * 5, ["A", "B"], references=[("a",)] * 5)


@pytest.mark.parametrize(
    ("sampler", "settings"),
    [
        ("imh", {"draws": 2**63}),
        ("rwm", {"thinning": 2**63}),
        ("rwm", {"warmup": 2**63}),
        ("auto", {"chains": 2**63}),
        ("imh", {"draws": 10**8, "chains": 100}),
    ],
)
def test_more_steps_than_anybody_can_wait_for_are_refused(
    sampler: str, settings: dict[str, int]
) -> None:
    with raises(UsageError, parameter="draws"):
        SAMPLERS.resolve(sampler, settings)


@pytest.mark.parametrize(
    ("sampler", "settings"),
    [
        ("laplace", {"draws": 1}),
        ("imh", {"draws": 1, "warmup": 0}),
        ("rwm", {"draws": 5, "scale": 1e300}),
        ("heuristic", {"draws": 30, "delta": 1e-300}),
    ],
)
def test_draws_of_no_worth_are_refused_without_a_fuss(
    sampler: str, settings: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    engine = SAMPLERS.resolve(sampler, settings)
    assert not check(adapt(LISTS, {"A": 0.1, "B": 0.2}, sampler=engine))
    assert "arviz" not in capfd.readouterr().err


def test_more_chains_than_draws_are_no_reason_to_warn() -> None:
    found = adapt(LISTS, {"A": 0.1, "B": 0.2}, sampler="imh", draws=2)
    assert found["posterior"]["weights"].shape == (4, 2, 2)
