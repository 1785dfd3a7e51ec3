"""Independence Metropolis–Hastings: proposals around the mode that do not look at the chain."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import MultivariateStudentT

from bpa_ppl.component import Count, CountOrNone, Positive
from bpa_ppl.nbest import Float64, Int64
from bpa_ppl.sampling.base import Sampled, Sampler, Sites, Target, require_memory
from bpa_ppl.sampling.metropolis import Metropolis
from bpa_ppl.sampling.proposals import Proposal, around_mode, propose, settled

_NEVER = -1e300


class Independence(Metropolis):
    """Independence Metropolis–Hastings with a multivariate Student t (Tierney 1994, §2.3.3).

    The tails of the proposal are heavier than a Gaussian posterior's, so that the ratio of the
    densities is bounded and the chain cannot get stuck where the proposal is rare.

    Args:
        model: the NumPyro model.
        location: (d,) centre of the proposal, in unconstrained space.
        covariance: (d, d) its scale matrix.
        degrees_of_freedom: of the Student t.

    >>> import jax, numpyro, numpyro.distributions as dist
    >>> from numpyro.infer import MCMC
    >>> model = lambda: numpyro.sample("x", dist.Normal(3.0, 1.0))
    >>> kernel = Independence(model, location=[2.5], covariance=[[2.0]])
    >>> mcmc = MCMC(kernel, num_warmup=10, num_samples=2000, progress_bar=False)
    >>> mcmc.run(jax.random.key(0))
    >>> bool(abs(mcmc.get_samples()["x"].mean() - 3.0) < 0.2)
    True
    """

    def __init__(
        self,
        model: Any,
        *,
        location: Any,
        covariance: Any,
        degrees_of_freedom: float = 20.0,
        **options: Any,
    ):
        super().__init__(model, **options)
        factor = jnp.linalg.cholesky(jnp.asarray(covariance))
        self._proposal = MultivariateStudentT(degrees_of_freedom, jnp.asarray(location), factor)

    def propose(self, key: jax.Array, position: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return a draw of the Student t, and log q(z) − log q(z')."""
        proposal = self._proposal.sample(key)
        return proposal, self._proposal.log_prob(position) - self._proposal.log_prob(proposal)


class IndependenceMetropolis(Sampler, frozen=True):
    """Chains of proposals around the mode, which look at its skew and have heavy tails.

    The warm-up is the pilot sample that settles what is proposed; from then on the proposal is
    fixed (see `Proposal`). All proposals are evaluated at once. That is possible because none
    depends on the chain, as those of the kernel `Independence`: what remains is to accept.

    Args:
        warmup: proposals of each chain that choose the share of the Student t.
        draws: of each chain.
        chains: how many.
        degrees_of_freedom: of the Student t.
    """

    warmup: CountOrNone = 100
    draws: Count = 1000
    chains: Count = 4
    degrees_of_freedom: Positive = 20.0

    def sample(self, target: Target) -> Sampled:
        """Draw from the posterior by independence Metropolis–Hastings."""
        require_memory(target, self.chains * (self.warmup + self.draws))
        rng = np.random.default_rng([target.seed, 1])
        proposal, reached, warmup = self._warmed(target, rng)
        pairs = (self.draws + 1) // 2 + 1
        found = propose(target, proposal, self.chains, 2 * pairs, begin=reached, paired=True)
        position, acceptance = accept_pairs(found.log_ratio, found.log_bulk, self.draws, rng)
        steps = self.warmup + self.draws
        target.progress(steps, steps, f"acceptance {acceptance.mean():.2f}")
        kept = np.arange(self.chains)[:, None], position
        return Sampled(
            z={name: np.asarray(value)[kept] for name, value in found.z.items()},
            log_density=found.log_density[kept],
            statistics={"acceptance_rate": acceptance},
            warmup=warmup,
            mode=proposal.mode.position,
            log_likelihood={n: v[kept] for n, v in found.log_likelihood.items()},
            attrs={**proposal.mode.attrs(), "student_share": proposal.share},
        )

    def _warmed(
        self, target: Target, rng: np.random.Generator
    ) -> tuple[Proposal, Float64 | None, Sites]:
        """Return what to propose from, where each chain stands after its warm-up, and its draws."""
        proposal = around_mode(target, self.degrees_of_freedom)
        if not self.warmup:
            return settled(proposal, None), None, {}
        pilot = propose(target, proposal, self.chains, self.warmup, stream=1)
        chain, held = np.arange(self.chains)[:, None], accept(pilot.log_ratio, rng)[0]
        draws = {name: np.asarray(value)[chain, held] for name, value in pilot.z.items()}
        return settled(proposal, pilot), pilot.position[chain, held][:, -1], draws


def accept(log_ratio: Float64, rng: np.random.Generator) -> tuple[Int64, Float64]:
    """Walk the chains over proposals that are known beforehand.

    Args:
        log_ratio: (chains, steps) log p(z)/q(z) of each proposal; a chain starts at its first.
        rng: of the uniform numbers that accept.

    Returns:
        (chains, steps) the proposal that each chain holds after each step, and the probability
        with which the step accepted.

    >>> position, acceptance = accept(np.array([[0.0, -np.inf, 3.0]]), np.random.default_rng(0))
    >>> position.tolist(), acceptance.tolist()
    ([[0, 0, 2]], [[1.0, 0.0, 1.0]])
    """
    chains, steps = log_ratio.shape
    position = np.zeros((chains, steps), np.int64)
    acceptance = np.ones((chains, steps))
    chain = np.arange(chains)
    # A proposal without a finite density is never accepted, and left where a chain starts on it.
    ratio = np.where(np.isfinite(log_ratio), log_ratio, _NEVER)
    uniform = rng.uniform(size=(chains, steps))
    for step in range(1, steps):
        current = position[:, step - 1]
        change = ratio[:, step] - ratio[chain, current]
        acceptance[:, step] = np.exp(np.minimum(change, 0.0))
        position[:, step] = np.where(uniform[:, step] < acceptance[:, step], step, current)
    return position, acceptance


def accept_pairs(
    log_ratio: Float64, log_bulk: Float64, draws: int, rng: np.random.Generator
) -> tuple[Int64, Float64]:
    """Walk the chains over proposals that have partners: to a proposal, to a partner, and so on.

    A chain starts at its first proposal. A step to the partner of where it stands is accepted by
    another ratio, since it is no independent proposal (see `Skewed.partners`).

    Args:
        log_ratio: (chains, 2 pairs) log p(z)/q(z); a proposal stands before its partner.
        log_bulk: (chains, 2 pairs) log p(z)/q(z), with the part of q that knows of partners.
        draws: steps, two fewer than proposals and partners together, or one more than that.
        rng: of the uniform numbers that accept.

    Returns:
        (chains, draws) as `accept`.

    >>> never, surely = -np.inf, 0.0
    >>> ratio = np.array([[surely, surely, never, never, surely, surely]])
    >>> accept_pairs(ratio, ratio, 4, np.random.default_rng(0))[0].tolist()
    [[0, 1, 4, 5]]
    """
    position = np.zeros((len(log_ratio), draws), np.int64)
    acceptance = np.ones((len(log_ratio), draws))
    chain, current = np.arange(len(log_ratio)), np.zeros(len(log_ratio), np.int64)
    ratios = [np.where(np.isfinite(r), r, _NEVER) for r in (log_ratio, log_bulk)]
    uniform = rng.uniform(size=position.shape)
    for step in range(draws):
        ratio = ratios[step % 2]
        proposed = current ^ 1 if step % 2 else np.full_like(current, step + 2)
        change = ratio[chain, proposed] - ratio[chain, current]
        acceptance[:, step] = np.exp(np.minimum(change, 0.0))
        current = np.where(uniform[:, step] < acceptance[:, step], proposed, current)
        position[:, step] = current
    return position, acceptance
