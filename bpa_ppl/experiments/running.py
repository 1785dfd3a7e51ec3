"""Run the missing cells of a study, in several processes, and save each when it is finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np

from bpa_ppl.decoding import rerank
from bpa_ppl.diagnostics import check
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.experiments.methods import CANONICAL, SAMPLER, TUNER, Method
from bpa_ppl.experiments.results import Outcome, Store, result_row
from bpa_ppl.experiments.study import (
    Cell,
    Domain,
    ListFiles,
    Study,
    Task,
    draw_sentences,
    random_source,
    seed_of,
    tasks,
)
from bpa_ppl.formats import read_nbest, read_weights
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.quality import by_name, set_aside, statistics
from bpa_ppl.registry import METRICS, RULES, SAMPLERS, TUNERS, Registry
from bpa_ppl.sampling import adapt
from bpa_ppl.sampling.weight_trace import WeightTrace, visited_weights
from bpa_ppl.tuning import reestimate
from bpa_ppl.weights import Weights, first_weights, match
from bpa_ppl.workers import check_backend, fresh_workers

_DOMAINS = 2  # kept in memory at once


@dataclass(frozen=True, eq=False)
class Material:
    """What the cells of a domain have in common.

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

    def counts_of(self, choice: Int64) -> dict[str, Float64]:
        """Return (sentences, S) of the hypotheses chosen, by metric."""
        rows = self.test.offsets[:-1] + choice
        return {metric: counts[rows] for metric, counts in self.counts.items()}


@lru_cache(_DOMAINS)
def material(study: Study, domain: Domain, size: int = 0) -> Material:
    """Read the lists of a domain, cut to their first `size` hypotheses unless it is 0.

    Raises:
        DataError: if the files are not as they should be, do not fit together, or have too few
            sentences.
    """
    adapt = _read(domain.adapt, size, study.columns)
    if domain.test is None:
        adapt, test = _split(study, domain, adapt)
    else:
        test = _read(domain.test, size, study.columns)
    given = None if domain.weights is None else read_weights(domain.weights)
    matched, origin = match(given, adapt), str(domain.weights or "no weights")
    if test.feature_names != adapt.feature_names:
        raise DataError(f"{test.origin} has other features than {adapt.origin}", origin)
    largest = max(study.every_size)
    if largest > len(adapt) and not study.replacement:
        raise DataError(
            f"{domain.name} has {len(adapt)} sentences, too few to draw {largest} without "
            "replacement: ask for smaller sizes, or set replacement = true",
            adapt.origin,
        )
    return Material(
        adapt,
        test,
        None if given is None else Weights(zip(matched.names, matched.values, strict=True), origin),
        {metric: statistics(test, by_name(metric)).counts for metric in study.metrics},
    )


@lru_cache(1)
def development(study: Study) -> NBest:
    """Return the lists of the out-of-domain development set.

    Raises:
        DataError: if the files are not as they should be.
        UsageError: if the study has none.
    """
    if study.development is None:
        raise UsageError("the study has no development set: add [development]")
    return _read(study.development)


def _read(files: ListFiles, size: int = 0, columns: tuple[str, ...] = ()) -> NBest:
    """Read lists with references, cut to their first `size` hypotheses unless it is 0.

    The columns are metrics, and no features.
    """
    references = list(files.references) or None
    lists = read_nbest(files.nbest, references=references, first_id=files.first_id)
    metrics = [by_name(column) for column in columns]
    apart = set_aside(lists, [name for metric in metrics for name in metric.columns])
    return apart.truncate(size) if size else apart


def _split(study: Study, domain: Domain, lists: NBest) -> tuple[NBest, NBest]:
    """Take the sentences to be translated from the others: the others first."""
    if domain.held_out >= len(lists):
        raise DataError(
            f"{domain.held_out} of {len(lists)} sentences cannot be held out: hold out fewer",
            lists.origin,
        )
    order = random_source(study, "held out", domain.name).permutation(len(lists))
    test, rest = np.split(order, [domain.held_out])
    return lists.select(np.sort(rest)), lists.select(np.sort(test))


def run_cell(study: Study, task: Task) -> Outcome:
    """Draw A, adapt or tune, rerank the test text and count.

    Raises:
        DataError: if the lists, references and weights do not fit together.
    """
    cell, method = task
    domain = next(domain for domain in study.domains if domain.name == cell.domain)
    lists = material(study, domain, method.nbest_size)
    adaptation = lists.adapt.select(draw_sentences(study, cell, len(lists.adapt)))
    record = Record()
    job = Job(method, study, domain, lists, adaptation, seed_of(study, cell))
    counts = lists.counts_of(decide(job, record))
    return Outcome(result_row(cell, counts, record.verdict, record.failed), record.seconds)


@dataclass
class Record:
    """What a cell leaves besides its choice.

    Attributes:
        seconds: of each stage.
        verdict: `passed` or `failed`, of the check of a posterior; empty where there is none.
        failed: names of the diagnostics that failed.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    verdict: str = ""
    failed: tuple[str, ...] = ()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the seconds of a stage."""
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


@dataclass(frozen=True, eq=False)
class Job:
    """What a method gets: its settings, the study, the domain and its lists, A, and a seed."""

    method: Method
    study: Study
    domain: Domain
    material: Material
    adaptation: NBest
    seed: int


def decide(job: Job, record: Record) -> Int64:
    """Return (sentences,) the positions of the chosen hypotheses, and fill the record."""
    return _DECIDERS[job.method.kind](job, record)


def _by_weights(job: Job, weights: Weights | None, record: Record) -> Int64:
    with record.stage("rerank"):
        test = job.material.test
        return test.best(test.scores(match(weights, test).values))


def _canonical(job: Job, record: Record) -> Int64:
    return _by_weights(job, job.material.weights, record)


def _tuner(job: Job, record: Record) -> Int64:
    method = job.method
    extra = development(job.study) if method.needs_development else None
    with record.stage("tune"):
        found = reestimate(
            job.adaptation,
            job.material.weights,
            tuner=method.tuner(),
            metric=by_name(method.metric),
            seed=job.seed,
            extra=extra,
        )
    return _by_weights(job, found.weights, record)


def _sampler(job: Job, record: Record) -> Int64:
    method = job.method
    made = _made_of_development(job) if method.needs_development else {}
    with record.stage("adapt"):
        posterior = adapt(
            job.adaptation,
            job.material.weights,
            sampler=method.sampler(**made),
            likelihood=method.likely(),
            prior_variance=method.prior_variance,
            seed=job.seed,
            metric=by_name(method.metric),
            categorical=job.study.categorical,
            cache=False,
            arviz=False,
        )
    with record.stage("check"):
        report = check(posterior)
    record.verdict = "passed" if report else "failed"
    record.failed = tuple(finding.name for finding in report.failures)
    with record.stage("rerank"):
        result = rerank(
            job.material.test,
            posterior,
            rule=method.rule,
            derivations=method.derivations,
            unchecked=True,  # the verdict is among the results
        )
    return result.choice


_DECIDERS: dict[str, Callable[[Job, Record], Int64]] = {
    CANONICAL: _canonical,
    SAMPLER: _sampler,
    TUNER: _tuner,
}


def _made_of_development(job: Job) -> dict[str, Any]:
    """Return the settings of a sampler that come from the development set."""
    sampler = job.method.sampler()
    if not isinstance(sampler, WeightTrace):
        return {"development": development(job.study)}
    return {"visited": _visited(job.study, job.domain, sampler.restarts)}


@lru_cache(1)
def _visited(study: Study, domain: Domain, restarts: int) -> Float64:
    """Return the weights that MERT visits on the development set: found once, for all cells."""
    lists = material(study, domain)
    weights = lists.weights or first_weights(lists.adapt)
    return visited_weights(development(study), weights, restarts=restarts, seed=study.seed)


#: What a method is made of.
_REGISTRIES: tuple[Registry[Any], ...] = (METRICS, RULES, SAMPLERS, TUNERS)


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

    A study may be killed at any time: run again, it does what is missing, and the results have
    the same bytes as those of a study that was never killed.

    Args:
        study: from `read_study`.
        folder: of the results; made if it is not there.
        jobs: processes at the same time; -1 takes every core.
        backend: `local`, or `dask` for the workers of an existing cluster, which must see the
            files of the study under the same paths.
        scheduler: the address of the cluster's scheduler, such as `tcp://host:8786`.
        progress: True draws a bar on standard error, with the time left.

    Returns:
        the path of the table of results.

    Raises:
        DataError: if files do not fit together, or the folder is of another study; before any
            cell runs.
        UsageError: if the backend is unknown, or cannot be used.
    """
    check_backend(backend, scheduler)
    for domain in study.domains:  # whatever is wrong with the files is found before the work
        material(study, domain)
    if study.development is not None:
        development(study)
    every = tasks(study)
    store = Store(Path(folder), study)
    missing = store.missing(task.cell for task in every)
    waiting = [task for task in every if task.cell in missing]
    # One cell a batch: what is lost by a kill is the cells in work.
    workers = fresh_workers(jobs, backend, scheduler, batch_size=1, return_as="generator_unordered")
    with reporter(progress, "experiment") as report, workers as parallel:
        done = len(every) - len(waiting)
        report(done, len(every), "")
        start = time.monotonic()
        for number, (cell, outcome) in enumerate(_finished(study, waiting, parallel), 1):
            store.add(cell, outcome)
            left = (time.monotonic() - start) / number * (len(waiting) - number)
            report(done + number, len(every), f"{timedelta(seconds=round(left))} left")
    return store.finish([task.cell for task in every])


class _Finished(NamedTuple):
    """A cell and what it leaves."""

    cell: Cell
    outcome: Outcome


def _run(study: Study, task: Task, registered: list[dict[str, type]]) -> _Finished:
    """Run a cell, with what has been registered in the process that asks for it."""
    for registry, members in zip(_REGISTRIES, registered, strict=True):
        for name, member in members.items():
            if name not in registry.registered:
                registry.register(name, member)
    return _Finished(task.cell, run_cell(study, task))


def _finished(study: Study, waiting: Iterable[Task], parallel: Any) -> Iterator[_Finished]:
    """Yield the cells as they are finished, in any order."""
    # Processes keep the lists of few domains at a time.
    ordered = sorted(waiting, key=lambda task: (task.cell.domain, task.method.nbest_size))
    registered = [registry.registered for registry in _REGISTRIES]
    found: Iterator[_Finished] = parallel(
        joblib.delayed(_run)(study, task, registered) for task in ordered
    )
    return found
