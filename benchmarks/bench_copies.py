"""False alarms and detections of chains that depend on each other, and of tails without a mean.

    python benchmarks/bench_copies.py [--tables alarms copies tails] [--runs 1000]

* alarms: how often `find_dependence` finds something in four independent chains of 1000 draws.
* copies: how often it finds something where the last chain is a copy of the first, in a tenth of
  the runs: the whole chain, the chain shifted by half its length or reversed, in single precision,
  with noise of 0.05 or 0.5 standard deviations; or where the chains are mixed by `reshape`.
* tails: how often the check refuses draws of one weight, and how often the tails are a reason, in
  a tenth of the runs: independent draws, and chains of NUTS (500 draws of warm-up) and of a random
  walk (10 moves for each draw). Of the same draws of a variable without lists, how often they are
  refused, and how often the check says that there is no variance, or no mean.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from measuring import Table, few, run_tables
from numpyro.infer import MCMC, NUTS

from bpa_ppl import check
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.diagnostics.check.independence import find_dependence
from bpa_ppl.posterior.draws import Draws, name_array

CHAINS, DRAWS, WARMUP = 4, 1000, 50
Sample = Callable[[np.random.Generator], Float64]


def normal(features: int, correlation: float = 0.0, accepted: float = 1.0) -> Sample:
    """Return a sampler of AR(1) chains that repeat a draw after each rejected proposal."""

    def sample(rng: np.random.Generator) -> Float64:
        noise = rng.normal(size=(CHAINS, DRAWS, features))
        values = noise.copy()
        for t in range(1, DRAWS):
            innovation = np.sqrt(1 - correlation**2) * noise[:, t]
            values[:, t] = correlation * values[:, t - 1] + innovation
        moves = rng.random((CHAINS, DRAWS)) < accepted
        last = np.maximum.accumulate(np.where(moves, np.arange(DRAWS), 0), axis=1)
        return np.take_along_axis(values, last[..., None], axis=1)

    return sample


def one_weight(transform: Callable[[np.random.Generator, Float64], Float64]) -> Sample:
    """Return a sampler of chains of one weight, a function of independent normal draws."""
    return lambda rng: transform(rng, rng.normal(size=(CHAINS, DRAWS, 1))).astype(np.float64)


def counts_of_a_walk(rng: np.random.Generator) -> Float64:
    """Return chains of a random walk on the integers whose distribution is Poisson(4)."""
    values, state = np.empty((DRAWS, CHAINS)), rng.poisson(4.0, CHAINS)
    for t in range(DRAWS):
        proposed = state + rng.choice([-1, 1], CHAINS)
        ratio = np.where(proposed > state, 4 / np.maximum(proposed, 1), state / 4)
        state = np.where((rng.random(CHAINS) < ratio) & (proposed >= 0), proposed, state)
        values[t] = state
    return values.T[..., None]


CASES: dict[str, Sample] = {
    "normal, 1 weight": normal(1),
    "normal, 14 weights": normal(14),
    "normal, 50 weights": normal(50),
    "AR(1) 0.99, 1 weight": normal(1, 0.99),
    "AR(1) 0.9, 1 weight, 30 % accepted": normal(1, 0.9, 0.3),
    "AR(1) 0.9, 14 weights, 30 % accepted": normal(14, 0.9, 0.3),
    "two modes, ±10": one_weight(lambda rng, x: x + 10 * rng.choice([-1, 1], x.shape)),
    "a narrow and a wide normal, 1 : 10⁴": one_weight(
        lambda rng, x: x * np.where(rng.random(x.shape) < 0.5, 1.0, 1e-4)
    ),
    "log-normal, σ = 2": one_weight(lambda _, x: np.exp(2 * x)),
    "Cauchy": one_weight(lambda rng, x: rng.standard_cauchy(x.shape)),
    "spike and slab, half 0": one_weight(lambda rng, x: x * (rng.random(x.shape) < 0.5)),
    "spike and slab, nine tenths 0": one_weight(lambda rng, x: x * (rng.random(x.shape) < 0.1)),
    "Poisson(3)": one_weight(lambda rng, x: rng.poisson(3.0, x.shape)),
    "Poisson(100)": one_weight(lambda rng, x: rng.poisson(100.0, x.shape)),
    "Poisson(4), random walk": counts_of_a_walk,
    "0 or 1": one_weight(lambda rng, x: rng.integers(0, 2, x.shape)),
    "two decimals": one_weight(lambda _, x: x.round(2)),
    "two decimals, sd 3": one_weight(lambda _, x: (3 * x).round(2)),
    "two decimals, AR(1) 0.5, 30 % accepted": lambda rng: normal(1, 0.5, 0.3)(rng).round(2),
    "one decimal, 2 weights": lambda rng: normal(2)(rng).round(1),
    "single precision, mean 10⁴ sd": one_weight(lambda _, x: (1e4 + x).astype(np.float32)),
}


def depend(values: Float64) -> bool:
    """Return whether chains seem to depend on each other."""
    return bool(find_dependence(values, [str(k) for k in range(values.shape[-1])]))


def alarms(options: argparse.Namespace) -> None:
    """Print the shares of runs without a copy in which copies are found."""
    table = Table(f"false alarms, {options.runs} runs", "found")
    for name, sample in CASES.items():
        found = [depend(sample(np.random.default_rng(seed))) for seed in range(options.runs)]
        table.row(name, f"{np.mean(found):.1%}")


COPIES: dict[str, Callable[[np.random.Generator, Float64, Float64], Float64]] = {
    "same": lambda _, chain, other: chain,
    "shifted": lambda _, chain, other: np.concatenate([chain[DRAWS // 2 :], other[: DRAWS // 2]]),
    "reversed": lambda _, chain, other: chain[::-1],
    "single": lambda _, chain, other: chain.astype(np.float32),
    "noise .05": lambda rng, chain, other: (
        chain + 0.05 * chain.std(axis=0) * rng.normal(size=chain.shape)
    ),
    "noise .5": lambda rng, chain, other: (
        chain + 0.5 * chain.std(axis=0) * rng.normal(size=chain.shape)
    ),
}


def copies(options: argparse.Namespace) -> None:
    """Print the shares of runs in which a copy of the first chain, or mixed chains, are found."""
    runs = max(1, options.runs // 10)
    table = Table(f"copies, {runs} runs", *COPIES, "mixed")
    for name, sample in CASES.items():
        found = np.zeros(len(COPIES) + 1)
        for seed in range(runs):
            rng = np.random.default_rng(seed)
            values = sample(rng)
            for k, copy in enumerate(COPIES.values()):
                last = copy(rng, values[0], values[-1])
                found[k] += depend(np.stack([*values[:-1], last]))
            found[-1] += depend(values.swapaxes(0, 1).reshape(values.shape))
        table.row(name, *(f"{share:.0%}" for share in found / runs))


TARGETS: dict[str, dist.Distribution] = {
    "Cauchy": dist.Cauchy(),
    "Student t, 2 degrees": dist.StudentT(2.0),
    "Student t, 3 degrees": dist.StudentT(3.0),
    "Student t, 5 degrees": dist.StudentT(5.0),
    "normal": dist.Normal(),
    "log-normal, σ = 1": dist.LogNormal(0.0, 1.0),
}


def independent(target: dist.Distribution, chains: int) -> Float64:
    """Return independent draws, (chains, draws)."""
    return np.asarray(target.sample(jax.random.key(0), (chains, DRAWS)))


def chains_of_nuts(target: dist.Distribution, chains: int) -> Float64:
    """Return chains of NUTS, (chains, draws)."""
    mcmc = MCMC(
        NUTS(lambda: numpyro.sample("weight", target), target_accept_prob=0.9),
        num_warmup=500,
        num_samples=DRAWS,
        num_chains=chains,
        chain_method="vectorized",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(1))
    return np.asarray(mcmc.get_samples(group_by_chain=True)["weight"])


def chains_of_a_walk(target: dist.Distribution, chains: int, thinning: int = 10) -> Float64:
    """Return chains of a random walk with steps of 2.4 × the quartile deviation."""
    start = target.sample(jax.random.key(3), (10_000,))
    quartiles = np.quantile(start, [0.25, 0.75])
    start = start[(start > quartiles[0]) & (start < quartiles[1])][:chains]
    step = 2.4 * (quartiles[1] - quartiles[0]) / 1.35

    @jax.jit
    def walk(key: jax.Array) -> jax.Array:
        def move(state: jax.Array, key: jax.Array) -> tuple[jax.Array, None]:
            noise, uniform = jax.random.split(key)
            proposed = state + step * jax.random.normal(noise, state.shape)
            log_ratio = target.log_prob(proposed) - target.log_prob(state)
            inside = target.support(proposed)
            accepted = (
                jax.numpy.log(jax.random.uniform(uniform, state.shape)) < log_ratio
            ) & inside
            return jax.numpy.where(accepted, proposed, state), None

        def draw(state: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
            state, _ = jax.lax.scan(move, state, jax.random.split(key, thinning))
            return state, state

        return jax.lax.scan(draw, start, jax.random.split(key, WARMUP + DRAWS))[1]

    return np.asarray(walk(jax.random.key(2))).T[:, WARMUP:]


def tails(options: argparse.Namespace) -> None:
    """Print how often a weight and a variable of another program pass, and without a mean."""
    jax.config.update("jax_enable_x64", True)
    runs = max(1, options.runs // 10)
    samplers = {"independent": independent, "NUTS": chains_of_nuts, "random walk": chains_of_a_walk}
    weight = Table(f"weights that are refused (because of tails), {runs} runs", *samplers)
    rows = []
    for name, target in few([*TARGETS.items()]):
        cells, of_variables = [], []
        for sample in samplers.values():
            chains = sample(target, CHAINS * runs).reshape(runs, CHAINS, DRAWS, 1)
            failures = [check(name_array(values, ("w",))).failures for values in chains]
            heavy = [any("tails" in failure.name for failure in failed) for failed in failures]
            refused = np.mean([bool(failed) for failed in failures])
            cells.append(f"{refused:.0%} ({np.mean(heavy):.0%})")
            reports = [check(Draws({"x": x[..., 0]}, sampled=("x",))) for x in chains]
            named = [any("has no" in one.advice for one in of.rows) for of in reports]
            refused = np.mean([not of.passed for of in reports])
            of_variables.append(f"{refused:.0%} ({np.mean(named):.0%})")
        weight.row(name, *cells)
        rows.append((name, *of_variables))
    variable = Table(f"variables that are refused (without a variance), {runs} runs", *samplers)
    for row in rows:
        variable.row(*row)


if __name__ == "__main__":
    run_tables(__doc__, (alarms, copies, tails), needs_data=False, runs=1000)
