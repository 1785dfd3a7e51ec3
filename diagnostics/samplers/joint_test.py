"""A permutation test of the joint distributions of a sampler and of a long reference run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from bpa_ppl._runtime.arrays import Float32, Float64
from bpa_ppl.diagnostics.samplers.runs import select_independent
from bpa_ppl.posterior.draws import Draws

#: Random splits of the pooled draws; p-values are multiples of 1 / (SPLITS + 1).
SPLITS = 699
_MAX_DRAWS, _MAX_REFERENCE_DRAWS = 1000, 1500  # in the joint test, whose time is quadratic
_NEIGHBOURS = 10  # nearest draws of each draw, in the joint test
_MAX_PAIRS = 2000  # of variables, whose correlations are compared: all of 63 variables
Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # of positions of columns


@dataclass(frozen=True)
class Distance:
    """The joint distributions of a sampler and of the reference, compared by permutation.

    Attributes:
        value: the energy distance, in coordinates in which the draws have the identity as
            covariance: about 0.75 times a difference of means, in posterior standard deviations.
        largest_null: the largest distance of random splits of the same draws.
        p_value: the probability that random splits differ as much in the distance, in a moment or
            in the nearest neighbours, adjusted for the three.
        draws: the number of nearly independent draws of the sampler that were compared.
        distance_p_value: of the distance alone.
        moment: the moment that differs most; a correlation of weights if it is as significant.
        difference: of this moment, where the pooled draws have the variance 1.
        moment_p_value: of this moment, adjusted for all of them.
        neighbours: the share of the nearest neighbours of all draws that are of the same group.
        neighbours_p_value: of this share.
    """

    value: float
    largest_null: float
    p_value: float
    draws: int
    distance_p_value: float
    moment: str
    difference: float
    moment_p_value: float
    neighbours: float
    neighbours_p_value: float


def measure_joint_distance(draws: Draws, reference: Draws, seed: int = 0) -> Distance:
    """Test whether a sampler and a reference have the same joint distribution.

    Both are thinned to nearly independent draws, which can be exchanged if the distributions are
    the same. Three statistics are compared with their values for random splits of the pooled draws:
    the energy distance (Székely & Rizzo 2013), for any difference; the largest difference of a
    moment in standard errors, for correlations, to which the distance is insensitive in many
    dimensions; and the share of nearest neighbours that are of the same group (Schilling 1986), for
    dependence that correlations do not show. The moments are correlations of weights and of their
    squares, and variances and correlations of principal components. The smallest of the p-values is
    adjusted by the same splits (Westfall & Young 1993).

    Args:
        draws: of a sampler, with the features of the reference in the same order.
        reference: draws of a long run.
        seed: of the thinned draws and of the splits.

    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(2, 4, 500, 2))
    >>> correlated = np.stack([x[..., 0], 0.6 * x[..., 0] + 0.8 * x[..., 1]], axis=-1)
    >>> right, wrong, truth = (Draws({"weights": z}, ("LM0", "WP0")) for z in (x, correlated, y))
    >>> [measure_joint_distance(draws, truth).p_value > 0.01 for draws in (right, wrong)]
    [True, False]
    """
    rng = np.random.default_rng(seed)
    ours = select_independent(draws, _MAX_DRAWS, rng)
    theirs = select_independent(reference, _MAX_REFERENCE_DRAWS, rng)
    count, values = len(ours), np.concatenate([ours, theirs])
    order = np.arange(len(values))
    # Each row marks the draws of one group: the first those of the sampler, the others a random
    # split. All that follows depends on the pooled draws only, as a permutation test requires.
    splits = np.array([order < count, *(rng.permutation(order) < count for _ in range(SPLITS))])
    standard = _standardise(values)
    _, directions = np.linalg.eigh(standard.T @ standard)
    components = _standardise(standard @ directions[:, ::-1])  # the widest first
    between = cdist(components, components).astype(np.float32)
    distances = _energy_distances(between, splits)
    neighbours = _same_neighbours(between, splits)
    squares = _standardise(np.minimum(standard**2, 9))
    tables = {"": standard, "the squares of ": squares, "principal components ": components}
    pairs = [
        _choose_pairs(standard),
        _choose_pairs(squares),
        _list_pairs_of_components(values.shape[1]),
    ]
    moments = [
        _covariance_differences(x, splits, of) for x, of in zip(tables.values(), pairs, strict=True)
    ]
    differences, errors = map(np.hstack, zip(*moments, strict=True))
    largest = np.abs(differences / errors).max(axis=1)
    p_values = np.array([_compute_p_values(x) for x in (distances, largest, neighbours)])
    smallest = p_values.min(axis=0)
    ratios = np.abs(differences[0] / errors)
    worst, count_of_pairs = int(ratios.argmax()), len(pairs[0][0])
    if count_of_pairs and np.mean(largest >= ratios[:count_of_pairs].max()) <= p_values[1, 0]:
        worst = int(ratios[:count_of_pairs].argmax())  # as significant, and easier to understand
    labels = [draws.features, draws.features, range(1, values.shape[1] + 1)]
    names = [
        f"variance of principal component {names[a]}"
        if a == b
        else f"correlation of {of}{names[a]} and {names[b]}"
        for of, names, (i, j) in zip(tables, labels, pairs, strict=True)
        for a, b in zip(i.tolist(), j.tolist(), strict=True)
    ]
    return Distance(
        value=float(distances[0]),
        largest_null=float(distances[1:].max()),
        p_value=float(np.mean(smallest <= smallest[0])),
        draws=count,
        distance_p_value=float(p_values[0, 0]),
        moment=f"the {names[worst]}",
        difference=float(differences[0, worst]),
        moment_p_value=float(p_values[1, 0]),
        neighbours=float(neighbours[0]),
        neighbours_p_value=float(p_values[2, 0]),
    )


def _standardise(values: Float64) -> Float64:
    """Return centred columns with variance 1, (n, Q); constant columns are 0."""
    centred = values - values.mean(axis=0)
    deviation = centred.std(axis=0)
    # Rounding errors of a constant column are not variation.
    constant = deviation <= 1e-6 * deviation.max()
    return np.asarray(np.where(constant, 0.0, centred / np.where(constant, 1.0, deviation)))


def _choose_pairs(values: Float64) -> Pairs:
    """Return all pairs of columns; of very many those with the largest correlations.

    A correlation that one group has, and the other not, is half as large in the pooled draws.
    """
    i, j = np.triu_indices(values.shape[1], 1)
    if len(i) > _MAX_PAIRS:
        size = np.abs(values.T @ values)[i, j]
        largest = np.sort(np.argpartition(size, -_MAX_PAIRS)[-_MAX_PAIRS:])
        i, j = i[largest], j[largest]
    return i, j


def _list_pairs_of_components(count: int) -> Pairs:
    """Return all pairs of principal components with themselves, and with others, the widest."""
    i, j = np.triu_indices(count)
    kept = np.argsort(np.where(i == j, -1, i + j), kind="stable")[: max(_MAX_PAIRS, count)]
    return i[np.sort(kept)], j[np.sort(kept)]


def _same_neighbours(distances: Float32, splits: npt.NDArray[np.bool_]) -> Float64:
    """Return the share of the nearest neighbours of all draws in the same group, (splits,)."""
    farther, rows, shares = distances.copy(), np.arange(len(distances)), list[Float64]()
    np.fill_diagonal(farther, np.inf)
    for _ in range(_NEIGHBOURS):
        nearest = farther.argmin(axis=1)
        shares.append((splits == splits[:, nearest]).mean(axis=1))
        farther[rows, nearest] = np.inf
    return np.asarray(np.mean(shares, axis=0))


def _energy_distances(distances: Float32, splits: npt.NDArray[np.bool_]) -> Float64:
    """Return the energy distance of the two groups of each split, (splits,).

    It is the square root of 2 E|X − Y| − E|X − X'| − E|Y − Y'|, as in SciPy.

    Args:
        distances: (n, n) between draws.
        splits: (splits, n).
    """
    groups = splits.astype(np.float32)
    count = splits[0].sum()
    rest = len(distances) - count
    from_group = groups @ distances  # the sum of the distances of each draw to those of the group
    total = distances.sum(dtype=np.float64)
    of_group = from_group.sum(axis=1, dtype=np.float64)
    inside = (from_group * groups).sum(axis=1, dtype=np.float64)
    between, outside = of_group - inside, total - 2 * of_group + inside
    squared = 2 * between / (count * rest) - inside / count**2 - outside / rest**2
    return np.asarray(np.sqrt(np.maximum(squared, 0.0)))


def _covariance_differences(
    values: Float64, splits: npt.NDArray[np.bool_], pairs: Pairs
) -> tuple[Float64, Float64]:
    """Return differences of covariances of the two groups of each split, and standard errors.

    Args:
        values: (n, Q), centred.
        splits: (splits, n).
        pairs: the columns of each covariance.

    Returns:
        (splits, pairs), and (pairs,) from the pooled draws; infinite for constants.
    """
    count = splits[0].sum()
    rest = len(values) - count
    groups = splits.astype(np.float32)
    i, j = pairs
    products = values[:, i] * values[:, j]
    products -= products.mean(axis=0)
    # The sums over one group are those over the other with the opposite sign.
    sums, of_products = (groups @ x.astype(np.float32) for x in (values, products))
    differences = of_products.astype(np.float64) * (1 / count + 1 / rest)
    differences -= sums[:, i] * sums[:, j] * (1 / count**2 - 1 / rest**2)
    errors = products.std(axis=0) * np.sqrt(1 / count + 1 / rest)
    return differences, np.where(errors > 0, errors, np.inf)


def _compute_p_values(statistics: Float64) -> Float64:
    """Return for each the share of all that are at least as large."""
    return np.asarray(rankdata(-statistics, method="max") / len(statistics))
