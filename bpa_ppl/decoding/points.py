"""Rules by which one vector of weights decides: the mode, or the mean."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from bpa_ppl.decoding.base import Voters
from bpa_ppl.decoding.predictive import Predictive
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior import Draws
from bpa_ppl.weights import match


class Mean(Predictive, frozen=True):
    """The posterior mean of the weights decides."""

    point: ClassVar[str] = "mean"

    def voters(self, draws: Draws, nbest: NBest) -> Voters:
        """Return the one vector.

        Raises:
            DataError: if the posterior does not hold it, or the lists have a feature without a
                weight.
        """
        chosen = match(draws.at_point(self.point), nbest, fixed=())
        return Voters(chosen.values[None], np.zeros(1), np.zeros(1), 1.0)


class Map(Mean, frozen=True):
    """The mode of the posterior decides."""

    point: ClassVar[str] = "mode"
