"""Progress bars on a terminal or in a notebook, or a callback."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from importlib import import_module

#: Called with (steps done, total steps, a short note).
Reporter = Callable[[int, int, str], None]
_INTERVAL = 0.1  # seconds between two updates of a bar in a notebook
_inherited: ContextVar[bool | Reporter] = ContextVar("bpa_ppl_progress", default=False)


@contextmanager
def inherited_progress(progress: bool | Reporter) -> Iterator[None]:
    """Set what `reporter(None, title)` does in a block, for code that has no such option.

    Feature sources are an example.

    >>> with inherited_progress(lambda done, total, note: print(done, total, note)):
    ...     with reporter(None, "qe") as report:
    ...         report(1, 4, "sentences")
    1 4 sentences
    """
    token = _inherited.set(progress)
    try:
        yield
    finally:
        _inherited.reset(token)


@contextmanager
def reporter(progress: bool | Reporter | None, title: str) -> Iterator[Reporter]:
    """Yield a reporter: a bar for True, one that does nothing for False, or the callback.

    None is what `inherited_progress` has set, else False.
    """
    progress = _inherited.get() if progress is None else progress
    if callable(progress) or not progress:
        yield progress if callable(progress) else lambda done, total, note: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    console = Console(file=sys.stderr)
    if console.is_jupyter:
        with _notebook_bar(title) as report:
            yield report
        return
    columns = "{task.description}", BarColumn(), MofNCompleteColumn(), "{task.fields[note]}"
    quiet = not console.is_terminal
    bar = Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=quiet)
    with bar:
        task = bar.add_task(title, total=None, note="")
        yield lambda done, total, note: bar.update(task, completed=done, total=total, note=note)


@contextmanager
def _notebook_bar(title: str) -> Iterator[Reporter]:
    """Yield a reporter that draws plain HTML in the output of the cell.

    Rich would need ipywidgets, in the kernel and in the page.
    """
    display = import_module("IPython.display").display
    start, last = time.monotonic(), (0, 0, "")
    handle = display(_rendered(title, 0, *last), raw=True, display_id=True)
    drawn = start

    def draw() -> None:
        nonlocal drawn
        drawn = time.monotonic()
        handle.update(_rendered(title, drawn - start, *last), raw=True)

    def report(done: int, total: int, note: str) -> None:
        nonlocal last
        last = done, total, note
        if time.monotonic() - drawn >= _INTERVAL:
            draw()

    try:
        yield report
    finally:
        draw()


def _rendered(title: str, seconds: float, done: int, total: int, note: str) -> dict[str, str]:
    """Return a bar for a notebook, by MIME type.

    >>> _rendered("adapt", 61.5, 3, 4, "draws")["text/plain"]
    'adapt 3/4 draws 0:01:01'
    """
    minutes, rest = divmod(int(seconds), 60)
    text = f"{note} {minutes // 60}:{minutes % 60:02}:{rest:02}".lstrip()
    count = f"{done}/{total}" if total else str(done)
    attributes = f' value="{done}" max="{total}"' if total else ""
    return {
        "text/plain": f"{title} {count} {text}",
        "text/html": f"{escape(title)} <progress{attributes}></progress> {count} {escape(text)}",
    }
