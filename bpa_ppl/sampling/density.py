"""The posterior density of a NumPyro program, as functions that JAX compiles once.

Everywhere z is the dict of unconstrained latent values of a program, and the program is a static
argument of what is compiled: data of the same shapes need no new compilation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Jaxpr, Var
from jax.flatten_util import ravel_pytree
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.distributions.constraints import real
from numpyro.infer import Predictive, init_to_uniform, log_likelihood
from numpyro.infer.util import constrain_fn, initialize_model, potential_energy

from bpa_ppl.errors import UsageError
from bpa_ppl.models import Likelihood, Lists, in_order, log_linear
from bpa_ppl.nbest import Float64, Int64
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.sampling.base import Data, Program, Sites

#: Draws evaluated side by side: the scores of one block of lists still fit into a cache.
_DRAWS = 128
#: Blocks of draws in work at once: XLA computes parts of a block on one core.
_AT_ONCE = 2
#: For what runs once and briefly: to optimise it would take longer than it saves.
_RUN_ONCE = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
#: Draws of the prior of a site, whose median is where it starts.
_STARTS = 15


class Anatomy(NamedTuple):
    """What a program is made of.

    Attributes:
        latent: the sites that are sampled.
        observed: the sites that are observed, factors among them.
        per_sentence: those in the plate over sentences, one value a sentence.
        weights: the shape of the value called `weights`, or None.
        prior: which arrays of the prior its density depends on: `mean`, `variance`, …
        likelihood: whether it observes its likelihood; a model of one's own may have another.
        plain: whether z is all that a draw has to tell: sites of any real number, nothing else.
    """

    latent: tuple[str, ...]
    observed: tuple[str, ...]
    per_sentence: tuple[str, ...]
    weights: tuple[int, ...] | None
    prior: frozenset[str]
    likelihood: bool
    plain: bool


def anatomy(program: Program, data: Data) -> Anatomy:
    """Return what a program is made of; found once for data of the same shapes."""
    leaves, structure = jax.tree.flatten(data)
    shapes = tuple(jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype) for leaf in leaves)
    return _anatomy(program, structure, shapes)


@lru_cache(maxsize=256)
def _anatomy(program: Program, structure: Any, shapes: tuple[Any, ...]) -> Anatomy:
    seen: dict[str, Any] = {}
    watched = _Watched(program.likelihood)

    def run(data: Data) -> jax.Array:
        seeded = handlers.seed(program.model, jax.random.key(0))
        seen.update(handlers.trace(seeded).get_trace(*data, watched))
        return jnp.zeros(())

    data = jax.tree.unflatten(structure, shapes)
    jax.eval_shape(run, data)
    sampled = {name: site for name, site in seen.items() if site["type"] == "sample"}
    observed = tuple(name for name, site in sampled.items() if site["is_observed"])
    values = seen.get(WEIGHTS)
    latent = tuple(name for name in sampled if name not in observed)
    derived = any(site["type"] == "deterministic" for site in seen.values())
    return Anatomy(
        latent=latent,
        observed=observed,
        per_sentence=tuple(name for name in observed if _is_per_sentence(seen[name], data)),
        weights=None if values is None else tuple(np.shape(values["value"])),
        prior=_used_of_prior(program, data),
        likelihood=watched.observed,
        plain=not derived and all(_is_real(sampled[name]["fn"].support) for name in latent),
    )


def _is_real(support: Any) -> bool:
    """Tell whether any real numbers are in the support of a distribution."""
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    return support is real


class _Watched:
    """A likelihood that knows whether it was observed."""

    def __init__(self, likelihood: Likelihood):
        self._likelihood, self.observed = likelihood, False

    def sample_parameters(self) -> _Watched:
        self._likelihood = self._likelihood.sample_parameters()
        return self

    def observe(self, lists: Lists, weights: Any) -> None:
        self.observed = True
        self._likelihood.observe(lists, weights)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._likelihood, name)


def _is_per_sentence(site: dict[str, Any], data: Data) -> bool:
    frames = {frame.name for frame in site["cond_indep_stack"]}
    return "sentence" in frames and tuple(site["fn"].batch_shape) == data.lists.oracle.shape


def _used_of_prior(program: Program, data: Data) -> frozenset[str]:
    """Return which arrays of the prior the density of a program depends on."""
    z = jax.eval_shape(partial(_start, program), data)
    jaxpr = potential.trace(program, data, z).jaxpr.jaxpr
    needed = _needed(jaxpr)
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(data)]
    inputs = zip(paths, jaxpr.invars, strict=False)  # those of z follow
    found = [path for path, variable in inputs if variable in needed]
    return frozenset(path[1].name for path in found if path[0].name == "prior")


def _needed(jaxpr: Jaxpr) -> set[Var]:
    """Return the variables that the outputs are computed from."""
    needed = {variable for variable in jaxpr.outvars if isinstance(variable, Var)}
    for equation in reversed(jaxpr.eqns):
        if needed.intersection(equation.outvars):
            needed.update(v for v in equation.invars if isinstance(v, Var))
    return needed


def require_weights(program: Program, data: Data) -> None:
    """Raise a UsageError unless the program has a site `weights` of one value a free feature."""
    features = data.lists.features
    try:
        found = anatomy(program, data).weights
    except TypeError as error:
        if "positional argument" not in str(error):
            raise
        raise UsageError(
            "a model takes three arguments, (lists, prior, likelihood), as "
            f"bpa_ppl.models.log_linear does: {error}"
        ) from error
    if found != (features,):
        raise UsageError(
            f"the model needs a site called `weights` with one value for each of the {features} "
            "free features"
        )


def starting_point(program: Program, data: Data) -> Sites:
    """Return z at the mean of the prior, (site shape) each; other sites at their prior's median.

    A random start would be far from where scales and the like are probable, and what is
    multiplied by a scale, in a hierarchy, far beyond that.
    """
    z = _start(program, data)
    result: Sites = (
        z if np.isfinite(potential(program, data, z)) else _searched_start(program, data)
    )
    return result


@partial(jax.jit, static_argnums=0)
def _start(program: Program, data: Data) -> Sites:
    """Return where NumPyro's search for a start begins."""
    first = handlers.substitute(
        handlers.seed(program, jax.random.key(0)), substitute_fn=_strategy(data)
    )
    sites = handlers.trace(first).get_trace(*data)
    return {
        name: biject_to(site["fn"].support).inv(site["value"])
        for name, site in sites.items()
        if site["type"] == "sample" and not site["is_observed"]
    }


@partial(jax.jit, static_argnums=0)
def _searched_start(program: Program, data: Data) -> Sites:
    """Return where the potential is finite, which takes long to compile."""
    result: Sites = initialize_model(
        jax.random.key(0),
        program,
        init_strategy=_strategy(data),
        dynamic_args=True,
        model_args=data,
    ).param_info.z
    return result


def _strategy(data: Data) -> Callable[..., Any]:
    return partial(_initial, values={WEIGHTS: data.prior.mean})


def _initial(site: Any = None, values: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """Start as NumPyro's strategies do: at a value that is known, else at the prior's median."""
    if site is None:
        return partial(_initial, values=values)
    if site["type"] != "sample" or site["is_observed"] or site["fn"].support.is_discrete:
        return init_to_uniform(site)
    if site["name"] in values:
        return values[site["name"]]
    return _median(site)


def _median(site: dict[str, Any]) -> Any:
    """Return the median of some unconstrained draws of a site."""
    prior, given = site["fn"], site["kwargs"]
    transform = biject_to(prior.support)

    def draw(key: jax.Array) -> jax.Array:
        result: jax.Array = transform.inv(prior(rng_key=key, sample_shape=given["sample_shape"]))
        return result

    try:
        draws = jax.vmap(draw)(jax.random.split(given["rng_key"], _STARTS))
    except NotImplementedError:  # an improper prior has no draws
        return init_to_uniform(site)
    return transform(jnp.median(draws, axis=0))


@partial(jax.jit, static_argnums=0)
def potential(program: Program, data: Data, z: Sites) -> jax.Array:
    """Return the potential energy, −log p(z, data).

    What is compiled calls it as it is: so NumPyro runs the program once for all of them.
    """
    result: jax.Array = potential_energy(program, data, {}, z)
    return result


@partial(jax.jit, static_argnums=0)
def gradients(program: Program, data: Data, some: Sites) -> jax.Array:
    """Return the gradients of the potential at many z, side by side, (n, d)."""

    def one(z: Sites) -> jax.Array:
        return ravel_pytree(jax.grad(lambda at: potential(program, data, at))(z))[0]

    return jax.vmap(one)(some)


def constrained(program: Program, data: Data, z: Sites) -> Sites:
    """Return the values of the sites, deterministic ones included, for one z."""
    return z if anatomy(program, data).plain else _constrained(program, data, z)


def constrained_draws(program: Program, data: Data, z: Sites) -> Sites:
    """Return the values of the sites for z with leading dimensions (chains, draws)."""
    return z if anatomy(program, data).plain else _constrained_draws(program, data, z)


@partial(jax.jit, static_argnums=0)
def _constrained(program: Program, data: Data, z: Sites) -> Sites:
    result: Sites = constrain_fn(program, data, {}, z, return_deterministic=True)
    return result


@partial(jax.jit, static_argnums=0)
def _constrained_draws(program: Program, data: Data, z: Sites) -> Sites:
    result: Sites = jax.vmap(jax.vmap(partial(_constrained, program, data)))(z)
    return result


def shaped(flat: Any, like: Sites) -> Sites:
    """Return flat vectors, (…, d), as the sites whose values they are, (…, site shape) each.

    Args:
        flat: NumPy's or JAX's, in the order of `jax.flatten_util.ravel_pytree`.
        like: z of one draw.

    >>> sites = shaped(np.arange(6.0).reshape(2, 3), {"b": np.zeros(2), "a": np.zeros(())})
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


@partial(jax.jit, static_argnums=0)
def _evaluated(program: Program, data: Data, some: Sites) -> tuple[jax.Array, dict[str, jax.Array]]:
    def one(z: Sites) -> tuple[jax.Array, dict[str, jax.Array]]:
        # The likelihood stands in the potential too: the compiler computes it once.
        sites = log_likelihood(program, constrained(program, data, z), *data, batch_ndims=0)
        narrow = {name: value.astype(jnp.float32) for name, value in sites.items()}
        return potential(program, data, z), narrow

    return jax.vmap(one)(some)


def evaluate(program: Program, data: Data, z: Sites) -> tuple[Float64, dict[str, np.ndarray]]:
    """Return the log densities and the log-likelihoods of many draws, computed side by side.

    Args:
        program: the NumPyro program.
        data: what it conditions on.
        z: with leading dimensions (chains, draws).

    Returns:
        float64 (chains, draws) log p(z, data), and for each observed site float32
        (chains, draws, …): one value a sentence in the order of the n-best table for sites in the
        plate over sentences, else in the shape of the site.

    >>> from bpa_ppl import NBest
    >>> from bpa_ppl.models import Prior
    >>> from bpa_ppl.sampling import target_of
    >>> from bpa_ppl.weights import match
    >>> nbest = NBest.from_lists([["a", "b"]], [[[0.0], [np.log(3)]]], ["LM0"])
    >>> with jax.enable_x64(True):
    ...     prior = Prior.isotropic({"LM0": 1.0})
    ...     target = target_of(nbest, match({"LM0": 1.0}, nbest), prior, oracle=[1])
    ...     _, found = evaluate(target.program, target.data, {"weights": np.ones((1, 2, 1))})
    >>> np.exp(found["oracle"]).round(2).tolist()
    [[[0.75], [0.75]]]
    """
    shape = np.shape(jax.tree.leaves(z)[0])[:2]
    flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *np.shape(x)[2:]), z)
    found, order = anatomy(program, data), in_order(data.lists)
    count, wide = shape[0] * shape[1], jax.dtypes.canonicalize_dtype(float) == np.float64
    block = min(_DRAWS, count)
    log_density, each = np.empty(count), dict[str, np.ndarray]()

    def evaluated(part: slice) -> tuple[slice, np.ndarray, dict[str, np.ndarray]]:
        with jax.enable_x64(wide):  # a setting of each thread
            some = jax.tree.map(lambda x: x[part], flat)
            potentials, sites = _evaluated(program, data, some)
        own = {n: _ordered(v, order if n in found.per_sentence else None) for n, v in sites.items()}
        return part, np.asarray(potentials), own

    # The last block is moved back so that all have one shape, and one compilation serves.
    parts = [slice(at, at + block) for at in (*range(0, count - block, block), count - block)]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for part, potentials, sites in threads.map(evaluated, parts):
            log_density[part] = -potentials
            for name, own in sites.items():
                each.setdefault(name, np.empty((count, *own.shape[1:]), np.float32))[part] = own
    return log_density.reshape(shape), {n: v.reshape(*shape, *v.shape[1:]) for n, v in each.items()}


def _ordered(values: jax.Array, order: Int64 | None) -> np.ndarray:
    return np.asarray(values) if order is None else np.asarray(values)[:, order]


def log_priors(program: Program, data: Data, values: Sites) -> dict[str, np.ndarray]:
    """Return the log prior density of each latent site, (chains, draws, …), at its own values.

    None of one site whose prior is all that the density has beside the likelihood. Elsewhere
    log p(z) has the Jacobians of the transformations too, which are no part of a prior.

    Args:
        program: the NumPyro program.
        data: what it conditions on.
        values: of the sites, with leading dimensions (chains, draws).
    """
    found = anatomy(program, data)
    if found.plain and len(found.latent) == 1:
        return {}
    latent = {name: jnp.asarray(values[name]) for name in found.latent}
    return dict(jax.device_get(_log_priors(program, data, latent)))


@partial(jax.jit, static_argnums=0)
def _log_priors(program: Program, data: Data, values: Sites) -> Sites:
    def one(latent: Sites) -> Sites:
        known = handlers.substitute(handlers.seed(program, jax.random.key(0)), data=latent)
        sites = handlers.trace(known).get_trace(*data)
        return {name: _log_density(sites[name]) for name in latent}

    return jax.vmap(jax.vmap(one))(values)


def _log_density(site: dict[str, Any]) -> jax.Array:
    """Return the log density of a site at its value, by which its `scale` handler counts it."""
    density: jax.Array = site["fn"].log_prob(site["value"])
    return density if site["scale"] is None else site["scale"] * density


def prior_draws(program: Program, data: Data, count: int, seed: int) -> Sites:
    """Return draws of the weights, and of the other latent sites, from the prior, (count, …)."""
    of_weights = anatomy(program, data).latent == (WEIGHTS,)
    if program.model is log_linear and of_weights and data.prior.other is None:
        return {WEIGHTS: data.prior.drawn(np.random.default_rng([seed, 5]), count)}
    result: Sites = _prior_draws(program, data, count, jax.random.key(seed))
    return result


@partial(jax.jit, static_argnums=(0, 2), compiler_options=_RUN_ONCE)
def _prior_draws(program: Program, data: Data, count: int, key: jax.Array) -> Sites:
    wanted = list(dict.fromkeys([WEIGHTS, *anatomy(program, data).latent]))
    result: Sites = Predictive(program, num_samples=count, return_sites=wanted)(key, *data)
    return result
