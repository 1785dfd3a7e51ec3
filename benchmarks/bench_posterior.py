"""Effective draws per second of the samplers, compared with nutpie and NumPyro's NUTS.

    python benchmarks/bench_posterior.py [--sentences 100 1000] [--samplers NAME ...]
        [--against NAME ...] [--repeats 1]

All sample the same posterior: the same lists, published likelihood and prior, with sums in float64;
the script asserts that the densities are equal. The time is that of the whole call, from lists and
oracles to draws in ArviZ's format. The samplers take turns, `--repeats` times: all of bpa_ppl after
each of the others. `first s` is the first call, which compiles; the other times are medians of the
later calls. Rates are for the bulk ESS of the weight that mixes worst (Kish's ESS for importance
samples); ratios by CPU time are in brackets, for busy machines.

`nutpie` is NUTS in Rust with a low-rank metric, 4 × (500 + 1000) draws on two cores, with the log
density and gradient of bpa_ppl. `numpyro` is its NUTS with its defaults, one chain of 500 + 1000;
it compiles in each call, so the time of a call with one draw is subtracted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from measuring import Table, best_time, canonical, draw, read_lists, run_tables
from numpyro.infer import MCMC, NUTS

import bpa_ppl as bpa
from bpa_ppl.densities.target import Target
from bpa_ppl.extending import Oracles, oracles
from bpa_ppl.posterior.draws import importance_weights, kish
from bpa_ppl.posterior.statistics import ess

SEED = 1
SAMPLERS = ("rwm-isotropic", "rwm", "nuts", "imh", "laplace")


class Sample(NamedTuple):
    """Adaptation sentences and their oracles."""

    nbest: bpa.NBest
    oracle: Oracles


class Result(NamedTuple):
    """Draws of the weights (C, D, Q), log weights, log densities, and seconds to subtract."""

    weights: np.ndarray
    log_weight: np.ndarray | None = None
    log_density: np.ndarray | None = None
    overhead: float = 0.0


class Run(NamedTuple):
    """Wall-clock and CPU seconds of one call, and its draws."""

    seconds: float
    cpu: float
    result: Result


def target(sample: Sample) -> Target:
    """Return the posterior that the other packages sample."""
    return bpa.log_density(sample.nbest, canonical(), likelihood="oracle", gain=sample.oracle)


def run_adapt(sample: Sample, sampler: str) -> Result:
    """Sample with `adapt`."""
    options = {"sampler": sampler, "likelihood": "oracle", "gain": sample.oracle, "seed": SEED}
    posterior = bpa.adapt(sample.nbest, canonical(), **options)
    statistics = posterior["sample_stats"]
    log_weight = statistics["log_weight"].values if "log_weight" in statistics else None
    return Result(posterior["posterior"]["weights"].values, log_weight, statistics["lp"].values)


def run_numpyro(sample: Sample) -> Result:
    """Sample with NumPyro's NUTS and its defaults."""
    with jax.enable_x64(True):
        posterior = target(sample)

        def run(warmup: int, draws: int) -> np.ndarray:
            kernel = NUTS(posterior.program)
            mcmc = MCMC(kernel, num_warmup=warmup, num_samples=draws, progress_bar=False)
            mcmc.run(jax.random.key(SEED), *posterior.data)
            return np.asarray(mcmc.get_samples(group_by_chain=True)["weights"])

        compilation = best_time(lambda: run(1, 1)).seconds
        return Result(run(500, 1000), overhead=2 * compilation)


value_and_gradient = jax.jit(lambda density, x: jax.value_and_grad(lambda x: density(x))(x))


def run_nutpie(sample: Sample) -> Result:
    """Sample with nutpie, from the prior mean as `adapt` does."""
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    with jax.enable_x64(True):
        posterior = target(sample)
        start = np.asarray(ravel_pytree(posterior.start)[0])

        def log_density(x: np.ndarray) -> tuple[float, np.ndarray]:
            with jax.enable_x64(True):  # a setting of each thread
                value, gradient = value_and_gradient(posterior, x)
                return float(value), np.asarray(gradient)

        model = from_pyfunc(
            len(start),
            lambda: log_density,
            lambda *_: lambda x: {"weights": np.asarray(x)},
            ["float64"],
            [start.shape],
            ["weights"],
            make_initial_point_fn=lambda seed: start,
        )
        draws = nutpie.sample(
            model,
            draws=1000,
            tune=500,
            chains=4,
            cores=2,
            seed=SEED,
            progress_bar=False,
            low_rank_modified_mass_matrix=True,
        )
    return Result(draws["posterior"]["weights"].values)


#: The other packages.
OTHERS: dict[str, Callable[[Sample], Result]] = {
    "numpyro": run_numpyro,
    "nutpie": run_nutpie,
}


def assert_equal_densities(sample: Sample) -> None:
    """Raise if the densities of the other packages are not `lp` of `adapt`."""
    result = run_adapt(sample, "imh")
    weights, expected = result.weights[0, ::100], result.log_density[0, ::100]
    with jax.enable_x64(True):
        posterior = target(sample)
        values = np.array([value_and_gradient(posterior, x)[0] for x in weights])
        np.testing.assert_allclose(values, expected, rtol=1e-6, atol=0)


def effective_size(result: Result, method: str) -> float:
    """Return the ESS of the weight that mixes worst, or Kish's of importance samples."""
    if result.log_weight is not None:
        return kish(importance_weights(result.log_weight))
    return float(ess(result.weights, method).min())


def time_call(call: Callable[[], Result]) -> Run:
    """Time one call, without its overhead."""
    seconds, cpu, result = best_time(call)
    return Run(seconds - result.overhead, cpu - result.overhead, result)


def compare(sample: Sample, others: list[str], samplers: list[str], repeats: int) -> None:
    """Run all samplers in turn and print the table."""
    calls = {name: partial(OTHERS[name], sample) for name in others}
    calls |= {name: partial(run_adapt, sample, name) for name in samplers}
    runs: dict[str, list[Run]] = {name: [] for name in calls}
    for name in samplers:
        runs[name].append(time_call(calls[name]))  # compiles
    for _ in range(repeats):
        for turn in [[other, *samplers] for other in others] or [samplers]:
            for name in turn:
                runs[name].append(time_call(calls[name]))
    title = f"|A| = {len(sample.nbest)}, {len(sample.nbest.features)} candidates"
    columns = ("first s", "s", "CPU s", "bulk", "tail", "ESS/s", *(f"of {o} (CPU)" for o in others))
    table = Table(title, *columns)
    rates: list[tuple[float, float]] = []
    for name, calls_of_name in runs.items():
        later = sorted(calls_of_name[1:] or calls_of_name, key=lambda run: run.seconds)
        middle = later[len(later) // 2]
        cpu = sorted(run.cpu for run in later)[len(later) // 2]
        bulk, tail = (effective_size(middle.result, method) for method in ("bulk", "tail"))
        rate = bulk / middle.seconds, bulk / cpu
        rates.append(rate)
        ratios = [f"{rate[0] / a:.1f}× ({rate[1] / b:.1f})" for a, b in rates[: len(others)]]
        table.row(
            name,
            calls_of_name[0].seconds,
            f"{middle.seconds:.3f}",
            f"{cpu:.3f}",
            *(f"{value:.0f}" for value in (bulk, tail, rate[0])),
            *ratios,
        )
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)


def samplers(options: Any) -> None:
    """Print a table for each number of sentences."""
    others = options.against
    if find_spec("nutpie") is None:
        print("nutpie is not installed: pip install nutpie")
        others = [name for name in others if name != "nutpie"]
    pool = read_lists("medical", "adapt")
    for sentences in options.sentences:
        nbest = draw(pool, sentences, SEED)
        sample = Sample(nbest, oracles(nbest))
        assert_equal_densities(sample)
        compare(sample, others, options.samplers, options.repeats)


if __name__ == "__main__":
    run_tables(
        __doc__,
        (samplers,),
        sentences=(100, 1000),
        samplers=SAMPLERS,
        against=tuple(OTHERS),
        repeats=1,
    )
