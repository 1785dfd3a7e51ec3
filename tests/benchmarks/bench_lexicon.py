"""IBM Model 1: learning beside a dictionary of Python's, scoring beside reading, and what it gains.

    python tests/benchmarks/bench_lexicon.py [--parts speed out gain] [--repeats N]

`speed`: EM of captions, both ways, and scoring the 500-best lists. `out`: EM of the general corpus
(456 thousand pairs, 16 million tokens), with its memory. `gain`: test TER and BLEU of captions with
the columns of a lexicon of 500 pairs (drawn anew each time) and of all 32,542, the weights adapted
on 10 and 100 sentences; of the lexicon of the adaptation sentences themselves; and of consensus.
Mean ± 2 standard deviations over the draws (seeds 0, 1, …; with replacement).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable

import numpy as np
from measuring import DATA, Peak, canonical, clock, drawn

import bpa_ppl as bpa
from bpa_ppl import NBest, add_features
from bpa_ppl.features.base import FeatureSource
from bpa_ppl.features.consensus import Consensus
from bpa_ppl.features.lexicon import Lexicon
from bpa_ppl.formats.streams import read_lines
from bpa_ppl.text.ibm1 import IBM1

Sentences = list[list[str]]

CORPORA = DATA / "phrases" / "corpora"
MEMORY = str(CORPORA / "captions.train.fr.xz"), str(CORPORA / "captions.train.en.xz")
VARIANCE = 0.1  # of the raw weights of new features, but for the rows with another prior
SCALED = "scaled prior"  # the default of `adapt`: by the spread of a column within the lists
SUBSET = 3000  # pairs that the dictionary learns from


def words(name: str) -> Sentences:
    """Return the words of each line of a corpus."""
    return [line.split() for line in read_lines(CORPORA / name)]


def captions(part: str) -> NBest:
    """Read the lists of captions with their sources."""
    folder = DATA / "captions"
    return bpa.read_nbest(
        folder / f"{part}.nbest.gz",
        references=folder / f"{part}.ref",
        sources=folder / f"{part}.src",
    )


def dictionary_em(sources: Sentences, targets: Sentences, iterations: int) -> dict:
    """Model 1 as most people write it first."""
    uniform = 1 / len({word for target in targets for word in target})
    table: dict[tuple[str, str], float] = defaultdict(lambda: uniform)
    for _ in range(iterations):
        counts: dict[tuple[str, str], float] = defaultdict(float)
        totals: dict[str, float] = defaultdict(float)
        for source, target in zip(sources, targets, strict=True):
            inside = ["", *source]
            for e in target:
                norm = sum(table[f, e] for f in inside)
                for f in inside:
                    share = table[f, e] / norm
                    counts[f, e] += share
                    totals[f] += share
        table = defaultdict(float, {(f, e): c / totals[f] for (f, e), c in counts.items()})
    return table


def dictionary_scores(table: dict, lists: NBest) -> np.ndarray:
    """Return log p(hypothesis | source) of each line, one after the other."""
    found = []
    for s, source in enumerate(lists.sources or ()):
        inside = ["", *source.split()]
        for text in lists.texts(s):
            sums = [sum(table[f, e] for f in inside) / len(inside) for e in text.split()]
            found.append(np.log(np.maximum(sums, 1e-7)).sum())
    return np.array(found)


def best(work: Callable[[], object], runs: int = 3) -> float:
    """Return the least seconds of several runs."""
    return min(clock(work)[0] for _ in range(runs))


def speed() -> None:
    """Print what learning and scoring take, beside the obvious ways."""
    sources, targets = words("captions.train.fr.xz"), words("captions.train.en.xz")
    few = sources[:SUBSET], targets[:SUBSET]
    IBM1.estimate(*few, 1)
    slow, table = clock(lambda: dictionary_em(*few, 5))
    fast = best(lambda: IBM1.estimate(*few))
    whole = best(lambda: IBM1.estimate(sources, targets))
    print(f"\n{'':<44}{'seconds':>10}{'ratio':>9}")
    line(f"EM, {SUBSET} pairs, dictionary", slow, 1)
    line(f"EM, {SUBSET} pairs, IBM1", fast, slow / fast)
    line(f"EM, {len(sources)} pairs, IBM1", whole)
    reading, pool = clock(lambda: captions("adapt"))
    scorer = Lexicon(pairs=MEMORY).opened()
    scorer(pool[:1])
    both = best(lambda: scorer(pool))
    model = IBM1.estimate(*few)
    part = pool[:20]
    plain, expected = clock(lambda: dictionary_scores(table, part))
    own = [text.split() for text in part.sources or ()]
    every = [part.text(row).split() for row in range(len(part.features))]
    found = model.log_probabilities(own, every, np.repeat(np.arange(len(part)), part.sizes))
    assert np.allclose(found, expected, rtol=1e-9), "the dictionary finds other probabilities"
    line(f"reading {len(pool.features)} hypotheses", reading, 1)
    line("scoring them, both directions", both, reading / both)
    line("the same, dictionary (from 20 lists)", 2 * plain * len(pool) / len(part), "")
    matches = best(lambda: Consensus().columns(pool))
    line("consensus of them, orders 1 to 4", matches, reading / matches)


def line(what: str, seconds: float, ratio: float | str = "") -> None:
    """Print a row of the table."""
    shown = f"{ratio:.1f}" if isinstance(ratio, float | int) else ratio
    print(f"{what:<44}{seconds:>10.2f}{shown:>9}", flush=True)


def out() -> None:
    """Print what learning from the general corpus takes."""
    with Peak() as peak:
        sources, targets = words("out.fr.xz"), words("out.en.xz")
        IBM1.estimate(sources[:9], targets[:9], 1)
        seconds, model = clock(lambda: IBM1.estimate(sources, targets))
    print(f"\n{model}: {seconds:.1f} s, {peak.bytes / 1e9:.2f} GB with the text")


def gain(repeats: int) -> None:
    """Print TER and BLEU of captions with and without the columns."""
    pool, test = captions("adapt"), captions("test")
    whole = Lexicon(pairs=MEMORY)
    per_word = Lexicon(pairs=MEMORY, per_word=True)
    few = [some(seed, 500) for seed in range(repeats)]
    ways: dict[str, Callable[[NBest, int], FeatureSource | None]] = {
        "the list's own": lambda sample, seed: None,
        "lexicon, 500 pairs": lambda sample, seed: few[seed],
        "lexicon, all pairs": lambda sample, seed: whole,
        "the same, also per word": lambda sample, seed: per_word,
        "lexicon=self": lambda sample, seed: Lexicon(pairs="self"),
        "consensus": lambda sample, seed: Consensus(),
        "consensus, mean": lambda sample, seed: Consensus(mean=True),
        f"lexicon, all pairs, {SCALED}": lambda sample, seed: whole,
        f"lexicon=self, {SCALED}": lambda sample, seed: Lexicon(pairs="self"),
        f"consensus, mean, {SCALED}": lambda sample, seed: Consensus(mean=True),
    }
    print(f"\n{'captions, test':<36}{'|A| = 10':>24}{'|A| = 100':>24}")
    made: dict[FeatureSource, tuple[NBest, NBest]] = {}
    for name, way in ways.items():
        cells = []
        for size in (10, 100):
            found = []
            for seed in range(repeats):
                sample, new = drawn(pool, size, seed), test
                source = way(sample, seed)
                if isinstance(source, Lexicon) and source.unlearned:
                    sample, new = with_own(sample, test, source)
                elif source is not None:
                    if source not in made:
                        made[source] = add_features(pool, source), add_features(test, source)
                    sample, new = drawn(made[source][0], size, seed), made[source][1]
                found.append(scores(sample, new, len(pool.feature_names), SCALED in name))
            cells.append(cell(found))
        print(f"{name:<36}{cells[0]:>24}{cells[1]:>24}", flush=True)


def with_own(sample: NBest, test: NBest, source: Lexicon) -> tuple[NBest, NBest]:
    """Return both lists with the columns of what the sample teaches."""
    return add_features(sample, source), add_features(test, source.fitted(sample))


def some(seed: int, size: int) -> Lexicon:
    """Return a lexicon of a few pairs of the memory, drawn without replacement."""
    sides = [read_lines(path) for path in MEMORY]
    chosen = np.random.default_rng(seed).choice(len(sides[0]), size, replace=False)
    own = tuple((sides[0][n], sides[1][n]) for n in chosen)
    return Lexicon(pairs=MEMORY, learned_pairs=own)


def scores(sample: NBest, test: NBest, own: int, scaled: bool = False) -> tuple[float, float]:
    """Adapt on the sample, rerank the test lists, and return corpus TER and BLEU."""
    new = sample.feature_names[own:]
    zeros = dict.fromkeys(new, 0.0)
    raw = None if scaled else dict.fromkeys(new, VARIANCE)
    posterior = bpa.adapt(
        sample,
        canonical(),
        sampler="map",
        likelihood="oracle",
        defaults=zeros,
        prior_variance=raw or None,
    )
    texts = bpa.rerank(test, posterior, unchecked=True).texts
    ter, bleu = (bpa.corpus_score(texts, test.references, m).value for m in ("ter", "bleu"))
    return ter, bleu


def cell(found: list[tuple[float, float]]) -> str:
    """Return the mean TER and twice its standard deviation, and the mean BLEU."""
    table = np.array(found)
    spread = 2 * table[:, 0].std(ddof=1 if len(table) > 1 else 0)
    return f"{table[:, 0].mean():.2f} ± {spread:.2f} / {table[:, 1].mean():.1f}"


def main() -> None:
    """Read the command line and run the parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", default=["speed", "gain"])
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"this benchmark needs the real n-best lists of {DATA}, which are not here")
    warnings.simplefilter("ignore", bpa.BpaWarning)
    parts = {"speed": speed, "out": out, "gain": lambda: gain(options.repeats)}
    for part in options.parts:
        parts[part]()


if __name__ == "__main__":
    main()
