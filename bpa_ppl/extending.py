"""What components, models and samplers of your own are written with.

Base classes of components, the steps of `bpa_ppl.adapt`, and the models' building blocks.
"""

from bpa_ppl._runtime.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
