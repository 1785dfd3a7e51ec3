"""ArviZ's data, in any supported version.

Up to 0.23 they are an InferenceData, from 1 on a DataTree of xarray. Everything here takes and
returns the same under both.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

from bpa_ppl.errors import UsageError
from bpa_ppl.posterior.groups import Group

if TYPE_CHECKING:
    from xarray import DataTree


class InferenceData(Protocol):
    """ArviZ's InferenceData, or xarray's DataTree where ArviZ is 1 or later.

    Both have groups by name, `posterior["posterior"]["weights"]`, and attributes, `attrs`.
    """

    def __getitem__(self, group: str, /) -> Any: ...

    def __getattr__(self, name: str) -> Any: ...


@cache
def generation() -> int:
    """Return the major version of ArviZ."""
    return int(version("arviz").split(".")[0])


def import_arviz() -> Any:
    """Import ArviZ without its daily notice about the coming major version.

    >>> import_arviz().__name__
    'arviz'
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "\\s*ArviZ is undergoing", FutureWarning)
        import arviz
    return arviz


def group_tree(groups: Mapping[str, Group], attrs: Mapping[str, Any]) -> DataTree:
    """Return the groups of a posterior, and the attributes of the whole, as a DataTree."""
    from xarray import Dataset, DataTree

    datasets = {
        title: Dataset(
            {name: (group.dims[name], array) for name, array in group.arrays.items()},
            dict(group.coords),
            dict(group.attrs),
        )
        for title, group in groups.items()
    }
    tree = DataTree.from_dict(datasets)
    tree.attrs.update(attrs)
    return tree


def arviz_data(tree: DataTree) -> InferenceData:
    """Return a tree as ArviZ's data: InferenceData with ArviZ 0.x, otherwise the tree itself."""
    if generation() >= 1:
        return tree
    datasets = {name: node.to_dataset() for name, node in tree.children.items()}
    data: InferenceData = import_arviz().InferenceData(attrs=dict(tree.attrs), **datasets)
    return data


def groups_of(data: InferenceData) -> tuple[dict[str, Group], dict[str, Any]]:
    """Return the groups of ArviZ's data as plain arrays, and the attributes of the whole.

    Raises:
        UsageError: if it is neither InferenceData nor a DataTree.
    """
    if hasattr(data, "children"):
        datasets = {name: node.to_dataset() for name, node in data.children.items()}
    elif callable(getattr(data, "groups", None)):
        datasets = {name: data[name] for name in data.groups()}
    else:
        problem = f"a posterior is InferenceData or Draws, not {type(data).__name__}"
        remedy = "read it with read_posterior"
        raise UsageError(f"{problem}: {remedy}", parameter="posterior", code="wrong-type")
    groups = {}
    for name, of_group in datasets.items():
        dims = {str(n): tuple(map(str, v.dims)) for n, v in of_group.data_vars.items()}
        parts = of_group.data_vars, of_group.coords
        arrays, coords = ({str(n): v.values for n, v in part.items()} for part in parts)
        groups[name] = Group(arrays, dims, coords, of_group.attrs)
    return groups, {str(name): value for name, value in data.attrs.items()}
