"""Workers of an induction: threads of this process, which share its memory, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from bpa_ppl.workers import Future, Pool, Shared, check_backend, in_order, number_of, pool

T = TypeVar("T")


@contextmanager
def workers(jobs: int, backend: str = "local", scheduler: str | None = None) -> Iterator[Pool]:
    """Give workers, and end their work when the block is left.

    Args:
        jobs: threads of this process; compiled code runs in all of them at once.
        backend: `local`, or `dask` for the workers of an existing cluster.
        scheduler: the address of the cluster's scheduler.

    Raises:
        UsageError: if the backend cannot be used.
    """
    check_backend(backend, scheduler)
    if backend != "local":
        with pool(jobs, backend, scheduler) as found:
            yield found
        return
    width = number_of(jobs)
    executor = ThreadPoolExecutor(width)
    try:
        yield _Threads(executor, width)
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def results(
    team: Pool, function: Callable[[Any, Any], T], shared: Shared, items: Sequence[Any]
) -> Iterator[T]:
    """Yield `function(shared value, item)` of each item, in order.

    >>> with workers(2) as team:
    ...     print(list(results(team, pow, team.share(2), [3, 4])))
    [8, 16]
    """
    begun = ((None, team.submit(function, shared, item)) for item in items)
    for _, found in in_order(team, begun, ahead=1):
        yield found


class _Threads:
    """Threads as a pool: what is shared is there already."""

    def __init__(self, executor: ThreadPoolExecutor, width: int):
        self._executor, self.width = executor, width

    def share(self, value: Any) -> Shared:
        return Shared("", value)

    def submit(self, function: Callable[[Any, Any], T], shared: Shared, item: Any) -> Future:
        return self._executor.submit(function, shared.place, item)

    def result(self, future: Future) -> Any:
        return future.result()
