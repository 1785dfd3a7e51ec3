"""The published likelihood: the oracle derivation was chosen from each list."""

from __future__ import annotations

from typing import Any

from bpa_ppl.metrics.column import is_choice_of_two
from bpa_ppl.metrics.metric import Metric
from bpa_ppl.models.likelihoods.likelihood import OfOracles
from bpa_ppl.models.lists import Lists
from bpa_ppl.nbest import NBest


class Oracle(OfOracles, frozen=True):
    """p(A | λ) = Π_a p(e*_a | f_a, λ), normalised over each n-best list (Eq. 7); log-concave.

    If k candidates of a list share the best gain and the tie is not broken, each counts 1/k:
    log p_a = (1/k) Σ log p(e* | f_a, λ). With a flat prior the mode is the estimate of a
    conditional logit (McFadden 1974).

    Args:
        ties: how ties between the best candidates are broken, `canonical` or `shared`; see
            `bpa_ppl.models.likelihoods.likelihood.OfOracles`.

    >>> import numpy as np
    >>> import numpyro
    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.models.lists import tabulate
    >>> from bpa_ppl.weights import match
    >>> nbest = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> lists = tabulate(nbest, match({"LM0": 1.0}, nbest), [1])
    >>> site = numpyro.handlers.trace(Oracle().observe).get_trace(lists, np.ones(1))["oracle"]
    >>> np.exp(site["fn"].log_prob(site["value"])).round(3).tolist()  # e / (1 + e)
    [0.731]
    """

    generative = True

    def observes_answers(self, gain: Metric | None, nbest: NBest) -> bool:
        """Return whether the gain says which of two candidates a judge chose."""
        return gain is not None and is_choice_of_two(gain, nbest)

    def observe(self, lists: Lists, weights: Any) -> None:
        """Observe the oracle of each list; the site is `oracle`, (S,)."""
        import numpyro

        from bpa_ppl.models.choice import OracleChoice

        numpyro.sample("oracle", OracleChoice(lists, weights), obs=lists.oracle)
