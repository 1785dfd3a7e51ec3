"""Samplers of the posterior over weights, and `adapt`, which runs them."""

from bpa_ppl.sampling.adapting import adapt, adapt_draws, draws_of, target_of
from bpa_ppl.sampling.base import Data, Model, Program, Sampled, Sampler, Target
from bpa_ppl.sampling.density import evaluate
from bpa_ppl.sampling.description import ColumnSummary, Description, Plan, describe
from bpa_ppl.sampling.flat_density import LogDensity, log_density
from bpa_ppl.sampling.heuristic import perturbed
from bpa_ppl.sampling.learning import learn_hierarchy, learn_prior, learn_prior_jointly
from bpa_ppl.sampling.rwm import RandomWalk
from bpa_ppl.sampling.updating import Sequential, Step, update

__all__ = [
    "ColumnSummary",
    "Data",
    "Description",
    "LogDensity",
    "Model",
    "Plan",
    "Program",
    "RandomWalk",
    "Sampled",
    "Sampler",
    "Sequential",
    "Step",
    "Target",
    "adapt",
    "adapt_draws",
    "describe",
    "draws_of",
    "evaluate",
    "learn_hierarchy",
    "learn_prior",
    "learn_prior_jointly",
    "log_density",
    "perturbed",
    "target_of",
    "update",
]
