"""The posterior density of a NumPyro program, as functions that JAX compiles once.

Everywhere z is the dict of unconstrained latent values of a target, whose model and likelihood are
static in compiled functions: data of the same shapes need no new compilation.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Var
from jax.flatten_util import ravel_pytree
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.distributions.constraints import real
from numpyro.infer import Predictive, init_to_uniform, log_likelihood
from numpyro.infer.util import constrain_fn, potential_energy

from bpa_ppl.arrays import Float64
from bpa_ppl.errors import UsageError, require
from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.lists import in_order
from bpa_ppl.models.log_linear import log_linear
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.sampling.own_models import CheckedSites, explained, model_error, require_shape

if TYPE_CHECKING:
    from bpa_ppl.models.lists import Lists
    from bpa_ppl.sampling.target import Sites, Target

#: Draws evaluated side by side: the scores of one block of lists still fit into a cache.
_DRAWS = 128
#: Blocks of draws evaluated in parallel, if they may be: XLA computes parts of a block on one core.
_THREADS = 2
#: For code that runs once and briefly: optimisation would take longer than it saves.
_RUN_ONCE = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
#: A site starts at the median of this many draws of its prior.
_START_DRAWS = 15


class ModelInfo(NamedTuple):
    """The structure of a program.

    Attributes:
        latent: the sites that are sampled.
        per_sentence: observed sites in the plate over sentences, with one value per sentence.
        weights_shape: the shape of the site `weights`, or None.
        prior_fields: the arrays of the prior that the density depends on: `mean`, `variance`, …
        uses_likelihood: whether the program observes its likelihood; a custom model may not.
        observes: whether it observes anything.
        domains: the number of domains whose weights the likelihood gets; None if all sentences
            share theirs.
        unconstrained: whether all sites are real-valued and none is deterministic, so that z are
            the values of the sites.
    """

    latent: tuple[str, ...]
    per_sentence: tuple[str, ...]
    weights_shape: tuple[int, ...] | None
    prior_fields: frozenset[str]
    uses_likelihood: bool
    observes: bool
    domains: int | None
    unconstrained: bool


class _RecordingLikelihood:
    """A likelihood that records whether it was observed, and with the weights of how many domains.

    Raises:
        UsageError: if the weights do not have one value for each free feature.
    """

    def __init__(self, likelihood: Likelihood):
        self._likelihood = likelihood
        self.observed, self.domains = False, None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._likelihood, name)

    def sample_parameters(self) -> _RecordingLikelihood:
        self._likelihood = self._likelihood.sample_parameters()
        return self

    def observe(self, lists: Lists, weights: Any) -> None:
        """Observe the lists."""
        shape, features = np.shape(weights), lists.features
        if len(shape) not in (1, 2) or shape[-1] != features:
            raise model_error(
                f"likelihood.observe takes weights of shape ({features},), one value for each of "
                f"the {features} free features, or (domains, {features}), not {shape}",
                "mismatch",
            )
        self.observed, self.domains = True, shape[0] if len(shape) == 2 else None
        self._likelihood.observe(lists, weights)


def model_info(target: Target) -> ModelInfo:
    """Return the structure of a program, computed once for data of the same shapes."""
    leaves, structure = jax.tree.flatten(_without_start(target))
    shapes = tuple(jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype) for leaf in leaves)
    return _model_info(structure, shapes)


@lru_cache(maxsize=256)
def _model_info(structure: Any, shapes: tuple[Any, ...]) -> ModelInfo:
    sites: dict[str, Any] = {}
    target: Target = jax.tree.unflatten(structure, shapes)
    likelihood = _RecordingLikelihood(target.likelihood)

    def run(target: Target) -> Sites:
        sentences = len(target.lists.oracle)
        model = CheckedSites(target.model, target.lists.features, sentences)
        seeded = handlers.seed(model, jax.random.key(0))
        sites.update(handlers.trace(seeded).get_trace(*target.data, likelihood))
        return _unconstrained(sites)

    def is_real(support: Any) -> bool:
        while hasattr(support, "base_constraint"):
            support = support.base_constraint
        return support is real

    def is_per_sentence(site: dict[str, Any]) -> bool:
        plates = {frame.name for frame in site["cond_indep_stack"]}
        return "sentence" in plates and tuple(site["fn"].batch_shape) == target.lists.oracle.shape

    with explained(target.model):
        z = jax.eval_shape(run, target)
    sampled = {name: site for name, site in sites.items() if site["type"] == "sample"}
    observed = tuple(name for name, site in sampled.items() if site["is_observed"])
    latent = tuple(name for name in sampled if name not in observed)
    deterministic = any(site["type"] == "deterministic" for site in sites.values())
    return ModelInfo(
        latent=latent,
        per_sentence=tuple(name for name in observed if is_per_sentence(sites[name])),
        weights_shape=tuple(np.shape(sites[WEIGHTS]["value"])) if WEIGHTS in sites else None,
        prior_fields=_prior_fields(target, z),
        uses_likelihood=likelihood.observed,
        observes=bool(observed),
        domains=likelihood.domains,
        unconstrained=not deterministic and all(is_real(sites[n]["fn"].support) for n in latent),
    )


def _unconstrained(sites: Mapping[str, Any]) -> Sites:
    """Return the unconstrained values of the latent sites of a trace.

    Raises:
        UsageError: if one is discrete.
    """
    z: Sites = {}
    for name, site in sites.items():
        if site["type"] != "sample" or site["is_observed"]:
            continue
        if site["fn"].support.is_discrete:
            raise model_error(
                f"the site {name} of the model is discrete, and samplers need a density of real "
                "values: observe it (obs=), or sum over its values, for example by "
                "numpyro.distributions.MixtureGeneral",
                "not-supported",
            )
        z[name] = biject_to(site["fn"].support).inv(site["value"])
    return z


def _prior_fields(target: Target, z: Sites) -> frozenset[str]:
    """Return which arrays of the prior the density of a program depends on.

    Found by following the inputs of the compiled density back from its output.
    """
    jaxpr = _potential.trace(target, z).jaxpr.jaxpr
    needed = {variable for variable in jaxpr.outvars if isinstance(variable, Var)}
    for equation in reversed(jaxpr.eqns):
        if needed.intersection(equation.outvars):
            needed.update(v for v in equation.invars if isinstance(v, Var))
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(target)]
    inputs = zip(paths, jaxpr.invars, strict=False)  # the inputs of z follow
    used = [path for path, variable in inputs if variable in needed]
    return frozenset(path[1].name for path in used if path[0].name == "prior")


def require_weights(target: Target) -> None:
    """Refuse a program without weights of each free feature, and of each domain of the lists.

    Raises:
        UsageError: if the site `weights` is missing or has another shape, or if the weights of a
            domain are missing.
    """
    info = model_info(target)
    require_shape(info.weights_shape, target.lists.features)
    count = int(np.max(target.lists.domain, initial=0)) + 1
    if info.domains is not None and count > info.domains:
        raise model_error(
            f"likelihood.observe got the weights of {info.domains} domains, but the lists are of "
            f"{count}: give it one row for each domain",
            "mismatch",
        )


def starting_point(target: Target) -> Sites:
    """Return z at the mean of the prior, (site shape) each; other sites at their prior's median.

    A random start would be far from probable values of scales, and in a hierarchy even farther
    for everything that is multiplied by a scale. Weights whose support does not contain the mean
    of the prior start at their prior's median, too.

    Raises:
        UsageError: if the density is not finite there.
    """
    info = model_info(target)
    simple = info.unconstrained and info.latent == (WEIGHTS,)
    if simple and target.model is log_linear:
        return {WEIGHTS: target.prior.mean}
    z: Sites = {WEIGHTS: target.prior.mean} if simple else _start(target)
    if not np.isfinite(potential(target, z)):
        raise model_error(
            "the density of the model is 0 or not a number where samplers start: with the weights "
            "at the canonical ones if the model allows these, and other sites at the medians of "
            "their priors; give it a density that is positive there, or other canonical weights",
            "bad-number",
        )
    return z


@jax.jit
def _start(target: Target) -> Sites:
    """Return z with each site at its start."""
    seeded = handlers.seed(target.program, jax.random.key(0))
    start = partial(_initial_value, target.prior.mean)
    values = handlers.substitute(seeded, substitute_fn=start)
    return _unconstrained(handlers.trace(values).get_trace(*target.data))


def _initial_value(mean: Any, site: Any) -> Any:
    """Return the start of a site: the mean of the weights, else the median of draws of its prior.

    `partial(_initial_value, mean)` is an initialisation strategy of NumPyro.
    """
    if site["type"] != "sample" or site["is_observed"] or site["fn"].support.is_discrete:
        return init_to_uniform(site)
    prior, options = site["fn"], site["kwargs"]
    transform = biject_to(prior.support)

    def draw(key: jax.Array) -> Any:
        return transform.inv(prior(rng_key=key, sample_shape=options["sample_shape"]))

    draws = jax.vmap(draw)(jax.random.split(options["rng_key"], _START_DRAWS))
    median = transform(jnp.median(draws, axis=0))
    if site["name"] != WEIGHTS:
        return median
    # A mean outside of the support, or at its edge, is not the value of any finite z.
    z = transform.inv(mean)
    same = jnp.isfinite(z).all() & jnp.allclose(transform(z), mean, rtol=1e-6, atol=1e-9)
    return jnp.where(same, mean, median)


def potential(target: Target, z: Sites) -> jax.Array:
    """Return the potential energy, −log p(z, data).

    Compiled functions call a compiled function, so that NumPyro runs the program only once.
    """
    energy: jax.Array = _potential(_without_start(target), z)
    return energy


@jax.jit
def _potential(target: Target, z: Sites) -> jax.Array:
    energy: jax.Array = potential_energy(target.program, target.data, {}, z)
    return energy


def _without_start(target: Target) -> Target:
    """Return the target for what does not depend on its starting point."""
    return replace(target, start={})


@jax.jit
def gradients(target: Target, z: Sites) -> jax.Array:
    """Return the gradients of the potential at n values of z, (n, d)."""

    def gradient(sites: Sites) -> jax.Array:
        return ravel_pytree(jax.grad(lambda values: potential(target, values))(sites))[0]

    return jax.vmap(gradient)(z)


def constrained(target: Target, z: Sites) -> Sites:
    """Return the values of the sites, deterministic ones included, for one z."""
    return z if model_info(target).unconstrained else _constrained(target, z)


@jax.jit
def _constrained(target: Target, z: Sites) -> Sites:
    values: Sites = constrain_fn(target.program, target.data, {}, z, return_deterministic=True)
    return values


def constrained_draws(target: Target, z: Sites) -> Sites:
    """Return the values of the sites for z with leading dimensions (chains, draws)."""
    info = model_info(target)
    return z if not z or info.unconstrained else _constrained_draws(target, z)


@jax.jit
def _constrained_draws(target: Target, z: Sites) -> Sites:
    values: Sites = jax.vmap(jax.vmap(partial(constrained, target)))(z)
    return values


def require_sites(z: Any, like: Sites) -> None:
    """Refuse draws that are not of the sites of a program.

    Args:
        z: for each site its unconstrained values, (chains, draws, …).
        like: z of one draw.

    Raises:
        UsageError: if a site is missing, or has another shape.

    >>> require_sites({"weights": np.zeros((4, 100, 2))}, {"weights": np.zeros(3)})
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: z must have the sites weights (chains, draws, 3), ...
    """
    expected = {name: ("chains", "draws", *np.shape(value)) for name, value in like.items()}
    shapes = {name: np.shape(value) for name, value in z.items()} if isinstance(z, dict) else {}
    leading = next(iter(shapes.values()), ())[:2]
    if len(leading) < 2 or shapes != {n: (*leading, *s[2:]) for n, s in expected.items()}:
        sites = ", ".join(f"{n} ({', '.join(map(str, shape))})" for n, shape in expected.items())
        raise UsageError(
            f"z must have the sites {sites}, not {shapes or type(z).__name__}",
            parameter="z",
            code="mismatch",
        )


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
        sites = log_likelihood(target.program, constrained(target, z), *target.data, batch_ndims=0)
        narrow = {name: value.astype(jnp.float32) for name, value in sites.items()}
        return potential(target, z), narrow

    return jax.vmap(evaluate_one)(block)


def evaluate(target: Target, z: Sites) -> tuple[Float64, dict[str, np.ndarray]]:
    """Return the log densities and the log-likelihoods of many draws, computed side by side.

    Args:
        target: the posterior.
        z: with leading dimensions (chains, draws).

    Returns:
        float64 (chains, draws) log p(z, data), and for each observed site float32
        (chains, draws, …): one value a sentence in the order of the n-best table for sites in the
        plate over sentences, else in the shape of the site.

    Raises:
        UsageError: if an argument has another type.

    >>> from bpa_ppl import from_lists, log_density
    >>> lists = from_lists([["a", "b"]], [[[0.0], [np.log(3)]]], ["LM0"], references=["b"])
    >>> target = log_density(lists, {"LM0": 1.0}, likelihood="oracle")
    >>> with jax.enable_x64(True):
    ...     _, values = evaluate(target, {"weights": np.ones((1, 2, 1))})
    >>> np.exp(values["oracle"]).round(2).tolist()
    [[[0.75], [0.75]]]
    """
    require(z, dict, "z is given by site, {name: (chains, draws, …)}", "z")
    shape = np.shape(jax.tree.leaves(z)[0])[:2]
    flat = jax.tree.map(lambda x: np.asarray(x).reshape(-1, *np.shape(x)[2:]), z)
    per_sentence, order = model_info(target).per_sentence, in_order(target.lists)
    count, x64 = shape[0] * shape[1], jax.dtypes.canonicalize_dtype(float) == np.float64
    size = min(_DRAWS, count)
    log_density, likelihoods = np.empty(count), dict[str, np.ndarray]()

    def evaluate_block(block: slice) -> tuple[slice, np.ndarray, dict[str, np.ndarray]]:
        with jax.enable_x64(x64):  # each thread has its own setting
            part = jax.tree.map(lambda x: x[block], flat)
            potentials, sites = _evaluate_block(target, part)
        values = {name: np.asarray(value) for name, value in sites.items()}
        ordered = {n: v[:, order] if n in per_sentence else v for n, v in values.items()}
        return block, np.asarray(potentials), ordered

    # The last block is moved back so that all blocks have one shape and share one compilation.
    starts = (*range(0, count - size, size), count - size)
    with ThreadPoolExecutor(_THREADS if may_overlap(target) else 1) as threads:
        blocks = threads.map(evaluate_block, [slice(start, start + size) for start in starts])
        for block, potentials, sites in blocks:
            log_density[block] = -potentials
            for name, values in sites.items():
                if name not in likelihoods:
                    likelihoods[name] = np.empty((count, *values.shape[1:]), np.float32)
                likelihoods[name][block] = values
    reshaped = {name: v.reshape(*shape, *v.shape[1:]) for name, v in likelihoods.items()}
    return log_density.reshape(shape), reshaped


def may_overlap(target: Target) -> bool:
    """Return whether a program may run twice at the same time: whether it is known to be safe.

    JAX up to 0.10 splits each batch of matrices that LAPACK factorises or solves over the threads
    that run the programs, and waits for them. Two such programs can wait forever, on one or two
    cores. Models and distributions of users may contain such operations.
    """
    return target.model is log_linear and target.prior.other is None


def log_priors(target: Target, values: Sites) -> dict[str, np.ndarray]:
    """Return the log prior density of each latent site, (chains, draws, …), at its own values.

    Empty for a single site whose prior and likelihood are the whole density. In other models
    log p(z) also contains the Jacobians of the transformations, which a prior does not.

    Args:
        target: the posterior.
        values: of the sites, with leading dimensions (chains, draws).
    """
    info = model_info(target)
    if info.unconstrained and len(info.latent) == 1:
        return {}
    latent = {name: jnp.asarray(values[name]) for name in info.latent}
    return dict(jax.device_get(_log_priors(target, latent)))


@jax.jit
def _log_priors(target: Target, values: Sites) -> Sites:
    def log_density(site: dict[str, Any]) -> jax.Array:
        density: jax.Array = site["fn"].log_prob(site["value"])
        return density if site["scale"] is None else site["scale"] * density

    def evaluate_one(latent: Sites) -> Sites:
        seeded = handlers.seed(target.program, jax.random.key(0))
        sites = handlers.trace(handlers.substitute(seeded, data=latent)).get_trace(*target.data)
        return {name: log_density(sites[name]) for name in latent}

    return jax.vmap(jax.vmap(evaluate_one))(values)


def prior_draws(target: Target, count: int, seed: int) -> Sites:
    """Return draws of the weights and the other latent sites from the prior, (count, …)."""
    only_weights = model_info(target).latent == (WEIGHTS,)
    if target.model is log_linear and only_weights and target.prior.other is None:
        return {WEIGHTS: target.prior.sample(np.random.default_rng([seed, 5]), count)}
    draws: Sites = _prior_draws(target, count, jax.random.key(seed))
    return draws


@partial(jax.jit, static_argnums=1, compiler_options=_RUN_ONCE)
def _prior_draws(target: Target, count: int, key: jax.Array) -> Sites:
    sites = list(dict.fromkeys([WEIGHTS, *model_info(target).latent]))
    draws: Sites = Predictive(target.program, num_samples=count, return_sites=sites)(
        key, *target.data
    )
    return draws
