"""Running the chains of a kernel, piece by piece, with progress."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from bpa_ppl._runtime.messages import log_info
from bpa_ppl._runtime.progress import Reporter, is_reported
from bpa_ppl.components import Count, CountOrNone
from bpa_ppl.densities.target import Sampled, Sites, Target
from bpa_ppl.samplers.sampler import Sampler

#: Statistics of NumPyro's states, and their names in ArviZ.
ARVIZ_NAMES = {
    "accept_prob": "acceptance_rate",
    "diverging": "diverging",
    "energy": "energy",
    "num_steps": "n_steps",
}
_NUM_STEPS = "num_steps"  # is added up over the steps between two draws
#: Pieces at least, and draws and steps of a piece at most, if a draw has fewer: an interrupted
#: program ends after its piece, and the first ones give an estimate of the time.
_PIECES, _PIECE_DRAWS, _PIECE_STEPS = 20, 100, 10_000
#: Seconds from which on the time that remains is logged.
_SILENT_SECONDS = 20.0


#: A kernel, applied to all chains at once: the initial state; a function that
#: returns the state after one step of each chain; and one that returns what is kept of a state, by
#: name, with leading dimension chains: `z` and the statistics.
Chains = tuple[Any, Callable[[Any], Any], Callable[[Any], dict[str, Any]]]


class ChainSampler(Sampler, frozen=True):
    """A sampler that runs chains of a kernel; each draw is `thinning` steps after the last."""

    warmup: CountOrNone = 100
    draws: Count = 1000
    chains: Count = 4
    thinning: Count = 1

    def initialise(self, target: Target, covariance: Any, keys: jax.Array, z: Sites) -> Chains:
        """Return the chains at their starting points; called while compiling.

        It does not depend on `draws`, so that one compilation serves any number of them.
        """
        raise NotImplementedError


def run_chains(
    sampler: Any, target: Target, covariance: Any, start: Sites, seed: int, progress: Reporter
) -> Sampled:
    """Run a kernel from given starting points and return its draws, warm-up separate.

    The chains run side by side, in pieces of equal length, so that progress is reported and
    Ctrl-C works; the draws do not depend on the pieces. NumPyro's MCMC would compile its loop
    again for each piece; here one compilation serves all pieces, and all data of the same shapes.
    They are one program, since two may not run at the same time (see `NUMPYRO_LOCK`).

    Args:
        sampler: a `ChainSampler`, or another one with its settings and its method `initialise`.
        target: the posterior.
        covariance: the kernel's covariance, or None.
        start: z of each chain, with leading dimension chains.
        seed: of the chains.
        progress: called after each piece.
    """
    total = sampler.warmup + sampler.draws
    chains = len(next(iter(start.values())))
    most = min(max(_PIECE_STEPS // sampler.thinning, 1), _PIECE_DRAWS)
    length = min(-(-total // _PIECES), most)
    keys = jax.random.split(jax.random.key(seed), chains)
    progress(0, total, "compiling")
    arguments = (target, covariance, keys, start)
    compiled_for = msgspec.structs.replace(sampler, draws=1)
    state = _initial_state(compiled_for, *arguments)
    joined: Any = None  # arrays (draws, chains, …)
    compiled, rows = 0.0, -(-total // length) * length
    for first in range(0, rows, length):
        done = first + length
        state, collected = _advance(compiled_for, length, state, *arguments)
        piece = jax.device_get(collected)
        if joined is None:
            joined = jax.tree.map(lambda x: np.empty((rows, *x.shape[1:]), x.dtype), piece)
        for array, part in zip(jax.tree.leaves(joined), jax.tree.leaves(piece), strict=True):
            array[first:done] = part
        rate = piece.get("accept_prob")
        notes = ["warm-up" if done <= sampler.warmup else "draws"]
        notes += [] if rate is None else [f"acceptance {float(np.mean(rate)):.2f}"]
        progress(min(done, total), total, ", ".join(notes))
        # The first piece has the time of the compilation.
        if done == length:
            compiled = perf_counter()
        elif done == 2 * length:
            _log_remaining((perf_counter() - compiled) * (total - done) / length, total)
    joined = jax.tree.map(lambda array: np.swapaxes(array, 0, 1), joined)
    z = joined.pop("z")
    warmup, kept = slice(sampler.warmup), slice(sampler.warmup, total)
    energy = joined.pop("potential_energy", None)
    return Sampled(
        z={name: value[:, kept] for name, value in z.items()},
        log_density=None if energy is None else -energy[:, kept],
        statistics={ARVIZ_NAMES.get(name, name): value[:, kept] for name, value in joined.items()},
        warmup={name: value[:, warmup] for name, value in z.items()},
    )


def collect_trajectory(state: Any, *, is_nuts: bool) -> dict[str, Any]:
    """Return what ArviZ keeps of the last trajectory of a kernel of NumPyro, by ArviZ's names.

    Args:
        state: of the kernel; one that adapts its step has `adapt_state`.
        is_nuts: whether NUTS doubles its trajectories; `tree_depth` is how often it did.

    >>> from types import SimpleNamespace
    >>> state = SimpleNamespace(num_steps=jnp.array([1, 3, 6, 7]))
    >>> collect_trajectory(state, is_nuts=True)["tree_depth"].tolist()
    [1, 2, 3, 3]
    """
    adapted: Any = getattr(state, "adapt_state", None)
    collected = {"step_size": adapted.step_size} if hasattr(adapted, "step_size") else {}
    if is_nuts:
        collected["tree_depth"] = jnp.floor(jnp.log2(state.num_steps)).astype(int) + 1
    return collected


def _log_remaining(seconds: float, total: int) -> None:
    """Log a first estimate of the time that remains, if it is long and progress is reported."""
    if seconds >= _SILENT_SECONDS and is_reported():
        duration = f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
        log_info(f"sampling takes about {duration} ({total:,} draws a chain with the warm-up)")


@partial(jax.jit, static_argnums=0)
def _initial_state(sampler: Any, *arguments: Any) -> Any:
    def with_type(value: Any) -> jax.Array:
        array = jnp.asarray(value)
        is_key = jnp.issubdtype(array.dtype, jax.dtypes.prng_key)
        return array if is_key else array.astype(array.dtype)

    # Counters that NumPyro begins as Python's numbers have a weak type, which they lose in a step:
    # `_advance` would be compiled again after the first piece.
    return jax.tree.map(with_type, sampler.initialise(*arguments)[0])


@partial(jax.jit, static_argnums=(0, 1))
def _advance(sampler: Any, length: int, state: Any, *arguments: Any) -> tuple[Any, dict[str, Any]]:
    """Return `length` draws of all chains: fields of their states, (length, chains, …)."""
    # Some NumPyro kernels can step only after `init`. The state that it returns here is not used,
    # so XLA computes nothing for it.
    _, advance, collect = sampler.initialise(*arguments)

    def walk(_: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
        state = advance(carry[0])
        return state, carry[1] + collect(state).get(_NUM_STEPS, 0)

    def step(state: Any, _: None) -> tuple[Any, dict[str, Any]]:
        none = jnp.zeros_like(collect(state).get(_NUM_STEPS, 0))
        state, steps = jax.lax.fori_loop(0, sampler.thinning, walk, (state, none))
        collected = collect(state)
        return state, collected | ({_NUM_STEPS: steps} if _NUM_STEPS in collected else {})

    return jax.lax.scan(step, state, None, length=length)
