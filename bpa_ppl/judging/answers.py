"""The posterior of the weights given answers to pairs, by Laplace's approximation in NumPy.

The model is that of the likelihood `preference`: with u = λ·(h_first − h_second),

    p(first) : p(second) : p(tie) = e^{u/2} : e^{−u/2} : ν       (Davidson 1970)

and with probability ε one of the three answers is given at random. "No difference" is always a
possible answer, log ν ~ N(0, 1), and the prior of λ is Gaussian. The mode takes a few Newton steps
from the previous one, less than a millisecond for a hundred answers.
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from scipy.special import logsumexp, softmax

from bpa_ppl.nbest import Float64, Int64

#: The possible answers, and their numbers in arrays.
FIRST, SECOND, TIE = "first", "second", "tie"
ANSWERS = (FIRST, SECOND, TIE)
_STEPS, _TOLERANCE = 100, 1e-8  # of Newton's method; a squared length in standard deviations


class Answers(NamedTuple):
    """Answers to n pairs of candidates with K weighted features.

    Attributes:
        difference: (n, K) features of the first candidate minus those of the second.
        base: (n,) the same difference of the score of features with a fixed weight.
        answer: (n,) positions in `ANSWERS`.
    """

    difference: Float64
    base: Float64
    answer: Int64

    @classmethod
    def none(cls, features: int) -> Self:
        """Return no answers."""
        return cls(np.zeros((0, features)), np.zeros(0), np.zeros(0, np.int64))

    def added(self, difference: Float64, base: float, answer: str) -> Self:
        """Return these answers and one more.

        >>> answers = Answers.none(2).added(np.array([1.0, 0.0]), 0.0, TIE)
        >>> answers.difference.tolist(), answers.answer.tolist()
        ([[1.0, 0.0]], [2])
        """
        return self._replace(
            difference=np.vstack([self.difference, difference]),
            base=np.append(self.base, base),
            answer=np.append(self.answer, ANSWERS.index(answer)),
        )


class Gaussian(NamedTuple):
    """A Gaussian of λ and log ν, K + 1 values.

    Attributes:
        mean: (K + 1,), log ν last.
        covariance: (K + 1, K + 1).
    """

    mean: Float64
    covariance: Float64

    @classmethod
    def prior(cls, mean: Float64, covariance: Float64) -> Self:
        """Return the prior of λ, and log ν ~ N(0, 1)."""
        size = len(mean)
        full = np.eye(size + 1)
        full[:size, :size] = covariance
        return cls(np.append(mean, 0.0), full)

    def sample(self, rng: np.random.Generator, count: int) -> Float64:
        """Draw (count, K + 1) values."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return np.asarray(self.mean + rng.normal(size=(count, len(self.mean))) @ root.T)

    @property
    def deviation(self) -> Float64:
        """(K,) standard deviations of the weights."""
        return np.asarray(np.sqrt(np.diag(self.covariance)[:-1]))


def probabilities(u: Float64, log_nu: Float64, slip: float = 0.0) -> Float64:
    """Return the probabilities of `ANSWERS` to pairs, (3, …).

    Args:
        u: (…) score of the first candidate minus that of the second.
        log_nu: log ν, broadcast to them.
        slip: ε.

    >>> probabilities(np.zeros(1), np.zeros(1)).round(3).ravel().tolist()
    [0.333, 0.333, 0.333]
    """
    return np.asarray((1 - slip) * softmax(_scores(u, log_nu), axis=0) + slip / len(ANSWERS))


def _scores(u: Float64, log_nu: Float64) -> Float64:
    """Return the logarithms of what the probabilities are proportional to, (3, …)."""
    return np.stack(np.broadcast_arrays(u / 2, -u / 2, log_nu))


def log_density(answers: Answers, prior: Gaussian, theta: Float64, slip: float = 0.0) -> float:
    """Return the log posterior density of λ and log ν, (K + 1,), up to a constant."""
    shift = theta - prior.mean
    u = answers.difference @ theta[:-1] + answers.base
    scores = _scores(u, theta[-1])
    log_p = scores[answers.answer, np.arange(len(u))] - logsumexp(scores, axis=0)
    if slip:
        log_p = np.logaddexp(np.log1p(-slip) + log_p, np.log(slip / len(ANSWERS)))
    return float(log_p.sum() - 0.5 * shift @ np.linalg.solve(prior.covariance, shift))


def posterior(
    answers: Answers, prior: Gaussian, slip: float = 0.0, start: Float64 | None = None
) -> Gaussian:
    """Return Laplace's approximation of the posterior of λ and log ν.

    The curvature is that of expectation maximisation, in which an answer counts as much as it is
    probable not to be a slip. It is exact without slips, and always positive definite.

    Args:
        answers: so far.
        prior: of λ and log ν.
        slip: ε, from 0 to below 1.
        start: (K + 1,) where the search begins; None is the mean of the prior.

    >>> prior = Gaussian.prior(np.zeros(1), np.eye(1))
    >>> answers = Answers.none(1).added(np.array([2.0]), 0.0, FIRST)
    >>> posterior(answers, prior).mean.round(2).tolist()
    [0.6, -0.25]
    """
    precision = np.linalg.inv(prior.covariance)
    theta = prior.mean if start is None else start
    value = log_density(answers, prior, theta, slip)
    curvature = precision
    for _ in range(_STEPS):
        slope, curvature = _derivatives(answers, theta, slip)
        gradient = slope - precision @ (theta - prior.mean)
        curvature = curvature + precision
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step < _TOLERANCE:
            break
        scale = 1.0
        while (reached := log_density(answers, prior, theta + scale * step, slip)) < value:
            scale /= 2
            if scale < _TOLERANCE:
                break
        theta, value = theta + scale * step, reached
    covariance = np.linalg.inv(curvature)
    return Gaussian(theta, (covariance + covariance.T) / 2)


def _derivatives(answers: Answers, theta: Float64, slip: float) -> tuple[Float64, Float64]:
    """Return the gradient of the log-likelihood, (K + 1,), and its curvature, (K + 1, K + 1)."""
    features = answers.difference
    u = features @ theta[:-1] + answers.base
    p = probabilities(u, theta[-1])
    first, second, tie = np.arange(3)[:, None] == answers.answer
    own = np.maximum(p[answers.answer, np.arange(len(u))], np.finfo(float).tiny)
    weight = (1 - slip) * own / ((1 - slip) * own + slip / len(ANSWERS))
    # The scores have the derivatives (1/2, -1/2, 0) by u and (0, 0, 1) by log ν.
    by_u = weight * 0.5 * (1.0 * first - second - p[0] + p[1])
    gradient = np.append(by_u @ features, weight @ (tie - p[2]))
    variance = weight * 0.25 * (p[0] + p[1] - (p[0] - p[1]) ** 2)
    covariance = weight * -0.5 * (p[0] - p[1]) * p[2]
    curvature = np.empty((len(theta),) * 2)
    curvature[:-1, :-1] = (features * variance[:, None]).T @ features
    curvature[:-1, -1] = curvature[-1, :-1] = covariance @ features
    curvature[-1, -1] = weight @ (p[2] * (1 - p[2]))
    return gradient, curvature
