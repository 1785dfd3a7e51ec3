"""Calibration in simulations: kernels and guides of NumPyro, and the intervals of `pairs`.

    python tests/benchmarks/bench_calibration.py [--tables samplers|pairs]
        [--replications 200] [--samplers NAME,NAME]

samplers: weights are drawn from the prior and oracles from the model, on random lists of 5
hypotheses with 3 features. Ranks of the true weights, and of their log-likelihood, among the draws
of an exact sampler are uniform: the smallest adjusted p-value is below 1% for one exact sampler in
a hundred.

pairs: the share of 50% and 90% intervals that have the true weight, for exponents c of the
composite likelihood; with k / 2 all pairs of a list count as independent. Gains are scores plus
Gumbel noise (a Plackett-Luce ranking) or normal noise; weights are drawn from the prior N(0, s² I).
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Table, run_tables

from bpa_ppl import NBest
from bpa_ppl.experiments.samplers import calibrate_sampler

sys.path.append(str(Path(__file__).resolve().parents[1] / "models"))

from pair_coverage import coverage

SENTENCES, HYPOTHESES, NAMES = 20, 5, ("LM0", "TM0", "WP0")
SETTINGS: dict[str, dict[str, Any]] = {
    "imh": {"draws": 250},
    "numpyro:NUTS": {"draws": 250, "warmup": 300},
    "numpyro:HMC": {"draws": 250, "warmup": 300, "trajectory_length": 1.5},
    "numpyro:BarkerMH": {"draws": 250, "warmup": 300, "thinning": 5},
    "numpyro:AIES": {"draws": 250, "warmup": 100, "thinning": 10},
    "numpyro:ESS": {"draws": 250, "warmup": 100, "thinning": 2},
    "numpyro:SA": {"draws": 250, "warmup": 300, "thinning": 5},
    "svi:AutoMultivariateNormal": {"draws": 1000, "steps": 500},
    "svi:AutoLaplaceApproximation": {"draws": 1000, "steps": 500, "particles": 1},
}
EXPONENTS = (0.5, 1.0, 1.25, 1.5, 2.0, None)


def samplers(options: argparse.Namespace) -> None:
    """Print the smallest p-value of each sampler."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(SENTENCES, HYPOTHESES, len(NAMES)))
    texts = [[f"{s} {h}" for h in range(HYPOTHESES)] for s in range(SENTENCES)]
    lists = NBest.from_lists(texts, list(features), NAMES)
    title = f"{options.replications} replications"
    table = Table(title, "smallest p", "smallest ESS", "calibrated", "seconds")
    for name in options.samplers.split(","):
        start = time.perf_counter()
        result = calibrate_sampler(
            lists,
            dict.fromkeys(NAMES, 0.0),
            name,
            prior_variance=1.0,
            replications=options.replications,
            **SETTINGS[name],
        )
        verdict = "yes" if result else "NO"
        seconds = time.perf_counter() - start
        table.row(
            name, f"{min(result.p_values):.3f}", f"{result.ess:.0f}", verdict, f"{seconds:.0f}"
        )


def pairs(options: argparse.Namespace) -> None:
    """Print the coverage of intervals under `pairs`."""
    count = options.replications
    table = Table(f"{count} data sets: 50% / 90% with c =", *(str(c or "k / 2") for c in EXPONENTS))
    for graded, scale, size, lists in product((False, True), (0.3, 1.0), (5, 15), (20, 50)):
        cells = []
        for exponent in EXPONENTS:
            rng = np.random.default_rng(0)
            settings = {"size": size, "lists": lists, "graded": graded, "scale": scale}
            half, ninety = 100 * coverage(rng, exponent or size / 2, count=count, **settings)
            cells.append(f"{half:.0f} / {ninety:.0f}")
        noise = "normal" if graded else "Gumbel"
        table.row(f"{noise}, s = {scale}, {lists} lists of {size}", *cells)


if __name__ == "__main__":
    names = ",".join(SETTINGS)
    tables = {"samplers": samplers, "pairs": pairs}
    run_tables(__doc__, tables, needs_data=False, replications=200, samplers=names)
