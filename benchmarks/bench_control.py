"""How much of the gain over λ_T is due to the domain: adaptation without any list of it.

    python benchmarks/bench_control.py [--draws 10] [--seeds 5] [--domains NAME ...]

λ_T was tuned to BLEU on 400 lists of its own domain (D), but the tables report TER. So adaptation
changes both the domain and the metric. Here the same methods learn from D, which changes only the
metric: from all of D, from samples of D, and from D together with lists of the domain. The
posterior mode, or the weights of MERT tuned to TER, choose from the 500-best lists of 500 test
sentences of each domain. Each cell has the mean over the domains: TER ± two standard deviations
over the draws (for MERT, over the seeds) / BLEU / length ratio.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from measuring import (
    DOMAINS,
    Table,
    canonical,
    cell,
    domain_task,
    draw,
    read_lists,
    run_tables,
    summary,
)

import bpa_ppl as bpa
from bpa_ppl.extras.tuning.reestimation import reestimate
from bpa_ppl.lists.nbest import NBest

#: From a domain, a number of lists and a seed to weights.
Weights = Callable[[str, int, int], Mapping[str, float]]


@cache
def development() -> NBest:
    """Return the lists that λ_T was tuned on."""
    return read_lists("out-of-domain", "dev")


def own(size: int, seed: int) -> NBest:
    """Return a sample of D, or all of it."""
    return development() if size == len(development()) else draw(development(), size, seed)


def adapted(lists: NBest, likelihood: str) -> Mapping[str, float]:
    """Return the mode of a posterior."""
    options = {"sampler": "map", "likelihood": likelihood}
    return bpa.point_weights(bpa.adapt(lists, canonical(), **options), unchecked=True)


@cache
def of_development(size: int, seed: int, likelihood: str) -> Mapping[str, float]:
    """Return weights adapted to D, the same for all domains."""
    return adapted(own(size, seed), likelihood)


@cache
def tuned(size: int, seed: int) -> Mapping[str, float]:
    """Return the weights of MERT tuned to TER on D."""
    lists = own(size, seed)
    return reestimate(lists, canonical(), gain="ter", seed=seed).weights


def joined(domain: str, size: int, seed: int) -> Mapping[str, float]:
    """Return weights adapted to D and to lists of the domain."""
    sample = draw(domain_task(domain).pool, size, seed)
    return adapted(bpa.concatenate([sample, development()], renumber=True), "margin")


def control(options: Any) -> None:
    """Print the scores by the number of lists."""
    total, columns = len(development()), ("no list", "10 lists", "100 lists", "400 lists")
    table = Table(" and ".join(options.domains), *columns, width=31)

    def row(name: str, weights: Weights, draws: Mapping[int, int]) -> None:
        """Print the scores by the number of lists; `draws` has the number of draws of each."""
        cells = []
        for size in (0, 10, 100, total):
            scores = [
                [domain_task(d).scores(weights(d, size, seed)) for seed in range(draws[size])]
                for d in options.domains
                if size in draws
            ]
            cells.append(cell(summary(np.array(scores))) if scores else "")
        table.row(name, *cells)

    samples = dict.fromkeys((10, 100), options.draws)
    row("λ_T", lambda *_: canonical(), {0: 1})
    for likelihood in ("oracle", "margin"):
        row(
            f"{likelihood}, lists of D",
            lambda _, size, seed, likelihood=likelihood: of_development(size, seed, likelihood),
            {**samples, total: 1},
        )
    row("mert (TER), lists of D", lambda _, *place: tuned(*place), {total: options.seeds})
    row(
        "margin, lists of the domain",
        lambda d, *place: adapted(draw(domain_task(d).pool, *place), "margin"),
        samples,
    )
    row("margin, D and lists of the domain", joined, samples)


if __name__ == "__main__":
    run_tables(__doc__, (control,), draws=10, seeds=5, domains=DOMAINS)
