"""Test scores on captions with features of domain invariance.

    python tests/benchmarks/bench_invariance.py [--tables NAME ...] [--draws 10]
        [--subdomains NAME=FILE ...] [--folder FOLDER]

Each FILE has latent subdomains of the general corpus (from `bpa subdomains`), and NAME is the start
of the names of its features. Without any, 12 subdomains are induced, which takes minutes.

Tables:
    in         adaptation sentences of captions
    mixed      a quarter of them, and a quarter of each of three other domains
    without    a third of each other domain
    distances  other distances than Chebyshev's
    single     the features of one subdomain at a time

Only the lists of captions have segmentations; those of 100 sentences of each other domain are
searched (`segmenting.py`), which is also tried on captions. `--folder` keeps what takes long.

Each draw has its own adaptation sentences (seeds 0, 1, ..., with replacement, the same for every
row). The posterior mode, with the default margin, chooses from the 500-best lists of 500 test
sentences. A cell has the mean TER ± two standard deviations over the draws / BLEU / length ratio,
and the difference in TER from the list's 14 features on the same draws, ± 2 standard errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from measuring import (
    CORPORA,
    Table,
    Task,
    cell,
    parse_options,
    read_lists,
    scratch_folder,
    segmented_captions,
    summary,
)
from segmenting import PhraseIndex, segment

import bpa_ppl as bpa
from bpa_ppl.features import Invariance, feature_adder
from bpa_ppl.models.subdomains import induce
from bpa_ppl.nbest import NBest
from bpa_ppl.phrases import Subdomains
from bpa_ppl.phrases.extraction import extract_phrases

SIZES = (10, 100)
#: Domains besides captions -> the part to draw from.
OTHERS = {"medical": "adapt", "conversation": "adapt", "out-of-domain": "dev"}


@cache
def phrase_index() -> PhraseIndex:
    """Extract the phrase pairs of the general corpus."""
    return PhraseIndex.of(
        extract_phrases(*(CORPORA / f"out.{s}.xz" for s in ("fr", "en", "align")))
    )


def induced_subdomains(folder: Path) -> dict[str, str]:
    """Return the file with 12 subdomains of the general corpus."""
    path = folder / "k12.parquet"
    if not path.exists():
        induce(CORPORA / "out.fr.xz", CORPORA / "out.en.xz", 12, jobs=-1).save(path)
    return {"K = 12": str(path)}


def segmented_lists(domain: str, folder: Path) -> NBest:
    """Return lists of another domain with searched segmentations."""
    path = folder / f"{domain}.parquet"
    if not path.exists():
        lists = read_lists(domain, OTHERS[domain])[:100]
        segmented = segment(lists, phrase_index())
        share = len(segmented.features) / len(lists.features)
        print(f"{domain}: {share:.1%} of the hypotheses have a segmentation", flush=True)
        bpa.write_nbest(segmented, path)
    return bpa.read_nbest(path)


def print_agreement(pool: NBest, source: Invariance) -> None:
    """Print how far searched segmentations of captions agree with those of the decoder."""
    lists = pool[:100]
    searched = segment(lists.without("segmentation"), phrase_index())
    share = len(searched.features) / len(lists.features)
    pairs = zip(lists.extras["segmentation"], searched.extras["segmentation"], strict=True)
    equal = np.mean([first == second for first, second in pairs])
    print(f"\ncaptions: {share:.1%} have a segmentation, {equal:.1%} that of the decoder")
    add, first = feature_adder([source]), len(lists.feature_names)
    both = [add(part).nbest for part in (lists, searched)]
    owner = np.repeat(np.arange(len(lists)), lists.sizes)
    for column, name in enumerate(both[0].feature_names[first:], first):
        values = np.array([part.features[:, column] for part in both])
        means = np.array([np.bincount(owner, row) for row in values]) / lists.sizes
        print(f"{name}: correlation {np.corrcoef(values - means[:, owner])[0, 1]:.3f} within lists")


def feature_sources(name: str, path: str, single: bool) -> list[Invariance]:
    """Return the features of a file of subdomains, also of single ones if requested."""
    settings: list[dict[str, Any]] = [
        {"features": ("specificity", "coherence", "hellinger")},
        {"features": "kullback-leibler", "smoothing": 1.0},
    ]
    if single:
        settings += [{"features": "subdomain", "z": z} for z in range(Subdomains.load(path).k)]
    return [Invariance(subdomains=path, name=name, **each) for each in settings]


def rows_of(table: str, name: str, path: str) -> dict[str, tuple[str, ...]]:
    """Return the rows of a table for a file of subdomains, with their new features."""
    sides = ("source", "target")
    if table == "distances":
        return {
            f"{name}: Hellinger": (f"{name}.hellinger",),
            f"{name}: Kullback-Leibler": tuple(f"{name}.kullback-leibler.{s}" for s in sides),
        }
    if table == "single":
        columns = (*sides, "difference")
        return {
            f"{name}: z = {z}": tuple(f"{name}.z{z}.{column}" for column in columns)
            for z in range(Subdomains.load(path).k)
        }
    source, target = (f"{name}.specificity.{side}" for side in sides)
    coherence = f"{name}.coherence"
    return {
        f"{name}: specificity, source": (source,),
        f"{name}: specificity, target": (target,),
        f"{name}: coherence": (coherence,),
        f"{name}: all three": (source, target, coherence),
    }


def draw_mixed(pools: Sequence[NBest], size: int, seed: int) -> np.ndarray:
    """Draw equally many sentences of each pool; of one pool, those of `measuring.draw`.

    Returns:
        their positions in the concatenated pools.
    """
    sizes = [len(part) for part in np.array_split(np.arange(size), len(pools))]
    starts = np.cumsum([0, *map(len, pools)])
    return np.concatenate(
        [
            starts[place] + np.random.default_rng(seed + 1000 * place).integers(len(pool), size=n)
            for place, (pool, n) in enumerate(zip(pools, sizes, strict=True))
        ]
    )


def print_table(
    title: str, tasks: Sequence[Task], rows: Mapping[str, tuple[str, ...]], draws: int
) -> None:
    """Print a table; the tasks have different pools, each of which gets an equal share of A."""
    table = Table(title, *(f"|A| = {size}" for size in SIZES), width=46)
    baseline: dict[int, np.ndarray] = {}
    for name, new in {"the list's 14": (), **rows}.items():
        chosen = [task.keep_features(*new) for task in tasks]
        pools = [task.pool for task in chosen]
        pool = NBest.concatenate(pools, renumber=True)
        cells = []
        for size in SIZES:
            samples = (pool.select(draw_mixed(pools, size, seed)) for seed in range(draws))
            posteriors = (chosen[0].adapt(sample, likelihood="margin") for sample in samples)
            scores = np.array([chosen[0].scores(bpa.point_weights(one)) for one in posteriors])
            change = scores[:, 0] - baseline.setdefault(size, scores[:, 0])
            error = 2 * change.std(ddof=min(1, draws - 1)) / np.sqrt(draws)
            difference = f" ({change.mean():+.2f} ± {error:.2f})" if new else ""
            cells.append(cell(summary([scores])) + difference)
        table.row(name, *cells)


def main() -> None:
    """Read the command line and print the tables."""
    tables = ("in", "mixed", "without", "distances", "single")
    options = parse_options(__doc__, tables=tables, subdomains=(), draws=10, folder="")
    folder = Path(options.folder) if options.folder else scratch_folder()
    paths = dict(one.split("=", 1) for one in options.subdomains) or induced_subdomains(folder)
    single = "single" in options.tables
    sources = [one for item in paths.items() for one in feature_sources(*item, single)]
    captions = segmented_captions().with_features(*sources)
    mixed = [captions]
    if {"mixed", "without"} & set(options.tables):
        print_agreement(segmented_captions().pool, sources[0])
        add = feature_adder(sources)
        mixed += [captions._replace(pool=add(segmented_lists(d, folder)).nbest) for d in OTHERS]
    for table in options.tables:
        rows = [rows_of(table, *item) for item in paths.items()]
        tasks = {"mixed": mixed, "without": mixed[1:]}.get(table, [captions])
        print_table(
            f"captions, {table}",
            tasks,
            {row: new for one in rows for row, new in one.items()},
            options.draws,
        )


if __name__ == "__main__":
    main()
