"""Finish draws: evaluate and check them, and record how they were made."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
from msgspec import structs

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.messages import format_count
from bpa_ppl._runtime.progress import Reporter, reporter
from bpa_ppl.densities.target import (
    MOST_COMPUTED,
    NUMPYRO_LOCK,
    Sampled,
    Target,
    constrain_draws,
    evaluate,
    evaluate_priors,
    inspect_model,
    require_sites,
    weigh_prior,
)
from bpa_ppl.diagnostics.check.prior import compare_with_prior
from bpa_ppl.diagnostics.check.report import Report, check_draws, make_verdict
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.record import Record, read_version
from bpa_ppl.samplers.sampler import Sampler
from bpa_ppl.sampling.run_sampler import SamplerRun, run_sampler

_PACKAGES = ("bpa_ppl", "numpyro", "jax", "jaxlib", "numpy", "sacrebleu", "arviz", "arviz-stats")


class Finished(NamedTuple):
    """Draws with their record, and the report of their check."""

    draws: Draws
    report: Report


def finish(run: SamplerRun, *, progress: bool | Reporter = False) -> Finished:
    """Check draws, and record it with what their source finds in them.

    Args:
        run: from `run_sampler`.
        progress: True shows on standard error what is done.

    Raises:
        UsageError: if the sampler did not return draws of the sites of the target.

    >>> import numpyro
    >>> from numpyro.distributions import Normal
    >>> from bpa_ppl.densities.model_target import make_model_target
    >>> target = make_model_target(lambda: numpyro.sample("x", Normal(0.0, 1.0)))
    >>> finish(run_sampler(target, "map")).draws.record.sampler.name
    'map'
    """
    draws = make_draws(run)
    with (
        NUMPYRO_LOCK,  # SciPy fails in a thread while xarray imports Dask in another
        reporter(progress, f"check {format_count(len(draws.names), 'value')}") as shown,
    ):
        shown(0, 1, "diagnostics")
        report = check_draws(draws, run.sampled.findings)
        shown(1, 1, "diagnostics")
    draws = run.target.source.conclude(draws, passed=report.passed)
    record = structs.replace(draws.record, verdict=make_verdict(draws, report))
    return Finished(replace(draws, record=record), report)


def draw_posterior(
    target: Target,
    sampler: str | Sampler = "auto",
    *,
    seed: int = 0,
    progress: bool | Reporter = False,
    clock: Callable[[], float] = time.perf_counter,
) -> Draws:
    """Return draws of a sampler, with everything that `sample` or `adapt` records.

    Raises:
        UsageError: if a package of the sampler is missing, or the sampler does not fit the target.

    >>> import numpyro
    >>> from numpyro.distributions import Normal
    >>> from bpa_ppl.densities.model_target import make_model_target
    >>> draw_posterior(make_model_target(lambda: numpyro.sample("x", Normal())), "map").kind
    'point'
    """
    run = run_sampler(target, sampler, seed=seed, progress=progress, clock=clock)
    return finish(run, progress=progress).draws


def make_draws(run: SamplerRun) -> Draws:
    """Return draws with the record of what was sampled, and from what.

    Args:
        run: from `run_sampler`.

    Raises:
        UsageError: if the sampler did not return draws of the sites of the target.
    """
    target, sampled = run.target, run.sampled
    require(sampled, Sampled, "the method `sample` of a sampler returns Sampled", "sampled")
    draws = _evaluate_draws(target, sampled, _describe(run), run.seed)
    return target.source.label(target, sampled, draws)


def _describe(run: SamplerRun) -> Record:
    """Return the record of what the posterior was made from, and of what was sampled."""
    versions = {n: read_version(n) for n in (*_PACKAGES, *run.packages)}
    return structs.replace(
        run.target.source.record(run.target),
        reparametrisations=inspect_model(run.target).reparametrisations,
        sampler=run.sampler,
        seed=run.seed,
        versions={**versions, "python": platform.python_version()},
        machine=f"{platform.system()} {platform.machine()}, {jax.default_backend()}",
        figures=run.sampled.figures,
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
