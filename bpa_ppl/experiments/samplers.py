"""Run samplers on the same data, and compare them with a long reference run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bpa_ppl.decoding import rerank
from bpa_ppl.diagnostics.comparison.comparison import Comparison, check_same_posterior, compare
from bpa_ppl.diagnostics.estimates import runs_together
from bpa_ppl.errors import SEEDS, UsageError, checked_seed
from bpa_ppl.nbest import NBest
from bpa_ppl.options import AdaptOptions
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.quality import Metric, Oracles, demote_to_extras, oracles, resolve
from bpa_ppl.registry import SAMPLERS
from bpa_ppl.sampling import adapt_draws
from bpa_ppl.weights import AnyWeights, match

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

#: Difference between the seeds of the reference run and of the first run.
_SEED_OFFSET = 1_000_000


def compare_samplers(
    nbest: NBest,
    weights: AnyWeights,
    samplers: Sequence[str],
    *,
    runs: int = 4,
    seed: int = 0,
    reference: str = "nuts",
    reference_draws: int = 5000,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    others: Mapping[str, Sequence[Posterior]] | None = None,
    test: NBest | None = None,
    metric: str | Metric = "ter",
    progress: bool | Reporter = False,
    **options: Any,
) -> Comparison:
    """Run samplers and a long reference on the same data, and compare them.

    Args:
        nbest: as for `adapt`.
        weights: as for `adapt`.
        samplers: their names.
        runs: the number of runs of each sampler, with different seeds.
        seed: of the first run.
        reference: the sampler of the reference run.
        reference_draws: of each of its four chains.
        settings: of each sampler, by its name.
        others: posteriors of the same data from elsewhere, by name.
        test: lists to be reranked with each posterior; None uses the adaptation lists.
        metric: the criterion of the oracles.
        progress: True draws a bar on standard error.
        options: of `adapt`: `likelihood`, `prior_variance`, `fixed`, `defaults`, `ties`, …

    Raises:
        DataError: if the lists, references and weights do not fit together, or one of `others` has
            other data or another model.
        NotConverged: if the reference run did not converge.
        UsageError: if there is nothing to run, or a setting is invalid.
    """
    seed = checked_seed(seed)
    _configured(samplers, runs, settings)
    SAMPLERS.resolve(reference, {"draws": reference_draws})
    extra = dict(others or {})
    for name, posteriors in extra.items():  # find mistakes before the long work
        if name in samplers:
            message = f"{name} is already the name of a sampler: choose another label"
            raise UsageError(message, parameter="others", code="duplicate")
        runs_together(posteriors)
    goal = resolve(metric, nbest)
    nbest = demote_to_extras(nbest, goal.columns)
    oracle = _oracles(nbest, weights, goal, options)
    if extra:  # runs on other data are refused before the long computation
        map_options = AdaptOptions(sampler="map", oracle=oracle, metric=goal, **options)
        quick = adapt_draws(nbest, weights, map_options)
        for name, posteriors in extra.items():
            for posterior in posteriors:
                check_same_posterior(name, as_draws(posterior), quick)
    with reporter(progress, "compare") as report:
        runs_by_sampler = run_samplers(
            nbest,
            weights,
            samplers,
            runs=runs,
            seed=seed,
            settings=settings,
            progress=report,
            oracle=oracle,
            metric=goal,
            **options,
        )
        report(0, 1, f"reference {reference}")
        long_run = AdaptOptions(
            sampler=reference,
            seed=(seed + _SEED_OFFSET) % SEEDS,
            oracle=oracle,
            metric=goal,
            settings={"draws": reference_draws},
            progress=report,
            **options,
        )
        truth = adapt_draws(nbest, weights, long_run)
        lists = nbest if test is None else test
        report(0, 1, "statistics")
        return compare(
            {**runs_by_sampler, **extra},
            [truth],
            decode=lambda posterior: rerank(lists, posterior, unchecked=True).texts,
            references=lists.references,
            seed=seed,
        )


def run_samplers(
    nbest: NBest,
    weights: AnyWeights,
    samplers: Sequence[str],
    *,
    runs: int = 4,
    seed: int = 0,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    progress: bool | Reporter = False,
    **options: Any,
) -> dict[str, list[Draws]]:
    """Run each sampler on the same data from several seeds, and time it.

    The attribute `sampling_time` has the seconds, as in PyMC. Each sampler has one more run
    first, which is not timed, so that compilation does not count.

    Args:
        nbest: as for `adapt`.
        weights: as for `adapt`.
        samplers: their names.
        runs: the number of runs of each sampler, with different seeds.
        seed: of the first run.
        settings: of each sampler, by its name.
        progress: True draws a bar on standard error.
        options: of `adapt`; without `oracle`, the search for oracles is timed too.

    Raises:
        DataError: if the lists, references and weights do not fit together.
        UsageError: if there is nothing to run, or a setting is invalid.
    """
    seed = checked_seed(seed)
    chosen = _configured(samplers, runs, settings)
    result: dict[str, list[Draws]] = {name: [] for name in chosen}
    steps = [(name, run) for name in chosen for run in range(-1, runs)]
    with reporter(progress, "run") as report:
        for done, (name, run) in enumerate(steps):
            report(done, len(steps), name)
            own_seed = (seed + max(run, 0)) % SEEDS
            full = AdaptOptions(sampler=name, seed=own_seed, settings=chosen[name], **options)
            start = time.perf_counter()
            draws = adapt_draws(nbest, weights, full)
            seconds = time.perf_counter() - start
            if run >= 0:
                result[name].append(draws.with_attrs(sampling_time=seconds))
    return result


def _configured(
    samplers: Sequence[str], runs: int, settings: Mapping[str, Mapping[str, Any]] | None
) -> dict[str, dict[str, Any]]:
    """Return the validated settings of each sampler."""
    if not samplers or runs < 1:
        raise UsageError(
            "a comparison needs at least one sampler and one run of each",
            parameter="runs" if samplers else "samplers",
        )
    chosen = {name: dict((settings or {}).get(name, {})) for name in samplers}
    for name, sampler_settings in chosen.items():
        SAMPLERS.resolve(name, sampler_settings)
    return chosen


def _oracles(
    nbest: NBest, weights: AnyWeights, metric: Metric, options: dict[str, Any]
) -> Oracles | None:
    """Return the oracles, computed once for all samplers; None if that saves nothing."""
    if metric.columns or weights is None or isinstance(weights, str):
        return None
    matched = match(weights, nbest, fixed=options.get("fixed"), defaults=options.get("defaults"))
    ties = options.pop("ties", None) or "canonical"
    return oracles(nbest, metric, ties=ties, preference=nbest.scores(matched.values))
