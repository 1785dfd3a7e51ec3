"""Latent sites of few discrete values, which NumPyro sums out by means of funsor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import jax
import numpy as np
from numpyro import handlers
from numpyro.ops.provenance import eval_provenance

from bpa_ppl.densities.own_models import is_latent, model_error

_OTHERWISE = (
    "observe it (obs=), or sum over its values, for example by numpyro.distributions.MixtureGeneral"
)


def find_discrete(sites: Mapping[str, Any], *, enumerable: bool) -> tuple[str, ...]:
    """Return the discrete latent sites of a trace.

    Args:
        sites: of the trace.
        enumerable: whether discrete sites can be summed out.

    Raises:
        UsageError: if there is one that cannot be summed out; or there are, and a site has several
            values that are in no plate.
    """
    sampled = {name: site for name, site in sites.items() if site["type"] == "sample"}
    latent = {name: site for name, site in sampled.items() if not site["is_observed"]}
    discrete = {name: site for name, site in latent.items() if site["fn"].support.is_discrete}
    for name, site in discrete.items():
        problem, remedy = f"the site {name} of the model is discrete", _OTHERWISE
        if not enumerable:
            problem += ", and samplers need a density of real values"
        elif not site["fn"].has_enumerate_support:
            problem += ", and its values cannot be enumerated"
        elif find_spec("funsor") is None:
            problem += ", and the package funsor, which sums over its values, is not installed"
            remedy = f"pip install 'bpa_ppl[enumerate]'; or {_OTHERWISE}"
        else:
            continue
        raise model_error(f"{problem}: {remedy}", "not-supported")
    for name, site in sampled.items() if discrete else ():
        event = site["fn"].event_dim
        shape = np.broadcast_shapes(
            site["fn"].batch_shape, np.shape(site["value"])[: np.ndim(site["value"]) - event]
        )
        plates = {frame.dim for frame in site["cond_indep_stack"]}
        of_scan = {-len(shape)} if site.get("_control_flow_done") else set()
        missing = [k for k in range(-len(shape), 0) if shape[k] > 1 and k not in plates | of_scan]
        if missing:
            problem = f"the site {name} of the model has {shape[missing[0]]} values without a plate"
            remedy = "discrete sites are summed out, so use numpyro.plate, or .to_event"
            raise model_error(f"{problem}: {remedy}", "not-supported")
    return tuple(discrete)


def count_plates(sites: Mapping[str, Any]) -> int:
    """Return how many dimensions the plates of a program take."""
    frames = (f for site in sites.values() for f in site.get("cond_indep_stack", ()))
    return max((-frame.dim for frame in frames if frame.dim is not None), default=0)


def find_computed(
    program: Callable[[], Any], sites: Mapping[str, Any], discrete: tuple[str, ...]
) -> set[str]:
    """Return the deterministic sites that are computed from discrete ones.

    Args:
        program: a NumPyro program without arguments.
        sites: of its trace.
        discrete: the discrete sites.
    """

    def compute(**values: Any) -> dict[str, Any]:
        seeded = handlers.substitute(handlers.seed(program, jax.random.key(0)), data=values)
        traced = handlers.trace(seeded).get_trace()
        return {n: site["value"] for n, site in traced.items() if site["type"] == "deterministic"}

    values = {name: sites[name]["value"] for name in discrete}
    shapes = {n: jax.ShapeDtypeStruct(np.shape(x), x.dtype) for n, x in values.items()}
    return {name for name, parents in eval_provenance(compute, **shapes).items() if parents}


def mark_discrete(program: Callable[..., Any]) -> Callable[..., Any]:
    """Return a program whose discrete latent sites NumPyro sums out without a warning."""

    def configure(site: Mapping[str, Any]) -> dict[str, str]:
        discrete = is_latent(site) and site["fn"].has_enumerate_support
        return {"enumerate": "parallel"} if discrete else {}

    marked: Callable[..., Any] = handlers.infer_config(program, configure)
    return marked


def enumerate_sites(program: Callable[..., Any], plates: int) -> Callable[..., Any]:
    """Return a program whose discrete latent sites have all values; plates are its dimensions."""
    from numpyro.contrib.funsor import enum  # takes a second, and sets the backend of funsor

    enumerated: Callable[..., Any] = enum(program, -plates - 1)
    return enumerated
