"""One posterior of each sampler and target for the whole run: compilations take the time."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.targets import EXACT, TARGETS

from bpa_ppl import NBest, from_lists

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData


@cache
def posterior_of(sampler: str, name: str, seed: int = 0, draws: int = 1000) -> InferenceData:
    """Draw from a target with a known answer."""
    return TARGETS[name]().adapt(sampler, {"draws": draws}, seed=seed)


@pytest.fixture(scope="session")
def posteriors() -> Any:
    """The function (sampler, target, seed, draws) ↦ posterior, which remembers."""
    return posterior_of


@pytest.fixture(scope="module")
def pool() -> NBest:
    """Twenty lists of eight candidates with two features."""
    rng = np.random.default_rng(5)
    texts = [[f"w{h}" for h in range(8)] for _ in range(20)]
    features = [rng.normal(size=(8, 2)) for _ in texts]
    return from_lists(texts, features, ["A", "B"], references=[("w0",)] * 20)


@pytest.fixture(params=EXACT)
def sampler(request: pytest.FixtureRequest) -> str:
    """Each sampler whose draws, weighted if it weighs them, follow the posterior."""
    return str(request.param)
