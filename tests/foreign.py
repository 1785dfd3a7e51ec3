"""Posteriors that another program made: InferenceData with draws of `weights` and more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bpa_ppl.posterior import inference_data

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData


def foreign(
    weights: npt.ArrayLike,
    names: Sequence[str],
    *,
    sites: Mapping[str, npt.ArrayLike] | None = None,
    log_likelihood: Mapping[str, npt.ArrayLike] | None = None,
    observed: Mapping[str, npt.ArrayLike] | None = None,
    **stats: npt.ArrayLike,
) -> InferenceData:
    """Draws of the weights, (chains, draws, features), and what else the program recorded.

    Args:
        weights: the draws.
        names: of the features.
        sites: draws of other sites, (chains, draws, …).
        log_likelihood: of each observed site, (chains, draws, …).
        observed: what was observed there.
        stats: the sampler's statistics of each draw, (chains, draws).
    """
    groups = {
        "posterior": {"weights": weights, **(sites or {})},
        "sample_stats": stats,
        "log_likelihood": log_likelihood or {},
        "observed_data": observed or {},
    }
    return inference_data(
        {
            group: {name: np.asarray(values) for name, values in variables.items()}
            for group, variables in groups.items()
        },
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
