"""Independent proposals around the mode, evaluated side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from scipy.special import gammaln

from bpa_ppl.nbest import Float64
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.posterior.statistics import pareto_smoothed
from bpa_ppl.sampling.base import Sites, Target, require_memory
from bpa_ppl.sampling.density import anatomy, evaluate, shaped
from bpa_ppl.sampling.mode import Mode, mode_of, require_mode
from bpa_ppl.sampling.skewed import Skewed, skewed

#: Above it importance ratios are not to be trusted (Vehtari et al. 2024).
POOR_PARETO_K = 0.7
#: Unconstrained values beyond which no mode of a hierarchy is looked for: its Hessian is dear, and
#: what is typical in so many dimensions lies far from the mode.
MAX_SEARCHED = 200
#: Draws of a pilot sample that judges, and of one that only chooses a share.
_PILOT, CHOOSING = 1000, 256
_PILOT_DEGREES = 20.0
_APART = 1_000_003
#: The Student t is a little wider than the Laplace approximation.
_WIDER = 1.1
#: Shares of the Student t to choose from: it bounds the ratio of the densities in the tails, and
#: costs about as many draws where the skewed Gaussian fits.
_SHARES = (0.03, 0.1, 0.3, 1.0)
#: Below it nothing is known of how good a share is.
_FEWEST = 50


class Proposal(NamedTuple):
    """A mixture of a skewed Gaussian and a Student t around the mode.

    What is drawn follows the posterior whatever the proposal is, which is fixed before anything is
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
        with np.errstate(all="ignore"):  # with next to no degrees of freedom they are infinite
            scale = rng.chisquare(self.degrees_of_freedom, size=count) / self.degrees_of_freedom
            far = np.sqrt(_WIDER / scale)[:, None] * u
        return np.where(tail[:, None], far, self.skewed.bent(u))

    def log_parts(self, x: Float64) -> tuple[Float64, Float64]:
        """Return log q of draws under the skewed Gaussian and under the t, (n,) each."""
        size, degrees = x.shape[1], self.degrees_of_freedom
        with np.errstate(all="ignore"):
            constant = gammaln((degrees + size) / 2) - gammaln(degrees / 2)
            constant -= size / 2 * np.log(degrees * np.pi * _WIDER)
            inside = np.log1p((x**2).sum(axis=1) / (_WIDER * degrees))
            return self.skewed.log_density(x), constant - (degrees + size) / 2 * inside

    def log_density(self, x: Float64) -> Float64:
        """Return log q of draws, (n, d) ↦ (n,)."""
        return mixed(*self.log_parts(x), self.share)


def mixed(bulk: Float64, tail: Float64, share: float) -> Float64:
    """Return the log density of a mixture, with a share of the second part.

    >>> mixed(np.log([0.2]), np.log([0.6]), 0.25).round(4).tolist() == [round(np.log(0.3), 4)]
    True
    """
    with np.errstate(all="ignore"):  # where a draw has no finite density it is never accepted
        return np.asarray(np.logaddexp(np.log1p(-share) + bulk, np.log(share) + tail))


class Proposals(NamedTuple):
    """Draws of a proposal (C chains, D draws).

    Attributes:
        z: the unconstrained values of the sites, (C, D, …) each.
        log_density: (C, D) log p(z, data).
        log_ratio: (C, D) log p(z, data) − log q(z), up to a constant.
        log_bulk: (C, D) the same with the skewed Gaussian alone as q.
        log_likelihood: of each observed site (C, D, …) float32.
        position: (C, D, d) the draws in standard deviations of the Laplace approximation.
    """

    z: Sites
    log_density: Float64
    log_ratio: Float64
    log_bulk: Float64
    log_likelihood: dict[str, np.ndarray]
    position: Float64


class Fit(NamedTuple):
    """How well proposals around the mode fit a posterior.

    Attributes:
        mode: where it was found.
        pareto_k: k̂ of the importance ratios of a pilot sample; infinite without a mode.
        because: what was found, in words.
    """

    mode: Mode | None
    pareto_k: float
    because: str


def fitted(target: Target) -> Fit:
    """Say how well proposals around the mode fit a posterior, by a pilot sample."""
    latent, size = anatomy(target.program, target.data).latent, values_of(target)
    if latent != (WEIGHTS,) and size > MAX_SEARCHED:
        return Fit(None, np.inf, f"a hierarchy of {size} values has no typical mode")
    mode = mode_of(target)
    if not mode.converged:
        return Fit(None, np.inf, "the search for the mode did not converge")
    # A seed of its own: what the pilot finds shall not be part of what it judges.
    apart = replace(target, seed=target.seed + _APART)
    pilot = propose(apart, student(mode, _PILOT_DEGREES), 1, _PILOT)
    k_hat = pareto_smoothed(pilot.log_ratio)[1]
    return Fit(mode, k_hat, f"Pareto k̂ {k_hat:.2f} of proposals around the mode")


def values_of(target: Target) -> int:
    """Return how many unconstrained values a posterior is of."""
    return sum(int(np.size(leaf)) for leaf in jax.tree.leaves(target.start))


def student(mode: Mode, degrees_of_freedom: float) -> Proposal:
    """Return the Student t alone, which reaches far."""
    return Proposal(mode, Skewed(), degrees_of_freedom, 1.0)


def around_mode(target: Target, degrees_of_freedom: float) -> Proposal:
    """Return a proposal around the mode with half of the draws from each part, for a pilot.

    Raises:
        DataError: if there is no mode.
    """
    mode = require_mode(target)
    return Proposal(mode, skewed(target, mode), degrees_of_freedom, 0.5)


def settled(proposal: Proposal, pilot: Proposals | None) -> Proposal:
    """Return a proposal with the share of the t that suits the draws of a pilot sample best.

    The effective sample size that a share would give is estimated by importance weights. Without a
    pilot, or one of so few draws that it says nothing, the share is a tenth.
    """
    usual = proposal._replace(share=_SHARES[1])
    if pilot is None:
        return usual
    x = pilot.position.reshape(-1, pilot.position.shape[-1])
    finite = np.isfinite(pilot.log_density.reshape(-1)) & np.isfinite(x).all(axis=1)
    if finite.sum() < _FEWEST:
        return usual
    log_p, parts = pilot.log_density.reshape(-1)[finite], proposal.log_parts(x[finite])
    drawn = mixed(*parts, proposal.share)

    def loss(share: float) -> float:
        """Return log ∫ p²/q, which the variance of importance weights grows with."""
        return float(np.logaddexp.reduce(2 * log_p - mixed(*parts, share) - drawn))

    return proposal._replace(share=min(_SHARES, key=loss))


def propose(
    target: Target,
    proposal: Proposal,
    chains: int,
    draws: int,
    *,
    stream: int = 0,
    begin: Float64 | None = None,
    paired: bool = False,
) -> Proposals:
    """Draw proposals and evaluate all of them together.

    A few wide matrix products cost a fraction of as many steps of a chain one by one.

    Args:
        target: the posterior.
        proposal: what to draw from.
        chains: C.
        draws: D of each chain; an even number where they are paired.
        stream: of the random numbers, which one seed has many of.
        begin: (C, d) what stands in place of the first draw of each chain.
        paired: whether every second draw is the partner of the one before it.
    """
    require_memory(target, chains * draws)
    rng = np.random.default_rng([target.seed, 4, stream])
    position = proposal.draw(rng, chains * draws).reshape(chains, draws, -1)
    if begin is not None:
        position[:, 0] = begin
    if paired:
        position[:, 1::2] = proposal.skewed.partners(rng, position[:, ::2])
    x = position.reshape(chains * draws, -1)
    parts = proposal.log_parts(x)
    log_q = mixed(*parts, proposal.share).reshape(chains, draws)
    factor = np.linalg.cholesky(proposal.mode.covariance)
    with np.errstate(all="ignore"):
        flat = proposal.mode.position + x @ factor.T
    z = shaped(flat.reshape(chains, draws, -1), target.start)
    log_p, log_likelihood = evaluate(target.program, target.data, z)
    log_bulk = log_p - parts[0].reshape(chains, draws)
    return Proposals(z, log_p, log_p - log_q, log_bulk, log_likelihood, position)
