"""The command `bpa`, also as `python -m bpa_ppl`."""

from __future__ import annotations

import os
import signal
import sys
from _thread import interrupt_main
from contextlib import suppress
from threading import Timer, main_thread

_PAUSE = 0.1  # seconds, in which the callback ends
_SIGNALS = 128  # exit codes above this one stand for signals


def main() -> None:
    """Run `bpa`; Ctrl-C ends it in the same way whenever it comes."""
    sys.unraisablehook = _repeat_interrupt
    try:
        try:
            from bpa_ppl.cli.app import main as run
        except (ImportError, MemoryError) as error:
            print(f"error: bpa cannot start: {str(error) or 'out of memory'}", file=sys.stderr)
            sys.exit(2)
        run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        _leave(130)
    except SystemExit as end:
        from bpa_ppl._runtime.cache import jax_was_used

        # Without JAX, the process ends as usual, and removes what it shared with its workers.
        if isinstance(end.code, int) and end.code > _SIGNALS and jax_was_used():
            _leave(end.code)
        raise


def _leave(code: int) -> None:
    """End the process at once.

    JAX compiles and computes in threads of its own, which a signal does not stop. They crash, or
    are waited for, if Python frees what they use.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # it is closed, or nobody reads it
            stream.flush()
    os._exit(code)


def _repeat_interrupt(unraisable: sys.UnraisableHookArgs) -> None:
    """Interrupt the program again if Ctrl-C came during a callback, whose exceptions are ignored.

    JAX has such a callback, which runs whenever Python collects garbage. Other signals that end a
    command are repeated, too; their numbers are the arguments of their exceptions.
    """
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        number = next(iter(getattr(unraisable.exc_value, "args", ())), signal.SIGINT)
        Timer(_PAUSE, _interrupt, [number]).start()
    else:
        sys.__unraisablehook__(unraisable)


def _interrupt(number: int) -> None:
    """Send a signal to the main thread, which may be waiting for input."""
    if sys.platform == "win32":
        interrupt_main(number)
    else:
        signal.pthread_kill(main_thread().ident or 0, number)


if __name__ == "__main__":
    main()
