"""Fuzz tests of everything that reads what others have written: each input is used or refused.

    python tests/soak/fuzz.py [--inputs 100000] [--seed 1] [--areas lists priors]
    python tests/soak/fuzz.py --areas priors --seed 1 --start 1234     from one input on

Each input must be accepted or end in one of our errors, in ten seconds of CPU time and with less
than a GiB more memory. Prints failures with the number of their input, then a table of areas, and
exits with 1 after a failure. The areas are defined in `areas.py`. A crash, or ten minutes for one
input, ends the program with a traceback.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import areas  # noqa: F401
from support.attempts import AREAS, attempt
from support.fuzzing import ACCEPTED, REFUSED, Failure

FAILED = "failed"
WATCHDOG = 600.0  # seconds, after which a reader that cannot be interrupted is ended


def run(area: str, seed: int, numbers: range) -> Counter[str]:
    """Use the inputs of an area, and return the number of each verdict."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            faulthandler.dump_traceback_later(WATCHDOG, exit=True)
            try:
                counts[attempt(area, seed, number, Path(folder))] += 1
            except Failure as failure:
                counts[FAILED] += 1
                print(f"{area} {number}: {str(failure)[:500]}", file=sys.stderr, flush=True)
    faulthandler.cancel_dump_traceback_later()
    return counts


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="if all areas are chosen")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--areas", nargs="*", choices=list(AREAS), default=list(AREAS))
    parser.add_argument("--start", type=int, default=0, help="the number of the first input")
    options = parser.parse_args()
    faulthandler.enable()
    line = "{:<22}{:>8}{:>10}{:>9}{:>10}{:>8}"
    print(line.format("area", "inputs", "accepted", "refused", "failures", "s"), flush=True)
    shares, failed = sum(area.share for area in AREAS.values()), 0
    for name in options.areas:
        start = perf_counter()
        inputs = max(1, round(options.inputs * AREAS[name].share / shares))
        counts = run(name, options.seed, range(options.start, inputs))
        failed += counts[FAILED]
        numbers = [counts.total(), *(counts[verdict] for verdict in (ACCEPTED, REFUSED, FAILED))]
        print(line.format(name, *numbers, f"{perf_counter() - start:.0f}"), flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
