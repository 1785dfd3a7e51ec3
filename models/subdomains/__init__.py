"""Latent subdomains of a parallel corpus.

After H. Cuong, K. Sima'an and I. Titov, "Adapting to all domains at once: rewarding domain
invariance in SMT", TACL 4, 2016.
"""

import lazy_loader

# The names and their modules are listed in __init__.pyi, and imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
