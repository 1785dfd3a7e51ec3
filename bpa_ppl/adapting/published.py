"""The samplers of the papers: a set of weights, which the data weight, and a random walk.

The heuristic sample depends on λ_T only. The random walk is isotropic and starts at the canonical
weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Self

import jax
import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import log_info
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.adapting.weights_target import require_lists
from bpa_ppl.components import Count, CountOrNone, Positive
from bpa_ppl.densities.mode import repeat_start
from bpa_ppl.densities.target import Sampled, Sites, Target, evaluate, with_evaluations
from bpa_ppl.errors import UsageError
from bpa_ppl.posterior.draws import total
from bpa_ppl.posterior.record import Figures
from bpa_ppl.posterior.weight_draws import WEIGHTS
from bpa_ppl.samplers.chains import Chains, ChainSampler, run_chains
from bpa_ppl.samplers.rwm import random_walk
from bpa_ppl.samplers.sampler import Sampler

_ROUNDED = 0.01  # difference of Σ|λ| from 1 that rounding explains
#: Of δ from 1 to 64, about this share of the lists is the best for 10, 100 and 500 lists of three
#: domains: docs/results/published-study.txt.
_LISTS_PER_DELTA = 12


class PublishedSampler(Sampler, frozen=True):
    """A sampler of the weights of lists that was published with a likelihood.

    Attributes:
        likelihood: its name, which is the default with this sampler.

    >>> Heuristic().fitted({"LM0": 0.5}, fixed=[], seed=0).likelihood
    'oracle'
    """

    likelihood: ClassVar[str] = "oracle"

    def fitted(self, weights: Mapping[str, float], *, fixed: Sequence[str], seed: int) -> Self:
        """Return the sampler with what it learns from the canonical weights: by default nothing."""
        return self


class Heuristic(PublishedSampler, frozen=True):
    """N_S = `draws` perturbed copies of λ_T and λ_T itself, weighted by the data.

    Source: Sanchis-Trilles & Casacuberta (2015), Eq. 11, which is Eq. 13 of COLING 2010.

    The copies have Σ|λ_k| = 1 and λ_T keeps its own length, literally as published. If λ_T is not
    normalised, which is logged, they are on another scale than λ_T: divide the canonical weights by
    Σ|λ_k| to avoid this.

    The published 100 samples with δ = 8 cannot pass `check`, which needs 100 effective ones. 1000
    with δ = 50 pass for up to about a hundred sentences.

    Args:
        draws: N_S.
        delta: the leveraging factor δ: a number, or `lists/12`, the number of adaptation lists
            divided by 12.
    """

    title = "heuristic sampling (published)"
    exact = False
    draws: Count = 1000
    delta: Positive | Literal["lists/12"] = 1.0

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        """Return S(λ_T) with the logarithms of its weights."""
        weights = require_lists(target, "the sampler heuristic")
        canonical = weights.match.values[weights.match.free]
        length = float(np.abs(canonical).sum())
        if abs(length - 1) > _ROUNDED:
            log_info(
                f"heuristic: the free canonical weights have Σ|λ| = {length:.3g}, and their "
                "perturbed copies 1, as published: normalise the canonical weights to have all on "
                "one scale"
            )
        vectors = perturb(canonical, self.draws, np.random.default_rng(seed))
        progress(self.draws, self.draws, "")
        places = np.asarray(weights.lists.sentence)  # −1 where the arrays are padded
        lists = len(np.unique(places[places >= 0]))
        delta = lists / _LISTS_PER_DELTA if self.delta == "lists/12" else self.delta
        return weight_vectors(target, vectors, delta)


def perturb(canonical: npt.ArrayLike, draws: int, rng: np.random.Generator) -> Float64:
    """Return the set S(λ_T), (draws + 1, Q): λ_T, then its perturbed copies.

    For s = 1..N_S: copy λ_T, add U(−0.5, 0.5) to component s mod Q, divide by Σ|λ_k|.

    >>> rng = np.random.default_rng(0)
    >>> perturb([0.5, -0.5], 2, rng).round(2).tolist()
    [[0.5, -0.5], [0.58, -0.42], [0.35, -0.65]]
    """
    weights = np.asarray(canonical, dtype=np.float64)
    samples = np.tile(weights, (draws + 1, 1))
    s = np.arange(1, draws + 1)
    samples[s, s % len(weights)] += rng.uniform(-0.5, 0.5, size=draws)
    samples[1:] /= np.abs(samples[1:]).sum(axis=1, keepdims=True)
    return samples


def weight_vectors(target: Target, vectors: Float64, delta: float) -> Sampled:
    """Weight vectors by p(A|λ)^(1/δ) p(λ|T).

    Source: Sanchis-Trilles & Casacuberta (2015), Eq. 11.

    Args:
        target: the posterior.
        vectors: (D, Q) free weights.
        delta: the leveraging factor δ.

    Raises:
        UsageError: if the model has other sites than the weights.
    """
    if set(target.start) != {WEIGHTS}:
        message = "this sampler needs a model without other sites than weights: use nuts"
        raise UsageError(message, parameter="sampler", code="not-supported")
    z = {WEIGHTS: vectors[None]}
    log_density, log_likelihood = evaluate(target, z)
    log_p = total(log_likelihood, (1, len(vectors)))
    with np.errstate(invalid="ignore"):  # where both are −∞, the density is 0
        log_weight = log_p / delta + (log_density - log_p)
        log_weight = np.where(np.isneginf(log_density), -np.inf, log_weight)
    sampled = Sampled(
        z=z,
        kind="weighted",
        log_density=log_density,
        log_weight=log_weight,
        log_likelihood=log_likelihood,
        figures=Figures(likelihood_exponent=1.0 / delta),
    )
    return with_evaluations(sampled)


class IsotropicRandomWalk(ChainSampler, PublishedSampler, frozen=True):
    """The published random walk N(λ', σ_o I), which starts at λ_T, the mean of the prior.

    Of a program without lists it starts at the medians of the prior, or at all modes in turn.

    The published settings: σ_o = 0.01, burn-in 500, 1000 draws kept. The paper has one chain; here
    are four of them, which the check can compare, and which are used together.
    """

    title = "random-walk Metropolis with isotropic steps (published)"
    proposal_variance: Positive = 0.01
    warmup: CountOrNone = 500

    def initialise(self, target: Target, covariance: None, keys: jax.Array, z: Sites) -> Chains:
        return random_walk(target, self.proposal_variance, covariance, keys, z)

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        start = repeat_start(target, self.chains)
        sampled = run_chains(self, target, None, start, seed, progress)
        figures = Figures(step_setting="proposal_variance")
        return replace(with_evaluations(sampled, self.thinning), figures=figures)
