"""Feature sources: more features of n-best lists."""

import lazy_loader

# The names and their modules are listed in __init__.pyi: some sources have compiled parts.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
