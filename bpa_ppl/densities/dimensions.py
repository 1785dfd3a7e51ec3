"""Names of the dimensions of sites, and labels of their cells, as ArviZ takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bpa_ppl._runtime.names import find_repeated
from bpa_ppl.densities.own_models import DIMENSIONS
from bpa_ppl.densities.target import Target, inspect_model
from bpa_ppl.errors import DataError, UsageError, list_names, unknown_name, wrong_type


def label_sites(
    target: Target,
    coords: Mapping[str, Sequence[Any]] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
) -> Target:
    """Return a target whose draws have dimensions and labels of the user.

    Args:
        target: a program.
        coords: dimension -> its labels: texts or numbers.
        dims: site -> the names of its dimensions, without chain and draw. Those of other sites are
            the names of their plates.

    Raises:
        UsageError: if there is no such site or dimension, or a number of names or labels is not
            that of the dimensions or cells.

    >>> import numpyro
    >>> from numpyro.distributions import Normal
    >>> from bpa_ppl.densities.model_target import make_model_target
    >>> def model():
    ...     numpyro.sample("effect", Normal(np.zeros(2), 1.0))
    >>> target = make_model_target(model)
    >>> label_sites(target, {"school": ["Choate", "Deerfield"]}, {"effect": ["school"]}).coords
    {'school': ('Choate', 'Deerfield')}
    >>> label_sites(target, dims={"effect": ["school", "year"]})
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: dims of effect has 2 names (school, year): its shape is (2,)...
    """
    if not (coords or dims):
        return target
    for name, value in (("coords", coords), ("dims", dims)):
        if not isinstance(value, Mapping | None):
            raise wrong_type(f"{name} is a dictionary, as ArviZ takes it", value, name)
    info = inspect_model(target)
    shapes = {name: shape for name, shape in info.shapes.items() if name not in info.factors}
    named = {site: _check_dims(site, of, shapes) for site, of in (dims or {}).items()}
    every = {**info.dims, **named}
    every |= {
        site: tuple(f"{site}_dim_{k}" for k in range(len(shape)))
        for site, shape in shapes.items()
        if site not in every
    }
    sizes: dict[str, tuple[str, int]] = {}
    for site in (*named, *(site for site in every if site not in named)):
        for dim, size in zip(every[site], shapes[site], strict=True):
            first, expected = sizes.setdefault(dim, (site, size))
            if size != expected:
                problem = f"the dimension {dim} has {expected} cells in {first}, and {size} in"
                remedy = "give one of them another name"
                raise _mismatch(f"{problem} {site}: {remedy}", "dims")
    labels = {dim: _check_labels(dim, of, sizes) for dim, of in (coords or {}).items()}
    return replace(target, dims=named, coords=labels)


def _check_dims(
    site: str, names: Sequence[str], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[str, ...]:
    """Return the names of the dimensions of a site.

    Raises:
        UsageError: if there is no such site, or its dimensions cannot have these names.
    """
    if site not in shapes:
        raise unknown_name("site", site, shapes, "dims", owner="the model")
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        remedy = f"write dims={{{site!r}: ['name']}}"
        raise wrong_type(f"dims of {site} is a list of names", names, "dims", remedy=remedy)
    listed, shape = f"{len(names)} names ({list_names(names)})", shapes[site]
    if len(names) != len(shape):
        problem = f"dims of {site} has {listed}: its shape is {shape}, without chain and draw"
        raise _mismatch(problem, "dims")
    taken = [name for name in names if name in shapes or name in DIMENSIONS or "/" in name]
    if taken:
        problem = f"dims of {site} has the name {taken[0]}, which ArviZ data cannot have for it"
        raise UsageError(f"{problem}: rename it", parameter="dims", code="bad-name")
    if twice := find_repeated(names):
        message = f"two dimensions {twice[0]} of {site}: rename one"
        raise DataError(message, parameter="dims", code="duplicate")
    return tuple(names)


def _check_labels(
    dim: str, labels: Sequence[Any], sizes: Mapping[str, tuple[str, int]]
) -> tuple[Any, ...]:
    """Return the labels of a dimension.

    Raises:
        UsageError: if there is no such dimension, or these are not its labels.
    """
    if dim not in sizes:
        raise unknown_name("dimension", dim, sizes, "coords", owner="the sites")
    array = np.asarray(labels)
    if array.dtype.kind == "O":
        array = array.astype(str)
    if array.ndim != 1 or array.dtype.kind not in "biufU":
        rule = f"coords of {dim} is a list of texts or numbers"
        raise wrong_type(rule, labels, "coords")
    site, size = sizes[dim]
    if len(array) != size:
        problem = f"coords of {dim} has {len(array)} labels, and the dimension {size} cells"
        raise _mismatch(f"{problem} (of {site}): give one label for each", "coords")
    if twice := find_repeated(array.tolist()):
        message = f"two labels {twice[0]} of {dim}: rename one"
        raise DataError(message, parameter="coords", code="duplicate")
    return tuple(array.tolist())


def _mismatch(problem: str, parameter: str) -> UsageError:
    return UsageError(problem, parameter=parameter, code="mismatch")
