"""Worker processes: of this machine, by joblib, or of a Dask cluster."""

from __future__ import annotations

import hashlib
import os
import pickle
import signal
import sys
import tempfile
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from bpa_ppl.errors import UsageError, one_of, quoted
from bpa_ppl.notes import Note, capture_notes, replay

BACKENDS = ("local", "dask")
#: One thread a worker: as many workers as cores would otherwise start cores² threads.
_SINGLE = ("PJRT_NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_HELD = 4  # shared values that a worker keeps

T = TypeVar("T")


def check_backend(backend: str, scheduler: str | None) -> None:
    """Raise a UsageError unless a backend can be used.

    Args:
        backend: `local` or `dask`.
        scheduler: the address of the scheduler of a Dask cluster.

    >>> check_backend("local", None)
    """
    one_of(backend, BACKENDS, "backend")
    if (backend == "dask") != (scheduler is not None):
        raise UsageError("the backend dask and the address of a scheduler go together: give both")
    if backend == "dask" and find_spec("distributed") is None:
        raise UsageError("the backend dask needs Dask: install bpa_ppl[dask]")


def check_jobs(jobs: Any) -> None:
    """Raise a UsageError unless a number of jobs is one: 1 or more, or −1 for every core.

    >>> check_jobs(-1)
    >>> check_jobs(-5)
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: -5 jobs do no work: give 1 or more, or -1 for every core
    """
    if isinstance(jobs, bool) or not hasattr(jobs, "__index__") or jobs < -1 or jobs == 0:
        raise UsageError(f"{quoted(jobs)} jobs do no work: give 1 or more, or -1 for every core")


def number_of(jobs: int) -> int:
    """Return how many workers so many jobs are; −1 is one for every core.

    Raises:
        UsageError: if there are none, or it is no number of workers.

    >>> number_of(2)
    2
    """
    check_jobs(jobs)
    from joblib import effective_n_jobs

    return int(effective_n_jobs(jobs))


@contextmanager
def fresh_workers(
    jobs: int, backend: str = "local", scheduler: str | None = None, **options: Any
) -> Iterator[Any]:
    """Give joblib's `Parallel` with workers that start with the work and end with it.

    Joblib would let its processes wait for more work. They leave by themselves after five idle
    minutes, and one that leaves while it is given work can keep the others waiting for ever.

    Args:
        jobs: how many; -1 is one for every core.
        backend: `local`, processes of this machine; `threads`; or `dask`.
        scheduler: the address of the scheduler of a Dask cluster.
        options: of `Parallel`: `return_as`, `batch_size`.

    Raises:
        UsageError: if there are none, or no scheduler answers.

    >>> from joblib import delayed
    >>> with fresh_workers(2, "threads") as parallel:
    ...     print(parallel(delayed(abs)(n) for n in (-1, -2)))
    [1, 2]
    """
    from joblib import Parallel, parallel_config

    count, processes = number_of(jobs), backend == "local"
    kind = {"local": "loky", "threads": "threading"}.get(backend, backend)
    given: dict[str, Any] = {"scheduler_host": scheduler} if backend == "dask" else {}
    if processes:
        given = {"initializer": _stay}
    try:
        config = parallel_config(backend=kind, **given)
    except OSError as error:
        raise _no_scheduler(scheduler, error) from error
    with config:
        if processes and count > 1:
            _end_processes()
        try:
            parallel = Parallel(jobs, **options)
            yield parallel if backend == "threads" or count == 1 else _Telling(parallel)
        finally:
            if processes and count > 1:
                _end_processes()


class _Done(NamedTuple):
    """What a worker has made of a call, and what it has told of it."""

    value: Any
    notes: list[Note]

    def told(self) -> Any:
        """Tell it here, and return the value."""
        replay(self.notes)
        return self.value


def _held_back(function: Callable[..., Any], *given: Any, **named: Any) -> _Done:
    """Call a function, and hold back what it tells; this runs in a worker."""
    with capture_notes() as notes:
        value = function(*given, **named)
    return _Done(value, notes)


class _Telling:
    """A `Parallel` whose workers' notes are told in this process, when their results come."""

    def __init__(self, parallel: Any):
        self._parallel = parallel

    def __call__(self, calls: Iterable[Any]) -> Any:
        found = self._parallel((_held_back, (f, *given), named) for f, given, named in calls)
        results = (done.told() for done in found)
        return list(results) if isinstance(found, list) else results


def _end_processes() -> None:
    """End the worker processes that joblib keeps, if there are any."""
    from joblib.externals.loky import get_reusable_executor

    # One that lost a worker is killed too: it would be waited for in vain.
    get_reusable_executor(kill_workers=True).shutdown(wait=True, kill_workers=True)


class Future(Protocol):
    """What workers promise."""

    def result(self) -> Any:
        """Wait for the result, or raise what the work has raised."""


class Shared(NamedTuple):
    """A value that goes to each worker once.

    Attributes:
        key: the hash of its content.
        place: its pickle, or the path of a file that holds it.
    """

    key: str
    place: Any


class Pool(Protocol):
    """Workers that a stream of work is given to.

    Attributes:
        width: how many calls are worked on at the same time.
    """

    width: int

    def share(self, value: Any) -> Shared:
        """Make a value known to all workers.

        Raises:
            UsageError: if there is no room for it.
        """

    def submit(self, function: Callable[[Any, Any], T], shared: Shared, item: Any) -> Future:
        """Begin to compute `function(value, item)` with a shared value."""

    def result(self, future: Future) -> Any:
        """Return what has been computed.

        Raises:
            UsageError: if the worker is lost.
        """


@contextmanager
def pool(jobs: int, backend: str = "local", scheduler: str | None = None) -> Iterator[Pool]:
    """Give workers, and end their work when the block is left, by an error or Ctrl-C too.

    Args:
        jobs: processes of this machine; a cluster has as many as it has.
        backend: `local`, or `dask` for the workers of an existing cluster.
        scheduler: the address of the cluster's scheduler.

    Raises:
        UsageError: if the backend cannot be used.
    """
    check_backend(backend, scheduler)
    with _local(number_of(jobs)) if backend == "local" else _cluster(scheduler) as workers:
        yield workers


def in_order(
    workers: Pool, begun: Iterable[tuple[T, Future]], ahead: int = 2
) -> Iterator[tuple[T, Any]]:
    """Yield (what was given, its result) in order, while the next ones are being worked on.

    Args:
        workers: from `pool`.
        begun: what was given, with the future from `submit`; at most `ahead` calls a worker wait.
        ahead: see above.
    """
    waiting: deque[tuple[T, Future]] = deque()
    for entry in begun:
        waiting.append(entry)
        if len(waiting) > ahead * workers.width:
            given, future = waiting.popleft()
            yield given, workers.result(future)
    while waiting:
        given, future = waiting.popleft()
        yield given, workers.result(future)


class _Local:
    """Processes of this machine, which find shared values in files."""

    def __init__(self, executor: Any, folder: Path, width: int, lost: type[Exception]):
        self.width = width
        self._executor, self._folder, self._lost = executor, folder, lost

    def share(self, value: Any) -> Shared:
        content, key = _pickled(value)
        path = self._folder / key
        try:
            path.write_bytes(content)
        except OSError as error:
            raise UsageError(
                f"no room for temporary files in {self._folder.parent} ({error.strerror}): name "
                "another folder in TMPDIR, or give 1 job"
            ) from error
        return Shared(key, str(path))

    def submit(self, function: Callable[[Any, Any], T], shared: Shared, item: Any) -> Future:
        future: Future = self._executor.submit(_held_back, _call, function, *shared, item)
        return future

    def result(self, future: Future) -> Any:
        try:
            return future.result().told()
        except self._lost as error:
            raise UsageError(
                "a worker process was killed, for lack of memory as a rule: give fewer jobs"
            ) from error


class _Cluster:
    """The workers of a Dask cluster, which are sent shared values once."""

    def __init__(self, client: Any, lost: tuple[type[BaseException], ...]):
        self._client, self._lost = client, lost
        self.width = max(1, sum(client.nthreads().values()))

    def share(self, value: Any) -> Shared:
        content, key = _pickled(value)
        with self._told():
            return Shared(key, self._client.scatter(content, broadcast=True, hash=False))

    def submit(self, function: Callable[[Any, Any], T], shared: Shared, item: Any) -> Future:
        with self._told():
            # Sent apart from the call: what is sent with it stays in the memory of the client.
            (sent,) = self._client.scatter([item], hash=False)
            future: Future = self._client.submit(
                _held_back, _call, function, *shared, sent, pure=False
            )
        return future

    def result(self, future: Future) -> Any:
        with self._told():
            done = future.result()
        return done.told()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say in our own words that the cluster cannot do the work."""
        try:
            yield
        except ImportError as error:
            raise UsageError(
                f"the workers of the cluster cannot do this work ({error}): install the same "
                "packages there as here"
            ) from error
        except self._lost as error:
            raise UsageError(
                f"a worker of the cluster is lost ({error or type(error).__name__}): look at the "
                "log of its scheduler"
            ) from error


@contextmanager
def _local(jobs: int) -> Iterator[Pool]:
    from multiprocessing import resource_tracker

    from joblib.externals.loky import ProcessPoolExecutor
    from joblib.externals.loky.process_executor import BrokenProcessPool

    single = dict.fromkeys(_SINGLE, "1")
    with tempfile.TemporaryDirectory(prefix="bpa_ppl.") as folder:
        with _no_interrupts(), _no_warnings():
            executor = ProcessPoolExecutor(jobs, initializer=_ignore_interrupts, env=single)
            resource_tracker.ensure_running()  # it unblocks what is blocked where it is started
            with _no_interrupts():
                executor.submit(int).result()
        try:
            yield _Local(executor, Path(folder), jobs, BrokenProcessPool)
        finally:
            with _no_interrupts():
                executor.shutdown(wait=True, kill_workers=True)


@contextmanager
def _cluster(scheduler: str | None) -> Iterator[Pool]:
    distributed = import_module("distributed")  # an extra of ours
    lost = (
        distributed.KilledWorker,
        distributed.CancelledError,
        distributed.comm.CommClosedError,
        TimeoutError,
    )
    try:
        client = distributed.Client(scheduler, set_as_default=False)
    except (OSError, ValueError) as error:
        raise _no_scheduler(scheduler, error) from error
    with client:
        yield _Cluster(client, lost)


def _no_scheduler(scheduler: str | None, error: Exception) -> UsageError:
    return UsageError(f"no scheduler answers at {scheduler}: {error}")


def _pickled(value: Any) -> tuple[bytes, str]:
    """Return a value as bytes, and their hash; classes of a notebook go along."""
    from joblib.externals.loky.backend.reduction import dumps

    content = bytes(dumps(value))
    return content, hashlib.sha256(content).hexdigest()


@contextmanager
def _no_warnings() -> Iterator[None]:
    """Leave out what a user can do nothing about when processes are started, and in them."""
    given = os.environ.get("PYTHONWARNINGS")
    # After Ctrl-C loky's tracker tells of semaphores that it has removed.
    quiet = "ignore:resource_tracker:UserWarning"
    os.environ["PYTHONWARNINGS"] = quiet if given is None else f"{given},{quiet}"
    try:
        with warnings.catch_warnings():
            # JAX warns of forks; these run another program at once.
            warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
            yield
    finally:
        os.environ.pop("PYTHONWARNINGS")
        if given is not None:
            os.environ["PYTHONWARNINGS"] = given


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait until the block is left; processes that are started in it never hear it."""
    if threading.current_thread() is not threading.main_thread() or os.name != "posix":
        yield
        return
    missed: list[int] = []
    # The alarm is Ctrl-C again: see `bpa_ppl.cli.interrupts`.
    kept = {
        number: signal.signal(number, lambda number, frame: missed.append(number))
        for number in (signal.SIGINT, signal.SIGALRM)
    }
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in kept.items():
            signal.signal(number, handler)
        if missed:
            signal.raise_signal(signal.SIGINT)


def _ignore_interrupts() -> None:
    """Leave Ctrl-C, which reaches a whole group of processes, to the one that ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _stay()


def _stay() -> None:
    """Keep a worker at work though its memory grows; this runs in the worker.

    Loky ends one that has grown by 300 MB since its first call, which is no leak where compiled
    programs and tables are loaded later. The thread that hears of it warns, and where warnings are
    errors that is its end: nobody reads results any more.
    """
    from joblib.externals.loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize


_held: dict[str, Any] = {}


def _call(function: Callable[[Any, Any], T], key: str, place: Any, item: Any) -> T:
    """Call a function with a shared value; this runs in a worker."""
    if key not in _held:
        content = place if isinstance(place, bytes) else Path(place).read_bytes()
        while len(_held) >= _HELD:
            _held.pop(next(iter(_held)), None)
        _held[key] = pickle.loads(content)
    return function(_held[key], item)
