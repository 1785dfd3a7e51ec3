"""Ensemble: the weight vectors that vote on a translation, laid beside an n-best table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bpa_ppl import posterior as reading
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.weights import match

if TYPE_CHECKING:
    from arviz import InferenceData


class Ensemble(NamedTuple):
    """Weight vectors in the order of the columns of a table (D draws, Q features).

    Attributes:
        weights: (D, Q).
        log_weight: (D,) logarithm of the say of each draw in a sum over draws (Eq. 11, Eq. 13).
        log_joint: (D,) logarithm of p(A|λ) p(λ|T), leveraged likewise, up to a constant.
        power: 1/δ, the exponent of p(e|f,λ); 1 for draws of the posterior itself.
    """

    weights: Any
    log_weight: Any
    log_joint: Any
    power: float


def in_groups(ensemble: Ensemble, size: int) -> Ensemble:
    """Return the draws in groups of `size`, (groups, size, …); what fills the last has no say."""
    draws, features = ensemble.weights.shape
    fill = ((0, -draws % size),)
    return Ensemble(
        weights=np.pad(ensemble.weights, (*fill, (0, 0))).reshape(-1, size, features),
        log_weight=np.pad(ensemble.log_weight, fill, constant_values=-np.inf).reshape(-1, size),
        log_joint=np.pad(ensemble.log_joint, fill, constant_values=-np.inf).reshape(-1, size),
        power=ensemble.power,
    )


def from_posterior(posterior: InferenceData, nbest: NBest) -> Ensemble:
    """Return every draw of a posterior.

    Raises:
        DataError: if the lists have a feature without a weight.
    """
    samples = reading.draws(posterior)
    log_weight = reading.statistic(posterior, "log_weight")
    log_joint = log_weight if log_weight is not None else reading.statistic(posterior, "lp")
    count = len(samples)
    uniform = np.full(count, -np.log(count))
    return Ensemble(
        weights=reading.beside(samples, posterior, nbest),
        log_weight=uniform if log_weight is None else _normalised(log_weight),
        log_joint=np.zeros(count) if log_joint is None else _normalised(log_joint),
        power=float(posterior.attrs.get("power", 1.0)),
    )


def has_density(posterior: InferenceData) -> bool:
    """Say whether a posterior records how probable each draw is."""
    return any(reading.statistic(posterior, name) is not None for name in ("log_weight", "lp"))


def from_point(posterior: InferenceData, nbest: NBest, point: str) -> Ensemble:
    """Return one vector that stands for the posterior: its `mean` or its `mode`."""
    chosen = match(reading.point_weights(posterior, point), nbest, fixed=())
    return Ensemble(chosen.values[None], np.zeros(1), np.zeros(1), 1.0)


def canonical_weights(posterior: InferenceData, nbest: NBest) -> Float64 | None:
    """Return λ_T in the order of the columns, (Q,), or None where it was not recorded."""
    if "constant_data" not in posterior or "canonical" not in posterior["constant_data"]:
        return None
    values = posterior["constant_data"]["canonical"].values[None]
    return reading.beside(np.asarray(values, np.float64), posterior, nbest)[0]


def _normalised(log_values: np.ndarray) -> Float64:
    flat = np.asarray(log_values, np.float64).reshape(-1)
    shifted = flat - flat.max()
    return shifted - np.log(np.exp(shifted).sum())
