"""The Metropolis–Hastings step that the random walk and the independence sampler share."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from numpyro.infer import init_to_uniform
from numpyro.infer.mcmc import MCMCKernel
from numpyro.infer.util import constrain_fn, initialize_model, potential_energy
from numpyro.util import is_prng_key


class MetropolisState(NamedTuple):
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


class Metropolis(MCMCKernel):  # type: ignore[misc] # NumPyro has no types
    """A NumPyro kernel for proposals of the whole vector (Metropolis et al. 1953; Hastings 1970).

    A subclass says how to propose. Chains run one by one, in parallel or vectorized.

    Args:
        model: the NumPyro model.
        init_strategy: where a chain starts that is given no initial values.
    """

    def __init__(self, model: Any, *, init_strategy: Any = init_to_uniform):
        self._model = model
        self._init_strategy = init_strategy

    @abstractmethod
    def propose(self, key: jax.Array, position: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return a proposal z' from z, (d,) ↦ (d,), and log q(z | z') − log q(z' | z)."""

    @property
    def model(self) -> Any:
        """The NumPyro model, which ArviZ asks for."""
        return self._model

    @property
    def sample_field(self) -> str:
        """The field of the state that holds the draw."""
        return "z"

    @property
    def default_fields(self) -> tuple[str, ...]:
        """The fields of the state that MCMC collects unasked."""
        return ("z", "diverging")

    def get_diagnostics_str(self, state: MetropolisState) -> str:
        """Return what a progress bar shows of a chain."""
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
    ) -> MetropolisState:
        """Return the first state: of one chain for one key, of many for a batch of keys."""
        single = is_prng_key(rng_key)
        split = jax.random.split if single else jax.vmap(jax.random.split, out_axes=1)
        rng_key, start_key = split(rng_key)
        z = init_params
        if z is None:
            z = initialize_model(
                start_key,
                self._model,
                init_strategy=self._init_strategy,
                model_args=model_args,
                model_kwargs=model_kwargs,
            ).param_info.z
        potential = partial(potential_energy, self._model, model_args, model_kwargs)

        def first(z: Any, key: jax.Array) -> MetropolisState:
            return _first_state(z, potential(z), key)

        return (first if single else jax.vmap(first))(z, rng_key)

    def sample(
        self, state: MetropolisState, model_args: tuple[Any, ...], model_kwargs: dict[str, Any]
    ) -> MetropolisState:
        """Return the state after one step of each chain."""
        potential = partial(potential_energy, self._model, model_args, model_kwargs)
        step = partial(self._step, potential=potential)
        return (jax.vmap(step) if jnp.ndim(state.potential_energy) else step)(state)

    def _step(self, state: MetropolisState, potential: Any) -> MetropolisState:
        rng_key, propose_key, accept_key = jax.random.split(state.rng_key, 3)
        position, unravel = ravel_pytree(state.z)
        proposal, log_ratio = self.propose(propose_key, position)
        proposed = unravel(proposal)
        proposed_energy = potential(proposed)
        finite = jnp.isfinite(proposed_energy)
        log_accept = state.potential_energy - proposed_energy + log_ratio
        accept_prob = jnp.where(finite, jnp.exp(jnp.minimum(log_accept, 0.0)), 0.0)
        accept = jax.random.uniform(accept_key, dtype=accept_prob.dtype) < accept_prob
        z, reached = jax.tree.map(
            lambda new, old: jnp.where(accept, new, old),
            (proposed, proposed_energy),
            (state.z, state.potential_energy),
        )
        i = state.i + 1
        mean = state.mean_accept_prob + (accept_prob - state.mean_accept_prob) / i
        return MetropolisState(i, z, reached, accept_prob, mean, ~finite, rng_key)


def _first_state(z: Any, value: jax.Array, key: jax.Array) -> MetropolisState:
    zero = jnp.zeros_like(value)
    return MetropolisState(jnp.zeros((), int), z, value, zero, zero, jnp.zeros((), bool), key)
