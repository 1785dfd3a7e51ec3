"""Prefetching: a thread prepares the next item while the caller works on the last one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from bpa_ppl.notes import Note, capture_notes, replay

T = TypeVar("T")


class _Step(NamedTuple):
    """The result of a step: one item or none, the notes that were logged, and an error or none."""

    items: list[Any]
    notes: list[Note]
    error: Exception | None


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield items while a thread prepares the next one, and no more than one.

    All items are prepared in that thread. Notes and errors are logged and raised in the thread of
    the caller, when it asks for the item.

    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1) as thread:

        def submit() -> Future[_Step]:
            return thread.submit(copy_context().run, _next, items)

        pending = submit()
        while True:
            step = pending.result()
            replay(step.notes)
            if step.error is not None:
                raise step.error
            if not step.items:
                return
            pending = submit()
            yield step.items.pop()  # which frees its memory as soon as the caller does


def _next(items: Iterator[T]) -> _Step:
    with capture_notes() as notes:
        try:
            return _Step(list(islice(items, 1)), notes, None)
        except Exception as error:
            return _Step([], notes, error)
