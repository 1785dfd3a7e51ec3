"""Running the chains of a NumPyro kernel, piece by piece, with progress."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer.mcmc import MCMCKernel

from bpa_ppl.component import Count, CountOrNone
from bpa_ppl.sampling.base import Data, Program, Sampled, Sampler, Sites, Target, require_memory
from bpa_ppl.sampling.tracing import not_tracing

#: Statistics of NumPyro's states, and their names in ArviZ.
ARVIZ_NAMES = {
    "accept_prob": "acceptance_rate",
    "diverging": "diverging",
    "energy": "energy",
    "num_steps": "n_steps",
}
_PIECES = 20
_PIECE_STEPS = 10_000  # at most, if a draw has fewer: an interrupted program ends after its piece


class ChainSampler(Sampler, frozen=True):
    """A sampler that runs chains of a NumPyro kernel; each draw is `thinning` steps after the last.

    Attributes:
        collected: the fields of the kernel's state to collect.
    """

    collected: ClassVar[tuple[str, ...]] = ("accept_prob", "potential_energy")
    warmup: CountOrNone = 100
    draws: Count = 1000
    chains: Count = 4
    thinning: Count = 1

    def kernel(self, program: Program, covariance: Any, z: Sites) -> MCMCKernel:
        """Return the kernel, which adapts itself during the warm-up; called while compiling.

        Args:
            program: the NumPyro program.
            covariance: as for `run_chains`.
            z: of each chain, with leading dimension chains.
        """
        raise NotImplementedError


def run_chains(sampler: ChainSampler, target: Target, covariance: Any, start: Sites) -> Sampled:
    """Run a kernel from given starting points and return its draws, warm-up separate.

    The chains run side by side, in pieces of equal length, so that progress is reported and
    Ctrl-C works; the draws do not depend on the pieces. NumPyro's MCMC would compile its loop
    again for each piece; here one compilation serves all pieces, and all data of the same shapes.

    Args:
        sampler: makes the kernel.
        target: the posterior.
        covariance: the kernel's covariance, or None.
        start: z of each chain, with leading dimension chains.
    """
    total, program, data = sampler.warmup + sampler.draws, target.program, target.data
    require_memory(target, sampler.chains * total)
    length = min(-(-total // _PIECES), max(_PIECE_STEPS // sampler.thinning, 1))
    keys = jax.random.split(jax.random.key(target.seed), sampler.chains)
    target.progress(0, total, "compiling")
    state = _initial_state(sampler, program, keys, covariance, start, data)
    pieces: list[dict[str, Any]] = []
    for done in range(length, total + length, length):
        # After two pieces everything is compiled, for the types of both possible states.
        with not_tracing() if len(pieces) > 1 else nullcontext():
            state, collected = _advance(sampler, program, length, state, covariance, data)
            pieces.append(jax.device_get(collected))
        note = f"acceptance {float(np.mean(pieces[-1]['accept_prob'])):.2f}"
        target.progress(min(done, total), total, note)
    joined = jax.tree.map(lambda *parts: np.swapaxes(np.concatenate(parts), 0, 1), *pieces)
    z = joined.pop("z")
    warmup, kept = slice(sampler.warmup), slice(sampler.warmup, total)
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
    sampler: ChainSampler, program: Program, keys: Any, covariance: Any, z: Sites, data: Data
) -> tuple[MCMCKernel, Any]:
    kernel, warmup = sampler.kernel(program, covariance, z), sampler.warmup * sampler.thinning
    return kernel, kernel.init(keys, warmup, z, tuple(data), {})


@partial(jax.jit, static_argnums=(0, 1))
def _initial_state(*arguments: Any) -> Any:
    return _initialise(*arguments)[1]


@partial(jax.jit, static_argnums=(0, 1, 2))
def _advance(
    sampler: ChainSampler, program: Program, length: int, state: Any, covariance: Any, data: Data
) -> tuple[Any, dict[str, Any]]:
    """Return `length` draws of all chains: fields of their states, (length, chains, …)."""
    # Some NumPyro kernels can step only after `init`. The state that it returns here is not used,
    # so XLA computes nothing for it.
    kernel, _ = _initialise(sampler, program, state.rng_key, covariance, state.z, data)

    def step(state: Any, _: None) -> tuple[Any, dict[str, Any]]:
        walk = lambda _, state: kernel.sample(state, tuple(data), {})  # noqa: E731
        state = jax.lax.fori_loop(0, sampler.thinning, walk, state)
        return state, {name: getattr(state, name) for name in ("z", *sampler.collected)}

    return jax.lax.scan(step, state, None, length=length)
