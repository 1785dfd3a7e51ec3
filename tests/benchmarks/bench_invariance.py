"""Test scores on captions with features of domain invariance: what each is worth.

    bpa phrases extract out.fr out.en out.align -o out.parquet
    bpa subdomains out.fr out.en -k 12 -o k12.parquet
    python tests/benchmarks/bench_invariance.py K12=k12.parquet [K4=k4.parquet …]
        --counts out.parquet --lists FOLDER [--draws 10] [--sizes 10 100] [--tables NAME …]

Tables: `in` (adaptation sentences of the captions), `mixed` (a quarter of them, and a quarter of
each of three other domains), `without` (a third of each other domain), `distances` (others than
that of Chebyshev), `single` (the features of one subdomain at a time), `speed` (of counting). Only
the lists of captions have segmentations: those of 100 sentences of each other domain are searched
(`segmenting.py`) with the counts of the corpus, and kept in the folder.

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
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from bench_features import CORPORA, Task
from measuring import DATA, canonical
from segmenting import Table, segmented

import bpa_ppl as bpa
from bpa_ppl.features import Invariance, feature_adder
from bpa_ppl.features.segmentations import phrase_pairs
from bpa_ppl.nbest import NBest
from bpa_ppl.phrases import Subdomains, read_counts
from bpa_ppl.phrases.subdomains import CountedPhrases

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


#: Domains besides captions, and the part of each that is drawn from.
OTHERS = {"medical": "adapt", "conversation": "adapt", "out-of-domain": "dev"}
SEARCHED = 100  # lists of each


@cache
def table_of(counts: Path) -> Table:
    """Read the counts of the corpus, once."""
    return Table.of(read_counts(counts))


def others(counts: Path | None, folder: Path) -> list[NBest]:
    """Return lists of the other domains with segmentations; what has been searched is read."""
    found = []
    for domain, part in OTHERS.items():
        path = folder / f"{domain}.parquet"
        if not path.exists():
            if counts is None:
                raise SystemExit(f"{path} is not there: give --counts, and it is made")
            texts = {name: DATA / domain / f"{part}.{name}" for name in ("ref", "src")}
            given = {"references": texts["ref"], "sources": texts["src"]}
            lists = bpa.read_nbest(DATA / domain / f"{part}.nbest.gz", **given)[:SEARCHED]
            made = segmented(lists, table_of(counts))
            print(f"{domain}: {len(made.features)} of {len(lists.features)} hypotheses", flush=True)
            bpa.write_nbest(made, path)
        found.append(bpa.read_nbest(path))
    return found


def agreement(task: Task, counts: Path, sources: Sequence[Invariance], lists: int = 100) -> None:
    """Print how near searched segmentations of captions come to those of the decoder."""
    known = task.pool[:lists]
    made = segmented(known.without("segmentation"), table_of(counts))
    same = np.equal(*(np.array(list(part.extras["segmentation"])) for part in (known, made)))
    print(
        f"\nsegmentations found: {len(made.features) / len(known.features):.1%}, of which like the "
        f"decoder's: {same.mean():.1%}"
    )
    add = feature_adder(sources[:1])
    columns = [add(part).nbest.features[:, len(known.feature_names) :] for part in (known, made)]
    for name, *pair in zip(add(known).columns[0], *(c.T for c in columns), strict=True):
        inside = [_centred(values, known) for values in pair]
        print(f"{name}: correlation within lists {np.corrcoef(*inside)[0, 1]:.3f}")


def _centred(values: np.ndarray, lists: NBest) -> np.ndarray:
    """Return values less the means of their lists."""
    parts = np.split(values, lists.offsets[1:-1])
    return np.concatenate([part - part.mean() for part in parts])


def sources_of(paths: Mapping[str, str], singles: bool) -> list[Invariance]:
    """Return every feature, those of each file under its name."""
    found = []
    for name, path in paths.items():
        every: tuple[str, ...] = ("specificity", "coherence", "hellinger")
        found.append(Invariance(subdomains=path, features=every, name=name))
        kullback = {"features": "kullback-leibler", "smoothing": SMOOTHING}
        found.append(Invariance(subdomains=path, name=name, **kullback))
        if singles:
            zs = range(Subdomains.load(path).k)
            one = [Invariance(subdomains=path, features="subdomain", z=z, name=name) for z in zs]
            found += one
    return found


def sets(name: str) -> dict[str, tuple[str, ...]]:
    """Return the rows of a table of some subdomains: what is new in each."""
    source, target = (f"{name}.specificity.{side}" for side in ("source", "target"))
    return {
        f"{name}: specificity, source": (source,),
        f"{name}: specificity, target": (target,),
        f"{name}: coherence": (f"{name}.coherence",),
        f"{name}: all three": (source, target, f"{name}.coherence"),
    }


def distances(name: str) -> dict[str, tuple[str, ...]]:
    """Return the rows of other distances."""
    sides = tuple(f"{name}.kullback-leibler.{side}" for side in ("source", "target"))
    return {
        f"{name}: Hellinger": (f"{name}.hellinger",),
        f"{name}: Kullback-Leibler, both ways": sides,
    }


def single(name: str, k: int) -> dict[str, tuple[str, ...]]:
    """Return the rows of single subdomains."""
    kinds = ("source", "target", "difference")
    return {f"{name}: z = {z}": tuple(f"{name}.z{z}.{kind}" for kind in kinds) for z in range(k)}


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


def drawn_from(pools: Sequence[NBest], size: int, seed: int) -> np.ndarray:
    """Return the places, in all pools together, of sentences drawn with replacement.

    As many are drawn of each pool; of one alone they are those of `measuring.drawn`.
    """
    sizes = [len(part) for part in np.array_split(np.arange(size), len(pools))]
    starts = np.cumsum([0, *map(len, pools)])
    return np.concatenate(
        [
            starts[place] + np.random.default_rng(seed + 1000 * place).integers(len(pool), size=n)
            for place, (pool, n) in enumerate(zip(pools, sizes, strict=True))
        ]
    )


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
        pools = [task.pool for task in chosen]
        pool = pools[0] if len(pools) == 1 else NBest.concatenate(pools, renumber=True)
        cells = []
        for size in sizes:
            samples = (pool.select(drawn_from(pools, size, seed)) for seed in range(draws))
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


def counted_by_loops(found: Subdomains, phrases: set[str], sentences: int) -> float:
    """Return the seconds that loops over n-grams need, for as many sentences of the target side."""
    text, winners = found.target, found.winners()
    longest = max(len(phrase.split()) for phrase in phrases)
    counts: dict[str, np.ndarray] = {phrase: np.zeros(found.k) for phrase in phrases}
    start = process_time()
    for sentence in range(sentences):
        numbers = text.numbers[text.starts[sentence] : text.starts[sentence + 1]]
        words = [text.words[number] for number in numbers]
        for begin in range(len(words)):
            for end in range(begin + 1, min(begin + longest, len(words)) + 1):
                if (phrase := " ".join(words[begin:end])) in counts:
                    counts[phrase][winners[sentence]] += 1
    return process_time() - start


def speed(path: str, lists: NBest, runs: int = 5) -> None:
    """Print the processor seconds of counting the phrases of lists, and of loops over n-grams."""
    found = Subdomains.load(path)
    phrases = set(phrase_pairs(lists)[1])
    tokens, times = len(found.target.numbers), []
    for _ in range(runs + 1):  # the first one compiles
        counted = CountedPhrases(found, "target")
        numbers = counted.numbers(sorted(phrases))
        start = process_time()
        counted.counts(numbers)
        times.append(process_time() - start)
    part = len(found) // 20
    loops = min(counted_by_loops(found, phrases, part) for _ in range(2))
    whole, ours = loops * tokens / int(found.target.starts[part]), min(times[1:])
    print(
        f"\n{len(phrases)} target phrases counted in {tokens} tokens: {ours:.2f} s of processor "
        f"time; by loops {whole:.0f} s (a twentieth was timed), {whole / ours:.0f} times as long"
    )


def main() -> None:
    """Read the command line and print the tables."""
    names = ("speed", "in", "mixed", "without", "distances", "single")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("subdomains", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--counts", type=Path)
    parser.add_argument("--lists", type=Path, default=Path())
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--tables", nargs="+", default=names, choices=names)
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    paths = dict(one.split("=", 1) for one in options.subdomains)
    sources = sources_of(paths, "single" in options.tables)
    plain = captions()
    pools = [plain.pool]
    if {"mixed", "without"} & set(options.tables):
        pools += others(options.counts, options.lists)
    if options.counts is not None:
        agreement(plain, options.counts, sources)
    if "speed" in options.tables:
        speed(next(iter(paths.values())), plain.test)
    add = feature_adder(sources)
    test = add(plain.test)
    new = tuple(name for names in test.columns for name in names)
    tasks = [Task(add(pool).nbest, test.nbest, new) for pool in pools]
    every = {row: new for name in paths for row, new in sets(name).items()}
    asked = (options.sizes, options.draws)
    if "in" in options.tables:
        table("captions, in-domain", tasks[:1], every, *asked)
    if "mixed" in options.tables:
        table("captions, mixed", tasks, every, *asked)
    if "without" in options.tables:
        table("captions, mixed without in-domain", tasks[1:], every, *asked)
    if "distances" in options.tables:
        rows = {row: new for name in paths for row, new in distances(name).items()}
        table("captions, other distances", tasks[:1], rows, *asked)
    if "single" in options.tables:
        sizes = {name: Subdomains.load(path).k for name, path in paths.items()}
        rows = {row: new for name, k in sizes.items() for row, new in single(name, k).items()}
        table("captions, single subdomains", tasks[:1], rows, *asked)


if __name__ == "__main__":
    main()
