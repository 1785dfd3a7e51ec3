"""Test TER and BLEU after re-estimation, beside the original tools on the same lists.

    python tests/benchmarks/bench_tuning.py [--domain NAME] [--sizes N …] [--repeats N] [--all]

Each repeat draws |A| adaptation sentences with replacement (seeds 0, 1, …; the same draw for every
method), tunes on their fixed 500-best lists, and reranks the whole test set. Printed: mean ± 2
standard deviations over the draws, and the mean seconds of tuning, statistics included.
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter

import numpy as np
from measuring import canonical, drawn, lists

import bpa_ppl as bpa
from bpa_ppl.weights import match

#: The tuner and the metric that it optimises. MERT+ takes minutes, and only comes with --all.
METHODS = (
    ("mert", "bleu"),
    ("mert", "ter"),
    ("mira", "bleu"),
    ("mira", "ter"),
    ("pro", "bleu"),
    ("pro", "ter"),
    ("mert+", "bleu"),
    ("mert+", "ter"),
)
#: Test TER ± 2σ on captions of the programs of Moses, on draws of their own; that of kbmira with
#: its set of hypotheses repaired (see `bpa_ppl.tuning.mira`), as built it reached 57.3 ± 11.0.
ORIGINAL = {
    ("mert", "bleu", 10): "59.0 ± 4.2",
    ("mert", "ter", 10): "54.9 ± 2.0",
    ("mira", "bleu", 10): "54.2 ± 1.6",
    ("pro", "bleu", 10): "57.0 ± 5.2",
    ("mert", "bleu", 100): "54.1 ± 2.2",
    ("mert", "ter", 100): "52.8 ± 0.7",
    ("pro", "bleu", 100): "53.1 ± 0.2",
}


def scores(test: bpa.NBest, weights: bpa.Weights) -> tuple[float, float]:
    """Return corpus TER and BLEU of a test set reranked."""
    texts = test.chosen(test.best(test.scores(match(weights, test).values)))
    ter, bleu = (bpa.corpus_score(texts, test.references, m).value for m in ("ter", "bleu"))
    return ter, bleu


def row(name: str, table: np.ndarray, original: str) -> None:
    """Print mean and twice the standard deviation of TER and BLEU, and the mean seconds."""
    mean, spread = table.mean(axis=0), 2 * table.std(axis=0, ddof=min(1, len(table) - 1))
    ter, bleu = (f"{m:.1f} ± {s:.1f}" for m, s in zip(mean[:2], spread[:2], strict=True))
    print(f"{name:<14}{ter:>14}{bleu:>14}{mean[2]:>8.1f} s{original:>16}", flush=True)


def study(domain: str, sentences: int, repeats: int, methods: tuple) -> None:
    """Tune with every method on every draw, and print the rows of one size of A."""
    pool, test, dev = lists(domain, "adapt"), lists(domain, "test"), lists("out-of-domain", "dev")
    print(f"\n{domain}, |A| = {sentences}\n{'':<14}{'TER':>14}{'BLEU':>14}{'':>10}{'original':>16}")
    row("canonical", np.array([[*scores(test, canonical()), 0.0]]), "")
    for tuner, metric in methods:
        found = []
        for seed in range(repeats):
            sample, start = drawn(pool, sentences, seed), perf_counter()
            weights = bpa.reestimate(
                sample,
                canonical(),
                tuner=tuner,
                metric=metric,
                seed=seed,
                extra=dev if tuner == "mert+" else None,
            ).weights
            seconds = perf_counter() - start
            found.append([*scores(test, weights), seconds])
        known = ORIGINAL.get((tuner, metric, sentences), "") if domain == "captions" else ""
        row(f"{tuner} ({metric})", np.array(found), known)


def main() -> None:
    """Read the command line and study each size of A."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--domain", default="captions")
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--all", action="store_true", help="MERT+ too")
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    methods = METHODS if options.all else METHODS[:6]
    for sentences in options.sizes:
        study(options.domain, sentences, options.repeats, methods)


if __name__ == "__main__":
    main()
