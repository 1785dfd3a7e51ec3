"""Draws of samplers, right and wrong, and of other programs in all forms that are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xarray import Dataset, DataTree

from bpa_ppl import Draws
from support.external_posterior import autoregressive, inference_data

NAMES = ("LM0", "TM0", "WP0")

Change = Callable[[np.ndarray], np.ndarray]


def runs(
    change: Change = lambda x: x, count: int = 4, draws: int = 500, correlation: float = 0.3
) -> list[Draws]:
    """Standard normal chains with correlation 0.7 between the first two weights, changed."""
    chains = (autoregressive(correlation, 4, draws, 3, seed=seed) for seed in range(count))
    return [Draws({"weights": change(tied(values))}, NAMES) for values in chains]


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
    return Draws({"weights": draws}, NAMES, "weighted", log_weight)


Arrays = dict[str, Any]

SCHOOLS = ["Choate", "Deerfield", "Phillips"]

NAMED = {"coords": {"school": SCHOOLS}, "dims": {"theta": ["school"]}}


def arrays(seed: int, draws: int = 1500) -> Arrays:
    """Draws of a scalar and of a vector."""
    values = autoregressive(0.3, 4, draws, 4, seed)
    return {"mu": 3 + 2 * values[..., 0], "theta": values[..., 1:]}


def as_tree(values: Arrays, **labels: Any) -> Any:
    return inference_data({"posterior": values}, **(labels or NAMED))


def as_dataset(values: Arrays) -> Dataset:
    dims = {"mu": ("chain", "draw"), "theta": ("chain", "draw", "school")}
    data = {name: (dims[name], array) for name, array in values.items()}
    return Dataset(data, coords={"school": SCHOOLS})


def as_datatree(values: Arrays) -> DataTree:
    return DataTree.from_dict({"posterior": as_dataset(values)})
