"""Simulation-based calibration of samplers: run, test of uniform ranks, verdict and page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.progress import Reporter, reporter
from bpa_ppl._runtime.workers import parallel_workers
from bpa_ppl.diagnostics.pages.figures import Layer, choose_style, plot, plots
from bpa_ppl.diagnostics.pages.page import (
    Headline,
    Outcome,
    Section,
    Table,
    describe_provenance,
    page,
)
from bpa_ppl.diagnostics.samplers.estimates import holm, resample_independent, smallest_ess
from bpa_ppl.errors import UsageError
from bpa_ppl.posterior.draws import WEIGHTS, Draws

#: The probability that an exact sampler fails.
LEVEL = 0.01
#: The number of draws of each posterior among which the truth is ranked.
RANKED = 99
_POINTS = 100  # at which an empirical distribution function (ECDF) is evaluated


class Replication(NamedTuple):
    """True values, and draws of the posterior given data simulated from them.

    Attributes:
        truth: (quantities,) such as the weights and their log-likelihood.
        draws: (chains, draws, quantities).
        log_weight: (chains, draws) log importance weights, or None.

    >>> one = Replication(truth=[0.3], draws=np.zeros((1, 99, 1)))
    >>> one.log_weight is None
    True
    """

    truth: Any
    draws: Any
    log_weight: Any = None


@dataclass(frozen=True, eq=False)
class Calibration(Outcome):
    """The result of simulation-based calibration; `bool` is the verdict, `str` the table.

    Attributes:
        sampler: its name.
        names: of the quantities.
        ranks: (replications, quantities) of the truth among the draws, scaled to [0, 1]: uniform
            if the sampler is exact.
        p_values: (quantities,) of uniformity, adjusted by Holm.
        ess: the smallest effective sample size of a posterior, for its worst quantity.

    >>> ranks = np.linspace(0.005, 0.995, 100)[:, None]
    >>> result = Calibration("nuts", ("LM0",), ranks, np.array([1.0]), 400.0)
    >>> print(result)
    nuts, 100 replications: calibrated
    quantity  uniform ranks
    LM0       p = 1
    >>> result.passed, result.as_dict()["passed"]
    (True, True)
    """

    sampler: str
    names: tuple[str, ...]
    ranks: Float64
    p_values: Float64
    ess: float

    @property
    def passed(self) -> bool:
        """Whether the ranks of all quantities are uniform, at a joint level of 1%."""
        return bool(np.all(self.p_values >= LEVEL))

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain data, for JSON."""
        return {
            "sampler": self.sampler,
            "passed": self.passed,
            "level": LEVEL,
            "replications": len(self.ranks),
            "smallest_ess": self.ess,
            "p_values": dict(zip(self.names, self.p_values.tolist(), strict=True)),
            "ranks": {name: self.ranks[:, k].tolist() for k, name in enumerate(self.names)},
        }

    def _summarise(self) -> tuple[str, Table, list[str]]:
        """Return the verdict, the p-value of each quantity, and notes."""
        rows = [
            (name, f"p = {p:.3g}" + ("" if p >= LEVEL else f"  FAILED: {_describe_fault(ranks)}"))
            for name, p, ranks in zip(self.names, self.p_values, self.ranks.T, strict=True)
        ]
        verdict = "calibrated" if self.passed else "NOT calibrated"
        title = f"{self.sampler}, {len(self.ranks)} replications: {verdict}"
        caveat = f"a posterior had {self.ess:.0f} effective draws for {RANKED} ranks: raise draws"
        passed = (self.p_values >= LEVEL).tolist()
        table = Table(("quantity", "uniform ranks"), rows, passed=passed)
        return title, table, [caveat] if self.ess < RANKED else []

    def section(self) -> Section:
        """Return the section of a page: the distribution of the ranks, and the table."""
        title, table, notes = self._summarise()
        points, lower, upper = uniform_bands(len(self.ranks), _PROBABILITY)
        band = Layer(points, upper - points, "band", lower - points)
        pictures = []
        for name, ranks in zip(self.names, self.ranks.T, strict=True):
            share = np.searchsorted(np.sort(ranks), points, side="right") / len(ranks)
            pictures.append(plot(name, [band, Layer(points, share - points, choose_style(0))]))
        return Section(title, [plots(pictures, _READING), table, *notes])


def run_calibration(
    replicate: Callable[[int], Replication],
    names: Sequence[str],
    *,
    replications: int = 200,
    sampler: str = "sampler",
    seed: int = 0,
    jobs: int = 1,
    progress: bool | Reporter = False,
) -> Calibration:
    """Run simulation-based calibration (Talts et al. 2018; Modrák et al. 2023).

    If truths are drawn from the prior, data from the model given the truth, and draws from the
    posterior given the data, the rank of the truth among independent draws is uniform.

    Args:
        replicate: makes replication number i, which depends only on that number.
        names: of the quantities that it returns.
        replications: their number; 200 detect a bias of 1/4 of a posterior standard deviation.
        sampler: its name.
        seed: of the selection of draws, and of ties.
        jobs: the number of threads.
        progress: True draws a bar on standard error.

    Raises:
        UsageError: if there are too few replications.

    >>> def exact(i):
    ...     rng = np.random.default_rng(i)
    ...     truth = rng.normal()
    ...     data = rng.normal(truth)
    ...     return Replication([truth], rng.normal(data / 2, 0.5**0.5, size=(1, 99, 1)))
    >>> bool(run_calibration(exact, ["location"], replications=100))
    True
    """
    if replications < 20:
        message = f"replications must be at least 20, not {replications}"
        raise UsageError(message, parameter="replications")
    columns = tuple(names)
    from joblib import delayed

    ranks, sizes = np.empty((replications, len(columns))), np.empty(replications)
    # Threads, not processes, because they share compiled programs.
    workers = parallel_workers(jobs, threads=True)
    with reporter(progress, f"calibrate {sampler}") as report, workers as parallel:
        for i, run in enumerate(parallel(delayed(replicate)(i) for i in range(replications))):
            ranks[i], sizes[i] = _rank_true_values(run, columns, np.random.default_rng([seed, i]))
            report(i + 1, replications, "replications")
    p_values = holm([uniformity_test(ranks[:, k]) for k in range(len(columns))])
    return Calibration(sampler, columns, ranks, p_values, float(sizes.min()))


def _rank_true_values(
    run: Replication, names: tuple[str, ...], rng: np.random.Generator
) -> tuple[Float64, float]:
    """Return the ranks of the true values, (quantities,) in [0, 1], and the smallest ESS.

    A rank from 0 to L gets a random position in its part of the interval, so that ranks are
    exactly uniform. Ties, such as in a chain that does not move, are broken at random.
    """
    log_weight = None if run.log_weight is None else np.asarray(run.log_weight, np.float64)
    kind = "chains" if log_weight is None else "weighted"
    draws = Draws({WEIGHTS: np.asarray(run.draws)}, names, kind, log_weight)
    sample, truth = resample_independent(draws, RANKED, rng), np.asarray(run.truth, np.float64)
    tied = (sample == truth).sum(axis=0)
    rank = (sample < truth).sum(axis=0) + rng.integers(0, tied + 1)
    return (rank + rng.uniform(size=len(rank))) / (RANKED + 1), smallest_ess(draws)


def render_calibration(
    calibrations: Sequence[Calibration], *, made: Mapping[str, str] | None = None, command: str = ""
) -> str:
    """Return a self-contained HTML page about the calibration of some samplers.

    Args:
        calibrations: one a sampler.
        made: its provenance: data, settings, seed.
        command: that reproduces it.
    """
    sections = [calibration.section() for calibration in calibrations]
    wrong = [c.sampler for c in calibrations if not c]
    summary = Headline(f"Calibrated: {', '.join(c.sampler for c in calibrations)}.", True)
    if wrong:
        summary = Headline(f"NOT calibrated: {', '.join(wrong)}.", False)
    sections.append(describe_provenance(made or {}, command, [_METHOD]))
    return page("Samplers calibrated", summary, sections)


def _describe_fault(ranks: Float64) -> str:
    """Describe non-uniform ranks by the moment that deviates most from that of uniform ones."""
    # Both in standard errors times √N: a uniform value has variance 1/12, and its squared deviation
    # from 1/2 has variance 1/180.
    location = (ranks.mean() - 1 / 2) * np.sqrt(12)
    scale = (np.mean((ranks - 1 / 2) ** 2) - 1 / 12) * np.sqrt(180)
    if abs(location) > abs(scale):
        return "the draws are too small" if location > 0 else "the draws are too large"
    return "the draws are too narrow" if scale > 0 else "the draws are too wide"


_PROBABILITY = 0.95
_METHOD = (
    "Weights are drawn from the prior, oracles from the model given the weights, and the sampler "
    f"is run on them; the true values are ranked among {RANKED} of its draws. The ranks are "
    "uniform if the sampler draws from the posterior. p is the p-value of uniformity, with Holm's "
    "correction for the number of quantities."
)
_READING = (
    "The ECDF of the ranks minus that of uniform ranks. Grey: the band that contains the whole "
    f"line of an exact sampler with a probability of {100 * _PROBABILITY:g}%, for one quantity. A "
    "line above the band at the left: draws too large; below: too small; above and then below: "
    "too narrow; below and then above: too wide."
)


def _ecdf_grid(count: int) -> Float64:
    """Return the points in (0, 1) at which the ECDF of `count` values is evaluated."""
    points = min(count, _POINTS)
    return np.arange(1, points) / points


def uniformity_test(values: npt.ArrayLike) -> float:
    """Return the p-value of the hypothesis that values in [0, 1] are independent and uniform.

    It is the probability that the ECDF of a uniform sample leaves the narrowest simultaneous bands
    that contain the ECDF of these values (Säilynoja, Bürkner & Vehtari 2022), computed exactly.

    Args:
        values: (N,).

    >>> u = np.random.default_rng(0).uniform(size=200)
    >>> uniformity_test(u) > 0.05 > 1e-6 > uniformity_test(u**2)
    True
    """
    from scipy.stats import binom

    u = np.sort(np.asarray(values, np.float64))
    z = _ecdf_grid(len(u))
    below = np.searchsorted(u, z, side="right")
    tail = np.minimum(binom.cdf(below, len(u), z), binom.sf(below - 1, len(u), z))
    return float(min(1.0, max(0.0, 1.0 - _stays_inside(len(u), 2 * tail.min() * (1 - 1e-9)))))


def uniform_bands(count: int, probability: float = 0.95) -> tuple[Float64, Float64, Float64]:
    """Return simultaneous bands of the empirical distribution function of uniform values.

    Args:
        count: the number N of values.
        probability: that the whole function lies within the bands.

    Returns:
        points, lower and upper bounds at them, all (points,).

    >>> points, lower, upper = uniform_bands(100)
    >>> bool((lower < points).all() and (points < upper).all())
    True
    """
    lower, upper = _compute_limits(count, _find_level(count, probability))
    return _ecdf_grid(count), lower / count, upper / count


@lru_cache(maxsize=32)
def _find_level(count: int, probability: float) -> float:
    """Return the pointwise level γ of bands with a given simultaneous probability."""
    from scipy.optimize import brentq

    return float(brentq(lambda g: _stays_inside(count, g) - probability, 1e-12, 1.0, xtol=1e-7))


def _compute_limits(count: int, level: float) -> tuple[Int64, Int64]:
    """Return bounds of the number of values below each point, at a pointwise level."""
    from scipy.stats import binom

    z = _ecdf_grid(count)
    lower, upper = binom.ppf(level / 2, count, z), binom.isf(level / 2, count, z)
    return lower.astype(np.int64), upper.astype(np.int64)


def _stays_inside(count: int, level: float) -> float:
    """Return the probability that N uniform values stay within the pointwise bands everywhere.

    The counts below successive points are a Markov chain with binomial increments. Paths that
    leave the bands are dropped.
    """
    from scipy.stats import binom

    lower, upper = _compute_limits(count, level)
    z = np.concatenate([[0.0], _ecdf_grid(count)])
    reached, probability = np.zeros(1, np.int64), np.ones(1)
    for step, (low, high) in enumerate(zip(lower, upper, strict=True)):
        following = np.arange(low, high + 1)
        share = (z[step + 1] - z[step]) / (1 - z[step])
        moves = binom.pmf(following[None, :] - reached[:, None], count - reached[:, None], share)
        reached, probability = following, probability @ moves
    return float(probability.sum())
