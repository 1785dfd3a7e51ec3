"""InferenceData as other programs write it, with draws of `weights` and further variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bpa_ppl.posterior.arviz_functions import inference_data

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData


def external_posterior(
    weights: npt.ArrayLike,
    names: Sequence[str],
    *,
    sites: Mapping[str, npt.ArrayLike] | None = None,
    log_likelihood: Mapping[str, npt.ArrayLike] | None = None,
    observed: Mapping[str, npt.ArrayLike] | None = None,
    **stats: npt.ArrayLike,
) -> InferenceData:
    """Return a posterior of another program.

    Args:
        weights: draws (chains, draws, features).
        names: the names of the features.
        sites: draws of other sites (chains, draws, …).
        log_likelihood: log-likelihoods of the observed sites (chains, draws, …).
        observed: the values of the observed sites.
        stats: sampler statistics (chains, draws).
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
    """Return stationary AR(1) chains with standard normal draws (chains, draws, features)."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(draws, chains, features))
    out = np.empty_like(noise)
    out[0] = noise[0]
    for i in range(1, draws):
        out[i] = correlation * out[i - 1] + np.sqrt(1 - correlation**2) * noise[i]
    return out.swapaxes(0, 1)
