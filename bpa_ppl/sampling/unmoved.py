"""Which weights the adaptation sentences could not move, and why."""

from __future__ import annotations

import numpy as np

from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.notes import warn_user
from bpa_ppl.posterior import Draws
from bpa_ppl.weights import spread_within

# λ·h of a list then varies a priori by less than this: no choice depends on it.
_NO_MATTER = 0.02
# Of the prior's standard deviation: what is left of it, and how far the mean has gone.
_AS_WIDE, _AS_CENTRED = 0.9, 0.25
# The share of lists in which a feature varies, if its unit is to blame and not its rarity.
_OFTEN = 0.5


def unmoved(draws: Draws, nbest: NBest) -> dict[str, float]:
    """Return the features whose weights the data could not move, with how much they matter.

    Those whose posterior is as wide as their prior and around the same mean, because the spread of
    the feature within the lists times the standard deviation of the prior is next to nothing: the
    feature is in a unit too large for its prior. What varies in few lists is left out, since it is
    no question of the unit; and where no weight has moved the whole prior is tight, as somebody
    has asked for.

    Args:
        draws: a posterior with a Gaussian prior; nothing is said of any other.
        nbest: the lists with the features that were adapted.

    Returns:
        name -> spread within the lists × standard deviation of the prior.
    """
    before = _prior_deviation(draws)
    mean = draws.constants.get("prior_mean")
    if before is None or mean is None or not len(nbest):
        return {}
    still = np.abs(draws.mean - mean) < _AS_CENTRED * before
    if draws.kind != "point":
        still &= draws.deviation > _AS_WIDE * before
    if not still.any():  # which spares a look at all hypotheses
        return {}
    columns = [nbest.feature_names.index(name) for name in draws.features]
    often = _varying(nbest, columns) >= _OFTEN
    matter = spread_within(nbest)[columns] * before
    still &= matter < _NO_MATTER
    if still[often].all():
        return {}
    return {draws.features[k]: float(matter[k]) for k in np.flatnonzero(still & often)}


def warn_unmoved(draws: Draws, nbest: NBest) -> None:
    """Say in one line which weights the data could not move, and what to do about it."""
    found = unmoved(draws, nbest)
    if found:
        small = ", ".join(f"{name} ({matter:.1g})" for name, matter in found.items())
        warn_user(
            f"the data could not move the weight of {small}: that little is its spread within the "
            "lists times the standard deviation of its prior; multiply the feature by a number, "
            "or give it a larger prior variance"
        )


def _varying(nbest: NBest, columns: list[int]) -> Float64:
    """Return in which share of the lists each of some features varies."""
    table = nbest.features[:, columns]
    starts = nbest.offsets[:-1]
    differs = np.maximum.reduceat(table, starts) > np.minimum.reduceat(table, starts)
    return np.asarray(differs.mean(axis=0), np.float64)


def _prior_deviation(draws: Draws) -> Float64 | None:
    """Return the standard deviation of the prior of each free weight, where it is Gaussian."""
    if "prior_variance" in draws.constants:
        return np.sqrt(np.asarray(draws.constants["prior_variance"], np.float64))
    if "prior_covariance" in draws.constants:
        return np.sqrt(np.diag(np.asarray(draws.constants["prior_covariance"], np.float64)))
    return None
