"""Public names; `__init__.py` imports each from its module on first use."""

from .app import (
    application as application,
    serve as serve,
)
