"""Simulation-based calibration: does a sampler find back what its data were made from?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bpa_ppl.diagnostics.estimates import independent, smallest_ess
from bpa_ppl.diagnostics.significance import holm, uniformity
from bpa_ppl.errors import UsageError
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.tables import text_table
from bpa_ppl.workers import parallel_workers

#: The probability of finding fault with an exact sampler.
LEVEL = 0.01
#: Draws of each posterior among which the truth is ranked.
RANKED = 99


class Replication(NamedTuple):
    """One truth, and the draws of the posterior given data made from it.

    Attributes:
        truth: (quantities,) such as the weights and their log-likelihood.
        draws: (chains, draws, quantities) of the same.
        log_weight: (chains, draws) of importance samples, or None.

    >>> one = Replication(truth=[0.3], draws=np.zeros((1, 99, 1)))
    >>> one.log_weight is None
    True
    """

    truth: Any
    draws: Any
    log_weight: Any = None


@dataclass(frozen=True, eq=False)
class Calibration:
    """The outcome of simulation-based calibration; `bool` is the verdict, `str` the table.

    Attributes:
        sampler: what was calibrated.
        names: of the quantities.
        ranks: (replications, quantities) of the truth among the draws, spread over [0, 1]:
            uniform if the sampler is exact.
        p_values: (quantities,) of their being uniform, adjusted by Holm.
        ess: smallest number of effective draws that a posterior had, of the worst quantity.

    >>> ranks = np.linspace(0.005, 0.995, 100)[:, None]
    >>> found = Calibration("nuts", ("LM0",), ranks, np.array([1.0]), 400.0)
    >>> print(found)
    nuts, 100 replications: calibrated
    LM0  p = 1
    >>> found.passed, found.as_dict()["passed"]
    (True, True)
    """

    sampler: str
    names: tuple[str, ...]
    ranks: Float64
    p_values: Float64
    ess: float

    @property
    def passed(self) -> bool:
        """Whether no quantity's ranks are other than uniform, at a joint level of 1%."""
        return bool(np.all(self.p_values >= LEVEL))

    def __bool__(self) -> bool:
        return self.passed

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data, for JSON."""
        return {
            "sampler": self.sampler,
            "passed": self.passed,
            "level": LEVEL,
            "replications": len(self.ranks),
            "smallest_ess": self.ess,
            "p_values": dict(zip(self.names, self.p_values.tolist(), strict=True)),
            "ranks": {name: self.ranks[:, k].tolist() for k, name in enumerate(self.names)},
        }

    def _lines(self) -> tuple[str, list[tuple[str, str]], list[str]]:
        """Return a title, a row a quantity, and what else is to be said."""
        verdict = "calibrated" if self.passed else "NOT calibrated"
        rows = [
            (name, f"p = {p:.3g}" + ("" if p >= LEVEL else "  FAILED: " + _fault(ranks)))
            for name, p, ranks in zip(self.names, self.p_values, self.ranks.T, strict=True)
        ]
        few = f"a posterior had {self.ess:.0f} effective draws for {RANKED} ranks: raise draws"
        title = f"{self.sampler}, {len(self.ranks)} replications: {verdict}"
        return title, rows, [few] if self.ess < RANKED else []

    def __str__(self) -> str:
        title, rows, notes = self._lines()
        return "\n".join([title, text_table(rows), *(f"- {note}" for note in notes)])

    def _repr_html_(self) -> str:
        from bpa_ppl.diagnostics.pages.page import Table, Text

        title, rows, notes = self._lines()
        table = Table(("quantity", "uniform ranks"), rows, passed=(self.p_values >= LEVEL).tolist())
        return "".join(block.html() for block in (Text(title), table, *map(Text, notes)))


def calibrate(
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
        replicate: makes replication number i, and is the only one to know model and sampler.
        names: of the quantities that it returns.
        replications: how many; 200 find a bias of a quarter of a posterior standard deviation.
        sampler: what to call it.
        seed: of the draws that are picked, and of ties.
        jobs: threads at once; each replication depends on its number alone.
        progress: True draws a bar on standard error.

    Raises:
        UsageError: if there are too few replications.

    >>> def exact(i):
    ...     rng = np.random.default_rng(i)
    ...     truth = rng.normal()
    ...     data = rng.normal(truth)
    ...     return Replication([truth], rng.normal(data / 2, 0.5**0.5, size=(1, 99, 1)))
    >>> bool(calibrate(exact, ["location"], replications=100))
    True
    """
    if replications < 20:
        raise UsageError(f"{replications} replications are too few: ask for 20 or more")
    columns = tuple(names)
    ranks, sizes = np.empty((replications, len(columns))), np.empty(replications)
    with reporter(progress, f"calibrate {sampler}") as report:
        for i, one in enumerate(_in_threads(replicate, replications, jobs)):
            ranks[i], sizes[i] = _ranks(one, columns, np.random.default_rng([seed, i]))
            report(i + 1, replications, "replications")
    p_values = holm([uniformity(ranks[:, k]) for k in range(len(columns))])
    return Calibration(sampler, columns, ranks, p_values, float(sizes.min()))


def _in_threads(replicate: Callable[[int], Replication], count: int, jobs: int) -> Any:
    """Yield the replications in order, made by threads: compiled programs are then shared."""
    from joblib import delayed

    with parallel_workers(jobs, "threads") as parallel:
        yield from parallel(delayed(replicate)(i) for i in range(count))


def _ranks(
    one: Replication, names: tuple[str, ...], rng: np.random.Generator
) -> tuple[Float64, float]:
    """Return the ranks of the truths, (quantities,) in [0, 1], and the smallest ESS.

    A rank from 0 to L is spread evenly over its share of the interval, so that ranks are uniform
    to the letter. Ties, as of a chain that stands still, are broken at random.
    """
    log_weight = None if one.log_weight is None else np.asarray(one.log_weight, np.float64)
    kind = "chains" if log_weight is None else "weighted"
    draws = Draws({WEIGHTS: np.asarray(one.draws)}, names, kind, log_weight)
    picked, truth = independent(draws, RANKED, rng), np.asarray(one.truth, np.float64)
    tied = (picked == truth).sum(axis=0)
    rank = (picked < truth).sum(axis=0) + rng.integers(0, tied + 1)
    return (rank + rng.uniform(size=len(rank))) / (RANKED + 1), smallest_ess(draws)


def _fault(ranks: Float64) -> str:
    """Say what ranks that are not uniform mean, by the moment that is further from its own."""
    # Both in standard errors but for √N: a uniform value has variance 1/12, and its squared
    # deviation from 1/2 has variance 1/180.
    location = (ranks.mean() - 1 / 2) * np.sqrt(12)
    scale = (np.mean((ranks - 1 / 2) ** 2) - 1 / 12) * np.sqrt(180)
    if abs(location) > abs(scale):
        return "the draws are too small" if location > 0 else "the draws are too large"
    return "the draws are too narrow" if scale > 0 else "the draws are too wide"
