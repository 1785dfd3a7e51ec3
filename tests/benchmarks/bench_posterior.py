"""Effective draws a second of the samplers, beside nutpie and NumPyro's NUTS as they come.

    python tests/benchmarks/bench_posterior.py [--pool NAME] [--sentences 100 1000] [--seed S]
        [--samplers NAME …] [--against NAME …] [--repeats N]

All sides sample the same posterior: the same lists, likelihood and prior, sums in float64; that
the densities are equal is asserted. What is timed is the whole call, from the lists and their
oracles to draws in ArviZ's format: table, warm-up, search for the mode and so on. The sides take
turns, `--repeats` times, ours after each opponent. `first` is the first call, which compiles what
is not in JAX's cache on the disk; the others are medians over the later ones, or what there is.
The rate is that of the weight that mixes worst, by its bulk ESS (of importance samples Kish's ESS
of the weights). Where other programs run, ratios by the time of the processor, in brackets, say
more.

`nutpie` is NUTS in Rust with a low-rank metric, four chains on two cores, 4 × (500 + 1000), given
log density and gradient by JAX: those of our program, which are laid out for many draws at a time,
and (`flat`) of the same table in one piece, which is faster for one draw. NumPyro's NUTS, one
chain of 500 + 1000, compiles at every run, so that a run of one draw is subtracted.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from measuring import canonical, clock, drawn, lists
from numpyro.infer import MCMC, NUTS

import bpa_ppl as bpa
from bpa_ppl.models import Isotropic
from bpa_ppl.posterior import importance_weights, kish
from bpa_ppl.posterior.statistics import ess
from bpa_ppl.sampling import Target, target_of
from bpa_ppl.sampling.density import potential, unflatten
from bpa_ppl.weights import match

SAMPLERS = ("rwm-isotropic", "rwm", "nuts", "imh", "laplace")
OPPONENTS = ("numpyro", "nutpie", "nutpie flat")


class Sample(NamedTuple):
    """Lists with their oracles: what every side starts from."""

    nbest: bpa.NBest
    oracle: bpa.Oracles
    seed: int


class Found(NamedTuple):
    """Draws of the weights (C, D, Q), logarithms of importance weights, and log densities."""

    weights: np.ndarray
    log_weight: np.ndarray | None = None
    log_density: np.ndarray | None = None


class Side(NamedTuple):
    """One sampler: its name, and its whole call, which may say what to take off its seconds."""

    name: str
    call: Callable[[], tuple[Found, float]]


def posterior_of(sample: Sample) -> Target:
    """Return the posterior as the opponents sample it."""
    matched = match(canonical(), sample.nbest)
    prior = Isotropic().build(matched)
    return target_of(sample.nbest, matched, prior, oracle=sample.oracle.index)


def numpyro_nuts(sample: Sample) -> tuple[Found, float]:
    """Run NumPyro's NUTS at its defaults: one chain, because its chains run one by one."""
    with jax.enable_x64(True):
        target = posterior_of(sample)

        def run(warmup: int, draws: int) -> np.ndarray:
            kernel = NUTS(target.program)
            mcmc = MCMC(kernel, num_warmup=warmup, num_samples=draws, progress_bar=False)
            mcmc.run(jax.random.key(sample.seed), *target.data)
            return np.asarray(mcmc.get_samples(group_by_chain=True)["weights"])

        compiling = clock(lambda: run(1, 1))[0]
        return Found(run(500, 1000)), 2 * compiling


@partial(jax.jit, static_argnums=0)
def of_program(program: Any, given: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the log density of our program and its gradient."""
    data, start = given
    return jax.value_and_grad(lambda x: -potential(program, data, unflatten(x, start)))(x)


@partial(jax.jit, static_argnums=0)
def of_flat(_: Any, given: Any, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the same of tables (Q, S, N) in one piece."""
    tables, mean, variance = given

    def density(x: jax.Array) -> jax.Array:
        total = -0.5 * jnp.sum((x - mean) ** 2 / variance + jnp.log(2 * jnp.pi * variance))
        for features, base in tables:
            flat = features.reshape(len(x), -1)
            scores = (x.astype(flat.dtype) @ flat).reshape(base.shape) + base
            total -= jax.nn.logsumexp(scores, axis=-1).astype(x.dtype).sum()
        return total

    return jax.value_and_grad(density)(x)


def flattened(target: Target) -> Any:
    """Return the tables of a posterior in one piece each, with the prior."""
    tables = []
    for bucket in target.data.lists.buckets:
        blocks, size, sentences, width = bucket.features.shape
        whole = jnp.moveaxis(bucket.features, 1, 0).reshape(size, blocks * sentences, width)
        tables.append((whole, bucket.base.reshape(-1, width)))
    prior = target.data.prior
    return tables, prior.mean, jnp.broadcast_to(prior.variance, prior.mean.shape)


def nutpie_nuts(sample: Sample, flat: bool) -> tuple[Found, float]:
    """Run nutpie from the mean of the prior, as ours start."""
    import nutpie
    from nutpie.compiled_pyfunc import from_pyfunc

    with jax.enable_x64(True):
        target = posterior_of(sample)
        origin = np.asarray(ravel_pytree(target.start)[0])
        given = flattened(target) if flat else (target.data, target.start)
        density = of_flat if flat else of_program

        def log_density(x: np.ndarray) -> tuple[float, np.ndarray]:
            with jax.enable_x64(True):  # a setting of each thread
                value, gradient = density(target.program, given, x)
                return float(value), np.asarray(gradient)

        model = from_pyfunc(
            len(origin),
            lambda: log_density,
            lambda *_: lambda x: {"weights": np.asarray(x)},
            ["float64"],
            [origin.shape],
            ["weights"],
            make_initial_point_fn=lambda seed: origin,
        )
        draws = nutpie.sample(
            model,
            draws=1000,
            tune=500,
            chains=4,
            cores=2,
            seed=sample.seed,
            progress_bar=False,
            low_rank_modified_mass_matrix=True,
        )
    return Found(draws["posterior"]["weights"].values), 0.0


def ours(sample: Sample, sampler: str) -> tuple[Found, float]:
    """Draw with one of our samplers, in the whole call of `adapt`."""
    made = bpa.adapt(
        sample.nbest,
        canonical(),
        sampler=sampler,
        likelihood="oracle",
        oracle=sample.oracle,
        seed=sample.seed,
    )
    statistics = made["sample_stats"]
    log_weight = statistics["log_weight"].values if "log_weight" in statistics else None
    density = statistics["lp"].values
    return Found(made["posterior"]["weights"].values, log_weight, density), 0.0


def assert_equal_densities(sample: Sample) -> None:
    """Raise unless the densities of all sides are `lp` of our draws."""
    made = ours(sample, "imh")[0]
    assert made.log_density is not None
    weights, known = made.weights[0, ::100], made.log_density[0, ::100]
    with jax.enable_x64(True):
        target = posterior_of(sample)
        pairs = ((of_program, (target.data, target.start)), (of_flat, flattened(target)))
        for density, given in pairs:
            values = np.array([density(target.program, given, x)[0] for x in weights])
            np.testing.assert_allclose(values, known, rtol=1e-6, atol=0)


def effective(draws: Found, method: str = "bulk") -> float:
    """Return the ESS of the weight that mixes worst, or Kish's of importance weights."""
    if draws.log_weight is not None:
        return kish(importance_weights(draws.log_weight))
    return float(ess(draws.weights, method).min())


def opponents_of(sample: Sample, against: list[str]) -> list[Side]:
    """Return whom ours are compared with, as far as they are installed."""
    calls: dict[str, Callable[[], tuple[Found, float]]] = {
        "numpyro": partial(numpyro_nuts, sample),
        "nutpie": partial(nutpie_nuts, sample, False),
        "nutpie flat": partial(nutpie_nuts, sample, True),
    }
    try:
        import nutpie  # noqa: F401
    except ImportError:
        print("nutpie is not installed: pip install nutpie")
        against = [name for name in against if not name.startswith("nutpie")]
    return [Side(name, calls[name]) for name in against]


class Run(NamedTuple):
    """One whole call: its seconds, those of the processor (all threads), and its draws."""

    seconds: float
    processor: float
    draws: Found


def run_of(side: Side) -> Run:
    """Time a whole call."""
    before = process_time()
    seconds, (draws, off) = clock(side.call)
    return Run(seconds - off, process_time() - before - off, draws)


def take_turns(opponents: list[Side], mine: list[Side], repeats: int) -> dict[str, list[Run]]:
    """Run every opponent, and all of ours after each: so all meet the same load."""
    found: dict[str, list[Run]] = {side.name: [] for side in [*opponents, *mine]}
    for side in mine:
        found[side.name].append(run_of(side))  # the first call, which compiles
    for _ in range(repeats):
        for opponent in opponents or [None]:
            for side in [*([opponent] if opponent else []), *mine]:
                found[side.name].append(run_of(side))
    return found


def compare(sample: Sample, opponents: list[Side], mine: list[Side], repeats: int) -> None:
    """Let the sides take turns on the same sentences and print the table."""
    hypotheses, features = sample.nbest.features.shape
    print(f"\n|A| = {len(sample.nbest)}, {hypotheses} hypotheses, {features} features", end="; ")
    print(f"load before {os.getloadavg()[0]:.1f}", flush=True)
    found = take_turns(opponents, mine, repeats)
    heads = "".join(f"{'/ ' + side.name:>14}" for side in opponents)
    columns = ("first s", "s", "CPU s", "bulk", "tail", "ESS/s")
    print(f"{'':<14}" + "".join(f"{name:>9}" for name in columns) + heads + "  (by CPU time)")
    rates: list[tuple[float, float]] = []
    for name, runs in found.items():
        later = sorted(runs[1:] or runs, key=lambda run: run.seconds)
        middle = later[len(later) // 2]
        processor = sorted(run.processor for run in later)[len(later) // 2]
        bulk, tail = effective(middle.draws), effective(middle.draws, "tail")
        rate = (bulk / middle.seconds, bulk / processor)
        rates.append(rate)
        row = f"{name:<14}{runs[0].seconds:>9.2f}{middle.seconds:>9.3f}{processor:>9.3f}"
        row += f"{bulk:>9.0f}{tail:>9.0f}{rate[0]:>9.0f}"
        for other in rates[: len(opponents)]:
            row += f"{rate[0] / other[0]:>7.1f}×{'(' + format(rate[1] / other[1], '.1f') + ')':>6}"
        print(row)
    print(f"load after {os.getloadavg()[0]:.1f}", flush=True)


def main() -> None:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pool", default="medical")
    parser.add_argument("--sentences", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samplers", nargs="*", default=list(SAMPLERS))
    parser.add_argument("--against", nargs="*", default=list(OPPONENTS), choices=OPPONENTS)
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    pool = lists(options.pool, "adapt")
    for sentences in options.sentences:
        nbest = drawn(pool, sentences, options.seed)
        sample = Sample(nbest, bpa.oracles(nbest), options.seed)
        assert_equal_densities(sample)
        mine = [Side(name, partial(ours, sample, name)) for name in options.samplers]
        compare(sample, opponents_of(sample, options.against), mine, options.repeats)


if __name__ == "__main__":
    main()
