"""PRO, pairwise ranked optimisation (Hopkins and May, 2011)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.components import Count, NotNegative, Positive, Share
from bpa_ppl.extras.tuning.tuner import Tuned, Tuner, TuningProblem


class Pro(Tuner, frozen=True):
    """A classifier of pairs of candidates, with the defaults of Hopkins and May (2011).

    Args:
        iterations: of drawing pairs, training a classifier, and updating the weights.
        pairs: Γ, the number of random pairs of each list.
        kept: Ξ, the number of pairs of each list with the largest differences.
        minimum_difference: α, of the sentence scores of a pair, as a fraction.
        interpolation: Ψ, the share of the classifier in the new weights.
        penalty: C of logistic regression; the smaller, the shorter the weights.

    Raises:
        UsageError: if a setting is invalid.
    """

    title = "pairwise ranking optimisation"
    iterations: Count = 30
    pairs: Count = 5000
    kept: Count = 50
    minimum_difference: NotNegative = 0.05
    interpolation: Share = 0.1
    penalty: Positive = 1.0

    def tune(self, problem: TuningProblem) -> Tuned:
        """Return weights that rank pairs of candidates as the sentence metric does."""
        rng = np.random.default_rng(problem.seed)
        lists, gains = problem.lists, problem.metric.fraction(problem.lists.counts)
        weights, visited = problem.start, []
        for iteration in range(1, self.iterations + 1):
            pairs = [
                start + self._draw(gains[start:stop], rng)
                for start, stop in pairwise(lists.offsets.tolist())
            ]
            better, worse = np.concatenate(pairs).T
            features = lists.features[better] - lists.features[worse]
            fixed = lists.fixed[better] - lists.fixed[worse]
            share = self.interpolation if len(fixed) else 0.0
            learned = _fit_classifier(features, fixed, weights, self.penalty)
            weights = share * learned + (1 - share) * weights
            visited.append(weights)
            problem.progress(iteration, self.iterations, f"{len(fixed)} pairs")
        return Tuned(weights, np.array(visited))

    def _draw(self, gains: Float64, rng: np.random.Generator) -> Int64:
        """Return (pairs, 2) the better and the worse candidate of pairs of one list."""
        pairs = rng.integers(len(gains), size=(self.pairs, 2))
        difference = gains[pairs[:, 0]] - gains[pairs[:, 1]]
        different = np.flatnonzero(np.abs(difference) > self.minimum_difference)
        order = np.argsort(-np.abs(difference[different]), kind="stable")
        chosen = different[order[: self.kept]]
        return np.where(difference[chosen, None] > 0, pairs[chosen], pairs[chosen, ::-1])


def _fit_classifier(x: Float64, fixed: Float64, start: Float64, penalty: float) -> Float64:
    """Return the weights of logistic regression without intercept, with a penalty on ½|λ|².

    Each pair counts twice, in both orders.

    Args:
        x: (pairs, Q) differences of features, better minus worse.
        fixed: (pairs,) differences of the parts of the scores from fixed weights.
        start: (Q,) initial weights.
        penalty: C.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    # Sums by einsum, not by BLAS: tables this narrow gain nothing from threads.
    def loss(weights: Float64) -> tuple[float, Float64]:
        margins = np.einsum("pq,q->p", x, weights) + fixed
        value = weights @ weights / 2 + 2 * penalty * np.logaddexp(0, -margins).sum()
        return value, weights - 2 * penalty * np.einsum("p,pq->q", expit(-margins), x)

    def curvature(weights: Float64) -> Float64:
        chance = expit(np.einsum("pq,q->p", x, weights) + fixed)
        weighted = x * (chance * (1 - chance))[:, None]
        result: Float64 = np.eye(len(weights)) + 2 * penalty * np.einsum("pq,pr->qr", x, weighted)
        return result

    solution: Float64 = minimize(loss, start, jac=True, hess=curvature, method="trust-exact").x
    return solution
