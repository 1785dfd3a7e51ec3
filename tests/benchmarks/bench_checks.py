"""False alarms and detections of the convergence check, on chains from known posteriors.

    python tests/benchmarks/bench_checks.py [--runs 1000]

The chains start in their posterior, so each refusal is a false alarm. They are autoregressive, or
from independence Metropolis-Hastings with the proposals of `imh` for a Gaussian posterior. For a
tenth of the runs, a shift between the halves is added, which the check should detect.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from measuring import Table, parse_options

from bpa_ppl import check
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws
from bpa_ppl.sampling.imh import accept

CHAINS, DRAWS, WARMUP, DEGREES, SCALE = 4, 1000, 100, 20.0, 1.1


def autoregressive(
    rng: np.random.Generator,
    correlation: float,
    features: int,
    shape: tuple[int, int] = (DRAWS, CHAINS),
) -> Float64:
    """Return AR(1) chains of standard normal draws; the shape is of draws and chains."""
    noise = rng.normal(size=(*shape, features))
    values = np.empty_like(noise)
    values[0] = noise[0]
    for step in range(1, shape[0]):
        innovation = np.sqrt(1 - correlation**2) * noise[step]
        values[step] = correlation * values[step - 1] + innovation
    return values.transpose(1, 0, 2)


def one_chain(rng: np.random.Generator, correlation: float, features: int) -> Float64:
    """Return one AR(1) chain with as many draws as the other runs have in all."""
    return autoregressive(rng, correlation, features, (CHAINS * DRAWS, 1))


def independence(rng: np.random.Generator, features: int) -> Float64:
    """Return chains of a standard Gaussian, with proposals from a wider Student t."""
    shape = (CHAINS, WARMUP + DRAWS)
    scale = np.sqrt(SCALE * DEGREES / rng.chisquare(DEGREES, size=(*shape, 1)))
    proposed = scale * rng.normal(size=(*shape, features))
    squared = (proposed**2).sum(axis=-1)
    log_q = -(DEGREES + features) / 2 * np.log1p(squared / SCALE / DEGREES)
    position, _ = accept(-squared / 2 - log_q, rng)
    return proposed[np.arange(CHAINS)[:, None], position[:, WARMUP:]]


def refused(values: Float64) -> bool:
    """Return whether the check refuses the chains."""
    names = tuple(f"w{k}" for k in range(values.shape[-1]))
    return not check(Draws({"weights": values}, names))


def main() -> None:
    """Print the shares of refused runs."""
    runs = parse_options(__doc__, needs_data=False, runs=1000).runs
    chains: dict[str, Callable[[np.random.Generator], Float64]] = {
        "AR(1) 0.0, 4 weights": lambda rng: autoregressive(rng, 0.0, 4),
        "AR(1) 0.5, 4 weights": lambda rng: autoregressive(rng, 0.5, 4),
        "imh, 4 weights": lambda rng: independence(rng, 4),
        "imh, 14 weights": lambda rng: independence(rng, 14),
        "one chain of 4000, AR(1) 0.0, 4 weights": lambda rng: one_chain(rng, 0.0, 4),
        "one chain of 4000, AR(1) 0.5, 4 weights": lambda rng: one_chain(rng, 0.5, 4),
    }
    table = Table(f"{runs} runs", "refused", "refused with a shift of 0.5 sd")
    for name, sample in chains.items():
        good, shifted = [], []
        for seed in range(runs):
            values = sample(np.random.default_rng(seed))
            good.append(refused(values))
            if seed < max(1, runs // 10):
                values[:, values.shape[1] // 2 :, 0] += 0.5
                shifted.append(refused(values))
        table.row(name, f"{np.mean(good):.1%}", f"{np.mean(shifted):.1%}")


if __name__ == "__main__":
    main()
