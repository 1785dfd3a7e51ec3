"""Priors of many features of which few matter: horseshoe, and spike and slab."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpyro.distributions as dist

from bpa_ppl.component import Positive, Share
from bpa_ppl.models.priors.base import Prior, PriorFamily
from bpa_ppl.models.priors.isotropic import Isotropic
from bpa_ppl.weights import Match

if TYPE_CHECKING:
    from bpa_ppl.models.sparse import SparseLogLinear


#: τ of those that matter: wide, since the prior itself makes most of the others small.
_SCALE = 6 * math.sqrt(0.1)


def is_sparse(match: Match) -> tuple[bool, ...]:
    """Say of each free feature whether its weight is sparse: those without a canonical weight.

    Where all have one, the shifts of all of them are sparse.

    >>> is_sparse(Match(("LM0", "talks"), np.zeros(2), np.ones(2, bool), np.array([np.nan, 1.0])))
    (False, True)
    """
    without = match.free_spread
    return tuple(name in without or not without for name in match.free_names)


class Horseshoe(PriorFamily, frozen=True):
    """The regularised horseshoe for features without a canonical weight: see `SparseLogLinear`.

    The others have the isotropic prior, which also gives each feature its unit. Weights are then a
    function of several sites, so that the sampler is `nuts`, or `auto`, which takes it.

    Args:
        relevant: how many of the sparse features are expected to matter; τ is then about
            relevant / (features − relevant).
        variance: σ_T of the isotropic prior.

    >>> match = Match(("LM0", "talks"), np.zeros(2), np.ones(2, bool), np.array([np.nan, 1.0]))
    >>> family = Horseshoe(relevant=0.5)
    >>> family.build(match).variance.round(3).tolist(), family.model(match).sparse
    ([0.1, 3.6], (False, True))
    """

    relevant: Positive = 5.0
    variance: Positive = 0.1

    def build(self, match: Match) -> Prior:
        """Return the Gaussian whose mean and standard deviations are the units of the model."""
        return _units(self.variance, match)

    def model(self, match: Match) -> SparseLogLinear:
        """Return the NumPyro program of these features."""
        from bpa_ppl.models.sparse import SparseLogLinear

        sparse = is_sparse(match)
        scale = self.relevant / max(sum(sparse) - self.relevant, 1.0)
        return SparseLogLinear(sparse, scale)


class SpikeSlab(PriorFamily, frozen=True):
    """λ ~ share · N(m, s²) + (1 − share) · N(m, (spike s)²) for features without canonical weight.

    A finite normal mixture (George & McCulloch 1993) whose indicators are summed out. The others
    have the isotropic prior N(m, s²), which also gives each feature its unit.

    Args:
        share: of the sparse features that are expected to matter.
        spike: how wide the weights of the others are, as a share of s.
        variance: σ_T of the isotropic prior.

    >>> match = Match(("LM0", "talks"), np.zeros(2), np.ones(2, bool), np.array([np.nan, 6.0]))
    >>> prior = SpikeSlab().build(match).distribution()
    >>> bool(prior.log_prob(np.array([0.1, 0.0])) > prior.log_prob(np.array([0.0, 0.1])))
    True
    """

    share: Share = 0.05
    spike: Share = 0.05
    variance: Positive = 0.1

    def build(self, match: Match) -> Prior:
        """Return the mixture over the free features."""
        units = _units(self.variance, match)
        narrow = np.where(is_sparse(match), self.spike, 1.0)
        spread = np.sqrt(units.variance)
        shares = np.broadcast_to([self.share, 1 - self.share], (len(spread), 2))
        each = dist.MixtureSameFamily(
            dist.Categorical(probs=shares),
            dist.Normal(
                np.stack([units.mean] * 2, axis=1), np.stack([spread, narrow * spread], axis=1)
            ),
        )
        return Prior.named(match.free_names, each.to_event(1))


def _units(variance: float, match: Match) -> Prior:
    family = Isotropic(variance=variance, scale=_SCALE)
    return family.build(match)._replace(names=match.free_names)
