"""Likelihoods of the adaptation sentences, chosen by name."""

from bpa_ppl.models.likelihoods.base import LIKELIHOODS, Likelihood
from bpa_ppl.models.likelihoods.margin import Margin
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.likelihoods.pairs import Pairs
from bpa_ppl.models.likelihoods.preference import Preference
from bpa_ppl.models.likelihoods.risk import Risk

__all__ = ["LIKELIHOODS", "Likelihood", "Margin", "Oracle", "Pairs", "Preference", "Risk"]
