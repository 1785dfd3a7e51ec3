"""Rules by which one vector of weights decides: the mean, or the mode."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from bpa_ppl.decoding.base import Rule, Voters
from bpa_ppl.decoding.predictive import Predictive
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior import Draws
from bpa_ppl.weights import match


class Mean(Rule, frozen=True):
    """p(e | f, E[λ]): the posterior mean of the weights decides.

    The average of p(e | f, λ) over wide posteriors prefers candidates with unusual features, for
    some draws rank them high by chance; the mean of the scores does not.
    """

    def votes(self, features: Any, base: Any, voters: Voters) -> Any:
        """Return these draws' part of the mean score."""
        share = features.__array_namespace__().exp(voters.log_weight)
        return features @ (share @ voters.weights) + base * share.sum()

    def combined(self, parts: jax.Array) -> jax.Array:
        """Return the sum over groups of draws."""
        return parts.sum(axis=0)


class Map(Predictive, frozen=True):
    """The mode of the posterior decides."""

    def voters(self, draws: Draws, nbest: NBest) -> Voters:
        """Return the one vector.

        Raises:
            DataError: if the posterior does not hold it, or the lists have a feature without a
                weight.
        """
        chosen = match(draws.at_point("mode"), nbest, fixed=())
        return Voters(chosen.values[None], np.zeros(1), np.zeros(1), 1.0)
