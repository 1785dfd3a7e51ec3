"""Weights that the adaptation sentences could not change because of the unit of their feature."""

from __future__ import annotations

import numpy as np

from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.notes import warn_user
from bpa_ppl.posterior import Draws
from bpa_ppl.weights import spread_within

# If λ·h of a list varies a priori by less than this, no choice depends on it.
_NEGLIGIBLE = 0.02
# Relative to the prior's standard deviation: that of the posterior, and the shift of the mean.
_MIN_WIDTH, _MAX_SHIFT = 0.9, 0.25
# A feature that varies in fewer lists is rare, and its unit is not the cause.
_MIN_VARYING = 0.5


def uninformed_weights(draws: Draws, nbest: NBest) -> dict[str, float]:
    """Return the features whose weights the data could not change, with their effect on scores.

    Their posterior is as wide as their prior and has the same mean, because the spread of the
    feature within the lists times the standard deviation of the prior is negligible: the unit of
    the feature is too large for its prior. Features that vary in few lists are left out, because
    their unit is not the cause; and if no weight has changed, the whole prior is narrow on purpose.

    Args:
        draws: a posterior with a Gaussian prior; the result is empty for any other.
        nbest: the lists with the features that were adapted.

    Returns:
        name -> spread within the lists × standard deviation of the prior.
    """
    mean, variance, covariance = (
        draws.constants.get(f"prior_{name}") for name in ("mean", "variance", "covariance")
    )
    if variance is None and covariance is not None:
        variance = np.diag(np.asarray(covariance, np.float64))
    if variance is None or mean is None or not len(nbest):
        return {}
    deviation: Float64 = np.sqrt(np.asarray(variance, np.float64))
    uninformed = np.abs(draws.mean - mean) < _MAX_SHIFT * deviation
    if draws.kind != "point":
        uninformed &= draws.deviation > _MIN_WIDTH * deviation
    if not uninformed.any():  # avoids a pass over all hypotheses
        return {}
    columns = [nbest.feature_names.index(name) for name in draws.features]
    table, starts = nbest.features[:, columns], nbest.offsets[:-1]
    differs = np.maximum.reduceat(table, starts) > np.minimum.reduceat(table, starts)
    common = differs.mean(axis=0) >= _MIN_VARYING
    effect = spread_within(nbest)[columns] * deviation
    uninformed &= effect < _NEGLIGIBLE
    if uninformed[common].all():
        return {}
    return {draws.features[k]: float(effect[k]) for k in np.flatnonzero(uninformed & common)}


def warn_uninformed(draws: Draws, nbest: NBest) -> None:
    """Warn of weights that the data could not change, with the remedy."""
    effects = uninformed_weights(draws, nbest)
    if effects:
        small = ", ".join(f"{name} ({effect:.1g})" for name, effect in effects.items())
        warn_user(
            f"the data could not change the weight of {small}: the feature hardly varies within "
            "lists compared with its prior (spread × standard deviation in brackets); multiply "
            "the feature by a number, or give it a larger prior variance"
        )
