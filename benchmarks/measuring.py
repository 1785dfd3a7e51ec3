"""Shared parts of the benchmarks: data, command lines, times, memory, and printed tables."""

from __future__ import annotations

import argparse
import atexit
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
import psutil

import bpa_ppl as bpa
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.gains.bleu import BLEU
from bpa_ppl.gains.ter import TER
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.weights import StartingWeights

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
CORPORA = DATA / "phrases/corpora"
DOMAINS = ("medical", "captions", "conversation")
LIKELIHOODS = {"published": "oracle", "margin": "margin"}
#: A trial measures the least of everything.
IS_LITTLE = "--little" in sys.argv
#: Options of a trial; of those with several values, it takes the first one.
LITTLE = {
    **dict.fromkeys(("draws", "runs", "splits", "damaged", "rounds", "repeats", "seeds"), 1),
    **dict.fromkeys(("power_comparisons", "bound_comparisons", "replications"), 2),
    **dict.fromkeys(("comparisons", "calls", "requests", "answers"), 10),
}
#: From the size of A and a seed to test TER, BLEU and length ratio.
OfDraw = Callable[[int, int], Float64]


def run_tables(
    description: str | None,
    tables: Mapping[str, Callable[[Any], None]] | Iterable[Callable[[Any], None]],
    *,
    needs_data: bool = True,
    **defaults: float | str | tuple[Any, ...],
) -> None:
    """Parse the command line and print the tables, or those that `--tables` selects.

    Args:
        description: the docstring of the script.
        tables: the functions that print them. Unless their names are given, `seconds_table` and
            `print_seconds` print the table `seconds`.
        needs_data: exit if the n-best lists and corpora are not available.
        defaults: the other options, with their defaults; a tuple is an option with several values.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--little", action="store_true", help="a trial: few draws of each table")
    if not isinstance(tables, Mapping):
        shorter = (re.sub("^print_|_table$", "", table.__name__) for table in tables)
        tables = dict(zip((name.replace("_", "-") for name in shorter), tables, strict=True))
    names = list(tables)
    parser.add_argument(
        "--tables", "--parts", dest="tables", nargs="+", choices=names, default=names
    )
    for name, default in defaults.items():
        if isinstance(default, bool):
            parser.add_argument(f"--{name}", default=default, action=argparse.BooleanOptionalAction)
            continue
        several = isinstance(default, tuple)
        if IS_LITTLE:
            default = few(default) if several else LITTLE.get(name, default)
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            default=default,
            type=type(next(iter(default), "") if several else default),
            nargs="*" if several else None,
            help=f"default: {' '.join(map(str, default)) if several else default}",
        )
    options = parser.parse_args()
    if options.little:
        least = {
            k: v[:1] if isinstance(v, tuple) else LITTLE.get(k, v) for k, v in defaults.items()
        }
        options = parser.parse_args(namespace=argparse.Namespace(**least))
    if needs_data:
        require_data()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    for name in options.tables:
        if IS_LITTLE:
            print(f"\n## {name}", flush=True)
        tables[name](options)


def require_data() -> None:
    """Exit if the n-best lists and corpora are not available."""
    if not DATA.is_dir():
        sys.exit(f"this benchmark needs the data in {DATA}, which does not exist")


def few(values: Any, count: int = 1) -> Any:
    """Return the first of several values in a trial, the last for a count of −1; otherwise all."""
    return (values[:count] if count >= 0 else values[count:]) if IS_LITTLE else values


class Times(NamedTuple):
    """The least wall-clock and CPU seconds of several runs, and the result of the last run."""

    seconds: float
    cpu: float
    result: Any


def best_time(work: Callable[[], Any], repeats: int = 1) -> Times:
    """Run a function several times and return its least times."""
    seconds, cpu = [], []
    for _ in range(repeats):
        result = None  # releases the previous result
        start, cpu_start = perf_counter(), process_time()
        result = work()
        seconds.append(perf_counter() - start)
        cpu.append(process_time() - cpu_start)
    return Times(min(seconds), min(cpu), result)


class PeakMemory:
    """Peak resident memory of the process within a `with` block, relative to its start."""

    def __enter__(self) -> PeakMemory:
        self._process, self._finished = psutil.Process(), threading.Event()
        self._start = self._highest = self._process.memory_info().rss
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._finished.set()
        self._thread.join()

    @property
    def bytes(self) -> int:
        """The increase at the peak."""
        return self._highest - self._start

    def _watch(self) -> None:
        while not self._finished.wait(0.002):
            self._highest = max(self._highest, self._process.memory_info().rss)


class Table:
    """A table in Markdown that prints each row as soon as it is computed.

    Args:
        title: the heading of the first column.
        columns: the other headings.
        width: the minimum width of the other columns, in characters.
    """

    def __init__(self, title: str, *columns: str, width: int = 10):
        self._widths = [max(width, len(column) + 2) for column in columns]
        print()
        self.row(title, *columns)
        print("|---|" + "---:|" * len(columns), flush=True)

    def row(self, name: str, *cells: str | float) -> None:
        """Print a row; floats get two decimals."""
        texts = [f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in cells]
        name, *texts = (text.replace("|", "\\|") for text in (name, *texts))
        aligned = (f" {text:>{width}} |" for text, width in zip(texts, self._widths, strict=False))
        print(f"| {name:<44} |" + "".join(aligned), flush=True)


class ScoreTable(Table):
    """Mean TER ± two standard deviations / mean BLEU / mean length ratio, by the size of A.

    Args:
        title: the heading of the first column.
        sizes: the sizes of A.
        draws: the number of draws of A.
        total: add the mean TER over the sizes plus one mean standard deviation.
    """

    def __init__(self, title: str, sizes: Sequence[int], draws: int, total: bool = False):
        sizes = few(sizes)
        heads = [f"{size} sentences" for size in sizes] + ["sum"] * total
        super().__init__(title, *heads, width=31)
        self._sizes, self._draws, self._total = sizes, draws, total

    def add(self, name: str, *domains: OfDraw) -> None:
        """Score every draw of A, and print the means over the domains."""
        means = []
        for size in self._sizes:
            seeds = range(self._draws)
            means.append(
                summary([[of_draw(size, seed) for seed in seeds] for of_draw in few(domains)])
            )
        ter, spread = np.mean(means, axis=0)[:2]
        self.row(name, *map(cell, means), *[ter + spread / 2] * self._total)


def summary(domains: Sequence[Any]) -> Float64:
    """Average scores, (domains, draws, metrics), over the domains.

    Returns:
        the mean and two standard deviations of the first metric over the draws, and the means of
        the other metrics.
    """
    scores = np.array(domains)
    first, *others = scores.mean(axis=(0, 1))
    spread = 2 * scores[..., 0].std(axis=1, ddof=min(1, scores.shape[1] - 1)).mean()
    return np.array([first, spread, *others])


def cell(values: Float64) -> str:
    """Format the result of `summary`."""
    ter, spread, *others, length = values
    return " / ".join([f"{ter:.2f} ± {spread:.2f}", *(f"{x:.1f}" for x in others), f"{length:.3f}"])


@cache
def scratch_folder() -> Path:
    """Return a folder that is deleted when the program ends."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


def write_lines(name: str, lines: Iterable[str]) -> str:
    """Write lines to a file of the scratch folder and return its path."""
    path = scratch_folder() / name
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return str(path)


def canonical() -> bpa.Weights:
    """Return the weights of the system that produced the lists."""
    return bpa.read_weights(DATA / "moses.ini")


def read_lists(name: str, part: str) -> NBest:
    """Read the n-best lists of a domain with their references and sources."""
    path = DATA / name / part
    return bpa.read_nbest(f"{path}.nbest.gz", references=f"{path}.ref", sources=f"{path}.src")


def authored_lists() -> NBest:
    """Return the 500-best lists of our own texts, leaflet and office."""
    parts = (
        bpa.read_nbest(f"{path}.nbest500.gz", references=f"{path}.ref", sources=f"{path}.src")
        for path in (DATA / "authored" / name for name in ("leaflet", "office"))
    )
    return bpa.concatenate(list(parts), renumber=True)


def answered_pairs(scores: Float64, first: Any) -> NBest:
    """Return pairs of candidates with a gain of 1 for the chosen one.

    Args:
        scores: (n, 2, K) of the judges.
        first: (n,) whether the first candidate is chosen.
    """
    judges = scores.shape[-1]
    names = [f"judge{k}" for k in range(judges)]
    lists = bpa.from_arrays([""] * (2 * len(scores)), scores.reshape(-1, judges), names, 2)
    return lists.with_extras(gain=np.stack([first, ~first], axis=1).ravel().astype(float))


def draw(pool: NBest, size: int, seed: int) -> NBest:
    """Draw sentences with replacement."""
    return pool.select(np.random.default_rng(seed).integers(len(pool), size=size))


def halves(lists: NBest, members: Any = True) -> list[tuple[NBest, NBest]]:
    """Return each of two random halves of lists, and the other half.

    Args:
        lists: the lists.
        members: (lists,) whether a list is used; default: all.
    """
    positions = np.flatnonzero(np.broadcast_to(members, len(lists)))
    order = positions[np.random.default_rng(5).permutation(len(positions))]
    first, second = lists[order[: len(order) // 2]], lists[order[len(order) // 2 :]]
    return [(first, second), (second, first)]


def draw_lists(pool: NBest, size: int, seed: int) -> NBest:
    """Draw lists without replacement, or all if there are fewer."""
    rng = np.random.default_rng(seed)
    return pool[rng.choice(len(pool), min(size, len(pool)), replace=False)]


def probabilities(lists: NBest, scores: Float64) -> Float64:
    """Return p(e|f) of each candidate, from the scores."""
    starts = lists.offsets[:-1]
    p = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), lists.sizes))
    return p / np.repeat(np.add.reduceat(p, starts), lists.sizes)


def print_cells(name: str, cells: Iterable[str]) -> None:
    """Print a row of text."""
    print(f"{name:<34} " + "   ".join(cells), flush=True)


class Task(NamedTuple):
    """Lists to adapt on and lists to test on.

    Attributes:
        pool: the lists that adaptation sentences are drawn from.
        test: the test lists, with the same features.
        ter: the counts of TER of the test candidates.
        bleu: their counts of BLEU.
        new: the features without canonical weights.
    """

    pool: NBest
    test: NBest
    ter: Any
    bleu: Any
    new: tuple[str, ...] = ()

    @classmethod
    def of(cls, pool: NBest, test: NBest, new: tuple[str, ...] = ()) -> Task:
        """Compute the statistics of the test lists."""
        from bpa_ppl.gains.gains import count_statistics

        return cls(pool, test, count_statistics(test, "ter"), count_statistics(test, "bleu"), new)

    def with_features(self, *sources: Any) -> Task:
        """Add features that do not learn from the pool."""
        pool, test = (bpa.add_features(part, sources) for part in (self.pool, self.test))
        names = pool.feature_names[len(self.pool.feature_names) :]
        return self._replace(pool=pool, test=test, new=(*self.new, *names))

    def keep_features(self, *names: str) -> Task:
        """Remove all new features except the named ones."""
        removed = [name for name in self.new if name not in names]
        pool, test = (part.without(*removed) for part in (self.pool, self.test))
        return self._replace(pool=pool, test=test, new=names)

    def adapt(self, sample: NBest, **options: Any) -> Any:
        """Adapt; by default return the mode under the published likelihood."""
        options = {"sampler": "map", "likelihood": "oracle", **options}
        start = StartingWeights(canonical(), defaults=dict.fromkeys(self.new, 0.0))
        return bpa.adapt(sample, start, **options)

    def scores(self, weights: Mapping[str, float]) -> Float64:
        """Return TER, BLEU and length ratio of the test candidates with the highest scores."""
        values = np.array([weights[name] for name in self.test.feature_names])
        rows = self.test.offsets[:-1] + self.test.best(self.test.scores(values))
        edits, counts = (table[rows].sum(axis=0) for table in (self.ter, self.bleu))
        return np.array([TER().value(edits), BLEU().value(counts), counts[4] / counts[8]])

    def score_draw(self, size: int, seed: int, **options: Any) -> Float64:
        """Adapt to sentences drawn from the pool, and return the scores on the test lists."""
        sample = draw(self.pool, size, seed)
        return self.scores(bpa.point_weights(self.adapt(sample, **options), unchecked=True))


@cache
def domain_task(domain: str) -> Task:
    """Return the lists of a domain, with their 14 features."""
    return Task.of(read_lists(domain, "adapt"), read_lists(domain, "test"))


@cache
def segmented_captions() -> Task:
    """Return the captions, with sources and the phrase segmentations of the decoder."""
    parts = (("adapt", "dev"), ("test", "test"))
    lists = (
        bpa.read_nbest(
            DATA / f"phrases/nbest-seg/captions.{part}.nbest.xz",
            references=DATA / f"captions/{part}.ref",
            sources=CORPORA / f"captions.{corpus}.fr.xz",
        )
        for part, corpus in parts
    )
    return Task.of(*lists)


def caption_corpus() -> tuple[str, str]:
    """Return the paths of the parallel text of captions, French and English."""
    french, english = (str(CORPORA / f"captions.train.{side}.xz") for side in ("fr", "en"))
    return french, english


def caption_counts() -> tuple[Any, Any, Any]:
    """Return phrase counts of captions, of the general corpus, and of the development text."""
    from bpa_ppl.extras.phrases.table_files import read_counts
    from bpa_ppl.text.words import iter_lines

    folder = DATA / "phrases/phrases"
    domain, dev = (read_counts(folder / f"captions.{name}.extract.xz") for name in ("in", "dev"))
    general = read_counts(folder / "out.extract.captions.xz")
    # The pairs are a part of the table of the whole corpus, whose counts of phrases are in files.
    marginals = {}
    for side, name in (("source", "src"), ("target", "tgt")):
        file = folder / f"out.marginals.captions.{name}.xz"
        lines = chain.from_iterable(iter_lines(file))
        counts = {phrase: float(count) for phrase, count in (line.split(" ||| ") for line in lines)}
        phrases = general.phrases(side).to_pylist()
        marginals[f"{side}_count"] = np.array([counts[phrase] for phrase in phrases])
    general = replace(general, **marginals)
    return domain, general, dev
