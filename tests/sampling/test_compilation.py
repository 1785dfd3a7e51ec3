"""Data of similar size share one compilation."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import pytest

from bpa_ppl import NBest, adapt, from_lists

_EVENT = "/jax/core/compile/backend_compile_duration"


@pytest.fixture
def compilations() -> Iterator[list[str]]:
    """A list that grows by one for each program that XLA compiles or loads from its cache."""
    seen: list[str] = []

    def listen(event: str, seconds: float, **_: object) -> None:
        if event == _EVENT:
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    jax.monitoring.unregister_event_duration_listener(listen)


def _pool(sentences: int, size: int, seed: int) -> NBest:
    rng = np.random.default_rng(seed)
    texts = [[f"w{h}" for h in range(size)] for _ in range(sentences)]
    features = [rng.normal(size=(size, 3)) for _ in texts]
    return from_lists(texts, features, ["A", "B", "C"], references=[("w0",)] * sentences)


CANONICAL = {"A": 0.1, "B": 0.2, "C": 0.3}


@pytest.mark.parametrize("sampler", ["imh", pytest.param("nuts:warmup=20", marks=pytest.mark.slow)])
def test_similar_data_are_not_compiled_again(compilations: list[str], sampler: str) -> None:
    adapt(_pool(50, 33, 1), CANONICAL, sampler=sampler, draws=40)
    first = len(compilations)
    adapt(_pool(52, 35, 2), CANONICAL, sampler=sampler, draws=40)
    assert first > 0
    assert len(compilations) == first
