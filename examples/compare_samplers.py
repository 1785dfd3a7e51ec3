"""Compare samplers on the same adaptation: do they agree, and what does a good draw cost?

Run it from anywhere: `python examples/compare_samplers.py`.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from time import perf_counter

import arviz as az
import numpy as np

import bpa_ppl as bpa

SENTENCES = 30
SAMPLERS = ("imh", "rwm", "heuristic")


def main() -> None:
    """Adapt with each sampler and two seeds, and print one line of numbers for each."""
    with as_file(files("bpa_ppl.demo_data")) as data:
        pool = bpa.read_nbest(data / "leaflet.nbest100.gz", references=data / "leaflet.ref")
        prior = bpa.read_weights(data / "moses.ini")
    adaptation = pool.select(np.arange(SENTENCES))
    oracles = bpa.oracles(adaptation)  # found once, for all samplers

    print(f"{'sampler':<10} {'verdict':<13} {'seconds':>7} {'ESS':>5}   LM0 by two seeds")
    for sampler in SAMPLERS:
        first = bpa.adapt(adaptation, prior, sampler=sampler, oracle=oracles, seed=1)
        # The first run compiles the sampler; the second is the one to be timed.
        start = perf_counter()
        second = bpa.adapt(adaptation, prior, sampler=sampler, oracle=oracles, seed=2)
        seconds = perf_counter() - start
        report = bpa.check(second)
        verdict = "converged" if report else "NOT converged"
        means = "  ".join(f"{bpa.point_weights(p)['LM0']:.3f}" for p in (first, second))
        print(f"{sampler:<10} {verdict:<13} {seconds:7.2f} {_ess(second):5.0f}   {means}")
        for finding in report.failures:
            print(f"    {finding.advice}")


def _ess(posterior: az.InferenceData) -> float:
    """Return the effective sample size: of the weights of a weighted sample, else the smallest."""
    if "log_weight" in posterior["sample_stats"]:
        log_weight = posterior["sample_stats"]["log_weight"].values
        share = np.exp(log_weight - log_weight.max())
        return float(share.sum() ** 2 / (share**2).sum())
    return float(az.ess(posterior, var_names=["weights"])["weights"].min())


if __name__ == "__main__":
    main()
