"""Build the target that samplers sample."""

from __future__ import annotations

from dataclasses import replace

import jax

from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.adapting.adaptation import Adaptation
from bpa_ppl.adapting.common_scale import transform_for
from bpa_ppl.adapting.observe import Observed
from bpa_ppl.adapting.prepare import Prepared
from bpa_ppl.adapting.prior import log_scale
from bpa_ppl.adapting.weights_target import WeightsTarget, make_weights_target
from bpa_ppl.densities.target import NUMPYRO_LOCK, inspect_model
from bpa_ppl.models.likelihoods.likelihood import Likelihood
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.models.priors.prior import Prior


def build_target(prepared: Prepared, observed: Observed, prior: Prior) -> WeightsTarget:
    """Return the log density of the posterior, with what its draws record.

    Args:
        prepared: from `prepare`.
        observed: from `observe`.
        prior: from `choose_prior`.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.adapting.observe import observe
    >>> from bpa_ppl.adapting.prepare import prepare
    >>> from bpa_ppl.adapting.prior import choose_prior
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> prepared = prepare(lists, {"LM0": 0.5})
    >>> observed = observe(prepared)
    >>> target = build_target(prepared, observed, choose_prior(observed, prepared))
    >>> target.features, target.dimension, target.source.prior.name
    (('LM0',), 1, 'isotropic')
    """
    # Nothing has been asked yet of judges to come.
    to_be_judged = prepared.likelihood.observes == "preferences" and observed.choices is None
    likelihood = (Oracle() if to_be_judged else prepared.likelihood).defaults(observed)
    target = make_target(prepared, observed, prior, likelihood)
    with NUMPYRO_LOCK, jax.enable_x64(True):
        unused = inspect_model(target).unused
    if unused and (len(prepared.judged.lists) or not len(prepared.lists)):
        remedy = "call likelihood.observe(lists, weights)"
        warn_user(f"the model {prepared.model_name} observes {unused}: {remedy}")
    record = prior.record if target.uses_prior else None
    log_scale(record, target.match)
    adaptation = Adaptation(prepared, observed, likelihood, record)
    coords = {dim: names for dim, names in observed.coords.items() if names}
    hints = replace(target.hints, transform=transform_for)
    return replace(target, source=adaptation, coords={**target.coords, **coords}, hints=hints)


def make_target(
    prepared: Prepared, observed: Observed, prior: Prior, likelihood: Likelihood
) -> WeightsTarget:
    """Return the log density of the posterior for a likelihood with all its settings."""
    # Prepared lists have weights that may be fixed since they were observed.
    table = observed.table(prepared.match, domains=prepared.model is not log_linear)
    with NUMPYRO_LOCK, jax.enable_x64(True):
        return make_weights_target(table, prior, prepared.match, likelihood, prepared.model)
