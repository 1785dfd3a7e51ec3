"""The methods at work: from adaptation sentences to a choice from each list of the test text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from bpa_ppl.decoding import rerank
from bpa_ppl.diagnostics import check
from bpa_ppl.experiments import methods
from bpa_ppl.experiments.material import Material, development, material
from bpa_ppl.experiments.methods import Method
from bpa_ppl.experiments.study import Domain, Study
from bpa_ppl.experiments.weight_trace import visited_weights, weight_trace
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.sampling import adapt
from bpa_ppl.tuning import reestimation
from bpa_ppl.weights import Weights, match

if TYPE_CHECKING:
    from arviz import InferenceData


@dataclass
class Record:
    """What a cell leaves beside its choice.

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


def _canonical(job: Job, record: Record) -> Int64:
    return _by_weights(job, job.material.weights, record)


def _sampler(job: Job, record: Record) -> Int64:
    method = job.method
    with record.stage("adapt"):
        posterior = adapt(
            job.adaptation,
            job.material.weights,
            sampler=method.engine,
            prior_variance=method.prior_variance,
            seed=job.seed,
            metric=method.metric,
            cache=False,
            **method.own,
        )
    return _by_posterior(job, posterior, record)


def _tuner(job: Job, record: Record) -> Int64:
    method = job.method
    extra = development(job.study) if method.needs_development_set else None
    with record.stage("tune"):
        found = reestimation(
            job.adaptation,
            job.material.weights,
            tuner=method.engine,
            metric=method.metric,
            seed=job.seed,
            extra=extra,
            **method.own,
        )
    return _by_weights(job, found.weights, record)


def _trace(job: Job, record: Record) -> Int64:
    method, settings = job.method, job.method.own
    visited = _visited(job.study, job.domain, settings["restarts"])
    with record.stage("adapt"):
        posterior = weight_trace(
            job.adaptation,
            job.material.weights,
            visited,
            metric=method.metric,
            prior_variance=method.prior_variance,
            delta=settings["delta"],
        )
    return _by_posterior(job, posterior, record)


@lru_cache(1)
def _visited(study: Study, domain: Domain, restarts: int) -> Float64:
    """Return the weights that MERT visits on the development set: found once, for all cells."""
    weights = material(study, domain).weights
    return visited_weights(development(study), weights, restarts=restarts, seed=study.seed)


_DECIDERS: dict[str, Callable[[Job, Record], Int64]] = {
    methods.CANONICAL: _canonical,
    methods.SAMPLER: _sampler,
    methods.TUNER: _tuner,
    methods.TRACE: _trace,
}


def _by_posterior(job: Job, posterior: InferenceData, record: Record) -> Int64:
    with record.stage("check"):
        report = check(posterior)
    record.verdict = "passed" if report else "failed"
    record.failed = tuple(finding.name for finding in report.findings if not finding.passed)
    with record.stage("rerank"):
        result = rerank(
            job.material.test,
            posterior,
            rule=job.method.rule,
            derivations=job.method.derivations,
            unchecked=True,  # the verdict is among the results
        )
    return result.choice


def _by_weights(job: Job, weights: Weights, record: Record) -> Int64:
    with record.stage("rerank"):
        test = job.material.test
        return test.best(test.scores(match(weights, test).values))
