"""Probabilistic models of n-best lists, as NumPyro programs, and the parts they are made of."""

from bpa_ppl.models.choice import OracleChoice, log_probabilities
from bpa_ppl.models.hierarchical import Hierarchical
from bpa_ppl.models.likelihoods import (
    Hope,
    Likelihood,
    Margin,
    Oracle,
    OracleRisk,
    Risk,
    Soft,
    Tied,
)
from bpa_ppl.models.lists import Bucket, Lists, in_order, tabulate
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.models.preparing import Preparation, preparation
from bpa_ppl.models.priors import Horseshoe, Isotropic, Prior, PriorFamily, SpikeSlab

__all__ = [
    "Bucket",
    "Hierarchical",
    "Hope",
    "Horseshoe",
    "Isotropic",
    "Likelihood",
    "Lists",
    "Margin",
    "Oracle",
    "OracleChoice",
    "OracleRisk",
    "Preparation",
    "Prior",
    "PriorFamily",
    "Risk",
    "Soft",
    "SpikeSlab",
    "Tied",
    "in_order",
    "log_linear",
    "log_probabilities",
    "preparation",
    "tabulate",
]
