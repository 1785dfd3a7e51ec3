"""Evidence and predictions of pairs given each scale of the prior, by importance sampling in NumPy.

Any prior of the scale then needs only a weighted mean over its values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from list_modes import choices, find_mode
from scipy.special import expit, gammaln, log_expit, logsumexp, softmax

from bpa_ppl._runtime.arrays import Float64

#: log τ, in units of τ₀ = 1 / √(2 K).
LOG_SCALES = np.arange(-4, 5.01, 0.25)
DRAWS, DEGREES = 256, 10.0


class Given(NamedTuple):
    """What follows from each scale.

    Attributes:
        log_evidence: (scales,) of the answers.
        probability: (scales, test pairs) of the right candidate.
    """

    log_evidence: Float64
    probability: Float64

    def predict(self, log_prior: Float64, *, plug_in: bool = False) -> Float64:
        """Return the probabilities with a prior of the scale, or with the most probable scale."""
        joint = self.log_evidence + log_prior
        if plug_in:
            return np.asarray(self.probability[joint.argmax()])
        return np.asarray(np.exp(joint - logsumexp(joint)) @ self.probability)

    def loss(self, log_prior: Float64) -> tuple[float, Float64]:
        """Return the mean log loss on the test pairs, and its derivative by the log prior."""
        share = softmax(self.log_evidence + log_prior)
        p = share @ self.probability
        return -float(np.log(p).mean()), share - share * (self.probability / p).mean(axis=1)

    def log_marginal(self, log_prior: Float64) -> float:
        """Return the log evidence of the answers, integrated over the scale."""
        return float(logsumexp(self.log_evidence + log_prior - logsumexp(log_prior)))


def normal(mean: float, deviation: float) -> Float64:
    """Return log p(log τ) but for a constant, for log τ / τ₀ ~ N(mean, deviation²)."""
    return np.asarray(-((LOG_SCALES - mean) ** 2) / 2 / deviation**2)


def infer(lead: Float64, test: Float64, correlation: float, rng: np.random.Generator) -> Given:
    """Return evidence and predictions given each scale.

    Args:
        lead: (n, K) the features of the chosen candidate less those of the other one.
        test: (m, K) the same of the right candidates of test pairs.
        correlation: of weights a priori, as a share of that of the features.
        rng: of the importance sample.
    """
    spread = np.sqrt((lead**2).mean(axis=0)) / 2
    x, new = (values[:, spread > 0] / spread[spread > 0] for values in (lead, test))
    size = x.shape[1]
    units = x / np.sqrt((x**2).mean(axis=0))
    prior = (1 - correlation) * np.eye(size) + correlation * units.T @ units / len(units)
    inverse, log_determinant = np.linalg.inv(prior), np.linalg.slogdet(prior)[1]
    z = rng.normal(size=(DRAWS // 2, size))
    z *= np.sqrt(DEGREES / rng.chisquare(DEGREES, (DRAWS // 2, 1)))
    z = np.concatenate([z, -z])
    log_q = -(DEGREES + size) / 2 * np.log1p((z**2).sum(axis=1) / DEGREES)
    log_q += gammaln((DEGREES + size) / 2) - gammaln(DEGREES / 2)
    log_q -= size / 2 * np.log(DEGREES * np.pi)
    weights, evidence, probability = np.zeros(size), [], []
    for scale in np.sqrt(0.5 / size) * np.exp(LOG_SCALES):
        precision = inverse / scale**2
        weights, curvature = find_mode(choices(x), precision, np.zeros(size), weights)
        factor = np.linalg.cholesky(curvature)
        drawn = weights + np.linalg.solve(factor.T, z.T).T
        log_w = log_expit(drawn @ x.T).sum(axis=1) - log_q - np.log(np.diag(factor)).sum()
        log_w -= np.einsum("nk,kl,nl->n", drawn, precision, drawn) / 2
        log_w -= size / 2 * np.log(2 * np.pi * scale**2) + log_determinant / 2
        evidence.append(logsumexp(log_w) - np.log(DRAWS))
        probability.append(np.exp(log_w - logsumexp(log_w)) @ expit(drawn @ new.T))
    return Given(np.array(evidence), np.array(probability))
