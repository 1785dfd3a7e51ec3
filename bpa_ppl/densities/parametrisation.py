"""Which sites of a program are written centred, so that NumPyro can write them non-centred."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions import Distribution, ExpandedDistribution, Independent
from numpyro.distributions.constraints import independent, real
from numpyro.ops.provenance import eval_provenance

from bpa_ppl.densities.own_models import is_latent


def find_reparametrisations(
    program: Callable[..., Any], data: tuple[Any, ...], sites: Mapping[str, Any]
) -> dict[str, str]:
    """Return the centred latent sites, each with the call of `LocScaleReparam` that suits it.

    They are on the real line, and their location or scale depends on another latent site. Written
    non-centred, such a site is loc + scale × a draw of fixed scale.

    Args:
        program: a NumPyro program.
        data: its arguments.
        sites: of its trace.

    >>> import numpyro
    >>> import numpyro.distributions as dist
    >>> def program():
    ...     tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    ...     numpyro.sample("theta", dist.StudentT(4.0, 0.0, tau).expand([8]).to_event(1))
    >>> sites = handlers.trace(handlers.seed(program, 0)).get_trace()
    >>> find_reparametrisations(program, (), sites)
    {'theta': "LocScaleReparam(0, shape_params=['df'])"}
    """
    latent = {name: site for name, site in sites.items() if is_latent(site)}
    calls = dict[str, str]()
    candidates = {name for name, site in latent.items() if _has_loc_and_scale(site["fn"])}
    if not candidates or len(latent) == 1:
        return calls

    def parameters(**values: Any) -> dict[str, Any]:
        seeded = handlers.substitute(handlers.seed(program, jax.random.key(0)), values)
        traced = handlers.trace(seeded).get_trace(*data)
        bases = {name: _unwrap(traced[name]["fn"]) for name in candidates}
        return {name: (base.loc, base.scale) for name, base in bases.items()}

    shapes = {
        name: jax.ShapeDtypeStruct(np.shape(site["value"]), jnp.result_type(site["value"]))
        for name, site in latent.items()
    }
    for name, parents in eval_provenance(parameters, **shapes).items():
        if frozenset().union(*parents) - {name}:
            others = sorted({*_unwrap(latent[name]["fn"]).arg_constraints} - {"loc", "scale"})
            calls[name] = f"LocScaleReparam(0{f', shape_params={others}' if others else ''})"
    return {name: calls[name] for name in latent if name in calls}


def _has_loc_and_scale(distribution: Distribution) -> bool:
    """Return whether `LocScaleReparam` takes a distribution."""
    parameters = _unwrap(distribution).arg_constraints
    return _find_support(distribution) is real and {"loc", "scale"} <= {*parameters}


def _find_support(distribution: Distribution) -> Any:
    """Return the support of each cell."""
    support = distribution.support
    return support.base_constraint if isinstance(support, independent) else support


def _unwrap(distribution: Distribution) -> Distribution:
    """Return the distribution that NumPyro's reparametrisations see."""
    while isinstance(distribution, Independent | ExpandedDistribution):
        distribution = distribution.base_dist
    return distribution
