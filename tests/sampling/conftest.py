"""One posterior of each sampler and target for the whole run: compilations take the time."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import reference_model
from targets import EXACT, SENTENCES, STEPS, TARGETS, Target

from bpa_ppl import adapt

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

target = cache(lambda name: TARGETS[name]())


@cache
def posterior_of(sampler: str, name: str, seed: int = 0, draws: int = 1000) -> InferenceData:
    """Draw from a target with a known answer."""
    known: Target = target(name)
    settings = {"draws": draws, **STEPS.get(sampler, {})}
    return adapt(
        known.pool,
        known.canonical,
        sampler=sampler,
        prior_variance=known.variance,
        oracle=reference_model.given(*[0] * SENTENCES),
        seed=seed,
        **(settings if sampler != "map" else {}),
    )


@pytest.fixture(scope="session")
def posteriors() -> Any:
    """The function (sampler, target, seed, draws) ↦ posterior, which remembers."""
    return posterior_of


@pytest.fixture(params=EXACT)
def sampler(request: pytest.FixtureRequest) -> str:
    """Each sampler whose draws, weighted if it weighs them, follow the posterior."""
    return str(request.param)
