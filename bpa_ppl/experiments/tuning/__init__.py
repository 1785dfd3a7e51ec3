"""Re-estimate weights: MERT, batch MIRA and PRO."""

import lazy_loader

# The names and their modules are listed in __init__.pyi, and imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
