"""The command `bpa`, also as `python -m bpa_ppl`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run `bpa`; Ctrl-C during the imports ends it as it does later."""
    try:
        try:
            from bpa_ppl.cli import main as run
        except (ImportError, MemoryError) as error:
            print(f"error: bpa cannot start: {str(error) or 'out of memory'}", file=sys.stderr)
            sys.exit(2)
        run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
