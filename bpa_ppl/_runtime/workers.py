"""Parallel work in threads or processes of this machine, by joblib."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from numbers import Integral
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from bpa_ppl._runtime.messages import Note, capture_notes, replay
from bpa_ppl.errors import UsageError, wrong_value

if TYPE_CHECKING:
    import joblib

_AHEAD = 4  # the number of calls for each worker that are read together
_WATCH = 0.5  # seconds between checks that the parent of a worker is running

T = TypeVar("T")


def count_workers(jobs: Any) -> int:
    """Return the number of workers for `jobs`, where -1 means one for every core.

    Raises:
        UsageError: if `jobs` is not valid.

    >>> count_workers(2)
    2
    >>> count_workers(-5)
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: jobs must be at least 1, or -1 for every core, not -5
    """
    is_integer = isinstance(jobs, Integral) and not isinstance(jobs, bool)
    if not is_integer or jobs == 0 or not -1 <= jobs < 2**31:
        raise wrong_value("jobs must be at least 1, or -1 for every core", jobs, "jobs")
    if jobs > 0:
        return int(jobs)
    from joblib import effective_n_jobs

    return int(effective_n_jobs(jobs))


def _end_with_parent(pid: int) -> None:
    """End this process soon after its parent has ended, even if the parent was killed."""
    import psutil

    def watch() -> None:
        process = psutil.Process()
        while (parent := process.parent()) and parent.pid == pid:
            time.sleep(_WATCH)
        process.kill()  # its main thread may be in compiled code

    Thread(target=watch, daemon=True).start()


def _call_and_capture(function: Callable[..., T], args: Any, options: Any) -> tuple[T, list[Note]]:
    """Return the result of a call in a worker, and the notes that it logged."""
    with capture_notes() as notes:
        value = function(*args, **options)
    return value, notes


@dataclass(frozen=True)
class Parallel:
    """Workers for calls that `joblib.delayed` has made.

    Warnings and notes of the calls are logged in this process.

    Args:
        pool: the workers.
        width: the number of calls that run at the same time.
    """

    pool: joblib.Parallel
    width: int

    def __call__(self, calls: Iterable[Any]) -> Iterator[Any]:
        """Start calls, and return an iterator of their results."""
        from joblib import delayed

        def log_notes(result: tuple[Any, list[Note]]) -> Any:
            replay(result[1])
            return result[0]

        return map(log_notes, self.pool(delayed(_call_and_capture)(*call) for call in list(calls)))

    def in_order(self, calls: Iterable[tuple[T, Any]]) -> Iterator[tuple[T, Any]]:
        """Yield (item, result of its call) in order, while the next calls are read.

        This thread reads the items, and only a few of them are in memory.

        Args:
            calls: items, each with a call.

        >>> from joblib import delayed
        >>> with parallel_workers(2, threads=True) as parallel:
        ...     list(parallel.in_order((n, delayed(abs)(n)) for n in (-1, -2)))
        [(-1, 1), (-2, 2)]
        """
        remaining, size = iter(calls), _AHEAD * self.width
        batch = list(islice(remaining, size))
        while batch:
            results = self(call for _, call in batch)  # starts the calls
            items = deque(item for item, _ in batch)
            try:
                batch = list(islice(remaining, size))
                for result in results:
                    yield items.popleft(), result
            except (Exception, GeneratorExit):
                deque(results, maxlen=0)  # cancelled calls would print warnings and tracebacks
                raise


@contextmanager
def parallel_workers(
    jobs: int, *, threads: bool = False, ordered: bool = True
) -> Iterator[Parallel]:
    """Yield workers, and end their work when the block is left.

    Args:
        jobs: the number of workers; -1 means one for every core.
        threads: whether the workers are threads and not processes.
        ordered: whether results come in the order of the calls, or as soon as they are ready.

    Raises:
        UsageError: if `jobs` is not valid, or a worker is lost.

    >>> from joblib import delayed
    >>> with parallel_workers(2, threads=True) as parallel:
    ...     list(parallel(delayed(abs)(n) for n in (-1, -2)))
    [1, 2]
    """
    import joblib

    width = count_workers(jobs)
    of_processes = {"initializer": _end_with_parent, "initargs": (os.getpid(),)}
    try:
        with joblib.Parallel(
            width,
            backend="threading" if threads else "loky",
            return_as="generator" if ordered else "generator_unordered",
            batch_size=1,
            max_nbytes=None,  # arrays are sent without temporary files
            **({} if threads else of_processes),
        ) as pool:
            yield Parallel(pool, width)
    except BrokenProcessPool as error:
        problem = "a worker process was killed, usually for lack of memory: use fewer jobs"
        raise UsageError(problem, parameter="jobs", code="damaged") from error
