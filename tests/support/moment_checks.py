"""Compare draws with a known distribution, within their Monte Carlo standard errors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np
import numpy.typing as npt

from bpa_ppl.posterior.arviz_functions import import_arviz

#: The largest accepted deviation; larger ones occur by chance once in two million.
STANDARD_ERRORS = 5.0


def assert_mean(draws: npt.ArrayLike, truth: float, ess: float, what: str = "") -> None:
    """Assert that draws (chains, draws) have this mean and at least `ess` effective draws."""
    values = np.asarray(draws, np.float64)
    effective = float(import_arviz().ess(values, method="mean"))
    assert effective >= ess, f"{what}: only {effective:.0f} effective draws"
    error = (values.mean() - truth) / (values.std() / np.sqrt(effective))
    assert abs(error) <= STANDARD_ERRORS, f"{what}: {values.mean():.4f}, not {truth:.4f}"


def assert_equal_moments(
    one: npt.ArrayLike, other: npt.ArrayLike, ess: float = 400, what: str = ""
) -> None:
    """Assert that draws (chains, draws, …) of two samplers have the same means and variances."""
    samples = [np.asarray(draws, np.float64) for draws in (one, other)]
    samples = [draws.reshape(*draws.shape[:2], -1) for draws in samples]
    centre = np.mean([draws.mean(axis=(0, 1)) for draws in samples], axis=0)
    for cell in range(len(centre)):
        for power in (1, 2):
            means, variances = [], []
            for draws in samples:
                values = (draws[..., cell] - centre[cell]) ** power
                effective = float(import_arviz().ess(values, method="mean"))
                assert effective >= ess, f"{what}: only {effective:.0f} effective draws"
                means.append(values.mean())
                variances.append(values.var() / effective)
            error = (means[0] - means[1]) / np.sqrt(sum(variances))
            assert abs(error) <= STANDARD_ERRORS, f"{what} {cell}: {means} of power {power}"


def moments(
    draws: npt.ArrayLike, mean: npt.ArrayLike, covariance: npt.ArrayLike
) -> Iterator[tuple[str, npt.NDArray[np.float64], float]]:
    """Yield what each moment of draws (…, d) is, the values whose mean it is, and its truth."""
    values, centre = np.asarray(draws, np.float64), np.atleast_1d(np.asarray(mean, np.float64))
    spread = np.asarray(covariance, np.float64).reshape(len(centre), len(centre))
    for i in range(len(centre)):
        yield f"mean of {i}", values[..., i], centre[i]
    deviations = values - centre
    for i, j in combinations_with_replacement(range(len(centre)), 2):
        yield f"covariance of {i} and {j}", deviations[..., i] * deviations[..., j], spread[i, j]


def assert_moments(
    draws: npt.ArrayLike, mean: npt.ArrayLike, covariance: npt.ArrayLike, ess: float = 400
) -> None:
    """Assert that draws (chains, draws, d) have this mean (d,) and covariance (d, d)."""
    for what, values, truth in moments(draws, mean, covariance):
        assert_mean(values, truth, ess, what)


def assert_weighted_moments(
    draws: npt.ArrayLike,
    log_weight: npt.ArrayLike,
    mean: npt.ArrayLike,
    covariance: npt.ArrayLike,
    ess: float = 400,
) -> None:
    """Assert that weighted independent draws (draws, d) have this mean and covariance."""
    weight = np.exp(np.asarray(log_weight, np.float64) - np.max(log_weight))
    weight /= weight.sum()
    assert 1 / np.sum(weight**2) >= ess, "too few effective draws"
    for what, values, truth in moments(draws, mean, covariance):
        error = np.sqrt(np.sum(weight**2 * (values - truth) ** 2))
        assert abs(weight @ (values - truth)) <= STANDARD_ERRORS * error, what
