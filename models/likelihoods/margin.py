"""Softmax-margin: hypotheses must be less probable than the oracle by what they are worse."""

from __future__ import annotations

import numpy as np

from bpa_ppl.component import NotNegative
from bpa_ppl.errors import UsageError
from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.lists import Lists


class Margin(Likelihood, frozen=True):
    """log p_a = λ·h(e*) − log Σ_e exp(λ·h(e) + γ (gain(e*) − gain(e))) (Gimpel & Smith 2010).

    Log-concave in λ, and as fast as the published likelihood, since the margin is a constant of
    each row. With γ = 0 it is the published likelihood.

    Args:
        gamma: γ, for a unit of the gain: of TER an edit.
    """

    needs_gains = True
    gamma: NotNegative = 2.0

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Add γ (gain(e*) − gain(e)) to the score of each row.

        Raises:
            UsageError: if the lists were laid out without gains.
        """
        buckets = []
        for bucket in lists.buckets:
            if bucket.gain is None:
                raise UsageError("the likelihood margin needs gains: give them to tabulate")
            worse = bucket.gain[..., :1].astype(np.float64) - bucket.gain
            used = bucket.hypothesis >= 0
            base = np.where(used, bucket.base + self.gamma * worse, bucket.base)
            buckets.append(bucket._replace(base=base.astype(np.float32)))
        return lists._replace(buckets=tuple(buckets)), Oracle()
