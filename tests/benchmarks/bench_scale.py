"""Time and peak memory of `bpa rerank` by the number of lists and of processes.

    python tests/benchmarks/bench_scale.py [--lists 2000 20000] [--jobs 1 2] [--dask N]
        [--formats moses] [--hypotheses 100] [--features 15] [--no-references]

The files repeat the 100-best lists of `authored/`, or the first hypotheses of each. Each run is a
process of its own; its peak memory, alone and with its workers, is sampled every 20 ms. All runs on
a file must write the same bytes. `--dask N` starts a cluster of N workers on this machine, whose
memory is not counted. A file of references is read whole; `--no-references` omits it.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from time import perf_counter, sleep
from typing import NamedTuple

import numpy as np
import psutil
from bench_reading import fairseq_lines, with_names
from measuring import DATA, Table, canonical, parse_options, scratch_folder

import bpa_ppl as bpa
from bpa_ppl.labels import expand

_INTERVAL = 0.02  # seconds between two samples of memory


class Run(NamedTuple):
    """Seconds, peaks in MiB without and with workers, and the hash of all outputs of one run."""

    seconds: float
    peak: float
    peak_with_workers: float
    digest: str


def authored_lists(hypotheses: int, features: int) -> tuple[bpa.NBest, bpa.Weights]:
    """Return lists with feature names that every format supports, and their weights."""
    parts = [
        bpa.read_nbest(
            DATA / f"authored/{name}.nbest100.gz", references=DATA / f"authored/{name}.ref"
        )
        for name in ("leaflet", "office")
    ]
    lists = bpa.NBest.concatenate(parts, renumber=True).without("totals").truncate(hypotheses)
    names = lists.feature_names[:features]
    weights = canonical()
    labels = expand("score", len(names))
    values = [weights.get(name, 1.0) for name in names]
    return with_names(lists, *labels), bpa.Weights(zip(labels, values, strict=True))


def write(lists: bpa.NBest, path: Path, format: str) -> None:
    """Write lists; plain text has its scores in a second file."""
    if format == "fairseq":
        path.write_text(fairseq_lines(lists))
        return
    if format == "plain":
        format = f"plain:list_size={lists.sizes[0]},scores={path}.scores"
    bpa.write_nbest(lists, path, format=format)


def write_posterior(path: Path, lists: bpa.NBest, weights: bpa.Weights, format: str) -> None:
    """Adapt to the first 100 lists, as they are read from the format."""
    lists = lists[:100]
    part = path.with_name("part")
    write(lists.without("references"), part, format)
    if format == "plain":
        format = f"plain:list_size={lists.sizes[0]},scores={part}.scores"
    sample = bpa.read_nbest(part, format=format, references=lists.references)
    canonical_weights = weights if set(weights) == set(sample.feature_names) else None
    bpa.write_posterior(bpa.adapt(sample, canonical_weights, sampler="imh"), path)


def run_rerank(folder: Path, lists: Path, *options: str) -> Run:
    """Rerank in a process of its own and sample its memory."""
    outputs = [folder / "out", folder / "details"]
    command = [sys.executable, "-m", "bpa_ppl", "rerank", lists, "-p", folder / "posterior.nc"]
    command += ["-o", outputs[0], "--details", outputs[1], "-q", "--unchecked", *options]
    start = perf_counter()
    process = psutil.Popen(list(map(str, command)), stdout=subprocess.PIPE)
    peak = peak_with_workers = 0.0
    while process.poll() is None:
        memory = [0.0]
        try:
            processes = [process, *process.children(recursive=True)]
            memory = [each.memory_info().rss / 2**20 for each in processes]
        except psutil.NoSuchProcess:
            pass
        peak, peak_with_workers = max(peak, memory[0]), max(peak_with_workers, sum(memory))
        sleep(_INTERVAL)
    seconds = perf_counter() - start
    if process.returncode:
        sys.exit(f"bpa rerank failed with exit code {process.returncode}")
    digest = hashlib.sha256(process.stdout.read())
    for path in outputs:
        digest.update(path.read_bytes())
    return Run(seconds, peak, peak_with_workers, digest.hexdigest())


@contextmanager
def dask_cluster(workers: int) -> Iterator[str]:
    """Yield the address of a Dask cluster on this machine."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, processes=True
    ) as cluster:
        yield cluster.scheduler_address


def main() -> None:
    """Print the table."""
    options = parse_options(
        __doc__,
        lists=(2000, 20000),
        jobs=(1, 2),
        dask=0,
        formats=("moses",),
        hypotheses=100,
        features=15,
        references=True,
    )
    lists, weights = authored_lists(options.hypotheses, options.features)
    folder = scratch_folder()
    backends = {f"{jobs}": ("--jobs", f"{jobs}") for jobs in options.jobs}
    columns = ("lists", "MiB", "jobs", "seconds", "peak MiB", "with workers", "same bytes")
    table = Table(f"format, lists of {options.hypotheses}", *columns)
    with dask_cluster(options.dask) if options.dask else nullcontext() as address:
        if address:
            backends[f"dask, {options.dask}"] = ("--backend", "dask", "--scheduler", address)
        for format, count in ((f, c) for f in options.formats for c in options.lists):
            write_posterior(folder / "posterior.nc", lists, weights, format)
            path = folder / ("lists.zst" if format == "moses" else "lists")
            repeated = lists.select(np.arange(count) % len(lists))
            repeated = bpa.NBest.concatenate([repeated], renumber=True)
            write(repeated.without("references"), path, format)
            arguments = ["--format", format]
            if format == "plain":
                arguments = ["--list-size", f"{options.hypotheses}", "--scores", f"{path}.scores"]
            if options.references:
                references = folder / "references"
                references.write_text("".join(f"{texts[0]}\n" for texts in repeated.references))
                arguments += ["-r", str(references)]
            del repeated
            digests = set()
            for jobs, backend in backends.items():
                run = run_rerank(folder, path, *arguments, *backend)
                digests.add(run.digest)
                table.row(
                    format,
                    f"{count:,}",
                    f"{path.stat().st_size / 2**20:.0f}",
                    jobs,
                    f"{run.seconds:.1f}",
                    f"{run.peak:.0f}",
                    f"{run.peak_with_workers:.0f}",
                    "yes" if len(digests) == 1 else "NO",
                )


if __name__ == "__main__":
    main()
