"""What compares and studies, a satellite: learning curves, sweeps, samplers on known targets."""

import lazy_loader

# The names and their modules are listed in __init__.pyi: `bpa --help` does not load them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
