"""Proposals around the mode of a posterior, by the Laplace approximation, corrected.

Proposals are independent draws, which are evaluated side by side. They are from a mixture of a
Student t and a skewed Gaussian with the third derivatives of the posterior.
With x in the standard deviations of the Laplace approximation, log p ≈ −½|x|² + ⅙ T(x, x, x). To
first order in T the conditional density of each value given those before it has a mean that is
quadratic in them, a log scale that is linear, and the skewness T_iii. So the values are drawn one
after the other, and the density of a draw is known exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np
from msgspec import structs

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.densities.mode import mode_of
from bpa_ppl.densities.newton import Mode
from bpa_ppl.densities.target import Sampled, Target, evaluate, evaluate_gradients, unflatten
from bpa_ppl.posterior.record import Figures
from bpa_ppl.posterior.statistics import smooth_log_weights
from bpa_ppl.samplers.scale_mixture import ScaleMixture, log_student

#: Above it, before importance ratios become unreliable, an independence sampler gets stuck, and a
#: posterior is so far from a Gaussian that the steps of NUTS have to be tuned.
GOOD_PARETO_K = 0.5
PILOT_DEGREES = 20.0
#: Of a pilot sample, of proposals around a mode and of a mixture over scales, with heavy tails.
PILOT_DRAWS, MIXTURE_DRAWS = 1000, 4000
PILOT_SEED = 1_000_003  # is added to the seed of the sampler
#: The Student t is a little wider than the Laplace approximation.
_SCALE = 1.1
#: Candidate shares of the Student t: it bounds the ratio of the densities in the tails, and about
#: this share of the draws is lost where the skewed Gaussian fits.
SHARES = (0.03, 0.1, 0.3, 1.0)
#: A pilot sample with fewer finite draws is too small to tune the share.
_MIN_TUNING_DRAWS = 50
#: Rounds of adaptive importance sampling: at least and at most. They end when this share of the
#: draws of a round is effective: more would improve the proposal by less than they cost.
_MIN_ROUNDS, _MAX_ROUNDS, _ENOUGH = 4, 16, 0.6
#: Proposals for more values are not fitted: a covariance needs too many draws.
_MAX_FITTED = 50
#: k̂ is not used for nearly equal weights: those of at most this multiple of their mean.
_NEARLY_EQUAL = 3.0
#: For each value, draws of a round, and effective draws that estimate mean and covariance.
_PER_VALUE, _EFFECTIVE = 64, 10
_HALVINGS = 20  # of the interval of the power that keeps so many effective
#: Up to this many values all third derivatives are estimated, from d + d²/4 directions; and up to
#: this many only those along the axes with one other value, from d directions.
_ALL, AXES = 24, 100
#: Distance of the gradients from the mode, in standard deviations: where most draws are.
_REACH = 1.5
#: Bounds where the expansion is not valid: of the distance from the mode at which it is evaluated,
#: and of the angle of a skew.
_MAX_DISTANCE, _MAX_ANGLE = 4.0, 0.5
#: Correlation ρ of a draw with its antithetic partner: stronger is better for means, and worse for
#: standard deviations.
ANTITHETIC_CORRELATION = -0.5
#: E √(1 + u²) and E (u² − 1) √(1 + u²) / 2 of a standard normal u.
_CENTRE, _CURVE = 1.3545308170952626, 0.28244541178805527
#: E u √(1 + u²) vanishes; Var √(1 + u²) is 2 − E².
_ROOT_VARIANCE = 2 - _CENTRE**2


class Skewed(NamedTuple):
    """The skewed Gaussian, in standard deviations of the Laplace approximation (d values).

    Attributes:
        cubic: (d, d, d) T, symmetric; None is the Gaussian itself.
    """

    cubic: Float64 | None = None

    def from_standard_normal(self, u: Float64) -> Float64:
        """Transform standard normal draws, (n, d), into draws of this distribution.

        >>> skewed = Skewed(np.full((1, 1, 1), 0.3))
        >>> skewed.from_standard_normal(np.array([[-2.0], [0.0], [2.0]])).round(2).tolist()
        [[-1.69], [0.09], [2.3]]
        """
        if self.cubic is None:
            return u
        x = np.zeros_like(u)
        for i, (sinh, cosh, deviation) in enumerate(self._angles()):
            mean, log_scale = self._conditional(x, i)
            value = u[:, i] * cosh + (np.sqrt(1 + u[:, i] ** 2) - _CENTRE) * sinh
            x[:, i] = mean + np.exp(log_scale) * value / deviation
        return x

    def to_standard_normal(self, x: Float64) -> tuple[Float64, Float64]:
        """Return the standard normal draws of some draws, (n, d), and log |du / dx|, (n,)."""
        log_slope = np.zeros(len(x))
        if self.cubic is None:
            return x, log_slope
        u = np.zeros_like(x)
        for i, (sinh, cosh, deviation) in enumerate(self._angles()):
            mean, log_scale = self._conditional(x, i)
            with np.errstate(all="ignore"):  # draws may be infinitely far
                value = (x[:, i] - mean) * np.exp(-log_scale) * deviation + _CENTRE * sinh
                # The inverse of u cosh + √(1 + u²) sinh has the same form.
                root = np.sqrt(1 + value**2)
                u[:, i] = value * cosh - root * sinh
                log_slope += np.log(np.sqrt(1 + u[:, i] ** 2) / root * deviation) - log_scale
        return u, log_slope

    def log_density(self, x: Float64) -> Float64:
        """Return log q of draws, (n, d) ↦ (n,)."""
        u, log_slope = self.to_standard_normal(x)
        return np.asarray(log_slope - 0.5 * ((u**2).sum(axis=1) + u.shape[1] * np.log(2 * np.pi)))

    def antithetic(self, rng: np.random.Generator, x: Float64) -> Float64:
        """Return a partner of each draw, (…, d), which tends to be on the other side of the mode.

        With v from N(0, I), the map of (u, v) to (ρu + σv, σu − ρv), σ² = 1 − ρ², is its own
        inverse and preserves their density. So a step from a draw to its partner, or back, is
        accepted with the ratio of p / q, where q is this distribution alone.
        """
        u = self.to_standard_normal(x.reshape(-1, x.shape[-1]))[0]
        rho = ANTITHETIC_CORRELATION
        with np.errstate(all="ignore"):
            partner = rho * u + np.sqrt(1 - rho**2) * rng.normal(size=u.shape)
            return self.from_standard_normal(partner).reshape(x.shape)

    def _angles(self) -> list[tuple[float, float, float]]:
        """Return sinh and cosh of each value's skew angle, and the resulting deviation."""
        assert self.cubic is not None  # checked by the callers
        angle = np.clip(np.einsum("iii->i", self.cubic) / (6 * _CURVE), -_MAX_ANGLE, _MAX_ANGLE)
        sinh, cosh = np.sinh(angle), np.cosh(angle)
        deviation = np.sqrt(cosh**2 + _ROOT_VARIANCE * sinh**2)
        return list(zip(sinh.tolist(), cosh.tolist(), deviation.tolist(), strict=True))

    def _conditional(self, x: Float64, i: int) -> tuple[Float64, Float64]:
        """Return mean and log scale of one value given those before it, (n,) each."""
        assert self.cubic is not None  # checked by the callers
        cubic = self.cubic[i]
        previous = np.clip(x[:, :i], -_MAX_DISTANCE, _MAX_DISTANCE)
        later = np.trace(cubic[i + 1 :, i + 1 :])
        force = 0.5 * (((previous @ cubic[:i, :i]) * previous).sum(axis=1) + later + cubic[i, i])
        slope = np.tanh(previous @ cubic[i, :i])
        return np.clip(force, -_MAX_DISTANCE, _MAX_DISTANCE) * np.exp(slope), slope / 2


def fit_skewed(target: Target, mode: Mode) -> Skewed:
    """Return the skewed Gaussian of a posterior, from gradients on both sides of its mode.

    The sum of the gradients at x and −x is T(x, x, ·), up to fifth derivatives.
    """
    size = len(mode.position)
    if size > AXES:
        return Skewed()
    directions, pairs = choose_directions(size)
    factor = np.linalg.cholesky(mode.covariance)
    steps = _REACH * np.concatenate([directions, -directions])
    z = unflatten(mode.position + steps @ factor.T, target.start)
    slopes = np.asarray(evaluate_gradients(target, z)) @ factor
    count = len(directions)
    sums = -(slopes[:count] + slopes[count:]) / _REACH**2
    if not np.isfinite(sums).all():
        return Skewed()
    # Rounded, so that the last bits of sums, which differ between machines, do not change draws.
    return Skewed(np.round(solve_third_derivatives(sums, pairs), 6))


def choose_directions(size: int) -> tuple[Float64, list[tuple[int, int]]]:
    """Return unit vectors along the axes and between pairs of axes, and these pairs.

    Of any three axes two belong to the same half, so that pairs within the halves are enough.
    """
    halves = np.array_split(np.arange(size), 2) if size <= _ALL else []
    pairs = [pair for half in halves for pair in combinations(half.tolist(), 2)]
    axes = np.eye(size)
    between = [(axes[a] + axes[b]) / np.sqrt(2) for a, b in pairs]
    return np.stack([*axes, *between]), pairs


def solve_third_derivatives(values: Float64, pairs: list[tuple[int, int]]) -> Float64:
    """Return T from T(v, v, ·) for all directions v; entries that none determines are 0.

    >>> cubic = np.array([[[0.3, 0.1], [0.1, -0.2]], [[0.1, -0.2], [-0.2, 0.4]]])
    >>> directions, pairs = choose_directions(2)
    >>> values = np.einsum("va,vb,abc->vc", directions, directions, cubic)
    >>> bool(np.allclose(solve_third_derivatives(values, pairs), cubic))
    True
    """
    size = values.shape[1]
    tensor = np.zeros((size, size, size))  # T of each determined pair with all others
    determined = np.eye(size)
    axis = np.arange(size)
    tensor[axis, axis] = values[:size]
    for between, (a, b) in zip(values[size:], pairs, strict=True):
        tensor[a, b] = tensor[b, a] = between - (values[a] + values[b]) / 2
        determined[a, b] = determined[b, a] = 1.0
    # An entry belongs to three pairs, and is the mean of its determined ones.
    total = tensor + tensor.transpose(0, 2, 1) + tensor.transpose(2, 1, 0)
    count = determined[:, :, None] + determined[:, None, :] + determined[None, :, :]
    return np.asarray(total / np.maximum(count, 1.0))


class Proposal(Protocol):
    """A distribution around the mode of a posterior, to draw from independently.

    It is a `SkewedProposal` or a `ScaleMixture`.
    """

    @property
    def mode(self) -> Mode:
        """What it is around, and its covariance."""

    @property
    def share(self) -> float:
        """The share of the second component of `log_components`."""

    def draw(self, rng: np.random.Generator, count: int) -> Float64:
        """Return draws, (count, d), in standard deviations of the Laplace approximation."""

    def log_components(self, x: Float64) -> tuple[Float64, Float64]:
        """Return the log density of draws under its two components, (n,) each."""

    def report(self, target: Target) -> tuple[Float64 | None, Figures]:
        """Return the mode and the figures that draws record."""


@dataclass(frozen=True, eq=False)
class SkewedProposal:
    """A mixture of a skewed Gaussian and a Student t around the mode.

    The draws follow the posterior for any proposal, because it is fixed before any draw is
    kept; the heavy tails of the t keep the ratio of the densities bounded (Hesterberg 1995).

    Attributes:
        mode: the mode, with the Laplace covariance.
        skewed: the skewed Gaussian.
        degrees_of_freedom: of the t.
        share: of the t in the mixture.
    """

    mode: Mode
    skewed: Skewed
    degrees_of_freedom: float
    share: float

    def draw(self, rng: np.random.Generator, count: int) -> Float64:
        """Return draws, (count, d), in standard deviations of the Laplace approximation."""
        u = rng.normal(size=(count, len(self.mode.position)))
        tail = rng.uniform(size=count) < self.share
        with np.errstate(all="ignore"):  # very few degrees of freedom give infinite draws
            scale = rng.chisquare(self.degrees_of_freedom, size=count) / self.degrees_of_freedom
            student = np.sqrt(_SCALE / scale)[:, None] * u
        return np.where(tail[:, None], student, self.skewed.from_standard_normal(u))

    def report(self, target: Target) -> tuple[Float64 | None, Figures]:
        """Return the mode of the posterior, if one was found, and figures with the share of t."""
        mode = mode_of(target)
        figures = structs.replace(mode.figures, student_share=self.share)
        return mode.position if mode.converged else None, figures

    def tuned(self, pilot: Proposals | None) -> SkewedProposal:
        """Return the proposal with the share of the t that suits a pilot sample best, by its ESS.

        Without a pilot sample, or with one that is too small, the share is 0.1.
        """
        losses = {} if pilot is None else _measure_losses(self, pilot)
        return replace(self, share=min(losses, key=losses.__getitem__, default=SHARES[1]))

    def log_density(self, flat: Float64) -> Float64:
        """Return log q of flat z, (n, d) ↦ (n,), with its constant."""
        factor = np.linalg.cholesky(self.mode.covariance)
        with np.errstate(all="ignore"):  # draws may be infinitely far
            x = (flat - self.mode.position) @ np.linalg.inv(factor).T
        mixture = log_mixture(*self.log_components(x), self.share)
        return np.asarray(mixture - np.log(np.diag(factor)).sum())

    def log_components(self, x: Float64) -> tuple[Float64, Float64]:
        """Return the log density of draws under the skewed Gaussian and the t, (n,) each."""
        with np.errstate(all="ignore"):
            squared, size = (x**2).sum(axis=1) / _SCALE, x.shape[1]
            student = log_student(squared, self.degrees_of_freedom, size)
            return self.skewed.log_density(x), student - size / 2 * np.log(_SCALE)


def log_mixture(first: Float64, second: Float64, share: float) -> Float64:
    """Return the log density of a mixture, given the share of the second component.

    >>> log_mixture(np.log([0.2]), np.log([0.6]), 0.25).round(4).tolist()
    [-1.204]
    """
    with np.errstate(all="ignore"):  # a draw without a finite density is never accepted
        return np.asarray(np.logaddexp(np.log1p(-share) + first, np.log(share) + second))


@dataclass(frozen=True, eq=False, kw_only=True)
class Proposals(Sampled):
    """Draws of a proposal (C chains, D draws), weighted by log p(z, data) − log q(z).

    Attributes:
        log_weight_skewed: (C, D) their weights with the skewed Gaussian alone as q, if every second
            draw is an antithetic partner; else None.
        position: (C, D, d) the draws in standard deviations of the Laplace approximation.
    """

    kind: str = "weighted"
    log_density: Float64
    log_weight: Float64
    log_likelihood: dict[str, np.ndarray]
    log_weight_skewed: Float64 | None = None
    position: Float64


def measure_k_hat(drawn: Proposals, *, fitted: bool) -> float:
    """Return k̂ of the importance weights of draws; 0 if those of a fitted one are nearly equal."""
    equal = fitted and _nearly_equal(drawn.log_weight)
    return 0.0 if equal else smooth_log_weights(drawn.log_weight)[1]


def fit_moments(
    target: Target, mode: Mode, seed: int, progress: Reporter
) -> tuple[SkewedProposal, float, float]:
    """Fit a proposal to the mean and the covariance of a posterior.

    Each round of adaptive importance sampling draws from a Student t with the current moments. The
    draws of all rounds, weighted by the ratio of p to the mixture of their proposals, give the next
    moments (AMIS, Cornuet et al. 2012). While these weights are too uneven, they are raised to a
    power below 1, which keeps enough of them effective. The third derivatives at the mode are left
    out: so far from a Gaussian they do not describe the posterior elsewhere.

    Args:
        target: the posterior.
        mode: its mode, where the first round is.
        seed: of the draws, which are others than those of a sampler with this seed.
        progress: called before each round.

    Returns:
        the proposal, with half of the draws from each component; k̂ of the importance ratios of the
        last round, 0 if they are nearly equal; and the share of its draws that are effective.
    """
    student = SkewedProposal(mode, Skewed(), PILOT_DEGREES, 1.0)
    students = list[SkewedProposal]()
    flat, log_p, log_q = np.empty((0, len(mode.position))), np.empty(0), np.empty(0)
    count, k_hat, effective = max(PILOT_DRAWS, _PER_VALUE * len(mode.position)), np.inf, 0.0
    for number in range(_MAX_ROUNDS):
        progress(number, _MAX_ROUNDS, "fitting proposals")
        if number:
            weight = _temper(log_p - log_q, _EFFECTIVE * (flat.shape[1] + 1))
            mean = weight @ flat
            covariance = (flat - mean).T @ ((flat - mean) * weight[:, None])
            student = replace(student, mode=mode._replace(position=mean, covariance=covariance))
        drawn = draw_proposals(target, student, (1, count), seed + PILOT_SEED, stream=number)
        factor = np.linalg.cholesky(student.mode.covariance)
        new = student.mode.position + drawn.position[0] @ factor.T
        students.append(student)
        # Of the sum of the densities of all rounds: at the previous draws, and at the new ones.
        log_q = np.logaddexp(log_q, student.log_density(flat))
        log_q = np.append(log_q, np.logaddexp.reduce([s.log_density(new) for s in students]))
        flat, log_p = np.concatenate([flat, new]), np.append(log_p, drawn.log_density[0])
        effective = effective_share(drawn.log_weight[0])
        k_hat = measure_k_hat(drawn, fitted=True)
        if number + 1 >= _MIN_ROUNDS and effective >= _ENOUGH and k_hat <= GOOD_PARETO_K:
            break
    return replace(student, share=0.5), k_hat, effective


def fit_components(
    target: Target, mixture: ScaleMixture, seed: int, progress: Reporter
) -> ScaleMixture:
    """Return the mixture after fits, each to the weighted draws of the round before.

    Of all rounds, it is the one with the most effective draws. It is not fitted to more than 50
    values.
    """
    if target.dimension > _MAX_FITTED:
        return mixture
    count = max(MIXTURE_DRAWS, _PER_VALUE * target.dimension)
    best, share_of_best = mixture, 0.0
    for number in range(_MAX_ROUNDS):
        progress(number, _MAX_ROUNDS, "fitting proposals")
        drawn = draw_proposals(target, mixture, (1, count), seed + PILOT_SEED, stream=number)
        share = effective_share(drawn.log_weight[0])
        if share > share_of_best:
            best, share_of_best = mixture, share
        enough = number + 1 >= _MIN_ROUNDS and share >= _ENOUGH
        if enough and smooth_log_weights(drawn.log_weight)[1] <= GOOD_PARETO_K:
            break
        mixture = mixture.fitted(drawn.position[0], _temper(drawn.log_weight[0], 0))
    return best.standardised()


def _nearly_equal(log_ratio: Float64) -> bool:
    """Return whether the largest of some importance weights is near their mean."""
    weight = log_ratio.size * _temper(log_ratio.reshape(-1), 0)
    return bool(weight.max() < _NEARLY_EQUAL)


def can_be_fitted(target: Target) -> bool:
    """Return whether mean and covariance may describe a posterior: not that of a hierarchy."""
    return target.hints.log_concave and target.dimension <= _MAX_FITTED


def effective_share(log_weight: Float64) -> float:
    """Return the share of weighted draws that are effective, (n,) ↦ ().

    >>> effective_share(np.log([3.0, 1.0]))
    0.8
    """
    weight = len(log_weight) * _temper(log_weight, 0)
    return float(1 / np.mean(weight**2))


def _temper(log_weight: Float64, effective: float) -> Float64:
    """Return normalised weights; to a power below 1 if too few of them would be effective."""
    finite = np.where(np.isfinite(log_weight), log_weight, -np.inf)

    def weights(power: float) -> Float64:
        with np.errstate(invalid="ignore"):  # 0 × −∞
            weight = np.exp(np.where(finite > -np.inf, power * (finite - finite.max()), -np.inf))
        return np.asarray(weight / weight.sum())

    low, high = 0.0, 1.0
    if 1 / np.sum(weights(high) ** 2) >= effective:
        return weights(high)
    for _ in range(_HALVINGS):
        power = (low + high) / 2
        enough = 1 / np.sum(weights(power) ** 2) >= effective
        low, high = (power, high) if enough else (low, power)
    return weights(low)


def measure_mixture(proposal: Proposal, pilot: Proposals) -> float:
    """Return the share of the draws that is effective with the tuned share of the t; or NaN.

    It is estimated by importance weights, and may be slightly above 1.
    """
    losses = _measure_losses(proposal, pilot)
    if not losses:
        return float("nan")
    log_ratio, count = pilot.log_weight[np.isfinite(pilot.log_weight)], pilot.log_weight.size
    return float(np.exp(2 * np.logaddexp.reduce(log_ratio) - min(losses.values())) / count)


def _measure_losses(proposal: Proposal, pilot: Proposals) -> dict[float, float]:
    """Return log Σ p²/q of the draws of a pilot sample for each share of the t.

    It grows with the variance of the importance weights. Empty if the sample is too small.
    """
    x = pilot.position.reshape(-1, pilot.position.shape[-1])
    finite = np.isfinite(pilot.log_density.reshape(-1)) & np.isfinite(x).all(axis=1)
    if finite.sum() < _MIN_TUNING_DRAWS:
        return {}
    log_p, parts = pilot.log_density.reshape(-1)[finite], proposal.log_components(x[finite])
    log_q = log_mixture(*parts, proposal.share)
    return {
        share: float(np.logaddexp.reduce(2 * log_p - log_mixture(*parts, share) - log_q))
        for share in SHARES
    }


def draw_proposals(
    target: Target,
    proposal: Proposal,
    shape: tuple[int, int],
    seed: int,
    *,
    stream: int = 0,
    first: Float64 | None = None,
    antithetic: Skewed | None = None,
) -> Proposals:
    """Draw proposals and evaluate all of them together.

    A few wide matrix products cost a fraction of evaluating the steps of a chain one by one.

    Args:
        target: the posterior.
        proposal: the distribution to draw from.
        shape: (C, D) chains and draws of each; D is even for antithetic pairs.
        seed: of the draws.
        stream: number of the random stream; one seed has many.
        first: (C, d) the first draw of each chain; None draws it too.
        antithetic: where every second draw is the antithetic partner of the one before it, the
            part of the proposal that they are drawn from.
    """
    rng = np.random.default_rng([seed, 4, stream])
    position = proposal.draw(rng, shape[0] * shape[1]).reshape(*shape, -1)
    if first is not None:
        position[:, 0] = first
    if antithetic is not None:
        position[:, 1::2] = antithetic.antithetic(rng, position[:, ::2])
    x = position.reshape(-1, position.shape[-1])
    parts = proposal.log_components(x)
    log_q = log_mixture(*parts, proposal.share).reshape(shape)
    factor = np.linalg.cholesky(proposal.mode.covariance)
    with np.errstate(all="ignore"):
        flat = proposal.mode.position + x @ factor.T
    z = unflatten(flat.reshape(*shape, -1), target.start)
    log_p, log_likelihood = evaluate(target, z)
    return Proposals(
        z=z,
        log_density=log_p,
        log_weight=log_p - log_q,
        log_likelihood=log_likelihood,
        log_weight_skewed=None if antithetic is None else log_p - parts[0].reshape(shape),
        position=position,
    )
