"""Public names; `__init__.py` imports each from its module on first use."""

from .adapting import (
    adapt as adapt,
    adapt_draws as adapt_draws,
    draws_of as draws_of,
    log_density as log_density,
    target_of as target_of,
)
from .base import (
    Sampler as Sampler,
)
from .density import (
    evaluate as evaluate,
)
from .description import (
    describe as describe,
)
from .learning import (
    learn_prior as learn_prior,
    learn_prior_jointly as learn_prior_jointly,
)
from .target import (
    Sampled as Sampled,
    Target as Target,
)
from .updating import (
    Sequential as Sequential,
    update as update,
)
