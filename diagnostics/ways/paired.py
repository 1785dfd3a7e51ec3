"""Two ways to choose from the same lists: the mean difference, its interval and its verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import format_fixed, has_width

#: The probability of all intervals, and how they are named.
PROBABILITY = 0.95
INTERVAL = f"{100 * PROBABILITY:g}% interval"
BETTER, WORSE, TIE = "better", "worse", "tie"
#: So many equal signs are significant at 5%: 2 / 2⁶ = 0.03.
SAME_SIGNS = 6
#: Lists that are added for the interval of an accuracy and of a difference of two (Agresti & Coull
#: 1998; Agresti & Caffo 2000): without them, intervals of few lists are too narrow.
ADDED, ADDED_DIFFERENCES = (0.0, 0.0, 1.0, 1.0), (-1.0, 1.0)
#: Prints a hyphen as a minus sign.
MINUS = str.maketrans("-", "−")


def estimate_interval(
    values: npt.ArrayLike, weight: Float64, added: Sequence[float] = ()
) -> tuple[float, float, float]:
    """Return the weighted mean of numbers and its 95% interval by Student's t.

    Equal numbers have no interval, NaN: that of a few would be of no width.

    The number of degrees of freedom is (Σ w)² / Σ w² − 1, for equal weights one less than that of
    the numbers.

    Args:
        values: (n,) numbers; NaN is left out.
        weight: (n,) their weights.
        added: further numbers of a typical weight, for the interval only.

    >>> [round(x, 3) for x in estimate_interval([1.0, np.nan, 2.0, 3.0, 4.0], np.ones(5))]
    [2.5, 0.446, 4.554]
    """
    from scipy.special import stdtrit

    x, is_known = np.asarray(values, np.float64), np.isfinite(values)
    sums = _sum_moments(x[is_known], weight[is_known])
    if not sums[0]:
        return math.nan, math.nan, math.nan
    mean, typical = float(sums[2] / sums[0]), float(sums[1] / sums[0])
    sums = sums + _sum_moments(np.array(added), np.full(len(added), typical))
    weights, squared, total, weighted, squares = sums.tolist()
    freedom, centre = weights**2 / squared - 1, total / weights
    residual = squares - 2 * centre * weighted + centre**2 * squared
    # All numbers are equal, but for rounding errors.
    if freedom < 1e-9 or residual <= 1e-12 * squares:
        return mean, math.nan, math.nan
    error = math.sqrt(residual / weights**2 * (freedom + 1) / freedom)
    quantile = float(stdtrit(math.inf if len(added) else freedom, (1 + PROBABILITY) / 2))
    return mean, centre - quantile * error, centre + quantile * error


def _sum_moments(x: Float64, w: Float64) -> Float64:
    """Return Σ w, Σ w², Σ w x, Σ w² x and Σ w² x²."""
    return np.array([part.sum() for part in (w, w**2, w * x, w**2 * x, (w * x) ** 2)])


def estimate_proportion(count: float, total: float) -> tuple[float, float]:
    """Return the 95% score interval of a proportion (Wilson 1927).

    Args:
        count: of successes.
        total: of trials, at least 1.

    >>> [round(end, 3) for end in estimate_proportion(8, 10)]
    [0.49, 0.943]
    """
    z = NormalDist().inv_cdf((1 + PROBABILITY) / 2)
    centre = (count + z**2 / 2) / (total + z**2)
    reach = z * math.sqrt(count * (total - count) / total + z**2 / 4) / (total + z**2)
    return max(centre - reach, 0.0), min(centre + reach, 1.0)


def decide(difference: float, low: float, high: float, lists: int) -> str:
    """Return whether a difference is `better` or `worse` than 0, or `tie` if its interval has 0.

    Where it is the same on all lists, there is no interval, and a sign test decides.

    Args:
        difference: higher is better.
        low: the lower end of its interval; NaN if there is none.
        high: the upper end.
        lists: the number of lists.

    >>> decide(0.5, 0.1, 0.9, 40), decide(0.5, -0.1, 1.1, 40), decide(-0.5, -0.5, -0.5, 5)
    ('better', 'tie', 'tie')
    """
    if not has_width(high - low, difference):
        low = high = difference if lists >= SAME_SIGNS else math.nan
    return BETTER if low > 0 else WORSE if high < 0 else TIE


def format_difference(
    difference: float, low: float, high: float, decimals: int
) -> tuple[str, str, str]:
    """Return the texts of a difference, of its interval, and of both; `–` if there is no interval.

    >>> format_difference(0.5, 0.25, 0.75, 2)
    ('+0.50', '+0.25 to +0.75', '+0.50, 95% interval +0.25 to +0.75')
    >>> format_difference(-2.0, -2.0, -2.0, 1)
    ('−2.0', '–', '−2.0')
    """
    words, *ends = (
        format_fixed(x, decimals, "+").translate(MINUS) for x in (difference, low, high)
    )
    if not has_width(high - low, difference):
        return words, "–", words
    interval = " to ".join(ends)
    return words, interval, f"{words}, {INTERVAL} {interval}"


def estimate_error(
    difference: Float64, weight: Float64, *, accuracy: bool = False
) -> tuple[float, float]:
    """Return a weighted mean difference and its standard error.

    With few lists often no choice differs. Therefore the error of an accuracy counts half a list
    more for each of the two, and one that both have right (Agresti & Min 2005).

    Args:
        difference: (lists,).
        weight: (lists,) of each list.
        accuracy: whether it is the difference of two accuracies.

    >>> [round(x, 3) for x in estimate_error(np.array([1.0, 0.0, 0.0, -1.0]), np.ones(4))]
    [0.0, 0.354]
    """
    mean = float(np.average(difference, weights=weight))
    added = weight.mean() if accuracy else 0.0
    variance = np.sum((weight * (difference - mean)) ** 2) + added**2
    return mean, float(np.sqrt(variance) / (weight.sum() + 2 * added))
