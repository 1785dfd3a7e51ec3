"""Parallel work by joblib, in processes and threads of this machine or on a cluster.

The workers are those of joblib's active backend, which a program chooses for Dask or Ray, as in
`joblib.parallel_config(backend="dask")`. Without a choice they are processes, started by loky.
"""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import resource_tracker
from numbers import Integral
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from bpa_ppl._runtime.arguments import require_extra
from bpa_ppl._runtime.messages import Note, capture_notes, replay
from bpa_ppl.errors import UsageError, wrong_value

if TYPE_CHECKING:
    import joblib

_AHEAD = 4  # the number of calls for each worker that are read together
_WATCH = 0.5  # seconds between checks that the parent of a worker is running
_ANSWER = 10  # seconds in which a scheduler answers, and has a worker
_PATIENCE = 60.0  # seconds for which calls wait while a scheduler has no worker

T = TypeVar("T")


def count_workers(jobs: Any, **hints: str | None) -> int:
    """Return the number of workers for `jobs` (-1: all); `hints` are those of `joblib.Parallel`.

    1, the default, leaves the number to the active backend; a cluster uses all of its workers.

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
    from joblib.parallel import get_active_backend

    backend, of_backend = get_active_backend(**hints)
    return int(backend.effective_n_jobs(of_backend if jobs == 1 else int(jobs)))


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
    from joblib import parallel_config

    with capture_notes() as notes, parallel_config(backend="sequential"):
        value = function(*args, **options)
    return value, notes


@dataclass(frozen=True)
class Parallel:
    """Workers for calls that `joblib.delayed` has made.

    Warnings and notes of the calls are logged in this process.

    Args:
        pool: the workers.
        width: the number of calls that run at the same time.
        shares_memory: whether they run in this process.
        starting: a block in which calls, and their processes, are started.
    """

    pool: joblib.Parallel
    width: int
    shares_memory: bool
    starting: Callable[[], AbstractContextManager[None]] = nullcontext
    _started: list[Any] = field(default_factory=list, repr=False)

    def __call__(self, calls: Iterable[Any]) -> Iterator[Any]:
        """Start calls, and return an iterator of their results."""
        from joblib import delayed

        def log_notes(result: tuple[Any, list[Note]]) -> Any:
            replay(result[1])
            return result[0]

        own = list(calls)
        with self.starting():
            results = self.pool(delayed(_call_and_capture)(*call) for call in own)
        self._started.append(results)
        return map(log_notes, results)

    def abort(self, error: BaseException) -> None:
        """Raise an error where results are awaited: joblib would warn of results not used."""
        for results in self._started:
            if isinstance(results, Generator):
                with suppress(type(error)):
                    results.throw(error)

    def in_order(self, calls: Iterable[tuple[T, Any]]) -> Iterator[tuple[T, Any]]:
        """Yield (item, result of its call) in order, while the next calls are read.

        This thread reads the items, and only a few of them are in memory.

        Args:
            calls: items, each with a call.

        >>> from joblib import delayed
        >>> with parallel_workers(2, require="sharedmem") as parallel:
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
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT in this thread, and in the processes that are started in the block.

    A terminal sends Ctrl-C to them, too, and they would print tracebacks; this process ends them.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # its start would end the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _make_backend(submit: Callable[..., Any], count: Callable[[], int]) -> Any:
    """Return a backend of joblib whose calls are futures of an executor.

    Args:
        submit: starts a call, and returns its future.
        count: returns the number of calls that run at the same time.
    """
    from joblib.parallel import ParallelBackendBase

    class Backend(ParallelBackendBase):  # type: ignore[misc]
        supports_retrieve_callback = True

        def effective_n_jobs(self, n_jobs: object) -> int:
            return count()

        def submit(self, func: Any, callback: Any) -> Any:
            future = submit(func)
            future.add_done_callback(callback)
            return future

        def retrieve_result_callback(self, out: Any) -> Any:
            return out.result()

    return Backend()


@contextmanager
def parallel_workers(jobs: int, **hints: str | None) -> Iterator[Parallel]:
    """Yield workers, and end their work when the block is left.

    Args:
        jobs: as for `count_workers`.
        hints: as of `joblib.Parallel`: `prefer="threads"` for threads unless a backend is active,
            `require="sharedmem"` for threads of this process in any case.

    Raises:
        UsageError: if `jobs` is not valid, or a worker is lost.

    >>> from joblib import delayed
    >>> with parallel_workers(2, require="sharedmem") as parallel:
    ...     list(parallel(delayed(abs)(n) for n in (-1, -2)))
    [1, 2]
    """
    import joblib
    from joblib.externals.loky import get_reusable_executor
    from joblib.parallel import LokyBackend, get_active_backend

    width, (backend, _) = count_workers(jobs, **hints), get_active_backend(**hints)
    of_processes = {"initializer": _end_with_parent, "initargs": (os.getpid(),)}
    try:
        with ExitStack() as stack:
            is_loky = isinstance(backend, LokyBackend) and width > 1
            if is_loky:  # idle processes would keep semaphores and memory
                stack.callback(lambda: get_reusable_executor(kill_workers=True).shutdown())
            pool = joblib.Parallel(
                width,
                backend=backend,
                return_as="generator" if backend.supports_return_generator else "list",
                batch_size=1,
                max_nbytes=None,  # arrays are sent without temporary files
                **(of_processes if is_loky else {}),
            )
            shared = getattr(backend, "supports_sharedmem", False)
            starting = _interrupts_blocked if is_loky else nullcontext
            parallel = Parallel(stack.enter_context(pool), width, shared, starting)
            try:
                yield parallel
            except KeyboardInterrupt as interrupted:
                parallel.abort(interrupted)
                raise
    except BrokenProcessPool as error:
        problem = "a worker process was killed, usually for lack of memory: use fewer jobs"
        raise UsageError(problem, parameter="jobs", code="damaged") from error


@contextmanager
def use_scheduler(address: str | None, *, patience: float = _PATIENCE) -> Iterator[None]:
    """Make the workers of a Dask scheduler those of the block.

    Args:
        address: of the scheduler; None changes nothing.
        patience: seconds for which calls wait while there is no worker.

    Raises:
        UsageError: if Dask is not installed, no scheduler with workers answers at the address, a
            call ends the workers that run it, or all workers are lost.
    """
    if address is None:
        yield
        return
    require_extra("a scheduler needs Dask", "cluster", "distributed", parameter="scheduler")
    from distributed import CancelledError, Client, KilledWorker
    from joblib import parallel_config

    waiting, is_lost, is_done = set[Any](), Event(), Event()

    def submit(call: Any) -> Any:
        future = client.submit(call, pure=False)
        waiting.add(future)
        future.add_done_callback(waiting.discard)
        return future

    def watch() -> None:
        """Cancel the calls that wait if there has been no worker for some time."""
        since = time.monotonic()
        while not is_done.wait(_WATCH):
            with suppress(OSError):  # the scheduler does not answer: Dask cancels the calls
                if not waiting or client.nthreads():
                    since = time.monotonic()
                elif time.monotonic() - since > patience:
                    is_lost.set()
                    client.cancel(list(waiting), force=True)

    with ExitStack() as stack:
        try:
            client = stack.enter_context(Client(address, timeout=_ANSWER))
            client.wait_for_workers(1, _ANSWER)
        except (OSError, ValueError) as error:
            raise UsageError(
                f"no Dask scheduler with workers answers at {address}: start it and its workers, "
                "or correct the address",
                parameter="scheduler",
                code="no-data",
            ) from error
        # With one worker, joblib would do the work in this process.
        backend = _make_backend(submit, lambda: max(2, sum(map(int, client.nthreads().values()))))
        stack.enter_context(parallel_config(backend=backend))
        watcher = Thread(target=watch, daemon=True)
        stack.callback(watcher.join)
        stack.callback(is_done.set)
        watcher.start()
        try:
            yield
        except (CancelledError, KilledWorker) as error:
            lost = f"the scheduler at {address} or several of its workers were lost"
            if is_lost.is_set():
                lost = f"the scheduler at {address} has had no worker for {patience:g} seconds"
            raise UsageError(
                f"{lost}, usually for lack of memory: look at their logs",
                parameter="scheduler",
                code="damaged",
            ) from error
