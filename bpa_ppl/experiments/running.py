"""Run the missing cells of a study, in several processes, and save each when it is finished."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from bpa_ppl.decoding import rerank
from bpa_ppl.diagnostics import check
from bpa_ppl.errors import DataError
from bpa_ppl.experiments.results import Store, result_row
from bpa_ppl.experiments.study import (
    SAMPLER,
    TUNER,
    Cell,
    ListFiles,
    Method,
    Study,
    StudyDomain,
    draw_sentences,
    methods_by_cell,
    random_source,
    seed_of,
)
from bpa_ppl.formats import read_nbest, read_weights
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.options import AdaptOptions
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.quality import by_name, demote_to_extras, statistics
from bpa_ppl.registry import METRICS, RULES, SAMPLERS, TUNERS, Registry
from bpa_ppl.sampling import Sampler, adapt_draws
from bpa_ppl.tuning import reestimate
from bpa_ppl.weights import Weights, initial_weights, match
from bpa_ppl.workers import check_backend, parallel_workers

#: Registries of the components of a method.
_REGISTRIES: tuple[Registry[Any], ...] = (METRICS, RULES, SAMPLERS, TUNERS)
_MAX_DOMAINS = 2  # kept in memory at once


def run_study(
    study: Study,
    folder: str | Path,
    *,
    jobs: int = 1,
    backend: str = "local",
    scheduler: str | None = None,
    progress: bool | Reporter = False,
) -> Path:
    """Run the cells of a study that are not finished, and write the tables of all.

    A study can be killed at any time: run again, it runs the missing cells, and the results are
    byte-identical to those of an uninterrupted run.

    Args:
        study: from `read_study`.
        folder: of the results; created if it does not exist.
        jobs: processes at the same time; -1 uses all cores.
        backend: `local`, or `dask` for the workers of an existing cluster, which must see the
            files of the study under the same paths.
        scheduler: the address of the scheduler of the cluster, such as `tcp://host:8786`.
        progress: True draws a bar on standard error, with the time left.

    Returns:
        the path of the table of results.

    Raises:
        DataError: before any cell runs, if files do not fit together or the folder belongs to
            another study.
        UsageError: if the backend is unknown or cannot be used.
    """
    check_backend(backend, scheduler)
    for domain in study.domains:  # find mistakes in the files before the work starts
        material(study, domain)
    if study.development is not None:
        development(study)
    methods = methods_by_cell(study)
    store = Store(Path(folder), study)
    # Processes keep the lists of few domains, so cells of a domain run together.
    waiting = sorted(
        store.missing(methods), key=lambda cell: (cell.domain, methods[cell].nbest_size)
    )
    registered = [registry.registered for registry in _REGISTRIES]
    calls = (joblib.delayed(_run)(study, cell, methods[cell], registered) for cell in waiting)
    workers = parallel_workers(jobs, backend, scheduler, ordered=False)
    with reporter(progress, "experiment") as report, workers as parallel:
        done = len(methods) - len(waiting)
        report(done, len(methods), "")
        start = time.monotonic()
        for number, outcome in enumerate(parallel(calls), 1):
            store.add(*outcome)
            left = (time.monotonic() - start) / number * (len(waiting) - number)
            report(done + number, len(methods), f"{timedelta(seconds=round(left))} left")
    return store.finish(list(methods))


def _run(
    study: Study, cell: Cell, method: Method, registered: list[dict[str, type]]
) -> tuple[Cell, dict[str, Any], dict[str, float]]:
    """Run a cell in a worker, after registering the components of the parent process."""
    for registry, members in zip(_REGISTRIES, registered, strict=True):
        for name, member in members.items():
            if name not in registry.registered:
                registry.register(name, member)
    return cell, *run_cell(study, cell, method)


@dataclass(frozen=True, eq=False)
class Material:
    """The data that the cells of a domain share.

    Attributes:
        adapt: the lists from which A is drawn.
        test: the lists that are translated.
        weights: λ_T, for each feature of the lists; None if there are none.
        counts: for each metric (hypotheses of `test`, S), as `bpa_ppl.quality.statistics`.
    """

    adapt: NBest
    test: NBest
    weights: Weights | None
    counts: dict[str, Float64]


@lru_cache(_MAX_DOMAINS)
def material(study: Study, domain: StudyDomain, size: int = 0) -> Material:
    """Read the lists of a domain, cut to their first `size` hypotheses unless it is 0.

    Raises:
        DataError: if the files are invalid, do not fit together, or have too few sentences.
    """
    adapt = _read(domain.adapt, size, study.columns)
    if domain.test is not None:
        test = _read(domain.test, size, study.columns)
    elif domain.held_out < len(adapt):
        order = random_source(study, "held out", domain.name).permutation(len(adapt))
        held_out, rest = np.split(order, [domain.held_out])
        adapt, test = adapt.select(np.sort(rest)), adapt.select(np.sort(held_out))
    else:
        message = f"{domain.held_out} of {len(adapt)} sentences cannot be held out: use fewer"
        raise DataError(message, adapt.origin, code="wrong-length")
    start = None if domain.weights is None else read_weights(domain.weights)
    matched, origin = match(start, adapt), str(domain.weights or "no weights")
    if test.feature_names != adapt.feature_names:
        message = f"{test.origin} has other features than {adapt.origin}"
        raise DataError(message, origin, code="mismatch")
    largest = max(study.every_size)
    if largest > len(adapt) and not study.replacement:
        message = f"{len(adapt)} sentences are too few to draw {largest}: set replacement = true"
        raise DataError(message, adapt.origin, code="wrong-length")
    named = zip(matched.names, matched.values, strict=True)
    weights = None if start is None else Weights(named, origin)
    counts = {metric: statistics(test, by_name(metric)).counts for metric in study.metrics}
    return Material(adapt, test, weights, counts)


@lru_cache(1)
def development(study: Study) -> NBest:
    """Return the lists of the out-of-domain development set; a method that needs it has it.

    Raises:
        DataError: if the files are invalid.
    """
    assert study.development is not None  # checked when the study was read
    return _read(study.development)


def _read(files: ListFiles, size: int = 0, columns: tuple[str, ...] = ()) -> NBest:
    """Read lists with references; `columns` become metrics, and are no features."""
    references = list(files.references) or None
    lists = read_nbest(files.nbest, references=references, first_id=files.first_id)
    metrics = [by_name(column) for column in columns]
    lists = demote_to_extras(lists, [name for metric in metrics for name in metric.columns])
    return lists.truncate(size) if size else lists


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Record the duration of a stage."""
    start = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - start


def run_cell(study: Study, cell: Cell, method: Method) -> tuple[dict[str, Any], dict[str, float]]:
    """Draw A, adapt or tune, rerank the test lists, and count.

    Returns:
        the row of the results, and the seconds of each stage.

    Raises:
        DataError: if the lists, references and weights do not fit together.
    """
    domain = next(domain for domain in study.domains if domain.name == cell.domain)
    data = material(study, domain, method.nbest_size)
    adaptation = data.adapt.select(draw_sentences(study, cell, len(data.adapt)))
    seed, metric = seed_of(study, cell), by_name(method.metric)
    seconds: dict[str, float] = {}
    verdict, failed = "", []
    if method.kind == SAMPLER:
        sampler = method.sampler()
        if method.needs_development:
            sampler = _fitted(study, domain, sampler)
        options = AdaptOptions(
            sampler=sampler,
            likelihood=method.resolved_likelihood(),
            prior_variance=method.prior_variance,
            seed=seed,
            metric=metric,
            categorical=study.categorical,
            cache=False,
        )
        with _timed(seconds, "adapt"):
            posterior = adapt_draws(adaptation, data.weights, options)
        with _timed(seconds, "check"):
            report = check(posterior)
        verdict = "passed" if report else "failed"
        failed = [finding.name for finding in report.failures]
        with _timed(seconds, "rerank"):
            choice = rerank(
                data.test,
                posterior,
                rule=method.rule,
                derivations=method.derivations,
                unchecked=True,  # the verdict is among the results
            ).choice
    else:
        weights = data.weights
        if method.kind == TUNER:
            extra = development(study) if method.needs_development else None
            tuner = method.tuner()
            with _timed(seconds, "tune"):
                weights = reestimate(
                    adaptation, weights, tuner=tuner, metric=metric, seed=seed, extra=extra
                ).weights
        with _timed(seconds, "rerank"):
            choice = data.test.best(data.test.scores(match(weights, data.test).values))
    rows = data.test.offsets[:-1] + choice
    counts = {name: values[rows] for name, values in data.counts.items()}
    return result_row(cell, counts, verdict, failed), seconds


@lru_cache(1)
def _fitted(study: Study, domain: StudyDomain, sampler: Sampler) -> Sampler:
    """Return a sampler fitted to the development set, once for all cells."""
    data = material(study, domain)
    weights = data.weights or initial_weights(data.adapt)
    return sampler.fitted(development(study), weights, fixed=None, seed=study.seed)
