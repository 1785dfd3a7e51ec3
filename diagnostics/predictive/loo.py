"""How well does a model predict a sentence that it has not seen? PSIS-LOO, by ArviZ."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.diagnostics.comparison.equal_draws import equal_draws
from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import import_arviz

if TYPE_CHECKING:
    from arviz import InferenceData

#: Above it the importance ratios of a sentence are not to be trusted (Vehtari et al. 2024).
GOOD_PARETO_K = 0.7


@dataclass(frozen=True, eq=False)
class Loo:
    """Leave-one-out predictive accuracy over the adaptation sentences.

    Attributes:
        elpd: Σ_a log p(e*_a | f_a, A without a), in nats; higher is better.
        se: its standard error, over sentences.
        p_effective: how many parameters the sentences pin down.
        pointwise: (sentences,) the terms of the sum.
        pareto_k: (sentences,) where it is above 0.7 the term is not to be trusted.
    """

    elpd: float
    se: float
    p_effective: float
    pointwise: Float64
    pareto_k: Float64

    @property
    def doubtful(self) -> int:
        """How many sentences have a Pareto k̂ above 0.7."""
        return int(np.sum(self.pareto_k > GOOD_PARETO_K))

    def __str__(self) -> str:
        count = len(self.pointwise)
        doubt = f"; {self.doubtful} of {count} terms in doubt (k̂ > 0.7)" if self.doubtful else ""
        geometric = np.exp(self.elpd / count)
        return (
            f"elpd {self.elpd:.1f} ± {self.se:.1f} over {count} sentences, a probability of "
            f"{geometric:.3f} an oracle; {self.p_effective:.1f} effective parameters{doubt}"
        )


@dataclass(frozen=True)
class Ranked:
    """One posterior in a comparison by leave-one-out predictive accuracy.

    Attributes:
        name: of the posterior.
        elpd: its predictive accuracy in nats.
        behind: how much it is behind the best.
        se: the standard error of that difference, over sentences; 0 for the best.
        stacking: its weight in the mixture of all that predicts best (Yao et al. 2018).
        doubtful: whether a Pareto k̂ is above 0.7.
    """

    name: str
    elpd: float
    behind: float
    se: float
    stacking: float
    doubtful: bool


def loo(posterior: InferenceData, seed: int = 0) -> Loo:
    """Estimate leave-one-out predictive accuracy (Vehtari, Gelman & Gabry 2017).

    Args:
        posterior: with a group `log_likelihood`, one value a sentence.
        seed: of the resampling of weighted draws.

    Raises:
        DataError: if the log-likelihood of the sentences was not recorded.

    >>> from arviz import from_dict
    >>> rng = np.random.default_rng(0)
    >>> log_p = np.log(0.5) + 0.1 * rng.normal(size=(4, 100, 6))
    >>> weights = rng.normal(size=(4, 100, 1))
    >>> found = loo(from_dict(posterior={"weights": weights}, log_likelihood={"oracle": log_p}))
    >>> round(found.elpd), len(found.pointwise), found.doubtful
    (-4, 6, 0)
    """
    data = _with_likelihood(posterior, seed)
    with warnings.catch_warnings():
        # What it warns of is told by `doubtful`.
        warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto", UserWarning)
        found = import_arviz().loo(data, pointwise=True)
    return Loo(
        float(found["elpd_loo"]),
        float(found["se"]),
        float(found["p_loo"]),
        np.asarray(found["loo_i"].values).reshape(-1),
        np.asarray(found["pareto_k"].values).reshape(-1),
    )


def compare_loo(posteriors: Mapping[str, InferenceData], seed: int = 0) -> tuple[Ranked, ...]:
    """Rank posteriors of the same sentences, such as of several σ_T or models, by PSIS-LOO.

    Args:
        posteriors: by a name each; the same sentences with the same oracles.
        seed: of the resampling of weighted draws.

    Returns:
        the best first, with the numbers of `arviz.compare`.

    Raises:
        DataError: if there are fewer than two, they do not record log-likelihoods, or they are
            not of the same oracles.
    """
    if len(posteriors) < 2:
        raise DataError("a comparison needs two posteriors or more")
    _check_same_oracles(posteriors)
    data = {name: _with_likelihood(posterior, seed) for name, posterior in posteriors.items()}
    with warnings.catch_warnings():
        # What it warns of is told by `doubtful`, and the other is between ArviZ and pandas.
        warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto", UserWarning)
        warnings.filterwarnings("ignore", "The inplace keyword")
        table = import_arviz().compare(data, ic="loo")
    return tuple(
        Ranked(str(name), row.elpd_loo, row.elpd_diff, row.dse, row.weight, bool(row.warning))
        for name, row in table.iterrows()
    )


def _with_likelihood(posterior: InferenceData, seed: int) -> InferenceData:
    if "log_likelihood" not in posterior:
        raise DataError("the posterior does not record the log-likelihood of its sentences")
    return equal_draws(posterior, seed)


def _check_same_oracles(posteriors: Mapping[str, InferenceData]) -> None:
    observed: list[Any] = [
        posterior["observed_data"]["oracle"].values
        for posterior in posteriors.values()
        if "observed_data" in posterior and "oracle" in posterior["observed_data"]
    ]
    if any(not np.array_equal(first, observed[0]) for first in observed):
        raise DataError("the posteriors are not of the same sentences and oracles")
