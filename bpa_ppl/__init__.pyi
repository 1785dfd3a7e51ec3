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
    tuning as tuning,
)
from .decoding import (
    Reranked as Reranked,
    Reranker as Reranker,
    next_sentences as next_sentences,
    rerank as rerank,
)
from .diagnostics import (
    Report as Report,
    check as check,
    compare_baselines as compare_baselines,
)
from .errors import (
    BpaError as BpaError,
    BpaWarning as BpaWarning,
    DataError as DataError,
    NotConverged as NotConverged,
    UsageError as UsageError,
)
from .features import (
    add_features as add_features,
)
from .formats import (
    iter_nbest as iter_nbest,
    read_nbest as read_nbest,
    read_references as read_references,
    read_weights as read_weights,
    write_nbest as write_nbest,
    write_weights as write_weights,
)
from .models import (
    Prior as Prior,
)
from .nbest import (
    NBest as NBest,
)
from .posterior import (
    Draws as Draws,
    as_draws as as_draws,
    point_weights as point_weights,
    read_posterior as read_posterior,
    write_posterior as write_posterior,
)
from .quality import (
    Oracles as Oracles,
    corpus_score as corpus_score,
    gains as gains,
    oracles as oracles,
)
from .sampling import (
    adapt as adapt,
    describe as describe,
    learn_prior as learn_prior,
    log_density as log_density,
    update as update,
)
from .tuning import (
    Reestimation as Reestimation,
    reestimate as reestimate,
)
from .weights import (
    Weights as Weights,
)

__version__: str
