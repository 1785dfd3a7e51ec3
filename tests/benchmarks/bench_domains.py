"""Test TER, BLEU and length after adaptation, on the real foreign domains.

    python tests/benchmarks/bench_domains.py [--sentences N] [--repeats N] [--domains NAME …]

Each repeat draws N adaptation sentences with replacement (seeds 0, 1, …; the same draw for every
method) and reranks the whole test set. Printed: mean ± 2 standard deviations over the draws.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from measuring import canonical, drawn, lists

import bpa_ppl as bpa

#: Name in the table -> sampler and settings; the published likelihood unless one is named.
METHODS: dict[str, dict[str, Any]] = {
    "heuristic, δ = 1": {"sampler": "heuristic"},
    "heuristic, δ = 50": {"sampler": "heuristic", "delta": 50.0},
    "rwm-isotropic": {"sampler": "rwm-isotropic"},
    "rwm": {"sampler": "rwm"},
    "imh": {"sampler": "imh"},
    "nuts": {"sampler": "nuts"},
    "map": {"sampler": "map"},
    "imh, margin": {"sampler": "imh", "likelihood": "margin"},
    "map, margin": {"sampler": "map", "likelihood": "margin"},
}
GAINS, DECIMALS = ("ter", "bleu"), (2, 2, 3)


def scores(texts: list[str], references: tuple) -> tuple[float, ...]:
    """Return corpus TER, BLEU and length ratio."""
    ter, bleu = (bpa.corpus_score(texts, references, metric) for metric in ("ter", "bleu"))
    return ter.value, bleu.value, float(bleu.details["length_ratio"])


def study(domain: str, sentences: int, repeats: int) -> None:
    """Adapt with every method on every draw, and print the rows of one domain."""
    pool, test = lists(domain, "adapt"), lists(domain, "test")
    first_best = test.chosen(np.zeros(len(test), np.int64))
    print(f"\n{domain}\n{'':<20}{'TER':>16}{'BLEU':>16}{'length':>18}{'converged':>12}")
    row("canonical", [scores(first_best, test.references)], "")
    for name, settings in METHODS.items():
        found, passed = [], 0
        for seed in range(repeats):
            sample = drawn(pool, sentences, seed)
            chosen = bpa.oracles(sample)
            made = {"likelihood": "oracle", "oracle": chosen, "seed": seed, **settings}
            post = bpa.adapt(sample, canonical(), **made)
            passed += bool(bpa.check(post))
            found.append(scores(bpa.rerank(test, post, unchecked=True).texts, test.references))
        row(name, found, f"{passed} of {repeats}")
    found = [scores(test.chosen(bpa.oracles(test, m).index), test.references) for m in GAINS]
    for gain, oracle in zip(GAINS, found, strict=True):
        row(f"oracle, {gain}", [oracle], "")


def row(name: str, found: list, converged: str) -> None:
    """Print the mean and twice the standard deviation of TER, BLEU and length."""
    table = np.array([list(values) for values in found])
    mean, spread = table.mean(axis=0), 2 * table.std(axis=0, ddof=1 if len(table) > 1 else 0)
    cells = [
        f"{m:.{d}f} ± {s:.{d}f}" if len(table) > 1 else f"{m:.{d}f}"
        for m, s, d in zip(mean, spread, DECIMALS, strict=True)
    ]
    print(f"{name:<20}{cells[0]:>16}{cells[1]:>16}{cells[2]:>18}{converged:>12}", flush=True)


def main() -> None:
    """Read the command line and study each domain."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--domains", nargs="+", default=["medical", "captions", "conversation"])
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    for domain in options.domains:
        study(domain, options.sentences, options.repeats)


if __name__ == "__main__":
    main()
