"""Samplers of the posterior over weights, and `adapt`, which runs them."""

from bpa_ppl.sampling.adapting import adapt, adapt_draws, draws_of, target_of
from bpa_ppl.sampling.base import Data, Program, Sampled, Sampler, Target
from bpa_ppl.sampling.density import evaluate
from bpa_ppl.sampling.description import describe
from bpa_ppl.sampling.flat_density import LogDensity, log_density
from bpa_ppl.sampling.learning import learn_prior, learn_prior_jointly
from bpa_ppl.sampling.updating import Sequential, update

__all__ = [
    "Data",
    "LogDensity",
    "Program",
    "Sampled",
    "Sampler",
    "Sequential",
    "Target",
    "adapt",
    "adapt_draws",
    "describe",
    "draws_of",
    "evaluate",
    "learn_prior",
    "learn_prior_jointly",
    "log_density",
    "target_of",
    "update",
]
