"""How `bpa rerank` grows: seconds and peak memory by the number of lists and of processes.

    python tests/benchmarks/bench_scale.py [--lists 2000 20000] [--jobs 1 2] [--dask N]
        [--formats moses] [--hypotheses 100] [--features 15] [--no-references]

Synthetic files in each format: the 100-best lists of `authored/`, or the beginnings of these,
repeated under new ids. Each run is a process of its own; memory is the peak of that process, and of
it with its workers, sampled every 20 ms. The outputs of all runs on one file must have the same
bytes. With --dask a cluster of N workers is started on this machine, and its memory is left out.
A file of references is held whole, so --no-references shows what the lists alone take.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from time import perf_counter, sleep
from typing import NamedTuple, TextIO

import numpy as np
import psutil
from bench_line_formats import as_fairseq
from measuring import DATA, canonical

import bpa_ppl as bpa
from bpa_ppl.errors import BpaWarning
from bpa_ppl.formats import atomic_writer
from bpa_ppl.labels import expand

_EACH = 0.02  # seconds between two looks at memory
_ADAPTED_ON = 100
_PART = 20  # how often the lists are repeated in what is written at once


class Run(NamedTuple):
    """What one run took: peaks in MiB, and the hash of what it wrote."""

    seconds: float
    own: float
    together: float
    written: str


def authored(hypotheses: int, features: int) -> tuple[bpa.NBest, bpa.Weights]:
    """Return lists with features that every format can name, and the weights of these."""
    files = [DATA / "authored" / name for name in ("leaflet", "office")]
    lists = bpa.NBest.concatenate(
        [
            bpa.read_nbest(f"{file}.nbest100.gz", references=file.with_suffix(".ref"))
            for file in files
        ],
        renumber=True,
    )
    kept = lists.without("totals").truncate(hypotheses)
    kept = kept.without_features(kept.feature_names[features:])
    names = expand("score", len(kept.feature_names))
    known = canonical()
    values = [known.get(name, 1.0) for name in kept.feature_names]
    named = bpa.NBest(**{**vars(kept), "feature_names": names})
    return named, bpa.Weights(zip(names, values, strict=True))


def named(format: str, path: Path, hypotheses: int) -> str:
    """Return a format with its settings: plain text has its scores in a file beside."""
    return f"plain:list_size={hypotheses},scores={path}.scores" if format == "plain" else format


def write_part(lists: bpa.NBest, path: Path, format: str) -> None:
    """Write some lists, those of fairseq with scores of tokens that are drawn."""
    if format == "fairseq":
        lines = as_fairseq(lists).splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith("T-")))
    else:
        bpa.write_nbest(lists, path, format=named(format, path, lists.sizes[0]))


def append(part: Path, file: TextIO, header: bool) -> None:
    """Copy a part behind those before, whose header holds for all."""
    with part.open() as written:
        if header:
            next(written)
        file.writelines(written)


def synthetic(lists: bpa.NBest, path: Path, format: str, count: int) -> None:
    """Write so many lists, those given over and over, and their references beside."""
    from pyarrow import parquet

    tiled = lists.without("references").select(np.tile(np.arange(len(lists)), _PART))
    references = [known[0] for known in lists.references or ()]
    part, scores = path.with_name("part"), path.with_name("part.scores")
    with ExitStack() as files:
        texts, file = (files.enter_context(atomic_writer(f"{path}{end}")) for end in (".ref", ""))
        beside = files.enter_context(atomic_writer(f"{path}.scores"))
        tables: parquet.ParquetWriter | None = None
        for start in range(0, count, len(tiled)):
            ids = np.arange(start, min(start + len(tiled), count))
            of_part = {**vars(tiled[: len(ids)]), "sentence_ids": ids}
            write_part(bpa.NBest(**of_part), part, format)
            texts.writelines(f"{references[i % len(lists)]}\n" for i in ids.tolist())
            if format == "parquet":
                table = parquet.read_table(part)
                if tables is None:
                    made = parquet.ParquetWriter(f"{path}.made", table.schema)
                    tables = files.enter_context(made)
                tables.write_table(table)
                continue
            append(part, file, start > 0 and format in ("csv", "tsv"))
            if format == "plain":
                append(scores, beside, start > 0)
    if format == "parquet":
        Path(f"{path}.made").replace(path)


def posterior(path: Path, lists: bpa.NBest, weights: bpa.Weights, format: str) -> None:
    """Adapt to the first of the lists, as the runs use it."""
    part = path.with_name("part")
    write_part(lists[:_ADAPTED_ON].without("references"), part, format)
    texts = (lists.references or ())[:_ADAPTED_ON]
    format = named(format, part, lists.sizes[0])
    read = bpa.read_nbest(part, format=format, references=texts)
    prior = weights if set(weights) == set(read.feature_names) else None
    bpa.write_posterior(bpa.adapt(read, prior, sampler="imh"), path)


def run(folder: Path, lists: Path, *options: str) -> Run:
    """Rerank in a process of its own, and watch it."""
    given = ["rerank", lists, "-p", folder / "posterior.nc", "-o", folder / "out", "--details"]
    given += [folder / "details", "-q", "--unchecked", *options]
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
    parser.add_argument("--formats", nargs="+", default=["moses"])
    parser.add_argument("--hypotheses", type=int, default=100)
    parser.add_argument("--features", type=int, default=15)
    parser.add_argument("--references", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"this benchmark needs the n-best lists of {DATA}, which are not here")
    warnings.simplefilter("ignore", BpaWarning)
    ways: dict[str, tuple[str, ...]] = {f"{jobs}": ("--jobs", f"{jobs}") for jobs in options.jobs}
    lists, weights = authored(options.hypotheses, options.features)
    with (
        tempfile.TemporaryDirectory() as name,
        cluster(options.dask) if options.dask else nullcontext() as address,
    ):
        folder = Path(name)
        if address:
            ways[f"dask, {options.dask}"] = ("--backend", "dask", "--scheduler", address)
        print(f"{'format':<9}{f'lists × {options.hypotheses}':>12}{'MiB':>8}{'jobs':>9}", end="")
        print(f"{'seconds':>9}{'peak MiB':>10}{'with workers':>14}{'same bytes':>12}")
        for format, count in ((f, c) for f in options.formats for c in options.lists):
            posterior(folder / "posterior.nc", lists, weights, format)
            path = folder / ("lists.zst" if format == "moses" else "lists")
            synthetic(lists, path, format, count)
            first = ""
            for jobs, more in ways.items():
                given = ["-r", f"{path}.ref"] if options.references else []
                if format == "plain":
                    given += ["--list-size", f"{options.hypotheses}", "--scores", f"{path}.scores"]
                else:
                    given += ["--format", format]
                done = run(folder, path, *given, *more)
                first = first or done.written
                same = "yes" if done.written == first else "NO"
                print(
                    f"{format:<9}{count:>12,}{path.stat().st_size / 2**20:>8.0f}{jobs:>9}"
                    f"{done.seconds:>9.1f}{done.own:>10.0f}{done.together:>14.0f}{same:>12}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
