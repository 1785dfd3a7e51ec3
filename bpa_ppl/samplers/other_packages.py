"""NUTS of BlackJAX, run as its documentation does, and NUTS of nutpie, written in Rust."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal

import jax
import numpy as np
from msgspec import Meta

from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.components import Count
from bpa_ppl.densities.mode import scatter_starts
from bpa_ppl.densities.target import Sampled, Target, unflatten
from bpa_ppl.errors import DataError
from bpa_ppl.posterior.arviz_data import as_draws
from bpa_ppl.samplers.sampler import Sampler

#: Pieces in which the chains of BlackJAX run, so that progress is reported.
_PIECES = 10
#: The name of z in the draws of nutpie.
_VECTOR = "z"
#: Statistics of nutpie, and their names in ArviZ.
_STATISTICS = {
    "depth": "tree_depth",
    "diverging": "diverging",
    "energy": "energy",
    "mean_tree_accept": "acceptance_rate",
    "n_steps": "n_steps",
    "step_size": "step_size",
}


class Blackjax(Sampler, frozen=True):
    """The No-U-Turn sampler of BlackJAX (Cabezas et al. 2024): `blackjax:nuts`.

    Its warm-up tunes metric and step in windows, as Stan's does. Chains start near the mean of the
    prior; those of another program at all modes that are found, or around the medians of its prior.
    The package is in the extra `compare`.

    Args:
        algorithm: `nuts`.
        warmup: steps that tune a chain.
        draws: kept draws of each chain.
        chains: number of chains.
        steps_per_draw: steps of the chain for each kept draw; None is 1.
    """

    variant = "algorithm"
    any_coordinates = True
    packages: ClassVar[tuple[str, ...]] = ("blackjax",)
    algorithm: Literal["nuts"] = "nuts"
    warmup: Count = 1000
    draws: Count = 1000
    chains: Count = 4
    steps_per_draw: Count | None = None

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        self.require_packages()
        keys = jax.random.split(jax.random.key(seed), self.chains)
        start = scatter_starts(target, self.chains, seed)
        keys, warm_keys = jax.vmap(jax.random.split, out_axes=1)(keys)
        states, tuned, warmup = _warm_up(self, target, warm_keys, start)
        pieces, length = [], -(-self.draws // _PIECES)
        for done in range(length, self.draws + length, length):
            keys, piece_keys = jax.vmap(jax.random.split, out_axes=1)(keys)
            states, collected = _advance(self, length, target, tuned, piece_keys, states)
            pieces.append(jax.device_get(collected))
            progress(min(done, self.draws), self.draws, self.algorithm)
        joined = {
            name: np.concatenate([piece[name] for piece in pieces], axis=1)[:, : self.draws]
            for name in pieces[0]
        }
        z = joined.pop("z")
        if not np.isfinite(z).all():
            message = "chains of BlackJAX left the region of finite densities: use the sampler nuts"
            raise DataError(message, parameter="sampler", code="not-supported")
        return Sampled(
            z=unflatten(z, target.start),
            log_density=joined.pop("log_density"),
            statistics=joined,
            warmup=unflatten(np.asarray(warmup), target.start),
        )


@partial(jax.jit, static_argnums=0)
def _warm_up(sampler: Blackjax, target: Target, keys: Any, start: Any) -> Any:
    """Return the state and the tuned settings of each chain, and the draws of the warm-up."""
    blackjax = import_module("blackjax")

    def chain(key: jax.Array, position: jax.Array) -> Any:
        warmup = blackjax.window_adaptation(
            blackjax.nuts,
            target,
            target_acceptance_rate=0.8,
            adaptation_info_fn=lambda state, info, adaptation: state.position,
        )
        (state, tuned), positions = warmup.run(key, position, sampler.warmup)
        return state, tuned, positions

    return jax.vmap(chain)(keys, start)


@partial(jax.jit, static_argnums=(0, 1))
def _advance(
    sampler: Blackjax, length: int, target: Target, tuned: Any, keys: Any, states: Any
) -> Any:
    """Return the states after `length` draws, and the draws with their statistics."""
    blackjax = import_module("blackjax")

    def chain(key: jax.Array, tuned: Any, state: Any) -> Any:
        algorithm = blackjax.nuts(target, **tuned)

        def draw(state: Any, key: jax.Array) -> Any:
            step_keys = jax.random.split(key, sampler.steps_per_draw or 1)
            state, infos = jax.lax.scan(lambda s, k: algorithm.step(k, s), state, step_keys)
            return state, {
                "z": state.position,
                "log_density": state.logdensity,
                "acceptance_rate": infos.acceptance_rate.mean(),
                "energy": infos.energy[-1],
                "n_steps": infos.num_integration_steps.sum(),
                "step_size": tuned["step_size"],
                "tree_depth": infos.num_trajectory_expansions[-1],
                "diverging": infos.is_divergent.any(),
            }

        return jax.lax.scan(draw, state, jax.random.split(key, length))

    return jax.vmap(chain)(keys, tuned, states)


class Nutpie(Sampler, frozen=True):
    """NUTS of nutpie (Seyboldt et al.), which tunes its metric by draws and gradients.

    Each chain runs in a thread and starts near the mean of the prior, or at all modes that are
    found of another program. The package is in the extra `compare`; it needs an ArviZ below 1, and
    so Python 3.11.

    Args:
        warmup: draws that tune a chain.
        draws: kept draws of each chain.
        chains: number of chains.
        target_accept: acceptance that the warm-up aims at.
    """

    any_coordinates = True
    packages: ClassVar[tuple[str, ...]] = ("nutpie",)
    warmup: Count = 400
    draws: Count = 1000
    chains: Count = 4
    target_accept: Annotated[float, Meta(gt=0, lt=1)] = 0.8

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        self.require_packages()
        starts = scatter_starts(target, self.chains, seed)
        progress(0, 1, "nutpie")
        model = import_module("nutpie.compiled_pyfunc").from_pyfunc(
            ndim=target.dimension,
            make_logp_fn=lambda: target.value_and_gradient,
            make_expand_fn=lambda *_: lambda z: {_VECTOR: np.array(z)},
            expanded_dtypes=[np.dtype("float64")],
            expanded_shapes=[(target.dimension,)],
            expanded_names=[_VECTOR],
            make_initial_point_fn=lambda chain: starts[chain % self.chains],
        )
        target.value_and_gradient(starts[0])  # compiled before the threads begin
        run = import_module("nutpie").sample(
            model,
            draws=self.draws,
            tune=self.warmup,
            chains=self.chains,
            seed=seed,
            target_accept=self.target_accept,
            progress_bar=False,
            blocking=False,
        )
        try:
            draws = as_draws(run.wait())
        except RuntimeError as error:
            message = f"nutpie failed ({error}): use the sampler nuts"
            raise DataError(message, parameter="sampler", code="not-supported") from error
        except BaseException:  # Ctrl-C included
            run.cancel()
            raise
        progress(1, 1, "nutpie")
        statistics = draws.statistics
        return Sampled(
            z=unflatten(draws.values[_VECTOR], target.start),
            log_density=statistics["logp"],
            statistics={title: statistics[name] for name, title in _STATISTICS.items()},
            warmup=unflatten(draws.warmup[_VECTOR], target.start),
        )
