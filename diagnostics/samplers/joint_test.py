"""A permutation test of the joint distributions of a sampler and of a long reference run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist
from scipy.stats import rankdata

from bpa_ppl._runtime.arrays import Float32, Float64
from bpa_ppl.diagnostics.samplers.runs import select_independent
from bpa_ppl.errors import list_names
from bpa_ppl.posterior.draws import Draws

#: Random splits of the pooled draws; p-values are multiples of 1 / (SPLITS + 1).
SPLITS = 699
_MAX_DRAWS, _MAX_REFERENCE_DRAWS = 1000, 1500  # in the joint test, whose time is quadratic
#: Share of the squared loadings of a principal component that variables have which name it, at most
#: so many of them.
_MOSTLY, _VARIABLES_SHOWN = 0.9, 3
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
        moment: the moment that differs most: a mean, a variance or a correlation; of variables, not
            of their squares or principal components, if it is as significant.
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
    dependence that correlations do not show. The moments are correlations of variables and of their
    squares, and variances and correlations of principal components. The smallest of the p-values is
    adjusted by the same splits (Westfall & Young 1993).

    Args:
        draws: of a sampler, with the variables of the reference in the same order.
        reference: draws of a long run.
        seed: of the thinned draws and of the splits.

    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(2, 4, 250, 2))
    >>> correlated = np.stack([x[..., 0], 0.6 * x[..., 0] + 0.8 * x[..., 1]], axis=-1)
    >>> from bpa_ppl.posterior.draws import name_array
    >>> right, wrong, truth = (name_array(z, ("LM0", "WP0")) for z in (x, correlated, y))
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
    size, names = values.shape[1], draws.names
    named = _describe_components(directions[:, ::-1], names)
    correlations = _compare_covariances(standard, splits, _choose_pairs(standard), names)
    squared = [f"the square of {name}" for name in names]
    others = [
        _compare_covariances(squares, splits, _choose_pairs(squares), squared),
        _compare_covariances(components, splits, _list_pairs_of_components(size), named),
    ]
    tested = _find_largest([correlations, *others])
    p_values = np.array([_compute_p_values(x) for x in (distances, tested, neighbours)])
    smallest = p_values.min(axis=0)
    # Not tested here are means, and the variances of variables: they may be what differs most.
    axes = np.arange(size), np.arange(size)
    of_variables = [
        _compare_means(standard, splits, names),
        _compare_covariances(standard, splits, axes, names),
        correlations,
    ]
    others.append(_compare_means(components, splits, named))
    moment, difference, moment_p_value = _choose_moment(of_variables, others)
    return Distance(
        value=float(distances[0]),
        largest_null=float(distances[1:].max()),
        p_value=float(np.mean(smallest <= smallest[0])),
        draws=count,
        distance_p_value=float(p_values[0, 0]),
        moment=moment,
        difference=difference,
        moment_p_value=moment_p_value,
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


class _Moments(NamedTuple):
    """Moments of the two groups of each split.

    Attributes:
        names: (moments,) in words.
        differences: (splits, moments) of the two groups.
        errors: (moments,) their standard errors, from the pooled draws; infinite for constants.
    """

    names: list[str]
    differences: Float64
    errors: Float64

    @property
    def ratios(self) -> Float64:
        """(splits, moments) the absolute differences in standard errors."""
        return np.abs(self.differences / self.errors)


def _compare_means(
    values: Float64, splits: npt.NDArray[np.bool_], names: Sequence[str]
) -> _Moments:
    """Return the means of the columns, (n, Q), of the two groups of each split."""
    count = splits[0].sum()
    both = 1 / count + 1 / (len(values) - count)
    sums = (splits.astype(np.float32) @ values.astype(np.float32)).astype(np.float64)
    errors = values.std(axis=0) * np.sqrt(both)
    means = [f"the mean of {name}" for name in names]
    return _Moments(means, sums * both, np.where(errors > 0, errors, np.inf))


def _compare_covariances(
    values: Float64, splits: npt.NDArray[np.bool_], pairs: Pairs, names: Sequence[str]
) -> _Moments:
    """Return covariances of the two groups of each split.

    Args:
        values: (n, Q), centred.
        splits: (splits, n).
        pairs: the columns of each covariance; a variance is that of a column with itself.
        names: (Q,) of the columns.
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
    covariances = [
        f"the variance of {names[a]}" if a == b else f"the correlation of {names[a]} and {names[b]}"
        for a, b in zip(i.tolist(), j.tolist(), strict=True)
    ]
    return _Moments(covariances, differences, np.where(errors > 0, errors, np.inf))


def _find_largest(moments: Sequence[_Moments]) -> Float64:
    """Return the largest difference of a moment in standard errors, (splits,)."""
    return np.asarray(np.hstack([one.ratios for one in moments]).max(axis=1))


def _choose_moment(
    of_variables: Sequence[_Moments], others: Sequence[_Moments]
) -> tuple[str, float, float]:
    """Return the moment that differs most, its difference, and its p-value adjusted for all.

    Moments of variables are easier to understand: one of them is chosen if it is as significant.
    """
    largest = _find_largest([*of_variables, *others])
    extremes = []
    for moments in (of_variables, [*of_variables, *others]):
        ratios = np.hstack([one.ratios[0] for one in moments])
        differences = np.hstack([one.differences[0] for one in moments])
        worst = int(ratios.argmax())
        name = [name for one in moments for name in one.names][worst]
        extremes.append((name, float(differences[worst]), float(np.mean(largest >= ratios[worst]))))
    return min(extremes, key=lambda moment: moment[2])


def _describe_components(directions: Float64, names: Sequence[str]) -> list[str]:
    """Return a name of each principal component, with the variables that it mostly consists of.

    These are the fewest that have nine tenths of its squared loadings, and at most three.

    Args:
        directions: (Q, components) the loadings.
        names: (Q,) of the variables.

    >>> _describe_components(np.array([[0.6, -0.8], [0.8, 0.6]]), ("a", "b"))
    ['principal component 1 (mostly a, b)', 'principal component 2 (mostly a, b)']
    """
    described = []
    for number, loadings in enumerate(directions.T, 1):
        order = np.argsort(-np.abs(loadings), kind="stable")
        needed = np.searchsorted(np.cumsum(loadings[order] ** 2), _MOSTLY * (loadings @ loadings))
        mostly = list_names(
            [names[k] for k in sorted(order[: min(int(needed) + 1, _VARIABLES_SHOWN)])]
        )
        described.append(f"principal component {number} (mostly {mostly})")
    return described


def _compute_p_values(statistics: Float64) -> Float64:
    """Return for each the share of all that are at least as large."""
    return np.asarray(rankdata(-statistics, method="max") / len(statistics))
