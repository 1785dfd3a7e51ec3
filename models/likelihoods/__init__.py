"""Likelihoods by name: what the adaptation sentences say about weights."""

from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.likelihoods.hope import Hope
from bpa_ppl.models.likelihoods.margin import Margin
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.likelihoods.oracle_risk import OracleRisk
from bpa_ppl.models.likelihoods.risk import Risk
from bpa_ppl.models.likelihoods.soft import Soft
from bpa_ppl.models.likelihoods.tied import Tied

__all__ = ["Hope", "Likelihood", "Margin", "Oracle", "OracleRisk", "Risk", "Soft", "Tied"]
