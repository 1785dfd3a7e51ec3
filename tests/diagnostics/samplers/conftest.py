"""Fixtures of comparisons."""

from __future__ import annotations

import pytest
from support.compared_draws import NAMES, tied
from support.external_posterior import autoregressive

from bpa_ppl import Draws
from bpa_ppl.diagnostics.samplers import joint_test


@pytest.fixture(scope="module")
def reference() -> list[Draws]:
    return [Draws({"weights": tied(autoregressive(0.2, 4, 1500, 3, seed=999))}, NAMES)]


@pytest.fixture
def without_joint_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave few splits and draws to the joint test, which takes most of a comparison's time."""
    for name, few in {"SPLITS": 9, "_MAX_DRAWS": 100, "_MAX_REFERENCE_DRAWS": 150}.items():
        monkeypatch.setattr(joint_test, name, few)
