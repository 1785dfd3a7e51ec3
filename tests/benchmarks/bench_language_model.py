"""Language models: time, memory and agreement with KenLM.

    python tests/benchmarks/bench_language_model.py [--lines N] [--order N] [--repeats N]

1. Training on N lines (default a million: the general corpus, and copies of it with one word in
   twenty exchanged) and the peak of its memory; beside counting the same n-grams in dictionaries of
   plain Python, on the first tenth of the lines, and training on that tenth.
2. Scoring the hypotheses of the captions lists, beside reading the lists, and beside KenLM's module
   where it is installed: each distinct string once, and all hypotheses.

Each time is the best of some runs, after one that compiles; the ratios are of the same run.
"""

from __future__ import annotations

import argparse
import lzma
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from measuring import DATA, Peak, clock

from bpa_ppl import read_nbest
from bpa_ppl.features.lm import LanguageModel
from bpa_ppl.text.arpa import read_arpa, write_arpa
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.words import words_of

CORPORA = DATA / "phrases" / "corpora"


def long_text(folder: Path, lines: int) -> Path:
    """Write the general corpus, then copies with one word in twenty exchanged, cut to a length."""
    with lzma.open(CORPORA / "out.en.xz", "rt", encoding="utf-8") as file:
        original = [line.split() for line in file]
    rng = np.random.default_rng(0)
    vocabulary = sorted({word for line in original for word in line})
    path = folder / "text"
    with path.open("w", encoding="utf-8") as file:
        for number in range(lines):
            copy, at = divmod(number, len(original))
            words = list(original[at])
            for place in np.flatnonzero(rng.random(len(words)) < 0.05) if copy else ():
                words[place] = vocabulary[rng.integers(len(vocabulary))]
            file.write(f"{' '.join(words)}\n")
    return path


def plain_counts(path: Path, order: int) -> list[Counter[tuple[str, ...]]]:
    """Count n-grams as one would at first: this estimates nothing yet."""
    counts: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(order)]
    with path.open(encoding="utf-8") as file:
        for line in file:
            words = ["<s>", *line.split(), "</s>"]
            for n in range(1, order + 1):
                counts[n - 1].update(zip(*(words[i:] for i in range(n)), strict=False))
    return counts


def best(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the least seconds of some runs, and the result."""
    runs = [clock(work) for _ in range(repeats)]
    return min(seconds for seconds, _ in runs), runs[-1][1]


def row(name: str, seconds: float, ratio: float | None = None, note: str = "") -> None:
    """Print one line of a table."""
    told = "" if ratio is None else f"{ratio:.1f}×"
    print(f"{name:<52}{seconds:>9.2f} s{told:>9}  {note}", flush=True)


def training(lines: int, order: int, repeats: int, folder: Path) -> None:
    """Print what training costs."""
    path = long_text(folder, lines)
    part = folder / "part"
    with path.open(encoding="utf-8") as whole, part.open("w", encoding="utf-8") as file:
        file.writelines(line for _, line in zip(range(lines // 10), whole, strict=False))
    NgramModel.train([DATA / "phrases" / "corpora" / "captions.test.en.xz"], order)  # compiles
    size = path.stat().st_size
    print(f"\ntraining, order {order}: {lines:,} lines, {size / 1e6:.0f} MB")
    with Peak() as peak:
        seconds, model = best(lambda: NgramModel.train([path], order), 1)
    more = best(lambda: NgramModel.train([path], order), repeats - 1)[0] if repeats > 1 else seconds
    grams = f"{sum(model.counts):,} n-grams"
    row("all lines", min(seconds, more), None, f"{grams}, peak {peak.bytes / 2**30:.2f} GiB")
    del model
    ours, small = best(lambda: NgramModel.train([part], order), repeats)
    row("a tenth of the lines", ours, 1.0, f"{sum(small.counts):,} n-grams")
    with Peak() as peak:
        plain, counts = best(lambda: plain_counts(part, order), 1)
    row("the same n-grams in dictionaries, counted only", plain, plain / ours)
    found = [len(count) for count in counts]
    assert found == [small.counts[0] - 1, *small.counts[1:]], (found, small.counts)  # no <unk>
    arpa = folder / "part.arpa"
    row("writing an ARPA file of that", best(lambda: write_arpa(small, arpa), 1)[0])
    row("reading it", best(lambda: read_arpa(arpa), repeats)[0])


def scoring(repeats: int, folder: Path) -> None:
    """Print what scoring a quarter of a million hypotheses costs."""
    path = DATA / "captions" / "adapt.nbest.gz"
    read_nbest(path)
    seconds, lists = best(lambda: read_nbest(path), repeats)
    model = NgramModel.train([CORPORA / "captions.train.en.xz"], 3)
    source = LanguageModel(text=str(CORPORA / "captions.train.en.xz"))
    compute = source.opened()
    compute(lists)
    print(
        f"\nscoring, order 3: {len(lists.features):,} hypotheses, {len(lists.strings):,} distinct"
    )
    row("reading the lists (already compiled)", seconds, 1.0)
    both = best(lambda: compute(lists), repeats)[0]
    row("the columns lm and lm.oov", both, both / seconds)
    texts = [words_of(text) for text in lists.strings]
    alone = best(lambda: model.log_probabilities(texts), repeats)[0]
    row("log-probabilities of the distinct, split into words", alone, alone / seconds)
    if find_spec("kenlm") is not None:
        arpa = folder / "captions.arpa"
        write_arpa(model, arpa)
        theirs = import_module("kenlm").Model(str(arpa))
        kenlm, scores = best(lambda: [theirs.score(text) for text in lists.strings], repeats)
        row("KenLM's module, the distinct", kenlm, kenlm / seconds)
        every = [lists.text(row) for row in range(len(lists.features))]
        row(
            "KenLM's module, all",
            s := best(lambda: list(map(theirs.score, every)), 1)[0],
            s / seconds,
        )
        gap = np.abs(model.log_probabilities(texts) / np.log(10) - scores).max()
        print(f"largest difference to KenLM: {gap:.1e} (log10 of a hypothesis)")


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--order", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"this benchmark needs the texts of {DATA}, which are not here")
    with tempfile.TemporaryDirectory() as folder:
        scoring(options.repeats, Path(folder))
        training(options.lines, options.order, options.repeats, Path(folder))


if __name__ == "__main__":
    main()
