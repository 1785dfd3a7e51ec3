"""Bayesian predictive adaptation of the log-linear weights of an n-best reranker."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

__version__ = "1.0.0"

if find_spec("bpa_ppl.models") is None:  # in a clone they lie beside this folder
    raise ImportError(
        "Python found the source folder of bpa_ppl, which is only a part of it: run "
        "`pip install --editable .` in the clone, or start Python in another folder"
    )

#: The public names by the module that has them, which is imported when one of them is first used:
#: `import bpa_ppl` loads neither JAX nor ArviZ.
_MODULES = {
    "bpa_ppl.adapting": ("adapt", "log_density"),
    "bpa_ppl.building": (
        "concatenate",
        "from_arrays",
        "from_lists",
        "from_records",
        "from_samples",
        "to_arrow",
    ),
    "bpa_ppl.decoding.choices": ("Choices",),
    "bpa_ppl.decoding.point": ("point_weights",),
    "bpa_ppl.decoding.reranker": ("Reranker", "rerank"),
    "bpa_ppl.decoding.rules": ("Mbr", "Rule"),
    "bpa_ppl.describing": ("describe",),
    "bpa_ppl.diagnostics.baselines": ("compare_baselines",),
    "bpa_ppl.diagnostics.check": ("Report", "check"),
    "bpa_ppl.diagnostics.diagnostic": ("Diagnostic",),
    "bpa_ppl.errors": ("BpaError", "BpaWarning", "DataError", "NotConverged", "UsageError"),
    "bpa_ppl.diagnostics.comparison.comparison": ("compare",),
    "bpa_ppl.diagnostics.comparison.samplers": ("compare_samplers",),
    "bpa_ppl.features.source": ("FeatureSource", "add_features"),
    "bpa_ppl.features.consensus": ("Consensus",),
    "bpa_ppl.features.indicators": ("Indicators",),
    "bpa_ppl.features.length": ("Length",),
    "bpa_ppl.features.lm": ("LanguageModel",),
    "bpa_ppl.formats.format": ("NBestFormat",),
    "bpa_ppl.formats.reading": ("iter_nbest", "read_nbest"),
    "bpa_ppl.formats.references": ("read_references",),
    "bpa_ppl.formats.weight_files": ("read_weights", "write_weights"),
    "bpa_ppl.formats.writing": ("write_nbest",),
    "bpa_ppl.extras.judging.juries": ("judges",),
    "bpa_ppl.models.choice": ("OracleChoice",),
    "bpa_ppl.models.likelihoods.likelihood": ("Likelihood", "NoLikelihood"),
    "bpa_ppl.models.likelihoods.oracle": ("Margin", "Oracle", "Risk"),
    "bpa_ppl.models.likelihoods.pairs": ("Pairs",),
    "bpa_ppl.models.likelihoods.preference": ("Preference",),
    "bpa_ppl.models.lists": ("Lists", "tabulate"),
    "bpa_ppl.models.log_linear": ("log_linear",),
    "bpa_ppl.models.priors.prior": ("Prior", "PriorFamily"),
    "bpa_ppl.models.priors.isotropic": ("Isotropic",),
    "bpa_ppl.models.priors.sparse": ("Horseshoe",),
    "bpa_ppl.models.priors.learned": ("learn_prior",),
    "bpa_ppl.nbest": ("NBest",),
    "bpa_ppl._runtime.messages": ("WarningsHandler", "warn_user"),
    "bpa_ppl.posterior.adapter": ("as_draws",),
    "bpa_ppl.posterior.draws": ("Draws",),
    "bpa_ppl.posterior.files": ("read_posterior", "write_posterior"),
    "bpa_ppl.drawing": ("to_posterior",),
    "bpa_ppl.metrics.metric": ("Metric",),
    "bpa_ppl.metrics.bleu": ("BLEU",),
    "bpa_ppl.metrics.chrf": ("CHRF",),
    "bpa_ppl.metrics.oracles": ("Oracles", "oracles"),
    "bpa_ppl.metrics.gains": ("corpus_score", "gains"),
    "bpa_ppl.metrics.ter": ("TER",),
    "bpa_ppl.metrics.wer": ("WER",),
    "bpa_ppl.sampling.auto": ("Auto",),
    "bpa_ppl.sampling.sampler": ("Sampler",),
    "bpa_ppl.sampling.imh": ("IndependenceMetropolis",),
    "bpa_ppl.sampling.kernels": ("NumpyroKernel",),
    "bpa_ppl.sampling.laplace": ("Laplace",),
    "bpa_ppl.sampling.mode": ("PosteriorMode",),
    "bpa_ppl.sampling.nuts": ("Nuts",),
    "bpa_ppl.sampling.settings": ("Settings", "recorded_options"),
    "bpa_ppl.sampling.observations": ("Compared", "Scored"),
    "bpa_ppl.sampling.observing": ("observe",),
    "bpa_ppl.sampling.preparing": ("Prepared", "prepare"),
    "bpa_ppl.sampling.building": ("build_target",),
    "bpa_ppl.sampling.prior_choice": ("choose_prior",),
    "bpa_ppl.sampling.rwm": ("RandomWalkMetropolis",),
    "bpa_ppl.sampling.target": ("Sampled", "Target"),
    "bpa_ppl.sklearn": ("BayesianRanker",),
    "bpa_ppl.weights": ("Match", "StartingWeights", "Weights", "match"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from bpa_ppl.adapting import adapt as adapt, log_density as log_density
    from bpa_ppl.drawing import to_posterior as to_posterior
    from bpa_ppl.building import (
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
    from bpa_ppl.decoding.rules import Mbr as Mbr, Rule as Rule
    from bpa_ppl.describing import describe as describe
    from bpa_ppl.diagnostics.baselines import compare_baselines as compare_baselines
    from bpa_ppl.diagnostics.check import Report as Report, check as check
    from bpa_ppl.diagnostics.diagnostic import Diagnostic as Diagnostic
    from bpa_ppl.errors import (
        BpaError as BpaError,
        BpaWarning as BpaWarning,
        DataError as DataError,
        NotConverged as NotConverged,
        UsageError as UsageError,
    )
    from bpa_ppl.diagnostics.comparison.comparison import compare as compare
    from bpa_ppl.diagnostics.comparison.samplers import compare_samplers as compare_samplers
    from bpa_ppl.features.source import FeatureSource as FeatureSource, add_features as add_features
    from bpa_ppl.features.consensus import Consensus as Consensus
    from bpa_ppl.features.indicators import Indicators as Indicators
    from bpa_ppl.features.length import Length as Length
    from bpa_ppl.features.lm import LanguageModel as LanguageModel
    from bpa_ppl.formats.format import NBestFormat as NBestFormat
    from bpa_ppl.formats.reading import iter_nbest as iter_nbest, read_nbest as read_nbest
    from bpa_ppl.formats.references import read_references as read_references
    from bpa_ppl.formats.weight_files import (
        read_weights as read_weights,
        write_weights as write_weights,
    )
    from bpa_ppl.formats.writing import write_nbest as write_nbest
    from bpa_ppl.extras.judging.juries import judges as judges
    from bpa_ppl.models.choice import OracleChoice as OracleChoice
    from bpa_ppl.models.likelihoods.likelihood import (
        Likelihood as Likelihood,
        NoLikelihood as NoLikelihood,
    )
    from bpa_ppl.models.likelihoods.oracle import Margin as Margin, Oracle as Oracle, Risk as Risk
    from bpa_ppl.models.likelihoods.pairs import Pairs as Pairs
    from bpa_ppl.models.likelihoods.preference import Preference as Preference
    from bpa_ppl.models.lists import Lists as Lists, tabulate as tabulate
    from bpa_ppl.models.log_linear import log_linear as log_linear
    from bpa_ppl.models.priors.prior import Prior as Prior, PriorFamily as PriorFamily
    from bpa_ppl.models.priors.isotropic import Isotropic as Isotropic
    from bpa_ppl.models.priors.sparse import Horseshoe as Horseshoe
    from bpa_ppl.models.priors.learned import learn_prior as learn_prior
    from bpa_ppl.nbest import NBest as NBest
    from bpa_ppl._runtime.messages import WarningsHandler as WarningsHandler, warn_user as warn_user
    from bpa_ppl.posterior.adapter import as_draws as as_draws
    from bpa_ppl.posterior.draws import Draws as Draws
    from bpa_ppl.posterior.files import (
        read_posterior as read_posterior,
        write_posterior as write_posterior,
    )
    from bpa_ppl.metrics.metric import Metric as Metric
    from bpa_ppl.metrics.bleu import BLEU as BLEU
    from bpa_ppl.metrics.chrf import CHRF as CHRF
    from bpa_ppl.metrics.oracles import Oracles as Oracles, oracles as oracles
    from bpa_ppl.metrics.gains import corpus_score as corpus_score, gains as gains
    from bpa_ppl.metrics.ter import TER as TER
    from bpa_ppl.metrics.wer import WER as WER
    from bpa_ppl.sampling.auto import Auto as Auto
    from bpa_ppl.sampling.sampler import Sampler as Sampler
    from bpa_ppl.sampling.imh import IndependenceMetropolis as IndependenceMetropolis
    from bpa_ppl.sampling.kernels import NumpyroKernel as NumpyroKernel
    from bpa_ppl.sampling.laplace import Laplace as Laplace
    from bpa_ppl.sampling.mode import PosteriorMode as PosteriorMode
    from bpa_ppl.sampling.nuts import Nuts as Nuts
    from bpa_ppl.sampling.settings import (
        Settings as Settings,
        recorded_options as recorded_options,
    )
    from bpa_ppl.sampling.observations import Compared as Compared, Scored as Scored
    from bpa_ppl.sampling.observing import observe as observe
    from bpa_ppl.sampling.preparing import Prepared as Prepared, prepare as prepare
    from bpa_ppl.sampling.building import build_target as build_target
    from bpa_ppl.sampling.prior_choice import choose_prior as choose_prior
    from bpa_ppl.sampling.rwm import RandomWalkMetropolis as RandomWalkMetropolis
    from bpa_ppl.sampling.target import Sampled as Sampled, Target as Target
    from bpa_ppl.sklearn import BayesianRanker as BayesianRanker
    from bpa_ppl.weights import (
        Match as Match,
        StartingWeights as StartingWeights,
        Weights as Weights,
        match as match,
    )
else:
    __all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    except ModuleNotFoundError as error:
        from bpa_ppl.errors import describe_missing_package

        problem = describe_missing_package(name, error)
        raise ModuleNotFoundError(problem, name=error.name) from error
    return value


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
