"""Independence Metropolis–Hastings: proposals around the mode that do not look at the chain."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import MultivariateStudentT

from bpa_ppl.component import Count, CountOrNone, Positive
from bpa_ppl.nbest import Float64, Int64
from bpa_ppl.sampling.base import Sampled, Sampler, Target
from bpa_ppl.sampling.metropolis import Metropolis
from bpa_ppl.sampling.mode import require_mode
from bpa_ppl.sampling.proposals import propose

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
    """Chains of draws from a Student t around the mode; a short warm-up forgets the start.

    Draws as the kernel `Independence` does, but all proposals are evaluated at once. That is
    possible because no proposal depends on the chain: what remains is to accept.
    """

    warmup: CountOrNone = 100
    draws: Count = 1000
    chains: Count = 4
    degrees_of_freedom: Positive = 20.0

    def sample(self, target: Target) -> Sampled:
        """Draw from the posterior by independence Metropolis–Hastings."""
        mode = require_mode(target)
        steps = self.warmup + self.draws
        proposals = propose(target, mode, self.chains, steps, self.degrees_of_freedom)
        position, acceptance = accept(proposals.log_ratio, np.random.default_rng([target.seed, 1]))
        target.progress(steps, steps, f"acceptance {acceptance.mean():.2f}")
        chain = np.arange(self.chains)[:, None]
        kept, warmup = position[:, self.warmup :], position[:, : self.warmup]
        z = {name: np.asarray(value) for name, value in proposals.z.items()}
        return Sampled(
            z={name: value[chain, kept] for name, value in z.items()},
            log_density=proposals.log_density[chain, kept],
            statistics={"acceptance_rate": acceptance[:, self.warmup :]},
            warmup={name: value[chain, warmup] for name, value in z.items()},
            mode=mode.position,
            log_likelihood={n: v[chain, kept] for n, v in proposals.log_likelihood.items()},
            attrs=mode.attrs(),
        )


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
