"""A posterior of two weights to serve."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.posteriors import name_weights

from bpa_ppl import write_posterior

pytest.importorskip("starlette", reason="the extra `serve` is not installed")
pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")


@pytest.fixture(scope="session")
def posterior(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a posterior that passes its check."""
    weights = np.random.default_rng(0).normal([1.0, -0.5], 0.1, size=(4, 500, 2))
    path = tmp_path_factory.mktemp("served") / "posterior.nc"
    write_posterior(name_weights(weights, ("lm", "tm")), path)
    return path
