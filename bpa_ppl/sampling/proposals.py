"""Independent proposals around the mode, evaluated side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from bpa_ppl.nbest import Float64
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.posterior.statistics import pareto_smoothed
from bpa_ppl.sampling.base import Sites, Target, require_memory
from bpa_ppl.sampling.density import evaluate, model_info, unflatten
from bpa_ppl.sampling.mode import Mode, mode_of, require_mode
from bpa_ppl.sampling.skewed import Skewed, fit_skewed

#: Above it importance ratios are unreliable (Vehtari et al. 2024).
POOR_PARETO_K = 0.7
#: The mode of a hierarchy of more values is not searched: its Hessian is expensive, and in so many
#: dimensions the typical draws lie far from the mode.
MAX_SEARCHED = 200
#: Draws of a pilot sample that assesses proposals, and of one that only tunes the mixture.
_PILOT, TUNING_DRAWS = 1000, 256
_PILOT_DEGREES = 20.0
_PILOT_SEED = 1_000_003  # is added to the seed of the sampler
#: The Student t is a little wider than the Laplace approximation.
_SCALE = 1.1
#: Candidate shares of the Student t: it bounds the ratio of the densities in the tails, and about
#: this share of the draws is lost where the skewed Gaussian fits.
_SHARES = (0.03, 0.1, 0.3, 1.0)
#: A pilot sample with fewer finite draws is too small to tune the share.
_MIN_TUNING_DRAWS = 50


class Proposal(NamedTuple):
    """A mixture of a skewed Gaussian and a Student t around the mode.

    The draws follow the posterior whatever the proposal is, because it is fixed before any draw is
    kept; the heavy tails of the t keep the ratio of the densities bounded (Hesterberg 1995).

    Attributes:
        mode: the mode, with the Laplace covariance.
        skewed: the skewed Gaussian.
        degrees_of_freedom: of the t.
        share: of the t in the mixture.
    """

    mode: Mode
    skewed: Skewed
    degrees_of_freedom: float
    share: float

    def draw(self, rng: np.random.Generator, count: int) -> Float64:
        """Return draws, (count, d), in standard deviations of the Laplace approximation."""
        u = rng.normal(size=(count, len(self.mode.position)))
        tail = rng.uniform(size=count) < self.share
        with np.errstate(all="ignore"):  # very few degrees of freedom give infinite draws
            scale = rng.chisquare(self.degrees_of_freedom, size=count) / self.degrees_of_freedom
            student = np.sqrt(_SCALE / scale)[:, None] * u
        return np.where(tail[:, None], student, self.skewed.from_standard_normal(u))

    def log_components(self, x: Float64) -> tuple[Float64, Float64]:
        """Return the log density of draws under the skewed Gaussian and the t, (n,) each."""
        size, degrees = x.shape[1], self.degrees_of_freedom
        with np.errstate(all="ignore"):
            constant = gammaln((degrees + size) / 2) - gammaln(degrees / 2)
            constant -= size / 2 * np.log(degrees * np.pi * _SCALE)
            inside = np.log1p((x**2).sum(axis=1) / (_SCALE * degrees))
            return self.skewed.log_density(x), constant - (degrees + size) / 2 * inside

    def log_density(self, x: Float64) -> Float64:
        """Return log q of draws, (n, d) ↦ (n,)."""
        return log_mixture(*self.log_components(x), self.share)


def log_mixture(first: Float64, second: Float64, share: float) -> Float64:
    """Return the log density of a mixture, given the share of the second component.

    >>> log_mixture(np.log([0.2]), np.log([0.6]), 0.25).round(4).tolist()
    [-1.204]
    """
    with np.errstate(all="ignore"):  # a draw without a finite density is never accepted
        return np.asarray(np.logaddexp(np.log1p(-share) + first, np.log(share) + second))


class Proposals(NamedTuple):
    """Draws of a proposal (C chains, D draws).

    Attributes:
        z: the unconstrained values of the sites, (C, D, …) each.
        log_density: (C, D) log p(z, data).
        log_ratio: (C, D) log p(z, data) − log q(z), up to a constant.
        log_ratio_skewed: (C, D) the same with the skewed Gaussian alone as q.
        log_likelihood: of each observed site (C, D, …) float32.
        position: (C, D, d) the draws in standard deviations of the Laplace approximation.
    """

    z: Sites
    log_density: Float64
    log_ratio: Float64
    log_ratio_skewed: Float64
    log_likelihood: dict[str, np.ndarray]
    position: Float64


class ProposalFit(NamedTuple):
    """How well proposals around the mode fit a posterior.

    Attributes:
        mode: the mode, or None if none was found.
        pareto_k: k̂ of the importance ratios of a pilot sample; infinite without a mode.
        reason: the finding in words.
    """

    mode: Mode | None
    pareto_k: float
    reason: str


def assess_proposals(target: Target) -> ProposalFit:
    """Assess by a pilot sample how well proposals around the mode fit a posterior."""
    latent, size = model_info(target.program, target.data).latent, target.dimension
    if latent != (WEIGHTS,) and size > MAX_SEARCHED:
        return ProposalFit(None, np.inf, f"a hierarchy of {size} values has no typical mode")
    mode = mode_of(target)
    if not mode.converged:
        return ProposalFit(None, np.inf, "the search for the mode did not converge")
    # A separate seed: the pilot's draws are not among those of the sampler that it chooses.
    separate = replace(target, seed=target.seed + _PILOT_SEED)
    student = Proposal(mode, Skewed(), _PILOT_DEGREES, 1.0)
    k_hat = pareto_smoothed(propose(separate, student, 1, _PILOT).log_ratio)[1]
    return ProposalFit(mode, k_hat, f"Pareto k̂ {k_hat:.2f} of proposals around the mode")


def pilot_proposal(target: Target, degrees_of_freedom: float) -> Proposal:
    """Return a proposal around the mode with half of the draws from each component.

    Raises:
        DataError: if there is no mode.
    """
    mode = require_mode(target)
    return Proposal(mode, fit_skewed(target, mode), degrees_of_freedom, 0.5)


def with_tuned_mixture(proposal: Proposal, pilot: Proposals | None) -> Proposal:
    """Return a proposal with the share of the t that suits the draws of a pilot sample best.

    Importance weights estimate the effective sample size of each share. Without a pilot sample, or
    with one that is too small, the share is 0.1.
    """
    default = proposal._replace(share=_SHARES[1])
    if pilot is None:
        return default
    x = pilot.position.reshape(-1, pilot.position.shape[-1])
    finite = np.isfinite(pilot.log_density.reshape(-1)) & np.isfinite(x).all(axis=1)
    if finite.sum() < _MIN_TUNING_DRAWS:
        return default
    log_p, parts = pilot.log_density.reshape(-1)[finite], proposal.log_components(x[finite])
    log_q = log_mixture(*parts, proposal.share)

    def loss(share: float) -> float:
        """Return log ∫ p²/q, which grows with the variance of the importance weights."""
        return float(np.logaddexp.reduce(2 * log_p - log_mixture(*parts, share) - log_q))

    return proposal._replace(share=min(_SHARES, key=loss))


def propose(
    target: Target,
    proposal: Proposal,
    chains: int,
    draws: int,
    *,
    stream: int = 0,
    first: Float64 | None = None,
    antithetic: bool = False,
) -> Proposals:
    """Draw proposals and evaluate all of them together.

    A few wide matrix products cost a fraction of evaluating the steps of a chain one by one.

    Args:
        target: the posterior.
        proposal: the distribution to draw from.
        chains: C.
        draws: D of each chain; an even number for antithetic pairs.
        stream: number of the random stream; one seed has many.
        first: (C, d) the first draw of each chain; None draws it too.
        antithetic: whether every second draw is the antithetic partner of the one before it.
    """
    require_memory(target, chains * draws)
    rng = np.random.default_rng([target.seed, 4, stream])
    position = proposal.draw(rng, chains * draws).reshape(chains, draws, -1)
    if first is not None:
        position[:, 0] = first
    if antithetic:
        position[:, 1::2] = proposal.skewed.antithetic(rng, position[:, ::2])
    x = position.reshape(chains * draws, -1)
    parts = proposal.log_components(x)
    log_q = log_mixture(*parts, proposal.share).reshape(chains, draws)
    factor = np.linalg.cholesky(proposal.mode.covariance)
    with np.errstate(all="ignore"):
        flat = proposal.mode.position + x @ factor.T
    z = unflatten(flat.reshape(chains, draws, -1), target.start)
    log_p, log_likelihood = evaluate(target.program, target.data, z)
    log_ratio_skewed = log_p - parts[0].reshape(chains, draws)
    return Proposals(z, log_p, log_p - log_q, log_ratio_skewed, log_likelihood, position)
