"""The scale of the prior of features without a canonical weight, learned by empirical Bayes.

A wide prior suits 500-best lists of a decoder; a narrow one suits ten candidates of neural systems
that differ little. The scale τ (see `Isotropic`) maximises the marginal likelihood

    log p(A | τ) + log p(τ),   log τ ~ N(log τ₀, ½²),   τ₀² = 1 / (2 K) for K such features

(and another prior of τ for answers, see `ScalePrior`), with Laplace's approximation of p(A | τ)
(MacKay 1992). The likelihood in it is

* that of the answers, if preferences are observed;
* `pairs`, where candidates have gains. How much worse the others are shows in the order of all
  candidates; the evidence of the best ones alone is blind to it, and with indicators of systems
  finds τ of several times the best value;
* `margin`, if that is the likelihood and there are canonical weights. It calls for larger weights,
  which suit the features that text of the domain adds to 500-best lists (0.1 to 0.4 TER);
* `oracle`, if gains are unknown or the likelihood does not use them.

One number, chosen before sampling, keeps the posterior log-concave. A site for τ would give it the
shape of a funnel, which fast samplers cannot follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.models import Prior
from bpa_ppl.models.priors.isotropic import OF_LISTS, ScalePrior
from bpa_ppl.nbest import NBest
from bpa_ppl.sampling.density import unflatten
from bpa_ppl.sampling.mode import mode_of
from bpa_ppl.sampling.target import Target
from bpa_ppl.weights import Match

#: The first scales to try, as multiples of the median; the neighbours of the best bound the search.
_GRID = np.geomspace(1 / 30, 100, 9)
_TOLERANCE = 0.02  # of log τ
#: Bounds of the standard deviation of a weight, and of the scores that it gives within a list: no
#: sampler reaches the end beyond them, and no list needs them.
_LEAST, _MOST, _LARGEST_EFFECT = 1e-20, 1e20, 1e4


def require_usable_scale(prior: Prior, match: Match, nbest: NBest) -> None:
    """Refuse a Gaussian prior that is far too wide or too narrow for the values of a feature.

    Raises:
        DataError: naming the feature.
    """
    if prior.other is not None:
        return
    deviation = np.sqrt(np.diag(prior.full_covariance))
    spread = nbest.spread[match.free]
    for name, sd, within in zip(match.free_names, deviation, spread, strict=True):
        if not (_LEAST <= sd <= _MOST and within * sd <= _LARGEST_EFFECT):
            raise DataError(
                f"the prior of {name} has the standard deviation {sd:.3g}, and its values vary by "
                f"{within:.3g} within lists: multiply the feature by a number so that they vary by "
                "about 1, or give another prior variance",
                nbest.origin,
                parameter="prior_variance",
                code="bad-number",
            )


def learn_scale(
    target_of: Callable[[Prior], Target],
    prior_of: Callable[[float], Prior],
    features: int,
    scale_prior: ScalePrior = OF_LISTS,
) -> float:
    """Return the scale τ that maximises the marginal likelihood of the adaptation sentences.

    Args:
        target_of: returns the posterior with a prior.
        prior_of: returns the prior with a scale.
        features: K, how many features the prior scales.
        scale_prior: of τ.
    """
    from scipy.optimize import minimize_scalar  # slow to import

    expected = scale_prior.median(features)
    with jax.enable_x64(True):
        target = target_of(prior_of(expected))

        def loss(log_scale: float) -> float:
            nonlocal target
            prior = prior_of(float(np.exp(log_scale)))._replace(names=None)
            target = replace(target, prior=prior)
            mode = mode_of(target)
            if not mode.converged:
                return np.inf
            distance = (log_scale - np.log(expected)) / scale_prior.deviation
            # The search for the next mode begins at this one.
            target = replace(target, start=unflatten(mode.position, target.start))
            return float(distance**2 / 2 - mode.log_evidence)

        grid = np.log(expected * _GRID)
        values = [loss(log_scale) for log_scale in grid]
        best = int(np.argmin(values))
        bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        result = minimize_scalar(loss, bounds=bounds, options={"xatol": _TOLERANCE})
    log_scale = result.x if result.fun < values[best] else grid[best]
    return float(f"{np.exp(log_scale):.3g}")
