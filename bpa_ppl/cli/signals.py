"""Signals that end a command: it removes its temporary files first, as after Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Those that ask a process to end, and of which Windows has only the first.
_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Ended(KeyboardInterrupt):
    """The command is ended by a signal other than Ctrl-C; the argument is its number."""

    @property
    def exit_code(self) -> int:
        """The exit code that a shell reports for a process that the signal ends."""
        return 128 + int(self.args[0])

    def __str__(self) -> str:
        return f"ended by {signal.Signals(self.args[0]).name}"


def _end(number: int, frame: FrameType | None) -> None:
    raise Ended(number)


@contextmanager
def ending_signals() -> Iterator[None]:
    """Raise `Ended` in the block for SIGTERM and SIGHUP, so that temporary files are removed.

    A signal that is ignored, as SIGHUP is after `nohup`, stays ignored. In a thread other than the
    main one, in which Python allows no change, nothing changes.
    """
    changed = []
    if threading.current_thread() is threading.main_thread():
        changed = [one for one in _ENDING if signal.getsignal(one) is signal.SIG_DFL]
    for one in changed:
        signal.signal(one, _end)
    try:
        yield
    finally:
        for one in changed:
            signal.signal(one, signal.SIG_DFL)


def restore_signals() -> None:
    """Let SIGTERM and SIGHUP end this process by themselves again.

    Managers of services take an end by SIGTERM for a regular one, and the exit code 143 for a
    failure.
    """
    for one in _ENDING:
        if signal.getsignal(one) is _end:
            signal.signal(one, signal.SIG_DFL)
