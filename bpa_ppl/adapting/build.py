"""Build the target that samplers sample, and leave out indicators that explain nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import jax
import numpy as np

from bpa_ppl._runtime.messages import warn_user
from bpa_ppl.adapting.observe import Observed
from bpa_ppl.adapting.prepare import Prepared
from bpa_ppl.adapting.prior import choose_prior, log_scale
from bpa_ppl.densities.mode import mode_of
from bpa_ppl.densities.target import NUMPYRO_LOCK, Target, inspect_model
from bpa_ppl.densities.weights_target import choose_coordinates, make_weights_target
from bpa_ppl.diagnostics.ways.compare_ways import describe_left_out
from bpa_ppl.errors import UsageError
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.models.likelihoods.likelihood import Likelihood
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.likelihoods.pairs import Pairs
from bpa_ppl.models.lists import Lists
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.models.priors import isotropic
from bpa_ppl.models.priors.prior import Prior
from bpa_ppl.posterior.record import IndicatorsRecord, PriorRecord

#: The likelihood of the order of the candidates by which indicators are left out. With this
#: exponent its intervals are about as wide as they should be: see `Pairs`.
_OF_ORDER = Pairs(exponent=1.5)
#: Indicators are left out if their log Bayes factor is below: docs/results/judged-lists.md.
LEFT_OUT_BELOW = -3.0


@dataclass(frozen=True, eq=False)
class Adaptation:
    """What the posterior of an adaptation was made from.

    Attributes:
        prepared: the lists, the weights and the settings.
        observed: what was observed of the lists.
        likelihood: with all its settings.
        prior: the record of the prior; None if the model does not use it.
        indicators: whether indicators explain the order of candidates; None if it is not known.
        without_indicators: the target in which the weights of indicators, such as systems, are 0;
            None if there are no indicators, or no other features.
    """

    prepared: Prepared
    observed: Observed
    likelihood: Likelihood
    prior: PriorRecord | None
    indicators: IndicatorsRecord | None = None
    without_indicators: Target | None = None


def build_target(prepared: Prepared, observed: Observed, prior: Prior) -> Target:
    """Return the log density of the posterior, with what its draws record.

    Args:
        prepared: from `prepare`.
        observed: from `observe`.
        prior: from `choose_prior`.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.adapting.observe import observe
    >>> from bpa_ppl.adapting.prepare import prepare
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> prepared = prepare(lists, {"LM0": 0.5})
    >>> observed = observe(prepared)
    >>> target = build_target(prepared, observed, choose_prior(observed, prepared))
    >>> target.features, target.dimension, target.adaptation.prior.name
    (('LM0',), 1, 'isotropic')
    """
    # Nothing has been asked yet of judges to come.
    to_be_judged = prepared.likelihood.observes == "preferences" and observed.choices is None
    likelihood = (Oracle() if to_be_judged else prepared.likelihood).defaults(observed)
    target = _make_target(prepared, _tabulate(prepared, observed), prior, likelihood, prepared.seed)
    with NUMPYRO_LOCK, jax.enable_x64(True):
        unused = inspect_model(target).unused
    if unused and (len(prepared.judged) or not len(prepared.lists)):
        remedy = "call likelihood.observe(lists, weights)"
        warn_user(f"the model {prepared.model_name} observes {unused}: {remedy}")
    record = prior.record if target.uses_prior else None
    return replace(target, adaptation=Adaptation(prepared, observed, likelihood, record))


def require_adaptation(target: Target) -> Adaptation:
    """Return what a target was made from.

    Raises:
        UsageError: if it is not that of `log_density`.
    """
    if not isinstance(target.adaptation, Adaptation):
        problem = "this density lacks the data that a posterior records: make it by log_density"
        raise UsageError(problem, code="missing-setting")
    return target.adaptation


def _tabulate(prepared: Prepared, observed: Observed) -> Lists:
    """Return the observations as arrays, with the weights of prepared lists."""
    return observed.table(prepared.match, domains=prepared.model is not log_linear)


def _make_target(
    prepared: Prepared, table: Lists, prior: Prior, likelihood: Likelihood, seed: int = 0
) -> Target:
    with NUMPYRO_LOCK, jax.enable_x64(True):
        return make_weights_target(table, prior, prepared.match, likelihood, prepared.model, seed)


def leave_out_indicators(prepared: Prepared, observed: Observed, prior: Prior) -> Target:
    """Build the target, without indicators that do not explain the order of the candidates.

    Indicators, such as those of systems, are left out with a warning if the log Bayes factor of the
    order of the candidates is below −3, and the prior has a learned scale. Otherwise the target
    without them is kept, so that choices can be compared.

    Args:
        prepared: from `prepare`.
        observed: from `observe`.
        prior: from `choose_prior`.
    """
    names, others = prepared.matched.indicators, None
    found = without = None
    if observed.gains is not None and len(observed.lists) and prepared.model is log_linear:
        others = _fix_at_zero(prepared, names)
    if others is not None:
        prior_of_others, table = choose_prior(observed, others), _tabulate(others, observed)
        if set(names) & {*isotropic.learns_scale(prepared.prior, prepared.match)}:
            difference = _log_evidence_of_order(prepared, _tabulate(prepared, observed), prior)
            difference -= _log_evidence_of_order(others, table, prior_of_others)
            found = IndicatorsRecord(difference)
        if found is None or found.log_bayes_factor >= LEFT_OUT_BELOW:
            likelihood = others.likelihood.defaults(observed)
            without = _make_target(others, table, prior_of_others, likelihood)
        else:
            sources = prepared.matched.recipe.sources
            columns = tuple(one.column for one in sources if isinstance(one, Indicators))
            found = IndicatorsRecord(found.log_bayes_factor, columns)
            warn_user(describe_left_out(found))
            prepared = replace(others, matched=others.matched.without_indicators())
            observed, prior = observed.without_features(names), prior_of_others
    target = build_target(prepared, observed, prior)
    adaptation = replace(target.adaptation, indicators=found, without_indicators=without)
    log_scale(adaptation.prior, target.match)
    return replace(target, adaptation=adaptation)


def _fix_at_zero(prepared: Prepared, names: Sequence[str]) -> Prepared | None:
    """Return the same with the weights of some features fixed at 0, and a scale of its own.

    None if there are no such features or no others, or if the prior is not isotropic.
    """
    match = prepared.match
    fixed = np.isin(match.names, list(names))
    match = match._replace(values=np.where(fixed, 0.0, match.values), free=match.free & ~fixed)
    family = isotropic.restrict(prepared.prior, match.free_names)
    if not fixed.any() or not match.free.any() or family is None:
        return None
    return replace(
        prepared,
        matched=prepared.matched._replace(match=match),
        prior=family,
        defaults=None,
        progress=False,
    )


def _log_evidence_of_order(prepared: Prepared, table: Lists, prior: Prior) -> float:
    """Return the log evidence of the order of the candidates."""
    with NUMPYRO_LOCK, jax.enable_x64(True):
        target = _make_target(prepared, table, prior, _OF_ORDER)
        target = choose_coordinates(target)
        return mode_of(target).log_evidence
