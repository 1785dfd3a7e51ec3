"""Running the chains of a NumPyro kernel, piece by piece, with progress."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer.mcmc import MCMCKernel

from bpa_ppl.sampling.base import Data, Program, Sampled, Sites, Target, require_memory

#: Statistics of NumPyro's states, and their names in ArviZ.
ARVIZ_NAMES = {
    "accept_prob": "acceptance_rate",
    "diverging": "diverging",
    "energy": "energy",
    "num_steps": "n_steps",
}
_PIECES = 20
_PIECE_STEPS = 10_000  # at most, if a draw has fewer: an interrupted program ends after its piece


class Plan(NamedTuple):
    """The static arguments of the compilation of a kernel's steps.

    Attributes:
        make_kernel: (program, settings, covariance) ↦ NumPyro kernel; called while compiling.
        program: the NumPyro program.
        settings: the sampler itself, with `warmup`, `draws`, `chains` and `thinning`.
        fields: the fields of the kernel's state to collect.
    """

    make_kernel: Callable[[Program, Any, Any], MCMCKernel]
    program: Program
    settings: Any
    fields: tuple[str, ...]


def run_chains(plan: Plan, target: Target, covariance: Any, start: Sites) -> Sampled:
    """Run a kernel from given starting points and return its draws, warm-up separate.

    The chains run side by side, in pieces of equal length, so that progress is reported and
    Ctrl-C works; the draws do not depend on the pieces. NumPyro's MCMC would compile its loop
    again for each piece; here one compilation serves all pieces, and all data of the same shapes.

    Args:
        plan: the kernel, which adapts itself during the warm-up, and its settings. Each draw is
            `thinning` steps after the one before it.
        target: the posterior.
        covariance: the kernel's covariance, or None.
        start: z of each chain, with leading dimension chains.
    """
    settings = plan.settings
    total = settings.warmup + settings.draws
    require_memory(target, settings.chains * total)
    length = min(-(-total // _PIECES), max(_PIECE_STEPS // settings.thinning, 1))
    keys = jax.random.split(jax.random.key(target.seed), settings.chains)
    state = _initial_state(plan, keys, covariance, start, target.data)
    pieces = []
    for done in range(length, total + length, length):
        state, collected = _advance(plan, length, state, covariance, target.data)
        pieces.append(jax.device_get(collected))
        note = f"acceptance {float(np.mean(pieces[-1]['accept_prob'])):.2f}"
        target.progress(min(done, total), total, note)
    joined = jax.tree.map(lambda *parts: np.swapaxes(np.concatenate(parts), 0, 1), *pieces)
    z = joined.pop("z")
    warmup, kept = slice(settings.warmup), slice(settings.warmup, total)
    return Sampled(
        z={name: value[:, kept] for name, value in z.items()},
        log_density=-joined.pop("potential_energy")[:, kept],
        statistics={ARVIZ_NAMES.get(name, name): value[:, kept] for name, value in joined.items()},
        warmup={name: value[:, warmup] for name, value in z.items()},
    )


def repeat_start(z: Sites, chains: int) -> Sites:
    """Return the same z for each chain, with leading dimension chains."""
    return {n: jnp.broadcast_to(value, (chains, *jnp.shape(value))) for n, value in z.items()}


def _initialise(
    plan: Plan, keys: Any, covariance: Any, start: Sites, data: Data
) -> tuple[MCMCKernel, Any]:
    kernel = plan.make_kernel(plan.program, plan.settings, covariance)
    warmup = plan.settings.warmup * plan.settings.thinning
    state = kernel.init(keys, warmup, init_params=start, model_args=tuple(data), model_kwargs={})
    return kernel, state


@partial(jax.jit, static_argnums=0)
def _initial_state(plan: Plan, keys: Any, covariance: Any, start: Sites, data: Data) -> Any:
    return _initialise(plan, keys, covariance, start, data)[1]


@partial(jax.jit, static_argnums=(0, 1))
def _advance(
    plan: Plan, length: int, state: Any, covariance: Any, data: Data
) -> tuple[Any, dict[str, Any]]:
    """Return `length` draws of all chains: fields of their states, (length, chains, …)."""
    # Some NumPyro kernels can step only after `init`. The state that it returns here is not used,
    # so XLA computes nothing for it.
    kernel, _ = _initialise(plan, state.rng_key, covariance, state.z, data)

    def step(state: Any, _: None) -> tuple[Any, dict[str, Any]]:
        walk = lambda _, state: kernel.sample(state, tuple(data), {})  # noqa: E731
        state = jax.lax.fori_loop(0, plan.settings.thinning, walk, state)
        return state, {name: getattr(state, name) for name in ("z", *plan.fields)}

    return jax.lax.scan(step, state, None, length=length)
