"""The posterior of any NumPyro program with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, update_wrapper
from inspect import signature
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.primitives import Messenger

from bpa_ppl._runtime.cache import prepare_jax
from bpa_ppl._runtime.messages import log_info, warn_user
from bpa_ppl.densities.discrete import mark_discrete
from bpa_ppl.densities.flat_cells import Cells, WithConstantCells, find_flat_cells
from bpa_ppl.densities.improper_priors import RADIUS, WithStarts
from bpa_ppl.densities.mode import (
    is_usable_start,
    make_start_error,
    start_at_medians,
    value_and_slope,
)
from bpa_ppl.densities.own_models import (
    DIMENSIONS,
    WithCarryTypes,
    WithoutObjects,
    explain_errors,
    is_factor,
    model_error,
)
from bpa_ppl.densities.program_runs import require_same_runs
from bpa_ppl.densities.target import (
    NUMPYRO_LOCK,
    SEARCH_SEED,
    Sites,
    Target,
    constrain,
    inspect_model,
    observe_sites,
    require_bounded,
)
from bpa_ppl.errors import UsageError, list_names, wrong_type

#: If the density is not finite at the medians of the prior, so many random starts are tried, as
#: Stan and NumPyro start chains. It is not infinite at so many places near to the start either.
_TRIES = 20


def make_model_target(
    model: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
) -> Target:
    """Return the log density of the posterior of a NumPyro program with its arguments.

    The arguments are constants of compiled functions, as in NumPyro, because a model may compute
    the sizes of its plates from them. The data of the target is a dictionary by site, whose values
    take the place of what the program observes: simulated data.

    Args:
        model: the program. With the package funsor, sites of few discrete values are summed out.
        args: its positional arguments. A column of a data frame becomes an array, and a data frame
            the matrix of its columns.
        kwargs: its keyword arguments.

    Raises:
        UsageError: if the program cannot be run or sampled: a site is discrete and cannot be summed
            out; there is nothing to sample; the density is not finite at any start, or infinite
            somewhere, or another one at each call.

    >>> import numpyro
    >>> import numpyro.distributions as dist
    >>> def model(y):
    ...     mean = numpyro.sample("mean", dist.Normal(0.0, 10.0))
    ...     scale = numpyro.sample("scale", dist.HalfNormal(5.0))
    ...     numpyro.sample("y", dist.Normal(mean, scale), obs=y)
    >>> target = make_model_target(model, (np.array([1.0, 3.0]),))
    >>> target.dimension, sorted(target.start)
    (2, ['mean', 'scale'])
    >>> with jax.enable_x64(True):
    ...     print(target.constrain(jnp.zeros(2))["scale"].round(3))
    1.0
    """
    if not callable(model):
        raise wrong_type("a model is a function that calls numpyro.sample", model, "model")
    if not isinstance(args, tuple | list):
        rule = "the arguments of the model are a tuple, even of one"
        raise wrong_type(rule, args, "args", remedy="write args=(data,)")
    if not isinstance(kwargs, Mapping | None):
        rule = "the keyword arguments of the model are a dictionary"
        raise wrong_type(rule, kwargs, "kwargs", remedy="write kwargs={'y': data}")
    prepare_jax()
    frames = dict[str, str]()
    read = partial(_read_argument, _name_parameters(model), frames)
    positional, named = jax.tree_util.tree_map_with_path(read, (tuple(args), dict(kwargs or {})))

    renamed, left_out = dict[str, str](), dict[str, str]()

    def bind(cells: Mapping[str, Cells], without_draws: Container[str]) -> Callable[..., None]:
        """Return the model with its arguments, constant cells, and priors without draws."""

        def bound(observed: dict[str, Any]) -> None:
            """Run the model; what is in `observed`, by site, takes the place of its data."""
            numeric = WithoutObjects(mark_discrete(model), left_out)
            program = WithCarryTypes(_WithDots(numeric, renamed))
            program = WithStarts(handlers.condition(program, data=observed), without_draws)
            (WithConstantCells(program, cells) if cells else program)(*positional, **named)

        update_wrapper(bound, model, assigned=(), updated=())
        bound.__name__ = getattr(model, "__name__", type(model).__name__)
        return bound

    bound = bind({}, ())
    empty = Target(model=bound, data=({},), start={})
    with NUMPYRO_LOCK, jax.enable_x64(True):
        try:
            require_same_runs(empty)
        except UsageError as error:
            cause = error.__cause__  # of the program itself
            if not frames or cause is None or isinstance(cause, jax.errors.JAXTypeError):
                raise
            raise model_error(f"{error}; {_explain_frames(frames)}", error.code) from error
        if "data frame" in frames.values():
            log_info(_explain_frames(frames))
        if not inspect_model(empty).latent:
            problem = f"the model {bound.__name__} has no latent site, so there is nothing to draw"
            if discrete := inspect_model(empty).discrete:
                problem = f"the site {discrete[0]} of the model is discrete, and there is no other"
                problem += " to draw: summing it out leaves nothing"
                raise model_error(problem, "no-data")
            raise model_error(f"{problem}: call numpyro.sample without obs", "no-data")
        _check_sites(empty)
        start = jax.device_get(_find_start(empty))
        target, cells = replace(empty, start=start), dict[str, Cells]()
        without_draws = _find_constant(target)
        if not inspect_model(target).discrete:
            cells, masked = find_flat_cells(target)
            without_draws |= masked
        if without_draws:
            start = jax.device_get(_find_start(replace(empty, model=bind({}, without_draws))))
        if cells or without_draws:
            start = {n: cells[n].select(z) if n in cells else z for n, z in start.items()}
            start = {n: z for n, z in start.items() if np.size(z)}
            if not start:
                problem = f"the density of the model {bound.__name__} depends on no latent site"
                remedy = "leave out numpyro.handlers.mask, or mask only a part of the cells"
                raise model_error(f"{problem}, so there is nothing to draw: {remedy}", "no-data")
            flat = {name: int(np.size(of.drawn) - of.drawn.sum()) for name, of in cells.items()}
            target = replace(target, model=bind(cells, without_draws), start=start, flat=flat)
        _require_density(target)
        if left_out:
            sites = list_names(f"{name} ({kind})" for name, kind in left_out.items())
            warn_user(
                f"deterministic sites that are not arrays of real numbers are left out: {sites}; "
                "give each array of numbers a site of its own"
            )
        for site, name in renamed.items():
            log_info(f"the site {site} is called {name}: names in ArviZ data have no slash")
        return target


class _WithDots(Messenger):  # type: ignore[misc] # NumPyro has no types
    """Replaces slashes in the names of sites, such as those of `numpyro.handlers.scope`, by dots.

    Args:
        program: a NumPyro program.
        renamed: receives the new names, by site.
    """

    def __init__(self, program: Callable[..., Any], renamed: dict[str, str]):
        self._renamed = renamed
        super().__init__(program)

    def process_message(self, site: dict[str, Any]) -> None:
        if site["type"] in ("sample", "deterministic") and "/" in (name := site["name"]):
            site["name"] = self._renamed[name] = name.replace("/", ".")


def _name_parameters(model: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters of a program; none if Python cannot find them."""
    try:
        return list(signature(model).parameters)
    except (TypeError, ValueError):
        return []


def _explain_frames(frames: Mapping[str, str]) -> str:
    """Return what a program gets in place of data frames and their columns, as a sentence."""
    listed = list_names(f"{name} (a {kind})" for name, kind in frames.items())
    problem = f"the model gets a NumPy array without names in place of {listed}"
    return f"{problem}: pass each column that it needs as an argument"


def _read_argument(
    names: Sequence[str], frames: dict[str, str], path: tuple[Any, ...], value: Any
) -> Any:
    """Return an array of an argument that is one, or a column or data frame; others as they are.

    Args:
        names: of the parameters.
        frames: receives which are data frames or columns, by name.
        path: where the argument is.
        value: the argument.

    Raises:
        UsageError: if it is an iterator, or a column is not made of numbers.
    """
    if isinstance(value, np.ndarray):
        # JAX remembers the type of a NumPy array that it has seen: of the same array in a program
        # that NumPyro has run in float32 before, it would not make float64.
        return value.copy()
    is_iterator = isinstance(value, Iterator)
    if isinstance(value, jax.Array) or not (is_iterator or hasattr(value, "to_numpy")):
        return value
    place = path[1].idx if hasattr(path[1], "idx") else path[1].key
    title = names[place] if isinstance(place, int) and place < len(names) else place
    if is_iterator:
        raise UsageError(
            f"the argument {title} is an iterator ({type(value).__name__}), which the first run of "
            "the program uses up: give a list or an array",
            parameter="args",
            code="wrong-type",
        )
    frames[str(title)] = "data frame" if hasattr(value, "columns") else "column"
    columns = [(name, value[name]) for name in getattr(value, "columns", ())]
    for name, column in columns or [(getattr(value, "name", None), value)]:
        array = np.asarray(column.to_numpy())
        if array.dtype.kind not in "biuf":
            where = f"the column {name}" if name is not None else "a column"
            problem = f"{where} of the argument {title} has the type {column.dtype}, not numbers"
            remedy = "encode texts as integers, and fill or leave out gaps"
            raise UsageError(f"{problem}: {remedy}", parameter="args", code="bad-number")
    return np.array(value.to_numpy())


def _check_sites(target: Target) -> None:
    """Refuse sites that have no values, or names that they cannot have in ArviZ data.

    Raises:
        UsageError: if there is one.
    """
    info = inspect_model(target)
    automatic = {f"{n}_dim_{k}": n for n, shape in info.shapes.items() for k in range(len(shape))}
    for name, shape in info.shapes.items():
        problem = ""
        if name in DIMENSIONS:
            problem = "the name of a dimension of all draws"
        elif name in automatic:
            problem = f"the name of a dimension of the site {automatic[name]}"
        if problem:
            problem = f"the site {name} of the model has {problem}, which ArviZ data cannot have"
            raise model_error(f"{problem}: rename it", "bad-name")
        if name in info.latent and 0 in shape:
            problem = f"the site {name} of the model has no values, so there is nothing to draw"
            raise model_error(f"{problem}: leave it out where it is empty", "no-data")


def require_simulated(target: Target) -> None:
    """Refuse a program whose data cannot be simulated.

    Raises:
        UsageError: if it observes nothing, or has a `numpyro.factor`, a scaled density or an
            improper prior.
    """
    info, title = inspect_model(target), target.model.__name__
    for name in info.factors:
        problem = f"the site {name} of {title} is a numpyro.factor, which cannot be simulated"
        raise model_error(f"{problem}: write it as a distribution with obs", "not-supported")
    for name in info.improper:
        problem = f"the prior of the site {name} of {title} has no draws, because it is improper,"
        problem += " masked or scaled, or its draws are all the same: give it a proper one"
        raise model_error(problem, "not-supported")
    with NUMPYRO_LOCK, jax.enable_x64(True):
        observed = jax.device_get(observe_sites(target))
    for name, (_, scale) in observed.items():
        if scale is not None and np.any(scale != 1):
            problem = f"the density of the site {name} of {title} is scaled, so its data cannot be"
            remedy = "leave numpyro.handlers.scale out"
            raise model_error(f"{problem} simulated: {remedy}", "not-supported")
    if not observed:
        problem = f"{title} observes nothing, so no data can be simulated: call numpyro.sample"
        raise model_error(f"{problem} with obs", "no-data")


def _find_constant(target: Target) -> set[str]:
    """Return the sites with distributions of one's own whose draws are all the same."""
    others = inspect_model(target).others
    draws = target.draw_prior(SEARCH_SEED) if others else {}
    return {name for name in others if (draws[name] == draws[name][:1]).all()}


def _find_start(target: Target) -> Sites:
    """Return z at the medians of the prior, or at a random place with a finite density."""
    with explain_errors(target.model):
        medians: Sites = start_at_medians(target, {})
        if is_usable_start(target, medians):
            return medians
        rng = np.random.default_rng([SEARCH_SEED, 7])
        for _ in range(_TRIES):
            z = {
                name: jnp.asarray(rng.uniform(-RADIUS, RADIUS, np.shape(value)))
                for name, value in medians.items()
            }
            if is_usable_start(target, z):
                return z
        _check_observed(target, medians)
        raise make_start_error(target, medians)


def _require_density(target: Target) -> None:
    """Refuse a program whose log density is infinite near its start, which no density is.

    Raises:
        UsageError: if it is.
    """
    rng = np.random.default_rng([SEARCH_SEED, 8])
    for _ in range(_TRIES):
        z = {
            site: np.asarray(value) + rng.uniform(-RADIUS, RADIUS, np.shape(value))
            for site, value in target.start.items()
        }
        require_bounded(target, -float(value_and_slope(target, z)[0]))


def _check_observed(target: Target, z: Sites) -> None:
    """Refuse data that their distribution cannot take, where the density is 0 because of them.

    Raises:
        UsageError: if there are any.
    """
    seeded = handlers.seed(target.program, jax.random.key(0))
    program = handlers.substitute(seeded, data=constrain(target, z))
    for name, site in handlers.trace(program).get_trace(*target.data).items():
        if not site.get("is_observed") or is_factor(site):
            continue
        fits = np.asarray(site["fn"].support(site["value"]))
        density = jax.jit(site["fn"].log_prob)(site["value"])  # compiled, it does not warn
        if np.isfinite(density).all() or fits.all():
            continue
        wrong = np.asarray(site["value"])[~fits] if fits.shape == np.shape(site["value"]) else ()
        example = f", such as {np.ravel(wrong)[0]:.6g}" if np.size(wrong) else ""
        problem = f"the site {name} of the model observes values that its distribution cannot take"
        remedy = "correct them, leave them out, or mask them by numpyro.handlers.mask"
        raise model_error(f"{problem}{example}: {remedy}", "bad-number")
