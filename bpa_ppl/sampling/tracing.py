"""A lock for threads that trace NumPyro programs.

NumPyro has one stack of effect handlers for all threads, and JAX runs a program to trace it when a
function is compiled. Two threads that trace at once see the handlers of each other, and fail with
"all sites must have unique names". So a thread holds the lock from the target to the draws. Two
programs that run at once could also wait for each other forever (see `may_overlap`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_THREAD = threading.local()  # its attribute `holds`: whether this thread holds the lock


@contextmanager
def tracing() -> Iterator[None]:
    """Hold the lock, unless this thread holds it already.

    >>> with tracing(), tracing():
    ...     _LOCK.locked()
    True
    >>> _LOCK.locked()
    False
    """
    if getattr(_THREAD, "holds", False):
        yield
        return
    with _LOCK:
        _THREAD.holds = True
        try:
            yield
        finally:
            _THREAD.holds = False
