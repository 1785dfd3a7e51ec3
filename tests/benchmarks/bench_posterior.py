"""Effective draws per second of the samplers, beside NumPyro's NUTS as it comes.

    python tests/benchmarks/bench_posterior.py [--pool NAME] [--sentences 100 1000] [--seed S]

All sides sample the same posterior (the same model on the same table, float64 sums), in one
process. Compilation is left out of the rates: ours is measured on a second run; NumPyro's MCMC
compiles at every run, so that a run of one draw is subtracted. The rate is that of the weight
that mixes worst, the smaller of bulk and tail ESS (for importance samples that of the weights),
over all other seconds, warm-up and search for the mode included.
"""

from __future__ import annotations

import argparse
from functools import partial

import jax
import numpy as np
from measuring import Timed, canonical, clock, drawn, lists, timed
from numpyro.infer import MCMC, NUTS

import bpa_ppl as bpa
from bpa_ppl.models import Isotropic
from bpa_ppl.posterior.statistics import ess
from bpa_ppl.sampling import target_of
from bpa_ppl.weights import match

SAMPLERS = ("rwm-isotropic", "rwm", "nuts", "imh", "laplace")


def baseline(pool: bpa.NBest, oracle: bpa.Oracles, seed: int) -> Timed:
    """Time NumPyro's NUTS at its defaults: one chain, because its chains run one by one."""
    with jax.enable_x64(True):
        matched = match(canonical(), pool)
        prior = Isotropic().build(matched)
        target = target_of(pool, matched, prior, oracle=oracle.index)

        def run(warmup: int, draws: int) -> np.ndarray:
            kernel = NUTS(target.program)
            mcmc = MCMC(kernel, num_warmup=warmup, num_samples=draws, progress_bar=False)
            mcmc.run(jax.random.key(seed), *target.data)
            return np.asarray(mcmc.get_samples(group_by_chain=True)["weights"])

        run(0, 1)  # what is compiled once a process
        compiling, _ = clock(lambda: run(1, 1))
        whole, draws = clock(lambda: run(500, 1000))
    return Timed(whole - compiling, compiling, draws)


def ours(pool: bpa.NBest, oracle: bpa.Oracles, seed: int, sampler: str) -> object:
    """Draw with one of our samplers."""
    return bpa.adapt(
        pool, canonical(), sampler=sampler, likelihood="oracle", oracle=oracle, seed=seed
    )


def effective(draws: object) -> float:
    """Return the smaller of bulk and tail ESS of the weight that mixes worst."""
    if isinstance(draws, np.ndarray):
        return worst(draws)
    if "sample_stats" in draws and "log_weight" in draws["sample_stats"]:
        log_weight = draws["sample_stats"]["log_weight"].values.reshape(-1)
        weight = np.exp(log_weight - log_weight.max())
        return float(weight.sum() ** 2 / (weight**2).sum())
    return worst(draws["posterior"]["weights"].values)


def worst(weights: np.ndarray) -> float:
    """Return the smaller of bulk and tail ESS of the column that mixes worst."""
    return min(float(ess(weights, method).min()) for method in ("bulk", "tail"))


def row(name: str, run: Timed, reference: float | None) -> float:
    """Print one line and return its rate."""
    ess = effective(run.result)
    rate = ess / run.seconds
    ratio = f"{rate / reference:9.1f}×" if reference else f"{'1×':>10}"
    print(f"{name:<26}{run.first:>10.1f}{run.seconds:>10.2f}{ess:>10.0f}{rate:>10.1f}{ratio}")
    return rate


def compare(pool: bpa.NBest, sentences: int, seed: int, samplers: list[str]) -> None:
    """Time every side on the same sentences and print the table."""
    sample = drawn(pool, sentences, seed)
    oracle = bpa.oracles(sample)
    hypotheses, features = sample.features.shape
    print(f"\n|A| = {sentences}, {hypotheses} hypotheses, {features} features")
    print(f"{'':<26}{'compile s':>10}{'seconds':>10}{'ESS':>10}{'ESS/s':>10}{'ratio':>10}")
    rate = row("NumPyro NUTS, 1 chain", baseline(sample, oracle, seed), None)
    for name in samplers:
        row(name, timed(partial(ours, sample, oracle, seed, name)), rate)


def main() -> None:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pool", default="medical")
    parser.add_argument("--sentences", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samplers", nargs="+", default=list(SAMPLERS))
    options = parser.parse_args()
    pool = lists(options.pool, "adapt")
    for sentences in options.sentences:
        compare(pool, sentences, options.seed, options.samplers)


if __name__ == "__main__":
    main()
