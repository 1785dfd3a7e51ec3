"""What components, models and samplers of your own are written with (see `_runtime.lazy`)."""

from bpa_ppl._runtime.messages import WarningsHandler as WarningsHandler, warn_user as warn_user
from bpa_ppl.adapting.build import build_target as build_target
from bpa_ppl.adapting.observe import Observed as Observed, observe as observe
from bpa_ppl.adapting.prepare import Prepared as Prepared, prepare as prepare
from bpa_ppl.adapting.prior import choose_prior as choose_prior
from bpa_ppl.adapting.settings import Settings as Settings
from bpa_ppl.decoding.rules import Rule as Rule
from bpa_ppl.adapting.weights_target import WeightsTarget as WeightsTarget
from bpa_ppl.densities.target import Hints as Hints, Sampled as Sampled, Target as Target
from bpa_ppl.diagnostics.check.advice import Advice as Advice
from bpa_ppl.diagnostics.check.diagnostic import Diagnostic as Diagnostic, Run as Run
from bpa_ppl.features.source import FeatureSource as FeatureSource
from bpa_ppl.formats.format import NBestFormat as NBestFormat
from bpa_ppl.gains.gains import gains as gains
from bpa_ppl.gains.metric import Metric as Metric
from bpa_ppl.gains.oracles import Oracles as Oracles, oracles as oracles
from bpa_ppl.models.likelihoods.likelihood import (
    Likelihood as Likelihood,
    NoLikelihood as NoLikelihood,
)
from bpa_ppl.models.likelihoods.lists import Lists as Lists, tabulate as tabulate
from bpa_ppl.models.log_linear import log_linear as log_linear
from bpa_ppl.models.priors.prior import PriorFamily as PriorFamily
from bpa_ppl.samplers.sampler import Sampler as Sampler
from bpa_ppl.weights import Match as Match, StartingWeights as StartingWeights, match as match
