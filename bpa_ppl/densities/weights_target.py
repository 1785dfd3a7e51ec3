"""The posterior of the weights of lists: a NumPyro program of lists, a prior and a likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp

from bpa_ppl.densities.coordinates import choose_coordinates
from bpa_ppl.densities.mode import (
    find_mode,
    is_large_hierarchy,
    is_usable_start,
    make_start_error,
    start_at_medians,
)
from bpa_ppl.densities.own_models import explain_errors
from bpa_ppl.densities.target import (
    ListData,
    Sites,
    Target,
    inspect_model,
    unflatten,
)
from bpa_ppl.models.likelihoods.likelihood import Likelihood
from bpa_ppl.models.lists import Lists
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.models.priors.prior import Prior
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.weights import Match

#: A NumPyro program over lists, a prior and a likelihood.
Model = Callable[[Lists, Prior, Likelihood], None]


def make_weights_target(
    lists: Lists,
    prior: Prior,
    match: Match,
    likelihood: Likelihood,
    model: Model = log_linear,
    seed: int = 0,
) -> Target:
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

    def build(likelihood: Likelihood) -> Target:
        prepared, observing = likelihood.prepare(lists)
        on_device, arrays = jax.device_put((prepared, prior.as_arrays()))
        data = ListData(on_device, arrays)
        return Target(
            model=model, data=data, start={}, likelihood=observing, match=match, seed=seed
        )

    target = build(likelihood)
    start, log_concave = find_start(target), likelihood.log_concave_start()
    if log_concave is not None and not is_large_hierarchy(replace(target, start=start)):
        simple = build(log_concave)
        common = {name: start[name] for name in inspect_model(simple).latent}
        chosen = choose_coordinates(replace(simple, start=common))
        mode = find_mode(chosen)
        if mode.converged:
            z = unflatten(mode.position, chosen.start)
            start = {**start, **chosen.coordinates.restore_sites(z)}
    return replace(target, start=start)


def find_start(target: Target) -> Sites:
    """Return z at the mean of the prior, (site shape) each; other sites at their prior's median.

    A random start would be far from probable values of scales, and in a hierarchy even farther
    for everything that is multiplied by a scale. Weights start at their prior's median, too, where
    the mean of the prior is outside their support, or the density is 0 or has no gradient there.

    Raises:
        UsageError: if the density is 0, or it or its gradient is not a number, at both.
    """
    prior, info = target.prior, inspect_model(target)
    simple = target.is_log_linear and prior.other is None
    if simple and info.unconstrained and info.latent == (WEIGHTS,):
        return {WEIGHTS: prior.mean}
    with explain_errors(target.model):
        for mean in (prior.mean, jnp.full_like(prior.mean, jnp.nan)):
            z: Sites = start_at_medians(target, mean)
            # A simple model has a density there: compiling its gradient would take long.
            if simple or is_usable_start(target, z):
                return z
        raise make_start_error(target, z)
