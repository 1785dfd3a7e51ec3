"""How often the check refuses draws that are good, and finds draws that are not.

    python tests/benchmarks/bench_checks.py [--runs 1000] [--adapted 200]

Posteriors are known, and chains start in them: whatever is refused is a false alarm. Chains are
autoregressive ones, and independence Metropolis-Hastings with the proposals of `imh` for a
Gaussian posterior. The drift is also shown at the level of 1% with a normal limit, as it would be
without allowance for the error of its own standard error, and with a shift between the halves
that is to be found. Then lists are adapted to by `auto`, from as many seeds.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable

import numpy as np
from scipy.stats import norm

from bpa_ppl import NBest, adapt, check
from bpa_ppl.diagnostics.checks import drift
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws
from bpa_ppl.sampling.imh import accept
from bpa_ppl.tables import text_table

CHAINS, DRAWS, WARMUP, DEGREES, WIDER = 4, 1000, 100, 20.0, 1.1
Chains = Callable[[np.random.Generator], Float64]


def autoregressive(correlation: float, features: int) -> Chains:
    """Return what makes AR(1) chains of standard normal draws."""

    def made(rng: np.random.Generator) -> Float64:
        noise = rng.normal(size=(DRAWS, CHAINS, features))
        values = np.empty_like(noise)
        values[0] = noise[0]
        for step in range(1, DRAWS):
            fresh = np.sqrt(1 - correlation**2) * noise[step]
            values[step] = correlation * values[step - 1] + fresh
        return values.transpose(1, 0, 2)

    return made


def independence(features: int) -> Chains:
    """Return what makes chains of a standard Gaussian from proposals of a wider Student t."""

    def made(rng: np.random.Generator) -> Float64:
        shape = (CHAINS, WARMUP + DRAWS)
        scale = np.sqrt(WIDER * DEGREES / rng.chisquare(DEGREES, size=(*shape, 1)))
        proposed = scale * rng.normal(size=(*shape, features))
        squared = (proposed**2).sum(axis=-1)
        log_q = -(DEGREES + features) / 2 * np.log1p(squared / WIDER / DEGREES)
        position, _ = accept(-squared / 2 - log_q, rng)
        return proposed[np.arange(CHAINS)[:, None], position[:, WARMUP:]]

    return made


def draws_of(values: Float64) -> Draws:
    """Return chains as draws of weights."""
    return Draws({"weights": values}, tuple(f"w{k}" for k in range(values.shape[-1])))


def row(name: str, chains: Chains, runs: int) -> tuple[str, ...]:
    """Return the shares of good posteriors that are refused, and of drifting ones found."""
    refused, plain, found = 0, 0, 0
    for seed in range(runs):
        values = chains(np.random.default_rng(seed))
        features = values.shape[-1]
        refused += not check(draws_of(values))
        # Of the quantiles at which they are compared only the normal one is left.
        level = 0.01 / (2 * features)
        plain += bool(np.abs(drift(values, level)).max() > norm.isf(level))
        if seed < runs // 10:
            values[:, DRAWS // 2 :, 0] += 0.5
            found += not check(draws_of(values))
    shares = (refused / runs, plain / runs, found / (runs // 10))
    return name, *(f"{100 * share:.1f}%" for share in shares)


def lists() -> NBest:
    """Return the lists of forty sentences with four features."""
    rng = np.random.default_rng(11)
    texts = [[f"w{h}" for h in range(20)] for _ in range(40)]
    features = [rng.normal(size=(20, 4)) for _ in texts]
    return NBest.from_lists(texts, features, ["A", "B", "C", "D"], references=[("w3",)] * 40)


def adapted(runs: int) -> str:
    """Say how many posteriors of `auto` fail their check, and how many were drawn again."""
    again, failed = 0, Counter[str]()
    pool, canonical = lists(), {"A": 0.3, "B": 0.1, "C": -0.2, "D": 0.5}
    for seed in range(runs):
        posterior = adapt(pool, canonical, seed=seed)
        again += "drawn_again_because" in posterior.attrs
        failed.update(finding.name for finding in check(posterior).failures)
    return f"auto, {runs} seeds: {again} drawn again, failed after all: {dict(failed) or 'none'}"


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--adapted", type=int, default=200)
    chosen = parser.parse_args()
    kinds = {
        "AR(1) 0.0, 4 weights": autoregressive(0.0, 4),
        "AR(1) 0.5, 4 weights": autoregressive(0.5, 4),
        "imh, 4 weights": independence(4),
        "imh, 14 weights": independence(14),
    }
    header = ("", "refused", "by drift at 1%", "a shift of 0.5 sd found")
    print(text_table([row(name, made, chosen.runs) for name, made in kinds.items()], header))
    if chosen.adapted:
        print(adapted(chosen.adapted))


if __name__ == "__main__":
    main()
