"""Worker processes: results in order, few calls ahead, and an end to them whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from joblib import delayed

from bpa_ppl import UsageError
from bpa_ppl.workers import Future, Pool, fresh_workers, in_order, number_of, pool


def slow_first(shared: dict[str, int], item: int) -> tuple[int, int]:
    time.sleep(1 if item == 0 else 0)  # long enough for the other process to begin
    return item + shared["more"], os.getpid()


def fail(shared: object, item: int) -> None:
    raise LookupError(f"item {item}")


def die(shared: object, item: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def begun(workers: Pool, function: Any, items: range) -> Iterator[tuple[int, Future]]:
    shared = workers.share({"more": 100})
    for item in items:
        yield item, workers.submit(function, shared, item)


def test_results_come_in_order_from_other_processes() -> None:
    with pool(2) as workers:
        found = list(in_order(workers, begun(workers, slow_first, range(20))))
    assert [(item, result) for item, (result, _) in found] == [(n, n + 100) for n in range(20)]
    processes = {process for _, (_, process) in found}
    assert len(processes) == 2
    assert os.getpid() not in processes


def test_a_value_goes_to_the_workers_once() -> None:
    with pool(1) as workers:
        shared = workers.share({"more": 1})
        assert workers.result(workers.submit(slow_first, shared, 1))[0] == 2
        os.unlink(shared.place)
        assert workers.result(workers.submit(slow_first, shared, 2))[0] == 3


def test_an_error_of_the_work_is_raised_as_it_is() -> None:
    with pytest.raises(LookupError, match="item 0"), pool(1) as workers:
        list(in_order(workers, begun(workers, fail, range(9))))


def test_a_lost_process_is_told() -> None:
    with (
        pytest.raises(UsageError, match=r"a worker process was killed.*give fewer jobs"),
        pool(1) as workers,
    ):
        list(in_order(workers, begun(workers, die, range(9))))


def test_no_room_for_what_is_shared_is_told() -> None:
    with pool(1) as workers:
        workers._folder = Path("/dev/full")  # type: ignore[attr-defined]
        with pytest.raises(
            UsageError, match=r"temporary files in /dev \(.*\): .* TMPDIR, or give 1"
        ):
            workers.share("anything")


def grow(shared: object, item: int) -> int:
    """Take 400 MB from the second call on; loky looks at the memory once a second."""
    if item == 1:
        _taken.append(np.ones(50_000_000))
    time.sleep(1.1)
    return os.getpid()


_taken: list[Any] = []


def test_a_worker_that_grows_goes_on() -> None:
    with pool(1) as workers:
        found = [process for _, process in in_order(workers, begun(workers, grow, range(3)))]
    assert len(set(found)) == 1


@pytest.mark.slow
def test_workers_of_joblib_that_grow_go_on() -> None:
    with fresh_workers(2) as parallel:
        processes = parallel(delayed(grow)(None, item) for item in (0, 0, 1, 1, 0, 0))
    assert len(set(processes)) == 2


class Lazy:
    """Two workers that have done everything at once."""

    width = 2

    def result(self, future: Any) -> Any:
        return future


def test_few_calls_are_ahead_of_the_first_result() -> None:
    taken: list[int] = []

    def calls() -> Iterator[tuple[int, Any]]:
        for number in range(50):
            taken.append(number)
            yield number, number

    results = in_order(Lazy(), calls())  # type: ignore[arg-type]
    assert next(results) == (0, 0)
    assert len(taken) == 5
    assert list(results) == [(n, n) for n in range(1, 50)]


def test_every_core_is_a_worker() -> None:
    assert number_of(-1) >= 1
    for jobs in (0, -5, 1.5, "a", None, True):
        with pytest.raises(UsageError, match=f"^{jobs!r} jobs do no work: give 1 or more, or -1"):
            number_of(jobs)  # type: ignore[arg-type]


def children() -> set[int]:
    """The processes that this one has started and that have not ended."""
    found = Path("/proc/self/task").glob("*/children")
    return {int(number) for path in found for number in path.read_text().split()}


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs Linux")
def test_processes_start_and_end_with_the_work() -> None:
    from joblib import delayed

    seen: list[set[int]] = []
    for _ in range(2):
        with fresh_workers(2) as parallel:
            before = children()
            seen.append(set(parallel(delayed(os.getpid)() for _ in range(8))))
            assert seen[-1] <= children()
            for number in seen[-1] if len(seen) == 1 else ():
                os.kill(number, signal.SIGKILL)  # a lost worker is no matter of the next work
        assert seen[-1].isdisjoint(children())
    assert before.isdisjoint(seen[1])
    assert seen[0].isdisjoint(seen[1])


_ENDLESS = """
import itertools, signal, time
from bpa_ppl.workers import in_order, pool
signal.signal(signal.SIGINT, signal.default_int_handler)
with pool(2) as workers:
    shared = workers.share(0.01)
    calls = ((n, workers.submit(pow, shared, n)) for n in itertools.count())
    for n, result in in_order(workers, calls):
        print(n, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs process groups")
def test_ctrl_c_ends_all_processes() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _ENDLESS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "0\n"
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the whole group
    _, err = process.communicate(timeout=30)
    assert process.returncode
    assert "KeyboardInterrupt" in err
    left = time.monotonic() + 10
    while _alive(process.pid):
        assert time.monotonic() < left, "a worker has outlived the work"
        time.sleep(0.05)


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
