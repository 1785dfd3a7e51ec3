"""Priors over weights: built from canonical weights, files, posteriors or NumPyro distributions."""

import lazy_loader

# The names and their modules are listed in __init__.pyi, and imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
