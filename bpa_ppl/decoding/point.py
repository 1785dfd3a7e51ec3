"""point_weights: a posterior as one vector of weights, for programs that take no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bpa_ppl.diagnostics.check.report import refuse_unconverged
from bpa_ppl.weight_draws import as_weight_draws
from bpa_ppl.weights import Weights

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_data import Posterior


def point_weights(
    posterior: Posterior, point: str = "mean", draw: int = 0, *, unchecked: bool = False
) -> Weights:
    """Return one vector of weights that represents a posterior, fixed weights included.

    Args:
        posterior: from `adapt`, or any other with a variable `weights` and feature names.
        point: `mean`, of the draws; `mode`, if the sampler has computed it; or `draw`.
        draw: which draw, counted over all chains one after the other.
        unchecked: use the posterior although it fails its check.

    Raises:
        DataError: if the posterior has no such draw, or no mode.
        NotConverged: if the posterior fails `check`.
        UsageError: if there is no such point, or a draw is chosen of another one.

    >>> import numpy as np
    >>> from bpa_ppl import Draws
    >>> drawn = np.random.default_rng(0).normal(1.0, 0.1, size=(4, 500, 1))
    >>> from bpa_ppl.weight_draws import name_weights
    >>> round(point_weights(name_weights(drawn, ("LM0",)))["LM0"], 1)
    1.0
    """
    draws = as_weight_draws(posterior)
    if not unchecked:
        refuse_unconverged(draws)
    return draws.at_point(point, draw)
