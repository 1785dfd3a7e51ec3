"""Running the chains of a NumPyro kernel, piece by piece, with progress."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import MCMC
from numpyro.infer.mcmc import MCMCKernel

from bpa_ppl.sampling.draws import Draws, Problem

#: Statistics of NumPyro's states, and what ArviZ calls them.
ARVIZ_NAMES = {
    "accept_prob": "acceptance_rate",
    "diverging": "diverging",
    "energy": "energy",
    "num_steps": "n_steps",
    "potential_energy": "lp",
}
_PIECES = 20


def run_chains(
    kernel: MCMCKernel,
    problem: Problem,
    *,
    fields: tuple[str, ...],
    start: Any,
    chains: int,
    warmup: int,
    draws: int,
) -> Draws:
    """Run a kernel from given starting points and return its draws, those of the warm-up apart.

    NumPyro's MCMC runs the chains side by side (`vectorized`), in pieces of equal length, so
    that progress can be told and Ctrl-C is obeyed; the draws do not depend on the pieces.

    Args:
        kernel: any NumPyro kernel; it adapts itself while its own count is below `warmup`.
        problem: the posterior.
        fields: fields of the kernel's state to keep as statistics (see `ARVIZ_NAMES`).
        start: z of each chain, with leading dimension chains.
        chains, warmup, draws: how many of each.
    """
    piece = -(-(warmup + draws) // _PIECES)
    mcmc = MCMC(
        kernel,
        num_warmup=0,
        num_samples=piece,
        num_chains=chains,
        chain_method="vectorized",
        progress_bar=False,
        jit_model_args=True,
    )
    data = jax.device_put(problem.data)
    mcmc.post_warmup_state = _first_state(kernel, problem, data, start, chains, warmup)
    pieces = []
    for done in range(0, warmup + draws, piece):
        mcmc.run(mcmc.post_warmup_state.rng_key, data, extra_fields=fields)
        mcmc.post_warmup_state = mcmc.last_state
        stats = jax.device_get(mcmc.get_extra_fields(group_by_chain=True))
        pieces.append((jax.device_get(mcmc.get_samples(group_by_chain=True)), stats))
        note = f"acceptance {float(np.mean(stats['accept_prob'])):.2f}"
        problem.progress(min(done + piece, warmup + draws), warmup + draws, note)
    return _assembled(pieces, warmup, draws)


def _first_state(
    kernel: MCMCKernel, problem: Problem, data: Any, start: Any, chains: int, warmup: int
) -> Any:
    keys = jax.random.split(jax.random.key(problem.seed), chains)
    # A lone chain has no chain dimension anywhere in NumPyro.
    if chains == 1:
        start, keys = jax.tree.map(lambda x: x[0], start), keys[0]
    start = jax.tree.map(jnp.asarray, start)
    return kernel.init(keys, warmup, init_params=start, model_args=(data,), model_kwargs={})


def _assembled(pieces: list[tuple[dict, dict]], warmup: int, draws: int) -> Draws:
    """Join the pieces and cut them into warm-up and kept draws."""
    sites, stats = jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *pieces)
    kept = slice(warmup, warmup + draws)
    renamed = {ARVIZ_NAMES.get(name, name): value[:, kept] for name, value in stats.items()}
    renamed["lp"] = -renamed["lp"]
    return Draws(
        sites={name: value[:, kept] for name, value in sites.items()},
        stats=renamed,
        warmup={name: value[:, :warmup] for name, value in sites.items()},
    )
