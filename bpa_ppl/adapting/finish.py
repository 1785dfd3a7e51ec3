"""Finish draws: check them, compare their choices, and record how they were made."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt
from msgspec import structs

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import Float64, to_floats
from bpa_ppl._runtime.messages import format_count, replay, warn_user
from bpa_ppl._runtime.progress import Reporter, reporter
from bpa_ppl.adaptation_record import AdaptationRecord, ComponentRecord
from bpa_ppl.adapting.build import Adaptation, require_adaptation
from bpa_ppl.adapting.observe import Observed
from bpa_ppl.adapting.run_sampler import SamplerRun, run_sampler
from bpa_ppl.decoding.scales import feature_scales
from bpa_ppl.densities.model_target import read_observed
from bpa_ppl.densities.target import (
    MOST_COMPUTED,
    NUMPYRO_LOCK,
    Sampled,
    Target,
    constrain,
    constrain_draws,
    evaluate,
    evaluate_priors,
    inspect_model,
    require_sites,
    unflatten,
    weigh_prior,
)
from bpa_ppl.diagnostics.check.check import Report, check_draws, make_verdict
from bpa_ppl.diagnostics.check.prior import compare_with_prior
from bpa_ppl.errors import bad_value, wrong_shape
from bpa_ppl.evaluation.compare_ways import BaselineComparison, compare_adapted, to_record
from bpa_ppl.evaluation.simple_ways import find_system_column
from bpa_ppl.lists.nbest import score_differences
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS
from bpa_ppl.models.priors.prior import Prior
from bpa_ppl.posterior.arviz_data import to_arviz
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.record import Figures, Record, SamplerRecord, read_version
from bpa_ppl.posterior.statistics import smooth_log_weights
from bpa_ppl.samplers.sampler import Sampler
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

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

_PACKAGES = ("bpa_ppl", "numpyro", "jax", "jaxlib", "numpy", "sacrebleu", "arviz", "arviz-stats")
#: With fewer lists, it proves little if all choices come from one system.
_MIN_LISTS = 5


class Finished(NamedTuple):
    """Draws with their record, and what was found about them.

    Attributes:
        draws: the draws.
        report: of their check.
        comparison: with simple ways to choose; None if there is none.
    """

    draws: Draws
    report: Report
    comparison: BaselineComparison | None = None


def finish(
    run: SamplerRun,
    *,
    options: Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    progress: bool | Reporter = False,
) -> Finished:
    """Check draws, compare their choices with simple ways to choose, and record all of it.

    Args:
        run: from `run_sampler`.
        options: what `adapt` was called with, as data.
        reading: the options with which a file of lists was read.
        progress: True shows on standard error what is done.

    Raises:
        UsageError: if the sampler did not return draws of the sites of the target.

    >>> from bpa_ppl import from_lists, log_density
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> finish(run_sampler(log_density(lists, {"LM0": 0.5}), "map")).draws.record.sampler.name
    'map'
    """
    draws, adaptation, comparison = make_draws(run), run.adaptation, None
    recorded: dict[str, Any] = {"options": options, "reading": reading or {}}
    with (
        NUMPYRO_LOCK,  # SciPy fails in a thread while xarray imports Dask in another
        reporter(progress, f"check {format_count(len(draws.names), 'value')}") as shown,
    ):
        shown(0, 1, "diagnostics")
        report = check_draws(draws, run.sampled.findings)
        shown(1, 1, "diagnostics")
    if adaptation is not None:
        weights, lists = WeightDraws(draws), adaptation.prepared.lists
        prior = adaptation.prepared.prior
        if isinstance(prior, Prior) and prior.posterior is not None:
            first = prior.posterior.adaptation.likelihood
            _warn_of_other_settings(first, weights.adaptation.likelihood)
        mean = weights.aligned(lists, weights.mean[None])[0]
        recorded["feature_scales"] = feature_scales(lists, mean)
        if report:
            _warn_single_system(weights, adaptation.observed)
        comparison = compare_adapted(weights, adaptation.judged, adaptation.observed.gain)
        # Draws that fail their check may have other weights.
        if comparison is not None and report:
            replay(comparison.messages)
        recorded["comparison"] = None if comparison is None else to_record(comparison)
    record = structs.replace(draws.record, verdict=make_verdict(draws, report))
    record = structs.replace(AdaptationRecord.of(record), **recorded).add_to(record)
    return Finished(replace(draws, record=record), report, comparison)


def draw_posterior(
    target: Target,
    sampler: str | Sampler = "auto",
    *,
    seed: int = 0,
    progress: bool | Reporter = False,
    clock: Callable[[], float] = time.perf_counter,
) -> Draws:
    """Return draws of a sampler, with everything that `adapt` or `sample` records.

    Raises:
        UsageError: if a package of the sampler is missing, or the sampler does not fit the target.

    >>> from bpa_ppl import from_lists, log_density
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> draw_posterior(log_density(lists, {"LM0": 0.5}), "map").kind
    'point'
    """
    run = run_sampler(target, sampler, seed=seed, progress=progress, clock=clock)
    return finish(run, progress=progress).draws


def make_draws(run: SamplerRun) -> Draws:
    """Return draws with the record of what was prepared, observed and sampled.

    Args:
        run: from `run_sampler`.

    Raises:
        UsageError: if the sampler did not return draws of the sites of the target.
    """
    target, sampled, adaptation = run.target, run.sampled, run.adaptation
    require(sampled, Sampled, "the method `sample` of a sampler returns Sampled", "sampled")
    record = _describe(run)
    draws = _evaluate_draws(target, sampled, record, run.seed)
    if adaptation is None:
        dims = {**inspect_model(target).dims, **target.dims}
        observed_data = read_observed(target)
        return replace(draws, dims=dims, coords=target.coords, observed=observed_data)
    match, info = target.match, inspect_model(target)
    observed, recipe = adaptation.observed, adaptation.prepared.matched.recipe
    ids = observed.lists.sentence_ids
    if 0 < len({*observed.lists.ids}) == len({*ids.tolist()}):
        ids = np.array(observed.lists.ids)  # unless texts name lists of several files
    recorded, prior = dict[str, Any](), target.prior
    if target.uses_prior and prior.other is None:
        recorded = {"mean": prior.mean, "variance": prior.variance, "covariance": prior.covariance}
        recorded["log_deviation"] = None if prior.scale is None else prior.scale.of_weights
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
            constants["mode"] = constrain(target, unflatten(sampled.mode, target.start))[WEIGHTS]
    values, sites = draws.values, draws.sites
    dims = {n: names for n, names in info.dims.items() if n in values}
    if sampled.directions is not None:
        values, sites = {**values, DIRECTIONS: sampled.directions}, (*sites, DIRECTIONS)
    return replace(
        draws,
        values=values,
        sampled=sites,
        main=(WEIGHTS,),
        dims={**dims, **DIMS, **dict.fromkeys(info.per_sentence, (SENTENCE,))},
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


def _describe(run: SamplerRun) -> Record:
    """Return the record of what was prepared, observed and sampled."""
    if run.adaptation is None:
        name, improper = run.target.model.__name__, inspect_model(run.target).improper
        record = Record(model=name, flat=dict(run.target.flat), improper=improper)
    else:
        record = describe_adaptation(run.adaptation).add_to()
        record = structs.replace(record, model=run.adaptation.prepared.model_name)
    versions = {n: read_version(n) for n in (*_PACKAGES, *run.packages)}
    return structs.replace(
        record,
        reparametrisations=inspect_model(run.target).reparametrisations,
        sampler=run.sampler,
        seed=run.seed,
        versions={**versions, "python": platform.python_version()},
        machine=f"{platform.system()} {platform.machine()}, {jax.default_backend()}",
        figures=run.sampled.figures,
    )


def describe_adaptation(adaptation: Adaptation) -> AdaptationRecord:
    """Return the record of what was prepared and observed."""
    prepared, observed = adaptation.prepared, adaptation.observed
    # `observed` has the policy for ties.
    settings = {n: v for n, v in adaptation.likelihood.settings().items() if n != "ties"}
    return AdaptationRecord(
        likelihood=ComponentRecord(LIKELIHOODS.name_of(adaptation.likelihood), settings),
        prior=adaptation.prior,
        start=prepared.match.origin,
        pretrained=tuple(prepared.matched.pretrained),
        indicators=prepared.indicators,
        observed=observed.record(),
        lists=observed.lists.origin,
        data=observed.hashes(),
        recipe=prepared.matched.recipe.record(prepared.matched.columns),
    )


def _evaluate_draws(target: Target, sampled: Sampled, record: Record, seed: int) -> Draws:
    """Return the result of a sampler with its densities and draws of the prior.

    Raises:
        UsageError: if the sampler did not return draws of the sites of the target.
    """
    require_sites(sampled.z, target.start)
    with NUMPYRO_LOCK, jax.enable_x64(True):
        info, likelihood = inspect_model(target), sampled.log_likelihood
        if likelihood is None:
            likelihood = evaluate(target, sampled.z)[1]
        from_prior = {} if info.improper else target.draw_prior(seed)
        values, warmup, from_prior = jax.device_get(
            (
                constrain_draws(target, sampled.z),
                constrain_draws(target, sampled.warmup, MOST_COMPUTED),
                {name: draws[None] for name, draws in from_prior.items()},
            )
        )
        log_prior = evaluate_priors(target, values)
        weights = weigh_prior(target, {name: draws[0] for name, draws in from_prior.items()})
    result = Draws(
        values,
        kind=sampled.kind,
        log_weight=sampled.log_weight,
        log_density=None if sampled.log_density is None else np.asarray(sampled.log_density),
        log_likelihood=likelihood,
        log_prior=log_prior,
        statistics=sampled.statistics,
        warmup=warmup,
        prior=from_prior,
        sampled=info.latent,
        record=record,
    )
    if weights is None:
        return result
    compared = compare_with_prior(result, weights)
    return replace(result, record=structs.replace(record, from_prior=compared))


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


def to_posterior(
    density: Target,
    z: npt.ArrayLike,
    *,
    sampler: str = "unknown sampler",
    warmup: npt.ArrayLike | None = None,
    log_weight: npt.ArrayLike | None = None,
    statistics: Mapping[str, npt.ArrayLike] | None = None,
) -> InferenceData:
    """Return draws of any algorithm as the posterior that `adapt` would return.

    `check`, `report`, `compare` and `rerank` accept it.

    Args:
        density: the result of `log_density`.
        z: (chains, draws, d) unconstrained values.
        sampler: a name for the sampler, which the posterior records.
        warmup: (chains, draws, d) the values of the warm-up, to keep them.
        log_weight: (chains, draws) log p(z, data) − log q(z) of proposals from q, up to a
            constant. The importance weights are Pareto-smoothed, and k̂ is recorded.
        statistics: arrays (chains, draws) by ArviZ's names. `n_steps` is the number of
            evaluations of the density for each draw; without it, this number is unknown.

    Raises:
        DataError: if shapes do not fit together, or a value is not finite.
        UsageError: if the density was not made by `log_density`.

    >>> from bpa_ppl import from_lists, log_density
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> density = log_density(lists, {"LM0": 0.5})
    >>> z = np.random.default_rng(0).normal(0.5, 0.3, (4, 100, 1))
    >>> posterior = to_posterior(density, z, sampler="mine")
    >>> posterior["posterior"]["weights"].shape, posterior.attrs["sampler"]
    ((4, 100, 1), 'mine')
    """
    adaptation = require_adaptation(density)
    values = _to_draws(density, "z", z)
    shape, weights, k_hat = values.shape[:2], None, None
    if log_weight is not None:
        weights, k_hat = smooth_log_weights(_to_column("log_weight", log_weight, shape))
    arrays = {n: _to_column(n, v, shape) for n, v in (statistics or {}).items()}
    sites = unflatten(values, density.start)
    with NUMPYRO_LOCK, jax.enable_x64(True):
        log_density, log_likelihood = evaluate(density, sites)
    sampled = Sampled(
        z=sites,
        kind="chains" if weights is None else "weighted",
        log_density=log_density,
        log_weight=weights,
        statistics=arrays,
        warmup=(
            {} if warmup is None else unflatten(_to_draws(density, "warmup", warmup), density.start)
        ),
        log_likelihood=log_likelihood,
        figures=Figures(pareto_k=k_hat),
    )
    of_sampler = SamplerRecord(name=str(sampler))
    seed = adaptation.prepared.settings.seed
    run = SamplerRun(density, sampled, of_sampler, seed, adaptation=adaptation)
    return to_arviz(finish(run).draws)


def _to_draws(density: Target, name: str, z: npt.ArrayLike) -> Float64:
    """Return draws as finite numbers, (chains, draws, d)."""
    values = to_floats(z, name)
    if values.ndim != 3 or values.shape[2] != density.dimension or not values.size:
        shape = f"(chains, draws, {density.dimension})"
        raise wrong_shape(name, values.shape, shape, parameter=name, code="mismatch")
    if not np.isfinite(values).all():
        value, remedy = float(values[~np.isfinite(values)][0]), "leave out the draws that diverged"
        raise bad_value(
            f"a value of {name}", value, "a finite number", remedy=remedy, parameter=name
        )
    return values


def _to_column(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of one value per draw, (chains, draws), in its own type."""
    if to_floats(values, name).shape != shape:
        expected, actual = f"{shape}, (chains, draws)", np.shape(values)
        raise wrong_shape(name, actual, expected, parameter=name, code="mismatch")
    return np.asarray(values)
