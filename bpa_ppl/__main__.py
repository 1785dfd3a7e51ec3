"""The command `bpa`, also as `python -m bpa_ppl`."""

from __future__ import annotations

import sys
from _thread import interrupt_main
from threading import Timer

_PAUSE = 0.1  # seconds, in which the callback ends


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
        sys.exit(130)


def _repeat_interrupt(unraisable: sys.UnraisableHookArgs) -> None:
    """Interrupt the program again if Ctrl-C came during a callback, whose exceptions are ignored.

    JAX has such a callback, which runs whenever Python collects garbage. Other signals that end a
    command are repeated likewise; their numbers are the arguments of their exceptions.
    """
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        Timer(_PAUSE, interrupt_main, getattr(unraisable.exc_value, "args", ())).start()
    else:
        sys.__unraisablehook__(unraisable)


if __name__ == "__main__":
    main()
