"""One posterior of each sampler and target for the whole run: compilations take the time."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from support.targets import EXACT, KERNELS, TARGETS

if TYPE_CHECKING:
    from support.posteriors import InferenceData


@cache
def posterior_of(sampler: str, name: str, seed: int = 0, draws: int = 1000) -> InferenceData:
    """Draw from a target with a known answer."""
    return TARGETS[name]().adapt(sampler, {"draws": draws}, seed=seed)


@pytest.fixture(scope="session")
def posteriors() -> Any:
    """The function (sampler, target, seed, draws) ↦ posterior, which remembers."""
    return posterior_of


@pytest.fixture(params=[*EXACT, *(pytest.param(n, marks=pytest.mark.slow) for n in KERNELS)])
def sampler(request: pytest.FixtureRequest) -> str:
    """Each sampler whose draws, weighted if it weighs them, follow the posterior."""
    return str(request.param)
