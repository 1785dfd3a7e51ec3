"""Public names; `__init__.py` imports each from its module on first use."""

from .base import (
    NBEST_FORMATS as NBEST_FORMATS,
    WEIGHT_FORMATS as WEIGHT_FORMATS,
    NBestFormat as NBestFormat,
    WeightFormat as WeightFormat,
)
from .streams import (
    atomic_writer as atomic_writer,
)
