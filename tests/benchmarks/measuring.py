"""What the benchmarks share: the real lists, a watch that sets compilation apart, memory."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import psutil

from bpa_ppl import NBest, Weights, read_nbest, read_weights

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"


class Timed(NamedTuple):
    """Seconds of some work, what its first run took beyond that, and its result."""

    seconds: float
    first: float
    result: Any


def clock(work: Callable[[], Any]) -> tuple[float, Any]:
    """Run some work and return its seconds and its result."""
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


def timed(work: Callable[[], Any], repeats: int = 1) -> Timed:
    """Run some work once to compile it, then again: the median of `repeats` runs."""
    cold, _ = clock(work)
    runs = [clock(work) for _ in range(repeats)]
    seconds = median(run[0] for run in runs)
    return Timed(seconds, max(cold - seconds, 0.0), runs[-1][1])


class Peak:
    """Peak resident memory of the process inside a `with` block, above what it had before."""

    def __enter__(self) -> Peak:
        self._process, self._over = psutil.Process(), threading.Event()
        self._start = self._highest = self._process.memory_info().rss
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def bytes(self) -> int:
        """The peak, above the start."""
        return self._highest - self._start

    def _watch(self) -> None:
        while not self._over.wait(0.002):
            self._highest = max(self._highest, self._process.memory_info().rss)


def lists(name: str, part: str) -> NBest:
    """Read real lists with their references, or exit where they are not at hand."""
    if not DATA.is_dir():
        sys.exit(f"this benchmark needs the real n-best lists of {DATA}, which are not here")
    folder = DATA / name
    return read_nbest(folder / f"{part}.nbest.gz", references=folder / f"{part}.ref")


def canonical() -> Weights:
    """Return the weights of the system that made the lists."""
    return read_weights(DATA / "moses.ini")


def drawn(pool: NBest, sentences: int, seed: int) -> NBest:
    """Return sentences drawn with replacement."""
    return pool.select(np.random.default_rng(seed).integers(len(pool), size=sentences))
