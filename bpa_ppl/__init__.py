"""Bayesian predictive adaptation of the log-linear weights of an n-best reranker."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from bpa_ppl._runtime.lazy import import_name

__version__ = "1.0.0"

if find_spec("bpa_ppl.models") is None:  # in a clone they lie beside this folder
    raise ImportError(
        "Python found the source folder of bpa_ppl, which is only a part of it: run "
        "`pip install --editable .` in the clone, or start Python in another folder"
    )

#: The public names by the module that has them, which is imported when one of them is first used:
#: `import bpa_ppl` loads neither JAX nor ArviZ.
_MODULES = {
    "bpa_ppl.adapting.adapt": (
        "adapt",
        "log_density",
    ),
    "bpa_ppl.adapting.sample": ("sample",),
    "bpa_ppl.lists.building": (
        "concatenate",
        "from_arrays",
        "from_lists",
        "from_records",
        "from_samples",
        "to_arrow",
    ),
    "bpa_ppl.decoding.choices": ("Choices",),
    "bpa_ppl.decoding.point": ("point_weights",),
    "bpa_ppl.decoding.reranker": (
        "Reranker",
        "rerank",
    ),
    "bpa_ppl.adapting.describe": ("describe",),
    "bpa_ppl.diagnostics.ways.baselines": ("compare_baselines",),
    "bpa_ppl.diagnostics.check.check": (
        "Report",
        "check",
    ),
    "bpa_ppl.diagnostics.samplers.comparison": ("compare",),
    "bpa_ppl.diagnostics.samplers.samplers": (
        "calibrate",
        "compare_samplers",
    ),
    "bpa_ppl.adapting.draw": ("to_posterior",),
    "bpa_ppl.diagnostics.pages.traces": ("plot_trace",),
    "bpa_ppl.errors": (
        "BpaError",
        "BpaWarning",
        "DataError",
        "NotConverged",
        "UsageError",
    ),
    "bpa_ppl.features.source": ("add_features",),
    "bpa_ppl.formats.reading": (
        "iter_nbest",
        "read_nbest",
    ),
    "bpa_ppl.formats.weight_files": (
        "read_weights",
        "write_weights",
    ),
    "bpa_ppl.formats.writing": ("write_nbest",),
    "bpa_ppl.gains.gains": ("corpus_score",),
    "bpa_ppl.models.choice": ("OracleChoice",),
    "bpa_ppl.models.priors.isotropic": ("Isotropic",),
    "bpa_ppl.models.priors.learned": ("learn_prior",),
    "bpa_ppl.models.priors.prior": ("Prior",),
    "bpa_ppl.lists.nbest": ("NBest",),
    "bpa_ppl.posterior.adapter": ("as_draws",),
    "bpa_ppl.posterior.draws": ("Draws",),
    "bpa_ppl.posterior.files": (
        "read_posterior",
        "write_posterior",
    ),
    "bpa_ppl.adapting.settings": ("recorded_options",),
    "bpa_ppl.sklearn": ("BayesianRanker",),
    "bpa_ppl.weights": ("Weights",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from bpa_ppl.adapting.adapt import adapt as adapt, log_density as log_density
    from bpa_ppl.adapting.sample import sample as sample
    from bpa_ppl.lists.building import (
        concatenate as concatenate,
        from_arrays as from_arrays,
        from_lists as from_lists,
        from_records as from_records,
        from_samples as from_samples,
        to_arrow as to_arrow,
    )
    from bpa_ppl.decoding.choices import Choices as Choices
    from bpa_ppl.decoding.point import point_weights as point_weights
    from bpa_ppl.decoding.reranker import Reranker as Reranker, rerank as rerank
    from bpa_ppl.adapting.describe import describe as describe
    from bpa_ppl.diagnostics.ways.baselines import compare_baselines as compare_baselines
    from bpa_ppl.diagnostics.check.check import Report as Report, check as check
    from bpa_ppl.diagnostics.samplers.comparison import compare as compare
    from bpa_ppl.diagnostics.samplers.samplers import calibrate as calibrate
    from bpa_ppl.diagnostics.samplers.samplers import compare_samplers as compare_samplers
    from bpa_ppl.adapting.draw import to_posterior as to_posterior
    from bpa_ppl.diagnostics.pages.traces import plot_trace as plot_trace
    from bpa_ppl.errors import (
        BpaError as BpaError,
        BpaWarning as BpaWarning,
        DataError as DataError,
        NotConverged as NotConverged,
        UsageError as UsageError,
    )
    from bpa_ppl.features.source import add_features as add_features
    from bpa_ppl.formats.reading import iter_nbest as iter_nbest, read_nbest as read_nbest
    from bpa_ppl.formats.weight_files import (
        read_weights as read_weights,
        write_weights as write_weights,
    )
    from bpa_ppl.formats.writing import write_nbest as write_nbest
    from bpa_ppl.gains.gains import corpus_score as corpus_score
    from bpa_ppl.models.choice import OracleChoice as OracleChoice
    from bpa_ppl.models.priors.isotropic import Isotropic as Isotropic
    from bpa_ppl.models.priors.learned import learn_prior as learn_prior
    from bpa_ppl.models.priors.prior import Prior as Prior
    from bpa_ppl.lists.nbest import NBest as NBest
    from bpa_ppl.posterior.adapter import as_draws as as_draws
    from bpa_ppl.posterior.draws import Draws as Draws
    from bpa_ppl.posterior.files import (
        read_posterior as read_posterior,
        write_posterior as write_posterior,
    )
    from bpa_ppl.adapting.settings import recorded_options as recorded_options
    from bpa_ppl.sklearn import BayesianRanker as BayesianRanker
    from bpa_ppl.weights import Weights as Weights
else:
    __all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    value = globals()[name] = import_name(name, __name__, _MODULE_OF)
    return value


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
