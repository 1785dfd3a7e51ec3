"""The published likelihood: the oracle derivation was chosen from each list."""

from __future__ import annotations

from typing import Any

import numpyro

from bpa_ppl.models.choice import OracleChoice
from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.lists import Lists


class Oracle(Likelihood, frozen=True):
    """p(A | λ) = Π_a p(e*_a | f_a, λ), normalised over each n-best list (Eq. 7); log-concave."""

    generative = True

    def observe(self, lists: Lists, weights: Any) -> None:
        """State that the oracle of each list was chosen; the site is `oracle`, (S,)."""
        numpyro.sample("oracle", OracleChoice(lists, weights), obs=lists.oracle)
