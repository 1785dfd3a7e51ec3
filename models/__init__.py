"""Probabilistic models of n-best lists as NumPyro programs, with their priors and likelihoods."""

from typing import TYPE_CHECKING

from bpa_ppl.lazily import lazily
from bpa_ppl.models.log_linear import log_linear  # of the same name as its module

if TYPE_CHECKING:
    from bpa_ppl.models.choice import OracleChoice
    from bpa_ppl.models.hierarchical import Hierarchical
    from bpa_ppl.models.likelihoods import Likelihood, Margin, Oracle, Preference, Risk
    from bpa_ppl.models.lists import Bucket, Lists, in_order, tabulate
    from bpa_ppl.models.preparing import Preparation, preparation
    from bpa_ppl.models.priors import Horseshoe, Isotropic, Prior, PriorFamily, SpikeSlab
    from bpa_ppl.models.probabilities import log_probabilities

# Public name -> module that defines it: reranking with a posterior needs no NumPyro.
_PUBLIC = {
    "Bucket": "lists",
    "Hierarchical": "hierarchical",
    "Horseshoe": "priors",
    "Isotropic": "priors",
    "Likelihood": "likelihoods",
    "Lists": "lists",
    "Margin": "likelihoods",
    "Oracle": "likelihoods",
    "OracleChoice": "choice",
    "Preference": "likelihoods",
    "Preparation": "preparing",
    "Prior": "priors",
    "PriorFamily": "priors",
    "Risk": "likelihoods",
    "SpikeSlab": "priors",
    "in_order": "lists",
    "log_probabilities": "probabilities",
    "preparation": "preparing",
    "tabulate": "lists",
}

__all__ = [
    "Bucket",
    "Hierarchical",
    "Horseshoe",
    "Isotropic",
    "Likelihood",
    "Lists",
    "Margin",
    "Oracle",
    "OracleChoice",
    "Preference",
    "Preparation",
    "Prior",
    "PriorFamily",
    "Risk",
    "SpikeSlab",
    "in_order",
    "log_linear",
    "log_probabilities",
    "preparation",
    "tabulate",
]

if not TYPE_CHECKING:  # a type checker knows all names, and finds those that are misspelt
    __getattr__, __dir__ = lazily(__name__, _PUBLIC)
