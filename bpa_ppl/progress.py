"""Progress of long work: a bar on standard error, or a callback of the caller's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Called with (steps done, steps in all, a short note).
Reporter = Callable[[int, int, str], None]


@contextmanager
def reporter(progress: bool | Reporter, what: str) -> Iterator[Reporter]:
    """Give a reporter: a Rich bar for True, silence for False, else the callback itself."""
    if callable(progress):
        yield progress
    elif not progress:
        yield lambda done, total, note: None
    else:
        with _bar(what) as report:
            yield report


@contextmanager
def _bar(what: str) -> Iterator[Reporter]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
    )
    console = Console(file=sys.stderr)
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task(what, total=None, note="")
        yield lambda done, total, note: bar.update(task, completed=done, total=total, note=note)
