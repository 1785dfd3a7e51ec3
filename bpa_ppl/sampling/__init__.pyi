"""Public names; `__init__.py` imports each from its module on first use."""

from .adapting import (
    adapt as adapt,
    adapt_draws as adapt_draws,
    draws_of as draws_of,
    target_of as target_of,
)
from .base import (
    Data as Data,
    Program as Program,
    Sampled as Sampled,
    Sampler as Sampler,
    Target as Target,
)
from .density import (
    evaluate as evaluate,
)
from .description import (
    describe as describe,
)
from .flat_density import (
    LogDensity as LogDensity,
    log_density as log_density,
)
from .learning import (
    learn_prior as learn_prior,
    learn_prior_jointly as learn_prior_jointly,
)
from .updating import (
    Sequential as Sequential,
    update as update,
)
