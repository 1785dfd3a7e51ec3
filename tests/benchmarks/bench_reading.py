"""How fast a Moses n-best list is read, and in how much memory.

    python tests/benchmarks/bench_reading.py [FILE]

Prints one table. Each way of reading runs in a process of its own, all of them in turn, round
after round; times are the best of the rounds, and ratios are within this one run. Memory is what
the process grew by at its peak.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bpa_ppl import iter_nbest, read_nbest

DEFAULT = Path(__file__).resolve().parents[3] / "shared/data/medical/adapt.nbest.gz"


def split_and_float(path: str) -> Any:
    """Read as a short script would: split each line, and call float on each value."""
    texts, values, totals = [], [], []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            _, text, features, total = line.split(" ||| ")
            texts.append(text)
            values.append([float(t) for t in features.split() if not t.endswith("=")])
            totals.append(float(total))
    return texts, np.array(values, dtype=np.float32), np.array(totals, dtype=np.float32)


def gzip_alone(path: str) -> None:
    """Decompress to nowhere: what any reader has to wait for."""
    subprocess.run(["gzip", "-dc", path], stdout=subprocess.DEVNULL, check=True)


def line_by_line(path: str) -> Any:
    """Read without compiled code."""
    from bpa_ppl.formats import moses

    moses._PLAIN_BLOCKS = sys.maxsize - 1
    return read_nbest(path)


def streamed(path: str) -> int:
    """Read in chunks of 64 sentences, and keep none."""
    return sum(len(chunk) for chunk in iter_nbest(path))


def load_compiled(path: str) -> None:
    """Read enough of a file to have the compiled parser loaded."""
    next(itertools.islice(iter_nbest(path, chunk=1), 30, None), None)


WAYS: dict[str, Callable[[str], Any]] = {
    "gzip -dc > /dev/null": gzip_alone,
    "split-and-float loop": split_and_float,
    "read_nbest, line by line": line_by_line,
    "read_nbest": read_nbest,
    "iter_nbest": streamed,
    "read_nbest, first call": read_nbest,
    "read_nbest, compiling": read_nbest,
}
COLD = ("read_nbest, first call", "read_nbest, compiling")


def peak() -> float:
    """Return the peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(way: str, path: str) -> dict[str, float]:
    """Return seconds and MiB of one reading, in this process."""
    if way not in COLD:
        load_compiled(path)
    before, start = peak(), time.perf_counter()
    kept = WAYS[way](path)
    seconds = time.perf_counter() - start
    del kept
    return {"seconds": seconds, "memory": peak() - before}


def in_own_process(way: str, path: str) -> dict[str, float]:
    """Return what `measured` says in a fresh process; "compiling" finds no cached code."""
    with tempfile.TemporaryDirectory() as empty:
        cache = {"NUMBA_CACHE_DIR": empty} if way.endswith("compiling") else {}
        command = [sys.executable, __file__, path, "--way", way]
        run = subprocess.run(
            command, env={**os.environ, **cache}, stdout=subprocess.PIPE, check=True
        )
    return json.loads(run.stdout)


def result_size(path: str) -> float:
    """Return the MiB that the table itself takes."""
    nbest = read_nbest(path)
    arrays = (nbest.features, nbest.totals, nbest.offsets, nbest.sentence_ids, nbest.string_index)
    size = sum(array.nbytes for array in arrays if array is not None)
    return (size + sys.getsizeof(nbest.strings) + sum(map(sys.getsizeof, nbest.strings))) / 2**20


def print_table(path: str, rounds: int) -> None:
    """Run every way `rounds` times, in turn, and print the best of each."""
    runs = [{way: in_own_process(way, path) for way in WAYS} for _ in range(rounds)]
    best = {way: min(run[way]["seconds"] for run in runs) for way in WAYS}
    memory = {way: min(run[way]["memory"] for run in runs) for way in WAYS}
    gunzip, loop = best["gzip -dc > /dev/null"], best["split-and-float loop"]
    print(f"{path}: the table takes {result_size(path):.0f} MiB; best of {rounds} rounds")
    print(f"{'':26}{'seconds':>9}{'× gzip':>9}{'loop ÷':>9}{'peak MiB':>10}")
    for way, seconds in best.items():
        ratios = f"{seconds / gunzip:9.2f}{loop / seconds:9.2f}"
        print(f"{way:26}{seconds:9.3f}{ratios}{memory[way]:10.0f}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", default=str(DEFAULT), help="a gzip-compressed list")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(measured(options.way, options.file)))
    else:
        print_table(options.file, options.rounds)


if __name__ == "__main__":
    main()
