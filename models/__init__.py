"""Probabilistic models of n-best lists, as NumPyro programs, and the parts they are made of."""

import lazy_loader

from bpa_ppl.models.log_linear import log_linear as log_linear  # has the name of its module

# The names and their modules are listed in __init__.pyi: reranking does not load NumPyro.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
