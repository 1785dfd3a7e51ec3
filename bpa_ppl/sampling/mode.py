"""The mode of a posterior by Newton's method, with the Laplace covariance; the sampler `map`."""

from __future__ import annotations

from dataclasses import replace
from weakref import WeakKeyDictionary

import jax
import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.errors import DataError
from bpa_ppl.models.likelihoods.likelihood import Likelihood
from bpa_ppl.models.lists import Lists
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.models.priors.prior import Prior
from bpa_ppl.sampling.coordinates import choose_coordinates
from bpa_ppl.sampling.newton import MAX_ITERATIONS, Mode, Point, maximise
from bpa_ppl.sampling.sampler import Sampler
from bpa_ppl.sampling.target import (
    Sampled,
    Sites,
    Target,
    inspect_model,
    potential,
    unflatten,
)
from bpa_ppl.sampling.weights_target import Model, WeightsTarget, find_start
from bpa_ppl.weights import Match

#: The mode of a hierarchy of more values is not searched: its Hessian is expensive.
_MOST_SEARCHED = 1000


def _is_large_hierarchy(target: Target) -> bool:
    """Return whether a model with several sites has too many values for Newton's method."""
    return not target.is_log_linear and target.dimension > _MOST_SEARCHED


@jax.jit
def _differentiate(target: Target, position: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the potential at a flat position, its gradient and its Hessian."""

    def slope(flat: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        result = jax.value_and_grad(lambda x: potential(target, unflatten(x, target.start)))(flat)
        return result[1], result

    # Forward over reverse, because the gradient of the likelihood is a custom rule.
    hessian, (value, gradient) = jax.jacfwd(slope, has_aux=True)(position)
    return value, gradient, hessian


def find_mode(target: Target) -> Mode:
    """Find the mode from the starting point, with an exact gradient and Hessian.

    The default model is log-concave, so that the search converges from anywhere; for other models
    this finds a local mode. The search runs in NumPy: a handful of steps is not worth the
    compilation of its loops.

    Raises:
        DataError: if it is a hierarchy of more than 1000 values.
    """
    if _is_large_hierarchy(target):
        raise DataError(
            f"the mode of a hierarchy of {target.dimension:,} values is not searched, as it would "
            "take too long: use the sampler nuts, which needs no mode",
            parameter="sampler",
            code="not-supported",
        )

    def density(position: Float64) -> Point:
        energy, gradient, hessian = jax.device_get(_differentiate(target, position))
        return Point(-float(energy), -gradient, hessian)

    target.progress(0, 1, "search for the mode")
    start = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(target.start)])
    return maximise(density, start)[0]


#: The modes of posteriors, so that each is searched once.
_MODES: WeakKeyDictionary[Target, Mode] = WeakKeyDictionary()


def mode_of(target: Target) -> Mode:
    """Return the mode of a posterior; the search runs once for each target."""
    if target not in _MODES:
        _MODES[target] = find_mode(target)
    return _MODES[target]


def require_mode(target: Target) -> Mode:
    """Return the mode of a posterior.

    Raises:
        DataError: if the search did not converge.
    """
    mode = mode_of(target)
    if not mode.converged:
        raise DataError(
            f"no mode of this posterior was found in {MAX_ITERATIONS} Newton steps: use the "
            "sampler nuts, which needs no mode",
            parameter="sampler",
        )
    return mode


def make_target(
    lists: Lists,
    prior: Prior,
    match: Match,
    likelihood: Likelihood,
    model: Model = log_linear,
    seed: int = 0,
) -> WeightsTarget:
    """Return the log density of a posterior with its starting point; x64 must be enabled.

    It starts at the mean of the prior or, where the likelihood is not log-concave, at the mode of a
    similar one that is, unless it is a hierarchy of more than 1000 values.

    Args:
        lists: the data.
        prior: of the free features.
        match: the weights, matched to the features.
        likelihood: with all its settings.
        model: the NumPyro program.
        seed: the only source of randomness.
    """

    def build(likelihood: Likelihood) -> WeightsTarget:
        prepared, observing = likelihood.prepare(lists)
        on_device, arrays = jax.device_put((prepared, prior.as_arrays()))
        return WeightsTarget(
            model=model,
            likelihood=observing,
            lists=on_device,
            prior=arrays,
            start={},
            match=match,
            seed=seed,
        )

    target = build(likelihood)
    start, log_concave = find_start(target), likelihood.log_concave_start()
    if log_concave is not None and not _is_large_hierarchy(replace(target, start=start)):
        simple = build(log_concave)
        common = {name: start[name] for name in inspect_model(simple).latent}
        coordinates = choose_coordinates(replace(simple, start=common))
        mode = find_mode(coordinates.target)
        if mode.converged:
            z = unflatten(mode.position, coordinates.target.start)
            start = {**start, **coordinates.restore_sites(z)}
    return replace(target, start=start)


def disperse_starts(target: Target, mode: Mode, chains: int) -> Sites:
    """Return z of a start for each chain, drawn from N(mode, 2 × Laplace).

    They are wider than the posterior, so that chains that still depend on their start disagree.
    """
    rng = np.random.default_rng([target.seed, 2])
    draws = rng.multivariate_normal(mode.position, 2 * mode.covariance, size=chains)
    return unflatten(draws, target.start)


class PosteriorMode(Sampler, frozen=True):
    """The mode of the posterior as its only draw; it has no settings.

    >>> PosteriorMode()
    PosteriorMode()
    """

    title = "mode of the posterior (maximum a posteriori)"
    any_coordinates = True
    exact = False

    def sample(self, target: Target) -> Sampled:
        """Return the mode of the posterior."""
        mode = mode_of(target)
        target.progress(1, 1, f"{mode.iterations} Newton steps")
        z = unflatten(mode.position, target.start)
        return Sampled(
            z=jax.tree.map(lambda value: value[None, None], z),
            kind="point",
            log_density=np.full((1, 1), -mode.potential_energy),
            mode=mode.position,
            figures=mode.figures,
        )
