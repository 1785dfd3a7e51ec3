"""Adaptation compared with MIRA tuned to TER, by the number of adaptation sentences.

    python benchmarks/bench_opponents.py [--draws 10] [--sizes N ...] [--domains NAME ...]

Each draw has its own adaptation sentences (seeds 0, 1, ..., with replacement, the same for every
row). The weights of MIRA, or the posterior mode, choose from the 500-best lists of 500 test
sentences. The learned prior uses 100 sentences of each of the two other domains. A cell has the
mean TER ± two standard deviations over the draws / BLEU / length ratio.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from bench_learned_priors import Learning
from measuring import DOMAINS, ScoreTable, canonical, domain_task, draw, run_tables

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.extras.studies.tuning.reestimation import reestimate


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


if __name__ == "__main__":
    sizes = (10, 20, 50, 100, 200, 500)
    run_tables(__doc__, (scores,), draws=10, sizes=sizes, domains=DOMAINS)
