"""The posterior of the weights of lists: a NumPyro program of lists, a prior and a likelihood."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np

from bpa_ppl._runtime.arrays import Int64
from bpa_ppl.adapting.observations import Compared, Scored
from bpa_ppl.densities.own_models import (
    LISTS,
    CheckedSites,
    explain_errors,
    find_unused,
    require_shape,
)
from bpa_ppl.densities.target import (
    Sites,
    Target,
    draw_prior,
    inspect_model,
    is_usable_start,
    make_start_error,
    start_at_medians,
)
from bpa_ppl.errors import UsageError
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.models.likelihoods.likelihood import Likelihood
from bpa_ppl.models.lists import Lists, find_order
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.models.priors.prior import Prior
from bpa_ppl.posterior.draws import WEIGHTS, Draws
from bpa_ppl.posterior.record import Record
from bpa_ppl.weights import Match

#: A NumPyro program over lists, a prior and a likelihood.
Model = Callable[[Lists, Prior, Likelihood], None]
_NO_FEATURES = Match((), np.zeros(0), np.zeros(0, bool))


@dataclass(frozen=True, eq=False, kw_only=True)
class Adaptation:
    """What the posterior of an adaptation was made from, for its record.

    Attributes:
        lists: all adaptation lists, with their features.
        observed: what was observed of them.
        record: of the posterior, without the sampler.
        constants: arrays that the posterior keeps.
        earlier: the draws of the posterior whose Gaussian is the prior, or None.
        without_indicators: the target in which the weights of indicators, such as systems, are 0;
            None if there are no indicators, or no other features.
    """

    lists: NBest
    observed: Scored | Compared
    record: Record
    constants: Mapping[str, Any]
    earlier: Draws | None = None
    without_indicators: WeightsTarget | None = None


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("lists", "prior", "start"),
    meta_fields=("model", "likelihood"),
    drop_fields=("match", "seed", "progress", "adaptation"),
)
@dataclass(frozen=True, eq=False, kw_only=True)
class WeightsTarget(Target):
    """The posterior of the weights of lists: what `log_density` returns.

    Attributes:
        model: a function of lists, a prior and a likelihood.
        likelihood: its last argument.
        lists: the tabulated sentences, on JAX's device.
        prior: of the free features.
        start: z by site, at the mean of the prior.
        match: the canonical weights, matched to the features of the lists; like the following one
            not part of the density.
        adaptation: what `to_posterior` records of draws of any algorithm; None if the density is
            not that of an adaptation.

    >>> from bpa_ppl import from_lists, log_density
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> target = log_density(lists, {"LM0": 0.5})
    >>> target.features, target.is_log_linear, target.lists.features
    (('LM0',), True, 1)
    """

    model: Model
    likelihood: Likelihood
    lists: Lists
    prior: Prior
    match: Match = _NO_FEATURES
    adaptation: Adaptation | None = None

    def program(self, lists: Lists, prior: Prior) -> None:
        """Run the model: a NumPyro program of the arrays of `data`."""
        self.model(lists, prior, self.likelihood)

    @property
    def data(self) -> tuple[Lists, Prior]:
        """The arguments of the program."""
        return self.lists, self.prior

    @property
    def features(self) -> tuple[str, ...]:
        """The features that the site `weights` has a value for."""
        return self.match.free_names

    @property
    def uses_prior(self) -> bool:
        """Whether the weights have the prior: a model may have `uses_prior = False`."""
        return bool(getattr(self.model, "uses_prior", True))

    @property
    def is_log_linear(self) -> bool:
        """Whether the model is the log-linear one."""
        return self.model is log_linear

    @property
    def runs_in_threads(self) -> bool:
        """Whether blocks of draws are evaluated in parallel.

        A model or distribution of a user may call LAPACK: see `NUMPYRO_LOCK`.
        """
        return self.is_log_linear and self.prior.other is None

    @property
    def order(self) -> Int64:
        """(sentences,) their positions in sites in the plate over sentences."""
        return find_order(self.lists)

    def checked_program(self) -> Callable[..., None]:
        """The program, which refuses sites and plates that samplers cannot use."""
        return CheckedSites(self.program, self.lists.features, len(self.lists.oracle))

    def is_per_sentence(self, site: dict[str, Any]) -> bool:
        """Return whether an observed site has one value for each sentence."""
        plates = {frame.name for frame in site["cond_indep_stack"]}
        return "sentence" in plates and tuple(site["fn"].batch_shape) == self.lists.oracle.shape

    def find_unused(self, sites: Sites, latent: Sites, observed: tuple[str, ...]) -> str | None:
        """Return what the observations do not depend on, if it is a model of a user.

        Raises:
            UsageError: if the model has no site `weights`.
        """
        if WEIGHTS not in sites:
            require_shape(None, self.lists.features, list(sites))
        if self.is_log_linear and observed:
            return None
        data = {LISTS: self.lists, "the prior": self.prior}
        return find_unused(self.program, data, latent, observed)

    def label(self, values: Sites) -> tuple[Sites, tuple[str, ...]]:
        """Return the values of all sites, and the names of the features of the weights."""
        return values, self.features

    def draw_prior(self, count: int, seed: int) -> Sites:
        """Return draws of the weights and the other latent sites from the prior, (count, …)."""
        latent = inspect_model(self).latent
        if self.is_log_linear and latent == (WEIGHTS,) and self.prior.other is None:
            return {WEIGHTS: self.prior.sample(np.random.default_rng([seed, 5]), count)}
        return draw_prior(self, tuple(dict.fromkeys([WEIGHTS, *latent])), count, seed)


def has_unknown_scale(target: Target) -> TypeGuard[WeightsTarget]:
    """Return whether it is a posterior of weights whose prior has an unknown scale."""
    return isinstance(target, WeightsTarget) and target.prior.scale is not None


def require_weights(target: Target, sampler: str) -> WeightsTarget:
    """Return a target that is a posterior of weights.

    Args:
        target: the target.
        sampler: what needs the weights, for the message.

    Raises:
        UsageError: if it is that of another program.
    """
    if not isinstance(target, WeightsTarget):
        raise UsageError(
            f"the sampler {sampler} needs canonical weights, which only n-best lists have: use the "
            "sampler nuts or rwm",
            parameter="sampler",
            code="not-supported",
        )
    return target


def find_start(target: WeightsTarget) -> Sites:
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
