"""Samplers of the posterior over weights, and the one entry that runs them."""

from bpa_ppl.sampling.adaptation import adapt
from bpa_ppl.sampling.heuristic import perturbed
from bpa_ppl.sampling.registry import SAMPLERS
from bpa_ppl.sampling.rwm import RandomWalk

__all__ = ["SAMPLERS", "RandomWalk", "adapt", "perturbed"]
