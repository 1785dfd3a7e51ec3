"""Phrase tables: extraction, mixtures and features, on the real corpora of captions.

    python tests/benchmarks/bench_phrases.py [--tables NAME …] [--sentences N] [--repeats N]

Tables: `extraction` (against an extractor in plain Python, on the first N sentence pairs of the
general corpus), `corpus` (the whole general corpus: a minute or two), `mixtures` (log-likelihood of
held-out pairs of the domain) and `features` (against sums over a dictionary, and against the time
that reading the lists takes). Each ratio is of two times of the same run, the best of the repeats.
"""

from __future__ import annotations

import argparse
import itertools
import lzma
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measuring import DATA, Peak, clock

from bpa_ppl import read_nbest
from bpa_ppl.features.phrases import PhraseMixture
from bpa_ppl.formats.streams import read_lines
from bpa_ppl.nbest import NBest
from bpa_ppl.phrases import (
    PhraseCounts,
    PhraseTable,
    held_out,
    mix,
    read_counts,
    read_table,
    write_table,
)
from bpa_ppl.phrases.extraction import extract_phrases
from bpa_ppl.phrases.mixtures import DIRECTIONS, METHODS, counts_of
from bpa_ppl.tables import text_table

FOLDER = DATA / "phrases"
ENDS = ("fr", "en", "align")
LONGEST = 5
FLOOR = 1e-4


def best(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the least seconds of some runs, and the result of the last."""
    runs = [clock(work) for _ in range(repeats)]
    return min(seconds for seconds, _ in runs), runs[-1][1]


def plain_extraction(paths: list[Path]) -> Counter[tuple[str, str]]:
    """Count phrase pairs as one writes it down in Python, over the target spans."""
    found: Counter[tuple[str, str]] = Counter()
    for lines in zip(*map(read_lines, paths), strict=True):
        source, target = lines[0].split(), lines[1].split()
        points = [tuple(map(int, point.split("-"))) for point in lines[2].split()]
        aligned = {s for s, _ in points}
        for first in range(len(target)):
            for last in range(first, min(first + LONGEST, len(target))):
                inside = [s for s, t in points if first <= t <= last]
                if not inside:
                    continue
                low, high = min(inside), max(inside)
                if high - low >= LONGEST or any(
                    low <= s <= high and not first <= t <= last for s, t in points
                ):
                    continue
                phrase = " ".join(target[first : last + 1])
                begin = low
                while begin >= 0 and (begin == low or begin not in aligned):
                    end = high
                    while end < min(len(source), begin + LONGEST) and (
                        end == high or end not in aligned
                    ):
                        found[" ".join(source[begin : end + 1]), phrase] += 1
                        end += 1
                    begin -= 1
    return found


def extraction(sentences: int, repeats: int) -> None:
    """Print the speed of extraction against plain Python, where both count the same."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / end for end in ENDS]
        for path in paths:
            with lzma.open(FOLDER / f"corpora/out.{path.name}.xz", "rb") as file:
                path.write_bytes(b"".join(itertools.islice(file, sentences)))
        extract_phrases(*paths)  # compiles
        ours, table = best(lambda: extract_phrases(*paths), repeats)
        plain, counts = best(lambda: plain_extraction(paths), 1)
    sides = (table.texts("source").to_pylist(), table.texts("target").to_pylist())
    assert dict(zip(zip(*sides, strict=True), table.count, strict=True)) == counts
    rows = [
        ("compiled", f"{ours:.2f}", f"{sentences / ours:,.0f}", "1.0"),
        ("plain Python", f"{plain:.2f}", f"{sentences / plain:,.0f}", f"{plain / ours:.1f}"),
    ]
    title = f"{sentences:,} pairs"
    print(text_table(rows, (title, "seconds", "sentences/s", "ratio"), align="lrrr"), "\n")


def corpus() -> None:
    """Print time and memory of the whole corpora."""
    rows = []
    for name in ("captions.train", "out"):
        paths = [FOLDER / f"corpora/{name}.{end}.xz" for end in ENDS]
        with Peak() as peak:
            seconds, table = clock(partial(extract_phrases, *paths))
        found = (f"{len(table):,}", f"{table.total:,.0f}", f"{seconds:.1f}")
        rows.append((name, *found, f"{peak.bytes / 1e9:.2f}"))
    names = ("corpus", "pairs", "occurrences", "seconds", "peak GB")
    print(text_table(rows, names, align="lrrrr"), "\n")


def tables() -> tuple[PhraseCounts, PhraseCounts, PhraseCounts]:
    """Return the counts of the domain, of the general corpus, and of the development text."""
    counts = FOLDER / "phrases"
    outer = read_counts(
        counts / "out.extract.captions.xz",
        source_counts=counts / "out.marginals.captions.src.xz",
        target_counts=counts / "out.marginals.captions.tgt.xz",
    )
    inner, dev = (read_counts(counts / f"captions.{n}.extract.xz") for n in ("in", "dev"))
    return inner, outer, dev


def mixtures() -> None:
    """Print how likely held-out pairs are under each mixture (five folds)."""
    inner, outer, dev = tables()
    rows = []
    for method in METHODS:
        cells = [method]
        for side in DIRECTIONS.values():
            found = held_out(method, counts_of(inner, outer, dev, side), dev.count, side)
            value = f"{found.value:.3f}" if METHODS[method].parameter else ""
            cells += [value, f"{found.log_likelihood:.4f}"]
        rows.append((*cells, f"{found.support:.1%}"))
    names = ("mixture", "", "p(t|s)", "", "p(s|t)", "support")
    print(text_table(rows, names, align="lrrrrr"), "\n")


def plain_sums(lists: NBest, table: PhraseTable) -> np.ndarray:
    """Return the sums over segmentations as one writes them down in Python."""
    logs = np.log(np.maximum(table.columns["direct"], FLOOR))
    sides = (table.texts("source").to_pylist(), table.texts("target").to_pylist())
    pairs = dict(zip(zip(*sides, strict=True), logs, strict=True))
    sums = np.zeros(len(lists.features))
    for s in range(len(lists)):
        source = (lists.sources or ())[s].split()
        for row in range(int(lists.offsets[s]), int(lists.offsets[s + 1])):
            target = lists.text(row).split()
            for pair in lists.extras["segmentation"][row].split():
                (b, *e), (c, *d) = (map(int, span.split("-")) for span in pair.split("="))
                phrases = source[b : (e or [b])[0] + 1], target[c : (d or [c])[0] + 1]
                sums[row] += pairs.get((" ".join(phrases[0]), " ".join(phrases[1])), np.log(FLOOR))
    return sums


def features(repeats: int) -> None:
    """Print the speed of the columns of 250,000 hypotheses."""
    inner, outer, dev = tables()
    text = read_lines(FOLDER / "corpora/captions.test.fr.xz")
    path = FOLDER / "nbest-seg/captions.test.nbest.xz"
    with tempfile.TemporaryDirectory() as folder:
        name = f"{folder}/table.parquet"
        mixing, (made, _) = clock(lambda: mix(inner, outer, dev))
        write_table(made, name)
        source = PhraseMixture(table=name, direction="direct", floor=FLOOR)
        reading, lists = best(lambda: read_nbest(path), repeats)
        lists = lists.with_sources(text)
        source.columns(lists)  # compiles
        opening, compute = best(source.opened, repeats)
        ours, (_, sums) = best(lambda: compute(lists), repeats)
        plain, expected = best(lambda: plain_sums(lists, read_table(name)), 1)
    np.testing.assert_allclose(np.asarray(sums)[:, 0], expected)
    rows = [
        ("columns", f"{ours:.2f}", "1.0"),
        ("plain Python with a dictionary", f"{plain:.2f}", f"{plain / ours:.1f}"),
        ("reading the lists", f"{reading:.2f}", f"{reading / ours:.1f}"),
        (f"reading the table of {len(made):,} pairs", f"{opening:.2f}", f"{opening / ours:.1f}"),
        ("fitting and mixing it", f"{mixing:.2f}", f"{mixing / ours:.1f}"),
    ]
    title = f"{len(lists.features):,} hypotheses"
    print(text_table(rows, (title, "seconds", "ratio"), align="lrr"), "\n")


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = ["extraction", "corpus", "mixtures", "features"]
    parser.add_argument("--tables", nargs="+", default=every, choices=every)
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    work: dict[str, Callable[[], None]] = {
        "extraction": lambda: extraction(chosen.sentences, chosen.repeats),
        "corpus": corpus,
        "mixtures": mixtures,
        "features": lambda: features(chosen.repeats),
    }
    for name in chosen.tables:
        work[name]()


if __name__ == "__main__":
    main()
