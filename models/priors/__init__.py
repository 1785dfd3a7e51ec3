"""Priors over weights: built from canonical weights, files, posteriors or NumPyro distributions."""

from bpa_ppl.models.priors.base import PRIORS, Prior, PriorFamily
from bpa_ppl.models.priors.isotropic import Isotropic
from bpa_ppl.models.priors.sparse import Horseshoe

__all__ = ["PRIORS", "Horseshoe", "Isotropic", "Prior", "PriorFamily"]
