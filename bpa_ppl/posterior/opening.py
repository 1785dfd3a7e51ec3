"""The one door of posteriors: a function opens those of any program and form."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl._runtime.messages import log_info
from bpa_ppl.errors import DataError, UsageError, list_names, write_option, wrong_shape
from bpa_ppl.posterior.arviz_data import (
    EXCHANGED,
    LOG_WEIGHT,
    SCHEMA,
    as_draws,
    describe_dims,
    find_draws,
    from_groups,
    to_arviz,
)
from bpa_ppl.posterior.arviz_functions import (
    import_arviz,
    is_arviz_data,
    split_groups,
    to_arviz_data,
    to_datasets,
)
from bpa_ppl.posterior.draws import Draws, choose_components, importance_weights
from bpa_ppl.posterior.files import name_file, read_groups
from bpa_ppl.posterior.groups import SAMPLE_DIMS, Group, label_groups, require_equal_lengths
from bpa_ppl.posterior.selection import (
    NOT_NUMBERS,
    Opened,
    describe_left_out,
    describe_nothing,
    select_variables,
)
from bpa_ppl.posterior.tables import CSV, read_csv, read_table, split_statistics
from bpa_ppl.posterior.weight_draws import WEIGHTS, WeightDraws

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

#: The groups of a posterior, and the attributes of the whole.
_Groups = tuple[Mapping[str, Group], Mapping[str, Any]]
#: Says that draws have no importance weights, although a variable has the name of weights.
NO_WEIGHTS = "none"
#: The kinds of types of real numbers.
_NUMBERS = "biuf"
#: A name that says weight: importance_weights, logwt, log_w, lw; and of a statistic also w, wt.
_IS_WEIGHT = re.compile(r"weight|(?<![a-z])(log_?wt?|lw)s?(?![a-z])", re.IGNORECASE)
_IS_STATISTIC = re.compile(r"weight|importance|(?<![a-z])(l?n?_?wt?|log_?wt?|iw)s?(?![a-z])", re.I)
_IS_LOG = re.compile(r"log|(?<![a-z])ln?_?w", re.IGNORECASE)
#: Statistics of ArviZ whose values are not negative, and may have the sum 1 by chance.
_NEVER_WEIGHTS = ("acceptance_rate", "energy", "step_size")
#: How far the sum of weights that are normalised may be from 1.
_SUM = 1e-6
#: Statistics, and columns of tables, that say which draws are of the warm-up.
_WARMUP = ("tune", "tuning", "warmup", "warming_up")
#: How samples of NumPyro keep their chains.
GROUPED = "mcmc.get_samples(group_by_chain=True) of NumPyro"
#: The files of a folder that Zarr has written.
_ZARR = (".zgroup", ".zmetadata", "zarr.json")
_FORMS = (
    "a posterior is InferenceData, a DataTree, a Dataset, Draws, arrays by name, a data frame with "
    "the columns chain and draw, the path of a file, or NumPyro's MCMC or emcee's sampler after "
    "its run"
)
#: What to do about objects of other types.
_CALLS = {
    "DataArray": 'call its to_dataset(name="theta")',
    "CmdStanMCMC": "call its draws_pd()",
    "ndarray": 'name it, {"theta": values}, with the shape (chains, draws, …)',
    "list": "of files give a pattern, as output_*.csv; if it has a dictionary of each chain, take "
    "{name: numpy.array([chain[name] for chain in draws]) for name in draws[0]}",
}
#: What to do about files of other programs, by the ending of their names.
_OPENED_BY = {
    ".npz": "give dict(numpy.load(path)), arrays of the shape (chains, draws, …) by name",
    ".npy": 'give {"theta": numpy.load(path)}, of the shape (chains, draws, …)',
    ".txt": 'read a text table by table = pandas.read_csv(path, sep=r"\\s+"), and give '
    "table.assign(chain=0, draw=range(len(table))); of a nested sampler, name the column of the "
    "weights by log_weights",
}


def open_posterior(
    data: Any, name: str = "the posterior", *, log_weights: str | None = None
) -> Opened:
    """Return a posterior in any form as draws of its variables that are numbers.

    Args:
        data: InferenceData, a DataTree, a Dataset, `Draws`, arrays by name, (chains, draws, …), a
            data frame with the columns chain and draw, the path of a file of NetCDF, of a folder of
            Zarr or of CSV files (of Stan by a pattern), or NumPyro's `MCMC` or emcee's sampler
            after its run.
        name: of the posterior, for messages.
        log_weights: the variable with the importance weights of draws, or their logarithms; `none`
            if there are no such weights.

    Raises:
        DataError: if a file cannot be read, draws have no chains, chains differ in length or have
            draws of the warm-up, or a variable has the name of weights and `log_weights` is None.
        UsageError: if it is not a posterior.

    >>> open_posterior({"mu": np.zeros((4, 100))}).draws.names
    ('mu',)
    """
    if isinstance(data, Draws | WeightDraws):
        return Opened(as_draws(data, finite=False), {})
    is_path = isinstance(data, str | Path)
    with name_file(data) if is_path else nullcontext():
        groups, attrs = _read(data, name)
        if SCHEMA in attrs:
            return Opened(from_groups(groups, attrs), {})
        _require_draws(groups, name)
        _require_whole_chains(groups, data, name)
        drawn = find_draws(groups["posterior"]).items()
        left_out = {NOT_NUMBERS: [n for n, x in drawn if x.dtype.kind not in _NUMBERS]}
        if len(left_out[NOT_NUMBERS]) == len(drawn):
            raise describe_nothing(left_out)
        groups = _name_log_weights(groups, name, log_weights)
        return Opened(from_groups(groups, attrs), left_out)


def _read(data: Any, name: str) -> _Groups:
    """Return the groups of a posterior in any form, and the attributes of the whole."""
    if isinstance(data, str | Path):
        suffix = Path(data).suffix.lower()
        if suffix == CSV:
            return read_csv(data)
        if suffix in _OPENED_BY and os.path.exists(data):
            problem = f"a posterior is a file of NetCDF, Zarr or CSV: {_OPENED_BY[suffix]}"
            raise DataError(problem, data, code="unknown-format")
        is_zarr = any(os.path.exists(os.path.join(data, file)) for file in _ZARR)
        return _read_zarr(data) if is_zarr else read_groups(data)
    if isinstance(data, dict):
        return label_groups(split_statistics(_read_arrays(data, name))), {}
    if is_arviz_data(data):
        return split_groups(data)
    if type(data).__name__ in _CALLS:
        raise _describe_wrong_type(data)
    if hasattr(data, "__arrow_c_stream__"):  # a data frame of pandas, Polars or Arrow
        return read_table(data)
    if hasattr(data, "get_samples") and hasattr(data, "get_extra_fields"):  # NumPyro's MCMC
        if data.last_state is None:
            raise _describe_no_draws(data)
        return split_groups(import_arviz().from_numpyro(data, log_likelihood=False))
    if hasattr(data, "get_chain") and hasattr(data, "get_log_prob"):  # emcee's EnsembleSampler
        return _read_emcee(data), {}
    raise _describe_wrong_type(data)


def _describe_wrong_type(data: Any) -> UsageError:
    kind = type(data).__name__
    call = f": {_CALLS[kind]}" if kind in _CALLS else ""
    return UsageError(f"{_FORMS}, not {kind}{call}", parameter="posterior", code="wrong-type")


def _describe_no_draws(sampler: Any) -> DataError:
    problem = f"the {type(sampler).__name__} has no draws: run it first"
    return DataError(problem, parameter="posterior", code="no-data")


def _read_zarr(path: str | Path) -> _Groups:
    """Return the groups of a folder of Zarr, and the attributes of the whole.

    Raises:
        DataError: if Zarr is not installed, or cannot read it.
    """
    if find_spec("zarr") is None:
        raise DataError("a folder of Zarr needs the package zarr", path, code="missing-package")
    from xarray import open_datatree

    try:
        with open_datatree(path, engine="zarr") as tree:
            return split_groups(tree.load())
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = next(iter(str(error).splitlines()), "")
        message = f"not a folder that Zarr reads ({reason:.300}): create it again"
        raise DataError(message, path, code="damaged") from error


def _read_emcee(sampler: Any) -> dict[str, Group]:
    """Return the groups of a sampler of emcee: each walker is a chain.

    Its documented methods return arrays (draws, walkers, …). The variables have the names that the
    sampler has, or those of ArviZ, `var_0`.

    Raises:
        DataError: if it has not run.
    """
    try:
        values, log_density = sampler.get_chain(), sampler.get_log_prob()
    except AttributeError as error:  # emcee's error of a sampler that has not run
        raise _describe_no_draws(sampler) from error
    draws = np.swapaxes(np.asarray(values), 0, 1)
    named = getattr(sampler, "parameter_names", None)
    names = named if isinstance(named, Mapping) else {n: k for k, n in enumerate(named or ())}
    names = names or {f"var_{k}": k for k in range(draws.shape[-1])}
    arrays = {str(name): draws[..., places] for name, places in names.items()}
    statistics = {"lp": np.swapaxes(np.asarray(log_density), 0, 1)}
    return label_groups({"posterior": arrays, "sample_stats": statistics})


def _read_arrays(data: Mapping[Any, Any], name: str) -> dict[str, Any]:
    """Return arrays by name; masked values become NaN.

    Raises:
        DataError: if one has no chains, or its chains differ in length.
    """
    arrays = {}
    for key, values in data.items():
        # Chains of other lengths make no array.
        if isinstance(values, list | tuple) and len({np.shape(chain) for chain in values}) > 1:
            counts = {f"chain {k} of {key}": len(chain) for k, chain in enumerate(values)}
            least = min(counts.values())
            remedy = f"{{name: numpy.array([chain[:{least}] for chain in chains]) for name, chains "
            require_equal_lengths(counts, remedy=f"{remedy}in draws.items()}}")
        array = np.ma.asarray(values) if np.ma.isMA(values) else np.asarray(values)
        if np.ma.isMA(array):
            array = np.ma.filled(array.astype(np.result_type(array.dtype, np.float64)), np.nan)
        if array.ndim < 2:
            raise DataError(
                f"{key} of {name} has the shape {array.shape}: it must begin with (chains, draws); "
                f'of one chain take draws["{key}"][None], and of several '
                f'numpy.array([chain["{key}"] for chain in chains]) or {GROUPED}',
                code="wrong-length",
            )
        arrays[str(key)] = array
    sizes = {key: array.shape[:2] for key, array in arrays.items()}
    for key, shape in sizes.items():
        if shape != (expected := next(iter(sizes.values()))):
            raise wrong_shape(f"{key} of {name}", shape, f"{expected} of {next(iter(sizes))}")
    return arrays


def is_arrays(data: Any) -> bool:
    """Return whether something is arrays by name, of which one may be a list of chains.

    >>> is_arrays({"mu": np.zeros((2, 9))}), is_arrays({"mu": [[0.1, 0.2], [0.3]]})
    (True, True)
    >>> is_arrays({"stan": ["a.nc", "b.nc"], "mine": ["c.nc"]})
    False
    """
    numbers = int, float, list, tuple
    return isinstance(data, dict) and all(
        hasattr(x, "dtype")
        or (
            isinstance(x, list | tuple)
            and bool(x)
            and all(hasattr(chain, "dtype") or isinstance(chain, numbers) for chain in x)
        )
        for x in data.values()
    )


def _require_draws(groups: Mapping[str, Group], name: str) -> None:
    """Refuse a posterior without draws.

    Raises:
        DataError: if no variable has chains and draws.
    """
    group = groups.get("posterior", Group({}, {}, {}, {}))
    if group.arrays and not find_draws(group):
        message = f"in {name}, {describe_dims(group, next(iter(group.arrays)))}"
        raise DataError(message, code="wrong-length")
    if not group.arrays:
        content = f"it has the groups {list_names(groups)}" if groups else "it is empty"
        if "mcmc" in groups:
            content += "; of emcee, give emcee.backends.HDFBackend(path)"
        raise DataError(f"{name} has no draws: {content}", code="no-data")


def _require_whole_chains(groups: Mapping[str, Group], data: Any, name: str) -> None:
    """Refuse chains that are filled up with NaN, and draws of the warm-up among the others.

    Raises:
        DataError: if there are any.
    """
    drawn = find_draws(groups["posterior"])
    chains, kept = next(iter(drawn.values())).shape[:2]
    if 0 < kept < chains:
        problem = f"{name} has {chains} chains of {kept} draws"
        raise DataError(
            f"{problem}: exchange chain and draw, {_exchange(data)}", code="wrong-length"
        )
    statistics = find_draws(groups["sample_stats"]) if "sample_stats" in groups else {}
    numbers = [x for x in drawn.values() if x.dtype.kind == "f" and x.size]
    if numbers and len(shapes := {x.shape[:2] for x in drawn.values()}) == 1:
        (shape,) = shapes
        present = np.any([~np.isnan(x.reshape(*shape, -1)).all(axis=-1) for x in numbers], axis=0)
        counts = shape[1] - np.argmax(present[:, ::-1], axis=1)
        counts[~present.any(axis=1)] = 0
        if counts.max() > 0 and counts.min() < shape[1]:
            least = int(counts.min())
            chains = {f"chain {k} of {name}": int(n) for k, n in enumerate(counts)}
            remedy = _select(data, f":{least}")
            require_equal_lengths(chains, remedy=remedy)
            problem = f"the draws of {name} from {least} on are NaN: keep the others, {remedy}"
            raise DataError(problem, code="bad-number")
    flags = {n: x for n, x in {**drawn, **statistics}.items() if n.lstrip(".") in _WARMUP}
    for key, flag in flags.items():
        if flag.dtype.kind == "b" and flag.any():
            first = int(flag.shape[1] - np.argmax(flag.any(axis=0)[::-1]))
            raise DataError(
                f"{name} has draws of the warm-up, as {key} says, up to draw {first}: keep the "
                f"others, {_select(data, f'{first}:')}"
            )


def _exchange(data: Any) -> str:
    """Return the expression that exchanges chains and draws, for a message."""
    if isinstance(data, dict):
        swapped = "{name: numpy.swapaxes(values, 0, 1) for name, values in draws.items()}"
        return f"or take {GROUPED}, whose chains are apart: {swapped}"
    if is_arviz_data(data):
        return EXCHANGED
    if isinstance(data, str | Path) and Path(data).suffix != CSV:
        return f"{EXCHANGED}, where data is arviz.from_netcdf(path)"
    return "or run fewer chains for longer"


def _select(data: Any, part: str) -> str:
    """Return the expression that selects a part of the draws, for a message."""
    if isinstance(data, dict):
        return f"{{name: values[:, {part}] for name, values in draws.items()}}"
    start, _, end = part.partition(":")
    selected = f"isel(draw=slice({start or None}, {end or None}))"
    if hasattr(data, "data_vars") and not getattr(data, "children", None):
        return f"data.{selected}"
    if isinstance(data, str | Path) and Path(data).suffix != CSV:
        return f'arviz.from_netcdf(path)["posterior"].{selected}'
    return f'data["posterior"].{selected}' if is_arviz_data(data) else f"rows [{part}] of a chain"


def _name_log_weights(
    groups: Mapping[str, Group], name: str, log_weights: str | None
) -> Mapping[str, Group]:
    """Return groups with importance weights where `from_groups` reads them, or without any.

    Named weights have the sum 1, so that runs with other constants have equal weight.

    Raises:
        DataError: if a variable may have weights, and it is not known whether it does.
    """
    statistics = groups.get("sample_stats", Group({}, {}, {}, {}))
    if log_weights == NO_WEIGHTS:
        return {**groups, "sample_stats": _without(statistics, LOG_WEIGHT)}
    drawn = {
        title: {
            v: x
            for v, x in find_draws(groups[title]).items()
            if x.ndim == 2 and x.dtype.kind == "f"
        }
        for title in ("posterior", "sample_stats")
        if title in groups
    }
    if columns := [of[log_weights] for of in drawn.values() if log_weights in of]:
        parts = {title: _without(groups[title], str(log_weights)) for title in drawn}
        logs = _read_logs(columns[0], str(log_weights), name)
        with np.errstate(divide="ignore", invalid="ignore"):  # a weight of 0; NaN is refused later
            logs = np.log(importance_weights(logs))
        statistics = parts.get("sample_stats", statistics)
        arrays, dims = statistics.arrays, statistics.dims
        parts["sample_stats"] = statistics._replace(
            arrays={**arrays, LOG_WEIGHT: logs}, dims={**dims, LOG_WEIGHT: SAMPLE_DIMS}
        )
        return {**groups, **parts}
    suspected = [
        v
        for title, of in drawn.items()
        for v, x in of.items()
        if (title, v) != ("posterior", WEIGHTS) and _may_weigh(title, v, x)
    ]
    if suspected and LOG_WEIGHT not in drawn.get("sample_stats", {}):
        problem = f"{suspected[0]} of {name} may be importance weights of the draws"
        some, none = (write_option("log-weights", one) for one in (suspected[0], NO_WEIGHTS))
        message = f"{problem}: if it is, name it ({some}), otherwise none ({none})"
        raise DataError(message, parameter="log_weights", code="missing-argument")
    return groups


def _may_weigh(title: str, name: str, values: Any) -> bool:
    """Return whether a variable may have importance weights: by its name, or by its sum."""
    if title != "sample_stats":
        return bool(_IS_WEIGHT.search(name)) or _is_normalised(values)
    return name not in _NEVER_WEIGHTS and (
        bool(_IS_STATISTIC.search(name)) or _is_normalised(values)
    )


def _is_normalised(values: Any) -> bool:
    """Return whether values are not negative, and have the sum 1."""
    return values.size > 1 and bool(values.min() >= 0 and abs(values.sum() - 1) < _SUM)


def _read_logs(values: Any, variable: str, name: str) -> Any:
    """Return logarithms of importance weights, of a variable that has these or the weights.

    Raises:
        DataError: if it may have either.
    """
    if _is_normalised(values):
        with np.errstate(divide="ignore"):
            return np.log(values)
    if values.size and values.min() >= 0 and not _IS_LOG.search(variable):
        message = (
            f"{variable} of {name} is nowhere negative, and may have weights or logarithms: divide "
            "weights by their sum, or subtract the maximum of logarithms"
        )
        raise DataError(message, parameter="log_weights", code="bad-number")
    return values


def _without(group: Group, name: str) -> Group:
    return group._replace(arrays={v: x for v, x in group.arrays.items() if v != name})


def open_draws(
    data: Any,
    name: str = "the posterior",
    *,
    var_names: Sequence[str] | None = None,
    log_weights: str | None = None,
) -> Opened:
    """Return the draws of a posterior in any form, and which of its variables are left out.

    Left out are texts and complex numbers and, of other programs, discrete variables and cells that
    are not finite numbers, unless `var_names` names them, or there are weights of features.

    Raises:
        DataError: as `open_posterior`, or if there is no continuous variable, or none of a name.
        UsageError: if it is not a posterior.

    >>> theta = np.random.default_rng(0).normal(size=(2, 9, 2))
    >>> theta[0, 3, 1] = np.nan
    >>> values = {"mu": theta[..., 0], "theta": theta}
    >>> draws, left_out = open_draws(values)
    >>> list(draws.components()), left_out
    (['mu', 'theta[0]'], {'not finite': ['theta[1]']})
    """
    draws, left_out = open_posterior(data, name, log_weights=log_weights)
    if var_names is not None:
        draws, _ = select_variables(draws, var_names)
        choose_components(draws, var_names)  # refuses unknown names
        return Opened(draws, {})
    draws, others = select_variables(draws)
    return Opened(draws, {why: of for why, of in {**left_out, **others}.items() if of})


def open_to_show(
    data: Any, *, var_names: Sequence[str] | None = None, log_weights: str | None = None
) -> Draws:
    """Return the draws of a posterior in any form, and log which variables are left out."""
    draws, left_out = open_draws(data, var_names=var_names, log_weights=log_weights)
    for sentence in describe_left_out("shown", left_out):
        log_info(sentence)
    return draws


def read_posterior(posterior: Any) -> InferenceData:
    """Return a posterior in any form as ArviZ's data: InferenceData, or a DataTree with ArviZ 1.

    It is a NetCDF file, a folder of Zarr, CSV files of Stan by a pattern such as `output_*.csv`,
    a CSV file or a data frame with the columns chain and draw; arrays by name, (chains, draws, …);
    NumPyro's `MCMC` or emcee's sampler after its run; or ArviZ's data.

    Raises:
        DataError: naming the file, if it cannot be read or is damaged, or holds no draws.
        UsageError: if it is not a posterior.

    >>> read_posterior("no.nc")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: no.nc: no such file: give a NetCDF file of `bpa adapt`, or of ...
    """
    if isinstance(posterior, Draws | WeightDraws):
        return to_arviz(posterior)
    groups, attrs = _read(posterior, "the posterior")
    with name_file(posterior) if isinstance(posterior, str | Path) else nullcontext():
        if SCHEMA in attrs:
            as_draws(from_groups(groups, attrs))
        else:
            _require_draws(groups, "the posterior")
    return to_arviz_data(to_datasets(groups), attrs)
