"""ArviZ's data, and its plots of chains, in any supported version.

Up to 0.23 data are an InferenceData, since 1 a DataTree of xarray. Everything here takes and
returns the same under both.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bpa_ppl.errors import UsageError
from bpa_ppl.posterior.groups import Group

if TYPE_CHECKING:
    from xarray import Dataset

    from bpa_ppl._runtime.arrays import Float64

#: The lines of traces, and the width of others, in points.
TRACE = {"linewidth": 0.4, "alpha": 0.75}
_LINE = 0.9
_DIMS = "chain", "draw", "component"


class InferenceData(Protocol):
    """ArviZ's InferenceData, or xarray's DataTree where ArviZ is 1 or later.

    Both have groups by name, `posterior["posterior"]["weights"]`, and attributes, `attrs`.
    """

    def __getitem__(self, group: str, /) -> Any: ...

    def __getattr__(self, name: str) -> Any: ...


@cache
def arviz_version() -> int:
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


def require_docstrings() -> None:
    """Refuse `python -OO`: ArviZ's functions change a docstring, which does not exist there.

    Raises:
        UsageError: if Python runs without docstrings.
    """
    if sys.flags.optimize > 1:
        problem = "ArviZ, which computes the diagnostics, fails under python -OO"
        raise UsageError(f"{problem}: use python -O, or no option", code="not-supported")


def prepare_arviz() -> None:
    """Import what ArviZ's data need, before work that Ctrl-C may end.

    An interrupted import of Matplotlib fails in all later calls of the process.
    """
    if arviz_version() < 1:
        import_arviz()


def to_datasets(groups: Mapping[str, Group]) -> dict[str, Dataset]:
    """Return the groups of a posterior as datasets."""
    from xarray import Dataset

    return {
        title: Dataset(
            {name: (group.dims[name], array) for name, array in group.arrays.items()},
            dict(group.coords),
            dict(group.attrs),
        )
        for title, group in groups.items()
    }


def to_arviz_data(datasets: Mapping[str, Dataset], attrs: Mapping[str, Any]) -> InferenceData:
    """Return datasets by group as ArviZ's data: InferenceData with ArviZ 0.x, else a DataTree.

    Args:
        datasets: of the groups.
        attrs: of the whole.
    """
    if arviz_version() < 1:
        data: InferenceData = import_arviz().InferenceData(attrs=dict(attrs), **datasets)
        return data
    from xarray import DataTree

    tree = DataTree.from_dict(datasets)
    tree.attrs.update(attrs)
    return tree


def is_arviz_data(data: Any) -> bool:
    """Return whether something is InferenceData, a DataTree or a Dataset.

    >>> is_arviz_data({"mu": 0.0})
    False
    """
    return hasattr(data, "data_vars") or callable(getattr(data, "groups", None))


def split_groups(data: InferenceData) -> tuple[dict[str, Group], dict[str, Any]]:
    """Return the groups of ArviZ's data as plain arrays, and the attributes of the whole.

    The variables of a Dataset are those of a posterior.

    Raises:
        UsageError: if it is neither InferenceData nor a DataTree nor a Dataset.
    """
    if not is_arviz_data(data):
        kind = type(data).__name__
        forms = "a posterior is InferenceData, a DataTree, Dataset or Draws"
        message = f"{forms}, not {kind}: read_posterior makes ArviZ's data of other forms"
        raise UsageError(message, parameter="posterior", code="wrong-type")
    if getattr(data, "children", None):
        datasets = {name: node.to_dataset() for name, node in data.children.items()}
    elif hasattr(data, "data_vars"):
        datasets = {"posterior": data}
    else:
        datasets = {name: data[name] for name in data.groups()}
    groups = {}
    for name, of_group in datasets.items():
        dims = {str(n): tuple(map(str, v.dims)) for n, v in of_group.data_vars.items()}
        parts = of_group.data_vars, of_group.coords
        arrays, coords = ({str(n): v.values for n, v in part.items()} for part in parts)
        groups[name] = Group(arrays, dims, coords, of_group.attrs)
    return groups, {str(name): value for name, value in data.attrs.items()}


def plot_chains(axes: Any, values: Float64) -> None:
    """Plot chains: the densities, the traces and the ranks of every component, without titles.

    The ranks are those of the draws of a chain among the draws of all chains, compared with
    uniform ranks: with ArviZ 0.23 their histograms, with ArviZ 1 their quantiles.

    Args:
        axes: (n, 3) axes of Matplotlib.
        values: (C, D, n), components last.
    """
    az = import_arviz()
    plot = _plot_with_arviz_1 if arviz_version() >= 1 else _plot_with_arviz_0
    settings = {"plot.backend": "matplotlib", "plot.max_subplots": None}
    with az.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Your data appears to have a single value")
        plot(az, axes, values)
    for one in axes.flat:
        one.set(title="", xlabel="")


def _plot_with_arviz_0(az: Any, axes: Any, values: Float64) -> None:
    from matplotlib import MatplotlibDeprecationWarning
    from xarray import Dataset

    warnings.simplefilter("ignore", MatplotlibDeprecationWarning)  # of what ArviZ calls
    data = Dataset({"value": (_DIMS, values)})
    density = {"linewidth": _LINE}
    az.plot_trace(data, axes=axes[:, :2], compact=False, trace_kwargs=TRACE, plot_kwargs=density)
    lines = {f"{name}_kwargs": {"lw": _LINE} for name in ("ref_line", "vlines")}
    points = {"marker_vlines_kwargs": {"lw": 0, "marker": ".", "ms": 2}}
    ranked = data.fillna(np.inf)  # of NaN there are no ranks
    az.plot_rank(ranked, ax=axes[:, 2], kind="vlines", labels=False, **lines, **points)


def _plot_with_arviz_1(az: Any, axes: Any, values: Float64) -> None:
    """Plot chains, without `plot_rank`.

    In ArviZ 1.3 it takes 95 s for eight components of 4 chains with 10,000 draws, fails for a
    single chain, and prints a test that rejects converged chains whose draws are correlated.
    """
    from scipy.stats import rankdata
    from xarray import Dataset, DataTree

    chains, draws, size = values.shape
    ranks = rankdata(values.reshape(-1, size), axis=0).reshape(values.shape) - 0.5
    uniform = (np.arange(draws)[:, None] + 0.5) / draws
    differences = np.sort(ranks, axis=1) / (chains * draws) - uniform
    posterior, below = (Dataset({"value": (_DIMS, x)}) for x in (values, differences))
    data = DataTree.from_dict({"posterior": posterior, "ranks": below})
    left_out = "credible_interval", "point_estimate", "point_estimate_text", "remove_axis"
    line = {"width": _LINE}
    density = {**dict.fromkeys(left_out, False), "dist": line}
    trace = {"width": TRACE["linewidth"], "alpha": TRACE["alpha"]}
    of_density, of_traces, of_ranks = (
        az.PlotCollection(
            posterior,
            DataTree(Dataset({"plot": ("component", column)})),
            aes={"color": ["chain"]},
            backend="matplotlib",
        )
        for column in axes.T
    )
    az.plot_dist(data, kind="kde", plot_collection=of_density, visuals=density)
    az.plot_trace(data, plot_collection=of_traces, visuals={"trace": trace})
    az.plot_trace(data, group="ranks", plot_collection=of_ranks, visuals={"trace": line})
    for one in axes[:, 2]:
        one.axhline(0, color="k", linestyle="--", linewidth=_LINE)
        limit = max(0.25, *np.abs(one.get_ylim()))
        one.set_ylim(-limit, limit)
