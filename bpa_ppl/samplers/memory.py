"""Whether the draws of a sampler fit into memory, which is counted before it draws."""

from __future__ import annotations

import math

from psutil import virtual_memory

from bpa_ppl.densities.target import PRIOR_DRAWS, Target, inspect_model
from bpa_ppl.errors import UsageError
from bpa_ppl.samplers.sampler import SAMPLERS, Sampler

#: Draws are there twice at a time, as where they are computed from others and then kept.
_COPIES = 2
#: Bytes of a number, and of the unit in messages.
_NUMBER, _GIGABYTE = 8, 1e9
#: A remedy does not name fewer draws of a chain.
_LEAST_DRAWS = 100
#: Chains of samplers that choose their number.
_CHAINS = 4


def require_memory(target: Target, sampler: Sampler) -> None:
    """Refuse draws that do not fit into the memory that is available.

    Args:
        target: the posterior.
        sampler: with its numbers of draws and chains.

    Raises:
        UsageError: if the values of all sites, of the draws, the warm-up and the draws of the
            prior, are too many.
    """
    if fits_into_memory(target, sampler):
        return
    cells, available = _count_cells(target), virtual_memory().available
    draws, others = _count_draws(sampler)
    site = max(cells, key=lambda name: cells[name])
    total = sum(cells.values())
    needed, largest = _COPIES * _NUMBER * total * (draws + others), _NUMBER * cells[site] * draws
    problem = (
        f"the draws of the model {target.model.__name__} need {needed / _GIGABYTE:.1f} GB of "
        f"memory, and {available / _GIGABYTE:.1f} GB are available: {draws:,} draws of "
        f"{cells[site]:,} values of the site {site} are {largest / _GIGABYTE:.1f} GB"
    )
    remedies = []
    if site in inspect_model(target).deterministic:
        remedies.append(f"leave out the deterministic site {site}, or keep a summary of it")
    chains = getattr(sampler, "chains", 1) or _CHAINS
    fewer = int((available / (_COPIES * _NUMBER * total) - others) / chains)
    name = SAMPLERS.name_of(sampler)
    if fewer >= _LEAST_DRAWS:
        remedies.append(f"draw fewer, such as {name}:draws={fewer // _LEAST_DRAWS * _LEAST_DRAWS}")
    elif not remedies:
        remedies.append("make the program smaller")
    message = f"{problem}; {', or '.join(remedies)}"
    raise UsageError(message, parameter="sampler", code="not-supported")


def fits_into_memory(target: Target, sampler: Sampler) -> bool:
    """Return whether the memory that is available is enough for the draws of a sampler.

    >>> from bpa_ppl import from_lists, log_density
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> fits_into_memory(log_density(lists, {"LM0": 0.5}), SAMPLERS.resolve("imh"))
    True
    """
    values = sum(_count_cells(target).values()) * sum(_count_draws(sampler))
    return _COPIES * _NUMBER * values <= virtual_memory().available


def _count_cells(target: Target) -> dict[str, int]:
    """Return the number of values of each site that is kept."""
    info = inspect_model(target)
    return {name: math.prod(info.shapes[name]) for name in (*info.latent, *info.deterministic)}


def _count_draws(sampler: Sampler) -> tuple[int, int]:
    """Return the number of draws, and of those of the warm-up and of the prior."""
    chains = getattr(sampler, "chains", 1) or _CHAINS
    warmup = getattr(sampler, "warmup", 0)
    return chains * getattr(sampler, "draws", 1), chains * warmup + PRIOR_DRAWS
