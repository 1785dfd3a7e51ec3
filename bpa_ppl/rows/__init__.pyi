"""Public names; `__init__.py` imports each from its module on first use."""

from .base import (
    Columns as Columns,
    ReadOptions as ReadOptions,
)
