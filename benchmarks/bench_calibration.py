"""Calibration in simulations: the intervals of `pairs`.

    python benchmarks/bench_calibration.py [--replications 200]

Printed is the share of 50% and 90% intervals that have the true weight, for exponents c of the
composite likelihood; with k / 2 all pairs of a list count as independent. The last column is the
default for judgements, with pairs weighted by the power ¾ of the difference in gain. Gains are
scores plus Gumbel noise (a Plackett-Luce ranking) or normal noise; weights are drawn from the prior
N(0, s² I).
"""

from __future__ import annotations

import argparse
from itertools import product

import numpy as np
from measuring import Table, run_tables
from pair_coverage import coverage

EXPONENTS = (0.5, 1.0, 1.25, 1.5, 2.0, None)
#: The default for judgements: its exponent, and its power of the difference in gain.
DEFAULT = (0.25, 0.75)


HEADS = (*(str(c or "k / 2") for c in EXPONENTS), "default")


def pairs(options: argparse.Namespace) -> None:
    """Print the coverage of intervals under `pairs`."""
    count = options.replications
    table = Table(f"{count} data sets: 50% / 90% with c =", *HEADS)
    for graded, scale, size, lists in product((False, True), (0.3, 1.0), (5, 15), (20, 50)):
        cells = []
        for exponent, power in (*((c, 0.0) for c in EXPONENTS), DEFAULT):
            rng = np.random.default_rng(0)
            settings = {"size": size, "lists": lists, "graded": graded, "scale": scale}
            settings |= {"count": count, "power": power}
            half, ninety = 100 * coverage(rng, exponent or size / 2, **settings)
            cells.append(f"{half:.0f} / {ninety:.0f}")
        noise = "normal" if graded else "Gumbel"
        table.row(f"{noise}, s = {scale}, {lists} lists of {size}", *cells)


if __name__ == "__main__":
    run_tables(__doc__, (pairs,), needs_data=False, replications=200)
