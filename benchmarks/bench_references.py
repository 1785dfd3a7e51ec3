"""Whether the references of lists are told from those of their neighbours (docs/lists.md).

The share of lists whose candidates are nearer to their own reference, by chrF, than to that of the
next or the previous list, whichever share is lower. The lists are samples of each collection, in
the order of the file, with their own references, those of the next and of the previous list of the
sample, and all in random order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from measuring import DATA, DOMAINS, Table, few, read_lists, run_tables

import bpa_ppl as bpa
from bpa_ppl.gains.misplaced import REFUSED_BELOW, measure_neighbours

SIZES = (20, 50, 100)
#: Candidates of a list that are kept, and those of a single one.
KINDS = {
    "five candidates": slice(0, 5),
    "the first one": slice(0, 1),
    "the last one": slice(-1, None),
}
JUDGED = {
    "bio": ("judged/bio.de-en", "judged/bio.en-fr", "judged/bio.es-en", "judged/bio.fr-en"),
    "librispeech": ("judged/librispeech.dev_clean", "judged/librispeech.dev_other"),
    "summaries": ("judged/thumb.summeval",),
    "wmt": ("judged/wmt21.en-de", "judged/wmt23.en-de", "judged/wmt23.zh-en"),
    "wmt24": ("judged/wmt24esa.en-cs",),
    "ted": ("mqm/ted.en-de", "mqm/ted.zh-en"),
}


def read_collections() -> Iterator[tuple[str, list[bpa.NBest]]]:
    """Yield the name and the lists of each collection with references."""
    for domain in few(DOMAINS):
        yield domain, [read_lists(domain, part) for part in ("adapt", "test")]
    yield "out-of-domain", [read_lists("out-of-domain", part) for part in ("dev", "test")]
    paths = (DATA / "authored" / name for name in ("leaflet", "office"))
    read = bpa.read_nbest
    yield "authored", [read(f"{path}.nbest100.gz", references=f"{path}.ref") for path in paths]
    for name, files in few([*JUDGED.items()]):
        yield name, [read(DATA / f"{file}.jsonl.gz") for file in files]


def keep_candidates(lists: bpa.NBest, kept: slice) -> bpa.NBest:
    """Return lists with some of their candidates."""
    rows = [np.arange(len(lists.features))[lists.rows(s)][kept] for s in range(len(lists))]
    return lists.regroup(slice(None), np.concatenate(rows), np.array([*map(len, rows)]))


def measure(lists: bpa.NBest, size: int, seed: int) -> list[float]:
    """Return the shares of a sample: own, next, previous and random references."""
    rng, size = np.random.default_rng([seed, size]), min(size, len(lists))
    part = lists[np.arange(size) + rng.integers(len(lists) - size + 1)]
    own, places = part.references or (), np.arange(size)
    orders = (places, np.roll(places, -1), np.roll(places, 1), rng.permutation(size))
    return [measure_neighbours(part.with_references([own[k] for k in order])) for order in orders]


def print_shares(options: Any) -> None:
    """Print the shares of each collection, and of all for each kind of lists."""
    columns = "own, lowest", "next, highest", "previous, highest", "random", "random, refused"
    table = Table("collection, lists of a sample", *columns)
    every: dict[tuple[str, int], list[list[float]]] = {}
    for name, parts in read_collections():
        for kind, kept in KINDS.items():
            lists = [keep_candidates(part, kept) for part in parts]
            for size in few(SIZES):
                seeds = range(options.seeds)
                shares = [measure(part, size, seed) for part in lists for seed in seeds]
                every.setdefault((kind, size), []).extend(shares)
                if kind == next(iter(KINDS)):
                    table.row(f"{name}, {size}", *summarise(shares))
    table = Table("all collections, lists of a sample", *columns)
    for (kind, size), shares in every.items():
        table.row(f"{kind}, {size}", *summarise(shares))


def summarise(samples: list[list[float]]) -> Iterator[str]:
    """Yield the cells of a row."""
    own, following, previous, shuffled = np.array(samples).T
    yield from (f"{value:.2f}" for value in (own.min(), following.max(), previous.max()))
    yield f"{shuffled.min():.2f} to {shuffled.max():.2f}"
    yield f"{np.mean(shuffled < REFUSED_BELOW):.2%}"


if __name__ == "__main__":
    run_tables(__doc__, [print_shares], seeds=25)
