"""False alarms and detections of `compare`, and whether its bound of the bias holds.

    python benchmarks/bench_comparison_level.py [--tables level power bound]
        [--comparisons 300] [--weights 3 14 50] [--sizes 0 1 2] [--correlations 0 0.5 0.9]

Samplers and references are autoregressive chains from a Gaussian with correlated weights.

* level: correct samplers. Shares of p-values of at most 0.5, 1 and 5%, of the tests of the marginal
  and of the joint distributions, and of samplers that differ by one of them.
* power: samplers with one error, against a correct reference.
* bound: samplers with a biased mean. How often the 95% bound is above the bias, and how often the
  bound is below 0.1, so that the sampler may agree.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from measuring import Table, few, run_tables
from scipy.signal import lfilter

from bpa_ppl import Draws
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.diagnostics.samplers.comparison import LEVEL, MAX_BIAS, compare
from bpa_ppl.diagnostics.samplers.joint_test import measure_joint_distance
from bpa_ppl.diagnostics.samplers.moments import bound_bias, compare_moments
from bpa_ppl.posterior.draws import name_array

#: (chains, draws) of the sampler and of the reference.
SIZES = (((4, 500), (4, 500)), ((4, 500), (4, 5000)), ((4, 5000), (16, 1000)))
LEVELS = (0.005, 0.01, 0.05)
Change = Callable[[Float64], Float64]
#: Of the power table.
POWER_WEIGHTS, POWER_CORRELATION, POWER_SIZE = 14, 0.5, ((4, 2000), (4, 5000))


def chains(
    rng: np.random.Generator, shape: tuple[int, int], weights: int, correlation: float
) -> Float64:
    """Return stationary AR(1) chains of standard normal draws."""
    noise = rng.normal(size=(*shape, weights))
    noise[:, 1:] *= np.sqrt(1 - correlation**2)
    return np.asarray(lfilter([1], [1, -correlation], noise, axis=1))


def posterior(values: Float64) -> Draws:
    """Return draws with neighbouring weights correlated, and of different scale."""
    mixed = values.copy()
    mixed[..., 1:] = 0.8 * values[..., 1:] + 0.6 * values[..., :-1]
    weights = values.shape[-1]
    return name_array(mixed * np.geomspace(1, 10, weights), names(weights))


def names(weights: int) -> tuple[str, ...]:
    """Return names of weights."""
    return tuple(f"w{k}" for k in range(weights))


def level(options: argparse.Namespace) -> None:
    """Print the shares of correct samplers that each test rejects."""
    columns = [f"{test} {100 * a:g}%" for test in ("marginal", "joint") for a in LEVELS]
    table = Table(f"level, {options.comparisons} comparisons", *columns, "DIFFERS")
    for size in (SIZES[k] for k in options.sizes):
        for weights in options.weights:
            for correlation in options.correlations:
                p_values = np.array(
                    [
                        _p_values(seed, size, weights, correlation)
                        for seed in range(options.comparisons)
                    ]
                )
                shares = [np.mean(p <= a) for p in p_values.T for a in LEVELS]
                differs = np.mean((p_values < LEVEL / 2).any(axis=1))
                (a, b), (c, d) = size
                name = f"{a} × {b} / {c} × {d}, {weights} weights, AR {correlation:g}"
                table.row(name, *(f"{share:.1%}" for share in (*shares, differs)))


def _p_values(
    seed: int, size: tuple[tuple[int, int], tuple[int, int]], weights: int, correlation: float
) -> tuple[float, float]:
    rng = np.random.default_rng([seed, weights, round(10 * correlation), *np.ravel(size)])
    ours, theirs = (posterior(chains(rng, shape, weights, correlation)) for shape in size)
    marginal = min(d["p_value"] for d in compare_moments(ours, theirs))
    return marginal, measure_joint_distance(ours, theirs, seed).p_value


def power(options: argparse.Namespace) -> None:
    """Print the shares of samplers with an error that differ."""

    def shifted(size: float) -> Change:
        return lambda x: x + np.eye(POWER_WEIGHTS)[0] * size

    def scaled(size: float) -> Change:
        return lambda x: x * (1 + np.eye(POWER_WEIGHTS)[0] * (size - 1))

    def correlated(size: float) -> Change:
        def change(x: Float64) -> Float64:
            out = x.copy()
            out[..., 9] = size * x[..., 0] + np.sqrt(1 - size**2) * x[..., 9]
            return out

        return change

    errors = {"none": shifted(0)}
    errors |= {f"mean + {size:g} sd": shifted(size) for size in (0.05, 0.1, 0.2, 0.3, 0.5)}
    errors |= {f"sd × {size:g}": scaled(size) for size in (1.1, 1.2)}
    errors |= {f"correlation + {size:g}": correlated(size) for size in (0.1, 0.2, 0.3)}
    verdicts = ("DIFFERS", "agrees", "inconclusive", "not converged")
    title = f"power, {options.power_comparisons} comparisons"
    table = Table(title, "marginal", "joint", *verdicts, "bound")
    for name, change in few([*errors.items()]):
        found = []
        for seed in range(options.power_comparisons):
            rng = np.random.default_rng([seed, len(name)])
            ours, theirs = (
                chains(rng, shape, POWER_WEIGHTS, POWER_CORRELATION) for shape in POWER_SIZE
            )
            result = compare({"x": [posterior(change(ours))]}, [posterior(theirs)], seed=seed)
            found.append(result["x"])
        marginal = [min(d["p_value"] for d in one.discrepancies) < LEVEL / 2 for one in found]
        joint = [one.distance.p_value < LEVEL / 2 for one in found if one.distance is not None]
        shares = [np.mean(tests) for tests in (marginal, joint)]
        shares += [np.mean([one.verdict == verdict for one in found]) for verdict in verdicts]
        bounds = [one.bound for one in found if one.bound is not None]
        median = f"{np.median(bounds):.2f}" if bounds else "–"
        table.row(name, *(f"{share:.0%}" for share in shares), median)


def bound(options: argparse.Namespace) -> None:
    """Print the coverage of the bound of the bias."""
    columns = ("bound ≥ bias", "bound ≤ 0.1", "median bound")
    table = Table(f"bound, {options.bound_comparisons} comparisons", *columns)
    for weights in (1, 14):
        for correlation in options.correlations:
            for bias in few((0.05, 0.1, 0.2)):
                bounds = []
                for seed in range(options.bound_comparisons):
                    rng = np.random.default_rng([seed, weights, round(10 * correlation)])
                    ours = chains(rng, (4, 2000), weights, correlation)
                    theirs = chains(rng, (4, 2500), weights, correlation)
                    ours[..., 0] += bias
                    pair = (name_array(x, names(weights)) for x in (ours, theirs))
                    bounds.append(bound_bias(*pair)[0])
                shares = [np.mean(np.array(bounds) >= bias), np.mean(np.array(bounds) <= MAX_BIAS)]
                name = f"{weights} weights, AR {correlation:g}, bias {bias:g} sd"
                table.row(name, *(f"{s:.1%}" for s in shares), f"{np.median(bounds):.3f}")


if __name__ == "__main__":
    run_tables(
        __doc__,
        (level, power, bound),
        needs_data=False,
        comparisons=300,
        power_comparisons=100,
        bound_comparisons=500,
        weights=(3, 14, 50),
        sizes=(0, 1, 2),
        correlations=(0.0, 0.5, 0.9),
    )
