"""Progress in a line of a terminal or of a notebook, or to a callback."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from shutil import get_terminal_size
from time import perf_counter

from bpa_ppl._runtime.messages import REMOVE_LINE

#: Called with (steps done, total steps, a short note).
Reporter = Callable[[int, int, str], None]
_inherited: ContextVar[bool | Reporter] = ContextVar("bpa_ppl_progress", default=False)


def no_report(done: int, total: int, note: str) -> None:
    """Report no progress."""


@contextmanager
def inherit_progress(progress: bool | Reporter) -> Iterator[None]:
    """Set what `reporter(None, title)` does in a block, for code that has no such option.

    Feature sources are an example.

    >>> with inherit_progress(lambda done, total, note: print(done, total, note)):
    ...     with reporter(None, "qe") as report:
    ...         report(1, 4, "sentences")
    1 4 sentences
    """
    token = _inherited.set(progress)
    try:
        yield
    finally:
        _inherited.reset(token)


def is_reported() -> bool:
    """Return whether `inherit_progress` has set that progress is reported.

    >>> is_reported()
    False
    """
    return _inherited.get() not in (False, no_report)


_INTERVAL = 0.1  # seconds between two states of a line that are shown


@contextmanager
def reporter(
    progress: bool | Reporter | None, title: str, *, even: bool = True
) -> Iterator[Reporter]:
    """Yield a reporter: a line for True, one that does nothing for False, or the callback.

    None is what `inherit_progress` has set, else False. The line shows the remaining time if the
    steps are `even`, so that they take equally long; otherwise the notes may say it.
    """
    progress = _inherited.get() if progress is None else progress
    is_shown = progress and (sys.stderr.isatty() or "ipykernel" in sys.modules)
    if callable(progress) or not is_shown:
        yield progress if callable(progress) else no_report
        return
    with _progress_line(title, even) as report:
        yield report


@contextmanager
def _progress_line(title: str, even: bool) -> Iterator[Reporter]:
    """Yield a reporter that shows its steps in one line, which is removed at the end.

    It is removed before a message, too, and shown again with the next step.
    """
    start, shown, width = perf_counter(), 0.0, 0

    def show(text: str, end: str = "") -> None:
        nonlocal width
        text = text[: get_terminal_size().columns - 1]
        print(f"\r{text.ljust(width)}", end=end, file=sys.stderr, flush=True)
        width = len(text)

    def report(done: int, total: int, note: str) -> None:
        nonlocal shown
        now = perf_counter()
        if done and now - shown < _INTERVAL:
            return
        shown = now
        seconds = now - start
        parts = [f"{done / total:.0%}, {done:,}/{total:,}" if total else f"{done:,}"]
        parts.append(str(timedelta(seconds=round(seconds))))
        if even and 0 < done < total:
            parts.append(f"{timedelta(seconds=round(seconds / done * (total - done)))} left")
        show(f"{title}: {', '.join(filter(None, [*parts, note]))}")

    def remove() -> None:
        if width:
            show("", end="\r")

    token = REMOVE_LINE.set(remove)
    try:
        yield report
    finally:
        REMOVE_LINE.reset(token)
        show("", end="\r")
