"""ArviZ's statistics of draws, computed from plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import arviz_functions as arviz
from bpa_ppl.posterior.adapter import to_arviz
from bpa_ppl.posterior.draws import WEIGHTS, Draws

#: With fewer importance weights, their tail cannot be fitted.
_MIN_WEIGHTS = 25


def ess(values: npt.ArrayLike, method: str = "bulk") -> Float64:
    """Return effective sample sizes, (C, D, …) ↦ (…); `bulk`, `tail` or `mean`.

    The number of draws if they are constant (Vehtari et al. 2021).
    """
    return _of_each("ess", values, method)


def r_hat(values: npt.ArrayLike) -> Float64:
    """Return rank-normalised split R-hat, (C, D, …) ↦ (…) (Vehtari et al. 2021)."""
    return _of_each("rhat", values, "rank")


def mcse(values: npt.ArrayLike) -> Float64:
    """Return the Monte-Carlo standard error of the mean, (C, D, …) ↦ (…)."""
    return _of_each("mcse", values, "mean")


def _of_each(name: str, values: npt.ArrayLike, method: str) -> Float64:
    array = np.asarray(values, np.float64)
    cells = array.reshape(*array.shape[:2], -1)
    with np.errstate(divide="ignore", invalid="ignore"), arviz.unlogged():
        return arviz.diagnostic(name, cells, method).reshape(array.shape[2:])


def bfmi(energy: npt.ArrayLike) -> Float64:
    """Return the Bayesian fraction of missing information of each chain, (C, D) ↦ (C,).

    The mean squared change of the energy between draws over its variance (Betancourt 2016). NaN
    for a chain with a single draw or constant energy.
    """
    values = np.asarray(energy, np.float64)
    if values.shape[1] < 2:
        return np.full(len(values), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = np.square(np.diff(values, axis=1)).mean(axis=1)
        return np.asarray(changes / np.var(values, axis=1, ddof=1))


def autocorrelation(values: npt.ArrayLike) -> Float64:
    """Return the autocorrelation of each chain by lag, (C, D) ↦ (C, D)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return arviz.autocorrelation(np.asarray(values))


def pareto_smoothed(log_ratio: npt.ArrayLike) -> tuple[Float64, float]:
    """Return Pareto-smoothed log weights, in the same shape, and k̂ (Vehtari et al. 2024).

    k̂ is infinite if there are too few weights to estimate it, or none is finite.
    """
    flat = np.asarray(log_ratio, np.float64).reshape(-1)
    finite = np.where(np.isfinite(flat), flat, -np.inf)
    if len(finite) < _MIN_WEIGHTS or not np.isfinite(finite).any():
        return np.zeros(np.shape(log_ratio)), np.inf
    with arviz.unlogged():
        smoothed, k_hat = arviz.psis(finite)
    return smoothed.reshape(np.shape(log_ratio)), k_hat


def loo_log_weights(log_weight: Float64, log_likelihood: Float64) -> tuple[Float64, float]:
    """Return log weights of draws for the posterior without an observation, and k̂.

    A draw of weight w has the weight w / p(observation | draw) in the posterior without that
    observation (Gelfand 1996); these weights are Pareto-smoothed, unless all are equal (Vehtari et
    al. 2017).

    Args:
        log_weight: (D,) of the draws.
        log_likelihood: (D,) of the observation that is left out.

    >>> loo_log_weights(np.zeros(3), np.ones(3))
    (array([-1., -1., -1.]), 0.0)
    """
    ratio = log_weight - log_likelihood
    if len(ratio) and (ratio == ratio[0]).all():
        return ratio, 0.0
    return pareto_smoothed(ratio)


def psis_loo(draws: Draws) -> Mapping[str, Any]:
    """Return PSIS-LOO over the sentences: `elpd`, `se`, `p`, `elpd_i`, `pareto_k`.

    Args:
        draws: without importance weights, with a pointwise log-likelihood.
    """
    assert draws.pointwise is not None  # checked by the caller
    chains, count = draws.shape
    log_p = np.asarray(draws.pointwise, np.float64).reshape(chains * count, -1).T
    # The relative efficiency of the weights is used for all observations, as in ArviZ.
    r_eff = 1.0 if chains == 1 else float(ess(draws.weights, "mean").mean()) / (chains * count)
    return arviz.loo(log_p, r_eff)


def compare_psis_loo(posteriors: Mapping[str, Draws]) -> Any:
    """Return ArviZ's table that ranks posteriors by PSIS-LOO, a pandas data frame.

    Its columns are `elpd`, `behind`, `dse`, `weight` and `warning`.
    """
    return arviz.compare({name: _by_sentence(draws) for name, draws in posteriors.items()})


def power_scaling(draws: Draws, component: str) -> Float64:
    """Return the power-scaling sensitivity of each weight, (Q,) (Kallioinen et al. 2024).

    Args:
        draws: without importance weights, with log-likelihoods and log densities.
        component: `prior` or `likelihood`.
    """
    prior = component == "prior"
    scaled = draws.total_log_prior if prior else draws.total_log_likelihood
    assert scaled is not None  # checked by the caller
    return arviz.power_scaling(draws.weights, np.asarray(scaled, np.float64))


def _by_sentence(draws: Draws) -> Any:
    """Return ArviZ data whose only log-likelihood is that of the sentences."""
    assert draws.pointwise is not None  # checked by the caller
    return to_arviz(
        Draws(
            {WEIGHTS: draws.weights},
            draws.features,
            log_likelihood={"sentence": draws.pointwise},
        )
    )


def rank_counts(chains: npt.ArrayLike, bins: int) -> tuple[Float64, Float64]:
    """Return histograms of the ranks of each chain among all draws, (C, D) ↦ (C, bins), edges.

    Ties get their mean rank, as in ArviZ's rank plots (Vehtari et al. 2021).

    >>> counts, edges = rank_counts([[0.1, 0.2, 0.2, 0.3], [0.4, 0.5, 0.6, 0.7]], 2)
    >>> counts.tolist(), edges.tolist()
    ([[4.0, 0.0], [0.0, 4.0]], [0.0, 4.0, 8.0])
    """
    from scipy.stats import rankdata

    values = np.asarray(chains)
    edges = np.linspace(0, values.size, bins + 1)
    ranks = rankdata(values).reshape(values.shape) - 0.5  # bin centres
    counts = np.array([np.histogram(chain, edges)[0] for chain in ranks], np.float64)
    return counts.reshape(-1, bins), edges
