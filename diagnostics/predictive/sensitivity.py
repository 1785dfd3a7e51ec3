"""How much does the posterior hang on the prior, and how much on the data? Power scaling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.diagnostics.comparison.equal_draws import equal_draws
from bpa_ppl.errors import DataError
from bpa_ppl.posterior import feature_names, import_arviz, statistic

if TYPE_CHECKING:
    from arviz import InferenceData

#: Above it a posterior is said to be sensitive (Kallioinen et al. 2024).
THRESHOLD = 0.05
_STRONG = "the prior holds it: there are few data on it, or σ_T is small"
_CONFLICT = "prior and data disagree on it: is σ_T too small?"


@dataclass(frozen=True)
class Sensitivity:
    """How the posterior of one weight changes if prior or likelihood are raised to a power.

    Attributes:
        weight: the feature.
        prior, likelihood: the change of its distribution, in Jensen–Shannon distance, for a
            doubling of the exponent, extrapolated from a small one.
        finding: what both together say, in words; empty if nothing needs to be said.
    """

    weight: str
    prior: float
    likelihood: float
    finding: str


def power_sensitivity(posterior: InferenceData, seed: int = 0) -> tuple[Sensitivity, ...]:
    """Return the power-scaling sensitivity of each weight (Kallioinen et al. 2024).

    No sampler is run again: draws are weighted by a small power of the prior or the likelihood.

    Args:
        posterior: with the group `log_likelihood` and the statistic `lp`, log p(λ, A): the prior
            is what remains of it.
        seed: of the resampling of weighted draws.

    Raises:
        DataError: if the posterior does not record them.
    """
    if "log_likelihood" not in posterior or statistic(posterior, "lp") is None:
        raise DataError(
            "power scaling needs the log-likelihood of the sentences (a group log_likelihood) and "
            "the log density of the draws (a statistic lp), which this posterior does not record"
        )
    data = _with_log_prior(equal_draws(posterior, seed))
    prior, likelihood = (_each(data, component) for component in ("prior", "likelihood"))
    names = feature_names(posterior)
    return tuple(
        Sensitivity(name, float(p), float(q), _finding(p, q))
        for name, p, q in zip(names, prior, likelihood, strict=True)
    )


def told(sensitivities: Sequence[Sensitivity]) -> str:
    """Return a table of sensitivities.

    >>> print(told([Sensitivity("LM0", 0.02, 0.3, "")]))
    weight  prior  likelihood
    LM0     0.020       0.300
    """
    width = max(len("weight"), *(len(one.weight) for one in sensitivities))
    rows = [
        f"{one.weight:<{width}}  {one.prior:5.3f}  {one.likelihood:10.3f}  {one.finding}".rstrip()
        for one in sensitivities
    ]
    return "\n".join([f"{'weight':<{width}}  prior  likelihood", *rows])


def _with_log_prior(data: InferenceData) -> InferenceData:
    summed = {
        str(name): values.sum([d for d in values.dims if d not in ("chain", "draw")], dtype=float)
        for name, values in data["log_likelihood"].data_vars.items()
    }
    log_prior = data["sample_stats"]["lp"] - sum(summed.values())
    arviz = import_arviz()
    return arviz.InferenceData(
        posterior=data["posterior"][["weights"]],
        log_likelihood=data["log_likelihood"],
        log_prior=log_prior.to_dataset(name="weights"),
    )


def _each(data: InferenceData, component: str) -> np.ndarray:
    return np.asarray(import_arviz().psens(data, component=component, var_names=["weights"]))


def _finding(prior: float, likelihood: float) -> str:
    if prior < THRESHOLD:
        return ""
    return _CONFLICT if likelihood >= THRESHOLD else _STRONG
