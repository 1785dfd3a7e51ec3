"""What recorded log-likelihoods show without sampling again: sentences left out, power scaling.

Leave-one-out asks how well a model predicts a sentence that it has not seen; power scaling how much
the posterior depends on the prior, and how much on the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.posterior.statistics import compare_psis_loo, power_scaling, psis_loo
from bpa_ppl.registry import LIKELIHOODS

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

#: Above it the importance ratios of a sentence are not to be trusted (Vehtari et al. 2024).
GOOD_PARETO_K = 0.7
#: Above it a posterior is said to be sensitive (Kallioinen et al. 2024).
SENSITIVE = 0.05
_STRONG = "the prior decides it: there are few data on it, or the prior is narrow"
_CONFLICT = "prior and data disagree on it: is the prior too narrow?"


@dataclass(frozen=True, eq=False)
class Loo:
    """Leave-one-out predictive accuracy over the adaptation sentences.

    Attributes:
        elpd: Σ_a log p(e*_a | f_a, A without a), in nats; higher is better.
        se: its standard error, over sentences.
        p_effective: how many parameters the sentences pin down.
        pointwise: (sentences,) the terms of the sum.
        pareto_k: (sentences,) where it is above 0.7 the term is not to be trusted.
        improper: the name of a likelihood whose values are no probabilities, such as `margin`: the
            terms then compare sentences, and posteriors of the same likelihood, alone.

    >>> found = Loo(-12.0, 2.0, 3.1, np.full(4, -3.0), np.array([0.1, 0.2, 0.3, 0.9]))
    >>> found.doubtful
    1
    >>> print(found)  # doctest: +NORMALIZE_WHITESPACE
    elpd -12.0 ± 2.0 over 4 sentences, a probability of 0.050 an oracle; 3.1 effective parameters;
    1 of 4 terms in doubt (k̂ > 0.7)
    """

    elpd: float
    se: float
    p_effective: float
    pointwise: Float64
    pareto_k: Float64
    improper: str = ""

    @property
    def doubtful(self) -> int:
        """How many sentences have a Pareto k̂ above 0.7."""
        return int(np.sum(self.pareto_k > GOOD_PARETO_K))

    def __str__(self) -> str:
        count = len(self.pointwise)
        doubt = f"; {self.doubtful} of {count} terms in doubt (k̂ > 0.7)" if self.doubtful else ""
        said = f"a probability of {np.exp(self.elpd / count):.3f} an oracle"
        if self.improper:
            said = f"of the likelihood {self.improper}, which is no probability"
        return (
            f"elpd {self.elpd:.1f} ± {self.se:.1f} over {count} sentences, {said}; "
            f"{self.p_effective:.1f} effective parameters{doubt}"
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

    >>> Ranked("wide", elpd=-5.5, behind=0.0, se=0.0, stacking=1.0, doubtful=False).stacking
    1.0
    """

    name: str
    elpd: float
    behind: float
    se: float
    stacking: float
    doubtful: bool


def loo(posterior: Posterior, seed: int = 0) -> Loo:
    """Estimate leave-one-out predictive accuracy (Vehtari, Gelman & Gabry 2017).

    What was observed otherwise than once a sentence does not enter.

    Args:
        posterior: with the log-likelihood of each sentence.
        seed: of the resampling of weighted draws.

    Raises:
        DataError: if the log-likelihood of the sentences was not recorded.

    >>> rng = np.random.default_rng(0)
    >>> log_p = np.log(0.5) + 0.1 * rng.normal(size=(4, 100, 6))
    >>> draws = Draws(
    ...     {"weights": rng.normal(size=(4, 100, 1))},
    ...     ("LM0",),
    ...     log_likelihood={"oracle": log_p},
    ...     sentence_sites=("oracle",),
    ... )
    >>> found = loo(draws)
    >>> round(found.elpd), len(found.pointwise), found.doubtful
    (-4, 6, 0)
    """
    draws = _by_sentence(as_draws(posterior))
    found = psis_loo(draws.resampled(seed))
    return Loo(
        float(found["elpd"]),
        float(found["se"]),
        float(found["p"]),
        found["elpd_i"].reshape(-1),
        found["pareto_k"].reshape(-1),
        _improper(draws),
    )


def compare_loo(posteriors: Mapping[str, Posterior], seed: int = 0) -> tuple[Ranked, ...]:
    """Rank posteriors of the same sentences, such as of several σ_T or models, by PSIS-LOO.

    Args:
        posteriors: by a name each; the same sentences with the same oracles.
        seed: of the resampling of weighted draws.

    Returns:
        the best first, with the numbers of `arviz.compare`.

    Raises:
        DataError: if there are fewer than two, they do not record log-likelihoods, they are not
            of the same oracles, or of several likelihoods of which one is no probability.

    >>> rng = np.random.default_rng(0)
    >>> def draws(p):
    ...     log_p = np.log(p) + 0.1 * rng.normal(size=(4, 100, 6))
    ...     weights, site = rng.normal(size=(4, 100, 1)), "oracle"
    ...     return Draws({"weights": weights}, ("LM0",), log_likelihood={site: log_p},
    ...                  sentence_sites=(site,))
    >>> best, other = compare_loo({"narrow": draws(0.2), "wide": draws(0.4)})
    >>> best.name, round(best.elpd, 1), other.name, round(other.behind, 1)
    ('wide', -5.5, 'narrow', 4.2)
    """
    if len(posteriors) < 2:
        raise DataError("a comparison needs two posteriors or more")
    every = {name: _by_sentence(as_draws(posterior)) for name, posterior in posteriors.items()}
    _check_same_oracles(list(every.values()))
    table = compare_psis_loo({name: draws.resampled(seed) for name, draws in every.items()})
    return tuple(
        Ranked(str(name), row.elpd, row.behind, row.dse, row.weight, bool(row.warning))
        for name, row in table.iterrows()
    )


def _by_sentence(draws: Draws) -> Draws:
    if draws.pointwise is None:
        raise DataError(
            "the posterior does not record the log-likelihood of its sentences: leave-one-out "
            "needs a group log_likelihood with one value a sentence"
        )
    return draws


def _check_same_oracles(every: Sequence[Draws]) -> None:
    """Refuse posteriors of other sentences, or of other oracles of the same ones."""
    sizes = {each.shape[-1] for draws in every if (each := draws.pointwise) is not None}
    observed = [draws.observed["oracle"] for draws in every if "oracle" in draws.observed]
    if len(sizes) > 1 or any(not np.array_equal(first, observed[0]) for first in observed):
        raise DataError("the posteriors are not of the same sentences and oracles")
    several = [draws.attrs.get("likelihood") for draws in every]
    improper = [name for draws in every if (name := _improper(draws))]
    if improper and any(one != several[0] for one in several):
        raise DataError(
            f"the values of the likelihood {improper[0]} are no probabilities, and so compare with "
            "none of another likelihood or setting: adapt all with the same one"
        )


def _improper(draws: Draws) -> str:
    """Return the name of the likelihood if it is recorded, ours, and no probability."""
    recorded = draws.attrs.get("likelihood")
    name = str(recorded.get("name", "")) if isinstance(recorded, dict) else ""
    return name if name in LIKELIHOODS and not LIKELIHOODS[name].generative else ""


@dataclass(frozen=True)
class Sensitivity:
    """How the posterior of one weight changes if prior or likelihood are raised to a power.

    Attributes:
        weight: the feature.
        prior: the change of its distribution, in Jensen–Shannon distance, for a doubling of the
            exponent of the prior, extrapolated from a small one.
        likelihood: the same for the exponent of the likelihood.
        finding: what both together say, in words; empty if nothing needs to be said.

    >>> Sensitivity("LM0", prior=0.01, likelihood=0.2, finding="").finding
    ''
    """

    weight: str
    prior: float
    likelihood: float
    finding: str


def power_sensitivity(posterior: Posterior, seed: int = 0) -> tuple[Sensitivity, ...]:
    """Return the power-scaling sensitivity of each weight (Kallioinen et al. 2024).

    No sampler is run again: draws are weighted by a small power of the prior or the likelihood.

    Args:
        posterior: with the log-likelihood of all that was observed and the log density of the
            draws, log p(λ, A): the prior is what remains of it.
        seed: of the resampling of weighted draws.

    Raises:
        DataError: if the posterior does not record them.

    A weight with the prior N(0, 1), and one observation that is the same for every value of it:

    >>> drawn = np.random.default_rng(0).normal(size=(4, 500, 1))
    >>> draws = Draws(
    ...     {"weights": drawn},
    ...     ("LM0",),
    ...     log_likelihood={"oracle": np.zeros((4, 500, 1))},
    ...     log_density=-0.5 * drawn[..., 0] ** 2,
    ... )
    >>> (found,) = power_sensitivity(draws)
    >>> found.weight, round(found.likelihood, 3), found.finding
    ('LM0', 0.0, 'the prior decides it: there are few data on it, or the prior is narrow')
    """
    draws = as_draws(posterior)
    if draws.total_log_likelihood is None or draws.total_log_prior is None:
        raise DataError(
            "power scaling needs the log-likelihood of the sentences (a group log_likelihood) and "
            "the log density of the draws (a statistic lp) or of the prior (a group log_prior), "
            "which this posterior does not record"
        )
    equal = draws.resampled(seed)
    prior, likelihood = (power_scaling(equal, component) for component in ("prior", "likelihood"))
    return tuple(
        Sensitivity(name, float(p), float(q), _finding(p, q))
        for name, p, q in zip(draws.features, prior, likelihood, strict=True)
    )


def _finding(prior: float, likelihood: float) -> str:
    if prior < SENSITIVE:
        return ""
    return _CONFLICT if likelihood >= SENSITIVE else _STRONG
