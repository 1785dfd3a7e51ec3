"""The draws of the weights as plain arrays, for tables and figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import feature_names, normalised_weights, statistic

if TYPE_CHECKING:
    from arviz import InferenceData


@dataclass(frozen=True, eq=False)
class Sample:
    """Draws of Q weights in C chains of D draws, and what they are to be compared with.

    Attributes:
        names: (Q,) of the features.
        values: (C, D, Q) the kept draws.
        importance: (C·D,) the share of each draw, chain by chain; it sums to one.
        weighted: whether the shares differ by design, as those of importance samples do.
        warmup: (C, W, Q) draws before those kept; W is 0 where there are none.
        prior: (P, Q) draws of the prior; P is 0 where there are none.
        canonical: (Q,) the canonical weights, or None.
    """

    names: tuple[str, ...]
    values: Float64
    importance: Float64
    weighted: bool
    warmup: Float64
    prior: Float64
    canonical: Float64 | None

    @property
    def draws(self) -> Float64:
        """(C·D, Q), the draws chain by chain."""
        return self.values.reshape(-1, self.values.shape[-1])

    @property
    def mean(self) -> Float64:
        """(Q,), the posterior mean."""
        return np.average(self.draws, axis=0, weights=self.importance)

    @property
    def deviation(self) -> Float64:
        """(Q,), the posterior standard deviation."""
        variance = np.average((self.draws - self.mean) ** 2, axis=0, weights=self.importance)
        return np.sqrt(variance)

    def moved_most(self, count: int) -> list[int]:
        """Return the features that moved furthest, in posterior standard deviations, ascending.

        Without canonical weights nothing is known to have moved, and they are the first ones.
        """
        origin = self.mean if self.canonical is None else self.canonical
        shift = np.abs(self.mean - origin) / np.maximum(self.deviation, np.finfo(np.float64).tiny)
        return sorted(np.argsort(-shift, kind="stable")[:count].tolist())

    def interval(self, probability: float) -> Float64:
        """Return the equal-tailed interval of each weight, (2, Q)."""
        tail = (1 - probability) / 2
        return quantiles(self.draws, (tail, 1 - tail), self.importance)

    @property
    def correlation(self) -> Float64:
        """(Q, Q); a weight that never moves is correlated with none."""
        centred = self.draws - self.mean
        covariance = (centred * self.importance[:, None]).T @ centred
        scale = np.sqrt(np.diag(covariance))
        scale[scale == 0] = np.inf
        return covariance / np.outer(scale, scale)


def quantiles(
    draws: npt.ArrayLike, probabilities: tuple[float, ...], importance: npt.ArrayLike
) -> Float64:
    """Return quantiles of weighted draws (n, Q), one row a probability.

    >>> quantiles([[1.0], [2.0], [9.0]], (0.5,), [0.2, 0.2, 0.6]).tolist()
    [[9.0]]
    """
    values, weights = np.asarray(draws, np.float64), np.asarray(importance, np.float64)
    return np.quantile(values, probabilities, axis=0, weights=weights, method="inverted_cdf")


def sample_of(posterior: InferenceData) -> Sample:
    """Return the draws of a posterior whose weights are (chain, draw, feature).

    >>> from bpa_ppl.posterior import import_arviz
    >>> draws = np.arange(40.0).reshape(2, 10, 2)
    >>> sample_of(import_arviz().from_dict(posterior={"weights": draws})).mean.round(6).tolist()
    [19.0, 20.0]
    """
    values = np.asarray(posterior["posterior"]["weights"].values, np.float64)
    log_weight = statistic(posterior, "log_weight")
    count = values.shape[0] * values.shape[1]
    return Sample(
        names=feature_names(posterior),
        values=values,
        importance=np.full(count, 1 / count)
        if log_weight is None
        else normalised_weights(log_weight.reshape(-1)),
        weighted=log_weight is not None,
        warmup=_group(posterior, "warmup_posterior", values),
        prior=_group(posterior, "prior", values).reshape(-1, values.shape[-1]),
        canonical=_canonical(posterior, values.shape[-1]),
    )


def _group(posterior: InferenceData, group: str, like: Float64) -> Float64:
    """Return other draws of the same weights, or none where the group has none."""
    none = like[:, :0]
    if group not in posterior or "weights" not in posterior[group]:
        return none
    found = np.asarray(posterior[group]["weights"].values, np.float64)
    return found if found.ndim == 3 and found.shape[-1] == like.shape[-1] else none


def _canonical(posterior: InferenceData, features: int) -> Float64 | None:
    if "constant_data" not in posterior or "canonical" not in posterior["constant_data"]:
        return None
    canonical = np.asarray(posterior["constant_data"]["canonical"].values, np.float64)
    return canonical if canonical.shape == (features,) else None
