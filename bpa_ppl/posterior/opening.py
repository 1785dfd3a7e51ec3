"""The one door of posteriors: a function opens those of any program and form."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl._runtime.messages import log_info
from bpa_ppl.errors import DataError, UsageError, list_names, wrong_shape, wrong_value
from bpa_ppl.posterior.arviz_data import (
    LOG_WEIGHT,
    SCHEMA,
    as_draws,
    describe_dims,
    exchanged,
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
from bpa_ppl.posterior.draws import Draws, choose_components, importance_weights, unwrap
from bpa_ppl.posterior.files import name_file, read_groups
from bpa_ppl.posterior.groups import (
    OTHER_PROGRAMS,
    SAMPLE_DIMS,
    Group,
    label_groups,
    require_equal_lengths,
)
from bpa_ppl.posterior.selection import (
    NOT_NUMBERS,
    Opened,
    describe_left_out,
    describe_nothing,
    select_variables,
)
from bpa_ppl.posterior.tables import CSV, read_csv, read_table, split_statistics

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

#: The groups of a posterior, and the attributes of the whole.
_Groups = tuple[Mapping[str, Group], Mapping[str, Any]]
#: The kinds of types of real numbers.
_NUMBERS = "biuf"
#: A name that says logarithms of weights: logwt, log_w, lnw, lw.
_IS_LOG = re.compile(r"log|(?<![a-z])ln?_?w", re.IGNORECASE)
#: How far the sum of weights that are normalised may be from 1.
_SUM = 1e-6
#: Statistics, and columns of tables, that say which draws are of the warm-up.
_WARMUP = ("tune", "tuning", "warmup", "warming_up")
_FORMS = (
    "a posterior is InferenceData, a DataTree, a Dataset, Draws, arrays by name, a data frame with "
    "the columns chain and draw, the path of a file of NetCDF or CSV, or NumPyro's MCMC after its "
    "run"
)


def open_posterior(
    data: Any, name: str = "the posterior", *, log_weights: str | None = None
) -> Opened:
    """Return a posterior in any form as draws of its variables that are numbers.

    Args:
        data: InferenceData, a DataTree, a Dataset, `Draws`, arrays by name, (chains, draws, …), a
            data frame with the columns chain and draw, the path of a file of NetCDF or of CSV files
            (of Stan by a pattern), or NumPyro's `MCMC` after its run.
        name: of the posterior, for messages.
        log_weights: the variable with the importance weights of draws, or their logarithms, in
            posteriors that have it.

    Raises:
        DataError: if a file cannot be read, draws have no chains, or chains differ in length or
            have draws of the warm-up.
        UsageError: if it is not a posterior.

    >>> open_posterior({"mu": np.zeros((4, 100))}).draws.names
    ('mu',)
    """
    if isinstance(draws := unwrap(data), Draws):
        return Opened(draws, {})
    is_path = isinstance(data, str | Path)
    with name_file(data) if is_path else nullcontext():
        groups, attrs = _read(data, name)
        if SCHEMA in attrs:
            return Opened(from_groups(groups, attrs), {})
        _require_draws(groups, name)
        _require_whole_chains(groups, name)
        drawn = find_draws(groups["posterior"]).items()
        left_out = {NOT_NUMBERS: [n for n, x in drawn if x.dtype.kind not in _NUMBERS]}
        if len(left_out[NOT_NUMBERS]) == len(drawn):
            raise describe_nothing(left_out)
        if log_weights is not None:
            groups = _name_log_weights(groups, name, log_weights)
        return Opened(from_groups(groups, attrs), left_out)


def _read(data: Any, name: str) -> _Groups:
    """Return the groups of a posterior in any form, and the attributes of the whole."""
    if isinstance(data, str | Path):
        return read_csv(data) if Path(data).suffix.lower() == CSV else read_groups(data)
    if isinstance(data, dict):
        return label_groups(split_statistics(_read_arrays(data, name))), {}
    if is_arviz_data(data):
        return split_groups(data)
    # A data frame of pandas, Polars or Arrow; an array of xarray exports a stream, too.
    if hasattr(data, "__arrow_c_stream__") and not hasattr(data, "dims"):
        return read_table(data)
    if hasattr(data, "get_samples") and hasattr(data, "get_extra_fields"):  # NumPyro's MCMC
        if data.last_state is None:
            problem = f"the {type(data).__name__} has no draws: run it first"
            raise DataError(problem, parameter="posterior", code="no-data")
        return split_groups(import_arviz().from_numpyro(data, log_likelihood=False))
    message = f"{_FORMS}, not {type(data).__name__}: {OTHER_PROGRAMS}"
    raise UsageError(message, parameter="posterior", code="wrong-type")


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
            require_equal_lengths(counts)
        array = np.ma.asarray(values) if np.ma.isMA(values) else np.asarray(values)
        if np.ma.isMA(array):
            array = np.ma.filled(array.astype(np.result_type(array.dtype, np.float64)), np.nan)
        if array.ndim < 2:
            problem = f"{key} of {name} has the shape {array.shape}"
            message = f"{problem}: it must begin with (chains, draws); {OTHER_PROGRAMS}"
            raise DataError(message, code="wrong-length")
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
        raise DataError(f"{name} has no draws: {content}; {OTHER_PROGRAMS}", code="no-data")


def _require_whole_chains(groups: Mapping[str, Group], name: str) -> None:
    """Refuse chains that are filled up with NaN, and draws of the warm-up among the others.

    Raises:
        DataError: if there are any.
    """
    drawn = find_draws(groups["posterior"])
    chains, kept = next(iter(drawn.values())).shape[:2]
    if 0 < kept < chains:
        raise exchanged(name, chains, kept)
    statistics = find_draws(groups["sample_stats"]) if "sample_stats" in groups else {}
    numbers = [x for x in drawn.values() if x.dtype.kind == "f" and x.size]
    if numbers and len(shapes := {x.shape[:2] for x in drawn.values()}) == 1:
        (shape,) = shapes
        present = np.any([~np.isnan(x.reshape(*shape, -1)).all(axis=-1) for x in numbers], axis=0)
        counts = shape[1] - np.argmax(present[:, ::-1], axis=1)
        counts[~present.any(axis=1)] = 0
        if counts.max() > 0 and counts.min() < shape[1]:
            require_equal_lengths({f"chain {k} of {name}": int(n) for k, n in enumerate(counts)})
            problem = f"the draws of {name} from {int(counts.min())} on are NaN: leave them out"
            raise DataError(problem, code="bad-number")
    flags = {n: x for n, x in {**drawn, **statistics}.items() if n.lstrip(".") in _WARMUP}
    for key, flag in flags.items():
        if flag.dtype.kind == "b" and flag.any():
            first = int(flag.shape[1] - np.argmax(flag.any(axis=0)[::-1]))
            problem = f"{name} has draws of the warm-up, as {key} says, up to draw {first}"
            raise DataError(f"{problem}: leave them out")


def _name_log_weights(
    groups: Mapping[str, Group], name: str, log_weights: str
) -> Mapping[str, Group]:
    """Return groups with importance weights of this name, if any, where `from_groups` reads them.

    They have the sum 1, so that runs with other constants have equal weight.

    Raises:
        DataError: if it is not known whether they are weights or logarithms.
    """
    parts = {
        title: groups.get(title, Group({}, {}, {}, {})) for title in ("posterior", "sample_stats")
    }
    columns = [
        x
        for group in parts.values()
        for variable, x in find_draws(group).items()
        if variable == log_weights and x.ndim == 2 and x.dtype.kind == "f"
    ]
    if not columns:
        return groups
    logs = _read_logs(columns[0], log_weights, name)
    with np.errstate(divide="ignore", invalid="ignore"):  # a weight of 0; NaN is refused later
        logs = np.log(importance_weights(logs))
    for title, group in parts.items():
        others = {variable: x for variable, x in group.arrays.items() if variable != log_weights}
        parts[title] = group._replace(arrays=others)
    statistics = parts["sample_stats"]
    parts["sample_stats"] = statistics._replace(
        arrays={**statistics.arrays, LOG_WEIGHT: logs},
        dims={**statistics.dims, LOG_WEIGHT: SAMPLE_DIMS},
    )
    return {**groups, **parts}


def _read_logs(values: Any, variable: str, name: str) -> Any:
    """Return logarithms of importance weights, of a variable that has these or the weights.

    Raises:
        DataError: if it may have either.
    """
    if not values.size or not values.min() >= 0:
        return values
    if abs(values.sum() - 1) < _SUM:
        with np.errstate(divide="ignore"):
            return np.log(values)
    if not _IS_LOG.search(variable):
        message = (
            f"{variable} of {name} is nowhere negative, and may have weights or logarithms: divide "
            "weights by their sum, or subtract the maximum of logarithms"
        )
        raise DataError(message, parameter="log_weights", code="bad-number")
    return values


def require_log_weights(log_weights: str | None, *opened: Draws) -> None:
    """Refuse a name of importance weights that no posterior has.

    Raises:
        UsageError: if none has them.
    """
    if log_weights is not None and not any(draws.weighted for draws in opened):
        rule = "log_weights names a variable of a posterior with one number for each draw"
        raise wrong_value(rule, log_weights, "log_weights", code="bad-name")


def open_draws(
    data: Any,
    name: str = "the posterior",
    *,
    var_names: Sequence[str] | None = None,
    log_weights: str | None = None,
) -> Opened:
    """Return the draws of a posterior in any form, and which of its variables are left out.

    Left out are texts and complex numbers and, of other programs, discrete variables and cells that
    are not finite numbers, unless `var_names` names them, or there are main sites.

    Raises:
        DataError: as `open_posterior`, or if there is no continuous variable, or none of a name.
        UsageError: if it is not a posterior, or has no `log_weights`.

    >>> theta = np.random.default_rng(0).normal(size=(2, 9, 2))
    >>> theta[0, 3, 1] = np.nan
    >>> values = {"mu": theta[..., 0], "theta": theta}
    >>> draws, left_out = open_draws(values)
    >>> list(draws.components()), left_out
    (['mu', 'theta[0]'], {'not finite': ['theta[1]']})
    """
    draws, left_out = open_posterior(data, name, log_weights=log_weights)
    require_log_weights(log_weights, draws)
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

    It is a NetCDF file, CSV files of Stan by a pattern such as `output_*.csv`, a CSV file or a data
    frame with the columns chain and draw; arrays by name, (chains, draws, …); NumPyro's `MCMC`
    after its run; or ArviZ's data.

    Raises:
        DataError: naming the file, if it cannot be read or is damaged, or holds no draws.
        UsageError: if it is not a posterior.

    >>> read_posterior("no.nc")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: no.nc: no such file: give a NetCDF file of `bpa adapt`, or of ...
    """
    if isinstance(draws := unwrap(posterior), Draws):
        return to_arviz(draws)
    groups, attrs = _read(posterior, "the posterior")
    with name_file(posterior) if isinstance(posterior, str | Path) else nullcontext():
        if SCHEMA in attrs:
            as_draws(from_groups(groups, attrs))
        else:
            _require_draws(groups, "the posterior")
    return to_arviz_data(to_datasets(groups), attrs)
