"""Time and memory of adapting on 100 sentences and reranking 500, in new processes.

    python tests/benchmarks/bench_pipeline.py

Prints the seconds of each stage with empty caches, when everything is compiled, and with the caches
filled by that run; then the seconds of the commands `bpa adapt` and `bpa rerank` from start to end.
Peak memory is relative to the memory before the call, in units of the feature table; a table of
4000 sentences is large compared with what compilers need.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

DOMAIN, SENTENCES, MEMORY_SENTENCES, SAMPLER = "medical", 100, 4000, "auto"


class Stopwatch:
    """Seconds of consecutive stages."""

    def __init__(self) -> None:
        self._start = perf_counter()

    def lap(self, name: str, work: Callable[[], Any]) -> Any:
        """Run one stage and print its seconds."""
        start = perf_counter()
        result = work()
        print(f"  {name:<22}{perf_counter() - start:>8.2f} s")
        return result

    def print_total(self, name: str = "total") -> None:
        """Print the seconds since the start."""
        print(f"  {name:<22}{perf_counter() - self._start:>8.2f} s")


def stages() -> None:
    """Print the seconds of each stage in one process."""
    stopwatch = Stopwatch()
    import bpa_ppl as bpa

    stopwatch.lap("import", lambda: (bpa.adapt, bpa.rerank))
    from measuring import DATA, canonical, draw, read_lists

    from bpa_ppl.options import AdaptOptions
    from bpa_ppl.sampling import adapt_draws

    pool = stopwatch.lap("read lists", lambda: read_lists(DOMAIN, "adapt"))
    sample = draw(pool, SENTENCES, 1)
    oracle = stopwatch.lap("oracles", lambda: bpa.oracles(sample))
    options = AdaptOptions(sampler=SAMPLER, oracle=oracle)
    posterior = stopwatch.lap("sample", lambda: adapt_draws(sample, canonical(), options))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "posterior.nc")
        stopwatch.lap("write posterior", lambda: bpa.write_posterior(posterior, path))
    stopwatch.lap("check", lambda: bpa.check(posterior))
    test = DATA / DOMAIN / "test.nbest.gz"
    stopwatch.lap("read and rerank", lambda: bpa.rerank(bpa.iter_nbest(test), posterior))
    stopwatch.print_total()
    stopwatch.lap("convert for ArviZ", lambda: bpa.posterior.adapter.to_arviz(posterior))
    stopwatch.print_total("total with ArviZ")


def commands() -> None:
    """Print the seconds of `bpa adapt` and `bpa rerank`, the best of three runs."""
    from measuring import DATA, best_time, draw, read_lists

    import bpa_ppl as bpa

    bpa_command = Path(sys.executable).with_name("bpa")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sample = draw(read_lists(DOMAIN, "adapt"), SENTENCES, 1)
        sample = bpa.NBest.concatenate([sample], renumber=True)
        bpa.write_nbest(sample, folder / "adapt.nbest")
        (folder / "adapt.ref").write_text("".join(f"{texts[0]}\n" for texts in sample.references))
        settings = ["-w", DATA / "moses.ini", "-r", folder / "adapt.ref", "--sampler", SAMPLER]
        test, posterior = DATA / DOMAIN / "test.nbest.gz", folder / "posterior.nc"
        for command, arguments in (
            ("adapt", [folder / "adapt.nbest", *settings, "-o", posterior]),
            ("rerank", [test, "--posterior", posterior, "-o", folder / "best.txt"]),
        ):
            line = [bpa_command, command, *arguments, "--quiet"]
            seconds = best_time(lambda line=line: subprocess.run(line, check=True), 3).seconds
            print(f"  {'bpa ' + command:<22}{seconds:>8.2f} s")


def memory() -> None:
    """Print the peak memory of adapt and of rerank in units of the feature table."""
    from measuring import DATA, PeakMemory, canonical, draw, read_lists

    import bpa_ppl as bpa

    pool, weights = read_lists(DOMAIN, "adapt"), canonical()
    posterior = bpa.adapt(pool[:10], weights, sampler=SAMPLER)  # compiles
    bpa.oracles(pool)  # fills the cache of sentence scores
    sample = draw(pool, MEMORY_SENTENCES, 1)
    oracle = bpa.oracles(sample)
    with PeakMemory() as peak:
        bpa.adapt(sample, weights, sampler=SAMPLER, oracle=oracle)
    table = sample.features.nbytes
    print(f"  adapt, table of {table / 2**20:.0f} MiB: {peak.bytes / table:.2f} tables")
    table = pool.features.nbytes
    del pool, sample
    with PeakMemory() as peak:
        bpa.rerank(bpa.iter_nbest(DATA / DOMAIN / "test.nbest.gz"), posterior, unchecked=True)
    print(f"  rerank, table of {table / 2**20:.0f} MiB: {peak.bytes / table:.2f} tables")


def main() -> None:
    """Run each part in a new process."""
    parts = {"stages": stages, "commands": commands, "memory": memory}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=parts, help=argparse.SUPPRESS)
    if part := parser.parse_args().part:
        parts[part]()
        return
    with tempfile.TemporaryDirectory() as folder:
        caches = {name: f"{folder}/{name}" for name in ("BPA_PPL_CACHE", "NUMBA_CACHE_DIR")}
        for title, part in (
            ("stages, empty caches", "stages"),
            ("stages, filled caches", "stages"),
            ("commands, best of three runs", "commands"),
            ("peak memory", "memory"),
        ):
            print(title, flush=True)
            command = [sys.executable, __file__, "--part", part]
            subprocess.run(command, env={**os.environ, **caches}, check=True)


if __name__ == "__main__":
    main()
