"""Proposals for weights whose prior has an unknown common scale.

Given the scale the prior is Gaussian, and the posterior nearly so; integrated over the scale it is
not. So proposals are a mixture over values of the scale, of a Student t around the mode given each,
weighted by the prior of the scale and by Laplace's approximation of the evidence. A few answers
that some weights explain perfectly say nothing about larger ones in the same direction; then the
mode is far from most of the posterior given a large scale, and the components are fitted to draws
(Cappé, Douc, Guillin, Marin & Robert 2008).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from scipy.special import logsumexp, softmax

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.models.priors.scale import InverseChi, in_floats
from bpa_ppl.posterior.record import Figures
from bpa_ppl.sampling.mode import mode_of, require_mode
from bpa_ppl.sampling.newton import Mode, combine_components
from bpa_ppl.sampling.target import unflatten
from bpa_ppl.sampling.weights_target import WeightsTarget, has_unknown_scale

#: Distance of the logarithms of scales: the radius of K weights has a relative deviation of
#: 1 / √(2 K) given the scale, and their Student t is wider.
_STEP = 0.25
#: The share of a component with the tails of the prior: the posterior has them in directions that
#: the data say nothing about.
_DEFENSIVE = 0.1
#: The degrees of freedom of the other components.
_DEGREES = 10.0
#: Of those that are fitted to draws, and how many of the scales these have: every third one.
_FITTED_DEGREES, _EVERY = 5.0, 3
#: The share of a component is not below this one.
_LEAST_SHARE = 1e-4
#: Scales are left out if they are less probable than the best one by this factor, in nats.
_NEGLIGIBLE = 7.0
_MOST = 40  # steps from the typical scale


class ScaleMixture(NamedTuple):
    """A mixture of Student t (n components of d values), with the interface of `SkewedProposal`.

    Attributes:
        mode: its `position` and `covariance` are mean and covariance of the mixture of Gaussians;
            draws are in units of them.
        log_share: (n,) the logarithms of the shares.
        centre: (n, d) of the components.
        factor: (n, d, d) Cholesky factors of their covariances.
        degrees_of_freedom: (n,) of each.
        log_evidence: log p(A), by Laplace's approximation given each scale.
        share: that of the Student t, which is all of it.
    """

    mode: Mode
    log_share: Float64
    centre: Float64
    factor: Float64
    degrees_of_freedom: Float64
    log_evidence: float
    share: float = 1.0

    def report_in(self, figures: Figures) -> Figures:
        """Return figures with the share of the t and the evidence."""
        return structs.replace(figures, student_share=self.share, log_evidence=self.log_evidence)

    def draw(self, rng: np.random.Generator, count: int) -> Float64:
        """Return draws, (count, d), in standard deviations of the mixture."""
        unit = rng.normal(size=(count, self.centre.shape[1]))
        component = rng.choice(len(self.log_share), size=count, p=softmax(self.log_share))
        with np.errstate(all="ignore"):  # very few degrees of freedom give infinite draws
            degrees = self.degrees_of_freedom[component]
            scale = rng.chisquare(degrees) / degrees
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

    def to_fit(self) -> ScaleMixture:
        """Return a mixture of fewer components, for `fitted`; the last one stays."""
        last = len(self.log_share) - 1
        kept = np.append(np.arange(last // 2 % _EVERY, last, _EVERY), last)
        log_share = self.log_share[kept]
        log_share[:-1] += np.log1p(-np.exp(log_share[-1])) - logsumexp(log_share[:-1])
        degrees = np.append(np.full(len(kept) - 1, _FITTED_DEGREES), self.degrees_of_freedom[last])
        return self._replace(
            log_share=log_share,
            centre=self.centre[kept],
            factor=self.factor[kept],
            degrees_of_freedom=degrees,
        )

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
            degrees = self.degrees_of_freedom[k]
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
        return self._replace(log_share=log_share, centre=centre, factor=factor)

    def _log_parts(self, x: Float64) -> tuple[Float64, Float64]:
        """Return the log density of each component times its share, and squared distances."""
        parts, distances = [], []
        with np.errstate(all="ignore"):  # draws may be infinitely far
            for log_share, centre, factor, degrees in zip(
                self.log_share, self.centre, self.factor, self.degrees_of_freedom, strict=True
            ):
                squared = np.square((x - centre) @ np.linalg.inv(factor).T).sum(axis=1)
                log_q = InverseChi(degrees).log_marginal(squared, x.shape[1], x.shape[1])
                parts.append(log_share + log_q - np.log(np.diag(factor)).sum())
                distances.append(squared)
        return np.array(parts), np.array(distances)


def estimate_evidence(target: WeightsTarget) -> float:
    """Return log p(A), by Laplace's approximation, given each scale if the scale is unknown.

    Raises:
        UsageError: if no mode is found.
    """
    mixture = fit_scale_mixture(target) if has_unknown_scale(target) else None
    return require_mode(target).log_evidence if mixture is None else mixture.log_evidence


def fit_scale_mixture(target: WeightsTarget) -> ScaleMixture | None:
    """Return the mixture for a target with an unknown scale; None if there is no mode."""
    modes: dict[int, tuple[Mode, float]] = {}
    scale = in_floats(target.prior.scale)
    assert scale is not None

    def log_probability(step: int, start: Any) -> float:
        """Add the mode given a scale, and return the log probability of this scale."""
        prior, log_scale = target.prior, step * _STEP
        given = replace(target, prior=prior.with_scale(np.exp(log_scale)), start=start)
        mode = mode_of(given)
        if not mode.converged:
            return -np.inf
        modes[step] = mode, mode.log_evidence + scale.log_density(log_scale)
        return modes[step][1]

    best = log_probability(0, target.start)
    for direction in (1, -1):
        start = target.start
        for step in range(direction, direction * _MOST, direction):
            if step - direction in modes:
                start = unflatten(modes[step - direction][0].position, target.start)
            value = log_probability(step, start)
            best = max(best, value)
            if value < best - _NEGLIGIBLE:
                break
    if not modes:
        return None
    kept = [pair for pair in modes.values() if pair[1] >= best - _NEGLIGIBLE]
    log_p = np.array([value for _, value in kept])
    centres = np.array([mode.position for mode, _ in kept])
    covariances = np.array([mode.covariance for mode, _ in kept])
    share, mean, covariance = combine_components(log_p, centres, covariances)
    unit = np.linalg.inv(np.linalg.cholesky(covariance))
    likely = int(np.argmax(share))
    repeated = [*range(len(kept)), likely]
    return ScaleMixture(
        kept[likely][0]._replace(position=mean, covariance=covariance),
        np.log(np.append((1 - _DEFENSIVE) * share, _DEFENSIVE)),
        ((centres - mean) @ unit.T)[repeated],
        (unit @ np.linalg.cholesky(covariances))[repeated],
        np.append(np.full(len(kept), _DEGREES), scale.tail_degrees),
        float(logsumexp(log_p) + np.log(_STEP)),
    )
