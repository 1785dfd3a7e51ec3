"""Adding lists to a posterior without the old lists, compared with adapting to all of them.

    python benchmarks/bench_updates.py [--tables online] [--draws 3] [--kept 1000]
        [--collections medical]

The prior of the new lists is the Gaussian of the posterior of the old ones (`Prior.of`). Printed
are means over draws of lists: the shift of the means of the weights from those of the joint
posterior, in posterior standard deviations (root mean square, and largest), and the largest one
from the joint posterior with the prior of the first ten lists; and the share of test lists from
which the same candidate is chosen. `--kept` is the number of draws of each chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
from bench_judged import WMT23, read_halves
from measuring import Table, canonical, draw_lists, few, read_lists, run_tables
from scipy.special import logsumexp, softmax

import bpa_ppl as bpa
from bpa_ppl.adapting.adaptation import require_adaptation
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.models.likelihoods.oracle import Risk
from bpa_ppl.posterior.arviz_data import as_weight_draws
from bpa_ppl.posterior.draws import Draws

#: The leveraging factor of the table `online`.
DELTA = 50
STEP, LAST = 10, len(few(range(100), 30))
Adapt = Callable[..., Draws]


def moses(domain: str, kept: int) -> tuple[NBest, NBest, Adapt]:
    """Return lists to adapt to, lists to choose from, and `adapt` with canonical weights."""
    weights = canonical()

    def adapt(lists: NBest, prior: Any = "isotropic") -> Draws:
        return as_weight_draws(
            bpa.adapt(lists, weights, prior=prior, sampler=f"auto:draws={kept}", seed=1)
        )

    return read_lists(domain, "adapt"), read_lists(domain, "test"), adapt


def judged(kept: int) -> tuple[NBest, NBest, Adapt]:
    """Return judged lists, and `adapt` without canonical weights."""
    half = read_halves(WMT23[:1])[0]
    options: dict[str, Any] = {"gain": "gain", "seed": 1}
    # By default κ depends on the lists.
    whole = as_weight_draws(bpa.adapt(half.pool, None, sampler="map", likelihood="risk", **options))
    options["likelihood"] = Risk(kappa=whole.record.likelihood.settings["kappa"])

    def adapt(lists: NBest, prior: Any = "isotropic") -> Draws:
        return as_weight_draws(
            bpa.adapt(lists, None, prior=prior, sampler=f"auto:draws={kept}", **options)
        )

    return half.pool, half.test, adapt


def updates(first: Draws, parts: list[NBest], adapt: Adapt) -> Iterator[Draws]:
    """Yield the posterior after each part but the first, whose posterior is given."""
    posterior = first
    for part in parts[1:]:
        posterior = adapt(part, bpa.Prior.of(posterior, unchecked=True))
        yield posterior


def updated(options: Any) -> None:
    """Print the shifts from the joint posterior."""
    columns = ("shift", "largest", "same prior", "same choice")
    table = Table(f"{options.draws} draws of lists, {options.kept} kept", *columns)
    for name in options.collections:
        kept = options.kept
        pool, test, adapt = judged(kept) if name == "judged" else moses(name, kept)
        last = min(LAST, len(pool) // STEP * STEP)
        rows: dict[int, list[tuple[float, ...]]] = {2 * STEP: [], last: []}
        for seed in range(options.draws):
            lists = draw_lists(pool, last, seed)
            parts = [lists[np.arange(k, k + STEP)] for k in range(0, last, STEP)]
            first = adapt(parts[0])
            for count, updated in enumerate(updates(first, parts, adapt), start=2):
                if count * STEP not in rows:
                    continue
                joint = adapt(lists[np.arange(count * STEP)])
                shift = (updated.mean - joint.mean) / joint.deviation
                # Without canonical weights, the prior depends on the lists.
                prior = bpa.Prior.recorded(first, unchecked=True)
                same = adapt(lists[np.arange(count * STEP)], prior)
                at_prior = np.abs((updated.mean - same.mean) / same.deviation).max()
                chosen = [bpa.rerank(test, one, unchecked=True).choice for one in (updated, joint)]
                rows[count * STEP].append(
                    (
                        np.sqrt(np.mean(shift**2)),
                        np.abs(shift).max(),
                        at_prior,
                        np.mean(chosen[0] == chosen[1]),
                    )
                )
        for size, values in rows.items():
            steps = "10 → 20" if size == 2 * STEP else f"ten at a time to {last}"
            table.row(f"{name}, {steps}", *(f"{mean:.2f}" for mean in np.mean(values, axis=0)))


def online(options: Any) -> None:
    """Print the seconds of one list more, and the largest difference of importance weights."""
    weights, count, table = canonical(), len(few(range(500), 12)), Table("s", "one more", "all")
    heuristic: dict[str, Any] = {"sampler": f"heuristic:draws={options.kept},delta={DELTA}"}
    for domain in (name for name in options.collections if name != "judged"):
        lists = read_lists(domain, "adapt")[:count]
        target = bpa.log_density(lists, weights, likelihood="oracle", **heuristic)
        best = require_adaptation(target).observed.oracles.index
        sample = as_weight_draws(bpa.adapt(lists[:-1], weights, likelihood="oracle", **heuristic))

        vectors = sample.aligned(lists, sample.weights[0])
        start = perf_counter()
        features = lists.features[lists.rows(count - 1)] @ vectors.T
        log_p = features[best[-1]] - logsumexp(features, axis=0)
        log_weight = sample.draws.log_weight[0] + log_p / DELTA
        one_more = perf_counter() - start

        start = perf_counter()
        whole = as_weight_draws(bpa.adapt(lists, weights, likelihood="oracle", **heuristic))
        seconds = perf_counter() - start
        difference = np.abs(softmax(log_weight) - whole.importance.ravel()).max()
        label = f"{domain}, {count - 1} → {count} lists, weights differ by {difference:.0e}"
        table.row(label, f"{one_more:.4f}", f"{seconds:.2f}")


if __name__ == "__main__":
    run_tables(
        __doc__,
        (updated, online),
        draws=3,
        kept=1000,
        collections=("medical", "captions", "judged"),
    )
