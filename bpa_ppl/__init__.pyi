"""Public names; `__init__.py` imports each from its module on first use."""

from . import (
    decoding as decoding,
    diagnostics as diagnostics,
    experiments as experiments,
    features as features,
    models as models,
    phrases as phrases,
    posterior as posterior,
    quality as quality,
    sampling as sampling,
    sklearn as sklearn,
)
from .decoding import (
    Reranked as Reranked,
    Reranker as Reranker,
    rerank as rerank,
)
from .diagnostics import (
    Report as Report,
    check as check,
)
from .errors import (
    BpaError as BpaError,
    BpaWarning as BpaWarning,
    DataError as DataError,
    NotConverged as NotConverged,
    UsageError as UsageError,
)
from .models import (
    Prior as Prior,
)
from .models.priors.learned import (
    learn_prior as learn_prior,
)
from .nbest import (
    NBest as NBest,
)
from .posterior import (
    Draws as Draws,
    as_draws as as_draws,
    point_weights as point_weights,
    write_posterior as write_posterior,
)
from .quality import (
    Oracles as Oracles,
    corpus_score as corpus_score,
    gains as gains,
    oracles as oracles,
)
from .weights import (
    Weights as Weights,
)
from .describing import (
    describe as describe,
)
from .diagnostics.baselines.comparing import (
    compare_baselines as compare_baselines,
)
from .experiments.comparison.comparison import (
    compare as compare,
)
from .experiments.samplers import (
    compare_samplers as compare_samplers,
)
from .features.base import (
    add_features as add_features,
)
from .formats.nbest_files import (
    iter_nbest as iter_nbest,
    read_nbest as read_nbest,
    write_nbest as write_nbest,
)
from .formats.references import (
    read_references as read_references,
)
from .formats.weight_files import (
    read_weights as read_weights,
    write_weights as write_weights,
)
from .posterior.files import (
    read_posterior as read_posterior,
)
from .sampling.repeating import (
    recorded_options as recorded_options,
)
from .adapting import (
    adapt as adapt,
    log_density as log_density,
)

__version__: str
