"""A mixture of Student t, for weights whose prior has an unknown common scale.

A few answers that some weights explain perfectly say nothing about larger ones in the same
direction; then the mode is far from most of the posterior given a large scale, and the components
are fitted to draws (Cappé, Douc, Guillin, Marin & Robert 2008).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs
from scipy.special import gammaln, logsumexp, softmax

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.densities.newton import Mode, combine_components
from bpa_ppl.densities.target import Target
from bpa_ppl.posterior.record import Figures

#: The share of a component is not below this one.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class ScaleMixture:
    """A mixture of Student t (n components of d values), a `Proposal`.

    Attributes:
        mode: its `position` and `covariance` are mean and covariance of the mixture of Gaussians;
            draws are in units of them.
        log_share: (n,) the logarithms of the shares.
        centre: (n, d) of the components.
        factor: (n, d, d) Cholesky factors of their covariances.
        degrees_of_freedom: of each.
        log_evidence: log p(A), by Laplace's approximation given each scale.
        share: that of the Student t, which is all of it.
    """

    mode: Mode
    log_share: Float64
    centre: Float64
    factor: Float64
    degrees_of_freedom: float
    log_evidence: float
    share: float = 1.0

    def report(self, target: Target) -> tuple[Float64 | None, Figures]:
        """Return the centre, if it is a mode, and figures with the evidence.

        The mode of the weights alone replaces it in their posterior.
        """
        figures = structs.replace(
            self.mode.figures, student_share=self.share, log_evidence=self.log_evidence
        )
        return self.mode.position if self.mode.converged else None, figures

    def draw(self, rng: np.random.Generator, count: int) -> Float64:
        """Return draws, (count, d), in standard deviations of the mixture."""
        unit = rng.normal(size=(count, self.centre.shape[1]))
        component = rng.choice(len(self.log_share), size=count, p=softmax(self.log_share))
        with np.errstate(all="ignore"):  # very few degrees of freedom give infinite draws
            degrees = self.degrees_of_freedom
            scale = rng.chisquare(degrees, count) / degrees
            unit /= np.sqrt(scale)[:, None]
            moved = np.empty_like(unit)
            for number, factor in enumerate(self.factor):
                chosen = component == number
                moved[chosen] = unit[chosen] @ factor.T
        return np.asarray(self.centre[component] + moved)

    def log_components(self, x: Float64) -> tuple[Float64, Float64]:
        """Return the log density of draws, (n, d) ↦ (n,), twice."""
        log_density = np.asarray(logsumexp(self._log_parts(x)[0], axis=0))
        return log_density, log_density

    def fitted(self, x: Float64, weight: Float64) -> ScaleMixture:
        """Return the mixture after a step that fits all components but the last to weighted draws.

        It is a step of expectation maximisation: each draw counts for a component by the
        probability that it came from it.

        Args:
            x: (n, d) draws, in standard deviations of the mixture.
            weight: (n,) weights of importance, with the sum 1.
        """
        log_parts, squared = self._log_parts(x)
        size, share = x.shape[1], weight * softmax(log_parts[:-1], axis=0)
        centre, factor, shares = self.centre.copy(), self.factor.copy(), share.sum(axis=1)
        for k, of_part in enumerate(share):
            effective = shares[k] ** 2 / np.sum(of_part**2)
            if not effective > 3 * size:
                continue
            degrees = self.degrees_of_freedom
            near = of_part * (degrees + size) / (degrees + squared[k])
            centre[k] = near @ x / near.sum()
            difference = x - centre[k]
            covariance = (difference * near[:, None]).T @ difference / shares[k]
            # With few draws the covariance stays near the previous one.
            trust = effective / (effective + 2 * size)
            covariance = trust * covariance + (1 - trust) * factor[k] @ factor[k].T
            factor[k] = np.linalg.cholesky(covariance)
        shares = np.maximum(shares, _LEAST_SHARE)
        log_share = np.log((1 - np.exp(self.log_share[-1])) * shares / shares.sum())
        log_share = np.append(log_share, self.log_share[-1])
        return replace(self, log_share=log_share, centre=centre, factor=factor)

    def standardised(self) -> ScaleMixture:
        """Return the same mixture in units of its own moments, without the last component."""
        _, mean, covariance = combine_components(
            self.log_share[:-1],
            self.centre[:-1],
            self.factor[:-1] @ self.factor[:-1].transpose(0, 2, 1),
        )
        factor_before, unit = (
            np.linalg.cholesky(values) for values in (self.mode.covariance, covariance)
        )
        factor = factor_before @ unit
        inverse = np.linalg.inv(unit)
        return replace(
            self,
            mode=self.mode._replace(
                position=self.mode.position + factor_before @ mean, covariance=factor @ factor.T
            ),
            centre=(self.centre - mean) @ inverse.T,
            factor=inverse @ self.factor,
        )

    def _log_parts(self, x: Float64) -> tuple[Float64, Float64]:
        """Return the log density of each component times its share, and squared distances."""
        parts, distances = [], []
        with np.errstate(all="ignore"):  # draws may be infinitely far
            for log_share, centre, factor in zip(
                self.log_share, self.centre, self.factor, strict=True
            ):
                squared = np.square((x - centre) @ np.linalg.inv(factor).T).sum(axis=1)
                log_q = log_student(squared, self.degrees_of_freedom, x.shape[1])
                parts.append(log_share + log_q - np.log(np.diag(factor)).sum())
                distances.append(squared)
        return np.array(parts), np.array(distances)


def log_student(squared: Float64, degrees: float, size: int) -> Float64:
    """Return the log density of a multivariate Student t with unit scale.

    >>> log_student(np.zeros(1), 1.0, 1).round(4).tolist()  # that of a Cauchy distribution, 1 / π
    [-1.1447]
    """
    constant = gammaln((degrees + size) / 2) - gammaln(degrees / 2)
    constant = constant - size / 2 * np.log(degrees * np.pi)
    return np.asarray(constant - (degrees + size) / 2 * np.log1p(squared / degrees))
