"""Reading ahead: a thread prepares the next item while somebody works on the last one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from bpa_ppl.notes import Note, capture_notes, replay

T = TypeVar("T")


class _Made(NamedTuple):
    """What a step brought: one item or none, what was told of it, and the error instead of it."""

    items: list[Any]
    notes: list[Note]
    error: Exception | None


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield items while a thread prepares the next one; it is never more than one ahead.

    All items are made in that one thread. What is told of an item, and the error that stands
    instead of it, come in the thread of who asks for the item, as if it were made then.

    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1) as thread:

        def begun() -> Future[_Made]:
            return thread.submit(copy_context().run, _next, items)

        pending = begun()
        while True:
            made = pending.result()
            replay(made.notes)
            if made.error is not None:
                raise made.error
            if not made.items:
                return
            pending = begun()
            yield made.items.pop()  # no name holds it while the next one is waited for


def _next(items: Iterator[T]) -> _Made:
    with capture_notes() as notes:
        try:
            return _Made(list(islice(items, 1)), notes, None)
        except Exception as error:
            return _Made([], notes, error)
