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

from bpa_ppl.densities.own_models import explain_errors, model_error
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
        shape: of its values.
        observed: the values that the program observes; None of others.
        total: the sum of its values.
        log_density: the sum over its cells; 0 of what is computed.
    """

    shape: Any
    observed: Any
    total: Any
    log_density: Any


def require_same_runs(target: Target) -> None:
    """Run a program twice, and compare sites, shapes, observed values and log densities.

    Nothing may have run the program before. What changes only at a later run is not seen.

    Args:
        target: a program, whose start may be empty.

    Raises:
        UsageError: if the program cannot be run, or the second run is another one.
    """
    title = getattr(target.model, "__name__", str(target.model))
    with explain_errors(target.model):
        lowered = _lower(target)
        compiled = lowered.compile()
        first: dict[str, _Site] = jax.device_get(compiled(target))
    try:
        with explain_errors(target.model):
            # Most programs are the same to the letter, and need no second compilation.
            if (again := _lower(target)).as_text() != lowered.as_text():
                compiled = again.compile()
            second: dict[str, _Site] = jax.device_get(compiled(target))
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


def _lower(target: Target) -> Any:
    """Return one run as a function that is not compiled yet, with all constants of the program."""

    def run(target: Target) -> dict[str, _Site]:
        program = handlers.seed(target.checked_program(), jax.random.key(0))
        result = {}
        for name, site in handlers.trace(program).get_trace(*target.data).items():
            if site["type"] not in ("sample", "deterministic"):
                continue
            value, density = jnp.asarray(site["value"]), jnp.zeros(())
            if site["type"] == "sample":
                density = site["fn"].log_prob(value)
                density = (density if site["scale"] is None else site["scale"] * density).sum()
            observed = value if site.get("is_observed") else None
            result[name] = _Site(np.shape(value), observed, value.sum(), density)
        return result

    # JAX would compile each operation of a program that is not compiled by itself.
    return jax.jit(run, compiler_options=RUN_ONCE).trace(target).lower()


def _find_difference(first: dict[str, _Site], second: dict[str, _Site]) -> str:
    """Return how two runs differ; empty if they do not."""
    if missing := sorted(first.keys() ^ second.keys()):
        run = "first" if missing[0] in first else "second"
        return f"only the {run} of two runs has the site {missing[0]}"
    pairs = [(name, site, second[name]) for name, site in first.items()]
    for name, one, other in pairs:
        if one.shape != other.shape:
            shapes = (tuple(map(int, site.shape)) for site in (one, other))
            return f"the site {name} has the shape {', then '.join(map(str, shapes))}"
    for name, one, other in pairs:
        if (one.observed is None) != (other.observed is None):
            return f"the site {name} is observed at one run, and drawn at another"
        if one.observed is not None and not _are_equal(one.observed, other.observed, 0.0):
            return f"the site {name} observes other values at the second run"
    for name, one, other in pairs:
        densities = float(one.log_density), float(other.log_density)
        if not _are_equal(*densities):
            numbers = ", then ".join(f"{density:.6g}" for density in densities)
            return f"the site {name} has the log density {numbers}"
        if not _are_equal(one.total, other.total):
            return f"the site {name} has other values at the second run"
    return ""


def _are_equal(one: Any, other: Any, tolerance: float = _TOLERANCE) -> bool:
    """Return whether numbers are the same, up to rounding; missing ones are."""
    return bool(np.allclose(one, other, tolerance, tolerance, equal_nan=True))
