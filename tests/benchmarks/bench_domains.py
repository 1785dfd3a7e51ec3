"""Test TER and BLEU after adaptation, on the real foreign domains: the table of the README.

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
from bpa_ppl.quality import headroom

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


def scores(texts: list[str], references: tuple) -> tuple[float, float]:
    """Return corpus TER and BLEU."""
    ter, bleu = (bpa.corpus_score(texts, references, metric).value for metric in ("ter", "bleu"))
    return ter, bleu


def study(domain: str, sentences: int, repeats: int) -> None:
    """Adapt with every method on every draw, and print the rows of one domain."""
    pool, test = lists(domain, "adapt"), lists(domain, "test")
    first_best = test.chosen(np.zeros(len(test), np.int64))
    print(f"\n{domain}\n{'':<20}{'TER':>16}{'BLEU':>16}{'converged':>12}")
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
    row("oracle", [(headroom(test, metric=m).oracle.value for m in ("ter", "bleu"))], "")


def row(name: str, found: list, converged: str) -> None:
    """Print the mean and twice the standard deviation of TER and BLEU."""
    table = np.array([list(values) for values in found])
    mean, spread = table.mean(axis=0), 2 * table.std(axis=0, ddof=1 if len(table) > 1 else 0)
    cells = [
        f"{m:.2f} ± {s:.2f}" if len(table) > 1 else f"{m:.2f}"
        for m, s in zip(mean, spread, strict=True)
    ]
    print(f"{name:<20}{cells[0]:>16}{cells[1]:>16}{converged:>12}", flush=True)


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
