"""Active learning: choosing sentences to translate by expected information, or at random.

    python tests/benchmarks/bench_next.py [--domains NAME ...] [--likelihood margin] [--draws 10]

Each draw starts with 10 random sentences of a pool of 500 (seeds 0, 1, ..., the same for both rows)
and asks for 10 more at a time, up to 100, with the posterior of those before; sentences are added
one at a time (`Sequential`). A cell has the test TER of the posterior mean ± two standard
deviations over the draws / BLEU / length ratio, and the words of all requested references.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from measuring import (
    DOMAINS,
    Table,
    Task,
    canonical,
    cell,
    domain_task,
    parse_options,
    summary,
)

import bpa_ppl as bpa
from bpa_ppl.arrays import Float64
from bpa_ppl.models import Likelihood, Margin, Oracle
from bpa_ppl.sampling import Sequential
from bpa_ppl.sampling.laplace import Laplace

STEP, SIZES = 10, (20, 50, 100)
SAMPLER = Laplace(draws=1000)
LIKELIHOODS = {"margin": Margin(gamma=2.0), "published": Oracle()}


def learning_curve(task: Task, way: str, likelihood: Likelihood, seed: int) -> list[Float64]:
    """Return TER, BLEU, length ratio and requested words, at each size, of one draw."""
    pool, rng, curve = task.pool, np.random.default_rng(seed), []
    selected = rng.permutation(len(pool))[:STEP].tolist()
    first = pool.select(selected)
    settings = {"sampler": SAMPLER, "seed": seed}
    posterior = bpa.adapt(first, canonical(), likelihood=likelihood, metric="ter_gain", **settings)
    sequential = Sequential(posterior, adaptation_lists=first, **settings)
    while len(selected) < max(SIZES):
        left = np.setdiff1d(np.arange(len(pool)), selected)
        if way == "random":
            order = rng.permutation(len(left))
        else:
            order = bpa.next_sentences(
                pool.select(left), sequential.draws(), draws=128, unchecked=True
            ).ranking
        chosen = left[order[:STEP]].tolist()
        for sentence in chosen:
            sequential.add(pool[sentence])
        selected += chosen
        if len(selected) in SIZES:
            words = sum(len(pool.references[sentence][0].split()) for sentence in selected)
            scores = task.scores(sequential.draws().at_point("mean"))
            curve.append(np.array([*scores, words]))
    return curve


def study(domain: str, options: Any) -> None:
    """Print the table of one domain."""
    task = domain_task(domain)
    # The gains are a column, so that they are computed once.
    task = task._replace(pool=task.pool.with_extras(ter_gain=bpa.gains(task.pool)))
    table = Table(f"{domain}, {options.likelihood}", *(f"|A| = {n}" for n in SIZES), width=43)
    for way in ("random", "information"):
        seeds, likelihood = range(options.draws), LIKELIHOODS[options.likelihood]
        curves = np.array([learning_curve(task, way, likelihood, seed) for seed in seeds])
        table.row(
            way,
            *(
                f"{cell(summary([scores[:, :3]]))}, {scores[:, 3].mean():.0f} words"
                for scores in curves.swapaxes(0, 1)
            ),
        )


if __name__ == "__main__":
    options = parse_options(__doc__, domains=DOMAINS, likelihood="margin", draws=10)
    for domain in options.domains:
        study(domain, options)
