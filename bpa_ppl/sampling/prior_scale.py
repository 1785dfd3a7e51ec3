"""The scale of the prior of features without a canonical weight, learned by empirical Bayes.

A wide prior suits 500-best lists of a decoder; a narrow one suits ten candidates of neural systems
that differ little. The scale τ (see `Isotropic`) maximises the marginal likelihood

    log p(A | τ) + log p(τ),   log τ ~ N(log τ₀, ½²),   τ₀² = 1 / (2 K) for K such features

(1 in place of ½ for data sets of pairs of which one is chosen), with Laplace's approximation of
p(A | τ) (MacKay 1992). The likelihood in it is

* that of the answers, if preferences in lists of two are observed; in longer lists the posterior
  integrates over τ instead, see `bpa_ppl.models.priors.isotropic.with_shared_scale`;
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

from bpa_ppl.models.priors.base import Prior
from bpa_ppl.models.priors.isotropic import expected_scale
from bpa_ppl.sampling.density import unflatten
from bpa_ppl.sampling.mode import mode_of
from bpa_ppl.sampling.target import Target

#: The standard deviation of log τ. 0.5 and 1 do the same on held-out judged lists, on average over
#: five data sets; 0.5 keeps τ away from 0 where features say little.
OF_LISTS = 0.5
#: Of data sets of pairs of which one is chosen. Twice as much, so that easy and hard pairs have
#: calibrated probabilities: docs/results/confidence.md.
OF_PAIRS = 1.0
#: The first scales to try, as multiples of the median; the neighbours of the best bound the search.
_GRID = np.geomspace(1 / 30, 100, 9)
_TOLERANCE = 0.02  # of log τ


def learn_scale(
    target_of: Callable[[Prior], Target],
    prior_of: Callable[[float], Prior],
    features: int,
    deviation: float = OF_LISTS,
) -> float:
    """Return the scale τ that maximises the marginal likelihood of the adaptation sentences.

    Args:
        target_of: returns the posterior with a prior.
        prior_of: returns the prior with a scale.
        features: K, how many features the prior scales.
        deviation: the standard deviation of log τ.
    """
    from scipy.optimize import minimize_scalar  # slow to import

    expected = expected_scale(features)
    with jax.enable_x64(True):
        target = target_of(prior_of(expected))

        def loss(log_scale: float) -> float:
            nonlocal target
            prior = prior_of(float(np.exp(log_scale)))._replace(names=None, posterior=None)
            target = replace(target, prior=prior)
            mode = mode_of(target)
            if not mode.converged:
                return np.inf
            distance = (log_scale - np.log(expected)) / deviation
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
