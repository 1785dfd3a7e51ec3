"""The marginal likelihood of the adaptation sentences, by Laplace's approximation."""

from __future__ import annotations

import numpy as np

from bpa_ppl.sampling.base import Target
from bpa_ppl.sampling.mode import require_mode


def log_evidence(target: Target) -> float:
    """Return log p(A) by Laplace's approximation, log p(A, z*) + ½ log |2π Σ|.

    z* is the mode of the posterior in unconstrained space and Σ the inverse of the negative Hessian
    there (Tierney & Kadane 1986; MacKay 1992). To be called with x64 enabled.

    Raises:
        DataError: if no mode of the posterior is found.

    >>> import jax
    >>> from bpa_ppl import NBest
    >>> from bpa_ppl.models import Prior
    >>> from bpa_ppl.sampling import target_of
    >>> from bpa_ppl.weights import match
    >>> lists = NBest.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> with jax.enable_x64(True):  # a mean of 0: each hypothesis is chosen half the time
    ...     target = target_of(
    ...         lists, match({"LM0": 0.0}, lists), Prior.isotropic({"LM0": 0.0}), oracle=[1]
    ...     )
    ...     round(float(np.exp(log_evidence(target))), 3)
    0.5
    """
    mode = require_mode(target)
    return float(np.linalg.slogdet(2 * np.pi * mode.covariance)[1] / 2 - mode.potential_energy)
