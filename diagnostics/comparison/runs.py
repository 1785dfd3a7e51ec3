"""Runs: the draws of all runs of one sampler, and how exactly they tell a mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bpa_ppl.diagnostics.pages.foreign import with_features
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import feature_names, import_arviz, normalised_weights, statistic

if TYPE_CHECKING:
    from arviz import InferenceData


_FEWEST = 10  # draws a chain, below which no diagnostic means anything


class Estimate(NamedTuple):
    """A mean, its Monte-Carlo standard error, and the effective number of draws behind it."""

    mean: float
    error: float
    ess: float


@dataclass(frozen=True, eq=False)
class Runs:
    """Draws of the weights by one sampler, all runs together (C chains, D draws, Q features).

    Attributes:
        names: of the features.
        values: (C, D, Q).
        weight: (C, D) importance weights that sum to one, or None for Markov chains.
    """

    names: tuple[str, ...]
    values: Float64
    weight: Float64 | None

    @property
    def draws(self) -> Float64:
        """(C · D, Q): the draws, chains one after the other."""
        return self.values.reshape(-1, self.values.shape[-1])

    def mean(self, function_values: np.ndarray) -> Estimate:
        """Return the mean of a function of the draws, given its value at each, (C, D).

        The error of chains is their standard deviation over √ESS (Vehtari et al. 2021), that of
        importance samples the one of a self-normalised sum (Owen 2013, §9.2).
        """
        x = np.asarray(function_values, np.float64)
        if self.weight is not None:
            mean = float(np.sum(self.weight * x))
            error = float(np.sqrt(np.sum(self.weight**2 * (x - mean) ** 2)))
            return Estimate(mean, error, kish(self.weight))
        ess = float(import_arviz().ess(x, method="mean")) if np.ptp(x) > 0 else 0.0
        error = float(x.std(ddof=1) / np.sqrt(ess)) if ess > 0 else 0.0
        return Estimate(float(x.mean()), error, ess)

    def share(self, below: np.ndarray, expected: float) -> Estimate:
        """Return how many draws are below a quantile, with the error of the share expected.

        Few of them are below an outer quantile, so that their own number would not tell.

        Args:
            below: (C, D) bool.
            expected: their share if the quantile is right.
        """
        found = self.mean(below)
        ess = found.ess or self.smallest_ess()
        error = np.sqrt(expected * (1 - expected) / ess) if ess else np.inf
        return Estimate(found.mean, float(error), ess)

    def smallest_ess(self) -> float:
        """Return the smallest bulk ESS of a weight, or the ESS of the importance weights."""
        return float(np.min(ess_of_each(self.values, self.weight, "bulk")))

    def worth(self) -> int:
        """Return as how many independent draws these may pass: half their ESS, an estimate."""
        return min(int(self.smallest_ess() / 2), len(self.draws))

    def largest_r_hat(self) -> float:
        """Return the largest rank-normalised split R-hat of a weight; 1 for weighted draws."""
        if self.weight is not None:
            return 1.0
        rhat, values = import_arviz().rhat, self.values
        if len(values) == 1:  # its halves have to agree
            half = values.shape[1] // 2
            values = np.concatenate([values[:, :half], values[:, -half:]])
        with np.errstate(divide="ignore", invalid="ignore"):
            each = [float(rhat(values[..., k])) for k in range(len(self.names))]
        return float(np.max(np.nan_to_num(each, nan=np.inf)))

    def ordered(self, names: tuple[str, ...]) -> Runs:
        """Return the same draws with the features in another order.

        Raises:
            DataError: if they are not the same features.
        """
        if set(names) != set(self.names):
            differing = ", ".join(sorted(set(names) ^ set(self.names)))
            raise DataError(f"posteriors of different features cannot be compared: {differing}")
        columns = [self.names.index(name) for name in names]
        return Runs(names, self.values[..., columns], self.weight)

    def independent(self, count: int, rng: np.random.Generator) -> Float64:
        """Return `count` draws as good as independent, (count, Q), in random order.

        Draws of chains are taken at equal distances; weighted ones by the luck of their weights.
        """
        flat = self.draws
        if self.weight is not None:
            return flat[rng.choice(len(flat), size=count, p=self.weight.reshape(-1))]
        return flat[rng.permutation(np.linspace(0, len(flat) - 1, count).round().astype(int))]


def kish(weight: Float64) -> float:
    """Return the effective size of a sample with weights that sum to one (Kish 1965).

    >>> kish(np.array([0.5, 0.5, 0.0]))
    2.0
    """
    return float(1.0 / np.sum(weight**2))


def ess_of_each(values: Float64, weight: Float64 | None, method: str) -> Float64:
    """Return the effective number of draws of each weight, (Q,); a still chain has none.

    Args:
        values: (C, D, Q).
        weight: (C, D) importance weights, or None.
        method: of ArviZ: `bulk`, `tail` or `mean`.
    """
    features = values.shape[-1]
    if weight is not None:
        return np.full(features, kish(weight))
    ess = import_arviz().ess
    moved = np.ptp(values, axis=(0, 1)) > 0
    return np.array(
        [
            np.nan_to_num(float(ess(values[..., k], method=method))) if moved[k] else 0.0
            for k in range(features)
        ]
    )


def runs_of(posteriors: Sequence[InferenceData]) -> Runs:
    """Put the runs of one sampler together, as chains side by side.

    Args:
        posteriors: draws of `weights` from different seeds; a statistic `log_weight` makes them
            weighted.

    Raises:
        DataError: if the runs differ in features or in their number of draws, have fewer than
            ten a chain, hold a draw that is not finite, or are weighted only in part.
    """
    laid_out = [with_features(posterior) for posterior in posteriors]
    names = {feature_names(run) for run in laid_out}
    parts = [run["posterior"]["weights"].values for run in laid_out]
    if len(names) != 1 or len({part.shape[1:] for part in parts}) != 1:
        raise DataError("the runs of one sampler must agree in features and number of draws")
    if parts[0].shape[1] < _FEWEST:
        raise DataError(
            f"{parts[0].shape[1]} draws a chain are no sample, and {_FEWEST} are needed: leave "
            "this sampler out, or raise draws"
        )
    log_weights = [statistic(run, "log_weight") for run in laid_out]
    known = [log_weight for log_weight in log_weights if log_weight is not None]
    if known and len(known) != len(laid_out):
        raise DataError("some runs of one sampler have a statistic log_weight and others not")
    weight = normalised_weights(np.concatenate(known)) if known else None
    return Runs(names.pop(), np.concatenate(parts).astype(np.float64), weight)
