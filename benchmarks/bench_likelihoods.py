"""Test TER, BLEU and length with each likelihood.

    python benchmarks/bench_likelihoods.py [--draws 10] [--sizes N ...] [--domains NAME ...]

The margin is shown with TER and with chrF as the gain. Each draw has its own adaptation sentences
(seeds 0, 1, ..., with replacement, the same for every row). The posterior mode chooses from the
500-best lists of 500 test sentences. A cell has the mean TER ± two standard deviations over the
draws / BLEU / length ratio, averaged over the domains.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from measuring import DOMAINS, ScoreTable, domain_task, run_tables

from bpa_ppl.models.likelihoods.oracle import Risk

ROWS: dict[str, dict[str, Any]] = {
    "oracle, as published": {"likelihood": "oracle"},
    "margin, γ = 2, the default": {"likelihood": "margin"},
    "margin, gain chrf": {"likelihood": "margin", "gain": "chrf"},
    "risk, κ = 4": {"likelihood": Risk(kappa=4.0)},
}


def scores(options: Any) -> None:
    """Print the scores with each likelihood."""
    table = ScoreTable("likelihood", options.sizes, options.draws)
    for name, settings in ROWS.items():
        table.add(name, *(partial(domain_task(d).score_draw, **settings) for d in options.domains))


if __name__ == "__main__":
    run_tables(__doc__, (scores,), draws=10, sizes=(10, 100, 500), domains=DOMAINS)
