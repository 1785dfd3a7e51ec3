"""Parallel work: ordered results, bounded prefetching and errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest
from joblib import delayed
from support.raising import raises

from bpa_ppl import UsageError
from bpa_ppl._runtime.workers import count_workers, parallel_workers

# Functions of the standard library, so that the worker processes need not import this module.


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
        kill = delayed(signal.raise_signal)(signal.SIGKILL)
        list(parallel.in_order((n, kill) for n in range(9)))
    with parallel_workers(2) as parallel:  # the next work has new processes
        assert next(iter(parallel([delayed(pow)(3, 2)]))) == 9


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
calls = ((n, delayed(time.sleep)(0.01)) for n in itertools.count())
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
        os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the whole group
        _, err = process.communicate(timeout=60)
    assert process.returncode
    assert "KeyboardInterrupt" in err


def test_workers_end_with_a_killed_parent() -> None:
    with endless_work() as process:
        children = psutil.Process(process.pid).children()
        process.kill()
    assert len(children) >= 2
    assert psutil.wait_procs(children, timeout=10)[1] == []
