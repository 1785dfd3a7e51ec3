"""Checks of posteriors and of samplers, predictive checks, and pages to read them on."""

import lazy_loader

# The names and their modules are listed in __init__.pyi: a check does not load the pages.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
