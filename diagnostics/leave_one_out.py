"""Leave-one-out and power scaling from recorded log-likelihoods, without sampling again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np

from bpa_ppl.arrays import Float64, Int64
from bpa_ppl.diagnostics.provenance import different_data
from bpa_ppl.errors import DataError
from bpa_ppl.models import LIKELIHOODS
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.posterior.draws import importance_weights
from bpa_ppl.posterior.statistics import (
    POOR_PARETO_K,
    compare_psis_loo,
    loo_log_weights,
    power_scaling,
    psis_loo,
)

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

_MAX_DRAWS = 1000


def leave_one_out(
    draws: Draws, lists: NBest, *, in_sample: bool = False, by_mean: bool = False
) -> tuple[list[Float64], Float64]:
    """Return scores of candidates by the posterior without their list, and k̂ of each list.

    The posterior without a list is that of at most 1000 evenly spaced draws, by Pareto-smoothed
    importance sampling. The likelihood need not be p(e*|f): whatever it was is removed.

    Args:
        draws: with the log-likelihood of each sentence.
        lists: the adaptation sentences, prepared.
        in_sample: Use the posterior of all lists instead, which need not have log-likelihoods.
        by_mean: Score by the mean weights, not by the predictive probability.

    Returns:
        (N,) scores for each list; and (sentences,) Pareto k̂, above 0.7 they are unreliable.

    Raises:
        DataError: if the draws are a point, have no log-likelihoods, belong to other lists, or
            were adapted to preferences.
    """
    from bpa_ppl.models.probabilities import normalised

    chosen = np.unique(np.linspace(0, len(draws.flat) - 1, _MAX_DRAWS).astype(np.int64))
    likelihood = None if in_sample else _of_lists(draws, lists, chosen)
    log_weight = np.log(np.maximum(draws.importance[chosen], np.finfo(np.float64).tiny))
    weights, scores, pareto_k = draws.aligned(lists)[chosen], [], np.zeros(len(lists))
    for s in range(len(lists)):
        left_out = log_weight
        if likelihood is not None:
            smoothed, pareto_k[s] = loo_log_weights(log_weight, likelihood[:, s])
            left_out = smoothed if np.isfinite(pareto_k[s]) else log_weight  # else too few draws
        share = importance_weights(left_out)
        features = lists.features[lists.rows(s)].astype(np.float64)
        if by_mean:
            scores.append(features @ (share @ weights))
        else:
            p = normalised((features - features[:1]) @ weights.T, axis=0)[1]
            scores.append(p @ share)
    return scores, pareto_k


def _of_lists(draws: Draws, lists: NBest, chosen: Int64) -> Float64:
    """Return the log-likelihood of each list in some draws, (D, S), as it is in the posterior."""
    if draws.kind == "point":
        message = "leave-one-out needs draws, not a single point: adapt with another sampler"
        raise DataError(message, code="no-data")
    pointwise = _pointwise(draws)
    if "comparisons" in draws.attrs:
        message = "preferences cannot be left out list by list: evaluate choices on new lists"
        raise DataError(message, code="mismatch")
    # Weighted draws may have a likelihood with an exponent (Eq. 11).
    exponent = float(draws.attrs.get("likelihood_exponent", 1.0))
    likelihood = np.asarray(exponent * pointwise.reshape(len(draws.flat), -1)[chosen])
    count, ids = likelihood.shape[1], draws.sentence_ids
    if count == len(lists):
        return likelihood
    if ids is None or len(ids) != count or not np.isin(lists.sentence_ids, ids).all():
        message = f"{len(lists)} lists are not those of the posterior: give its {count} lists"
        raise DataError(message, lists.origin, code="mismatch")
    same = np.asarray(ids)[:, None] == lists.sentence_ids
    return np.asarray(likelihood @ same.astype(float))


#: Above it a posterior is sensitive to the prior or the likelihood (Kallioinen et al. 2024).
SENSITIVE = 0.05
_STRONG = "the prior determines it: there are few data on it, or the prior is narrow"
_CONFLICT = "prior and data disagree on it: is the prior too narrow?"


@dataclass(frozen=True, eq=False)
class Loo:
    """Leave-one-out predictive accuracy over the adaptation sentences.

    Attributes:
        elpd: Σ_a log p(e*_a | f_a, A without a), in nats; higher is better.
        se: its standard error, over sentences.
        p_effective: the effective number of parameters.
        pointwise: (sentences,) the terms of the sum.
        pareto_k: (sentences,) above 0.7 the term is unreliable.
        improper: the name of a likelihood whose values are not probabilities, such as `margin`:
            the terms then compare only sentences, and posteriors with the same likelihood.

    >>> result = Loo(-12.0, 2.0, 3.1, np.full(4, -3.0), np.array([0.1, 0.2, 0.3, 0.9]))
    >>> result.doubtful
    1
    >>> print(result)  # doctest: +NORMALIZE_WHITESPACE
    elpd -12.0 ± 2.0 over 4 sentences, mean oracle probability 0.050; 3.1 effective parameters;
    1 of 4 terms unreliable (k̂ > 0.7)
    """

    elpd: float
    se: float
    p_effective: float
    pointwise: Float64
    pareto_k: Float64
    improper: str = ""

    @property
    def doubtful(self) -> int:
        """The number of sentences with a Pareto k̂ above 0.7."""
        return int(np.sum(self.pareto_k > POOR_PARETO_K))

    def __str__(self) -> str:
        count = len(self.pointwise)
        doubt = f"; {self.doubtful} of {count} terms unreliable (k̂ > 0.7)" if self.doubtful else ""
        scale = f"mean oracle probability {np.exp(self.elpd / count):.3f}"
        if self.improper:
            scale = f"of the likelihood {self.improper}, which is not a probability"
        return (
            f"elpd {self.elpd:.1f} ± {self.se:.1f} over {count} sentences, {scale}; "
            f"{self.p_effective:.1f} effective parameters{doubt}"
        )


@dataclass(frozen=True)
class Ranked:
    """One posterior in a comparison by leave-one-out predictive accuracy.

    Attributes:
        name: of the posterior.
        elpd: its predictive accuracy in nats.
        behind: the difference from the best.
        se: the standard error of that difference, over sentences; 0 for the best.
        stacking: its stacking weight (Yao et al. 2018).
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

    Observations other than one per sentence are ignored.

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
    >>> result = loo(draws)
    >>> round(result.elpd), len(result.pointwise), result.doubtful
    (-4, 6, 0)
    """
    draws = as_draws(posterior)
    _pointwise(draws)
    return Loo(*psis_loo(draws.resampled(seed)), _improper(draws))


def compare_loo(posteriors: Mapping[str, Posterior], seed: int = 0) -> tuple[Ranked, ...]:
    """Rank posteriors of the same sentences, such as of several σ_T or models, by PSIS-LOO.

    Use it instead of `arviz.compare`, which does not know whether likelihoods are comparable.

    Args:
        posteriors: by name; of the same sentences with the same oracles.
        seed: of the resampling of weighted draws.

    Returns:
        the best first, with the numbers of `arviz.compare`.

    Raises:
        DataError: if there are fewer than two, they do not record log-likelihoods, they have
            different oracles, or different likelihoods of which one is not a probability.
        UsageError: if ArviZ is not installed.

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
        raise DataError("a comparison needs at least two posteriors", code="no-data")
    resolved = {name: as_draws(posterior) for name, posterior in posteriors.items()}
    _check_same_oracles(list(resolved.values()))
    table = compare_psis_loo({name: draws.resampled(seed) for name, draws in resolved.items()})
    return tuple(
        Ranked(str(name), row.elpd, row.behind, row.dse, row.weight, bool(row.warning))
        for name, row in table.iterrows()
    )


def _pointwise(draws: Draws) -> Float64:
    """Return the log-likelihood of each sentence, (C, D, S)."""
    if draws.pointwise is None:
        message = "leave-one-out needs a group log_likelihood with one value a sentence"
        raise DataError(message, code="no-data")
    return draws.pointwise


def _check_same_oracles(posteriors: Sequence[Draws]) -> None:
    """Refuse posteriors of different sentences, oracles, or incomparable likelihoods."""
    sizes = {_pointwise(draws).shape[-1] for draws in posteriors}
    observed = [draws.observed["oracle"] for draws in posteriors if "oracle" in draws.observed]
    if len(sizes) > 1 or any(not np.array_equal(first, observed[0]) for first in observed):
        message = "the posteriors are not of the same sentences and oracles"
        raise DataError(message, code="mismatch")
    different = chain.from_iterable(different_data(*pair) for pair in combinations(posteriors, 2))
    if others := sorted({*different} - {"features"}):
        message = f"the posteriors were made from different {', '.join(others)}"
        raise DataError(f"{message}: adapt all to the same lists", code="mismatch")
    several = [draws.attrs.get("likelihood") for draws in posteriors]
    improper = [name for draws in posteriors if (name := _improper(draws))]
    if improper and any(likelihood != several[0] for likelihood in several):
        message = f"the likelihood {improper[0]} is not a probability: adapt all with the same one"
        raise DataError(message, code="mismatch")


def _improper(draws: Draws) -> str:
    """Return the name of the likelihood if it is recorded, registered and not a probability.

    With weights of observations none is.
    """
    recorded = draws.attrs.get("likelihood")
    name = str(recorded.get("name", "")) if isinstance(recorded, dict) else ""
    proper = name not in LIKELIHOODS or LIKELIHOODS[name].generative
    return "" if proper and "observation_weight" not in draws.constants else name


@dataclass(frozen=True)
class Sensitivity:
    """The change of the posterior of one weight if prior or likelihood is raised to a power.

    Attributes:
        weight: the feature.
        prior: the change of its distribution, in Jensen–Shannon distance, for a doubling of the
            exponent of the prior, extrapolated from a small power.
        likelihood: likewise for the exponent of the likelihood.
        finding: the interpretation in words; empty if there is no problem.

    >>> Sensitivity("LM0", prior=0.01, likelihood=0.2, finding="").finding
    ''
    """

    weight: str
    prior: float
    likelihood: float
    finding: str


def power_sensitivity(posterior: Posterior, seed: int = 0) -> tuple[Sensitivity, ...]:
    """Return the power-scaling sensitivity of each weight (Kallioinen et al. 2024).

    Draws are reweighted by a small power of the prior or the likelihood; nothing is sampled.

    Args:
        posterior: with the log-likelihood of all observations and the log density of the draws,
            log p(λ, A), whose remainder is the prior.
        seed: of the resampling of weighted draws.

    Raises:
        DataError: if the posterior does not record them.

    A weight with the prior N(0, 1), and one observation that does not depend on it:

    >>> drawn = np.random.default_rng(0).normal(size=(4, 500, 1))
    >>> draws = Draws(
    ...     {"weights": drawn},
    ...     ("LM0",),
    ...     log_likelihood={"oracle": np.zeros((4, 500, 1))},
    ...     log_density=-0.5 * drawn[..., 0] ** 2,
    ... )
    >>> (result,) = power_sensitivity(draws)
    >>> result.weight, round(result.likelihood, 3), result.finding
    ('LM0', 0.0, 'the prior determines it: there are few data on it, or the prior is narrow')
    """
    draws = as_draws(posterior)
    if draws.total_log_likelihood is None or draws.total_log_prior is None:
        message = (
            "power scaling needs a group log_likelihood, and a statistic lp or group log_prior"
        )
        raise DataError(message, code="no-data")
    equal = draws.resampled(seed)
    prior, likelihood = (power_scaling(equal, component) for component in ("prior", "likelihood"))
    result = []
    for name, p, q in zip(draws.features, prior.tolist(), likelihood.tolist(), strict=True):
        finding = "" if p < SENSITIVE else _CONFLICT if q >= SENSITIVE else _STRONG
        result.append(Sensitivity(name, p, q, finding))
    return tuple(result)
