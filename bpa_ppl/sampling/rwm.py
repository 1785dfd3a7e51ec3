"""Random-walk Metropolis–Hastings in the metric of the posterior."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from numpyro.infer.mcmc import MCMCKernel
from numpyro.infer.util import constrain_fn, initialize_model, potential_energy
from numpyro.util import is_prng_key

from bpa_ppl.component import Count, CountOrNone, Positive
from bpa_ppl.sampling.chains import ChainSampler, run_chains
from bpa_ppl.sampling.mode import dispersed_starts, require_mode
from bpa_ppl.sampling.target import Sampled, Sites, Target, with_evaluations


class RandomWalkState(NamedTuple):
    """The state of one chain.

    Attributes:
        i: steps taken.
        z: the unconstrained values of the sites.
        potential_energy: −log p(z, data).
        accept_prob: probability with which the last proposal was accepted.
        mean_accept_prob: its mean over all steps so far.
        diverging: whether the last proposal had no finite density.
        rng_key: the key of the next step.
    """

    i: Any
    z: Any
    potential_energy: Any
    accept_prob: Any
    mean_accept_prob: Any
    diverging: Any
    rng_key: Any


class RandomWalk(MCMCKernel):  # type: ignore[misc] # NumPyro has no types
    """A NumPyro kernel: random-walk Metropolis with proposal N(λ', σ_o Σ) of the whole vector.

    Metropolis et al. (1953). Chains run one by one, in parallel or vectorized.

    Args:
        model: the NumPyro model.
        proposal_variance: σ_o, a variance.
        covariance: (d, d) Σ; None is the identity.

    >>> import jax, numpyro, numpyro.distributions as dist
    >>> from numpyro.infer import MCMC
    >>> model = lambda: numpyro.sample("x", dist.Normal(3.0, 1.0))
    >>> mcmc = MCMC(RandomWalk(model, proposal_variance=4.0), num_warmup=500, num_samples=5000,
    ...             progress_bar=False)
    >>> mcmc.run(jax.random.key(0))
    >>> bool(abs(mcmc.get_samples()["x"].mean() - 3.0) < 0.2)
    True
    """

    def __init__(
        self,
        model: Any,
        *,
        proposal_variance: float = 0.01,
        covariance: Any = None,
    ):
        self._model = model
        self._proposal_variance = proposal_variance
        self._factor = None if covariance is None else jnp.linalg.cholesky(jnp.asarray(covariance))

    @property
    def model(self) -> Any:
        """The NumPyro model; ArviZ reads it."""
        return self._model

    @property
    def sample_field(self) -> str:
        """The field of the state that holds the draw."""
        return "z"

    @property
    def default_fields(self) -> tuple[str, ...]:
        """The fields of the state that MCMC collects by default."""
        return ("z", "diverging")

    def get_diagnostics_str(self, state: RandomWalkState) -> str:
        """Return the text that a progress bar shows for a chain."""
        return f"acc. prob={float(state.mean_accept_prob):.2f}"

    def postprocess_fn(self, model_args: tuple[Any, ...], model_kwargs: dict[str, Any]) -> Any:
        """Return the function from unconstrained values to the values of the sites."""
        return partial(
            constrain_fn, self._model, model_args, model_kwargs, return_deterministic=True
        )

    def init(
        self,
        rng_key: jax.Array,
        num_warmup: int,
        init_params: Any,
        model_args: tuple[Any, ...],
        model_kwargs: dict[str, Any],
    ) -> RandomWalkState:
        """Return the first state: of one chain for one key, of many for a batch of keys."""
        single = is_prng_key(rng_key)
        split = jax.random.split if single else jax.vmap(jax.random.split, out_axes=1)
        rng_key, start_key = split(rng_key)
        z = init_params
        if z is None:
            z = initialize_model(
                start_key, self._model, model_args=model_args, model_kwargs=model_kwargs
            ).param_info.z

        def first(z: Any, key: jax.Array) -> RandomWalkState:
            energy = potential_energy(self._model, model_args, model_kwargs, z)
            zero, no = jnp.zeros_like(energy), jnp.zeros((), bool)
            return RandomWalkState(jnp.zeros((), int), z, energy, zero, zero, no, key)

        return (first if single else jax.vmap(first))(z, rng_key)

    def sample(
        self, state: RandomWalkState, model_args: tuple[Any, ...], model_kwargs: dict[str, Any]
    ) -> RandomWalkState:
        """Return the state after one step of each chain."""
        potential = partial(potential_energy, self._model, model_args, model_kwargs)
        step = partial(self._step, potential=potential)
        return (jax.vmap(step) if jnp.ndim(state.potential_energy) else step)(state)

    def _step(self, state: RandomWalkState, potential: Any) -> RandomWalkState:
        rng_key, propose_key, accept_key = jax.random.split(state.rng_key, 3)
        position, unravel = ravel_pytree(state.z)
        noise = jax.random.normal(propose_key, position.shape, position.dtype)
        if self._factor is not None:
            noise = self._factor @ noise
        proposed = unravel(position + jnp.sqrt(self._proposal_variance) * noise)
        proposed_energy = potential(proposed)
        finite = jnp.isfinite(proposed_energy)
        ratio = jnp.exp(jnp.minimum(state.potential_energy - proposed_energy, 0.0))
        accept_prob = jnp.where(finite, ratio, 0.0)
        accept = jax.random.uniform(accept_key, dtype=accept_prob.dtype) < accept_prob
        z, energy = jax.tree.map(
            lambda new, old: jnp.where(accept, new, old),
            (proposed, proposed_energy),
            (state.z, state.potential_energy),
        )
        i = state.i + 1
        mean = state.mean_accept_prob + (accept_prob - state.mean_accept_prob) / i
        return RandomWalkState(i, z, energy, accept_prob, mean, ~finite, rng_key)


class RandomWalkMetropolis(ChainSampler, frozen=True):
    """A walk of N(0, scale² / d × Laplace covariance); 2.38 is best for a Gaussian posterior.

    Gelman, Roberts & Gilks (1996), for d → ∞. Each chain starts at a draw of N(mode, 2 × Laplace).
    Successive steps are strongly correlated, so one in ten is kept.
    """

    scale: Positive = 2.38
    warmup: CountOrNone = 50
    thinning: Count = 10

    def kernel(self, target: Target, covariance: jax.Array, z: Sites) -> RandomWalk:
        """Return the random walk in the metric of the posterior."""
        # Not scale**2: Python raises an error where it overflows; here it is infinite and no step
        # is accepted.
        variance = self.scale * self.scale / covariance.shape[0]
        return RandomWalk(target.program, proposal_variance=variance, covariance=covariance)

    def sample(self, target: Target) -> Sampled:
        """Draw from the posterior by a random walk."""
        mode = require_mode(target)
        start = dispersed_starts(target, mode, self.chains)
        sampled = run_chains(self, target, mode.covariance, start)
        attrs = {**mode.attrs(), "step_setting": "scale"}
        return replace(with_evaluations(sampled, self.thinning), mode=mode.position, attrs=attrs)
