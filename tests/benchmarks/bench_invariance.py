"""Test scores on captions with features of domain invariance: what each is worth.

    python tests/benchmarks/bench_invariance.py 4=k4.parquet 12=k12.parquet 24=k24.parquet
        [--draws 10] [--sizes 10 100] [--tables in mixed without single distances]

The files are those of `bpa subdomains` on the corpus that the lists were decoded with, one for each
K. Tables: `in` (adaptation sentences of the captions), `mixed` (a quarter of them, and of three
other domains each), `without` (a third of each other domain), `distances` (others than that of
Chebyshev), `single` (the features of one subdomain at a time). Only the lists of captions have
segmentations: those of the others are searched, see `segmenting.py`.

Each draw has its own adaptation sentences (seeds 0, 1, …, with replacement; the same for every
row); the mode of the posterior under the margin likelihood chooses among the 500-best lists of all
500 test sentences. Printed: TER ± 2 standard deviations over the draws / BLEU / words over those
of the references; and, of the same draws, the TER over that without the features, ± 2 standard
errors.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from bench_features import CORPORA, Task
from measuring import DATA, canonical, drawn

import bpa_ppl as bpa
from bpa_ppl.features import Invariance
from bpa_ppl.nbest import NBest
from bpa_ppl.phrases import Subdomains

SMOOTHING = 1.0  # of the divergence of Kullback and Leibler, which needs some
Scores = tuple[float, float, float]


def captions() -> Task:
    """Return the captions with their segmentations."""
    pool, test = (
        bpa.read_nbest(
            DATA / f"phrases/nbest-seg/captions.{part}.nbest.xz",
            references=DATA / f"captions/{part}.ref",
            sources=CORPORA / f"captions.{text}.fr.xz",
        )
        for part, text in (("adapt", "dev"), ("test", "test"))
    )
    return Task(pool, test)


def sources_of(paths: Mapping[int, str], singles: bool) -> list[Invariance]:
    """Return every feature, those of each K under a name of its own."""
    found = []
    for k, path in paths.items():
        every: tuple[str, ...] = ("specificity", "coherence", "hellinger")
        found.append(Invariance(subdomains=path, features=every, name=f"k{k}"))
        kullback = {"features": "kullback-leibler", "smoothing": SMOOTHING}
        found.append(Invariance(subdomains=path, name=f"k{k}", **kullback))
        if singles:
            zs = range(Subdomains.load(path).k)
            one = [Invariance(subdomains=path, features="subdomain", z=z, name=f"k{k}") for z in zs]
            found += one
    return found


def sets(k: int) -> dict[str, tuple[str, ...]]:
    """Return the rows of a table of one K: what is new in each."""
    source, target = (f"k{k}.specificity.{side}" for side in ("source", "target"))
    return {
        f"K = {k}: specificity, source": (source,),
        f"K = {k}: specificity, target": (target,),
        f"K = {k}: coherence": (f"k{k}.coherence",),
        f"K = {k}: all three": (source, target, f"k{k}.coherence"),
    }


def distances(k: int) -> dict[str, tuple[str, ...]]:
    """Return the rows of other distances."""
    sides = tuple(f"k{k}.kullback-leibler.{side}" for side in ("source", "target"))
    return {
        f"K = {k}: Hellinger": (f"k{k}.hellinger",),
        f"K = {k}: Kullback-Leibler, both ways": sides,
    }


def single(k: int) -> dict[str, tuple[str, ...]]:
    """Return the rows of single subdomains."""
    kinds = ("source", "target", "difference")
    return {f"K = {k}: z = {z}": tuple(f"k{k}.z{z}.{kind}" for kind in kinds) for z in range(k)}


def scores(test: NBest, posterior: Any) -> Scores:
    """Return TER, BLEU and the length of what the weights of a point choose."""
    weights = bpa.as_draws(posterior).aligned(test)[0]
    texts = test.chosen(test.best(test.scores(weights)))
    ter, bleu = (bpa.corpus_score(texts, test.references, m).value for m in ("ter", "bleu"))
    words = sum(len(text.split()) for text in texts)
    return ter, bleu, words / sum(len(refs[0].split()) for refs in test.references or ())


def adapted(task: Task, sample: NBest) -> Scores:
    """Return the scores after adaptation to some sentences."""
    zeros = dict.fromkeys(task.new, 0.0)
    return scores(task.test, bpa.adapt(sample, canonical(), sampler="map", defaults=zeros))


def of_pools(pools: Sequence[NBest], size: int, seed: int) -> NBest:
    """Return some sentences drawn with replacement, as many of each pool."""
    sizes = [len(part) for part in np.array_split(np.arange(size), len(pools))]
    parts = [
        drawn(pool, count, seed + 1000 * place)
        for place, (pool, count) in enumerate(zip(pools, sizes, strict=True))
    ]
    return parts[0] if len(parts) == 1 else NBest.concatenate(parts, renumber=True)


def table(
    title: str,
    tasks: Sequence[Task],
    rows: Mapping[str, tuple[str, ...]],
    sizes: Sequence[int],
    draws: int,
) -> None:
    """Print a table; the tasks differ in their pools, from which sentences are drawn alike."""
    print(f"\n{title:<40}" + "".join(f"{f'|A| = {size}':>46}" for size in sizes), flush=True)
    before: dict[int, np.ndarray] = {}
    for name, new in {"the list's 14": (), **rows}.items():
        chosen = [task.choose(*new) for task in tasks]
        cells = []
        for size in sizes:
            samples = [of_pools([task.pool for task in chosen], size, s) for s in range(draws)]
            found = np.array([adapted(chosen[0], sample) for sample in samples])
            gain = found[:, 0] - before.setdefault(size, found[:, 0])
            cells.append(_cell(found, gain))
        print(f"{name:<40}" + "".join(f"{cell:>46}" for cell in cells), flush=True)


def _cell(found: np.ndarray, gain: np.ndarray) -> str:
    ter, bleu, length = found.mean(axis=0)
    free = min(1, len(found) - 1)
    spread, error = 2 * found[:, 0].std(ddof=free), 2 * gain.std(ddof=free) / np.sqrt(len(gain))
    plain = f"{ter:.2f} ± {spread:.2f} / {bleu:.1f} / {length:.2f}"
    return plain if not gain.any() else f"{plain} ({gain.mean():+.2f} ± {error:.2f})"


def main() -> None:
    """Read the command line and print the tables."""
    names = ("in", "mixed", "without", "distances", "single")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("subdomains", nargs="+", metavar="K=FILE")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--tables", nargs="+", default=names, choices=names)
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    paths = {int(k): path for k, _, path in (one.partition("=") for one in options.subdomains)}
    task = captions().with_features(*sources_of(paths, "single" in options.tables))
    every = {name: new for k in paths for name, new in sets(k).items()}
    asked = (options.sizes, options.draws)
    if "in" in options.tables:
        table("captions, in-domain", [task], every, *asked)
    if "distances" in options.tables:
        rows = {name: new for k in paths for name, new in distances(k).items()}
        table("captions, other distances", [task], rows, *asked)
    if "single" in options.tables:
        rows = {name: new for k in paths for name, new in single(k).items()}
        table("captions, single subdomains", [task], rows, *asked)


if __name__ == "__main__":
    main()
