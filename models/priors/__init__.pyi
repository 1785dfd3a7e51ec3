"""Public names; `__init__.py` imports each from its module on first use."""

from .base import (
    PRIORS as PRIORS,
    Prior as Prior,
    PriorFamily as PriorFamily,
)
from .isotropic import (
    Isotropic as Isotropic,
)
from .sparse import (
    Horseshoe as Horseshoe,
)
