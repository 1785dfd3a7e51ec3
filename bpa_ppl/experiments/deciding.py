"""Running one cell: from adaptation sentences to a choice from each list of the test text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from bpa_ppl.decoding import rerank
from bpa_ppl.diagnostics import check
from bpa_ppl.experiments.grid import Task, draw_sentences, seed_of
from bpa_ppl.experiments.material import Material, development, material
from bpa_ppl.experiments.methods import CANONICAL, SAMPLER, TUNER, Method
from bpa_ppl.experiments.results import Outcome, result_row
from bpa_ppl.experiments.study import Domain, Study
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.quality import by_name
from bpa_ppl.sampling import adapt
from bpa_ppl.sampling.weight_trace import WeightTrace, visited_weights
from bpa_ppl.tuning import reestimate
from bpa_ppl.weights import Weights, initial_weights, match


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
    weights = lists.weights or initial_weights(lists.adapt)
    return visited_weights(development(study), weights, restarts=restarts, seed=study.seed)
