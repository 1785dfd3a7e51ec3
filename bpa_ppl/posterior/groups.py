"""The groups of a posterior as plain arrays with named and labelled dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, list_names

#: The dimensions that all draws have.
SAMPLE_DIMS = ("chain", "draw")


class Group(NamedTuple):
    """A group of a posterior.

    Attributes:
        arrays: by name.
        dims: name of an array -> the names of its dimensions.
        coords: name -> labels, usually of the dimension of that name.
        attrs: what else is recorded.
    """

    arrays: Mapping[str, npt.NDArray[Any]]
    dims: Mapping[str, tuple[str, ...]]
    coords: Mapping[str, npt.NDArray[Any]]
    attrs: Mapping[str, Any]


def label_groups(
    groups: Mapping[str, Mapping[str, Any]],
    coords: Mapping[str, Any] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Group]:
    """Return arrays by group and name with names and labels of all dimensions.

    Arrays of groups called `…data` have any shape; those of the others begin with chain and draw.

    Args:
        groups: empty groups are left out.
        coords: labels of dimensions; other dimensions are numbered from 0.
        dims: names of the dimensions of an array, without chain and draw; not used where the array
            has more or fewer dimensions, such as a log prior with one number per draw.

    Raises:
        DataError: if a name contains a slash, which trees and NetCDF files cannot have, or a
            dimension has two sizes.

    >>> group = label_groups({"prior": {"x": np.zeros((2, 10, 1))}}, dims={"x": ["y"]})["prior"]
    >>> group.dims, group.coords["y"].tolist()
    ({'x': ('chain', 'draw', 'y')}, [0])
    """
    result = {}
    for title, values in groups.items():
        if not values:
            continue
        if any("/" in name for name in values):
            problem = f"names in a posterior cannot contain a slash: {list_names(values):.80}"
            raise DataError(problem, code="bad-name")
        leading = () if "data" in title else SAMPLE_DIMS
        arrays = {name: np.atleast_1d(array) for name, array in values.items()}
        names: dict[str, tuple[str, ...]] = {}
        labels: dict[str, npt.NDArray[Any]] = {}
        for name, array in arrays.items():
            numbered = [f"{name}_dim_{k}" for k in range(array.ndim - len(leading))]
            named = (dims or {}).get(name, numbered)
            names[name] = (*leading, *(named if len(named) == len(numbered) else numbered))
            for dim, size in zip(names[name], array.shape, strict=True):
                of_dim = labels.setdefault(dim, np.asarray((coords or {}).get(dim, range(size))))
                if of_dim.shape != (size,):
                    problem = f"{name} of {title} has {size} values along {dim}, which has "
                    problem += f"{of_dim.size}: use another name for its dimension"
                    raise DataError(problem, code="mismatch")
        result[title] = Group(arrays, names, labels, {})
    return result


def require_equal_lengths(
    counts: Mapping[str, Any], origin: str | Path | None = None, remedy: str = ""
) -> None:
    """Refuse chains that do not all have the same number of draws.

    Args:
        counts: the draws of each chain, by what it is called.
        origin: the file.
        remedy: what to do, if it is more than words.

    >>> require_equal_lengths({"chain 0": 300, "chain 1": 500, "chain 2": 500})
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: chain 0 has 300 draws, but chain 1 has 500: leave out chains that ...
    """
    fewest, most = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    if counts[fewest] < counts[most]:
        least = counts[fewest]
        message = (
            f"{fewest} has {least} draws, but {most} has {counts[most]}: leave out chains that "
            "stopped early"
        )
        message += f", or keep {least} draws of each{remedy and ': '}{remedy}" if least else ""
        raise DataError(message, origin, code="wrong-length")
