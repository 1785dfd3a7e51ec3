"""How far a Gaussian in place of a posterior shifts the weights, when new sentences are added.

The old draws, weighted by the likelihood of the new sentences, are draws of the exact posterior of
all sentences, as long as enough of them count (Pareto k̂).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bpa_ppl.arrays import Float64
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.notes import log_info, warn_user
from bpa_ppl.posterior.draws import WEIGHTS, Draws, importance_weights
from bpa_ppl.posterior.statistics import POOR_PARETO_K, ess, pareto_smoothed
from bpa_ppl.sampling.target import Target, evaluate, model_info

#: The attribute of a posterior with the result of `gaussian_shift`.
SHIFT: Final = "gaussian_prior"
#: A larger shift is warned about.
_LARGE = 0.25


def gaussian_shift(target: Target, old: Draws, new: Draws) -> dict[str, Any]:
    """Return how far the Gaussian of a posterior, as a prior, shifts the means of the weights.

    Args:
        target: the posterior of the new sentences, with the Gaussian of `old` as its prior.
        old: the posterior that the Gaussian represents, of the free features in their order.
        new: draws of `target`.

    Returns:
        `updates`, how many Gaussians of posteriors followed each other; `scale_learned`, whether
        the old sentences alone determine the scale of the prior; `pareto_k` of the old
        draws, weighted by the likelihood of the new sentences; and, if it is at most 0.7, `shift`,
        by feature the mean of `new` minus that of the weighted old draws, in standard deviations
        of `new`, and the largest standard `error` of a shift. Empty if the model has other sites
        than the weights.
    """
    if target.model is not log_linear or model_info(target).latent != (WEIGHTS,):
        return {}
    mean, covariance = np.asarray(target.prior.mean), np.asarray(target.prior.covariance)
    units = np.linalg.solve(np.linalg.cholesky(covariance), (old.flat - mean).T)
    log_prior = -0.5 * (units**2).sum(axis=0)
    log_likelihood = evaluate(target, {WEIGHTS: old.flat[None]})[0][0] - log_prior
    with np.errstate(divide="ignore"):
        log_weight, pareto_k = pareto_smoothed(np.log(old.importance) + log_likelihood)
    previous, prior = old.attrs.get(SHIFT, {}), old.attrs.get("prior")
    learned = isinstance(prior, dict) and bool(prior.get("scale_learned"))
    record: dict[str, Any] = {
        "updates": 1 + int(previous.get("updates", 0)),
        "scale_learned": learned or bool(previous.get("scale_learned")),
        "pareto_k": pareto_k,
    }
    if not pareto_k <= POOR_PARETO_K:
        return record
    importance = importance_weights(log_weight)
    centre = importance @ old.flat
    shift = (new.mean - centre) / new.deviation
    error = np.hypot(_error(old, importance, centre), _error(new, new.importance, new.mean))
    return {
        **record,
        "shift": dict(zip(old.features, shift.tolist(), strict=True)),
        "error": float((error / new.deviation).max()),
    }


def _error(draws: Draws, importance: Float64, mean: Float64) -> Float64:
    """Return the standard errors of the weighted means of draws, (Q,)."""
    squares = (importance**2) @ (draws.flat - mean) ** 2
    if draws.weighted:
        return np.asarray(np.sqrt(squares))
    # Draws of chains are correlated.
    return np.asarray(np.sqrt(squares * np.maximum(len(draws.flat) / ess(draws.weights), 1.0)))


def report_shift(record: dict[str, Any], old: Draws, new: Draws) -> None:
    """Log the shift, or warn if it is large, cannot be estimated, or adds to earlier ones.

    Other settings of the likelihood, such as a κ that depends on the lists, are warned about.

    Args:
        record: the result of `gaussian_shift`.
        old: as for `gaussian_shift`.
        new: as for `gaussian_shift`.
    """
    first, second = (dict(draws.attrs.get("likelihood") or {}) for draws in (old, new))
    if first != second and first.get("name") == second.get("name"):
        settings = [", ".join(f"{k}={v}" for k, v in one.items()) for one in (second, first)]
        warn_user(
            f"the likelihood of the new lists ({settings[0]}) is not that of the posterior that is "
            f"the prior ({settings[1]}): give that one, with its settings"
        )
    if not record:
        return
    remedy = "adapt to the old and the new lists together, which is exact"
    represents = "a Gaussian represents the posterior that is the prior"
    if record["scale_learned"]:
        represents += ", whose own prior was scaled to the old lists alone"
    if "shift" not in record:
        warn_user(
            f"{represents}, and how far it shifts the weights cannot be estimated (Pareto k̂ "
            f"{record['pareto_k']:.2f} of the old draws): {remedy}"
        )
        return
    feature, shift = max(record["shift"].items(), key=lambda item: abs(item[1]))
    text = (
        f"{represents}: it shifts the means of the weights by up to {abs(shift):.2f} ± "
        f"{record['error']:.2f} posterior standard deviations ({feature})"
    )
    if record["updates"] > 1:
        text += f", and this is update {record['updates']} in a row, whose shifts add up"
    if abs(shift) > _LARGE or record["updates"] > 1:
        warn_user(f"{text}; {remedy}")
    else:
        log_info(f"{text}; to avoid it, {remedy}")
