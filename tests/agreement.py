"""Do draws agree with a known distribution, by as much as their number can tell?"""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt

from bpa_ppl.posterior import import_arviz

#: Beyond so many standard errors a sampler is wrong: by chance once in two million.
STANDARD_ERRORS = 5.0


def assert_mean(draws: npt.ArrayLike, truth: float, ess: float, what: str = "") -> None:
    """Hold the mean of (chains, draws) against the truth; too few effective draws fail as well."""
    values = np.asarray(draws, np.float64)
    effective = float(import_arviz().ess(values, method="mean"))
    assert effective >= ess, f"{what}: {effective:.0f} effective draws cannot tell"
    error = (values.mean() - truth) / (values.std() / np.sqrt(effective))
    assert abs(error) <= STANDARD_ERRORS, f"{what}: {values.mean():.4f}, not {truth:.4f}"


def assert_moments(
    draws: npt.ArrayLike, mean: npt.ArrayLike, covariance: npt.ArrayLike, ess: float = 400
) -> None:
    """Hold (chains, draws, d) against a mean (d,) and a covariance (d, d)."""
    values, centre = np.asarray(draws, np.float64), np.atleast_1d(np.asarray(mean, np.float64))
    spread = np.asarray(covariance, np.float64).reshape(len(centre), len(centre))
    for i in range(len(centre)):
        assert_mean(values[..., i], centre[i], ess, f"mean of {i}")
    deviations = values - centre
    for i, j in combinations_with_replacement(range(len(centre)), 2):
        product = deviations[..., i] * deviations[..., j]
        assert_mean(product, spread[i, j], ess, f"covariance of {i} and {j}")


def assert_weighted_moments(
    draws: npt.ArrayLike,
    log_weight: npt.ArrayLike,
    mean: npt.ArrayLike,
    covariance: npt.ArrayLike,
    ess: float = 400,
) -> None:
    """Hold independent draws, (draws, d), with importance weights against mean and covariance."""
    values, centre = np.asarray(draws, np.float64), np.atleast_1d(np.asarray(mean, np.float64))
    spread = np.asarray(covariance, np.float64).reshape(len(centre), len(centre))
    weight = np.exp(np.asarray(log_weight, np.float64) - np.max(log_weight))
    weight /= weight.sum()
    assert 1 / np.sum(weight**2) >= ess, "too few effective draws to tell"
    products = [(i, j) for i, j in combinations_with_replacement(range(len(centre)), 2)]
    deviations = values - centre
    truths = [*np.zeros(len(centre)), *(spread[i, j] for i, j in products)]
    columns = [*deviations.T, *(deviations[:, i] * deviations[:, j] for i, j in products)]
    for column, truth in zip(columns, truths, strict=True):
        error = np.sqrt(np.sum(weight**2 * (column - truth) ** 2))
        assert abs(weight @ column - truth) <= STANDARD_ERRORS * error
