"""ArviZ, in any supported version: the only module that imports it.

Up to 0.23 its data are an InferenceData, from 1 on a DataTree of xarray, and some functions have
other names and arguments. Everything here takes and returns the same under both. Functions of
plain arrays are those of ArviZ's package arviz-stats, which loads no plots.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bpa_ppl.errors import DataError, UsageError

if TYPE_CHECKING:
    from xarray import DataTree

    from bpa_ppl.nbest import Float64

#: ArviZ's InferenceData, or xarray's DataTree where ArviZ is 1 or later.
InferenceData: TypeAlias = Any

#: The change of the exponent in power scaling, as in ArviZ 0.
_DELTA = 0.01
#: The dimensions that all draws have.
SAMPLE_DIMS = ("chain", "draw")
#: Quantiles of the effective sample size of the tails (Vehtari et al. 2021).
TAILS = (0.05, 0.95)


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


def inference_data(
    groups: Mapping[str, Mapping[str, Any]],
    coords: Mapping[str, Any] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> InferenceData:
    """Return arrays by group and name as ArviZ's data: see `tree_of`.

    >>> data = inference_data({"posterior": {"x": np.zeros((2, 10))}})
    >>> dict(data_tree(data)["posterior"].sizes)
    {'chain': 2, 'draw': 10}
    """
    return arviz_data(tree_of(groups, coords, dims, attrs))


def tree_of(
    groups: Mapping[str, Mapping[str, Any]],
    coords: Mapping[str, Any] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> DataTree:
    """Return arrays by group and name as a DataTree, without loading ArviZ.

    Arrays of groups called `…data` have any shape; those of the others begin with chain and draw.

    Args:
        groups: empty groups are left out.
        coords: labels of dimensions; other dimensions are numbered from 0.
        dims: names of the dimensions of an array, without chain and draw; not used where the array
            has more or fewer dimensions, such as a log prior with one number per draw.
        attrs: of the whole.

    Raises:
        DataError: if a name contains a slash, which trees and NetCDF files cannot have.

    >>> tree = tree_of({"posterior": {"x": np.zeros((2, 10, 1))}}, dims={"x": ["feature"]})
    >>> dict(tree["posterior"].sizes)
    {'chain': 2, 'draw': 10, 'feature': 1}
    """
    from xarray import Dataset, DataTree

    datasets = {}
    for group, arrays in groups.items():
        if not arrays:
            continue
        if any("/" in name for name in arrays):
            raise DataError(f"names in a posterior cannot contain a slash: {', '.join(arrays):.80}")
        leading = () if "data" in group else SAMPLE_DIMS
        variables = {}
        for name, values in arrays.items():
            array = np.atleast_1d(values)
            numbered = [f"{name}_dim_{k}" for k in range(array.ndim - len(leading))]
            names_of_dims = list((dims or {}).get(name, numbered))
            used = names_of_dims if len(names_of_dims) == len(numbered) else numbered
            variables[name] = ((*leading, *used), array)
        dataset = Dataset(variables)
        sizes = {str(dim): size for dim, size in dataset.sizes.items()}
        labels = {dim: (coords or {}).get(dim, np.arange(n)) for dim, n in sizes.items()}
        datasets[group] = dataset.assign_coords(labels)
    tree = DataTree.from_dict(datasets)
    tree.attrs.update(attrs or {})
    return tree


def arviz_data(tree: DataTree) -> InferenceData:
    """Return a tree as ArviZ's data: the tree itself from ArviZ 1 on, InferenceData before."""
    if generation() >= 1:
        return tree
    datasets = {name: node.to_dataset() for name, node in tree.children.items()}
    return import_arviz().InferenceData(attrs=dict(tree.attrs), **datasets)


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
            "read_posterior"
        )
    tree = DataTree.from_dict({name: data[name] for name in data.groups()})
    tree.attrs.update(data.attrs)
    return tree


@contextmanager
def unlogged() -> Iterator[None]:
    """Drop log records of ArviZ that repeat its results, such as that draws are NaN."""

    def drop(record: logging.LogRecord) -> bool:
        return False

    loggers = [logging.getLogger(name) for name in ("arviz", "arviz_stats.base.stats_utils")]
    for logger in loggers:
        logger.addFilter(drop)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(drop)


def diagnostic(name: str, cells: Float64, method: str) -> Float64:
    """Return `ess`, `rhat` or `mcse` of the draws of some numbers, (C, D, n) ↦ (n,)."""
    tail = {"prob": TAILS} if method == "tail" else {}
    function = getattr(_arrays(), name)
    result = function(cells, chain_axis=0, draw_axis=1, method=method, **tail)
    return np.asarray(result, np.float64)


def autocorrelation(values: Float64) -> Float64:
    """Return the autocorrelation of each chain by lag, (C, D) ↦ (C, D)."""
    return np.asarray(_arrays().autocorr(values))


def psis(log_weight: Float64, r_eff: float = 1.0) -> tuple[Float64, float]:
    """Return Pareto-smoothed log weights, normalised, (D,), and k̂.

    With fewer effective draws than draws, `r_eff` of them, a longer tail is smoothed.

    Without a tail to fit, as where all weights but a few are 0, they are as they were, and k̂ is
    infinite.

    >>> psis(np.array([0.0] + 99 * [-1000.0]))[1]
    inf
    """
    try:
        with np.errstate(all="ignore"):
            # It takes log-likelihoods, whose negatives are the weights.
            smoothed, k_hat = _arrays().psislw(-log_weight, r_eff=r_eff)
    except ValueError:  # all of the tail is one number
        smoothed, k_hat = log_weight, np.inf
    if np.isnan(smoothed).any() or not k_hat < np.inf:
        return log_weight - np.logaddexp.reduce(log_weight), np.inf
    return np.asarray(smoothed), float(k_hat)


def loo(log_likelihood: Float64, r_eff: float) -> dict[str, Any]:
    """Return PSIS-LOO: `elpd`, `se`, `p`, and by observation `elpd_i` and `pareto_k`.

    The sums are those of ArviZ's function of that name (Vehtari, Gelman & Gabry 2017), which loads
    all of its plots. The variance in `se` is over n − 1, as in the paper and from ArviZ 1 on.

    Args:
        log_likelihood: (S, D) of each observation.
        r_eff: effective draws over draws.

    >>> result = loo(np.log(np.full((2, 100), 0.5)) + np.linspace(0, 1e-3, 100), 1.0)
    >>> round(result["elpd"], 2), round(result["se"], 6)
    (-1.39, 0.0)
    """
    # Where all draws say the same, as of a list of one hypothesis, there is nothing to smooth.
    with unlogged():
        results = [
            (np.full(len(row), -np.log(len(row))), 0.0)
            if np.ptp(row) == 0
            else _quietly(psis, -row, r_eff)
            for row in log_likelihood
        ]
    smoothed, k_hat = (np.array(part) for part in zip(*results, strict=True))
    terms = np.logaddexp.reduce(smoothed + log_likelihood, axis=1)
    count, draws = log_likelihood.shape
    fitted = np.logaddexp.reduce(log_likelihood, axis=1) - np.log(draws)
    return {
        "elpd": float(terms.sum()),
        "se": float(np.sqrt(count * np.var(terms, ddof=min(count - 1, 1)))),
        "p": float(fitted.sum() - terms.sum()),
        "elpd_i": np.asarray(terms),
        "pareto_k": np.asarray(k_hat),
    }


def compare(posteriors: Mapping[str, InferenceData]) -> Any:
    """Return the table that ranks posteriors by PSIS-LOO, a pandas data frame.

    Its columns are `elpd`, `behind`, how much that is less than the best, `dse`, `weight` and
    `warning`.
    """
    if generation() < 1:
        table = _quietly(import_arviz().compare, posteriors, ic="loo")
        return table.rename(columns={"elpd_loo": "elpd", "elpd_diff": "behind"})
    loos = {n: _quietly(import_arviz().loo, data, pointwise=True) for n, data in posteriors.items()}
    table = _quietly(import_arviz().compare, loos, round_to="none")
    warned = [bool(loos[name].warning) for name in table.index]
    return table.assign(behind=-table["elpd_diff"], warning=warned)


def power_scaling(draws: Float64, log_density: Float64) -> Float64:
    """Return power-scaling sensitivities of some numbers, (C, D, n) ↦ (n,).

    Source: Kallioinen et al. (2024).

    Args:
        draws: of equal weight.
        log_density: (C, D) of the factor that is raised to a power: the prior or the likelihood.
    """
    alphas, arrays = (1 / (1 + _DELTA), 1 + _DELTA), _arrays()
    if np.ptp(log_density) == 0:
        return np.zeros(draws.shape[-1])
    with np.errstate(all="ignore"), unlogged():
        flat = log_density.reshape(-1)
        logs = [_quietly(arrays.power_scale_lw, flat, alpha=alpha) for alpha in alphas]
        lower, upper = (np.exp(log - np.logaddexp.reduce(log)) for log in logs)
        weights = lower.reshape(log_density.shape), upper.reshape(log_density.shape)
        cells = np.moveaxis(draws, -1, 0)
        return np.array([arrays.power_scale_sense(x, *weights, *alphas) for x in cells], float)


def _arrays() -> Any:
    """Return ArviZ's functions of plain arrays."""
    from arviz_stats.base import array_stats

    return array_stats


def _quietly(function: Any, *arguments: Any, **options: Any) -> Any:
    """Call without warnings that repeat the result or concern ArviZ's use of pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto", UserWarning)
        warnings.filterwarnings("ignore", "The inplace keyword")
        warnings.filterwarnings("ignore", "Number of tail draws", UserWarning)
        return function(*arguments, **options)
