"""Posteriors that another program made: InferenceData with draws of `weights`, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bpa_ppl.posterior import import_arviz

if TYPE_CHECKING:
    from arviz import InferenceData


def foreign(weights: npt.ArrayLike, names: Sequence[str], **stats: npt.ArrayLike) -> InferenceData:
    """Draws of the weights, (chains, draws, features), with a sampler's statistics of each draw."""
    return import_arviz().from_dict(
        posterior={"weights": np.asarray(weights)},
        sample_stats={name: np.asarray(values) for name, values in stats.items()} or None,
        coords={"feature": list(names)},
        dims={"weights": ["feature"]},
    )


def autoregressive(
    correlation: float, chains: int, draws: int, features: int, seed: int
) -> npt.NDArray[np.float64]:
    """Chains that have converged: AR(1) with standard normal draws, (chains, draws, features)."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(draws, chains, features))
    out = np.empty_like(noise)
    out[0] = noise[0]
    for i in range(1, draws):
        out[i] = correlation * out[i - 1] + np.sqrt(1 - correlation**2) * noise[i]
    return out.swapaxes(0, 1)
