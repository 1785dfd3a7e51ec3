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
from scipy.special import expit
from scipy.stats import norm

from bpa_ppl._runtime.arrays import Float64

LEVELS = (0.5, 0.9)
FEATURES = 4


def coverage(
    rng: np.random.Generator,
    exponent: float,
    *,
    size: int,
    lists: int,
    count: int,
    graded: bool = False,
    scale: float = 1.0,
    power: float = 0.0,
) -> Float64:
    """Return the share of intervals at 50 % and 90 % that have the true weight, over data sets.

    `graded` adds normal noise to the scores in place of Gumbel's, whose ranking is Plackett–Luce's.
    """
    true = scale * rng.normal(size=(count, FEATURES))
    features = rng.normal(size=(count, lists, size, FEATURES))
    shape = features.shape[:-1]
    noise = rng.normal(size=shape) * np.pi / np.sqrt(6) if graded else rng.gumbel(size=shape)
    gain = np.einsum("rlkf,rf->rlk", features, true) + noise
    mean, covariance = laplace(features, gain, exponent, scale, power)
    z = np.abs(mean - true) / np.sqrt(np.einsum("rff->rf", covariance))
    return np.array([np.mean(z < norm.ppf(0.5 + level / 2)) for level in LEVELS])


def laplace(
    features: Float64, gain: Float64, exponent: float, scale: float = 1.0, power: float = 0.0
) -> tuple[Float64, Float64]:
    """Return mode and covariance of the posterior of each data set, (R, Q) and (R, Q, Q).

    Args:
        features: (R, lists, k, Q).
        gain: (R, lists, k), without ties.
        exponent: c.
        scale: of the prior N(0, scale² I).
        power: as for `coverage`.
    """
    count, _, size, columns = features.shape
    first, second = np.triu_indices(size, 1)
    difference = gain[..., first] - gain[..., second]
    lead = np.sign(difference)[..., None] * (features[:, :, first] - features[:, :, second])
    lead = lead.reshape(count, -1, columns)
    unit = np.sqrt(gain.var(axis=-1).mean(axis=1))  # within the lists of a data set
    weight = (np.abs(difference) / unit[:, None, None]) ** power
    factor = 2 * exponent / size * weight.reshape(count, -1)
    mode = np.zeros((count, columns))
    for _ in range(25):
        p = expit(-(lead @ mode[..., None])[..., 0])
        gradient = ((factor * p)[:, None] @ lead)[:, 0] - mode / scale**2
        weighted = lead * (factor * p * (1 - p))[..., None]
        precision = np.eye(columns) / scale**2 + weighted.swapaxes(1, 2) @ lead
        mode += np.linalg.solve(precision, gradient[..., None])[..., 0]
    assert np.abs(gradient).max() < 1e-6
    return mode, np.linalg.inv(precision)


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
