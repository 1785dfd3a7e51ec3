"""Public names; `__init__.py` imports each from its module on first use."""

from .adapter import (
    as_draws as as_draws,
    point_weights as point_weights,
)
from .arviz_functions import (
    import_arviz as import_arviz,
)
from .draws import (
    Draws as Draws,
)
from .files import (
    read_draws as read_draws,
    write_posterior as write_posterior,
)
