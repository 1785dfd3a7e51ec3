"""How far a Gaussian in place of a posterior shifts the weights, when new sentences are added.

The old draws, weighted by the likelihood of the new sentences, are draws of the exact posterior of
all sentences, as long as enough of them count (Pareto k̂).
"""

from __future__ import annotations

import numpy as np
from msgspec import structs

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import log_info, warn_user
from bpa_ppl.densities.target import Target, evaluate, inspect_model
from bpa_ppl.posterior.draws import WEIGHTS, Draws, importance_weights
from bpa_ppl.posterior.record import Shift
from bpa_ppl.posterior.statistics import POOR_PARETO_K, ess, smooth_log_weights

#: A larger shift is warned about.
_LARGE = 0.25


def gaussian_shift(target: Target, old: Draws, new: Draws) -> Shift | None:
    """Return how far the Gaussian of a posterior, as a prior, shifts the means of the weights.

    Args:
        target: the posterior of the new sentences, with the Gaussian of `old` as its prior.
        old: the posterior that the Gaussian represents, of the free features in their order.
        new: draws of `target`.

    Returns:
        by feature the mean of `new` minus that of the weighted old draws, in standard deviations
        of `new`, unless k̂ shows that they are unreliable. None if the model has other sites than
        the weights.
    """
    if not target.is_log_linear or inspect_model(target).latent != (WEIGHTS,):
        return None
    mean, covariance = np.asarray(target.prior.mean), np.asarray(target.prior.covariance)
    units = np.linalg.solve(np.linalg.cholesky(covariance), (old.flat - mean).T)
    log_prior = -0.5 * (units**2).sum(axis=0)
    log_likelihood = evaluate(target, {WEIGHTS: old.flat[None]})[0][0] - log_prior
    with np.errstate(divide="ignore"):
        log_weight, pareto_k = smooth_log_weights(np.log(old.importance) + log_likelihood)
    previous, prior = old.record.shift, old.record.prior
    learned = prior is not None and bool(prior.scale_learned)
    result = Shift(
        updates=1 if previous is None else 1 + previous.updates,
        scale_learned=learned or (previous is not None and previous.scale_learned),
        pareto_k=pareto_k,
    )
    if not pareto_k <= POOR_PARETO_K:
        return result
    importance = importance_weights(log_weight)
    centre = importance @ old.flat
    shift = (new.mean - centre) / new.deviation
    error = np.hypot(
        _standard_error(old, importance, centre), _standard_error(new, new.importance, new.mean)
    )
    return structs.replace(
        result,
        shift=dict(zip(old.features, shift.tolist(), strict=True)),
        error=float((error / new.deviation).max()),
    )


def _standard_error(draws: Draws, importance: Float64, mean: Float64) -> Float64:
    """Return the standard errors of the weighted means of draws, (Q,)."""
    squares = (importance**2) @ (draws.flat - mean) ** 2
    if draws.weighted:
        return np.asarray(np.sqrt(squares))
    # Draws of chains are correlated.
    return np.asarray(np.sqrt(squares * np.maximum(len(draws.flat) / ess(draws.weights), 1.0)))


def report_shift(record: Shift | None, old: Draws, new: Draws) -> None:
    """Log the shift, or warn if it is large, cannot be estimated, or adds to earlier ones.

    Other settings of the likelihood, such as a κ that depends on the lists, are warned about.

    Args:
        record: the result of `gaussian_shift`.
        old: as for `gaussian_shift`.
        new: as for `gaussian_shift`.
    """
    first, second = old.record.likelihood, new.record.likelihood
    if first and second and first.name == second.name and first != second:
        warn_user(
            f"the likelihood of the new lists ({second}) is not that of the posterior that is "
            f"the prior ({first}): give that one, with its settings"
        )
    if record is None:
        return
    remedy = "adapt to the old and the new lists together, which is exact"
    represents = "a Gaussian represents the posterior that is the prior"
    if record.scale_learned:
        represents += ", whose own prior was scaled to the old lists alone"
    if record.error is None:
        warn_user(
            f"{represents}, and how far it shifts the weights cannot be estimated (Pareto k̂ "
            f"{record.pareto_k:.2f} of the old draws): {remedy}"
        )
        return
    feature, shift = max(record.shift.items(), key=lambda item: abs(item[1]))
    text = (
        f"{represents}: it shifts the means of the weights by up to {abs(shift):.2f} ± "
        f"{record.error:.2f} posterior standard deviations ({feature})"
    )
    if record.updates > 1:
        text += f", and this is update {record.updates} in a row, whose shifts add up"
    if abs(shift) > _LARGE or record.updates > 1:
        warn_user(f"{text}; {remedy}")
    else:
        log_info(f"{text}; to avoid it, {remedy}")
