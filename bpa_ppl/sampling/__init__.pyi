"""Public names; `__init__.py` imports each from its module on first use."""

from .base import (
    SAMPLERS as SAMPLERS,
    Sampler as Sampler,
)
from .density import (
    evaluate as evaluate,
)
from .target import (
    Sampled as Sampled,
    Target as Target,
)
