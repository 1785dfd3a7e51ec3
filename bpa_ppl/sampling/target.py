"""What a sampler takes and returns: the density of a posterior, and draws from it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import numpy.typing as npt
from jax.flatten_util import ravel_pytree

from bpa_ppl.arrays import Float64
from bpa_ppl.columns import to_floats
from bpa_ppl.diagnostics.checks import checked
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.lists import Lists
from bpa_ppl.models.priors.base import Prior
from bpa_ppl.posterior.adapter import to_arviz
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.statistics import pareto_smoothed
from bpa_ppl.progress import Reporter
from bpa_ppl.sampling.density import constrained, evaluate, may_overlap, potential, unflatten
from bpa_ppl.sampling.tracing import tracing
from bpa_ppl.weights import Match

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

#: A NumPyro program over lists, a prior and a likelihood.
Model = Callable[[Lists, Prior, Likelihood], None]
#: The unconstrained values of the sites of a model, by name.
Sites = dict[str, Any]

#: Standard deviation of the starts of chains around the initial position.
_JITTER = 0.1
#: Held to compile, since two threads cannot trace NumPyro programs at once, and to run a program
#: that may not overlap with another.
_COMPILING = threading.Lock()


def no_report(done: int, total: int, note: str) -> None:
    """Report no progress."""


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("lists", "prior", "start"),
    meta_fields=("model", "likelihood"),
    drop_fields=("match", "seed", "progress", "problem", "earlier"),
)
@dataclass(frozen=True, eq=False)
class Target:
    """A posterior to sample: the log density of its unconstrained values as one flat vector z.

    `target(z)` is a pure JAX function of z, (d,): `jax.grad`, `jax.hessian`, `jax.jvp`, `jax.vmap`
    and `jax.jit` apply to it. It is computed in float64: enable it, for the program by
    `jax.config.update("jax_enable_x64", True)` or for a block by `with jax.enable_x64(True):`.
    Samplers are called with it enabled; `value_and_gradient` and `to_posterior` enable it
    themselves.

    The object is a pytree. As an argument of a compiled function, rather than as a constant of it,
    it is not compiled into the program: `jax.jit(run)(target, key)`. Data of the same shapes share
    one compilation.

    Attributes:
        model: a function of lists, a prior and a likelihood.
        likelihood: its last argument.
        lists: the tabulated sentences, on JAX's device.
        prior: of the free features.
        start: z by site, at the mean of the prior.
        match: the canonical weights, matched to the features of the lists; like the following ones,
            not part of the density and not known to compiled functions.
        seed: the only source of randomness.
        progress: receives the progress of the sampling.
        problem: what `adapt` samples; None if `log_density` did not make the target.
        earlier: the posterior of earlier lists whose draws a sampler weights again
            (`Sampler.keeps_draws`), or None.

    >>> from bpa_ppl import from_lists, log_density
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> with jax.enable_x64(True):
    ...     density = log_density(lists, {"LM0": 0.5}, likelihood="oracle")
    ...     z = density.initial_position
    ...     print(jax.grad(density)(z).round(3), density.constrain(z), density.features)
    [0.378] {'weights': Array([0.5], dtype=float64)} ('LM0',)
    >>> with jax.enable_x64(True):
    ...     print(density.unflatten(z))  # for sites with constraints, unconstrained values
    {'weights': Array([0.5], dtype=float64)}
    >>> density.dimension, density.initial_positions(chains=4, seed=0).shape
    (1, (4, 1))

    A kernel of NumPyro takes the program and its arguments:

    >>> len(density.data)  # of `density.program`
    2
    """

    model: Model
    likelihood: Likelihood
    lists: Lists
    prior: Prior
    start: Sites
    match: Match = None  # type: ignore[assignment] # given, except while JAX compiles
    seed: int = 0
    progress: Reporter = field(default_factory=lambda: no_report)
    problem: Any = None
    earlier: Draws | None = None

    def program(self, lists: Lists, prior: Prior) -> None:
        """Run the model: a NumPyro program of the arrays of `data`."""
        self.model(lists, prior, self.likelihood)

    @property
    def data(self) -> tuple[Lists, Prior]:
        """The arguments of the program."""
        return self.lists, self.prior

    @property
    def features(self) -> tuple[str, ...]:
        """The features that the site `weights` has a value for."""
        return self.match.free_names

    def __call__(self, z: Any) -> jax.Array:
        """Return log p(z, data), the value that posteriors call `lp`.

        Args:
            z: (d,) float64.

        Raises:
            UsageError: if z has another shape, or float64 is not enabled.
        """
        log_p: jax.Array = -potential(self, self.unflatten(z))
        return log_p

    def unflatten(self, z: Any) -> Sites:
        """Return the unconstrained value of each site, from one vector.

        Args:
            z: (d,) float64.

        Raises:
            UsageError: if z has another shape, or float64 is not enabled.
        """
        if jax.dtypes.canonicalize_dtype(float) != np.float64:
            raise UsageError(
                "the log density is computed in float64, which JAX has not enabled: call "
                'jax.config.update("jax_enable_x64", True) first',
                code="conflict",
            )
        if not isinstance(z, jax.Array | np.ndarray) or z.shape != (self.dimension,):
            received = f"an array of shape {z.shape}" if hasattr(z, "shape") else type(z).__name__
            raise UsageError(
                f"z is one vector of {self.dimension} unconstrained values, not {received}: use "
                "jax.vmap for many",
                parameter="z",
                code="wrong-type",
            )
        return unflatten(z, self.start)

    def constrain(self, z: Any) -> Sites:
        """Return the values of all sites of the model, such as `weights`, from one vector.

        Args:
            z: (d,) float64.

        Raises:
            UsageError: if z has another shape, or float64 is not enabled.
        """
        values: Sites = constrained(self, self.unflatten(z))
        return values

    @property
    def dimension(self) -> int:
        """The number d of unconstrained values."""
        return sum(int(np.size(value)) for value in jax.tree.leaves(self.start))

    @property
    def initial_position(self) -> jax.Array:
        """(d,) the mean of the prior for `weights`, the median for other sites; in float64."""
        with jax.enable_x64(True):
            position: jax.Array = ravel_pytree(self.start)[0]
        return position

    def initial_positions(self, chains: int, seed: int) -> Float64:
        """Return a start for each chain, (chains, d), near the initial position."""
        rng, position = np.random.default_rng([seed, 3]), np.asarray(self.initial_position)
        return position + _JITTER * rng.normal(size=(chains, len(position)))

    def value_and_gradient(self, z: npt.ArrayLike) -> tuple[float, Float64]:
        """Return log p(z, data) and its gradient, (d,), as NumPy's numbers.

        For packages outside JAX, such as nutpie or SciPy: from any thread, in float64.

        Args:
            z: (d,).

        Raises:
            UsageError: if z has another shape.

        >>> from bpa_ppl import from_lists, log_density
        >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
        >>> value, gradient = log_density(lists, {"LM0": 0.5}).value_and_gradient([0.5])
        >>> value < 0, gradient.dtype
        (True, dtype('float64'))
        """
        point = to_floats(z, "z")
        with jax.enable_x64(True):  # each thread has its own setting
            self.unflatten(point)
            with _COMPILING:
                compiled = self._compiled
            with nullcontext() if may_overlap(self) else _COMPILING:
                value, gradient = compiled(self, point)
                return float(value), np.asarray(gradient)

    @cached_property
    def _compiled(self) -> Any:
        """The value and the gradient, compiled for this density."""
        z = jax.ShapeDtypeStruct((self.dimension,), np.float64)
        return _value_and_gradient.lower(self, z).compile()

    def to_posterior(
        self,
        z: npt.ArrayLike,
        *,
        sampler: str = "unknown sampler",
        warmup: npt.ArrayLike | None = None,
        log_weight: npt.ArrayLike | None = None,
        statistics: Mapping[str, npt.ArrayLike] | None = None,
    ) -> InferenceData:
        """Return draws of any algorithm as the posterior that `adapt` would return.

        `check`, `report`, `compare` and `rerank` take it.

        Args:
            z: (chains, draws, d) unconstrained values.
            sampler: a name that the posterior records.
            warmup: (chains, draws, d) of the warm-up, if they are to be kept.
            log_weight: (chains, draws) log p(z, data) − log q(z) of proposals from q, up to a
                constant. The importance weights are Pareto-smoothed, and k̂ is recorded.
            statistics: (chains, draws) each, under ArviZ's names. `n_steps` is the number of
                evaluations of the density that a draw took; where it is missing it is unknown.

        Raises:
            DataError: if shapes do not fit together, or a value is not finite.
            UsageError: if the density was not made by `log_density`.

        >>> from bpa_ppl import from_lists, log_density
        >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
        >>> density = log_density(lists, {"LM0": 0.5})
        >>> z = np.random.default_rng(0).normal(0.5, 0.3, (4, 100, 1))
        >>> posterior = density.to_posterior(z, sampler="mine")
        >>> posterior["posterior"]["weights"].shape, posterior.attrs["sampler"]
        ((4, 100, 1), 'mine')
        """
        if self.problem is None:
            problem = "only a density made by log_density has what a posterior records"
            raise UsageError(problem, code="missing-setting")
        values = self._draws("z", z)
        shape, attrs, weights = values.shape[:2], {}, None
        if log_weight is not None:
            weights, attrs["pareto_k"] = pareto_smoothed(_columns("log_weight", log_weight, shape))
        arrays = {n: _columns(n, v, shape) for n, v in (statistics or {}).items()}
        sites = unflatten(values, self.start)
        with tracing(), jax.enable_x64(True):
            log_density, log_likelihood = evaluate(self, sites)
        sampled = Sampled(
            z=sites,
            kind="chains" if weights is None else "weighted",
            log_density=log_density,
            log_weight=weights,
            statistics=arrays,
            warmup={} if warmup is None else unflatten(self._draws("warmup", warmup), self.start),
            log_likelihood=log_likelihood,
            attrs=attrs,
        )
        return to_arviz(checked(self.problem.draws(sampled, {"sampler": str(sampler)}))[0])

    def _draws(self, name: str, z: npt.ArrayLike) -> Float64:
        """Return draws as finite numbers, (chains, draws, d)."""
        values = to_floats(z, name)
        if values.ndim != 3 or values.shape[2] != self.dimension or not values.size:
            problem = f"must be (chains, draws, {self.dimension})"
            raise DataError(
                f"{name} has the shape {values.shape}: it {problem}",
                parameter=name,
                code="mismatch",
            )
        if not np.isfinite(values).all():
            problem = f"{name} has values that are not finite: leave out the draws that diverged"
            raise DataError(problem, parameter=name, code="bad-number")
        return values


def _columns(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of one value per draw, (chains, draws), in its own type."""
    if to_floats(values, name).shape != shape:
        problem = f"{name} has the shape {np.shape(values)}: it must be {shape}, (chains, draws)"
        raise DataError(problem, parameter=name, code="mismatch")
    return np.asarray(values)


@jax.jit
def _value_and_gradient(density: Target, z: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.value_and_grad(lambda z: density(z))(z)


@dataclass(frozen=True, eq=False)
class Sampled:
    """The result of a sampler (C chains, D draws).

    Attributes:
        z: for each site of the model its unconstrained values, (C, D, …).
        kind: `chains`, `weighted` or `point`.
        log_density: (C, D) log p(z, data), or None.
        log_weight: (C, D) the log importance weights of draws, or None.
        statistics: (C, D) each, under ArviZ's names, such as `acceptance_rate`. `n_steps`, the
            evaluations of the density for a kept draw, is what comparisons count; without it they
            are unknown.
        warmup: the draws of the warm-up, in the form of `z`.
        mode: the flat z of the posterior's mode, if the sampler has found it.
        log_likelihood: observed site -> (C, D, …), if the sampler has computed it.
        constants: further arrays that are stored with the posterior, by name.
        attrs: diagnostics for the posterior's attributes. `step_setting` names the setting that
            sizes the steps of a random walk.

    Two chains of a hundred draws of three weights:

    >>> Sampled(z={"weights": np.zeros((2, 100, 3))}, log_density=np.zeros((2, 100))).kind
    'chains'
    """

    z: Sites
    kind: str = "chains"
    log_density: np.ndarray | None = None
    log_weight: Float64 | None = None
    statistics: dict[str, np.ndarray] = field(default_factory=dict)
    warmup: Sites = field(default_factory=dict)
    mode: Any = None
    log_likelihood: dict[str, np.ndarray] | None = None
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)


def with_evaluations(sampled: Sampled, per_draw: int = 1) -> Sampled:
    """Return draws that record the evaluations of the density for each of them, as `n_steps`."""
    shape = np.shape(next(iter(sampled.z.values())))[:2]
    steps = np.full(shape, per_draw, np.int32)
    return replace(sampled, statistics={**sampled.statistics, "n_steps": steps})
