"""Samplers of the posterior over weights, and `adapt`, which runs them."""

import lazy_loader

# The names and their modules are listed in __init__.pyi: describing lists does not load JAX.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
