"""The posterior of the weights given answers to questions, by Laplace's approximation in NumPy.

The model is that of the likelihood `preference`. The score of a candidate is s = λ·h. Of a pair,

    p(first) : p(second) : p(tie) = e^{u/2} : e^{−u/2} : ν,   u = s_first − s_second

(Davidson 1970), so that "no difference" is always a possible answer; log ν ~ N(0, 1). With
probability ε one of the three answers is given at random. The prior of λ is Gaussian. The mode
takes a few Newton steps from the previous one, about a millisecond for a hundred answers.

The weights of features without a canonical weight have an unknown common scale a priori (see
`bpa_ppl.models.priors.isotropic.with_shared_scale`). The posterior is a mixture over values of this
scale, each weighted by its prior probability and by Laplace's approximation of p(answers | scale)
(MacKay 1992); questions are chosen by its mean and its covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from scipy.special import softmax

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.densities.newton import (
    Derivatives,
    combine_components,
    laplace_covariance,
    laplace_evidence,
    maximise,
)
from bpa_ppl.models.priors.scale import LogNormalScale
from bpa_ppl.posterior.probabilities import normalise

#: The second derivative is used if its smallest eigenvalue is at least this share of the one of
#: expectation maximisation.
_LEAST_EIGENVALUE = 0.1
_NEWTON_STEPS, _NEWTON_TOLERANCE = 100, 1e-7  # a squared length in standard deviations


class Alternatives(NamedTuple):
    """The possible answers to a question: the first, the second candidate, and "no difference".

    Attributes:
        features: (…, 3, K + 1) coefficients of λ and log ν in the score of each; several questions
            have more axes in front.
        base: (…, 3) the rest of the score.
    """

    features: Float64
    base: Float64

    @classmethod
    def of(cls, features: Float64, base: Float64) -> Self:
        """Return the possible answers to a question about two candidates.

        Args:
            features: (…, 2, K) weighted features of the candidates.
            base: (…, 2) their scores by the features with a fixed weight.

        >>> pair = Alternatives.of(np.array([[3.0], [1.0]]), np.zeros(2))
        >>> pair.features.tolist()  # half of u, minus half of u, and log ν
        [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]
        """
        coefficients = np.zeros((*features.shape[:-2], 3, features.shape[-1] + 1))
        coefficients[..., :2, :-1] = features - features.mean(axis=-2, keepdims=True)
        coefficients[..., 2, -1] = 1.0
        score = np.zeros((*base.shape[:-1], 3))
        score[..., :2] = base - base.mean(axis=-1, keepdims=True)
        return cls(coefficients, score)

    def probabilities(self, theta: Float64, slip: float = 0.0) -> Float64:
        """Return the probability of each answer, (…, 3, D), given λ and log ν, (D, K + 1), and ε.

        >>> equal = Alternatives.of(np.zeros((2, 1)), np.zeros(2))
        >>> equal.probabilities(np.zeros((1, 2))).round(3).ravel().tolist()
        [0.333, 0.333, 0.333]
        """
        p = softmax(self.features @ theta.T + self.base[..., None], axis=-2)
        return np.asarray((1 - slip) * p + slip / p.shape[-2])


#: Questions about n pairs, and their answers, (n,): 0 the first candidate, 1 the second, 2 no
#: difference.
Answers = tuple[Alternatives, Int64]


class Gaussian(NamedTuple):
    """A Gaussian of λ and log ν, K + 1 values, or a mixture of them.

    Attributes:
        mean: (K + 1,), log ν last.
        covariance: (K + 1, K + 1).
        parts: the Gaussians of a mixture with this mean and covariance; none of one Gaussian.
        shares: (parts,) the probabilities of the parts.
    """

    mean: Float64
    covariance: Float64
    parts: tuple[Gaussian, ...] = ()
    shares: Float64 = np.ones(1)

    @classmethod
    def prior(cls, mean: Float64, covariance: Float64) -> Self:
        """Return the prior of λ, and log ν ~ N(0, 1)."""
        size = len(mean)
        full = np.eye(size + 1)
        full[:size, :size] = covariance
        return cls(np.append(mean, 0.0), full)

    def sample(self, rng: np.random.Generator, count: int) -> Float64:
        """Draw (count, K + 1) values."""
        if self.parts:
            counts = rng.multinomial(count, self.shares)
            drawn = [part.sample(rng, n) for part, n in zip(self.parts, counts, strict=True) if n]
            return np.asarray(rng.permutation(np.vstack(drawn)))
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(self.mean + rng.normal(size=(count, len(self.mean))) @ root.T)


def make_density(
    answers: Answers, prior: Gaussian, slip: float = 0.0
) -> Callable[[Float64], Derivatives]:
    """Return a function that evaluates the log posterior density of λ and log ν at a point.

    The density is up to a constant. Its curvature is that of expectation maximisation, in which an
    answer counts as much as it is probable not to be a slip. Without slips it is minus the second
    derivative.

    Args:
        answers: so far.
        prior: of λ and log ν.
        slip: ε, from 0 to below 1.

    >>> prior = Gaussian.prior(np.zeros(1), np.eye(1))
    >>> pair = Alternatives.of(np.array([[[2.0], [0.0]]]), np.zeros((1, 2)))
    >>> round(make_density((pair, np.array([0])), prior)(np.zeros(2))[0], 3)  # log ⅓
    -1.099
    """
    (features, base), chosen = answers
    rows = np.arange(len(base))
    precision = np.linalg.inv(prior.covariance)

    def density(theta: Float64) -> Derivatives:
        scores = features @ theta + base
        log_total, p = normalise(scores, axis=1)
        log_own = np.log1p(-slip) + scores[rows, chosen] - log_total[:, 0]
        with np.errstate(divide="ignore"):  # without slips it is −∞
            log_p = np.logaddexp(log_own, np.log(slip / 3))
        weight = np.exp(log_own - log_p)  # the probability that the answer is not a slip
        mean = np.einsum("na,nak->nk", p, features)
        scaled = (features * np.sqrt(weight[:, None] * p)[..., None]).reshape(-1, len(theta))
        centre = mean * np.sqrt(weight)[:, None]
        lead = features[rows, chosen] - mean
        pull = precision @ (prior.mean - theta)
        value = float(log_p.sum() - 0.5 * pull @ (prior.mean - theta))
        curvature = scaled.T @ scaled - centre.T @ centre + precision
        lost = lead.T @ (lead * (weight * (1 - weight))[:, None])
        return value, weight @ lead + pull, curvature - lost, curvature

    return density


def fit_posterior(
    answers: Answers, prior: Gaussian, slip: float = 0.0, start: Float64 | None = None
) -> tuple[Gaussian, float]:
    """Return Laplace's approximations of the posterior of λ and log ν, and of log p(answers).

    Args:
        answers: so far.
        prior: of λ and log ν.
        slip: ε, from 0 to below 1.
        start: (K + 1,) where the search begins; None is the mean of the prior.

    >>> prior = Gaussian.prior(np.zeros(1), np.eye(1))
    >>> pair = Alternatives.of(np.array([[[2.0], [0.0]]]), np.zeros((1, 2)))
    >>> weights, log_evidence = fit_posterior((pair, np.array([0])), prior)
    >>> weights.mean.round(2).tolist(), round(log_evidence, 2)
    ([0.6, -0.25], -1.07)
    """
    mode, hessian = maximise(
        make_density(answers, prior, slip),
        prior.mean if start is None else start,
        tolerance=_NEWTON_TOLERANCE,
        iterations=_NEWTON_STEPS,
        last_step=False,
    )
    covariance, largest = mode.covariance, np.linalg.eigvalsh(mode.covariance).max()
    if np.linalg.eigvalsh(hessian).min() * largest > _LEAST_EIGENVALUE:
        covariance = laplace_covariance(hessian)
    # The density has the prior without its constant.
    log_evidence = laplace_evidence(-mode.potential_energy, covariance)
    log_evidence -= laplace_evidence(0.0, prior.covariance)
    return Gaussian(mode.position, covariance), log_evidence


def integrate_scales(
    answers: Answers,
    prior_of: Callable[[float], Gaussian],
    scale: LogNormalScale,
    log_scales: Float64,
    slip: float = 0.0,
) -> Gaussian:
    """Return the posterior integrated over the scale of the prior.

    Args:
        answers: so far.
        prior_of: returns the prior of λ and log ν with a scale, in units of the typical one.
        scale: its distribution a priori.
        log_scales: (n,) ascending values in equal distances.
        slip: ε, from 0 to below 1.

    Returns:
        a mixture of n Gaussians, whose shares are the probabilities of the scales.

    >>> def prior_of(scale):
    ...     return Gaussian.prior(np.zeros(1), 0.04 * scale**2 * np.eye(1))
    >>> pairs = Alternatives.of(np.array([[[2.0], [0.0]]] * 20), np.zeros((20, 2)))
    >>> scale = LogNormalScale(1.0, np.array([True]))
    >>> answers = pairs, np.zeros(20, int)
    >>> weights = integrate_scales(answers, prior_of, scale, scale.log_scales)
    >>> bool(weights.mean[0] > 0.5), bool(scale.log_scales @ weights.shares > 1)
    (True, True)
    """
    parts, log_p, start = list[Gaussian](), np.empty(len(log_scales)), None
    for number, log_scale in enumerate(log_scales):
        prior = prior_of(float(np.exp(log_scale)))
        part, log_p[number] = fit_posterior(answers, prior, slip, start)
        parts.append(part)
        start = part.mean  # the next mode is near
    log_p += scale.log_density(log_scales)
    means, covariances = (np.array([part[k] for part in parts]) for k in range(2))
    probability, mean, covariance = combine_components(log_p, means, covariances)
    return Gaussian(mean, covariance, tuple(parts), probability)
