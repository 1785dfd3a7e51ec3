"""Fixtures of comparisons."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.compared_draws import NAMES, few_splits, tied
from support.posteriors import autoregressive, name_array

from bpa_ppl import Draws


@pytest.fixture(scope="module")
def reference() -> list[Draws]:
    return [name_array(tied(autoregressive(0.2, 4, 1500, 3, seed=999)), NAMES)]


@pytest.fixture
def without_joint_test() -> Iterator[None]:
    with few_splits():
        yield
