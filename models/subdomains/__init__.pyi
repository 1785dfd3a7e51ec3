"""Public names; `__init__.py` imports each from its module on first use."""

from .expectation_maximisation import (
    Settings as Settings,
)
from .inducing import (
    configured as configured,
    induce as induce,
)
from .topics import (
    LDASettings as LDASettings,
)
