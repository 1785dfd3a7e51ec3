"""Ctrl-C that cannot get lost."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: What shells report for a command that Ctrl-C has ended.
INTERRUPTED = 130
_AGAIN = 0.2  # seconds


@contextmanager
def insistent_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt at Ctrl-C, and again until the block has been left.

    Once is not enough: Python drops exceptions that are raised in callbacks, such as the one that
    JAX has called at each garbage collection, and the work would go on. While a module is being
    imported the exception waits, because compiled ones crash if it comes in their middle.
    """
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not heeded or not hasattr(signal, "setitimer"):  # ignored by wish (nohup), or Windows
        yield
        return
    alarm = signal.signal(signal.SIGALRM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    hook, sys.unraisablehook = sys.unraisablehook, _silent
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGALRM, alarm)


def _interrupt(number: int, frame: FrameType | None) -> None:
    signal.setitimer(signal.ITIMER_REAL, _AGAIN)
    if not _importing(frame):
        raise KeyboardInterrupt


def _silent(dropped: sys.UnraisableHookArgs) -> None:
    """Tell of exceptions that Python drops, but not of Ctrl-C, which comes again."""
    if not isinstance(dropped.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(dropped)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False
