"""Public names; `__init__.py` imports each from its module on first use."""

from .choice import (
    OracleChoice as OracleChoice,
)
from .likelihoods import (
    LIKELIHOODS as LIKELIHOODS,
    Likelihood as Likelihood,
    Margin as Margin,
    Oracle as Oracle,
    Pairs as Pairs,
    Preference as Preference,
    Risk as Risk,
)
from .lists import (
    Lists as Lists,
    tabulate as tabulate,
)
from .log_linear import (
    log_linear as log_linear,
)
from .priors import (
    Horseshoe as Horseshoe,
    Isotropic as Isotropic,
    PRIORS as PRIORS,
    Prior as Prior,
    PriorFamily as PriorFamily,
)
