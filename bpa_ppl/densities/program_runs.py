"""Whether a program is the same one each time that it runs.

A sampler runs a program several times: once for each function that it compiles. What the program
reads from elsewhere than its arguments is a constant of such a function: an iterator that the first
run uses up, a counter, random numbers of NumPy. Then each function has another density.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers

from bpa_ppl.densities.own_models import CheckedSites, explain_errors, model_error
from bpa_ppl.densities.target import RUN_ONCE, Target
from bpa_ppl.errors import BpaError

_REMEDY = (
    "it may depend on its arguments alone, and draw numbers only by numpyro.sample; in place of an "
    "iterator or of a list that becomes shorter, give an array"
)
#: Log densities of the same values may differ by rounding, as where threads add numbers.
_TOLERANCE = 1e-6


class _Site(NamedTuple):
    """A site at one run, with the same random key as at every other run.

    Attributes:
        value: drawn, observed or computed.
        is_observed: whether the program observes it.
        log_density: the sum over its cells; 0 of what is computed.
    """

    value: Any
    is_observed: Any
    log_density: Any


def require_same_runs(target: Target) -> None:
    """Run a program twice, and compare sites, shapes, observed values and log densities.

    Nothing may have run the program before.

    Args:
        target: a program whose data and start are empty.

    Raises:
        UsageError: if the program cannot be run, or the second run is another one.
    """
    title = target.model.__name__
    with explain_errors(target.model):
        first = _run(target)
    try:
        with explain_errors(target.model):
            second = _run(target)
    except BpaError as error:
        problem = f"the first run succeeded, and the second one failed: {error}"
        raise _other_program(title, problem) from error
    if first and not second:
        raise model_error(
            f"the model {title} calls numpyro.sample at its first run only: remove functools.cache "
            "or lru_cache",
            "not-supported",
        )
    if difference := _find_difference(first, second):
        raise _other_program(title, difference)


def _other_program(title: str, difference: str) -> Exception:
    problem = f"the log density of the model {title} is another one at each call"
    return model_error(f"{problem} ({difference}): {_REMEDY}", "not-supported")


def _run(target: Target) -> dict[str, _Site]:
    """Return the sites of one run, compiled: JAX would compile each operation by itself."""

    def run() -> dict[str, _Site]:
        program = handlers.seed(CheckedSites(target.program), jax.random.key(0))
        result = {}
        for name, site in handlers.trace(program).get_trace(*target.data).items():
            density = jnp.zeros(())
            if site["type"] == "sample":
                density = site["fn"].log_prob(site["value"])
                density = (density if site["scale"] is None else site["scale"] * density).sum()
            elif site["type"] != "deterministic":
                continue
            # A copy, because the program may change its array.
            value = jnp.array(site["value"])
            result[name] = _Site(value, site.get("is_observed", False), density)
        return result

    compiled = jax.jit(run, compiler_options=RUN_ONCE).trace().lower().compile()
    sites: dict[str, _Site] = jax.device_get(compiled())
    return sites


def _find_difference(first: dict[str, _Site], second: dict[str, _Site]) -> str:
    """Return how two runs differ; empty if they do not."""
    if missing := sorted(first.keys() ^ second.keys()):
        run = "first" if missing[0] in first else "second"
        return f"only the {run} of two runs has the site {missing[0]}"
    pairs = [(name, site, second[name]) for name, site in first.items()]
    for name, one, other in pairs:
        if one.value.shape != other.value.shape:
            return f"the site {name} has the shape {one.value.shape}, then {other.value.shape}"
    for name, one, other in pairs:
        if one.is_observed and not np.array_equal(one.value, other.value, equal_nan=True):
            return f"the site {name} observes other values at the second run"
    for name, one, other in pairs:
        densities = float(one.log_density), float(other.log_density)
        if not np.allclose(*densities, _TOLERANCE, _TOLERANCE, equal_nan=True):
            numbers = ", then ".join(f"{density:.6g}" for density in densities)
            return f"the site {name} has the log density {numbers}"
        if not np.allclose(one.value, other.value, _TOLERANCE, _TOLERANCE, equal_nan=True):
            return f"the site {name} has other values at the second run"
    return ""
