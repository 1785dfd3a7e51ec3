"""Run the missing cells of a study, in several processes, and save each when it is finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

import joblib
import numpy as np
from msgspec import structs

from bpa_ppl._runtime.arrays import Float64, intern
from bpa_ppl._runtime.progress import Reporter, reporter
from bpa_ppl._runtime.workers import parallel_workers
from bpa_ppl.adapting.adapt import adapt_draws
from bpa_ppl.components import Registry
from bpa_ppl.decoding.reranker import rerank
from bpa_ppl.decoding.rules import RULES
from bpa_ppl.diagnostics.check.check import check
from bpa_ppl.diagnostics.check.diagnostic import DIAGNOSTICS
from bpa_ppl.errors import DataError
from bpa_ppl.extras.studies.results import claim_folder, make_row, write_json, write_tables
from bpa_ppl.extras.studies.study import (
    SAMPLER,
    TUNER,
    Cell,
    ListFiles,
    Method,
    Study,
    StudyDomain,
    choose_seed,
    draw_sentences,
    list_cells,
    make_generator,
)
from bpa_ppl.extras.studies.tuning.redecoding import join, redecode, with_sentences_of
from bpa_ppl.extras.studies.tuning.reestimation import reestimate
from bpa_ppl.extras.studies.tuning.tuner import TUNERS
from bpa_ppl.extras.studies.tuning.weight_trace import WeightTrace
from bpa_ppl.formats.reading import read_nbest
from bpa_ppl.formats.weight_files import read_weights
from bpa_ppl.gains.gains import count_statistics, resolve_without_lists
from bpa_ppl.gains.metric import GAINS
from bpa_ppl.lists.nbest import NBest, demote_to_extras, score_differences
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS
from bpa_ppl.models.priors.prior import PRIORS
from bpa_ppl.posterior.weight_draws import WeightDraws
from bpa_ppl.samplers.sampler import SAMPLERS
from bpa_ppl.weights import Weights, initial_weights, match

#: Registries of the components of a method, and of the check of its draws.
_REGISTRIES: tuple[Registry[Any], ...] = (
    *(LIKELIHOODS, GAINS, PRIORS, RULES, SAMPLERS, TUNERS),
    DIAGNOSTICS,
)
_MAX_DOMAINS = 2  # kept in memory at once

T = TypeVar("T")


def run_study(
    study: Study,
    folder: str | Path,
    *,
    jobs: int = 1,
    progress: bool | Reporter = False,
) -> Path:
    """Run the cells of a study that are not finished, and write the tables of all.

    A study can be killed at any time: run again, it runs the missing cells, and the results are
    byte-identical to those of an uninterrupted run.

    Args:
        study: from `read_study`.
        folder: of the results; created if it does not exist.
        jobs: processes at the same time; -1 uses all cores.
        progress: True draws a bar on standard error, with the time left.

    Returns:
        the path of the table of results.

    Raises:
        DataError: before any cell runs, if files do not fit together or the folder belongs to
            another study.
        UsageError: if `jobs` is not valid.
    """
    for domain in study.domains:  # find mistakes in the files before the work starts
        data = read_material(study, domain)
        if any(method.development for method in study.every_method):
            join(_without_sources(data.adapt), _read_development(study, 0))
    methods = list_cells(study)
    folder = Path(folder)
    with claim_folder(folder, study):
        # Processes keep the lists of few domains, so cells of a domain run together.
        waiting = [
            cell for cell in methods if not (folder / "cells" / f"{cell.name}.json").exists()
        ]
        waiting.sort(key=lambda cell: (cell.domain, methods[cell].nbest_size))
        run = with_components(run_cell)
        calls = (joblib.delayed(run)(study, cell, methods[cell]) for cell in waiting)
        workers = parallel_workers(jobs, ordered=False)
        with reporter(progress, "experiment") as report, workers as parallel:
            done = len(methods) - len(waiting)
            report(done, len(methods), "")
            start = time.monotonic()
            for number, (cell, row, seconds) in enumerate(parallel(calls), 1):
                write_json(folder / "seconds" / f"{cell.name}.json", seconds)
                write_json(folder / "cells" / f"{cell.name}.json", row)  # now it is finished
                left = (time.monotonic() - start) / number * (len(waiting) - number)
                report(done + number, len(methods), f"{timedelta(seconds=round(left))} left")
        return write_tables(folder, list(methods), study.metrics)


def with_components(function: Callable[..., T]) -> Callable[..., T]:
    """Return a function that registers the components of this process, also in a worker."""
    return partial(_run, function, [registry.registered for registry in _REGISTRIES])


def _run(function: Callable[..., T], registered: list[dict[str, type]], *args: Any) -> T:
    for registry, members in zip(_REGISTRIES, registered, strict=True):
        for name, member in members.items():
            if name not in registry.registered:
                registry.register(name, member)
    return function(*args)


@dataclass(frozen=True, eq=False)
class Material:
    """The data that the cells of a domain share.

    Attributes:
        adapt: the lists from which A is drawn.
        test: the lists that are translated.
        weights: λ_T, for each feature of the lists; None if there are none.
        counts: for each metric (candidates of `test`, S), as
            `bpa_ppl.gains.gains.count_statistics`.
    """

    adapt: NBest
    test: NBest
    weights: Weights | None
    counts: dict[str, Float64]


@lru_cache(_MAX_DOMAINS)
def read_material(study: Study, domain: StudyDomain, size: int = 0) -> Material:
    """Read the lists of a domain, cut to their first `size` candidates unless it is 0.

    Raises:
        DataError: if the files are invalid, do not fit together, or have too few sentences.
    """
    adapt = _read(domain.files("adapt"), size, study.columns)
    if not domain.held_out:
        test = _read(domain.files("test"), size, study.columns)
    elif domain.held_out < len(adapt):
        order = make_generator(study, "held out", domain.name).permutation(len(adapt))
        held_out, rest = np.split(order, [domain.held_out])
        adapt, test = adapt.select(np.sort(rest)), adapt.select(np.sort(held_out))
    else:
        message = f"held_out is {domain.held_out}, but there are {len(adapt)} sentences: use fewer"
        raise DataError(message, adapt.origin, code="wrong-length")
    start = None if domain.weights is None else read_weights(domain.weights)
    matched, origin = match(start, adapt), str(domain.weights or "no weights")
    if test.feature_names != adapt.feature_names:
        message = f"{test.origin} has other features than {adapt.origin}"
        raise DataError(message, origin, code="mismatch")
    largest = max(study.every_size)
    if largest > len(adapt) and not study.replacement:
        message = f"{len(adapt)} sentences, but {largest} are drawn: set replacement = true"
        raise DataError(message, adapt.origin, code="wrong-length")
    named = zip(matched.names, matched.values, strict=True)
    counts = {
        metric: count_statistics(test, resolve_without_lists(metric)) for metric in study.metrics
    }
    weights = None if start is None else Weights(named, origin)
    return Material(adapt, test, weights, counts)


def _read(files: ListFiles, size: int, columns: tuple[str, ...]) -> NBest:
    """Read lists with references and sources; `columns` become metrics, not features."""
    lists = read_nbest(
        files.nbest,
        references=list(files.references) or None,
        sources=files.sources,
        format=f"auto:first_id={files.first_id}",
        features=files.features or None,
        exclude=[name for metric in map(resolve_without_lists, columns) for name in metric.columns],
    )
    return _prepare(lists, size, columns)


def _prepare(lists: NBest, size: int, columns: tuple[str, ...]) -> NBest:
    """Return lists cut to `size`, unless it is 0; `columns` are not features."""
    metrics = map(resolve_without_lists, columns)
    lists = demote_to_extras(lists, [name for metric in metrics for name in metric.columns])
    return lists.truncate(size) if size else lists


@contextmanager
def _measure_time(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Record the duration of a stage."""
    start = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - start


def run_cell(
    study: Study, cell: Cell, method: Method
) -> tuple[Cell, dict[str, Any], dict[str, float]]:
    """Draw A, adapt or tune, rerank the test lists, and count.

    Returns:
        the cell, the row of the results, and the seconds of each stage.

    Raises:
        DataError: if the lists, references and weights do not fit together.
    """
    domain = _find_domain(study, cell)
    data = read_material(study, domain, method.nbest_size)
    drawn = data.adapt.select(draw_sentences(study, cell, len(data.adapt)))
    adaptation = drawn
    if method.development:
        adaptation = join(_without_sources(drawn), _read_development(study, method.nbest_size))
    test, counts, weights = data.test, data.counts, data.weights
    posterior: WeightDraws | None = None
    seconds: dict[str, float] = {}
    verdict, failed, seed = "", [], choose_seed(study, cell)
    if method.kind == SAMPLER:
        sampler = method.component()
        if isinstance(sampler, WeightTrace):
            sampler = _fit(study, domain, sampler)
        options = {
            "gain": resolve_without_lists(method.gain),
            "likelihood": method.resolve_likelihood(),
            "prior": method.resolve_prior(),
            "sampler": sampler,
            "categorical": study.categorical,
            "seed": seed,
        }
        with _measure_time(seconds, "adapt"):
            posterior = adapt_draws(adaptation, weights, **options)
        with _measure_time(seconds, "check"):
            report = check(posterior)
        verdict = "passed" if report else "failed"
        failed = [finding.name for finding in report.failures]
        weights = posterior.at_point("mean")
    elif method.kind == TUNER:
        weights = _tune(study, cell, method, replace(data, adapt=adaptation), drawn, seconds)
    if method.decode_test:
        assert weights is not None  # the method has adapted them
        with _measure_time(seconds, "decode test"):
            test = _make_decoder(study, domain, method, test, {})(weights)
        counts = {
            name: count_statistics(test, resolve_without_lists(name)) for name in study.metrics
        }
    with _measure_time(seconds, "rerank"):
        if posterior is None:
            choice = test.best(score_differences(test, match(weights, test).values))
        else:
            choice = rerank(
                test,
                posterior,
                rule=method.rule,
                unchecked=True,  # the verdict is among the results
            ).choice
    rows = test.offsets[:-1] + choice
    chosen = {name: values[rows] for name, values in counts.items()}
    return cell, make_row(cell, chosen, verdict, failed), seconds


def _find_domain(study: Study, cell: Cell) -> StudyDomain:
    return next(domain for domain in study.domains if domain.name == cell.domain)


def _tune(
    study: Study,
    cell: Cell,
    method: Method,
    material: Material,
    drawn: NBest,
    seconds: dict[str, float],
) -> Weights:
    """Return the weights of a tuner; add the seconds of the stages `tune` and `decode`.

    Args:
        study: the study.
        cell: the run.
        method: the tuner.
        material: what it starts with: A first, with or without the lists of D, and λ_T.
        drawn: the lists of A, which are decoded again.
        seconds: by stage.
    """
    options: dict[str, Any] = {
        "tuner": method.component(),
        "gain": resolve_without_lists(method.gain),
        "seed": choose_seed(study, cell),
    }
    lists, weights = material.adapt, material.weights
    if not method.redecode:
        with _measure_time(seconds, "tune"):
            return reestimate(lists, weights, **options).weights
    # A sentence that was drawn twice is two sentences for the tuner.
    numbered, of_a = (replace(x, sentence_ids=np.arange(len(x))) for x in (lists, drawn))
    decode = _make_decoder(study, _find_domain(study, cell), method, of_a, seconds)
    assert study.decoder is not None  # checked when the study was read
    with _measure_time(seconds, "tune"):
        loop = redecode(numbered, weights, decode, iterations=study.decoder.iterations, **options)
    seconds["tune"] -= seconds["decode"]
    return loop.weights


def _make_decoder(
    study: Study, domain: StudyDomain, method: Method, lists: NBest, seconds: dict[str, float]
) -> Callable[[Weights], NBest]:
    """Return the decoder of a study for the sentences of some lists, each distinct source once.

    Args:
        study: with a decoder.
        domain: of the lists.
        method: that decodes.
        lists: the sentences, with sources and different ids.
        seconds: the seconds of the decoder are added to its stage `decode`.

    Returns:
        a function that returns the new lists, with the ids and the references of the sentences. It
        raises a DataError if the decoder fails, or its lists do not match the sentences.
    """
    decoder = study.decoder
    assert decoder is not None  # checked when the study was read
    sources, index = intern(lists.sources or ())
    command, first_id = decoder.function(tuple(sources)), domain.first_id

    def decode(weights: Weights) -> NBest:
        start = time.perf_counter()
        decoded = command(weights)
        seconds["decode"] = seconds.get("decode", 0.0) + time.perf_counter() - start
        decoded = _prepare(decoded, method.nbest_size, study.columns)
        numbers = decoded.sentence_ids - first_id
        if sorted(numbers.tolist()) != list(range(len(sources))):
            problem = (
                f"the decoder returned lists for {len(numbers)} sentences, not for the "
                f"{len(sources)} of its sources with ids from {first_id}"
            )
            raise DataError(problem, code="mismatch")
        return with_sentences_of(decoded.select(np.argsort(numbers)[index]), lists)

    return decode


@lru_cache(_MAX_DOMAINS)
def _read_development(study: Study, size: int) -> NBest:
    """Return the lists of the out-of-domain development set, cut to `size` unless it is 0."""
    assert study.development is not None  # checked when the study was read
    return _without_sources(_read(study.development, size, study.columns))


def _without_sources(lists: NBest) -> NBest:
    """Return lists without their sources, which only a decoder needs and D may lack."""
    return replace(lists, sources=None)


@lru_cache(1)
def _fit(study: Study, domain: StudyDomain, sampler: WeightTrace) -> WeightTrace:
    """Return a sampler fitted to the out-of-domain development set, once for all cells."""
    data, extra = read_material(study, domain), _read_development(study, 0)
    weights = data.weights or initial_weights(data.adapt)
    fixed = match(weights, extra).fixed_names
    return structs.replace(sampler, lists=extra).fitted(weights, fixed=fixed, seed=study.seed)
