"""Proposals for weights whose prior has an unknown common scale.

They are for the scale and the weights in units of it: a mixture over values of the scale, of a
Student t around the mode of the weights given each, weighted by the prior of the scale and by
Laplace's approximation of the evidence; and a component that is the prior. A few answers that some
weights explain perfectly say nothing about larger ones in the same direction; then the mode is far
from most of the posterior given a large scale, and the components are fitted to draws (Cappé, Douc,
Guillin, Marin & Robert 2008).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from scipy.special import gammaln, logsumexp, softmax

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.densities.common_scale import Scaled
from bpa_ppl.densities.coordinates import flatten
from bpa_ppl.densities.mode import mode_of, require_mode
from bpa_ppl.densities.newton import Mode, combine_components
from bpa_ppl.densities.target import Target, unflatten
from bpa_ppl.models.priors.scale import in_floats
from bpa_ppl.posterior.record import Figures

#: Distance of the logarithms of scales over which the evidence is summed: the radius of K weights
#: has a relative deviation of 1 / √(2 K) given the scale. Every third one has a component.
_STEP, _EVERY = 0.25, 3
#: The share of the component that is the prior: the posterior has its tails in directions that the
#: data say nothing about.
_DEFENSIVE = 0.1
#: The degrees of freedom of the components, at least and for each value. With 10, chains miss some
#: of the tails after ten labels: standard deviations are 5 to 10 % too small. With 4 in many
#: dimensions the radius of a draw varies too much.
_DEGREES, _DEGREES_PER_VALUE = 4.0, 1 / 3
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

    def report_in(self, figures: Figures) -> Figures:
        """Return figures with the share of the t and the evidence."""
        return structs.replace(figures, student_share=self.share, log_evidence=self.log_evidence)

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
        return self._replace(log_share=log_share, centre=centre, factor=factor)

    def standardised(self) -> ScaleMixture:
        """Return the same mixture in units of its own moments, without the last component."""
        _, mean, covariance = combine_components(
            self.log_share[:-1],
            self.centre[:-1],
            self.factor[:-1] @ self.factor[:-1].transpose(0, 2, 1),
        )
        own, unit = (np.linalg.cholesky(values) for values in (self.mode.covariance, covariance))
        factor = own @ unit
        inverse = np.linalg.inv(unit)
        return self._replace(
            mode=self.mode._replace(
                position=self.mode.position + own @ mean, covariance=factor @ factor.T
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

    Args:
        squared: the squared distance from its centre.
        degrees: of freedom.
        size: how many values.

    >>> log_student(np.zeros(1), 1.0, 1).round(4).tolist()  # that of a Cauchy distribution, 1 / π
    [-1.1447]
    """
    constant = gammaln((degrees + size) / 2) - gammaln(degrees / 2)
    constant = constant - size / 2 * np.log(degrees * np.pi)
    return np.asarray(constant - (degrees + size) / 2 * np.log1p(squared / degrees))


class _ConditionalModes(NamedTuple):
    """The modes given each of n scales.

    Attributes:
        log_scale: (n,) log τ.
        log_p: (n,) log p(A, log τ), by Laplace's approximation.
        modes: of each.
    """

    log_scale: Float64
    log_p: Float64
    modes: tuple[Mode, ...]

    @property
    def log_evidence(self) -> float:
        """The logarithm of p(A), by a sum over the scales."""
        return float(logsumexp(self.log_p) + np.log(_STEP))


def estimate_evidence(target: Target) -> float:
    """Return log p(A), by Laplace's approximation, given each scale if the scale is unknown.

    Raises:
        UsageError: if no mode is found.
    """
    conditional = None if target.prior.scale is None else _find_modes(target)
    return (require_mode(target) if conditional is None else conditional).log_evidence


def _find_modes(target: Target) -> _ConditionalModes | None:
    """Return the modes of the weights given each scale that is probable; None if there is none."""
    modes: dict[int, tuple[Mode, float]] = {}
    scale = in_floats(target.prior.scale)
    assert scale is not None

    def log_probability(step: int, start: Any) -> float:
        """Add the mode given a scale, and return the log probability of this scale."""
        prior, log_scale = target.prior, step * _STEP
        data = target.data._replace(prior=prior.with_scale(np.exp(log_scale)))
        given = replace(target, data=data, start=start)
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
    kept = [step for step in sorted(modes) if modes[step][1] >= best - _NEGLIGIBLE]
    if not kept:
        return None
    log_p = np.array([modes[step][1] for step in kept])
    return _ConditionalModes(_STEP * np.array(kept), log_p, tuple(modes[step][0] for step in kept))


def fit_scale_mixture(target: Target) -> ScaleMixture | None:
    """Return the mixture for a target of the scale and the units; None if there is no mode."""
    coordinates = Scaled.from_scaled(target)
    conditional = _find_modes(coordinates.original)
    if conditional is None:
        return None
    modes, log_scales = conditional.modes, conditional.log_scale
    chosen = np.arange(len(modes) // 2 % _EVERY, len(modes), _EVERY)
    likely = int(np.argmax(conditional.log_p))
    placed = [_place(coordinates, *each) for each in zip(modes, log_scales, strict=True)]
    centres, covariances = (np.array(values) for values in zip(*placed, strict=True))
    if len(modes) > 1:
        # Where the data determine the weights, those in units of the scale change with it.
        tangents = np.gradient(centres, -2 * log_scales, axis=0)
    else:
        place = unflatten(np.arange(len(centres[0])), coordinates.target.start)["precision"]
        tangents = np.eye(len(centres[0]))[place][None]
    covariances += (_STEP * _EVERY) ** 2 * tangents[:, :, None] * tangents[:, None]
    centres, covariances = centres[chosen], covariances[chosen]
    share, centre, covariance = combine_components(conditional.log_p[chosen], centres, covariances)
    last = _place_prior(coordinates, *placed[likely])
    centres, covariances = np.vstack([centres, last[0]]), np.vstack([covariances, last[1][None]])
    unit = np.linalg.inv(np.linalg.cholesky(covariance))
    return ScaleMixture(
        modes[likely]._replace(position=centre, covariance=covariance),
        np.log(np.append((1 - _DEFENSIVE) * share, _DEFENSIVE)),
        (centres - centre) @ unit.T,
        unit @ np.linalg.cholesky(covariances),
        max(_DEGREES, _DEGREES_PER_VALUE * len(centre)),
        conditional.log_evidence,
    )


def _place_prior(
    coordinates: Scaled, centre: Float64, covariance: Float64
) -> tuple[Float64, Float64]:
    """Return centre and covariance of a component with the prior of the scale and the units.

    Args:
        coordinates: of the scale and the units.
        centre: (d,) of another component, whose values of other sites are kept.
        covariance: (d, d) of that component.
    """
    prior = coordinates.original.prior
    scale, index = (
        in_floats(prior.scale),
        unflatten(np.arange(len(centre)), coordinates.target.start),
    )
    assert scale is not None
    share = softmax(scale.log_density(scale.log_scales))
    mean = share @ scale.log_scales
    precision, unit = index["precision"], index["unit"]
    both = np.append(precision, unit)
    centre, covariance = centre.copy(), covariance.copy()
    centre[precision], centre[unit] = -2 * mean, 0.0
    covariance[both] = covariance[:, both] = 0.0
    covariance[np.ix_(unit, unit)] = prior.full_covariance
    covariance[precision, precision] = 4 * share @ (scale.log_scales - mean) ** 2
    return centre, covariance


def _place(coordinates: Scaled, mode: Mode, log_scale: float) -> tuple[Float64, Float64]:
    """Return centre and covariance of the scale and the weights in units of it, given the scale."""

    def scale(position: Float64) -> Float64:
        z = unflatten(position, coordinates.original.start)
        return flatten(coordinates.scale_sites(z, log_scale))

    centre = scale(mode.position)
    slope = np.array([scale(mode.position + step) - centre for step in np.eye(len(mode.position))])
    return centre, slope.T @ mode.covariance @ slope
