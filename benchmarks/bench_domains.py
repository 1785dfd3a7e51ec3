"""Test TER, BLEU and length after adaptation with each sampler.

    python benchmarks/bench_domains.py [--sentences 50] [--draws 5] [--domains NAME ...]

Each draw has its own adaptation sentences (seeds 0, 1, ..., with replacement, the same for every
row); `rerank` chooses from the 500-best lists of 500 test sentences, with the published likelihood.
A cell has the mean ± two standard deviations over the draws.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from measuring import DOMAINS, Table, canonical, draw, read_lists, run_tables

import bpa_ppl as bpa
from bpa_ppl.extending import oracles

#: Row of the table -> sampler and settings.
SAMPLERS: dict[str, dict[str, Any]] = {
    "heuristic, δ = 1": {"sampler": "heuristic"},
    "heuristic, δ = 50": {"sampler": "heuristic:delta=50"},
    **{name: {"sampler": name} for name in ("rwm-isotropic", "rwm", "imh", "nuts", "map")},
}


def cells(outputs: Iterable[list[str]], references: Any) -> list[str]:
    """Format TER, BLEU and length ratio of the outputs of all draws."""
    scores = []
    for texts in outputs:
        ter, bleu = (bpa.corpus_score(texts, references, metric) for metric in ("ter", "bleu"))
        scores.append((ter.value, bleu.value, float(bleu.details["length_ratio"])))
    mean, spread = np.mean(scores, axis=0), 2 * np.std(scores, axis=0, ddof=min(1, len(scores) - 1))
    return [f"{m:.{d}f} ± {s:.{d}f}" for m, s, d in zip(mean, spread, (2, 2, 3), strict=True)]


def samplers(options: Any) -> None:
    """Print a table for each domain."""
    for domain in options.domains:
        pool, test = read_lists(domain, "adapt"), read_lists(domain, "test")
        table = Table(domain, "TER", "BLEU", "length", "passed", width=18)
        baseline = test.chosen(np.zeros(len(test), np.int64))
        table.row("canonical", *cells([baseline], test.references))
        samples = [draw(pool, options.sentences, seed) for seed in range(options.draws)]
        chosen = [oracles(sample) for sample in samples]
        for name, settings in SAMPLERS.items():
            posteriors = [
                bpa.adapt(
                    sample, canonical(), likelihood="oracle", gain=oracle, seed=seed, **settings
                )
                for seed, (sample, oracle) in enumerate(zip(samples, chosen, strict=True))
            ]
            outputs = [bpa.rerank(test, one, unchecked=True).texts for one in posteriors]
            passed = sum(bool(bpa.check(posterior)) for posterior in posteriors)
            table.row(name, *cells(outputs, test.references), f"{passed} of {options.draws}")
        for metric in ("ter", "bleu"):
            oracle_texts = test.chosen(oracles(test, metric).index)
            table.row(f"oracle, {metric}", *cells([oracle_texts], test.references))


if __name__ == "__main__":
    run_tables(__doc__, (samplers,), sentences=50, draws=5, domains=DOMAINS)
