"""Running a study: its missing cells, in several processes, each kept as soon as it is done."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import joblib

from bpa_ppl.experiments.deciding import run_cell
from bpa_ppl.experiments.grid import Cell, Task, tasks
from bpa_ppl.experiments.material import development, material
from bpa_ppl.experiments.results import Outcome, Store
from bpa_ppl.experiments.study import Study
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.registry import METRICS, RULES, SAMPLERS, TUNERS, Registry
from bpa_ppl.workers import check_backend, parallel_workers

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
    workers = parallel_workers(jobs, backend, scheduler, ordered=False)
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
