"""Progress bars on a terminal or in a notebook, or a callback."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Called with (steps done, total steps, a short note).
Reporter = Callable[[int, int, str], None]
_inherited: ContextVar[bool | Reporter] = ContextVar("bpa_ppl_progress", default=False)


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


#: A bar without the remaining time, which is that of steps that take equally long.
_UNEVEN = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"


@contextmanager
def reporter(
    progress: bool | Reporter | None, title: str, *, even: bool = True
) -> Iterator[Reporter]:
    """Yield a reporter: a bar for True, one that does nothing for False, or the callback.

    None is what `inherit_progress` has set, else False. The bar shows the remaining time if the
    steps are `even`; otherwise the notes may say it.
    """
    progress = _inherited.get() if progress is None else progress
    is_shown = progress and (sys.stderr.isatty() or "ipykernel" in sys.modules)
    if callable(progress) or not is_shown:
        yield progress if callable(progress) else lambda done, total, note: None
        return
    from tqdm.auto import tqdm

    style = None if even else _UNEVEN
    with tqdm(desc=title, file=sys.stderr, leave=False, bar_format=style) as bar:

        def report(done: int, total: int, note: str) -> None:
            bar.total = total or None
            bar.set_postfix_str(note, refresh=False)
            bar.update(done - bar.n)
            if not done:  # a stage begins: the bar shows its name before its first step
                bar.refresh()

        yield report
