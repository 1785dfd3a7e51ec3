"""Posteriors: draws of named values, their statistics, ArviZ's InferenceData, and files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.arviz_functions import import_arviz
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.files import read_draws, write_posterior

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.weights import Weights

__all__ = [
    "Draws",
    "as_draws",
    "import_arviz",
    "point_weights",
    "read_draws",
    "write_posterior",
]


def point_weights(posterior: Posterior, point: str = "mean", draw: int = 0) -> Weights:
    """Return one vector of weights that represents a posterior, fixed weights included.

    Args:
        posterior: the draws.
        point: `mean`, of the draws; `mode`, if the sampler has computed it; or `draw`.
        draw: which draw, counted over all chains one after the other.

    Raises:
        DataError: if the posterior has no such draw, or no mode.
        UsageError: if there is no such point.

    >>> import numpy as np
    >>> point_weights(Draws({"weights": np.array([[[0.5], [1.5]]])}, ("LM0",)))
    Weights({'LM0': 1})
    """
    return as_draws(posterior).at_point(point, draw)
