"""Probabilistic models of n-best lists, as NumPyro programs, and the parts they are made of."""

from bpa_ppl.models.choice import OracleChoice, log_probabilities
from bpa_ppl.models.hierarchical import Hierarchical
from bpa_ppl.models.likelihoods import Likelihood, Margin, Oracle
from bpa_ppl.models.lists import Bucket, Lists, in_order, tabulate
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.models.preparing import Preparation, preparation
from bpa_ppl.models.priors import Isotropic, Prior, PriorFamily

__all__ = [
    "Bucket",
    "Hierarchical",
    "Isotropic",
    "Likelihood",
    "Lists",
    "Margin",
    "Oracle",
    "OracleChoice",
    "Preparation",
    "Prior",
    "PriorFamily",
    "in_order",
    "log_linear",
    "log_probabilities",
    "preparation",
    "tabulate",
]
