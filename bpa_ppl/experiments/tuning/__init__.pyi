"""Public names; `__init__.py` imports each from its module on first use."""

from .base import (
    TUNERS as TUNERS,
    Tuned as Tuned,
    Tuner as Tuner,
)
