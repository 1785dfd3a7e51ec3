"""Public names; `__init__.py` imports each from its module on first use."""

from .base import (
    LIKELIHOODS as LIKELIHOODS,
    Likelihood as Likelihood,
)
from .margin import (
    Margin as Margin,
)
from .oracle import (
    Oracle as Oracle,
)
from .pairs import (
    Pairs as Pairs,
)
from .preference import (
    Preference as Preference,
)
from .risk import (
    Risk as Risk,
)
