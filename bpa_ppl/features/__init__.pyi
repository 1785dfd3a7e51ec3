"""Public names; `__init__.py` imports each from its module on first use."""

from .base import (
    FEATURES as FEATURES,
    FeatureSource as FeatureSource,
)
from .consensus import (
    Consensus as Consensus,
)
from .length import (
    Length as Length,
)
from .lm import (
    LanguageModel as LanguageModel,
)
from .recipe import (
    Recipe as Recipe,
)
