"""Probabilistic models of the oracles of n-best lists, as NumPyro programs."""

from bpa_ppl.models.choice import OracleChoice
from bpa_ppl.models.data import Adaptation, Bucket, in_order, tabulate
from bpa_ppl.models.log_linear import log_linear

__all__ = ["Adaptation", "Bucket", "OracleChoice", "in_order", "log_linear", "tabulate"]
