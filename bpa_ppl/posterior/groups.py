"""Groups of named arrays with named dimensions: what ArviZ's data and NetCDF files are made of.

They are between the draws and either of these, so that a file needs no xarray, which brings pandas
with it, a third of a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

#: The dimensions that all draws have.
SAMPLES = ("chain", "draw")


class Variable(NamedTuple):
    """An array with a name for each dimension, and attributes."""

    dims: tuple[str, ...]
    values: npt.NDArray[Any]
    attrs: Mapping[str, Any] = {}

    def leading(self, *dims: str) -> npt.NDArray[Any]:
        """Return the values with some dimensions, which it must have, before all others.

        >>> Variable(("x", "chain"), np.zeros((2, 3))).leading("chain").shape
        (3, 2)
        """
        places = [self.dims.index(dim) for dim in dims]
        rest = [place for place, dim in enumerate(self.dims) if dim not in dims]
        return self.values.transpose(*places, *rest)


@dataclass(frozen=True, eq=False)
class Group:
    """Arrays over the same dimensions.

    Attributes:
        arrays: by name.
        coords: what labels dimensions; the labels of one have its name.
        attrs: of the group.
    """

    arrays: Mapping[str, Variable]
    coords: Mapping[str, Variable] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, variables: Mapping[str, Variable], labels: Set[str], attrs: Mapping[str, Any]
    ) -> Group:
        """Return a group of variables of which some label dimensions.

        >>> both = dict.fromkeys(("x", "feature"), Variable(("feature",), np.zeros(2)))
        >>> [list(part) for part in vars(Group.of(both, {"feature"}, {})).values()]
        [['x'], ['feature'], []]
        """
        return cls(
            {name: one for name, one in variables.items() if name not in labels},
            {name: one for name, one in variables.items() if name in labels},
            attrs,
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The lengths of the dimensions.

        >>> Group({"x": Variable(("chain", "draw"), np.zeros((2, 10)))}).sizes
        {'chain': 2, 'draw': 10}
        """
        found: dict[str, int] = {}
        for variable in (*self.arrays.values(), *self.coords.values()):
            found.update(zip(variable.dims, variable.values.shape, strict=True))
        return found


@dataclass(frozen=True, eq=False)
class Groups:
    """A posterior as groups by name, such as `posterior` and `sample_stats`."""

    groups: Mapping[str, Group]
    attrs: Mapping[str, Any] = field(default_factory=dict)


def grouped(
    groups: Mapping[str, Mapping[str, Any]],
    coords: Mapping[str, Any] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> Groups:
    """Name the dimensions of arrays by group and name.

    Groups called `…data` have arrays of any shape, the others such as begin with chains and draws.

    Args:
        groups: those that are empty are left out.
        coords: values of dimensions; those without any are numbered.
        dims: names of the dimensions of an array, chains and draws left out; not used where an
            array of that name has more or fewer, such as a log prior, of one number a draw.
        attrs: of the whole.

    >>> made = grouped({"posterior": {"x": np.zeros((2, 10, 1))}}, dims={"x": ["feature"]})
    >>> made.groups["posterior"].sizes
    {'chain': 2, 'draw': 10, 'feature': 1}
    """
    made = {
        name: _group(arrays, coords or {}, dims or {}, () if "data" in name else SAMPLES)
        for name, arrays in groups.items()
        if arrays
    }
    return Groups(made, attrs or {})


def _group(
    arrays: Mapping[str, Any],
    coords: Mapping[str, Any],
    dims: Mapping[str, Sequence[str]],
    leading: Sequence[str],
) -> Group:
    found = {}
    for name, values in arrays.items():
        array = np.atleast_1d(values)
        numbered = [f"{name}_dim_{k}" for k in range(array.ndim - len(leading))]
        named = dims.get(name, numbered)
        own = named if len(named) == len(numbered) else numbered
        found[name] = Variable((*leading, *own), array)
    labels = {dim: coords.get(dim, np.arange(size)) for dim, size in Group(found).sizes.items()}
    return Group(found, {dim: Variable((dim,), np.asarray(v)) for dim, v in labels.items()})
