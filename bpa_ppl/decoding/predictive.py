"""The predictive rule: average p(e|f,λ) over the draws."""

from __future__ import annotations

import jax

from bpa_ppl.decoding.ensemble import Ensemble
from bpa_ppl.decoding.scores import log_probabilities


def log_scores(features: jax.Array, valid: jax.Array, ensemble: Ensemble) -> jax.Array:
    """Return log Σ_λ w(λ) p(e|f,λ)^(1/δ) of the hypotheses of one list, (N, Q) ↦ (N,).

    With equal weights and δ = 1 this is Eq. 13; with w(λ) = p(A|λ)^(1/δ) p(λ|T), Eq. 11.
    """
    log_p = log_probabilities(features, valid, ensemble.weights)
    return jax.nn.logsumexp(ensemble.power * log_p + ensemble.log_weight[None, :], axis=1)
