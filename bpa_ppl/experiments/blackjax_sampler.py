"""Algorithms of BlackJAX: NUTS, MCLMC and Pathfinder, run as its documentation does."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any, ClassVar, Literal

import jax
import numpy as np

from bpa_ppl.component import Count
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.posterior.statistics import pareto_smoothed
from bpa_ppl.sampling.base import Sampler
from bpa_ppl.sampling.density import evaluate, unflatten
from bpa_ppl.sampling.target import Sampled, Target

_PIECES = 10
#: Shares of the warm-up of MCLMC in which it tunes the step, the metric and step, and the length
#: of the trajectories. A third is added to the second one.
_TUNING = {"frac_tune1": 0.4, "frac_tune2": 0.3, "frac_tune3": 0.2}
_SHORT_STEPS = 10  # of MCLMC for each draw
#: Gradients in a step of MCLMC's integrator (McLachlan 1995).
_GRADIENTS = 2


class Blackjax(Sampler, frozen=True):
    """An algorithm of BlackJAX (Cabezas et al. 2024), with its own tuning: `blackjax:nuts`.

    * `nuts`: the No-U-Turn sampler, after a warm-up that tunes metric and step in windows, as
      Stan's does.
    * `mclmc`: microcanonical Langevin Monte Carlo (Robnik et al. 2023), unadjusted: no step is
      rejected, so the draws have a small bias. It needs at least two weights.
    * `pathfinder`: draws from the Gaussian that Pathfinder (Zhang et al. 2022) finds on its way to
      the mode, with Pareto-smoothed importance weights.

    Chains start near the mean of the prior. The package is in the extra `compare`.

    Args:
        algorithm: `nuts`, `mclmc` or `pathfinder`.
        warmup: steps that tune a chain; none for Pathfinder.
        draws: kept draws of each chain, or of Pathfinder.
        chains: number of chains; Pathfinder has one.
        steps_per_draw: None is 1, and 10 for `mclmc`, whose steps are short.
    """

    variant = "algorithm"
    packages: ClassVar[tuple[str, ...]] = ("blackjax",)
    algorithm: Literal["nuts", "mclmc", "pathfinder"] = "nuts"
    warmup: Count = 1000
    draws: Count = 1000
    chains: Count = 4
    steps_per_draw: Count | None = None

    def sample(self, target: Target) -> Sampled:
        """Draw by an algorithm of BlackJAX."""
        self.require_packages()
        if self.algorithm == "pathfinder":
            return self._pathfinder(target)
        if self.algorithm == "mclmc" and target.dimension < 2:
            raise UsageError(
                "MCLMC needs at least two weights: use blackjax:nuts",
                parameter="sampler",
                code="not-supported",
            )
        keys = jax.random.split(jax.random.key(target.seed), self.chains)
        start = target.initial_positions(self.chains, target.seed)
        keys, warm_keys = jax.vmap(jax.random.split, out_axes=1)(keys)
        states, tuned, warmup = _warm_up(self, target, warm_keys, start)
        pieces, length = [], -(-self.draws // _PIECES)
        for done in range(length, self.draws + length, length):
            keys, piece_keys = jax.vmap(jax.random.split, out_axes=1)(keys)
            states, collected = _advance(self, length, target, tuned, piece_keys, states)
            pieces.append(jax.device_get(collected))
            target.progress(min(done, self.draws), self.draws, self.algorithm)
        joined = {
            name: np.concatenate([piece[name] for piece in pieces], axis=1)[:, : self.draws]
            for name in pieces[0]
        }
        z = joined.pop("z")
        if not np.isfinite(z).all():
            raise _failed("its chains left the region of finite densities")
        return Sampled(
            z=unflatten(z, target.start),
            log_density=joined.pop("log_density"),
            statistics=joined,
            warmup={} if warmup is None else unflatten(np.asarray(warmup), target.start),
        )

    def _pathfinder(self, target: Target) -> Sampled:
        """Draw from the approximation of Pathfinder, and weight the draws."""
        start = target.initial_positions(1, target.seed)[0]
        approximation = _approximate(self, target, jax.random.key(target.seed), start)
        z, log_q, elbo = jax.device_get(approximation)
        if not (np.isfinite(z).all() and np.isfinite(elbo)):
            raise _failed("it found no approximation of this posterior")
        sites = unflatten(z[None], target.start)
        log_density, log_likelihood = evaluate(target, sites)
        log_weight, k_hat = pareto_smoothed(log_density - log_q[None])
        target.progress(self.draws, self.draws, f"Pareto k̂ {k_hat:.2f}")
        return Sampled(
            z=sites,
            kind="weighted",
            log_density=log_density,
            log_weight=log_weight,
            log_likelihood=log_likelihood,
            attrs={"pareto_k": k_hat, "elbo": float(elbo)},
        )


def _failed(problem: str) -> DataError:
    return DataError(
        f"the sampler of BlackJAX failed: {problem}; use the sampler nuts",
        parameter="sampler",
        code="not-supported",
    )


@partial(jax.jit, static_argnums=0)
def _approximate(sampler: Blackjax, target: Target, key: jax.Array, start: Any) -> Any:
    """Return draws of Pathfinder, (draws, d), their log q, (draws,), and the ELBO."""
    pathfinder = import_module("blackjax").vi.pathfinder
    path_key, draw_key = jax.random.split(key)
    state, _ = pathfinder.approximate(path_key, target, start)
    z, log_q = pathfinder.sample(draw_key, state, sampler.draws)
    return z, log_q, state.elbo


@partial(jax.jit, static_argnums=0)
def _warm_up(sampler: Blackjax, target: Target, keys: Any, start: Any) -> Any:
    """Return the state and the tuned settings of each chain, and the draws of the warm-up.

    MCLMC does not return the draws of its warm-up: they are None.
    """
    blackjax = import_module("blackjax")

    def nuts(key: jax.Array, position: jax.Array) -> Any:
        warmup = blackjax.window_adaptation(
            blackjax.nuts,
            target,
            target_acceptance_rate=0.8,
            adaptation_info_fn=lambda state, info, adaptation: state.position,
        )
        (state, tuned), positions = warmup.run(key, position, sampler.warmup)
        return state, tuned, positions

    def mclmc(key: jax.Array, position: jax.Array) -> Any:
        init_key, tune_key = jax.random.split(key)
        state, tuned, _ = blackjax.mclmc_find_L_and_step_size(
            mclmc_kernel=blackjax.mclmc.build_kernel(),
            num_steps=sampler.warmup,
            state=blackjax.mclmc.init(position, target, init_key),
            rng_key=tune_key,
            logdensity_fn=target,
            **_TUNING,
        )
        return state, tuned._asdict(), None

    return jax.vmap(nuts if sampler.algorithm == "nuts" else mclmc)(keys, start)


@partial(jax.jit, static_argnums=(0, 1))
def _advance(
    sampler: Blackjax, length: int, target: Target, tuned: Any, keys: Any, states: Any
) -> Any:
    """Return the states after `length` draws, and the draws with their statistics."""
    blackjax = import_module("blackjax")
    steps = sampler.steps_per_draw or (_SHORT_STEPS if sampler.algorithm == "mclmc" else 1)

    def chain(key: jax.Array, tuned: Any, state: Any) -> Any:
        algorithm = getattr(blackjax, sampler.algorithm)(target, **tuned)

        def draw(state: Any, key: jax.Array) -> Any:
            step_keys = jax.random.split(key, steps)
            state, infos = jax.lax.scan(lambda s, k: algorithm.step(k, s), state, step_keys)
            collected = {"z": state.position, "log_density": state.logdensity}
            if sampler.algorithm == "mclmc":
                return state, {
                    **collected,
                    "energy_change": infos.energy_change[-1],
                    "n_steps": _GRADIENTS * steps,
                }
            return state, {
                **collected,
                "acceptance_rate": infos.acceptance_rate.mean(),
                "energy": infos.energy[-1],
                "n_steps": infos.num_integration_steps.sum(),
                "diverging": infos.is_divergent.any(),
            }

        return jax.lax.scan(draw, state, jax.random.split(key, length))

    return jax.vmap(chain)(keys, tuned, states)
