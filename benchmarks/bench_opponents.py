"""Adaptation compared with MIRA tuned to TER, by the number of adaptation sentences.

    python benchmarks/bench_opponents.py [--draws 10] [--sizes N ...] [--domains NAME ...]

Each draw has its own adaptation sentences (seeds 0, 1, ..., with replacement, the same for every
row). The weights of MIRA, or the posterior mode, choose from the 500-best lists of 500 test
sentences. The learned prior uses 100 sentences of each of the two other domains. A cell has the
mean TER ± two standard deviations over the draws / BLEU / length ratio.

`--tables original-tools` compares our tuners with Moses' programs, on the statistics that its
extractor wrote: the objective that each reaches on these lists, in percent, as a mean of five
seeds. Moses' `kbmira`, as it is built today, compares each candidate with itself; the table has the
repaired program.
"""

from __future__ import annotations

import gzip
import json
from functools import partial
from typing import Any

import numpy as np
from bench_learned_priors import Learning
from measuring import DATA, DOMAINS, ScoreTable, Table, canonical, domain_task, draw, run_tables

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.progress import no_report
from bpa_ppl.extras.tuning.reestimation import reestimate
from bpa_ppl.extras.tuning.tuner import TUNERS, TuningLists, TuningProblem
from bpa_ppl.gains.gains import resolve

#: What Moses' programs wrote, and reached. A tuner, the metric that it optimises, and its program.
TOOLS = DATA / "tools"
PROGRAMS = (
    ("mert", "bleu", "mert-BLEU"),
    ("mert", "ter", "mert-TER"),
    ("mira", "bleu", "kbmira"),
    ("pro", "bleu", "pro"),
)
SEEDS = 5


def mira(domain: str, size: int, seed: int) -> Float64:
    """Return the scores of weights that MIRA tuned to TER."""
    task = domain_task(domain)
    sample = draw(task.pool, size, seed)
    tuned = reestimate(sample, canonical(), tuner="mira", gain="ter", seed=seed)
    return task.scores(tuned.weights)


def scores(options: Any) -> None:
    """Print a table for each domain."""
    published, margin = (
        Learning(lambda domain, seed: domain_task(domain), likelihood=name)
        for name in ("oracle", "margin")
    )
    for domain in options.domains:
        table = ScoreTable(domain, options.sizes, options.draws)
        table.add("published", partial(published.score_draw, domain, None))
        table.add("mira (TER)", partial(mira, domain))
        table.add("margin", partial(margin.score_draw, domain, None))
        table.add("margin, learned prior", partial(margin.score_draw, domain, {}))


def original_tools(options: Any) -> None:
    """Print what our tuners reach, and what the original programs reached."""
    start = np.array((TOOLS / "init.txt").read_text().split(), float)
    results = json.loads((TOOLS / "results.json").read_text())
    table = Table("tuner, metric", "the original program", "ours")
    for name, metric, program in PROGRAMS:
        lists = read_statistics(metric)
        problems = [
            TuningProblem(lists, resolve(metric), start, seed, no_report)
            for seed in range(min(options.draws, SEEDS))
        ]
        ours = np.mean([abs(p.gain(TUNERS[name]().tune(p).weights)) for p in problems])
        theirs = np.mean([run[f"dev_{metric}"] for run in results[program]])
        table.row(f"{name}, {metric.upper()}", f"{theirs:.2f}", f"{ours:.2f}")


def read_statistics(metric: str) -> TuningLists:
    """Return the features and the counts of a metric that the extractor of Moses wrote."""
    features, scores = (read_blocks(f"{kind}-{metric}.txt.gz") for kind in ("features", "scores"))
    counts = np.concatenate(scores)
    # BLEU: match, total, match, total, …, reference length. TER: hundredths of edits and words.
    counts = counts[:, [0, 2, 4, 6, 1, 3, 5, 7, 8]] if metric == "bleu" else counts[:, :2] / 100
    offsets = np.cumsum([0, *map(len, features)])
    return TuningLists(offsets, np.concatenate(features), np.zeros(len(counts)), counts)


def read_blocks(name: str) -> list[Float64]:
    """Return the tables of numbers of a file, one for each list."""
    blocks: list[list[list[float]]] = []
    for line in gzip.decompress((TOOLS / name).read_bytes()).decode().splitlines():
        if "_TXT_BEGIN_" in line:
            blocks.append([])
        elif "_TXT_END_" not in line:
            blocks[-1].append([float(word) for word in line.split()])
    return [np.array(block) for block in blocks]


if __name__ == "__main__":
    sizes = (10, 20, 50, 100, 200, 500)
    run_tables(__doc__, (scores, original_tools), draws=10, sizes=sizes, domains=DOMAINS)
