"""Simulation-based calibration of the kernels and guides of NumPyro.

    python tests/benchmarks/bench_calibration.py [--replications 200] [--samplers NAME,NAME]

Weights are drawn from the prior and oracles from the model, on random lists of 5 hypotheses with
3 features. Ranks of the true weights, and of their log-likelihood, among the draws of an exact
sampler are uniform: the smallest adjusted p-value is below 1% for one exact sampler in a hundred.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from measuring import Table, parse_options

from bpa_ppl import NBest
from bpa_ppl.experiments.samplers import calibrate_sampler

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


def main() -> None:
    """Print the smallest p-value of each sampler."""
    names = ",".join(SETTINGS)
    options = parse_options(__doc__, needs_data=False, replications=200, samplers=names)
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


if __name__ == "__main__":
    main()
