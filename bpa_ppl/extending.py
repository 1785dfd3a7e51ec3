"""What components, models and samplers of your own are written with.

Base classes of components, the steps of `bpa_ppl.adapt`, and the models' building blocks.
"""

from typing import TYPE_CHECKING, Any

from bpa_ppl._runtime.lazy import import_name

#: The names by the module that has them, which is imported when one of them is first used.
_MODULES = {
    "bpa_ppl._runtime.messages": (
        "WarningsHandler",
        "warn_user",
    ),
    "bpa_ppl.decoding.rules": ("Rule",),
    "bpa_ppl.diagnostics.check.advice": ("Advice",),
    "bpa_ppl.diagnostics.check.diagnostic": (
        "Diagnostic",
        "Run",
    ),
    "bpa_ppl.features.source": ("FeatureSource",),
    "bpa_ppl.formats.format": ("NBestFormat",),
    "bpa_ppl.gains.gains": ("gains",),
    "bpa_ppl.gains.metric": ("Metric",),
    "bpa_ppl.gains.oracles": (
        "Oracles",
        "oracles",
    ),
    "bpa_ppl.models.likelihoods.likelihood": (
        "Likelihood",
        "NoLikelihood",
    ),
    "bpa_ppl.models.lists": (
        "Lists",
        "tabulate",
    ),
    "bpa_ppl.models.log_linear": ("log_linear",),
    "bpa_ppl.models.priors.prior": ("PriorFamily",),
    "bpa_ppl.adapting.build": ("build_target",),
    "bpa_ppl.adapting.observations": (
        "Compared",
        "Scored",
    ),
    "bpa_ppl.adapting.observe": ("observe",),
    "bpa_ppl.adapting.prepare": (
        "Prepared",
        "prepare",
    ),
    "bpa_ppl.adapting.prior": ("choose_prior",),
    "bpa_ppl.samplers.sampler": ("Sampler",),
    "bpa_ppl.adapting.settings": ("Settings",),
    "bpa_ppl.densities.target": (
        "Sampled",
        "Target",
    ),
    "bpa_ppl.weights": (
        "Match",
        "StartingWeights",
        "match",
    ),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

if TYPE_CHECKING:  # the same names, for type checkers and editors
    from bpa_ppl._runtime.messages import WarningsHandler as WarningsHandler
    from bpa_ppl._runtime.messages import warn_user as warn_user
    from bpa_ppl.adapting.build import build_target as build_target
    from bpa_ppl.adapting.observations import Compared as Compared
    from bpa_ppl.adapting.observations import Scored as Scored
    from bpa_ppl.adapting.observe import observe as observe
    from bpa_ppl.adapting.prepare import Prepared as Prepared
    from bpa_ppl.adapting.prepare import prepare as prepare
    from bpa_ppl.adapting.prior import choose_prior as choose_prior
    from bpa_ppl.adapting.settings import Settings as Settings
    from bpa_ppl.decoding.rules import Rule as Rule
    from bpa_ppl.densities.target import Sampled as Sampled
    from bpa_ppl.densities.target import Target as Target
    from bpa_ppl.diagnostics.check.advice import Advice as Advice
    from bpa_ppl.diagnostics.check.diagnostic import Diagnostic as Diagnostic
    from bpa_ppl.diagnostics.check.diagnostic import Run as Run
    from bpa_ppl.features.source import FeatureSource as FeatureSource
    from bpa_ppl.formats.format import NBestFormat as NBestFormat
    from bpa_ppl.gains.gains import gains as gains
    from bpa_ppl.gains.metric import Metric as Metric
    from bpa_ppl.gains.oracles import Oracles as Oracles
    from bpa_ppl.gains.oracles import oracles as oracles
    from bpa_ppl.models.likelihoods.likelihood import (
        Likelihood as Likelihood,
    )
    from bpa_ppl.models.likelihoods.likelihood import (
        NoLikelihood as NoLikelihood,
    )
    from bpa_ppl.models.lists import Lists as Lists
    from bpa_ppl.models.lists import tabulate as tabulate
    from bpa_ppl.models.log_linear import log_linear as log_linear
    from bpa_ppl.models.priors.prior import PriorFamily as PriorFamily
    from bpa_ppl.samplers.sampler import Sampler as Sampler
    from bpa_ppl.weights import Match as Match
    from bpa_ppl.weights import StartingWeights as StartingWeights
    from bpa_ppl.weights import match as match
else:
    __all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    value = globals()[name] = import_name(name, __name__, _MODULE_OF)
    return value


def __dir__() -> list[str]:
    return sorted(_MODULE_OF)
