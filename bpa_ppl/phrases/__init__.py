"""Phrase pairs, a satellite: extraction, tables of counts, mixtures, and latent subdomains.

Nothing else in the package imports it; its commands and feature sources are entry points.
"""

import lazy_loader

# The names and their modules are listed in __init__.pyi: `bpa --help` does not load them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
