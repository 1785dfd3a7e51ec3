"""The command `bpa`, also as `python -m bpa_ppl`."""

import sys


def main() -> None:
    """Run `bpa`; Ctrl-C ends it in the same way while modules are imported as later."""
    try:
        from bpa_ppl.cli import main as run
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except (ImportError, MemoryError) as error:
        print(f"error: bpa cannot start: {str(error) or 'out of memory'}", file=sys.stderr)
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
