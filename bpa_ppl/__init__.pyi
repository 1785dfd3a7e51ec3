"""The public names, each imported from its module when it is first used (`_runtime.lazy`)."""

from bpa_ppl.adapting.adapt import adapt as adapt, log_density as log_density
from bpa_ppl.evaluation.describe import describe as describe
from bpa_ppl.adapting.to_posterior import to_posterior as to_posterior
from bpa_ppl.sampling.sample import sample as sample
from bpa_ppl.adapting.settings import recorded_options as recorded_options
from bpa_ppl.decoding.choices import Choices as Choices
from bpa_ppl.decoding.point import point_weights as point_weights
from bpa_ppl.decoding.reranker import Reranker as Reranker, rerank as rerank
from bpa_ppl.diagnostics.check.check import check as check
from bpa_ppl.diagnostics.check.report import Report as Report
from bpa_ppl.diagnostics.pages.traces import plot_trace as plot_trace
from bpa_ppl.diagnostics.samplers.calibration import calibrate as calibrate
from bpa_ppl.diagnostics.samplers.comparison import compare as compare
from bpa_ppl.diagnostics.samplers.running import compare_samplers as compare_samplers
from bpa_ppl.evaluation.compare_ways import compare_baselines as compare_baselines
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
from bpa_ppl.formats.in_memory import (
    concatenate as concatenate,
    from_arrays as from_arrays,
    from_lists as from_lists,
    from_records as from_records,
    from_samples as from_samples,
    to_arrow as to_arrow,
)
from bpa_ppl.lists.nbest import NBest as NBest
from bpa_ppl.models.likelihoods.choice import OracleChoice as OracleChoice
from bpa_ppl.models.priors.isotropic import Isotropic as Isotropic
from bpa_ppl.models.priors.learned import learn_prior as learn_prior
from bpa_ppl.models.priors.prior import Prior as Prior
from bpa_ppl.posterior.arviz_data import as_draws as as_draws
from bpa_ppl.posterior.draws import Draws as Draws
from bpa_ppl.posterior.files import write_posterior as write_posterior
from bpa_ppl.posterior.opening import read_posterior as read_posterior
from bpa_ppl.sklearn import BayesianRanker as BayesianRanker
from bpa_ppl.weight_draws import WeightDraws as WeightDraws, as_weight_draws as as_weight_draws
from bpa_ppl.weights import Weights as Weights

__version__: str
