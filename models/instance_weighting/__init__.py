"""Instance weighting: which phrase pairs of a large table help in a new domain.

After G. Foster, C. Goutte and R. Kuhn, "Discriminative instance weighting for domain adaptation in
statistical machine translation", EMNLP 2010.
"""

import lazy_loader

# The names and their modules are listed in __init__.pyi, and imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
