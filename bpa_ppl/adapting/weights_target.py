"""The posterior of the weights of lists, and the coordinates in which it is sampled.

It is a NumPyro program of lists, a prior and a likelihood. In other coordinates features have like
units, or their weights are replaced by directions in the span of the lists.

The likelihood depends on the weights λ through X λ alone, where the rows of X are the differences
of candidates. So units of features do not matter; and with fewer rows than features it depends on λ
only through their span. With λ = m + F z and z ~ N(0, I) a priori, and an orthonormal basis V of
the rows of X F, u = Vᵀ z is N(0, I) too, and z = V u + (I − V Vᵀ) ε with ε ~ N(0, I), for any
lists. So u has as many dimensions as rows, and draws of u and ε are draws of all weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
import numpy.typing as npt
from scipy.linalg import qr, solve_triangular

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.adapting.checked_weights import LISTS, CheckedWeights, find_unused, require_shape
from bpa_ppl.densities.mode import (
    find_mode,
    is_too_large,
    is_usable_start,
    make_start_error,
    start_at_medians,
)
from bpa_ppl.densities.own_models import explain_errors
from bpa_ppl.densities.program_runs import require_same_runs
from bpa_ppl.densities.target import (
    PRIOR_DRAWS,
    Hints,
    Sampled,
    Sites,
    Target,
    draw_sites,
    evaluate,
    inspect_model,
    unflatten,
)
from bpa_ppl.errors import UsageError
from bpa_ppl.models.likelihoods.likelihood import Likelihood
from bpa_ppl.models.likelihoods.lists import Lists, find_order
from bpa_ppl.models.log_linear import hierarchical, log_linear
from bpa_ppl.models.priors.prior import Prior
from bpa_ppl.models.priors.scale import LogNormalScale, in_floats
from bpa_ppl.models.priors.sparse import SparseLogLinear
from bpa_ppl.weight_draws import FEATURE, SENTENCE, WEIGHTS
from bpa_ppl.weights import Match

#: A NumPyro program over lists, a prior and a likelihood.
Model = Callable[[Lists, Prior, Likelihood], None]
#: Features are divided by powers of this number, which rounds nothing. Those whose weights have a
#: deviation of a thousandth to a thousand stay as they are.
_UNIT = 2.0**20
#: The span is sampled if there are so many features, and at most this share of them as directions.
_MIN_FEATURES, _MAX_SHARE = 100, 0.75
_NO_FEATURES = Match((), np.zeros(0), np.zeros(0, bool))


class ListData(NamedTuple):
    """The data of a posterior of the weights of lists.

    Attributes:
        lists: the tabulated sentences, on JAX's device.
        prior: of the free features.
    """

    lists: Lists
    prior: Prior


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("data", "start"),
    meta_fields=("model", "likelihood"),
    drop_fields=(
        *("match", "coordinates", "source", "hints"),
        *("most_kept", "flat", "dims", "coords", "order"),
    ),
)
@dataclass(frozen=True, eq=False, kw_only=True)
class WeightsTarget(Target):
    """The posterior of the weights of lists.

    Attributes:
        data: the lists and the prior.
        likelihood: the last argument of the model.
        match: the canonical weights, matched to the features of the lists; not part of the density,
            so that compiled functions have its default.

    >>> from bpa_ppl import from_lists, log_density
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> with jax.enable_x64(True):
    ...     density = log_density(lists, {"LM0": 0.5}, likelihood="oracle")
    ...     z = density.initial_position
    ...     print(jax.grad(density)(z).round(3), density.constrain(z), density.features)
    [0.378] {'weights': Array([0.5], dtype=float64)} ('LM0',)
    >>> density.is_log_linear, density.lists.features
    (True, 1)
    """

    data: ListData
    likelihood: Likelihood
    match: Match = _NO_FEATURES
    main: ClassVar[tuple[str, ...]] = (WEIGHTS,)
    enumerable: ClassVar[bool] = False
    has_factors: ClassVar[bool] = False  # a likelihood of lists may be a factor

    def program(self, *data: Any) -> None:
        self.model(*data, self.likelihood)

    @property
    def lists(self) -> Lists:
        """The tabulated sentences."""
        return self.data.lists

    @property
    def prior(self) -> Prior:
        """The prior of the free features."""
        return self.data.prior

    @property
    def features(self) -> tuple[str, ...]:
        """The features that the site `weights` has a value for."""
        return self.match.free_names

    @property
    def uses_prior(self) -> bool:
        """Whether the weights have the prior: a model may have `uses_prior = False`."""
        return bool(getattr(self.model, "uses_prior", True))

    @property
    def is_log_linear(self) -> bool:
        """Whether the model is the log-linear one."""
        return self.model is log_linear

    def checked_program(self) -> CheckedWeights:
        return CheckedWeights(self.program, self.lists.features, len(self.lists.oracle))

    def name_dimensions(self, sites: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        """Return those that the model and the likelihood declare, and the sentences.

        Those are the dimension of observed sites in the plate over sentences, with one value each.
        """
        per_sentence = {
            name: (SENTENCE,)
            for name, site in sites.items()
            if site["type"] == "sample"
            and site["is_observed"]
            and SENTENCE in {frame.name for frame in site["cond_indep_stack"]}
            and tuple(site["fn"].batch_shape) == self.lists.oracle.shape
        }
        return {**self.likelihood.dims, **getattr(self.model, "dims", {}), **per_sentence}

    def find_unused(self, sites: Sites, latent: Sites, observed: Sequence[str]) -> str | None:
        """Return what the observations of a model of a user do not depend on.

        Raises:
            UsageError: if the model has no site `weights`, or they depend on no latent site.
        """
        if WEIGHTS not in sites:
            require_shape(None, self.lists.features, list(sites))
        if self.is_log_linear and observed:
            return None
        data = {LISTS: self.lists, "the prior": self.prior}
        return find_unused(self.program, data, latent, observed)

    def draw_prior(self, seed: int) -> Sites:
        """Return 1,000 draws of the prior: of the latent sites, and of the weights."""
        latent = inspect_model(self).latent
        if self.is_log_linear and latent == (WEIGHTS,) and self.prior.other is None:
            return {WEIGHTS: self.prior.sample(np.random.default_rng([seed, 5]), PRIOR_DRAWS)}
        return draw_sites(self, tuple(dict.fromkeys((WEIGHTS, *latent))), seed)


def require_lists(target: Target, needed_by: str) -> WeightsTarget:
    """Return a target, if it is that of the weights of lists.

    Args:
        target: the target.
        needed_by: what needs lists, for the message.

    Raises:
        UsageError: if it is the posterior of another program.
    """
    if not isinstance(target, WeightsTarget):
        remedy = "use the sampler nuts or rwm"
        message = f"{needed_by} needs canonical weights of n-best lists: {remedy}"
        raise UsageError(message, parameter="sampler", code="not-supported")
    return target


def _make_hints(target: WeightsTarget) -> Hints:
    """Return what samplers may use of a posterior of weights in their own coordinates."""
    # A model or distribution of a user may call LAPACK, see `NUMPYRO_LOCK`.
    log_linear, of_user = target.is_log_linear, target.prior.other is not None
    only_weights = inspect_model(target).latent == (WEIGHTS,)
    vectors = [name for name, value in target.start.items() if np.size(value) > 1]
    several = not log_linear and len(vectors) > 1
    return Hints(
        log_concave=log_linear,
        one_mode=True,
        gaussian_prior=only_weights and target.prior.is_gaussian,
        in_threads=log_linear and not of_user,
        hierarchy=f"{' and '.join(vectors)} are several vectors" if several else "",
    )


def make_weights_target(
    lists: Lists,
    prior: Prior,
    match: Match,
    likelihood: Likelihood,
    model: Model = log_linear,
) -> WeightsTarget:
    """Return the log density of a posterior with its starting point; x64 must be enabled.

    It starts at the mean of the prior or, where the likelihood is not log-concave, at the mode of a
    similar one that is, unless it has more than 1000 values.

    Args:
        lists: the data.
        prior: of the free features.
        match: the weights, matched to the features.
        likelihood: with all its settings.
        model: the NumPyro program.

    Raises:
        UsageError: if it cannot be sampled, or is another one at its second run.
    """

    def build(likelihood: Likelihood) -> WeightsTarget:
        prepared, observing = likelihood.prepare(lists)
        on_device, arrays = jax.device_put((prepared, prior.as_arrays()))
        target = WeightsTarget(
            model=model,
            data=ListData(on_device, arrays),
            start={},
            likelihood=observing,
            match=match,
            dims={WEIGHTS: (FEATURE,)},
            coords={FEATURE: match.free_names},
        )
        return replace(target, hints=Hints(log_concave=target.is_log_linear, one_mode=True))

    target = build(likelihood)
    if not target.is_log_linear:
        require_same_runs(target)
    start, log_concave = find_start(target), likelihood.log_concave_start()
    if log_concave is not None and not is_too_large(replace(target, start=start)):
        simple = build(log_concave)
        common = {name: start[name] for name in inspect_model(simple).latent}
        chosen = choose_coordinates(replace(simple, start=common))
        mode = find_mode(chosen)
        if mode.converged:
            z = unflatten(mode.position, chosen.start)
            start = {**start, **chosen.restore_sites(z)}
    target, info = replace(target, start=start), inspect_model(target)
    # Sites with one value for each sentence have the order of the n-best table.
    names = [name for name in info.observed if info.dims.get(name) == (SENTENCE,)]
    order = dict.fromkeys(names, find_order(target.lists)) if names else {}
    return replace(target, hints=_make_hints(target), order=order)


def find_start(target: WeightsTarget) -> Sites:
    """Return z at the mean of the prior, (site shape) each; other sites at their prior's median.

    A random start would be far from probable values of scales, and in a hierarchy even farther
    for everything that is multiplied by a scale. Weights start at their prior's median, too, where
    the mean of the prior is outside their support, or the density is 0 or has no gradient there.

    Raises:
        UsageError: if the density is 0, or it or its gradient is not a number, at both.
    """
    prior, info = target.prior, inspect_model(target)
    simple = target.is_log_linear and prior.other is None
    if simple and info.unconstrained and info.latent == (WEIGHTS,):
        return {WEIGHTS: prior.mean}
    with explain_errors(target.model):
        for mean in (prior.mean, np.full_like(prior.mean, np.nan)):
            z: Sites = start_at_medians(target, {WEIGHTS: mean})
            # A simple model has a density there: compiling its gradient would take long.
            if simple or is_usable_start(target, z):
                return z
        raise make_start_error(target, z, ", or change canonical weights")


def choose_coordinates(target: WeightsTarget, varying: npt.ArrayLike = False) -> WeightsTarget:
    """Return a posterior in the coordinates in which it is sampled.

    They are the values themselves if the model is one of a user, or the prior neither Gaussian nor
    so given a common scale.

    Args:
        target: the posterior.
        varying: (Q,) bool, the weights whose prior variance has a common factor that is unknown:
            `project_prior` takes the priors with any value of it.
    """
    sites: dict[Any, tuple[str, ...]] = {log_linear: (WEIGHTS,), hierarchical: ("shared",)}
    scaled = () if isinstance(target.model, SparseLogLinear) else sites.get(target.model)
    spread = _measure_spread(target.lists)
    # No sampler can evaluate infinite features.
    if scaled is None or target.prior.other is not None or not np.isfinite(spread).all():
        return target
    variance = prior_variances(target.prior)
    size = _round_unit(np.sqrt(variance) * spread)
    if target.model is log_linear and len(spread) >= _MIN_FEATURES:
        rows, group = _find_rows(target.lists, len(spread)), _group(target.prior, size, varying)
        if rows is not None:
            directions = np.minimum(np.bincount(group), max(len(rows), 1)).sum()
            if directions <= _MAX_SHARE * len(spread):
                return _make_spanned(target, rows, group, np.maximum(size, 1.0))
    # About the standard deviation of each weight in the posterior.
    unit = _round_unit(1 / np.sqrt(1 / variance + spread**2))
    return _rescale(target, unit, scaled) if (unit != 1).any() else target


def project_prior(target: WeightsTarget, prior: Prior) -> Prior:
    """Return another prior of the weights as one in the coordinates of `choose_coordinates`."""
    coordinates = target.coordinates
    return coordinates.project(prior) if isinstance(coordinates, _Rescaled | _Spanned) else prior


def _measure_spread(lists: Lists) -> Float64:
    """Return the root mean square of the differences of each feature from row 0, (Q,)."""
    total, count = np.zeros(lists.features), 0
    for bucket in lists.buckets:
        features = np.asarray(bucket["features"])
        total += np.einsum("bsqn,bsqn->q", features, features, dtype=np.float64)
        count += int((np.asarray(bucket["candidate"]) >= 0).sum())
    return np.asarray(np.sqrt(total / max(count, 1)))


def prior_variances(prior: Prior) -> Float64:
    """Return the prior variance of each weight, (Q,); given the typical scale if it is unknown."""
    if prior.covariance is None:
        return np.asarray(prior.variance, np.float64)
    return np.diag(np.asarray(prior.covariance, np.float64))


def _round_unit(values: Float64) -> Float64:
    """Return the nearest powers of 2^20."""
    step = np.log2(_UNIT)
    return np.asarray(2.0 ** (step * np.round(np.log2(np.maximum(values, 1e-300)) / step)))


def _map_features(lists: Lists, function: Any, centre: Float64 | None = None) -> Lists:
    """Return lists with other features, on JAX's device.

    Args:
        lists: the lists.
        function: from features, (B, S, Q, N), to features.
        centre: (Q,) weights whose scores are added to the base.
    """
    buckets = []
    for bucket in lists.buckets:
        features, base = np.asarray(bucket["features"], np.float64), np.asarray(bucket["base"])
        if centre is not None and centre.any():
            base = (base + np.einsum("bsqn,q->bsn", features, centre)).astype(np.float32)
        changed = np.ascontiguousarray(function(features), np.float32)
        buckets.append({**bucket, "features": changed, "base": base})
    on_device: Lists = jax.device_put(lists._replace(buckets=tuple(buckets)))
    return on_device


@dataclass(frozen=True, eq=False, kw_only=True)
class _Rescaled:
    """Weights in units, λ = unit × y.

    Attributes:
        original: the posterior of the weights.
        unit: (Q,).
        sites: the latent sites that are in units of the weights.
    """

    original: WeightsTarget
    unit: Float64
    sites: tuple[str, ...]

    def project(self, prior: Prior) -> Prior:
        """Return a prior of the weights as one of y."""
        inverse = 1 / self.unit
        return prior._replace(
            mean=prior.mean * inverse,
            variance=None if prior.variance is None else prior.variance * inverse**2,
            covariance=(
                None if prior.covariance is None else prior.covariance * np.outer(inverse, inverse)
            ),
        )

    def restore(self, target: Target, sampled: Sampled, seed: int) -> Sampled:
        """Return draws of y as draws of the weights."""
        mode, log_density = sampled.mode, sampled.log_density
        if mode is not None:
            mode = flatten(self.restore_sites(unflatten(mode, target.start)))
        if log_density is not None:
            log_density = log_density - len(self.sites) * np.log(self.unit).sum()
        return replace(
            sampled,
            z=self.restore_sites(sampled.z),
            warmup=self.restore_sites(sampled.warmup),
            mode=mode,
            log_density=log_density,
        )

    def restore_sites(self, z: Sites) -> Sites:
        """Return values of y as weights."""
        return {name: z[name] * self.unit if name in self.sites else z[name] for name in z}


def _rescale(target: WeightsTarget, unit: Float64, sites: tuple[str, ...]) -> WeightsTarget:
    """Return a posterior in other units of the weights."""
    coordinates = _Rescaled(original=target, unit=unit, sites=sites)
    start = {n: value / unit if n in sites else value for n, value in target.start.items()}
    lists = _map_features(target.lists, lambda features: features * unit[:, None])
    data = ListData(lists, jax.device_put(coordinates.project(target.prior)))
    return replace(target, data=data, start=start, coordinates=coordinates)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Spanned:
    """Weights by their directions in the span of the lists, y = c Vᵀ z with λ = m + F z.

    V has directions of each group of features. The factors c of the groups keep the features of y
    within the range of numbers where a prior is very much wider than the likelihood.

    Attributes:
        original: the posterior of the weights.
        factor: F: (Q,) its diagonal, or (Q, Q).
        basis: (Q, r) V.
        stretch: (r,) c.
        member: (r,) a feature of the group of each direction.
    """

    original: WeightsTarget
    factor: Float64
    basis: Float64
    stretch: Float64
    member: Int64

    def project(self, prior: Prior) -> Prior:
        """Return a prior of the weights as one of y, which has the mean 0."""
        ratio = prior_variances(prior) / prior_variances(self.original.prior)
        variance = self.stretch**2 * ratio[self.member]
        return Prior(np.zeros(len(variance)), variance, scale=self._of_directions(prior.scale))

    def _of_directions(self, scale: LogNormalScale | None) -> LogNormalScale | None:
        """Return the common scale of weights as one of their directions."""
        if scale is None:
            return None
        return scale._replace(shared=np.asarray(scale.shared)[self.member])

    def restore(self, target: Target, sampled: Sampled, seed: int) -> Sampled:
        """Return draws of y as draws of the weights, of which others are drawn from the prior."""
        log_likelihood = sampled.log_likelihood
        if log_likelihood is None:
            log_likelihood = evaluate(target, sampled.z)[1]
        rng, is_point = np.random.default_rng([seed, 6]), sampled.kind == "point"
        weights, log_ratio = self._complete(sampled.z[WEIGHTS], None if is_point else rng)
        z, warmup, mode = {**sampled.z, WEIGHTS: weights}, sampled.warmup, sampled.mode
        if warmup:
            warmup = {**warmup, WEIGHTS: self._complete(warmup[WEIGHTS], rng)[0]}
        if mode is not None:
            mode = flatten(self.restore_sites(unflatten(mode, target.start)))
        log_density = sampled.log_density
        return replace(
            sampled,
            z=z,
            warmup=warmup,
            mode=mode,
            log_density=None if log_density is None else log_density + log_ratio,
            log_likelihood=log_likelihood,
            findings=None,
            directions=None if is_point else np.asarray(sampled.z[WEIGHTS]),
        )

    def restore_sites(self, z: Sites) -> Sites:
        """Return values of y as weights, with 0 in all other directions."""
        weights = self._complete(np.asarray(z[WEIGHTS])[None, None], None)[0]
        return {**z, WEIGHTS: weights[0, 0]}

    def _complete(
        self, y: npt.ArrayLike, rng: np.random.Generator | None
    ) -> tuple[Float64, Float64]:
        """Return weights, (C, D, Q), and log p(λ) − log p(y) of their priors, (C, D).

        Args:
            y: (C, D, r). While a chain stays where it is, all of its weights do.
            rng: draws the other directions from their prior, given y; None takes 0.
        """
        u = np.asarray(y, np.float64) / self.stretch
        scale = in_floats(self.original.prior.scale)
        noise = np.zeros((*u.shape[:2], len(self.basis)))
        if rng is not None:
            noise = np.asarray(rng.normal(size=noise.shape))
            if scale is not None:  # of the common scale, given the directions
                of_span = scale.shared[self.member]
                squared = np.square(u[..., of_span]).sum(axis=-1)
                drawn_scale = scale.draw_given(rng, squared, int(of_span.sum()))
                noise[..., scale.shared] *= drawn_scale[..., None]
            moves = np.ones(u.shape[:2], bool)
            moves[:, 1:] = (u[:, 1:] != u[:, :-1]).any(axis=-1)
            origin = np.maximum.accumulate(np.where(moves, np.arange(u.shape[1]), 0), axis=1)
            noise = np.take_along_axis(noise, origin[..., None], axis=1)
        z = noise + (u - noise @ self.basis) @ self.basis.T
        log_ratio = _log_density(z, scale) - _log_density(u, self._of_directions(scale))
        if self.factor.ndim == 1:
            weights, diagonal = z * self.factor, self.factor
        else:
            weights, diagonal = z @ self.factor.T, np.diag(self.factor)
        log_ratio += np.log(self.stretch).sum() - np.log(diagonal).sum()
        return np.asarray(self.original.prior.mean) + weights, log_ratio


def _log_density(z: Float64, scale: LogNormalScale | None) -> Float64:
    """Return the log density of standard normal values, some of which have a common scale."""
    shared = np.zeros(z.shape[-1], bool) if scale is None else scale.shared
    normal = np.square(z[..., ~shared])
    log_p = -0.5 * (normal.sum(axis=-1) + normal.shape[-1] * np.log(2 * np.pi))
    if scale is not None:
        squared, count = np.square(z[..., shared]).sum(axis=-1), int(shared.sum())
        log_p += scale.log_marginal(squared, count, count)
    return np.asarray(log_p)


def _find_rows(lists: Lists, most: float) -> Float64 | None:
    """Return the differences of candidates from row 0 of their lists, (n, Q); None if n > most."""
    parts = []
    for bucket in lists.buckets:
        features = np.asarray(bucket["features"])
        differs = features.any(axis=2)
        parts.append((features, differs))
    if sum(int(differs.sum()) for _, differs in parts) > most:
        return None
    rows = [np.swapaxes(features, 2, 3)[differs] for features, differs in parts]
    return np.concatenate(rows).astype(np.float64)


def _group(prior: Prior, size: Float64, varying: npt.ArrayLike) -> Int64:
    """Return the number of the group of each weight, (Q,).

    The weights of a group have the same unknown factors of their prior, and like sizes: (Q,) the
    deviations of the scores of features, a priori, as powers of 2^20.
    """
    shared = 0.0 if prior.scale is None else np.asarray(prior.scale.shared, np.float64)
    # Weights of different groups are independent.
    size = size if prior.covariance is None else np.ones(len(size))
    keys = np.stack(np.broadcast_arrays(shared, varying, np.maximum(size, 1.0)))
    return np.asarray(np.unique(keys, axis=1, return_inverse=True)[1]).reshape(-1)


def _make_spanned(
    target: WeightsTarget, rows: Float64, group: Int64, stretch: Float64
) -> WeightsTarget:
    """Return a posterior of directions.

    Args:
        target: the posterior of the weights.
        rows: (n, Q) the differences of candidates.
        group: (Q,) from `_group`.
        stretch: (Q,) c of the group of each weight.
    """
    prior, count = target.prior, len(group)
    if prior.covariance is None:
        factor = np.sqrt(prior_variances(prior))
        moved = rows * factor
    else:
        factor = np.linalg.cholesky(np.asarray(prior.covariance, np.float64))
        moved = rows @ factor
    parts, members = [], []
    for number in range(group.max() + 1):
        chosen = np.flatnonzero(group == number)
        # Without any row the first weight is a direction.
        block = qr(moved[:, chosen].T, mode="economic")[0] if len(rows) else np.eye(len(chosen), 1)
        part = np.zeros((count, block.shape[1]))
        part[chosen] = block
        parts.append(part)
        members.append(np.full(block.shape[1], chosen[0]))
    basis, member = np.concatenate(parts, axis=1), np.concatenate(members)
    stretch = stretch[member]
    coordinates = _Spanned(
        original=target, factor=factor, basis=basis, stretch=stretch, member=member
    )
    mean = np.asarray(prior.mean, np.float64)
    difference = np.asarray(target.start[WEIGHTS]) - mean
    if factor.ndim == 1:
        matrix, z = factor[:, None] * basis, difference / factor
    else:
        matrix, z = factor @ basis, solve_triangular(factor, difference, lower=True)
    matrix = matrix / stretch

    def project(features: Float64) -> Float64:
        return np.swapaxes(np.swapaxes(features, 2, 3) @ matrix, 2, 3)

    names = tuple(f"direction {number}" for number in range(1, len(stretch) + 1))
    lists = _map_features(target.lists, project, mean)
    return replace(
        target,
        data=ListData(lists, jax.device_put(coordinates.project(prior))),
        start={**target.start, WEIGHTS: stretch * (z @ basis)},
        match=Match(names, np.zeros(len(names)), np.ones(len(names), bool)),
        coords={**target.coords, FEATURE: names},
        coordinates=coordinates,
    )


def flatten(z: Sites) -> Float64:
    """Return values of sites as one vector, in the order of `unflatten`."""
    return np.concatenate([np.ravel(z[name]) for name in sorted(z)])
