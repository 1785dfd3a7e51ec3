"""Fuzz tests of everything that reads what others have written: each input is used or refused.

    python tests/soak/fuzz.py [--inputs 100000] [--seed 1] [--areas lists priors]
    python tests/soak/fuzz.py --areas priors --seed 1 --only 1234     one input, with a traceback

Each input must be accepted or end in one of our errors, in ten seconds of CPU time and with less
than a GiB more memory. Prints a table of areas and exits with 1 after a failure. The areas are
defined in `*_areas.py`; each runs in a process of its own, which is started again after a crash or
a hang. The files of failures are kept in the folder --keep.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parent))

import binary_areas  # noqa: F401
import program_areas  # noqa: F401
import text_areas  # noqa: F401
from attempts import AREAS, attempt, emptied
from fuzzing import ACCEPTED, REFUSED, Failure

FAILED = "failed"
WATCHDOG = 600.0  # seconds, after which a process that cannot be interrupted is ended
ADDRESSES = 64 << 30  # bytes of addresses, most of which are never used
SHARES = sum(area.share for area in AREAS.values())
_SHOWN = 5  # failures of each area that are kept
_LINE = "{:<22}{:>8}{:>10}{:>9}{:>10}{:>8}"


def work(area: str, seed: int, start: int, stop: int, folder: Path) -> None:
    """Use some inputs of an area, and print the number and the verdict of each."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    verdicts = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a reader prints is not a verdict
    for number in range(start, stop):
        print(number, end=" ", file=verdicts, flush=True)
        faulthandler.dump_traceback_later(WATCHDOG, exit=True)
        try:
            print(attempt(area, seed, number, emptied(folder)), file=verdicts)
        except Failure as failure:
            print(FAILED, " ".join(str(failure).split()), file=verdicts)
    faulthandler.cancel_dump_traceback_later()


def run(area: str, seed: int, inputs: int, keep: Path) -> Counter[str]:
    """Use the inputs of an area in other processes, and return the number of each verdict."""
    counts: Counter[str] = Counter()
    messages: Counter[str] = Counter()
    number = -1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        while number + 1 < inputs:
            command = [sys.executable, __file__, "--worker", area, str(seed)]
            command += [str(number + 1), str(inputs), name]
            log = tempfile.TemporaryFile("w+")  # noqa: SIM115
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                bufsize=1,
            )
            for line in process.stdout or ():
                first, *verdict = line.split(maxsplit=2)
                if not verdict:  # the process ended before there was one
                    break
                number = int(first)
                counts[verdict[0]] += 1
                if verdict[0] == FAILED:
                    _keep(area, number, seed, verdict[1], None, keep, messages)
            code = process.wait()
            if code and counts.total() < inputs:
                number += 1
                counts[FAILED] += 1
                log.seek(0)
                message = f"the process ended with {code}: {log.read()[-500:]}"
                _keep(area, number, seed, message, folder, keep, messages)
    return counts


def _keep(
    area: str,
    number: int,
    seed: int,
    message: str,
    folder: Path | None,
    keep: Path,
    messages: Counter[str],
) -> None:
    """Report a failure, unless there were others like it."""
    messages[message[:40]] += 1
    if messages[message[:40]] > 1 or len(messages) > _SHOWN:
        return
    target = keep / f"{area.replace(' ', '_')}-{number}"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    (target / "message").write_text(message)
    if folder is None:  # the process continued: make the input again
        command = [sys.executable, __file__, "--only", str(number), "--seed", str(seed)]
        subprocess.run([*command, "--areas", area, "--keep", str(target)], capture_output=True)
    else:
        _copy(folder, target)
    print(f"  {target}: {message[:300]}", file=sys.stderr, flush=True)


def _copy(folder: Path, target: Path) -> None:
    """Copy the regular files of an input."""
    for path in folder.iterdir():
        if path.is_file() and not path.is_symlink():
            shutil.copy(path, target)


def only(area: str, seed: int, number: int, keep: Path) -> int:
    """Use one input, print its verdict or the traceback, and keep its files."""
    keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        try:
            print(attempt(area, seed, number, Path(name)))
        finally:
            _copy(Path(name), keep)
    return 0


def main() -> int:
    """Print the table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000, help="if all areas are chosen")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--areas", nargs="*", choices=list(AREAS), default=list(AREAS))
    parser.add_argument("--only", type=int, help="the number of an input")
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "bpa_ppl_fuzz")
    options = parser.parse_args()
    if options.only is not None:
        return only(options.areas[0], options.seed, options.only, options.keep)
    print(_LINE.format("area", "inputs", "accepted", "refused", "failures", "s"), flush=True)
    total: Counter[str] = Counter()
    begun = perf_counter()
    for name in options.areas:
        start = perf_counter()
        inputs = max(1, round(options.inputs * AREAS[name].share / SHARES))
        counts = run(name, options.seed, inputs, options.keep)
        total += counts
        _row(name, counts, perf_counter() - start)
    _row("all", total, perf_counter() - begun)
    return int(total[FAILED] > 0)


def _row(name: str, counts: Counter[str], seconds: float) -> None:
    numbers = [counts.total(), *(counts[verdict] for verdict in (ACCEPTED, REFUSED, FAILED))]
    print(_LINE.format(name, *numbers, f"{seconds:.0f}"), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        area, seed, start, stop, folder = sys.argv[2:]
        work(area, int(seed), int(start), int(stop), Path(folder))
    else:
        sys.exit(main())
