"""Sampling of weights with an unknown common scale: by the scale and the weights in units of it.

The integral over the scale has heavy tails where few answers leave the scale open. Proposals for
the weights alone miss these tails, and NUTS fails the BFMI. The scale and the weights in units of
it have the tails of their priors.

Where many answers determine the weights, those in units of the scale are on a narrow curved ridge,
on which NUTS diverges. Then the weights themselves are sampled. So they are if raters have slip
rates, which only NUTS samples.

Proposals are a mixture over values of the scale, of a Student t around the mode of the weights
given each, weighted by the prior of the scale and by Laplace's approximation of the evidence; and a
component that is the prior.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import structs
from scipy.special import logsumexp, softmax

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.adapting.weights_target import WeightsTarget, choose_coordinates
from bpa_ppl.densities.mode import find_mode, mode_of
from bpa_ppl.densities.newton import Mode, combine_components
from bpa_ppl.densities.target import Sampled, Sites, Target, evaluate, unflatten
from bpa_ppl.errors import UsageError
from bpa_ppl.models.log_linear import scaled_log_linear
from bpa_ppl.models.priors.scale import in_floats
from bpa_ppl.samplers.auto import Auto
from bpa_ppl.samplers.proposals import fit_components
from bpa_ppl.samplers.sampler import Sampler
from bpa_ppl.samplers.scale_mixture import ScaleMixture
from bpa_ppl.weight_draws import WEIGHTS

#: The answers determine the weights if the mean square of their distances from the prior mean is
#: larger, in standard deviations of the posterior given this large scale, in units of the typical
#: one. With 100 choices of one of four by five weights it is 13, and with 1000 it is 130.
_DETERMINED, _LARGE = 40.0, float(np.exp(1.5))
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
#: Scales are left out if they are less probable than the best one by this factor, in nats.
_NEGLIGIBLE_NATS = 7.0
_MAX_STEPS = 40  # steps from the typical scale
#: Features of a hierarchy, such as a horseshoe prior: of 2000 features and 50 lists a draw takes a
#: tenth of a second, and 4000 draws have fewer than 400 effective ones of the scales.
_MOST_FEATURES = 500
#: With 60 directions, every second run of independent proposals fails its check.
MANY_SCALED = 50


def transform_for(sampler: Sampler, target: WeightsTarget) -> WeightsTarget:
    """Return a posterior in the coordinates in which a sampler samples it.

    An exact sampler draws an unknown scale of the prior too, unless the answers determine the
    weights.

    Raises:
        UsageError: if `auto` would take hours.
    """
    if isinstance(sampler, Auto):
        _refuse_many_features(target)
    if not sampler.any_coordinates:
        return target
    chosen = choose_coordinates(target)
    alone = all(np.size(chosen.start[name]) == 1 for name in chosen.start if name != WEIGHTS)
    if not (sampler.exact and chosen.is_log_linear and alone):
        return chosen
    if (scale := chosen.prior.scale) is None:
        return chosen
    start = _find_determined(chosen, np.asarray(scale.shared))
    return _make_scaled(chosen) if start is None else replace(chosen, start=start)


def _refuse_many_features(target: WeightsTarget) -> None:
    """Refuse a hierarchy of very many features."""
    count = len(target.features)
    if target.hints.hierarchy and count > _MOST_FEATURES:
        vectors = [name for name, value in target.start.items() if np.size(value) > 1]
        raise UsageError(
            f"NUTS would take hours for {' and '.join(vectors)} of {count:,} features: keep at "
            f"most {_MOST_FEATURES} (features, exclude), use the prior isotropic without a model, "
            "which is quick with any number of features, or name the sampler nuts to wait for it",
            parameter="sampler",
            code="not-supported",
        )


def _find_determined(target: WeightsTarget, shared: npt.NDArray[np.bool_]) -> Sites | None:
    """Return the mode given a large scale if the answers determine the weights, else None.

    Args:
        target: the posterior.
        shared: (Q,) which weights have the scale.
    """
    with_large_scale = replace(
        target, data=target.data._replace(prior=target.prior.with_scale(_LARGE))
    )
    mode = mode_of(with_large_scale)
    if not mode.converged:
        return None
    start = unflatten(mode.position, target.start)
    deviation = unflatten(np.sqrt(np.diag(mode.covariance)), target.start)
    z = (start[WEIGHTS] - np.asarray(target.prior.mean)) / deviation[WEIGHTS]
    return start if np.mean(z[shared] ** 2) > _DETERMINED else None


def _make_scaled(target: WeightsTarget) -> WeightsTarget:
    """Return a log-linear posterior whose prior has an unknown scale, by the scale and units."""
    coordinates, count = Scaled(original=target), len(target.features)
    start = coordinates.scale_sites(target.start, 0.0)
    many = count > MANY_SCALED and target.prior.covariance is None
    hints = replace(
        target.hints,
        log_concave=False,
        in_threads=False,
        hierarchy=f"{count} directions have a common scale" if many else "",
        propose=coordinates.propose,
    )
    return replace(
        target, model=scaled_log_linear, start=start, coordinates=coordinates, hints=hints
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Scaled:
    """Weights with a common scale, by the scale and the weights in units of it.

    Attributes:
        original: the posterior of the weights.
        mixtures: what `propose` has fitted, by seed.
    """

    original: WeightsTarget
    mixtures: dict[int, ScaleMixture | None] = field(init=False, default_factory=dict)

    def restore(self, target: Target, sampled: Sampled, seed: int) -> Sampled:
        """Return draws of the scale and the units as draws of the weights."""
        z, warmup, mode = self.restore_sites(sampled.z), sampled.warmup, mode_of(self.original)
        log_density, log_likelihood = evaluate(self.original, z)
        figures = structs.replace(
            sampled.figures, newton_iterations=mode.iterations, newton_decrement=mode.decrement
        )
        return replace(
            sampled,
            z=z,
            warmup=self.restore_sites(warmup) if warmup else warmup,
            mode=mode.position if mode.converged else None,
            log_density=log_density,
            log_likelihood=log_likelihood,
            figures=figures,
        )

    def propose(self, target: WeightsTarget, seed: int, progress: Reporter) -> ScaleMixture | None:
        """Return a mixture over scales, fitted once for each seed; None if no mode is found."""
        if seed not in self.mixtures:
            mixture = _fit_mixture(self, target)
            if mixture is not None:
                mixture = fit_components(target, mixture, seed, progress)
            self.mixtures[seed] = mixture
        return self.mixtures[seed]

    @cached_property
    def _mean_and_shared(self) -> tuple[Float64, npt.NDArray[np.bool_]]:
        """(Q,) the prior mean of the weights, and (Q,) which of them have the scale."""
        prior = self.original.prior
        scale = in_floats(prior.scale)
        assert scale is not None
        return np.asarray(prior.mean), scale.shared

    def restore_sites(self, z: Sites) -> Sites:
        """Return values of the scale and the units as weights."""
        mean, shared = self._mean_and_shared
        factor = np.where(shared, np.exp(-np.asarray(z["precision"])[..., None] / 2), 1.0)
        weights = mean + factor * np.asarray(z["unit"])
        others = {name: z[name] for name in z if name not in ("precision", "unit")}
        return {WEIGHTS: weights, **others}

    def scale_sites(self, z: Sites, log_scale: float) -> Sites:
        """Return the scale and the weights in units of it, given log τ and the weights."""
        mean, shared = self._mean_and_shared
        unit = (np.asarray(z[WEIGHTS]) - mean) / np.where(shared, np.exp(log_scale), 1.0)
        others = {name: z[name] for name in z if name != WEIGHTS}
        return {**others, "precision": np.array(-2 * log_scale), "unit": unit}


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


def _find_modes(target: WeightsTarget) -> _ConditionalModes | None:
    """Return the modes of the weights given each scale that is probable; None if there is none."""
    modes: dict[int, tuple[Mode, float]] = {}
    prior = target.prior
    scale = in_floats(prior.scale)
    assert scale is not None

    def log_probability(step: int, start: Any) -> float:
        """Add the mode given a scale, and return the log probability of this scale."""
        log_scale = step * _STEP
        data = target.data._replace(prior=prior.with_scale(np.exp(log_scale)))
        mode = find_mode(replace(target, data=data, start=start))
        if not mode.converged:
            return -np.inf
        modes[step] = mode, mode.log_evidence + scale.log_density(log_scale)
        return modes[step][1]

    best = log_probability(0, target.start)
    for direction in (1, -1):
        start = target.start
        for step in range(direction, direction * _MAX_STEPS, direction):
            if step - direction in modes:
                start = unflatten(modes[step - direction][0].position, target.start)
            value = log_probability(step, start)
            best = max(best, value)
            if value < best - _NEGLIGIBLE_NATS:
                break
    kept = [step for step in sorted(modes) if modes[step][1] >= best - _NEGLIGIBLE_NATS]
    if not kept:
        return None
    log_p = np.array([modes[step][1] for step in kept])
    return _ConditionalModes(_STEP * np.array(kept), log_p, tuple(modes[step][0] for step in kept))


def _fit_mixture(coordinates: Scaled, target: WeightsTarget) -> ScaleMixture | None:
    """Return the mixture for a target of the scale and the units; None if there is no mode."""
    start = coordinates.restore_sites(target.start)
    conditional = _find_modes(replace(coordinates.original, start=start))
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
        place = unflatten(np.arange(len(centres[0])), target.start)["precision"]
        tangents = np.eye(len(centres[0]))[place][None]
    covariances += (_STEP * _EVERY) ** 2 * tangents[:, :, None] * tangents[:, None]
    centres, covariances = centres[chosen], covariances[chosen]
    share, centre, covariance = combine_components(conditional.log_p[chosen], centres, covariances)
    last = _place_prior(target, *placed[likely])
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
    target: WeightsTarget, centre: Float64, covariance: Float64
) -> tuple[Float64, Float64]:
    """Return centre and covariance of a component with the prior of the scale and the units.

    Args:
        target: of the scale and the units.
        centre: (d,) of another component, whose values of other sites are kept.
        covariance: (d, d) of that component.
    """
    prior, index = target.prior, unflatten(np.arange(len(centre)), target.start)
    scale = in_floats(prior.scale)
    assert scale is not None
    log_scales = scale.log_scales
    share = softmax(scale.log_density(log_scales))
    mean = share @ log_scales
    precision, unit = index["precision"], index["unit"]
    both = np.append(precision, unit)
    centre, covariance = centre.copy(), covariance.copy()
    centre[precision], centre[unit] = -2 * mean, 0.0
    covariance[both] = covariance[:, both] = 0.0
    covariance[np.ix_(unit, unit)] = prior.full_covariance
    covariance[precision, precision] = 4 * share @ (log_scales - mean) ** 2
    return centre, covariance


def _place(coordinates: Scaled, mode: Mode, log_scale: float) -> tuple[Float64, Float64]:
    """Return centre and covariance of the scale and the weights in units of it, given the scale."""
    steps = np.eye(len(mode.position))
    positions = np.vstack([mode.position, mode.position + steps])
    z = coordinates.scale_sites(unflatten(positions, coordinates.original.start), log_scale)
    precision = np.broadcast_to(z["precision"], len(positions))
    centre, *others = np.column_stack(
        [{**z, "precision": precision}[name].reshape(len(positions), -1) for name in sorted(z)]
    )
    slope = np.array(others) - centre
    return centre, slope.T @ mode.covariance @ slope
