"""Bayesian predictive adaptation of the log-linear weights of an n-best reranker."""

from importlib.metadata import version

import lazy_loader

# The names and their modules are listed in __init__.pyi, and imported on first use (SPEC 1):
# `import bpa_ppl` and `bpa --help` load neither JAX nor ArviZ.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__version__ = version("bpa_ppl")
