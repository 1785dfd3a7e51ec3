"""How `bpa rerank` grows: seconds and peak memory by the number of lists and of processes.

    python tests/benchmarks/bench_scale.py [--lists 2000 20000] [--jobs 1 2] [--dask N]

Synthetic files: the 100-best lists of `authored/`, repeated under new ids. Each run is a process
of its own; memory is the peak of that process, and of it with its workers, sampled every 20 ms.
The outputs of all runs on one file must have the same bytes. With --dask a cluster of N workers
is started on this machine, and its memory is left out.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import perf_counter, sleep
from typing import NamedTuple

import psutil
from measuring import DATA

import bpa_ppl as bpa
from bpa_ppl.formats import atomic_writer
from bpa_ppl.formats.streams import read_lines

_EACH = 0.02  # seconds between two looks at memory
_ADAPTED_ON = 100


class Run(NamedTuple):
    """What one run took: peaks in MiB, and the hash of what it wrote."""

    seconds: float
    own: float
    together: float
    written: str


def synthetic(path: Path, count: int) -> None:
    """Write lists and their references: those of the authored texts over and over."""
    folder = DATA / "authored"
    lists: list[list[str]] = []
    references: list[str] = []
    for name in ("leaflet", "office"):
        texts: dict[str, list[str]] = {}
        for line in read_lines(folder / f"{name}.nbest100.gz"):
            identifier, _, rest = line.partition(" ")
            texts.setdefault(identifier, []).append(rest)
        lists += texts.values()
        references += read_lines(folder / f"{name}.ref")
    with atomic_writer(path) as file, atomic_writer(path.with_suffix(".ref")) as texts_file:
        for sentence in range(count):
            at = sentence % len(lists)
            file.writelines(f"{sentence} {rest}\n" for rest in lists[at])
            texts_file.write(f"{references[at]}\n")


def posterior(path: Path) -> None:
    """Adapt to the leaflet, as the runs use it."""
    folder = DATA / "authored"
    lists = bpa.read_nbest(folder / "leaflet.nbest100.gz", references=folder / "leaflet.ref")
    weights = bpa.read_weights(DATA / "moses.ini")
    bpa.write_posterior(bpa.adapt(lists[:_ADAPTED_ON], weights, sampler="imh"), path)


def run(folder: Path, lists: Path, *options: str) -> Run:
    """Rerank in a process of its own, and watch it."""
    given = ["rerank", lists, "-p", folder / "posterior.nc", "-o", folder / "out", "--details"]
    given += [folder / "details", "-r", lists.with_suffix(".ref"), "-q", *options]
    program = [sys.executable, "-c", "from bpa_ppl.cli import main; main()"]
    start = perf_counter()
    process = psutil.Popen([*program, *map(str, given)], stdout=subprocess.PIPE)
    own = together = 0.0
    while process.poll() is None:
        now = _memory(process)
        own, together = max(own, now[0]), max(together, sum(now))
        sleep(_EACH)
    seconds = perf_counter() - start
    if process.returncode:
        sys.exit(f"bpa rerank has failed: {process.returncode}")
    written = hashlib.sha256(process.stdout.read())
    for name in ("out", "details"):
        written.update((folder / name).read_bytes())
    return Run(seconds, own, together, written.hexdigest())


def _memory(process: psutil.Process) -> list[float]:
    """Return MiB of resident memory of a process, and of each below it."""
    found = [0.0]
    try:
        found = [process.memory_info().rss / 2**20]
        below = process.children(recursive=True)
        found += [child.memory_info().rss / 2**20 for child in below]
    except psutil.NoSuchProcess:
        pass
    return found


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    """Give the address of a Dask cluster on this machine."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, processes=True
    ) as made:
        yield made.scheduler_address


def main() -> None:
    """Print a table of runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lists", type=int, nargs="+", default=[2000, 20000])
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--dask", type=int, default=0, metavar="N")
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"this benchmark needs the n-best lists of {DATA}, which are not here")
    ways = {f"{jobs}": ("--jobs", f"{jobs}") for jobs in options.jobs}
    with (
        tempfile.TemporaryDirectory() as name,
        cluster(options.dask) if options.dask else nullcontext() as address,
    ):
        folder = Path(name)
        posterior(folder / "posterior.nc")
        if address:
            ways[f"dask, {options.dask}"] = ("--backend", "dask", "--scheduler", address)
        head = ("lists × 100", "jobs", "seconds", "peak MiB", "with workers", "same bytes")
        print("{:>12}{:>9}{:>9}{:>10}{:>14}{:>12}".format(*head))
        for count in options.lists:
            path = folder / f"{count}.zst"
            synthetic(path, count)
            first = ""
            for jobs, more in ways.items():
                done = run(folder, path, *more)
                first = first or done.written
                same = "yes" if done.written == first else "NO"
                print(
                    f"{count:>12}{jobs:>9}{done.seconds:>9.1f}{done.own:>10.0f}"
                    f"{done.together:>14.0f}{same:>12}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
