"""What the posterior of an adaptation was made from, and what its draws record of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import numpy as np

from bpa_ppl._runtime.messages import replay, warn_user
from bpa_ppl.adaptation_record import (
    AdaptationRecord,
    ComponentRecord,
    PriorRecord,
    change_adaptation,
)
from bpa_ppl.adapting.observe import Observed
from bpa_ppl.adapting.prepare import Prepared
from bpa_ppl.adapting.published import PublishedSampler
from bpa_ppl.adapting.weights_target import require_lists
from bpa_ppl.decoding.scales import feature_scales
from bpa_ppl.densities.target import (
    NUMPYRO_LOCK,
    Sampled,
    Source,
    Target,
    constrain,
    inspect_model,
    unflatten,
)
from bpa_ppl.errors import UsageError
from bpa_ppl.evaluation.compare_ways import compare_adapted, to_record
from bpa_ppl.evaluation.simple_ways import find_system_column
from bpa_ppl.gains.judged import Judged
from bpa_ppl.lists.nbest import score_differences
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS, Likelihood
from bpa_ppl.models.priors.prior import Prior
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.record import Record
from bpa_ppl.weight_draws import (
    DIMS,
    DIRECTIONS,
    FEATURE,
    FIXED,
    FIXED_FEATURE,
    OTHER_FEATURE,
    SENTENCE,
    WEIGHTS,
    WeightDraws,
)
from bpa_ppl.weights import Weights

#: With fewer lists, it proves little if all choices come from one system.
_MIN_LISTS = 5


@dataclass(frozen=True, eq=False)
class Adaptation(Source):
    """What the posterior of an adaptation was made from.

    Attributes:
        prepared: the lists, the weights and the settings.
        observed: what was observed of the lists.
        likelihood: with all its settings.
        prior: the record of the prior; None if the model does not use it.
    """

    prepared: Prepared
    observed: Observed
    likelihood: Likelihood
    prior: PriorRecord | None
    title: ClassVar[str] = "adapt"

    @property
    def judged(self) -> Judged:
        """What was observed, for the gains of choices."""
        prepared, observed = self.prepared, self.observed
        if observed.choices is not None:
            return Judged.by_preferences(prepared.lists, observed.choices.answers)
        gains = prepared.judged.gains if observed.gains is None else observed.gains
        return replace(prepared.judged, lists=observed.lists, gains=gains)

    def prepare_sampler(self, sampler: Any, seed: int) -> Any:
        """Return a sampler with what it learns from the canonical weights."""
        if not isinstance(sampler, PublishedSampler):
            return sampler
        match = self.prepared.match
        canonical = Weights(zip(match.names, match.values.tolist(), strict=True))
        return sampler.fitted(canonical, fixed=match.fixed_names, seed=seed)

    def record(self, target: Target) -> Record:
        """Return the record of what was prepared and observed."""
        prepared, observed = self.prepared, self.observed
        # `observed` has the policy for ties.
        settings = {n: v for n, v in self.likelihood.settings().items() if n != "ties"}
        adaptation = AdaptationRecord(
            likelihood=ComponentRecord(LIKELIHOODS.name_of(self.likelihood), settings),
            prior=self.prior,
            start=prepared.match.origin,
            pretrained=tuple(prepared.matched.pretrained),
            indicators=prepared.indicators,
            observed=observed.record(),
            lists=observed.lists.origin,
            data=observed.hashes(),
            recipe=prepared.matched.recipe.record(prepared.matched.columns),
        )
        return adaptation.add_to(Record(model=prepared.model_name))

    def label(self, target: Target, sampled: Sampled, draws: Draws) -> Draws:
        """Return draws with the names of features and sentences, and with what was observed."""
        of_lists, info = require_lists(target, "a record"), inspect_model(target)
        match = self.prepared.match
        observed, recipe = self.observed, self.prepared.matched.recipe
        ids = observed.lists.sentence_ids
        if 0 < len({*observed.lists.ids}) == len({*ids.tolist()}):
            ids = np.array(observed.lists.ids)  # unless texts name lists of several files
        recorded, prior = dict[str, Any](), of_lists.prior
        if of_lists.uses_prior and prior.other is None:
            recorded = {
                "mean": prior.mean,
                "variance": prior.variance,
                "covariance": prior.covariance,
                "log_deviation": None if prior.scale is None else prior.scale.of_weights,
            }
        constants = {
            "canonical": match.values[match.free],
            **{f"prior_{name}": value for name, value in recorded.items() if value is not None},
            **sampled.constants,
        }
        if match.fixed_names:
            constants[FIXED] = match.fixed_values
        if match.agreement:
            agreement = [match.agreement.get(name, 0.0) for name in match.free_names]
            constants["agreement"] = np.array(agreement)
        if sampled.mode is not None:
            with NUMPYRO_LOCK, jax.enable_x64(True):
                mode = constrain(target, unflatten(sampled.mode, target.start))
            constants["mode"] = mode[WEIGHTS]
        values, sites = draws.values, draws.sites
        dims = {n: names for n, names in info.dims.items() if n in values}
        per_sentence = {n: names for n, names in info.dims.items() if names == (SENTENCE,)}
        if sampled.directions is not None:
            values, sites = {**values, DIRECTIONS: sampled.directions}, (*sites, DIRECTIONS)
        return replace(
            draws,
            values=values,
            sampled=sites,
            main=target.main,
            dims={**dims, **DIMS, **per_sentence},
            coords={
                FEATURE: match.free_names,
                OTHER_FEATURE: match.free_names,
                FIXED_FEATURE: match.fixed_names,
                SENTENCE: ids,
                **(target.coords if dims else {}),
            },
            observed={"oracle": observed.chosen},
            constants={**jax.device_get(constants), **observed.constants(), **recipe.constants()},
        )

    def conclude(self, draws: Draws, *, passed: bool) -> Draws:
        """Return draws that record how features vary, and a comparison with simple ways to choose.

        Args:
            draws: with their names and constants.
            passed: whether they have passed their check; others may have other weights, and nothing
                is said about their choices.
        """
        weights, lists, prior = WeightDraws(draws), self.prepared.lists, self.prepared.prior
        if isinstance(prior, Prior) and prior.posterior is not None:
            first = prior.posterior.adaptation.likelihood
            _warn_of_other_settings(first, weights.adaptation.likelihood)
        mean = weights.aligned(lists, weights.mean[None])[0]
        scales = feature_scales(lists, mean)
        if passed:
            _warn_single_system(weights, self.observed)
        comparison = compare_adapted(weights, self.judged, self.observed.gain)
        if comparison is not None and passed:
            replay(comparison.messages)
        compared = None if comparison is None else to_record(comparison)
        changes = {"feature_scales": scales, "comparison": compared}
        return replace(draws, record=change_adaptation(draws.record, **changes))


def require_adaptation(target: Target) -> Adaptation:
    """Return what a target was made from.

    Raises:
        UsageError: if it is not that of `log_density`.
    """
    if not isinstance(target.source, Adaptation):
        problem = "this density lacks the data that a posterior records: make it by log_density"
        raise UsageError(problem, code="missing-setting")
    return target.source


def _warn_of_other_settings(first: ComponentRecord | None, second: ComponentRecord | None) -> None:
    """Warn if the posterior that is the prior has the same likelihood with other settings."""
    if first and second and first.name == second.name and first != second:
        warn_user(
            f"the likelihood of the new lists ({second}) is not that of the posterior that is "
            f"the prior ({first}): give that one, with its settings"
        )


def _warn_single_system(draws: WeightDraws, observed: Observed) -> None:
    """Warn if the mean weights choose candidates of the same system from all lists."""
    lists, sources = observed.lists, draws.adaptation.recipe.sources
    categorical = [one.settings["column"] for one in sources if one.source == "indicators"]
    # Comparisons are not lists of candidates.
    if observed.choices is not None or len(lists) < _MIN_LISTS:
        return
    if not (column := find_system_column(lists, categorical)):
        return
    systems, first = np.array(lists.extras[column], str), lists.offsets[:-1]
    several = np.logical_or.reduceat(systems != np.repeat(systems[first], lists.sizes), first)
    best = lists.best(score_differences(lists, draws.aligned(lists, draws.mean[None])[0]))
    chosen = set(systems[first + best][several].tolist())
    if several.sum() < _MIN_LISTS or len(chosen) > 1:
        return
    remedy = f"leave out categorical {column}" if column in categorical else "add features"
    warn_user(
        f"all choices from {int(several.sum())} adaptation lists with several systems come from "
        f"{column} {chosen.pop()}: use only its candidates, or, to let others be chosen, "
        f"{remedy} or judge more lists"
    )
