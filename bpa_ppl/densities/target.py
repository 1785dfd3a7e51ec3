"""The log density of a posterior: a NumPyro program with its data, as functions that JAX compiles.

Everywhere z is the dict of unconstrained latent values of a target, whose model and likelihood are
static in compiled functions: data of the same shapes need no new compilation.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax.flatten_util import ravel_pytree
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.distributions.constraints import real
from numpyro.infer import Predictive, log_likelihood
from numpyro.infer.util import constrain_fn, potential_energy, unconstrain_fn

from bpa_ppl._runtime.arrays import Float64, to_floats
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.densities.discrete import count_plates, enumerate_sites, find_computed, find_discrete
from bpa_ppl.densities.newton import Mode
from bpa_ppl.densities.own_models import (
    CheckedSites,
    Simulated,
    explain_errors,
    is_factor,
    is_improper,
    is_of_numpyro,
    model_error,
    name_dimensions,
    refuse_parameters,
)
from bpa_ppl.densities.parametrisation import find_reparametrisations
from bpa_ppl.errors import UsageError, list_names, wrong_type, wrong_value
from bpa_ppl.posterior.draws import Draws, importance_weights, kish, total
from bpa_ppl.posterior.record import Figures, Finding, Record

#: The unconstrained values of the sites of a model, by name.
Sites = dict[str, Any]

#: Held by a thread from the target to the draws, so that one NumPyro program at a time is traced
#: and run. NumPyro has one stack of effect handlers for all threads: two threads that trace at once
#: see the handlers of each other, and fail with "all sites must have unique names". And JAX up to
#: 0.10 splits each batch of matrices that LAPACK factorises or solves over the threads that run the
#: programs, and waits for them: two programs that do so at once can wait forever.
NUMPYRO_LOCK = threading.RLock()
#: Held by `value_and_gradient`, for the same reasons: threads that a sampler starts call it while
#: the thread that started them holds `NUMPYRO_LOCK`.
_EVALUATION_LOCK = threading.Lock()

#: Standard deviation of the starts of chains around the initial position.
_JITTER = 0.1
#: Draws evaluated side by side: the scores of one block of lists still fit into a cache.
_DRAWS = 128
#: Log likelihoods, of all draws and observations, that are kept of a program by default, and that
#: are computed side by side where they are not kept.
MOST_KEPT, _BLOCK = 100_000_000, 16_000_000
#: Numbers of many draws of large sites that are computed together.
_PART = 4_000_000
#: Numbers of a computed site up to which its draws in the warm-up and of the prior are kept.
MOST_COMPUTED = 10_000_000
#: Blocks of draws evaluated in parallel: XLA computes parts of a block on one core.
_THREADS = 2
#: For code that runs once and briefly: optimisation would take longer than it saves.
RUN_ONCE = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
#: Of the searches for starts, modes and constant cells, which do not depend on the seed of draws.
SEARCH_SEED = 0
#: Always as many, so that the program of the prior is compiled once.
PRIOR_DRAWS = 1000
#: If fewer of the first draws of the prior have weight, fewer than a hundred of all will have some.
_FEW_LIKELY = 5


class Coordinates(Protocol):
    """Other coordinates of the posterior `original`, in which it is sampled better."""

    @property
    def original(self) -> Target:
        """The target of the draws after conversion."""

    def restore(self, target: Target, sampled: Sampled, seed: int) -> Sampled:
        """Return draws of a target in these coordinates as draws of `original`."""

    def restore_sites(self, z: Sites) -> Sites:
        """Return values of z in these coordinates, such as the mode, as values of `original`."""


class Source:
    """What a posterior was made from, and what its draws record of it: by default a program.

    >>> Source().title
    'sample'
    """

    #: What is done by sampling, for the progress.
    title: ClassVar[str] = "sample"

    def prepare_sampler(self, sampler: Any, seed: int) -> Any:
        """Return a sampler with what it learns from the source: by default nothing."""
        return sampler

    def record(self, target: Target) -> Record:
        """Return the record of what the posterior was made from."""
        improper = inspect_model(target).improper
        return Record(model=target.model.__name__, flat=dict(target.flat), improper=improper)

    def label(self, target: Target, sampled: Sampled, draws: Draws) -> Draws:
        """Return draws with the names of their dimensions and labels, and what was observed."""
        dims = {**inspect_model(target).dims, **target.dims}
        return replace(draws, dims=dims, coords=target.coords, observed=read_observed(target))

    def conclude(self, draws: Draws, *, passed: bool) -> Draws:
        """Return draws with what the source finds in them: by default nothing.

        Args:
            draws: with their names and constants.
            passed: whether they have passed their check.
        """
        return draws


@dataclass(frozen=True)
class Hints:
    """What samplers may use of a posterior besides its density. By default nothing is known.

    Attributes:
        log_concave: whether the density is smooth and log-concave, or nearly so: the search for its
            mode converges from anywhere, it does not jump, and its shape is near to a Gaussian.
        one_mode: whether it has one mode, so that no others are searched.
        gaussian_prior: whether the prior of all values is one Gaussian distribution.
        in_threads: whether several threads may evaluate it at once (see `NUMPYRO_LOCK`).
        hierarchy: why independent proposals cannot fit it, in words; empty if that is not known.
        propose: returns proposals that fit it, for a seed, which samplers take in place of those
            around the mode; None if it finds none.
        transform: returns it in the coordinates in which a sampler samples it.

    >>> Hints(log_concave=True).one_mode
    False
    """

    log_concave: bool = False
    one_mode: bool = False
    gaussian_prior: bool = False
    in_threads: bool = False
    hierarchy: str = ""
    propose: Callable[[Any, int, Reporter], Any] | None = None
    transform: Callable[[Any, Any], Target] | None = None


@partial(
    jax.tree_util.register_dataclass,
    data_fields=("data", "start"),
    meta_fields=("model",),
    drop_fields=("coordinates", "source", "hints", "most_kept", "flat", "dims", "coords", "order"),
)
@dataclass(frozen=True, eq=False, kw_only=True)
class Target:
    """A posterior to sample: the log density of its unconstrained values as one flat vector z.

    `target(z)` is a pure JAX function of z, (d,): `jax.grad`, `jax.hessian`, `jax.jvp`, `jax.vmap`
    and `jax.jit` apply to it. It is computed in float64: enable it, for the program by
    `jax.config.update("jax_enable_x64", True)` or for a block by `with jax.enable_x64(True):`.
    Samplers are called with it enabled; `value_and_gradient` enables it itself.

    The object is a pytree. As an argument of a compiled function, rather than as a constant of it,
    it is not compiled into the program: `jax.jit(run)(target, key)`. Data of the same shapes share
    one compilation.

    `make_model_target` makes it of any NumPyro program with its arguments. That of the weights of
    lists, by `log_density`, is a `WeightsTarget`.

    Attributes:
        model: a NumPyro program of `data`.
        data: its arguments, a pytree.
        start: z by site, where searches and chains start.
        coordinates: what its values are, if they are not those of the sites of the model. Like the
            following ones it is not part of the density: compiled functions have its default.
        source: what it was made from, and what its draws record of it.
        hints: what samplers may use besides the density.
        most_kept: how many numbers of log likelihoods `evaluate` returns at most; none if there are
            more.
        flat: site -> the number of its cells that the density does not depend on, which are
            constants (`bpa_ppl.densities.flat_cells`).
        dims: site -> the names of its dimensions, where they are not those of `inspect_model`.
        coords: dimension -> its labels.
        order: observed site -> the places of its observations in its array, where they are to be
            in another order.
        modes: what `bpa_ppl.densities.mode.modes_of` has found; empty before.
        main: the sites that the posterior is for, as the weights of lists; see `Draws`.
        enumerable: whether its discrete sites can be summed out.
        has_factors: whether sites of `numpyro.factor` observe nothing.

    >>> import numpyro
    >>> from numpyro.distributions import HalfNormal, Normal
    >>> from bpa_ppl.densities.model_target import make_model_target
    >>> def model(y):
    ...     scale = numpyro.sample("scale", HalfNormal(1.0))
    ...     numpyro.sample("y", Normal(0.0, scale), obs=y)
    >>> density = make_model_target(model, (np.array([0.5, -1.0]),))
    >>> with jax.enable_x64(True):
    ...     z = jnp.zeros(1)
    ...     print(jax.grad(density)(z).round(3), density.constrain(z))
    [-0.75] {'scale': Array(1., dtype=float64)}
    >>> with jax.enable_x64(True):
    ...     print(density.unflatten(z))
    {'scale': Array(0., dtype=float64)}
    >>> density.dimension, density.initial_positions(chains=4, seed=0).shape
    (1, (4, 1))

    A kernel of NumPyro takes the program and its arguments:

    >>> len(density.data)  # of `density.program`
    1
    """

    model: Callable[..., Any]
    data: Any
    start: Sites
    coordinates: Coordinates | None = None
    source: Source = field(default_factory=Source)
    hints: Hints = Hints()
    most_kept: float = np.inf
    flat: Mapping[str, int] = field(default_factory=dict)
    dims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    coords: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    order: Mapping[str, np.ndarray] = field(default_factory=dict)
    modes: list[Mode] = field(init=False, default_factory=list)
    main: ClassVar[tuple[str, ...]] = ()
    enumerable: ClassVar[bool] = True
    has_factors: ClassVar[bool] = True

    def program(self, *data: Any) -> None:
        """Run the model: a NumPyro program of the arrays of `data`."""
        self.model(*data)

    def checked_program(self) -> CheckedSites:
        """Return the program, which refuses sites that samplers cannot use."""
        return CheckedSites(self.program)

    def name_dimensions(self, sites: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
        """Return the names of the dimensions of the sites of a trace: those of their plates."""
        return name_dimensions(sites)

    def find_unused(self, sites: Sites, latent: Sites, observed: Sequence[str]) -> str | None:
        """Return what the observations do not depend on, if they must depend on something.

        Args:
            sites: of a trace.
            latent: an array, or its shape and type, for each latent site.
            observed: the observed sites.
        """
        return None

    def transformed_for(self, sampler: Any) -> Target:
        """Return the posterior in the coordinates in which a sampler samples it."""
        return self if self.hints.transform is None else self.hints.transform(sampler, self)

    def restore(self, sampled: Sampled, seed: int) -> Sampled:
        """Return draws as those of the target whose coordinates were changed to these.

        Args:
            sampled: draws in the coordinates of this target.
            seed: of further draws, of what the lists say nothing about.
        """
        target = self
        while (coordinates := target.coordinates) is not None:
            sampled, target = coordinates.restore(target, sampled, seed), coordinates.original
        return sampled

    def restore_sites(self, z: Sites) -> Sites:
        """Return values of z as those of the target whose coordinates were changed to these."""
        if self.coordinates is None:
            return z
        return self.coordinates.original.restore_sites(self.coordinates.restore_sites(z))

    def draw_prior(self, seed: int) -> Sites:
        """Return 1,000 draws of the prior: of the latent sites, and of what is computed from them.

        Computed sites with more than 10 million numbers are left out. A site with an improper prior
        has places to start at instead.
        """
        info = inspect_model(self)
        sizes = {name: PRIOR_DRAWS * math.prod(info.shapes[name]) for name in info.shapes}
        computed = [name for name in info.deterministic if sizes[name] <= MOST_COMPUTED]
        return draw_sites(self, tuple(dict.fromkeys((*info.latent, *computed))), seed)

    def __getstate__(self) -> dict[str, Any]:
        # JAX restores its own arrays in float32 where float64 is not enabled, as in a worker.
        data, start = jax.device_get((self.data, self.start))
        return {**vars(self), "data": data, "start": start}

    def __call__(self, z: Any) -> jax.Array:
        """Return log p(z, data), the `lp` of posteriors, at z, (d,) float64.

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
        """Return the values of all sites, such as `weights`, from one vector z, (d,) float64.

        Raises:
            UsageError: if z has another shape, or float64 is not enabled.
        """
        values: Sites = constrain(self, self.unflatten(z))
        return values

    @property
    def dimension(self) -> int:
        """The number d of unconstrained values."""
        return sum(int(np.size(value)) for value in jax.tree.leaves(self.start))

    @property
    def initial_position(self) -> jax.Array:
        """(d,) where searches and chains start; in float64."""
        with jax.enable_x64(True):
            position: jax.Array = ravel_pytree(self.start)[0]
        return position

    def initial_positions(self, chains: int, seed: int) -> Float64:
        """Return a start for each chain, (chains, d), near the initial position."""
        rng, position = np.random.default_rng([seed, 3]), np.asarray(self.initial_position)
        return position + _JITTER * rng.normal(size=(chains, len(position)))

    def value_and_gradient(self, z: npt.ArrayLike) -> tuple[float, Float64]:
        """Return log p(z, data) at z, (d,), and its gradient, (d,), as NumPy's numbers.

        For packages outside JAX, such as nutpie or SciPy: from any thread, in float64. Threads
        evaluate it one after the other.

        Raises:
            UsageError: if z has another shape.

        >>> import numpyro
        >>> from numpyro.distributions import Normal
        >>> from bpa_ppl.densities.model_target import make_model_target
        >>> target = make_model_target(lambda: numpyro.sample("x", Normal(0.0, 1.0)))
        >>> value, gradient = target.value_and_gradient([0.5])
        >>> round(value, 3), gradient.tolist()
        (-1.044, [-0.5])
        """
        point = to_floats(z, "z")
        with jax.enable_x64(True), _EVALUATION_LOCK:  # each thread has its own setting
            self.unflatten(point)
            value, gradient = self._compiled(self, point)
            return float(value), np.asarray(gradient)

    @cached_property
    def _compiled(self) -> Any:
        """The value and the gradient, compiled for this density."""
        z = jax.ShapeDtypeStruct((self.dimension,), np.float64)
        return _value_and_gradient.lower(self, z).compile()


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
        directions: (C, D, r) what was sampled in place of the main site, of which these draws are a
            function and further draws from the prior; None if the site itself was.
        figures: what the sampler reports of its run.
        findings: of the check of these draws, if the sampler has checked them.

    Two chains of a hundred draws of three values:

    >>> Sampled(z={"theta": np.zeros((2, 100, 3))}, log_density=np.zeros((2, 100))).kind
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
    directions: np.ndarray | None = None
    figures: Figures = field(default_factory=Figures)
    findings: tuple[Finding, ...] | None = None


def with_evaluations(sampled: Sampled, per_draw: int = 1) -> Sampled:
    """Return draws that record the evaluations of the density for each of them, as `n_steps`."""
    shape = np.shape(next(iter(sampled.z.values())))[:2]
    steps = np.full(shape, per_draw, np.int32)
    return replace(sampled, statistics={**sampled.statistics, "n_steps": steps})


class Structure(NamedTuple):
    """What a program consists of.

    Attributes:
        latent: the sites that are sampled.
        deterministic: the sites that are computed from them.
        observed: the sites that have data.
        factors: the sites of `numpyro.factor` that are no observations.
        discrete: the latent sites that are summed out.
        improper: the latent sites whose priors have no draws: those with improper priors, masked
            and scaled ones, and those of distributions of one's own whose draws are all the same.
        others: the latent sites with distributions of one's own.
        plates: the number of dimensions of nested plates.
        unused: what its observations do not depend on, see `Target.find_unused`.
        unconstrained: whether all sites are real-valued and none is deterministic, so that z are
            the values of the sites.
        shapes: site -> its shape, of all sites that are drawn, observed or computed.
        dims: site -> the names of its dimensions, see `Target.name_dimensions`.
        observations: the number of log likelihoods of one draw.
        reparametrisations: site -> what suits it, see `find_reparametrisations`.
    """

    latent: tuple[str, ...]
    deterministic: tuple[str, ...]
    observed: tuple[str, ...]
    factors: tuple[str, ...]
    discrete: tuple[str, ...]
    improper: tuple[str, ...]
    others: tuple[str, ...]
    plates: int
    unused: str | None
    unconstrained: bool
    shapes: dict[str, tuple[int, ...]]
    dims: dict[str, tuple[str, ...]]
    observations: int
    reparametrisations: dict[str, str]


def inspect_model(target: Target) -> Structure:
    """Return the structure of a program, computed once for data of the same shapes; or raise."""
    leaves, structure = jax.tree.flatten(without_start(target))
    shapes = tuple(jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype) for leaf in leaves)
    return _inspect_model(structure, shapes)


@lru_cache(maxsize=256)
def _inspect_model(structure: Any, shapes: tuple[Any, ...]) -> Structure:
    sites: dict[str, Any] = {}
    discrete: list[str] = []
    reparametrisations: dict[str, str] = {}
    target: Target = jax.tree.unflatten(structure, shapes)

    def run(target: Target) -> Sites:
        seeded = handlers.seed(target.checked_program(), jax.random.key(0))
        sites.update(handlers.trace(seeded).get_trace(*target.data))
        discrete.extend(find_discrete(sites, enumerable=target.enumerable))
        reparametrisations.update(find_reparametrisations(target.program, target.data, sites))
        return {name: sites[name]["value"] for name in unconstrain_sites(sites)}

    def is_real(support: Any) -> bool:
        while hasattr(support, "base_constraint"):
            support = support.base_constraint
        return support is real

    with explain_errors(target.model):
        values = jax.eval_shape(run, target)
        refuse_parameters(target.program, target.data, sites)
    dims = target.name_dimensions(sites)
    sampled = {name: site for name, site in sites.items() if site["type"] == "sample"}
    fixed = tuple(name for name, site in sampled.items() if site["is_observed"])
    latent = tuple(name for name in sampled if name not in (*fixed, *discrete))
    computed = [n for n, site in sites.items() if site["type"] == "deterministic"]
    if discrete:
        with explain_errors(target.model):
            program = partial(target.program, *target.data)
            of_discrete = find_computed(program, sites, tuple(discrete))
        computed = [name for name in computed if name not in of_discrete]
    deterministic = tuple(computed)
    factors = tuple(n for n in fixed if is_factor(sites[n]) and target.has_factors)
    observed = tuple(name for name in fixed if name not in factors)
    return Structure(
        latent=latent,
        deterministic=deterministic,
        observed=observed,
        factors=factors,
        discrete=tuple(discrete),
        improper=tuple(name for name in latent if is_improper(sites[name])),
        others=tuple(name for name in latent if not is_of_numpyro(sites[name])),
        plates=count_plates(sites),
        unused=target.find_unused(sites, values, observed),
        unconstrained=not deterministic and all(is_real(sites[n]["fn"].support) for n in latent),
        shapes={
            name: np.shape(site["value"])
            for name, site in sites.items()
            if site["type"] in ("sample", "deterministic")
        },
        dims={name: names for name, names in dims.items() if name in sites},
        observations=0 if discrete else sum(_count_likelihoods(sites[n]) for n in observed),
        reparametrisations=reparametrisations,
    )


def _count_likelihoods(site: dict[str, Any]) -> int:
    """Return the number of log likelihoods of an observed site."""
    shape = np.shape(site["value"])
    observed = shape[: len(shape) - site["fn"].event_dim]
    return math.prod(np.broadcast_shapes(site["fn"].batch_shape, observed))


def unconstrain_sites(sites: Mapping[str, Any]) -> Sites:
    """Return the unconstrained values of the latent sites of a trace that are not discrete."""
    return {
        name: biject_to(site["fn"].support).inv(site["value"])
        for name, site in sites.items()
        if site["type"] == "sample"
        and not site["is_observed"]
        and not site["fn"].support.is_discrete
    }


def potential(target: Target, z: Sites) -> jax.Array:
    """Return the potential energy, −log p(z, data).

    Compiled functions call a compiled function, so that NumPyro runs the program only once.
    """
    energy: jax.Array = _potential(without_start(target), z)
    return energy


@jax.jit
def _potential(target: Target, z: Sites) -> jax.Array:
    return compute_potential(target, z)


def compute_potential(target: Target, z: Sites) -> jax.Array:
    """Return the potential energy, without compilation; discrete sites are summed out."""
    info = inspect_model(target)
    program = enumerate_sites(target.program, info.plates) if info.discrete else target.program
    energy: jax.Array = potential_energy(program, target.data, {}, z, enum=bool(info.discrete))
    return energy


def without_start(target: Target) -> Target:
    """Return the target for what does not depend on its starting point."""
    return replace(target, start={})


@jax.jit
def evaluate_gradients(target: Target, z: Sites) -> jax.Array:
    """Return the gradients of the potential at n values of z, (n, d)."""

    def gradient(sites: Sites) -> jax.Array:
        return ravel_pytree(jax.grad(lambda values: potential(target, values))(sites))[0]

    return jax.vmap(gradient)(z)


def constrain(target: Target, z: Sites) -> Sites:
    """Return the values of the sites, deterministic ones included, for one z."""
    return z if inspect_model(target).unconstrained else _constrain(target, z)


@jax.jit
def _constrain(target: Target, z: Sites) -> Sites:
    info, program = inspect_model(target), handlers.seed(target.program, jax.random.key(0))
    values: Sites = constrain_fn(program, target.data, {}, z, return_deterministic=True)
    return {name: of for name, of in values.items() if name in (*info.latent, *info.deterministic)}


@jax.jit
def unconstrain_each(target: Target, values: Sites) -> Sites:
    """Return the unconstrained values of the latent sites, of values with a leading dimension."""

    def unconstrain(one: Sites) -> Sites:
        program = handlers.seed(target.program, jax.random.key(0))
        z: Sites = unconstrain_fn(program, target.data, {}, one)
        return z

    return jax.vmap(unconstrain)(values)


def constrain_draws(target: Target, z: Sites, most: float = np.inf) -> Sites:
    """Return the values of the sites for z with leading dimensions (chains, draws).

    Many numbers are computed block by block, so that what the program computes in between exists
    for a block only.

    Args:
        target: the posterior.
        z: the unconstrained values.
        most: computed sites with more numbers are left out.
    """
    info = inspect_model(target)
    if not z or info.unconstrained:
        return z
    chains, draws = np.shape(jax.tree.leaves(z)[0])[:2]
    shapes = {name: info.shapes[name] for name in (*info.latent, *info.deterministic)}
    sizes = {name: chains * draws * math.prod(shape) for name, shape in shapes.items()}
    names = tuple(name for name in shapes if name in info.latent or sizes[name] <= most)
    if sum(sizes.values()) <= _BLOCK:
        return {name: of for name, of in _constrain_draws(target, z).items() if name in names}
    size = _PART // sum(sizes[name] // (chains * draws) for name in names)
    values: Sites = {}
    for chain, part, of_part in _iter_parts(z, size):
        block = jax.device_get(_constrain_block(target, of_part, names))
        for name, of in block.items():
            if name not in values:
                values[name] = np.empty((chains, draws, *of.shape[1:]), of.dtype)
            values[name][chain, part] = of
    return values


def _split(draws: int, size: int) -> list[slice]:
    """Return blocks of draws of one size, for one compilation: the last one is moved back."""
    size = max(1, min(size, draws))
    starts = (*range(0, draws - size, size), draws - size)
    return [slice(start, start + size) for start in starts]


def _iter_parts(values: Sites, size: int) -> Iterator[tuple[int, slice, Sites]]:
    """Yield blocks of draws of each chain: its place, the places of the draws, and their values."""
    chains, draws = np.shape(jax.tree.leaves(values)[0])[:2]
    for chain in range(chains):
        for part in _split(draws, size):
            yield chain, part, jax.tree.map(lambda x, at=(chain, part): x[at], values)


@jax.jit
def _constrain_draws(target: Target, z: Sites) -> Sites:
    values: Sites = jax.vmap(jax.vmap(partial(constrain, target)))(z)
    return values


@partial(jax.jit, static_argnums=2)
def _constrain_block(target: Target, z: Sites, names: tuple[str, ...]) -> Sites:
    values: Sites = jax.vmap(partial(constrain, target))(z)
    return {name: values[name] for name in names}


def require_sites(z: Any, like: Sites) -> None:
    """Refuse draws that are not of the sites of a program.

    Args:
        z: for each site its unconstrained values, (chains, draws, …).
        like: z of one draw.

    Raises:
        UsageError: if a site is missing, or has another shape.

    >>> require_sites({"theta": np.zeros((4, 100, 2))}, {"theta": np.zeros(3)})
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: z must have the sites theta (chains, draws, 3), ...
    """
    expected = {name: ("chains", "draws", *np.shape(value)) for name, value in like.items()}
    shapes = {name: np.shape(value) for name, value in z.items()} if isinstance(z, dict) else {}
    leading = next(iter(shapes.values()), ())[:2]
    if len(leading) < 2 or shapes != {n: (*leading, *s[2:]) for n, s in expected.items()}:
        sites = list_names(f"{n} ({', '.join(map(str, shape))})" for n, shape in expected.items())
        received = shapes or type(z).__name__
        raise wrong_value(f"z must have the sites {sites}", received, "z", code="mismatch")


def unflatten(flat: Any, like: Sites) -> Sites:
    """Split flat vectors, (…, d), into the values of the sites, (…, site shape) each.

    Args:
        flat: NumPy or JAX arrays, in the order of `jax.flatten_util.ravel_pytree`.
        like: z of one draw.

    >>> sites = unflatten(np.arange(6.0).reshape(2, 3), {"b": np.zeros(2), "a": np.zeros(())})
    >>> {name: values.tolist() for name, values in sites.items()}
    {'a': [0.0, 3.0], 'b': [[1.0, 2.0], [4.0, 5.0]]}
    """
    sites, first = {}, 0
    for name in sorted(like):
        size = int(np.size(like[name]))
        part = flat[..., first : first + size]
        sites[name] = part.reshape((*flat.shape[:-1], *np.shape(like[name])))
        first += size
    return sites


@jax.jit
def _evaluate_block(target: Target, block: Sites) -> tuple[jax.Array, dict[str, jax.Array]]:
    def evaluate_one(z: Sites) -> tuple[jax.Array, dict[str, jax.Array]]:
        # The potential contains the likelihood too: the compiler computes it once.
        sites = log_likelihood(target.program, constrain(target, z), *target.data, batch_ndims=0)
        factors = inspect_model(target).factors
        narrow = {n: value.astype(jnp.float32) for n, value in sites.items() if n not in factors}
        return potential(target, z), narrow

    return jax.vmap(evaluate_one)(block)


@jax.jit
def _evaluate_potentials(target: Target, block: Sites) -> jax.Array:
    return jax.vmap(partial(potential, target))(block)


def evaluate(target: Target, z: Sites) -> tuple[Float64, dict[str, np.ndarray]]:
    """Return the log densities and the log-likelihoods of many draws, computed side by side.

    Args:
        target: the posterior.
        z: with leading dimensions (chains, draws).

    Returns:
        float64 (chains, draws) log p(z, data), and for each observed site float32
        (chains, draws, …), in the shape of the site and the `order` of the target; no site if
        there are more numbers than the target keeps.

    Raises:
        UsageError: if an argument has another type, or a log density is +inf.

    >>> import numpyro
    >>> from numpyro.distributions import Bernoulli, Normal
    >>> from bpa_ppl.densities.model_target import make_model_target
    >>> def model(y):
    ...     logit = numpyro.sample("logit", Normal(0.0, 1.0))
    ...     numpyro.sample("y", Bernoulli(logits=logit), obs=y)
    >>> target = make_model_target(model, (np.array([1, 0]),))
    >>> with jax.enable_x64(True):
    ...     _, values = evaluate(target, {"logit": np.full((1, 1), np.log(3))})
    >>> np.exp(values["y"]).round(2).tolist()
    [[[0.75, 0.25]]]
    """
    if not isinstance(z, dict):
        raise wrong_type("z is given by site, {name: (chains, draws, …)}", z, "z")
    shape = np.shape(jax.tree.leaves(z)[0])[:2]
    info, order = inspect_model(target), target.order
    count, x64 = shape[0] * shape[1], jax.dtypes.canonicalize_dtype(float) == np.float64
    size, is_kept = min(_DRAWS, count), count * info.observations <= target.most_kept
    is_kept = is_kept and not info.discrete
    if not is_kept:
        size = min(size, _BLOCK // max(info.observations, 1))
    log_density, likelihoods = np.empty(count), dict[str, np.ndarray]()

    def evaluate_block(block: slice) -> tuple[slice, np.ndarray, dict[str, np.ndarray]]:
        with jax.enable_x64(x64):  # each thread has its own setting
            rows = np.divmod(np.arange(block.start, block.stop), shape[1])
            part = jax.tree.map(lambda x: np.asarray(x)[rows], z)
            if is_kept:
                potentials, sites = _evaluate_block(target, part)
            else:
                potentials, sites = _evaluate_potentials(target, part), {}
        values = {name: np.asarray(value) for name, value in sites.items()}
        ordered = {n: v[:, order[n]] if n in order else v for n, v in values.items()}
        return block, np.asarray(potentials), ordered

    with ThreadPoolExecutor(_THREADS if target.hints.in_threads else 1) as threads:
        for block, potentials, sites in threads.map(evaluate_block, _split(count, size)):
            log_density[block] = -potentials
            for name, values in sites.items():
                if name not in likelihoods:
                    likelihoods[name] = np.empty((count, *values.shape[1:]), np.float32)
                likelihoods[name][block] = values
    require_bounded(target, log_density)
    reshaped = {name: v.reshape(*shape, *v.shape[1:]) for name, v in likelihoods.items()}
    return log_density.reshape(shape), reshaped


def require_bounded(target: Target, log_density: Float64 | float) -> None:
    """Refuse a model whose log density is infinite somewhere, which no density is.

    Raises:
        UsageError: if one of some log densities is.
    """
    if np.isposinf(log_density).any():
        name = getattr(target.model, "__name__", "")
        problem = f"the log density of the model {name} is +inf for some values, where samplers go"
        remedy = "a value that is impossible has the log density -inf"
        raise model_error(f"{problem} astray: {remedy}", "bad-number")


def evaluate_priors(target: Target, values: Sites) -> dict[str, np.ndarray]:
    """Return the log prior density of each latent site, (chains, draws, …), at its own values.

    And the values of factors. Of more than 16 million draws of cells it is one number for each
    draw, the sum over the cells. Empty for a single site whose prior and likelihood are the whole
    density, and where discrete sites are summed out, on which others may depend. In other models
    log p(z) also contains the Jacobians of the transformations, which a prior does not.
    """
    info = inspect_model(target)
    if info.discrete or (info.unconstrained and len(info.latent) == 1 and not info.factors):
        return {}
    names, latent = (*info.latent, *info.factors), {name: values[name] for name in info.latent}
    if sum(np.size(of) for of in latent.values()) <= _BLOCK:
        latent = jax.tree.map(jnp.asarray, latent)
        return dict(jax.device_get(_evaluate_sites(target, latent, names)))
    chains, draws = np.shape(jax.tree.leaves(latent)[0])[:2]
    sums = {name: np.empty((chains, draws)) for name in names}
    cells = sum(math.prod(info.shapes[name]) for name in info.latent)
    for chain, part, of_part in _iter_parts(latent, _PART // cells):
        block = jax.tree.map(lambda x: x[None], of_part)
        for name, of in jax.device_get(_evaluate_sites(target, block, names)).items():
            sums[name][chain, part] = total({name: of}, of.shape[:2])[0]
    return sums


def weigh_prior(target: Target, prior: Sites) -> Float64 | None:
    """Return the log likelihood, and that of factors, of each draw of the prior of a program.

    None if the first of them show that few have weight, if discrete sites are summed out, and of a
    posterior with main sites.

    Args:
        target: the posterior.
        prior: draws of the latent sites, (P, …) each.
    """
    info = inspect_model(target)
    if info.discrete or info.others or target.main or not prior:
        return None
    names, result = (*info.observed, *info.factors), np.zeros(PRIOR_DRAWS)
    for part in _split(PRIOR_DRAWS, min(_DRAWS, _BLOCK // max(info.observations, 1))):
        if not names:
            break
        latent = {name: prior[name][None, part] for name in info.latent}
        sites = jax.device_get(_evaluate_sites(target, latent, names))
        densities = total(sites, (1, part.stop - part.start))[0]
        result[part] = np.where(np.isnan(densities), -np.inf, densities)
        first = result[: part.stop]
        if part.start < _DRAWS <= len(first) and (
            np.isneginf(first).all() or kish(importance_weights(first)) < _FEW_LIKELY
        ):
            return None
    return result


@partial(jax.jit, static_argnums=2)
def _evaluate_sites(target: Target, values: Sites, names: tuple[str, ...]) -> Sites:
    """Return the log densities of sites at values of the latent ones, (chains, draws, …)."""

    def log_density(site: dict[str, Any]) -> jax.Array:
        density: jax.Array = site["fn"].log_prob(site["value"])
        return density if site["scale"] is None else site["scale"] * density

    def evaluate_one(latent: Sites) -> Sites:
        seeded = handlers.seed(target.program, jax.random.key(0))
        sites = handlers.trace(handlers.substitute(seeded, data=latent)).get_trace(*target.data)
        return {name: log_density(sites[name]) for name in names}

    return jax.vmap(jax.vmap(evaluate_one))(values)


def draw_sites(target: Target, names: tuple[str, ...], seed: int) -> Sites:
    """Return 1,000 draws of some sites by running the program, (1000, …) each."""
    draws: Sites = jax.device_get(_draw_sites(target, names, np.int64(seed)))
    return draws


@partial(jax.jit, static_argnums=1, compiler_options=RUN_ONCE)
def _draw_sites(target: Target, names: tuple[str, ...], seed: jax.Array) -> Sites:
    program = Predictive(target.program, num_samples=PRIOR_DRAWS, return_sites=list(names))
    draws: Sites = program(jax.random.key(seed), *target.data)
    return draws


def read_observed(target: Target) -> dict[str, np.ndarray]:
    """Return what a program observes, by site."""
    with NUMPYRO_LOCK, jax.enable_x64(True):
        observed = jax.device_get(observe_sites(target))
    return {name: value for name, (value, _) in observed.items()}


@partial(jax.jit, compiler_options=RUN_ONCE)
def observe_sites(target: Target) -> dict[str, tuple[Any, Any]]:
    """Return the value and the scale of each observed site; what is drawn is not computed."""
    seeded = handlers.seed(target.program, jax.random.key(0))
    sites = handlers.trace(seeded).get_trace(*target.data)
    return {n: (sites[n]["value"], sites[n]["scale"]) for n in inspect_model(target).observed}


def draw_predictive(target: Target, values: Sites, seed: int) -> dict[str, np.ndarray]:
    """Return what each draw, (chains, draws, …) of the latent sites, predicts, by observed site."""
    shape = np.shape(next(iter(values.values())))[:2]
    keys = jax.random.split(jax.random.key(seed), shape)
    return dict(jax.device_get(_draw_predictive(without_start(target), values, keys)))


@jax.jit
def _draw_predictive(target: Target, values: Sites, keys: jax.Array) -> Sites:
    def predict(latent: Sites, key: jax.Array) -> Sites:
        simulated = Simulated(target.program)
        program = handlers.seed(handlers.substitute(simulated, data=latent), key)
        sites = handlers.trace(program).get_trace(*target.data)
        factors = inspect_model(target).factors
        return {name: sites[name]["value"] for name in simulated.sites if name not in factors}

    return jax.vmap(jax.vmap(predict))(values, keys)
