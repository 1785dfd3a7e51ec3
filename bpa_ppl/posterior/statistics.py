"""ArviZ's statistics of draws, each taken of plain arrays."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl.nbest import Float64
from bpa_ppl.posterior.adapter import import_arviz, to_arviz
from bpa_ppl.posterior.draws import WEIGHTS, Draws

#: Importance weights, below which nothing is known of their tail.
_FEWEST = 25


def ess(values: npt.ArrayLike, method: str = "bulk") -> Float64:
    """Return effective sample sizes, (C, D, …) ↦ (…); `bulk`, `tail` or `mean`.

    Their number where the draws never move at all (Vehtari et al. 2021).
    """
    return _of_each(import_arviz().ess, values, method=method)


def r_hat(values: npt.ArrayLike) -> Float64:
    """Return rank-normalised split R-hat, (C, D, …) ↦ (…) (Vehtari et al. 2021)."""
    return _of_each(import_arviz().rhat, values, method="rank")


def mcse(values: npt.ArrayLike) -> Float64:
    """Return the Monte-Carlo standard error of the mean, (C, D, …) ↦ (…)."""
    return _of_each(import_arviz().mcse, values, method="mean")


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep ArviZ from logging what the numbers say too, such as that draws are NaN."""
    logger = getattr(import_arviz(), "_log", logging.getLogger("arviz"))
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _of_each(function: Any, values: npt.ArrayLike, **options: str) -> Float64:
    array = np.asarray(values, np.float64)
    cells = array.reshape(*array.shape[:2], -1)
    with np.errstate(divide="ignore", invalid="ignore"), _unlogged():
        found = [np.asarray(function(c, **options)).item() for c in np.moveaxis(cells, -1, 0)]
    return np.array(found).reshape(array.shape[2:])


def bfmi(energy: npt.ArrayLike) -> Float64:
    """Return the Bayesian fraction of missing information of each chain, (C, D) ↦ (C,).

    NaN where a chain has a single draw, or energy that never changes.
    """
    values = np.asarray(energy, np.float64)
    if values.shape[1] < 2:
        return np.full(len(values), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"), _unlogged():
        return np.asarray(import_arviz().bfmi(values))


def autocorrelation(values: npt.ArrayLike) -> Float64:
    """Return the autocorrelation of each chain by lag, (C, D) ↦ (C, D)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(import_arviz().autocorr(np.asarray(values)))


def pareto_smoothed(log_ratio: npt.ArrayLike) -> tuple[Float64, float]:
    """Return Pareto-smoothed log weights, in the same shape, and k̂ (Vehtari et al. 2024).

    k̂ is infinite where there are too few weights to tell, or none is finite.
    """
    flat = np.asarray(log_ratio, np.float64).reshape(-1)
    finite = np.where(np.isfinite(flat), flat, -np.inf)
    if len(finite) < _FEWEST or not np.isfinite(finite).any():
        return np.zeros(np.shape(log_ratio)), np.inf
    with _unlogged():
        smoothed, k_hat = import_arviz().psislw(finite)
    return np.asarray(smoothed).reshape(np.shape(log_ratio)), float(k_hat)


def unseen(log_weight: Float64, log_likelihood: Float64) -> tuple[Float64, float]:
    """Return log weights of draws as if something of the data had not been seen, and k̂.

    A draw of weight w is one of the posterior without a sentence at weight w / p(sentence | draw)
    (Gelfand 1996); these weights are smoothed, unless all are equal (Vehtari et al. 2017).

    Args:
        log_weight: (D,) of the draws.
        log_likelihood: (D,) of what is left out.

    >>> unseen(np.zeros(3), np.ones(3))
    (array([-1., -1., -1.]), 0.0)
    """
    ratio = log_weight - log_likelihood
    if len(ratio) and (ratio == ratio[0]).all():
        return ratio, 0.0
    return pareto_smoothed(ratio)


def psis_loo(draws: Draws) -> Mapping[str, Any]:
    """Return ArviZ's PSIS-LOO over the adaptation sentences, pointwise.

    Args:
        draws: of equal weight, with a pointwise log-likelihood.
    """
    return dict(_quietly(import_arviz().loo, _by_sentence(draws), pointwise=True))


def compare_psis_loo(every: Mapping[str, Draws]) -> Any:
    """Return ArviZ's table that ranks posteriors by PSIS-LOO, a pandas data frame."""
    data = {name: _by_sentence(draws) for name, draws in every.items()}
    return _quietly(import_arviz().compare, data, ic="loo")


def power_scaling(draws: Draws, component: str) -> Float64:
    """Return the power-scaling sensitivity of each weight, (Q,) (Kallioinen et al. 2024).

    Args:
        draws: of equal weight, with log-likelihoods and log densities: the prior is the rest.
        component: what is scaled, `prior` or `likelihood`.
    """
    arviz = import_arviz()
    likelihood = draws.total_log_likelihood
    assert draws.log_density is not None  # the caller looked
    assert likelihood is not None
    log_prior = draws.log_density - likelihood
    data = to_arviz(
        Draws(
            {WEIGHTS: draws.weights},
            draws.features,
            log_likelihood=draws.log_likelihood,
            sentence_sites=draws.sentence_sites,
        )
    )
    data.add_groups(log_prior=arviz.convert_to_dataset({WEIGHTS: log_prior}))
    return np.asarray(arviz.psens(data, component=component, var_names=[WEIGHTS]))


def _by_sentence(draws: Draws) -> Any:
    """Return InferenceData whose only log-likelihood is that of the sentences."""
    assert draws.pointwise is not None  # the caller looked
    return to_arviz(
        Draws(
            {WEIGHTS: draws.weights},
            draws.features,
            log_likelihood={"sentence": draws.pointwise},
        )
    )


def _quietly(function: Any, *arguments: Any, **options: Any) -> Any:
    """Call without warnings of what the result says too, or of ArviZ's affairs with pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto", UserWarning)
        warnings.filterwarnings("ignore", "The inplace keyword")
        return function(*arguments, **options)


def rank_plot(axes: Any, chains: npt.ArrayLike) -> None:
    """Draw the ranks of the draws of each chain, (C, D), as bars."""
    import_arviz().plot_rank({"weight": np.asarray(chains)}, kind="bars", ax=axes)
    axes.set(title="", xlabel="", ylabel="")
