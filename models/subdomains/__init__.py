"""Latent subdomains of a parallel corpus.

After H. Cuong, K. Sima'an and I. Titov, "Adapting to all domains at once: rewarding domain
invariance in SMT", TACL 4, 2016.
"""

from bpa_ppl.models.subdomains.expectation_maximisation import Settings
from bpa_ppl.models.subdomains.inducing import INDUCTIONS, configured, induce
from bpa_ppl.models.subdomains.topics import LDASettings

__all__ = ["INDUCTIONS", "LDASettings", "Settings", "configured", "induce"]
