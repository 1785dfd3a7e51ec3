"""Parallel work, here and on a cluster: ordered results, bounded prefetching and errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import psutil
import pytest
from distributed import LocalCluster
from joblib import delayed, parallel_config
from joblib.parallel import ParallelBackendBase, ThreadingBackend
from support.command_line import refused, succeed
from support.raising import raises
from support.small_demo import cache as cache
from support.small_demo import write_small_demo

from bpa_ppl import UsageError, concatenate, read_nbest, write_nbest
from bpa_ppl._runtime.workers import count_workers, parallel_workers, use_scheduler

# Functions of the standard library, so that the worker processes need not import this module.
KILL = delayed(signal.raise_signal)(signal.SIGKILL)


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A Dask scheduler with three workers, of which two are left when a test has killed one."""
    options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(n_workers=3, **options) as started,
    ):
        yield started


@pytest.fixture
def scheduler(cluster: LocalCluster) -> str:
    """The address of the scheduler."""
    return str(cluster.scheduler_address)


def test_results_of_processes_are_in_order_and_few_items_are_read_ahead() -> None:
    taken: list[int] = []

    def calls() -> Iterator[tuple[int, object]]:
        for number in range(100):
            taken.append(number)
            yield number, delayed(pow)(number, 2)

    with parallel_workers(2) as parallel:
        results = parallel.in_order(calls())
        assert next(results) == (0, 0)
        assert len(taken) <= 16
        assert list(results) == [(n, n**2) for n in range(1, 100)]
        assert os.getpid() not in dict(parallel.in_order([(0, delayed(os.getpid)())])).values()


def test_errors_in_input_and_in_workers_are_raised() -> None:
    def calls() -> Iterator[tuple[int, object]]:
        for number in range(50):
            yield number, delayed(pow)(number, 2)
        raise LookupError("line 51")

    with pytest.raises(LookupError, match="line 51"), parallel_workers(2) as parallel:
        list(parallel.in_order(calls()))
    with pytest.raises(TypeError, match="NoneType"), parallel_workers(2) as parallel:
        list(parallel.in_order((n, delayed(abs)(None)) for n in range(9)))


def test_killed_worker_raises_usage_error() -> None:
    with raises(UsageError, "damaged", parameter="jobs"), parallel_workers(2) as parallel:
        list(parallel.in_order((n, KILL) for n in range(9)))
    with parallel_workers(2) as parallel:  # the next work has new processes
        assert next(iter(parallel([delayed(pow)(3, 2)]))) == 9


class WithoutGenerators(ThreadingBackend):
    """A backend that returns all results together, as Ray's does."""

    supports_return_generator = False


@pytest.mark.parametrize("backend", ["threading", WithoutGenerators()], ids=["threading", "lists"])
def test_the_workers_are_those_of_the_active_backend(backend: str | ParallelBackendBase) -> None:
    with parallel_config(backend, n_jobs=2), parallel_workers(1) as parallel:
        assert parallel.width == 2
        own = {os.getpid()}
        assert set(parallel(delayed(os.getpid)() for _ in range(9))) == own
        numbered = parallel.in_order((n, delayed(count_workers)(1)) for n in range(20))
        assert list(numbered) == [(n, 1) for n in range(20)]  # a call starts no workers


#: Commands with `--scheduler`.
COMMANDS = (
    "adapt nbest -r ref -w moses.ini --sampler laplace -o posterior.nc",
    "rerank large -p posterior.nc -o chosen --details details",
    "calibrate --model normal.py:model --samplers laplace --replications 20 -o calibration.json",
)
NORMAL = """
import numpyro
import numpyro.distributions as dist


def model():
    numpyro.sample("y", dist.Normal(numpyro.sample("x", dist.Normal(0.0, 1.0)), 1.0), obs=0.5)
"""


@pytest.mark.slow
@pytest.mark.needs_extras
def test_commands_on_a_cluster_write_the_same_files(
    cluster: LocalCluster, scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    for options in ([], ["--scheduler", scheduler]):
        folder = tmp_path / f"{len(options)}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        write_small_demo(folder, sentences=24, candidates=8)
        Path("normal.py").write_text(NORMAL, "utf-8")
        # Fewer candidates are not worth the start of processes.
        write_nbest(concatenate([read_nbest("nbest")] * 521, renumber=True), "large")
        for command in COMMANDS:
            before = cluster.scheduler.transition_counter
            succeed(*command.split(), *options)
            assert (cluster.scheduler.transition_counter > before) == bool(options), command
        compiled = "__pycache__"  # has the folder's name in it
        files = (
            path for path in Path().rglob("*") if path.is_file() and compiled not in path.parts
        )
        written.append({path: path.read_bytes() for path in files})
    assert written[0] == written[1]


@pytest.mark.slow
def test_a_killed_worker_of_a_cluster_loses_nothing(scheduler: str) -> None:
    with use_scheduler(scheduler), parallel_workers(1) as parallel:
        assert (parallel.width, count_workers(1, require="sharedmem")) == (3, 1)
        (worker,) = parallel([delayed(os.getpid)()])
        assert worker != os.getpid()
        calls = ((n, delayed(sum)(range(n * 10**6))) for n in range(20))
        results = parallel.in_order(calls)
        first = [next(results) for _ in range(3)]
        os.kill(worker, signal.SIGKILL)
        assert [*first, *results] == [(n, sum(range(n * 10**6))) for n in range(20)]


def test_a_call_that_kills_its_workers_is_an_error(scheduler: str) -> None:
    mistake = raises(UsageError, "damaged", parameter="scheduler")
    with mistake, use_scheduler(scheduler), parallel_workers(1) as parallel:
        list(parallel.in_order((n, KILL) for n in range(9)))


def test_calls_do_not_wait_for_workers_that_are_all_lost() -> None:
    mistake = raises(UsageError, "damaged", parameter="scheduler", match="worker for 0.5 seconds")
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        mistake,
        use_scheduler(str(cluster.scheduler_address), patience=0.5),
        parallel_workers(1) as parallel,
    ):
        assert list(parallel([delayed(abs)(-1)])) == [1]
        cluster.scale(0)
        list(parallel.in_order((n, delayed(abs)(n)) for n in range(99)))


def test_a_scheduler_that_does_not_answer_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_small_demo(tmp_path, sentences=4, candidates=3)
    adapt = [*COMMANDS[0].split(), "--scheduler", "nowhere"]
    refused(*adapt, mention="no Dask scheduler with workers answers at nowhere: start it")


def test_the_number_of_workers_is_an_integer() -> None:
    assert count_workers(-1) >= 1
    for jobs in (0, 1.5, "a", True, 10**400):
        with raises(UsageError, parameter="jobs"):
            count_workers(jobs)  # type: ignore[arg-type]


_ENDLESS = """
import itertools, signal, time
from joblib import delayed
from bpa_ppl._runtime.workers import parallel_workers
signal.signal(signal.SIGINT, signal.default_int_handler)
large = bytes(10**6)  # fills the pipe to a worker
calls = ((n, delayed(len)(large)) for n in itertools.count())
with parallel_workers(2) as parallel:
    for n, _ in parallel.in_order(calls):
        print(n, flush=True)
"""


@contextmanager
def endless_work() -> Iterator[subprocess.Popen[str]]:
    """A program whose workers have begun an endless work."""
    command = [sys.executable, "-c", _ENDLESS]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, encoding="utf-8", start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0\n"
        yield process


def test_ctrl_c_stops_the_workers() -> None:
    with endless_work() as process:
        children = psutil.Process(process.pid).children()
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the whole group
        _, err = process.communicate(timeout=60)
    assert process.returncode
    assert err.count("Traceback") == 1  # no other process says anything
    assert err.splitlines()[-1] == "KeyboardInterrupt"
    assert psutil.wait_procs(children, timeout=10)[1] == []


@pytest.mark.slow
def test_workers_end_with_a_killed_parent() -> None:
    with endless_work() as process:
        children = psutil.Process(process.pid).children()
        process.kill()
    assert len(children) >= 2
    assert psutil.wait_procs(children, timeout=10)[1] == []
