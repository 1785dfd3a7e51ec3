"""ArviZ, whichever is installed: the only module that imports it.

Up to 0.23 its data are an InferenceData, from 1 on a DataTree of xarray, and some functions have
other names and arguments. Everything here takes and gives the same under both. Functions of plain
arrays are those of ArviZ's package arviz-stats under both, which need no plots, and with them half
a second of imports.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from bpa_ppl.errors import UsageError
from bpa_ppl.lazily import uncollected
from bpa_ppl.posterior.groups import Group, Groups, Variable, grouped

if TYPE_CHECKING:
    from xarray import Dataset

    from bpa_ppl.nbest import Float64

#: ArviZ's InferenceData, or xarray's DataTree where ArviZ is 1 or later.
InferenceData: TypeAlias = Any

#: By how much power scaling changes the exponent; that of ArviZ 0.
_DELTA = 0.01
#: Quantiles whose effective sample size is that of the tails (Vehtari et al. 2021).
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
    with warnings.catch_warnings(), uncollected("arviz"), _nothing_compiled():
        warnings.filterwarnings("ignore", "\\s*ArviZ is undergoing", FutureWarning)
        import arviz
    return arviz


@contextmanager
def _nothing_compiled() -> Iterator[None]:
    """Have functions that a module vectorizes by Numba compiled when they are first called.

    ArviZ 0 has one, for a band of a plot, and compiling it is half of its import.
    """
    if generation() >= 1:
        yield
        return
    import numba

    def later(*given: Any, **options: Any) -> Any:
        def of(function: Callable[..., Any]) -> Callable[..., Any]:
            made = cache(lambda: vectorize(*given, **options)(function))  # type: ignore[no-untyped-call]
            return wraps(function)(lambda *arguments: made()(*arguments))

        # Only with signatures is something compiled at once.
        if given and isinstance(given[0], list):
            return of
        return vectorize(*given, **options)  # type: ignore[no-untyped-call]

    vectorize, numba.vectorize = numba.vectorize, later
    try:
        yield
    finally:
        numba.vectorize = vectorize


def inference_data(
    groups: Mapping[str, Mapping[str, Any]],
    coords: Mapping[str, Any] | None = None,
    dims: Mapping[str, Sequence[str]] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> InferenceData:
    """Return arrays by group and name as ArviZ's data: see `grouped`.

    >>> data = inference_data({"posterior": {"x": np.zeros((2, 10))}})
    >>> dict(datasets(data)["posterior"].sizes)
    {'chain': 2, 'draw': 10}
    """
    return of_groups(grouped(groups, coords, dims, attrs))


def of_groups(groups: Groups) -> InferenceData:
    """Return groups of arrays as ArviZ's data."""
    with uncollected("xarray"):
        from xarray import Dataset

    made = {
        name: Dataset(_plain(one.arrays), _plain(one.coords), one.attrs)
        for name, one in groups.groups.items()
    }
    return of_datasets(made, groups.attrs)


def _plain(variables: Mapping[str, Variable]) -> dict[str, Any]:
    return {name: tuple(variable) for name, variable in variables.items()}


def of_datasets(groups: Mapping[str, Dataset], attrs: Mapping[str, Any]) -> InferenceData:
    """Return xarray's datasets as the groups of ArviZ's data, whichever ArviZ is installed."""
    if generation() < 1:
        return import_arviz().InferenceData(attrs=dict(attrs), **groups)
    from xarray import DataTree

    tree = DataTree.from_dict(dict(groups))
    tree.attrs.update(attrs)
    return tree


def groups_of(data: InferenceData, *, encoded: bool = False) -> Groups:
    """Return the groups of ArviZ's data as arrays.

    Args:
        data: InferenceData or a DataTree.
        encoded: whether dates and the like are numbers with attributes, as NetCDF has them.

    Raises:
        UsageError: if it is neither.

    >>> groups_of(inference_data({"posterior": {"x": np.zeros((2, 10))}})).groups["posterior"].sizes
    {'chain': 2, 'draw': 10}
    """
    made = {name: _group_of(one, encoded) for name, one in datasets(data).items()}
    return Groups(made, data.attrs)


def _group_of(found: Dataset, encoded: bool) -> Group:
    variables, attrs = dict(found.variables), found.attrs
    if encoded:
        from xarray.conventions import encode_cf_variable, encode_dataset_coordinates

        named, attrs = encode_dataset_coordinates(found)
        variables = {name: encode_cf_variable(one, name=name) for name, one in named.items()}
    taken = {
        str(name): Variable(tuple(map(str, one.dims)), one.values, one.attrs)
        for name, one in variables.items()
    }
    return Group.of(taken, {str(name) for name in found.coords}, attrs)


def decoded(groups: Groups) -> Groups:
    """Return groups as they stand in a NetCDF file with its dates, gaps and scales worked out."""
    from xarray import Dataset, decode_cf

    made = {
        name: decode_cf(Dataset(_plain({**one.arrays, **one.coords}), attrs=one.attrs))
        for name, one in groups.groups.items()
    }
    return Groups({name: _group_of(one, False) for name, one in made.items()}, groups.attrs)


def datasets(data: InferenceData) -> dict[str, Dataset]:
    """Return the groups of InferenceData or of a DataTree, by name.

    Raises:
        UsageError: if it is neither.
    """
    if hasattr(data, "children") and hasattr(data, "to_dataset"):
        return {name: node.to_dataset() for name, node in data.children.items()}
    if not callable(getattr(data, "groups", None)):
        raise UsageError(
            f"a posterior is InferenceData or Draws, not {type(data).__name__}: read it with "
            "read_posterior"
        )
    return {name: data[name] for name in data.groups()}


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep ArviZ from logging what the numbers say too, such as that draws are NaN."""
    loggers = [logging.getLogger(name) for name in ("arviz", "arviz_stats.base.stats_utils")]
    before = [logger.disabled for logger in loggers]
    try:
        for logger in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was


def diagnostic(name: str, cells: Float64, method: str) -> Float64:
    """Return `ess`, `rhat` or `mcse` of the draws of some numbers, (C, D, n) ↦ (n,)."""
    tail = {"prob": TAILS} if method == "tail" else {}
    function = getattr(_arrays(), name)
    found = function(cells, chain_axis=0, draw_axis=1, method=method, **tail)
    return np.asarray(found, np.float64)


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

    >>> found = loo(np.log(np.full((2, 100), 0.5)) + np.linspace(0, 1e-3, 100), 1.0)
    >>> round(found["elpd"], 2), round(found["se"], 6)
    (-1.39, 0.0)
    """
    # Where all draws say the same, as of a list of one hypothesis, there is nothing to smooth.
    with unlogged():
        found = [
            (np.full(len(row), -np.log(len(row))), 0.0)
            if np.ptp(row) == 0
            else _quietly(psis, -row, r_eff)
            for row in log_likelihood
        ]
    smoothed, k_hat = (np.array(part) for part in zip(*found, strict=True))
    terms = np.logaddexp.reduce(smoothed + log_likelihood, axis=1)
    count, draws = log_likelihood.shape
    seen = np.logaddexp.reduce(log_likelihood, axis=1) - np.log(draws)
    return {
        "elpd": float(terms.sum()),
        "se": float(np.sqrt(count * np.var(terms, ddof=min(count - 1, 1)))),
        "p": float(seen.sum() - terms.sum()),
        "elpd_i": np.asarray(terms),
        "pareto_k": np.asarray(k_hat),
    }


def compare(every: Mapping[str, InferenceData]) -> Any:
    """Return the table that ranks posteriors by PSIS-LOO, a pandas data frame.

    Its columns are `elpd`, `behind`, how much that is less than the best, `dse`, `weight` and
    `warning`.
    """
    if generation() < 1:
        table = _quietly(import_arviz().compare, every, ic="loo")
        return table.rename(columns={"elpd_loo": "elpd", "elpd_diff": "behind"})
    found = {n: _quietly(import_arviz().loo, data, pointwise=True) for n, data in every.items()}
    table = _quietly(import_arviz().compare, found, round_to="none")
    warned = [bool(found[name].warning) for name in table.index]
    return table.assign(behind=-table["elpd_diff"], warning=warned)


def power_scaling(draws: Float64, log_density: Float64) -> Float64:
    """Return power-scaling sensitivities of some numbers, (C, D, n) ↦ (n,).

    Source: Kallioinen et al. (2024).

    Args:
        draws: of equal weight.
        log_density: (C, D) of the prior or of the likelihood, whichever is raised to a power.
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
        return np.array([arrays.power_scale_sense(one, *weights, *alphas) for one in cells], float)


@cache
def _arrays() -> Any:
    """Return ArviZ's functions of plain arrays.

    Without arviz-base their package has no others, and finds that out after loading xarray: where
    that is so, it is told at once.
    """
    others = "arviz_stats.utils"
    alone = find_spec("arviz_base") is None and others not in sys.modules
    if alone:
        sys.modules[others] = None  # type: ignore[assignment] # for Python: there is none
    try:
        with uncollected("arviz_stats.base"):
            from arviz_stats.base import array_stats
    finally:
        if alone:
            del sys.modules[others]
    return array_stats


def _quietly(function: Any, *arguments: Any, **options: Any) -> Any:
    """Call without warnings of what the result says too, or of ArviZ's affairs with pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto", UserWarning)
        warnings.filterwarnings("ignore", "The inplace keyword")
        warnings.filterwarnings("ignore", "Number of tail draws", UserWarning)
        return function(*arguments, **options)
