"""Adaptation against the strongest tuner, MIRA tuned to TER, at every |A| on every domain.

    python tests/benchmarks/bench_opponents.py [--draws 10] [--sizes N …] [--domains NAME …]

Each draw has its own adaptation sentences (seeds 0, 1, …, with replacement; the same for every
row); weights choose among the 500-best lists of all 500 test sentences: of adaptation those at the
mode. `learned` is the margin with a prior learned from 100 sentences of each of the two other
domains. Printed: test TER ± 2 standard deviations over the draws / BLEU / words of the outputs over
those of the references; then where MIRA's mean TER is not beaten.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import cache

import numpy as np
from bench_learned_priors import Learning, plain
from bench_likelihoods import DOMAINS, cell, material, summary
from measuring import canonical, drawn

import bpa_ppl as bpa
from bpa_ppl.models import Prior
from bpa_ppl.nbest import Float64
from bpa_ppl.tuning import reestimate
from bpa_ppl.weights import match

SIZES = (10, 20, 50, 100, 200, 500)
_LEARNING = Learning(lambda domain, seed: plain(domain), likelihood="margin")


def adapted(domain: str, size: int, seed: int, likelihood: str, prior: Prior | None) -> Float64:
    """Return TER, BLEU and length ratio of one draw after adaptation."""
    given = {} if prior is None else {"prior": prior}
    sample = drawn(material(domain).pool, size, seed)
    posterior = bpa.adapt(sample, canonical(), sampler="map", likelihood=likelihood, **given)
    return material(domain).scores(posterior)


def published(domain: str, size: int, seed: int) -> Float64:
    """Adapt with the likelihood of the paper."""
    return adapted(domain, size, seed, "oracle", None)


def margin(domain: str, size: int, seed: int) -> Float64:
    """Adapt with the default."""
    return adapted(domain, size, seed, "margin", None)


def learned(domain: str, size: int, seed: int) -> Float64:
    """Adapt with the default and a prior of the two other domains."""
    return adapted(domain, size, seed, "margin", prior(domain, seed))


prior = cache(_LEARNING.prior)


def mira(domain: str, size: int, seed: int) -> Float64:
    """Tune to TER."""
    made = material(domain)
    sample = drawn(made.pool, size, seed)
    found = reestimate(sample, canonical(), tuner="mira", metric="ter", seed=seed).weights
    return made.of_weights(match(found, made.test).values)


METHODS: dict[str, Callable[[str, int, int], Float64]] = {
    "published": published,
    "margin": margin,
    "learned prior, margin": learned,
    "mira (TER)": mira,
}


def main() -> None:
    """Read the command line and print one table a domain."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--domains", nargs="+", choices=DOMAINS, default=list(DOMAINS))
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    for domain in options.domains:
        print(f"\n{domain:<24}" + "".join(f"{f'|A| = {n}':>34}" for n in options.sizes), flush=True)
        means: dict[str, list[float]] = {}
        for name, of in METHODS.items():
            found = [
                np.array([of(domain, n, s) for s in range(options.draws)]) for n in options.sizes
            ]
            means[name] = [float(scores[:, 0].mean()) for scores in found]
            cells = "".join(f"{cell(summary([scores])):>34}" for scores in found)
            print(f"{name:<24}{cells}", flush=True)
        for name in list(METHODS)[:-1]:
            behind = [
                f"{n} ({ours - theirs:+.2f})"
                for n, ours, theirs in zip(
                    options.sizes, means[name], means["mira (TER)"], strict=True
                )
                if ours >= theirs
            ]
            print(f"{name} does not beat mira at |A| = {', '.join(behind) or 'none'}", flush=True)


if __name__ == "__main__":
    main()
