"""Public names; `__init__.py` imports each from its module on first use."""

from .adapting import (
    adapt as adapt,
    adapt_draws as adapt_draws,
    draws_of as draws_of,
    target_of as target_of,
)
from .base import (
    Data as Data,
    Model as Model,
    Program as Program,
    Sampled as Sampled,
    Sampler as Sampler,
    Target as Target,
)
from .density import (
    evaluate as evaluate,
)
from .description import (
    ColumnSummary as ColumnSummary,
    Description as Description,
    Plan as Plan,
    describe as describe,
)
from .flat_density import (
    LogDensity as LogDensity,
    log_density as log_density,
)
from .heuristic import (
    perturbed as perturbed,
)
from .learning import (
    learn_hierarchy as learn_hierarchy,
    learn_prior as learn_prior,
    learn_prior_jointly as learn_prior_jointly,
)
from .rwm import (
    RandomWalk as RandomWalk,
)
from .updating import (
    Sequential as Sequential,
    Step as Step,
    update as update,
)
