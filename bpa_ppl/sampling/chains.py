"""Running the chains of a NumPyro kernel, piece by piece, with progress."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer.mcmc import MCMCKernel

from bpa_ppl.sampling.base import Data, Program, Sampled, Sites, Target, require_memory

#: Statistics of NumPyro's states, and what ArviZ calls them.
ARVIZ_NAMES = {
    "accept_prob": "acceptance_rate",
    "diverging": "diverging",
    "energy": "energy",
    "num_steps": "n_steps",
}
_PIECES = 20


class ChainSettings(Protocol):
    """What the settings of every Markov-chain sampler say."""

    @property
    def warmup(self) -> int: ...  # noqa: D102
    @property
    def draws(self) -> int: ...  # noqa: D102
    @property
    def chains(self) -> int: ...  # noqa: D102
    @property
    def thinning(self) -> int: ...  # noqa: D102


class Plan(NamedTuple):
    """What is fixed when the steps of a kernel are compiled.

    Attributes:
        make_kernel: (program, settings, covariance) ↦ NumPyro kernel; called inside the
            compilation.
        program: the NumPyro program.
        settings: of the sampler: the sampler itself.
        fields: the fields of the kernel's state to collect.
    """

    make_kernel: Callable[[Program, Any, Any], MCMCKernel]
    program: Program
    settings: Any
    fields: tuple[str, ...]


def run_chains(plan: Plan, target: Target, covariance: Any, start: Sites) -> Sampled:
    """Run a kernel from given starting points and return its draws, those of the warm-up apart.

    The chains run side by side, in pieces of equal length, so that progress can be told and
    Ctrl-C is obeyed; the draws do not depend on the pieces. NumPyro's MCMC would compile its
    loop anew for each piece; one compilation of ours serves all pieces, and all data of the
    same shapes.

    Args:
        plan: the kernel, which adapts itself during the warm-up, and its settings: numbers of
            draws, of which every one is `thinning` steps after the last.
        target: the posterior.
        covariance: that the kernel is built from, or None.
        start: z of each chain, with leading dimension chains.
    """
    settings: ChainSettings = plan.settings
    total = settings.warmup + settings.draws
    require_memory(target, settings.chains * total)
    length = -(-total // _PIECES)
    keys = jax.random.split(jax.random.key(target.seed), settings.chains)
    state = _first(plan, keys, covariance, start, target.data)
    pieces = []
    for done in range(length, total + length, length):
        state, collected = _advance(plan, length, state, covariance, target.data)
        pieces.append(jax.device_get(collected))
        note = f"acceptance {float(np.mean(pieces[-1]['accept_prob'])):.2f}"
        target.progress(min(done, total), total, note)
    return _assembled(pieces, settings)


def repeated(z: Sites, chains: int) -> Sites:
    """Return the same z for each chain, with leading dimension chains."""
    result: Sites = jax.tree.map(lambda x: jnp.broadcast_to(x, (chains, *jnp.shape(x))), z)
    return result


def _initialised(
    plan: Plan, keys: Any, covariance: Any, start: Sites, data: Data
) -> tuple[MCMCKernel, Any]:
    kernel = plan.make_kernel(plan.program, plan.settings, covariance)
    state = kernel.init(
        keys,
        plan.settings.warmup * plan.settings.thinning,
        init_params=start,
        model_args=tuple(data),
        model_kwargs={},
    )
    return kernel, state


@partial(jax.jit, static_argnums=0)
def _first(plan: Plan, keys: Any, covariance: Any, start: Sites, data: Data) -> Any:
    return _initialised(plan, keys, covariance, start, data)[1]


@partial(jax.jit, static_argnums=(0, 1))
def _advance(
    plan: Plan, length: int, state: Any, covariance: Any, data: Data
) -> tuple[Any, dict[str, Any]]:
    """Return `length` draws of all chains: fields of their states, (length, chains, …)."""
    # Some of NumPyro's kernels can step only after `init`. The state that it returns here is not
    # used, so that XLA computes nothing for it.
    kernel, _ = _initialised(plan, state.rng_key, covariance, state.z, data)

    def step(state: Any, _: None) -> tuple[Any, dict[str, Any]]:
        walk = lambda _, state: kernel.sample(state, tuple(data), {})  # noqa: E731
        state = jax.lax.fori_loop(0, plan.settings.thinning, walk, state)
        return state, {name: getattr(state, name) for name in ("z", *plan.fields)}

    return jax.lax.scan(step, state, None, length=length)


def _assembled(pieces: list[dict[str, Any]], settings: ChainSettings) -> Sampled:
    """Join the pieces and cut them into warm-up and kept draws."""
    joined = jax.tree.map(lambda *parts: np.swapaxes(np.concatenate(parts), 0, 1), *pieces)
    z = joined.pop("z")
    warmup, kept = slice(settings.warmup), slice(settings.warmup, settings.warmup + settings.draws)
    return Sampled(
        z={name: value[:, kept] for name, value in z.items()},
        log_density=-joined.pop("potential_energy")[:, kept],
        statistics={ARVIZ_NAMES.get(name, name): value[:, kept] for name, value in joined.items()},
        warmup={name: value[:, warmup] for name, value in z.items()},
    )
