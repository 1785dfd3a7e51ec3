"""What a model of a user may not contain: found while NumPyro runs it, and said in one sentence."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from inspect import unwrap
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions import (
    Delta,
    Distribution,
    ExpandedDistribution,
    ImproperUniform,
    Unit,
    biject_to,
)
from numpyro.ops.provenance import eval_provenance
from numpyro.primitives import Messenger

from bpa_ppl.errors import BpaError, UsageError

#: The dimensions of all draws in ArviZ data.
DIMENSIONS = ("chain", "draw")
#: What begins the names of modules whose distributions are right.
_PACKAGES = ("numpyro.", "bpa_ppl.")


def model_error(problem: str, code: str) -> UsageError:
    """Return the error of a model that cannot be sampled."""
    return UsageError(problem, parameter="model", code=code)


class CheckedSites(Messenger):  # type: ignore[misc] # NumPyro has no types
    """Refuses sites and plates that samplers cannot use, as soon as a model reaches them.

    Args:
        model: a NumPyro program.

    >>> import numpyro
    >>> CheckedSites(lambda: numpyro.plate("rows", 5, subsample_size=3))()
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: the plate rows of the model has a subsample_size: leave it out, ...
    """

    def __init__(self, model: Callable[..., Any]):
        self._names = set[str]()
        super().__init__(model)

    def __enter__(self) -> CheckedSites:
        self._names.clear()
        super().__enter__()
        return self

    def process_message(self, site: dict[str, Any]) -> None:
        """Refuse a site before NumPyro draws its value."""
        kind, name = site["type"], site.get("name")
        if kind == "mutable":
            problem = "no posterior: draw it with numpyro.sample, or make it a constant"
            raise model_error(
                f"the site {name} of the model is a numpyro.mutable, which has {problem}",
                "not-supported",
            )
        if kind == "plate":
            self.check_plate(name, *site["args"])
        if kind in ("sample", "deterministic"):
            if name in self._names:
                problem = f"the model has two sites {name}: give each site its own name"
                raise model_error(problem, "duplicate")
            self._names.add(str(name))
        if kind == "sample" and not site["is_observed"]:
            self.check_prior(name, site)

    def postprocess_message(self, site: dict[str, Any]) -> None:
        """Refuse log densities of other shapes than they need."""
        if site["type"] == "sample":
            _check_density_shapes(site)

    def check_prior(self, name: Any, site: Mapping[str, Any]) -> None:
        """Refuse a latent site whose distribution cannot be sampled."""
        problem = f"the site {name} of the model"
        if isinstance(_find_base(site["fn"]), Delta):
            problem += " is constant, so that it has no density: make it a numpyro.deterministic"
            raise model_error(problem, "not-supported")
        try:
            if not site["fn"].support.is_discrete:
                biject_to(site["fn"].support)
        except NotImplementedError as error:
            problem += (
                f" has the support {site['fn'].support}, to which NumPyro maps no real values:"
            )
            remedy = "write it by numpyro.infer.reparam, such as ProjectedNormalReparam"
            raise model_error(f"{problem} {remedy}", "not-supported") from error

    def check_plate(self, name: Any, size: int, subsample_size: int | None) -> None:
        """Refuse a plate of a part of the data."""
        if subsample_size not in (None, size):
            problem = f"the plate {name} of the model has a subsample_size: leave it out, because"
            raise model_error(f"{problem} samplers need the density of all data", "not-supported")


class WithoutObjects(Messenger):  # type: ignore[misc] # NumPyro has no types
    """Leaves out deterministic sites that are not arrays of numbers: draws cannot have them.

    Args:
        program: a NumPyro program.
        left_out: receives what the sites are, by site.

    >>> import numpyro
    >>> left_out = {}
    >>> program = WithoutObjects(lambda: numpyro.deterministic("unit", "kg"), left_out)
    >>> dict(handlers.trace(program).get_trace()), left_out
    ({}, {'unit': 'str'})
    """

    def __init__(self, program: Callable[..., Any], left_out: dict[str, str]):
        self._left_out = left_out
        super().__init__(program)

    def process_message(self, site: dict[str, Any]) -> None:
        """Keep a site from the handlers outside of this one, also one of a `scan`."""
        if site["type"] == "control_flow" and "history" in site["kwargs"]:  # cond has none
            step, *others = site["args"]
            site["args"] = (WithoutObjects(step, self._left_out), *others)
        if site["type"] == "deterministic" and not _is_numeric(value := site["value"]):
            site["stop"] = True
            self._left_out[site["name"]] = f"{getattr(value, 'dtype', type(value).__name__)}"
            if value is None:  # NumPyro would compute it
                site |= {"fn": lambda: None, "args": (), "kwargs": {}}


def _is_numeric(value: Any) -> bool:
    """Return whether a value is a number or an array of real numbers."""
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        kinds = (np.floating, np.integer, np.bool_)
        return any(jnp.issubdtype(value.dtype, kind) for kind in kinds)
    return isinstance(value, bool | int | float)


class WithCarryTypes(Messenger):  # type: ignore[misc] # NumPyro has no types
    """Casts the initial carry of NumPyro's `scan` to the types that its steps return.

    With 64 bits, steps return other types than `jnp.zeros(…, dtype=jnp.int32)` has.
    """

    def process_message(self, site: dict[str, Any]) -> None:
        if site["type"] != "control_flow" or "history" not in site["kwargs"]:  # cond has none
            return
        step, start, values, *others = site["args"]

        def run(start: Any, values: Any) -> Any:
            first = jax.tree.map(lambda of: of[0], values)
            return handlers.block(handlers.seed(step, jax.random.key(0)))(start, first)[0]

        carry = jax.eval_shape(run, start, values)
        with suppress(ValueError):  # of another structure, which NumPyro refuses
            start = jax.tree.map(lambda of, like: jnp.asarray(of, like.dtype), start, carry)
        site["args"] = (step, start, values, *others)


class Simulated(Messenger):  # type: ignore[misc] # NumPyro has no types
    """Draws what a program observes, in the shape of its data.

    NumPyro's `uncondition` draws one value where data of several are compared with one distribution
    without a plate.

    Args:
        program: a NumPyro program.

    Attributes:
        sites: the names of the observed sites, once the program has run.

    >>> import numpyro
    >>> from numpyro.distributions import Normal
    >>> program = Simulated(lambda: numpyro.sample("y", Normal(0.0, 1.0), obs=np.zeros(5)))
    >>> handlers.trace(handlers.seed(program, 0)).get_trace()["y"]["value"].shape, program.sites
    ((5,), ['y'])
    """

    def __init__(self, program: Callable[..., Any]):
        self.sites: list[str] = []
        super().__init__(program)

    def process_message(self, site: dict[str, Any]) -> None:
        """Let a handler outside this one draw an observed site."""
        if site["type"] != "sample" or not site["is_observed"]:
            return
        shape, distribution = np.shape(site["value"]), site["fn"]
        batch = shape[: len(shape) - distribution.event_dim]
        if batch != distribution.batch_shape:
            site["fn"] = distribution.expand(batch)
        site["is_observed"], site["value"] = False, None
        if site["name"] not in self.sites:
            self.sites.append(site["name"])


def _check_density_shapes(site: Mapping[str, Any]) -> None:
    """Refuse a distribution of one's own whose log density has another shape than its batch.

    NumPyro repeats a single log density for each cell of a plate, and adds what should have been
    one number: either counts an observation several times.

    Raises:
        UsageError: if there is one in the distribution of a site.
    """
    outer = site["fn"]
    leading = np.shape(site["value"])[: max(np.ndim(site["value"]) - len(outer.shape()), 0)]
    for inner, more in _find_own(outer, leading):
        value = jax.ShapeDtypeStruct((*more, *inner.shape()), jnp.result_type(site["value"]))
        expected = (*more, *inner.batch_shape)
        shape = jax.eval_shape(inner.log_prob, value).shape
        # A single distribution may add the log densities of several observations.
        if shape != expected and not (shape == inner.batch_shape and more == leading):
            name = type(inner).__name__
            problem = f"the log_prob of {name}, the distribution of the site {site['name']} of the"
            problem += f" model, has the shape {shape} in place of {expected}"
            remedy = "return one log density for each value of the batch: add those of the "
            remedy += "dimensions of an event, and no others"
            raise model_error(f"{problem}: {remedy}", "mismatch")


def _find_own(
    distribution: Any, leading: tuple[int, ...]
) -> Iterator[tuple[Distribution, tuple[int, ...]]]:
    """Yield the distributions of one's own in a distribution.

    With each the dimensions of values that are in front of its own batch.
    """
    if not type(distribution).__module__.startswith(_PACKAGES):
        yield distribution, leading
        return
    for value in vars(distribution).values():
        for inner in value if isinstance(value, list | tuple) else (value,):
            if isinstance(inner, Distribution):
                more = leading
                if isinstance(distribution, ExpandedDistribution):
                    new = len(distribution.batch_shape) - len(inner.batch_shape)
                    more += distribution.batch_shape[:new]
                yield from _find_own(inner, more)


def is_latent(site: Mapping[str, Any]) -> bool:
    """Return whether a site is drawn, and neither observed nor computed."""
    return bool(site["type"] == "sample" and not site["is_observed"])


def is_improper(site: Mapping[str, Any]) -> bool:
    """Return whether the distribution of a site has no draws, as that of `ImproperUniform`."""
    base = _find_base(site["fn"])
    return isinstance(base, ImproperUniform) or type(base).sample is Distribution.sample


def is_of_numpyro(site: Mapping[str, Any]) -> bool:
    """Return whether the distribution of a site is one of NumPyro, whose draws have its density."""
    return type(_find_base(site["fn"])).__module__.startswith("numpyro.")


def is_factor(site: Mapping[str, Any]) -> bool:
    """Return whether a site is a `numpyro.factor`, which observes nothing."""
    return isinstance(_find_base(site["fn"]), Unit)


def _find_base(distribution: Any) -> Any:
    while hasattr(distribution, "base_dist"):
        distribution = distribution.base_dist
    return distribution


@contextmanager
def explain_errors(model: Any) -> Iterator[None]:
    """Raise the errors of a model, while it is traced, as errors that name the model.

    Raises:
        UsageError: if the model raises any exception; its cause is that exception.
    """
    try:
        yield
    except BpaError:
        raise
    except Exception as error:
        name = getattr(model, "__name__", str(model))
        first, *others = [line for line in str(error).split("\n") if line] or ["no message"]
        text = " ".join(" ".join([first, *others[: first.endswith(":")]]).split())
        remedy = _find_line(error, model) or "the line is in the traceback of this cause"
        if isinstance(error, jax.errors.JAXTypeError):
            remedy = (
                "a model is compiled, so its sites must not depend on their values, and "
                "computes with jax.numpy: use jnp.where in place of if, and jnp in place of np"
            )
        if "unexpected PRNG key" in text:
            remedy = "use numpyro.handlers.condition in place of substitute"
        if "gradient with respect to" in text:  # of betainc
            remedy = (
                "samplers need a gradient, and JAX has none of this function: define one by "
                f"jax.custom_jvp, such as differences of its values; {remedy}"
            )
        if "Reverse-mode differentiation" in text:
            text = "JAX has no gradient of a loop whose number of steps depends on values"
            remedy = (
                "samplers need a gradient: in place of lax.while_loop write lax.fori_loop with a "
                "fixed number of steps, which keeps the result by jnp.where once it is found"
            )
        if "equal types" in text:
            remedy = (
                "densities are computed with 64 bits, and arrays that JAX made before have 32: "
                f"make them NumPy arrays, or pass them as arguments; {remedy}"
            )
        if "same dtypes" in text:
            remedy = (
                "NumPyro may have run it in float32 before, and JAX keeps the NumPy arrays in it: "
                'pass them as arguments, or call jax.config.update("jax_enable_x64", True) first'
            )
        problem = f"the model {name} failed with {type(error).__name__}: {text.rstrip('.;')}"
        raise model_error(f"{problem}; {remedy}", "not-supported") from error


def _find_line(error: Exception, model: Any) -> str:
    """Return the last line of the file of a model that an error has passed; empty if unknown."""
    code = getattr(unwrap(model), "__code__", None)
    file = getattr(code, "co_filename", "")
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return f"look at line {lines[-1]} of {Path(file).name}" if lines else ""


def name_dimensions(sites: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return the names of the dimensions of the sites of a trace that are in plates.

    The names are those of the plates. Dimensions without a plate are called `site_dim_0`, as ArviZ
    calls them, and so are those of plates whose names ArviZ data cannot have: that of a site or of
    a dimension of all draws, or of plates of several sizes.
    """
    sizes: dict[str, set[int]] = {}
    named = {n: site for n, site in sites.items() if site["type"] in ("sample", "deterministic")}
    for site in named.values():
        for plate in site.get("cond_indep_stack", ()):
            sizes.setdefault(plate.name, set()).add(plate.size)
    taken = {*named, *DIMENSIONS, *(name for name, size in sizes.items() if len(size) > 1)}
    dims: dict[str, tuple[str, ...]] = {}
    for name, site in named.items():
        plates = {
            p.dim: p
            for p in site.get("cond_indep_stack", ())
            if p.name not in taken and "/" not in p.name
        }
        shape = np.shape(site["value"])
        # How many dimensions of a computed value are those of events can only be seen by its shape.
        events = [site["fn"].event_dim] if site["type"] == "sample" else range(len(shape))
        batches = (len(shape) - count for count in events)
        batch = next((b for b in batches if plates and _fits(shape[:b], plates)), None)
        if batch is not None:
            dims[name] = tuple(
                plates[k - batch].name if k - batch in plates else f"{name}_dim_{k}"
                for k in range(len(shape))
            )
    return dims


def _fits(batch_shape: tuple[int, ...], plates: Mapping[int, Any]) -> bool:
    """Return whether a shape has the dimensions of some plates, which are given by dimension."""
    return len(batch_shape) >= -min(plates) and all(
        batch_shape[dim] == plate.size for dim, plate in plates.items()
    )


def refuse_parameters(program: Callable[..., None], data: Any, sites: Mapping[str, Any]) -> None:
    """Refuse a `numpyro.param` with values that something depends on: they have no posterior.

    Nothing depends on those of `random_flax_module` and its kin, where priors replace all of them.

    Args:
        program: a NumPyro program.
        data: its arguments.
        sites: of its trace.

    Raises:
        UsageError: if there is one.
    """
    values = {name: site["value"] for name, site in sites.items() if site["type"] == "param"}
    if not values:
        return

    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(np.shape(x), jnp.result_type(x)), values)
    arguments = {f"argument {k}": value for k, value in enumerate(data)}
    parents = find_parents(program, arguments, shapes)
    if used := sorted({*values} & frozenset().union(*parents.values())):
        problem = f"the site {used[0]} of the model is a numpyro.param, which has no posterior"
        remedy = "draw it with numpyro.sample, with a prior of each array of a network, or make it"
        raise model_error(f"{problem}: {remedy} a constant", "not-supported")


def find_parents(
    program: Callable[..., None], data: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, frozenset[str]]:
    """Return what the density of each site, or what it computes, depends on.

    Args:
        program: a NumPyro program.
        data: its arguments by name.
        values: of sites, or their shapes and types, by site.

    >>> import numpyro
    >>> from numpyro.distributions import Normal
    >>> def program():
    ...     numpyro.sample("y", Normal(numpyro.sample("mean", Normal(0.0, 1.0)), 1.0), obs=2.0)
    >>> sorted(find_parents(program, {}, {"mean": np.zeros(())})["y"])
    ['mean']
    """

    def densities(**values: Any) -> dict[str, Any]:
        arguments = [values.pop(name) for name in data]
        seeded = handlers.substitute(handlers.seed(program, jax.random.key(0)), values)
        sites = handlers.trace(seeded).get_trace(*arguments)
        return {
            name: site["fn"].log_prob(site["value"]) if site["type"] == "sample" else site["value"]
            for name, site in sites.items()
            if site["type"] in ("sample", "deterministic")
        }

    parents: dict[str, frozenset[str]] = eval_provenance(densities, **values, **data)
    return parents
