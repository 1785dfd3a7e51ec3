"""Draws of samplers, right and wrong, and of other programs in all forms that are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from xarray import Dataset

from bpa_ppl import Draws
from bpa_ppl.diagnostics.samplers import joint_test
from bpa_ppl.posterior.draws import name_array
from support.posteriors import autoregressive, inference_data

NAMES = ("LM0", "TM0", "WP0")

Change = Callable[[np.ndarray], np.ndarray]


def runs(
    change: Change = lambda x: x, count: int = 4, draws: int = 500, correlation: float = 0.3
) -> list[Draws]:
    """Standard normal chains with correlation 0.7 between the first two weights, changed."""
    chains = (autoregressive(correlation, 4, draws, 3, seed=seed) for seed in range(count))
    return [name_array(change(tied(values)), NAMES) for values in chains]


def tied(draws: np.ndarray) -> np.ndarray:
    out = draws.copy()
    out[..., 1] = 0.7 * draws[..., 0] + np.sqrt(1 - 0.7**2) * draws[..., 1]
    return out


def importance_sample(seed: int, count: int) -> Draws:
    """Weighted draws of `tied` normal draws from a wider normal distribution."""
    draws = tied(1.3 * autoregressive(0.0, 1, count, 3, seed=seed))
    covariance = np.array([[1, 0.7, 0], [0.7, 1, 0], [0, 0, 1]])
    square = np.einsum("cdi,ij,cdj->cd", draws, np.linalg.inv(covariance), draws)
    log_weight = -0.5 * square * (1 - 1 / 1.3**2)
    return name_array(draws, NAMES, kind="weighted", log_weight=log_weight)


@contextmanager
def few_splits() -> Iterator[None]:
    """Leave few splits and draws to the joint test, which takes most of a comparison's time."""
    with pytest.MonkeyPatch.context() as patch:
        for name, few in {"SPLITS": 9, "_MAX_DRAWS": 100, "_MAX_REFERENCE_DRAWS": 150}.items():
            patch.setattr(joint_test, name, few)
        yield


Arrays = dict[str, Any]

SCHOOLS = ["Choate", "Deerfield", "Phillips"]

NAMED = {"coords": {"school": SCHOOLS}, "dims": {"theta": ["school"]}}


#: Draws of each of the four chains of `arrays`: enough for an agreement, as they are independent.
COUNT = 800


def arrays(seed: int, draws: int = COUNT) -> Arrays:
    """Draws of a scalar and of a vector."""
    values = autoregressive(0.0, 4, draws, 4, seed)
    return {"mu": 3 + 2 * values[..., 0], "theta": values[..., 1:]}


def as_tree(values: Arrays, **labels: Any) -> Any:
    return inference_data({"posterior": values}, **(labels or NAMED))


def as_dataset(values: Arrays) -> Dataset:
    dims = {"mu": ("chain", "draw"), "theta": ("chain", "draw", "school")}
    data = {name: (dims[name], array) for name, array in values.items()}
    return Dataset(data, coords={"school": SCHOOLS})
