"""Variational guides of NumPyro, fitted by SVI and corrected by importance weights."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.flatten_util import ravel_pytree
from numpyro import handlers
from numpyro.infer import SVI, Trace_ELBO, autoguide, init_to_value
from numpyro.infer.mcmc import MCMCKernel
from numpyro.optim import Adam

from bpa_ppl.arrays import Float64
from bpa_ppl.component import Count, Positive
from bpa_ppl.errors import BpaError, NotConverged, UsageError
from bpa_ppl.posterior.statistics import pareto_smoothed
from bpa_ppl.sampling.base import Sampler, require_memory
from bpa_ppl.sampling.density import evaluate, potential, unflatten
from bpa_ppl.sampling.kernels import REFUSALS, NumpyroKernel, NumpyroSampler, is_plain, refused
from bpa_ppl.sampling.target import Sampled, Target

#: The guides of NumPyro whose density can be evaluated.
GUIDES = (
    "AutoBNAFNormal",
    "AutoDiagonalNormal",
    "AutoIAFNormal",
    "AutoLaplaceApproximation",
    "AutoLowRankMultivariateNormal",
    "AutoMultivariateNormal",
    "AutoNormal",
)
_PIECES = 20  # of the fit, so that progress is reported
_SITE = "z"


class Guide(NumpyroSampler, frozen=True):
    """An automatic guide of NumPyro, fitted to the unconstrained values of the model by SVI.

    Adam maximises the ELBO (Kucukelbir et al. 2017), from the prior's mean, with a learning rate
    that falls linearly to 0. The draws of the guide have Pareto-smoothed importance weights
    p(z, data) / q(z), so that their k̂ shows how well the guide fits (Yao et al. 2018), and moments
    are those of the posterior. The ELBO of each step is stored with the posterior, as `elbo`.

    Args:
        guide: its name in `numpyro.infer.autoguide`.
        steps: of the optimiser.
        learning_rate: of Adam, at the first step.
        particles: draws that estimate the gradient of a step.
        draws: of the fitted guide.

    >>> from bpa_ppl.sampling.base import SAMPLERS
    >>> SAMPLERS.resolve("svi:AutoLowRankMultivariateNormal", {"rank": 2}).settings()["rank"]
    2
    """

    variant = "guide"
    module = autoguide
    names = GUIDES
    excluded = ("model", "prefix", "init_loc_fn", "create_plates")
    guide: str = "AutoMultivariateNormal"
    steps: Count = 2000
    learning_rate: Positive = 0.02
    particles: Count = 10
    draws: Count = 4000

    def sample(self, target: Target) -> Sampled:
        """Fit the guide, and draw from it.

        Raises:
            NotConverged: if the fit diverges.
            UsageError: if the guide cannot be made with its settings.
        """
        require_memory(target, self.draws)
        try:
            elbo, flat, log_q = self._fitted(target)
        except BpaError:
            raise
        except REFUSALS as error:
            raise refused(self.guide, error) from error
        z = unflatten(flat[None], target.start)
        log_p, log_likelihood = evaluate(target, z)
        log_weight, k_hat = pareto_smoothed(log_p - log_q[None])
        return Sampled(
            z=z,
            kind="weighted",
            log_density=log_p,
            log_weight=log_weight,
            log_likelihood=log_likelihood,
            constants={"elbo": elbo},
            attrs={"pareto_k": k_hat},
        )

    def _fitted(self, target: Target) -> tuple[Float64, Float64, Float64]:
        """Return the ELBO of each step, and draws of the fitted guide with their log densities."""
        fit_key, draw_key = jax.random.split(jax.random.key(target.seed))
        state = _initial_state(self, target, fit_key)
        elbo, length = np.empty(self.steps), -(-self.steps // _PIECES)
        for first in range(0, self.steps, length):
            piece = elbo[first : first + length]
            state, losses = _fit(self, target, length, state, len(piece))
            piece[:] = -np.asarray(losses)[: len(piece)]
            if not np.isfinite(piece[-1]):
                finite = first + int(np.isfinite(piece).sum())
                self._refuse_fit(f"its ELBO is not finite after step {finite}")
            target.progress(first + len(piece), self.steps, f"ELBO {piece.mean():.1f}")
        flat, log_q = map(np.asarray, _draw(self, target, state, draw_key))
        if not (np.isfinite(flat).all() and np.isfinite(log_q).all()):
            self._refuse_fit("its density is not finite")
        return elbo, flat, log_q

    def _refuse_fit(self, reason: str) -> NoReturn:
        raise NotConverged(
            f"the fit of the guide {self.guide} diverged, {reason}: lower the learning rate "
            f"(learning_rate={self.learning_rate / 10:g}), or use a Markov-chain sampler",
            parameter="sampler",
        )


def _fitting(guide: Guide, target: Target) -> tuple[SVI, Any]:
    """Return what fits the guide to the flat values of a target, and the guide itself."""
    start = ravel_pytree(target.start)[0]

    def model() -> None:
        real = dist.constraints.real_vector
        flat = numpyro.sample(_SITE, dist.ImproperUniform(real, (), start.shape))
        numpyro.factor("log_density", -potential(target, unflatten(flat, target.start)))

    instance = guide.wrapped()(
        model, init_loc_fn=init_to_value(values={_SITE: start}), **dict(guide.options)
    )
    optimiser = Adam(lambda step: guide.learning_rate * (1 - step / guide.steps))
    return SVI(model, instance, optimiser, Trace_ELBO(num_particles=guide.particles)), instance


@partial(jax.jit, static_argnums=0)
def _initial_state(guide: Guide, target: Target, key: jax.Array) -> Any:
    return _fitting(guide, target)[0].init(key)


@partial(jax.jit, static_argnums=(0, 2))
def _fit(
    guide: Guide, target: Target, length: int, state: Any, count: jax.Array
) -> tuple[Any, jax.Array]:
    """Return the state after `count` steps, and the losses in an array of the given length."""
    svi, _ = _fitting(guide, target)
    svi.init(state.rng_key)  # SVI steps only after it; the state is not used

    def step(i: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
        state, loss = svi.update(carry[0])
        return state, carry[1].at[i].set(loss)

    fitted, losses = jax.lax.fori_loop(0, count, step, (state, jnp.zeros(length)))
    return fitted, losses


@partial(jax.jit, static_argnums=0)
def _draw(guide: Guide, target: Target, state: Any, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return draws of the fitted guide, flat, (draws, d), and their log densities, (draws,)."""
    svi, made = _fitting(guide, target)
    svi.init(state.rng_key)
    parameters = svi.get_params(state)
    if isinstance(made, autoguide.AutoContinuous):
        fitted = made.get_posterior(parameters)
    else:
        seeded = handlers.seed(handlers.substitute(made, parameters), key)
        fitted = handlers.trace(seeded).get_trace()[_SITE]["fn"]

    def draw(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        # Some flows have no inverse; the values from which a draw is transformed replace it.
        flat, values = fitted.sample_with_intermediates(key)
        log_q = fitted.log_prob(flat, values) if values else fitted.log_prob(flat)
        return flat, log_q.sum()  # AutoDiagonalNormal has a density for each value

    flat, log_q = jax.vmap(draw)(jax.random.split(key, guide.draws))
    return flat, log_q


def from_numpyro(chosen: Any, settings: Mapping[str, Any]) -> Sampler | None:
    """Return the sampler that runs a kernel or a guide of NumPyro; None for other objects.

    Args:
        chosen: a class of kernels or guides, such a class with settings (`functools.partial`), a
            function of a model that returns a kernel, or a kernel.
        settings: of the sampler.

    >>> from numpyro.infer import HMC
    >>> from_numpyro(partial(HMC, init_strategy=init_to_value), {})
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: init_strategy of HMC is given by adapt: leave it out
    >>> from_numpyro(partial(HMC, num_steps=5), {"draws": 200}).settings()["num_steps"]
    5
    """
    factory: Any = chosen
    keywords = dict[str, Any]()
    while isinstance(factory, partial) and not factory.args:
        factory, keywords = factory.func, {**factory.keywords, **keywords}
    is_class = inspect.isclass(factory)
    is_guide = is_class and issubclass(factory, autoguide.AutoGuide)
    is_kernel = issubclass(factory, MCMCKernel) if is_class else callable(factory)
    if not (is_guide or is_kernel or isinstance(factory, MCMCKernel)):
        return None
    kind: type[NumpyroSampler] = Guide if is_guide else NumpyroKernel
    name = getattr(factory, "__name__", type(factory).__name__)
    if used := [keyword for keyword in keywords if keyword in kind.excluded]:
        problem = f"{used[0]} of {name} is given by adapt: leave it out"
        raise UsageError(problem, parameter="sampler", code="conflict")
    plain = {keyword: value for keyword, value in keywords.items() if is_plain(value)}
    others = {keyword: value for keyword, value in keywords.items() if keyword not in plain}
    values = {kind.variant: name, **plain, **settings}
    if others or getattr(kind.module, name, None) is not factory:
        values["factory"] = partial(factory, **others) if others else factory
    return kind.configured(f"sampler {name}", values)
