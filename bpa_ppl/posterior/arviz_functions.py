"""ArviZ's data, in any supported version.

Up to 0.23 they are an InferenceData, from 1 on a DataTree of xarray. Everything here takes and
returns the same under both. Without ArviZ, which is optional, they are a DataTree, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from bpa_ppl.errors import UsageError, require_extra
from bpa_ppl.posterior.groups import Group, labelled_groups

if TYPE_CHECKING:
    from xarray import DataTree


class InferenceData(Protocol):
    """ArviZ's InferenceData, or xarray's DataTree where ArviZ is 1 or later, or not installed.

    Both have groups by name, `posterior["posterior"]["weights"]`, and attributes, `attrs`.
    """

    def __getitem__(self, group: str, /) -> Any: ...

    def __getattr__(self, name: str) -> Any: ...


@cache
def generation() -> int:
    """Return the major version of ArviZ; 1 if it is not installed."""
    return 1 if find_spec("arviz") is None else int(version("arviz").split(".")[0])


def import_arviz() -> Any:
    """Import ArviZ without its daily notice about the coming major version.

    Raises:
        UsageError: if it is not installed.

    >>> import_arviz().__name__
    'arviz'
    """
    require_extra("this needs ArviZ", "report", "arviz")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "\\s*ArviZ is undergoing", FutureWarning)
        import arviz
    return arviz


def inference_data(
    groups: Mapping[str, Mapping[str, Any]],
    coords: Mapping[str, Any] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> InferenceData:
    """Return arrays by group and name as ArviZ's data: see `labelled_groups`.

    >>> import numpy as np
    >>> data = inference_data({"posterior": {"x": np.zeros((2, 10))}})
    >>> dict(data_tree(data)["posterior"].sizes)
    {'chain': 2, 'draw': 10}
    """
    return arviz_data(group_tree(labelled_groups(groups, coords, dims), attrs or {}))


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


def data_tree(data: InferenceData) -> DataTree:
    """Return ArviZ's data as a tree of datasets; a DataTree is returned as it is.

    Raises:
        UsageError: if it is neither.
    """
    from xarray import DataTree

    if isinstance(data, DataTree):
        return data
    if not callable(getattr(data, "groups", None)):
        raise UsageError(
            f"a posterior is InferenceData or Draws, not {type(data).__name__}: read it with "
            "read_posterior",
            parameter="posterior",
            code="wrong-type",
        )
    tree = DataTree.from_dict({name: data[name] for name in data.groups()})
    tree.attrs.update(data.attrs)
    return tree
