"""The whole job in fresh processes: where the seconds go, and how much memory it takes.

    python tests/benchmarks/bench_pipeline.py [--pool NAME] [--sentences N] [--memory-sentences N]

`adapt` on |A| sentences, then `rerank` of 500, each stage timed in one process: first with
empty caches (everything is compiled), then with the caches that the first run filled; then the
same by the two commands, each a process of its own from its start to its end. Memory is
the peak above what the process held before, in units of the feature table, in a process of its
own on a table large enough to be told from compilers.
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

_TIMES = 3


def stages(pool: str, sentences: int, sampler: str) -> None:
    """Do the job and print the seconds of each stage."""
    clock = Stopwatch()
    import bpa_ppl as bpa

    clock.lap("import", lambda: (bpa.adapt, bpa.rerank))
    from measuring import DATA, canonical, drawn, lists

    from bpa_ppl.options import AdaptOptions
    from bpa_ppl.sampling import adapt_draws

    adaptation = clock.lap("read lists", lambda: lists(pool, "adapt"))
    adaptation = drawn(adaptation, sentences, 1)
    oracle = clock.lap("oracles", lambda: bpa.oracles(adaptation))
    weights = canonical()
    posterior = clock.lap(
        f"sample ({sampler})",
        lambda: adapt_draws(adaptation, weights, AdaptOptions(sampler=sampler, oracle=oracle)),
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "posterior.nc")
        clock.lap("write posterior", lambda: bpa.write_posterior(posterior, path))
    clock.lap("check", lambda: bpa.check(posterior))
    test = DATA / pool / "test.nbest.gz"
    clock.lap("read and rerank", lambda: bpa.rerank(bpa.iter_nbest(test), posterior))
    clock.report("in all")
    clock.lap("convert for ArviZ", lambda: bpa.posterior.to_arviz(posterior))
    clock.report("with that")


class Stopwatch:
    """Seconds of one stage after the other."""

    def __init__(self) -> None:
        self._laps: list[tuple[str, float]] = []
        self._reported = 0
        self._start = perf_counter()

    def lap(self, name: str, work: Callable[[], Any]) -> Any:
        """Run one stage and note its seconds."""
        start = perf_counter()
        result = work()
        self._laps.append((name, perf_counter() - start))
        return result

    def report(self, sum_of: str) -> None:
        """Print each stage since the last report, its share of all so far, and all so far."""
        total = perf_counter() - self._start
        for name, seconds in self._laps[self._reported :]:
            print(f"  {name:<22}{seconds:>8.2f} s{100 * seconds / total:>7.0f}%")
        self._reported = len(self._laps)
        print(f"  {sum_of:<22}{total:>8.2f} s")


def commands(pool: str, sentences: int, sampler: str) -> None:
    """Print the seconds of `bpa adapt` and of `bpa rerank`."""
    from measuring import DATA, drawn, lists

    import bpa_ppl as bpa

    bpa_command = Path(sys.executable).with_name("bpa")
    with tempfile.TemporaryDirectory() as folder:
        nbest, references = Path(folder, "adapt.nbest"), Path(folder, "adapt.ref")
        chosen = drawn(lists(pool, "adapt"), sentences, 1)
        chosen = bpa.NBest.concatenate([chosen], renumber=True)
        bpa.write_nbest(chosen, nbest)
        references.write_text("".join(f"{texts[0]}\n" for texts in chosen.references or ()))
        posterior, output = Path(folder, "posterior.nc"), Path(folder, "best.txt")
        settings = ["-w", DATA / "moses.ini", "-r", references, "--sampler", sampler]
        test = DATA / pool / "test.nbest.gz"
        for name, arguments in (
            ("adapt", [nbest, *settings, "-o", posterior]),
            ("rerank", [test, "--posterior", posterior, "-o", output]),
        ):
            own = [bpa_command, name, *arguments, "--quiet"]
            seconds = min(_seconds(own) for _ in range(_TIMES))
            print(f"  {'bpa ' + name:<22}{seconds:>8.2f} s")


def _seconds(command: list[str | Path]) -> float:
    start = perf_counter()
    subprocess.run(command, check=True)
    return perf_counter() - start


def memory(pool: str, sentences: int, sampler: str) -> None:
    """Print the peak memory of adapt and of rerank in units of the feature table."""
    from measuring import DATA, Peak, canonical, drawn, lists

    import bpa_ppl as bpa

    adaptation = lists(pool, "adapt")
    weights = canonical()
    small = bpa.adapt(adaptation.select(range(10)), weights, sampler=sampler)
    oracle = bpa.oracles(adaptation)
    chosen = drawn(adaptation, sentences, 1)
    oracle = bpa.oracles(chosen)
    with Peak() as peak:
        bpa.adapt(chosen, weights, sampler=sampler, oracle=oracle)
    table = chosen.features.nbytes
    print(f"  adapt ({sampler}), table of {table / 2**20:.0f} MiB: {peak.bytes / table:.2f} ×")
    table = adaptation.features.nbytes
    del adaptation, chosen
    with Peak() as peak:
        bpa.rerank(bpa.iter_nbest(DATA / pool / "test.nbest.gz"), small, unchecked=True)
    print(f"  rerank, table of {table / 2**20:.0f} MiB if held whole: {peak.bytes / table:.2f} ×")


def main() -> None:
    """Run the stages in processes of their own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pool", default="medical")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--memory-sentences", type=int, default=4000)
    parser.add_argument("--sampler", default="auto")
    parser.add_argument(
        "--inside", choices=("stages", "commands", "memory"), help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    if options.inside == "stages":
        stages(options.pool, options.sentences, options.sampler)
    elif options.inside == "commands":
        commands(options.pool, options.sentences, options.sampler)
    elif options.inside == "memory":
        memory(options.pool, options.memory_sentences, options.sampler)
    else:
        _outside(options)


def _outside(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        caches = {name: str(Path(folder, name)) for name in ("BPA_PPL_CACHE", "NUMBA_CACHE_DIR")}
        for title, inside in (
            (f"adapt on {options.sentences}, rerank 500, empty caches", "stages"),
            ("the same, caches filled", "stages"),
            (f"the same by commands, best of {_TIMES}", "commands"),
            ("peak memory, in feature tables", "memory"),
        ):
            print(title, flush=True)
            start = perf_counter()
            own = [sys.executable, *sys.argv, "--inside", inside]
            subprocess.run(own, env={**os.environ, **caches}, check=True)
            print(f"  {'process':<22}{perf_counter() - start:>8.2f} s", flush=True)


if __name__ == "__main__":
    main()
