"""Sequential updates with single sentences, compared with adapting again to all of them.

    python tests/benchmarks/bench_updating.py [--domains captions ...] [--draws 3]

Each draw starts with 10 sentences of a domain and adds 100 others one at a time. After 10, 40 and
100 of them it is compared with a posterior adapted to all at once: the root mean square difference
of the means, in posterior standard deviations; the mean ratio of the standard deviations; test TER,
BLEU and length ratio. `starting over` has another seed and shows the Monte Carlo error; `exact` has
the lists of the first 10 sentences, `Gaussian` only their posterior. Then the times per sentence.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Any

import numpy as np
from measuring import Table, Task, best_time, domain_task, parse_options

import bpa_ppl as bpa
from bpa_ppl import Draws, NBest
from bpa_ppl.sampling import Sequential

FIRST, STOPS = 10, (10, 40, 100)


def adapt(task: Task, sample: NBest, seed: int) -> Draws:
    """Return the posterior of all sentences at once."""
    return bpa.as_draws(task.adapt(sample, sampler="imh", likelihood="margin", seed=seed))


def compare(task: Task, draws: Draws, exact: Draws) -> list[float]:
    """Return the difference of the means, the ratio of the deviations, and the test scores."""
    shift = (draws.mean - exact.mean) / exact.deviation
    ratio = np.mean(draws.deviation / exact.deviation)
    return [np.sqrt(np.mean(shift**2)), ratio, *task.scores(draws.at_point("mean"))]


def study(domain: str, draws: int) -> None:
    """Print the tables of one domain."""
    task = domain_task(domain)
    results: dict[str, list[Any]] = {"starting over": [], "exact": [], "Gaussian": []}
    seconds: dict[str, list[float]] = {"starting over": [], "reweighting": [], "new draws": []}
    for seed in range(draws):
        order = np.random.default_rng(seed).permutation(len(task.pool))[: FIRST + max(STOPS)]
        first = task.pool.select(order[:FIRST])
        updates = {
            name: Sequential(adapt(task, first, seed), adaptation_lists=lists, seed=seed)
            for name, lists in (("exact", first), ("Gaussian", None))
        }
        rows: dict[str, list[Any]] = {name: [] for name in results}
        for begin, stop in zip((0, *STOPS), STOPS, strict=False):
            sample = task.pool.select(order[: FIRST + stop])
            exact = adapt(task, sample, 1000 + seed)
            again = best_time(partial(adapt, task, sample, 2000 + seed))
            seconds["starting over"].append(again.seconds)
            rows["starting over"].append(compare(task, again.result, exact))
            for name, sequential in updates.items():
                for sentence in task.pool.select(order[FIRST + begin : FIRST + stop]):
                    time = best_time(partial(sequential.add, sentence)).seconds
                    kind = "new draws" if sequential.steps[-1].afresh else "reweighting"
                    seconds[kind].append(time)
                rows[name].append(compare(task, sequential.draws(), exact))
        for name, values in rows.items():
            results[name].append(values)
    table = Table(domain, *(f"{FIRST} + {stop}" for stop in STOPS), width=42)
    for name, values in results.items():
        table.row(
            name,
            *(
                f"{shift:.3f} sd, × {ratio:.3f}, {ter:.2f} / {bleu:.1f} / {length:.3f}"
                for shift, ratio, ter, bleu, length in np.mean(values, axis=0)
            ),
        )
    table = Table("one sentence", "milliseconds", "share of starting over", "steps per 100")
    for name, times in seconds.items():
        share = median(times) / median(seconds["starting over"])
        steps = "" if name == "starting over" else len(times) / len(updates) / draws
        table.row(name, f"{1e3 * median(times):.1f}", f"{share:.3f}", steps)


if __name__ == "__main__":
    options = parse_options(__doc__, domains=("captions",), draws=3)
    for domain in options.domains:
        study(domain, options.draws)
