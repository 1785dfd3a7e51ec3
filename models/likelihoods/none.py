"""No likelihood: the posterior equals the prior."""

from __future__ import annotations

from typing import Any

from bpa_ppl.models.likelihoods.likelihood import Likelihood
from bpa_ppl.models.lists import Lists


class NoLikelihood(Likelihood, frozen=True):
    """p(A | λ) = 1: the lists give the features and their spread, and the posterior is the prior.

    They need neither references nor judgements.

    >>> from bpa_ppl import adapt, as_draws, from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> posterior = adapt(lists, {"LM0": 0.5}, likelihood=NoLikelihood(), sampler="map")
    >>> as_draws(posterior).mean.tolist()
    [0.5]
    """

    def observe(self, lists: Lists, weights: Any) -> None:
        """Observe nothing."""
