"""A posterior in any form: one function opens them all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.posterior.adapter import LOG_WEIGHT, SCHEMA, find_draws, from_groups
from bpa_ppl.posterior.arviz_functions import split_groups
from bpa_ppl.posterior.draws import WEIGHTS, Draws, importance_weights
from bpa_ppl.posterior.files import name_file, read_groups
from bpa_ppl.posterior.groups import SAMPLE_DIMS, Group, label_groups
from bpa_ppl.posterior.stan import CSV, read_cmdstan

#: The groups of a posterior, and the attributes of the whole.
Groups = tuple[Mapping[str, Group], Mapping[str, Any]]
#: Says that draws have no importance weights, although a variable has the name of weights.
NO_WEIGHTS = "none"
#: A name that says weight: importance_weights, logwt, log_w, lw.
_IS_WEIGHT = re.compile(r"weight|(?<![a-z])(log_?wt?|lw)s?(?![a-z])", re.IGNORECASE)
#: How samples of NumPyro keep their chains.
GROUPED = "mcmc.get_samples(group_by_chain=True) of NumPyro"


def open_posterior(
    data: Any, name: str = "the posterior", *, log_weights: str | None = None
) -> Draws | Groups:
    """Return a posterior in any form: as `Draws` if this package made it, otherwise as groups.

    Args:
        data: InferenceData, a DataTree, a Dataset, `Draws`, arrays by name, (chains, draws, …), the
            path of a NetCDF file, or the path or pattern of CSV files of CmdStan.
        name: of the posterior, for messages.
        log_weights: the variable with the logarithms of the importance weights of draws; `none` if
            there are no such weights.

    Raises:
        DataError: if a file cannot be read, arrays do not begin with chains and draws, or a
            variable has the name of weights and `log_weights` is None.
        UsageError: if it is not a posterior.

    >>> groups, _ = open_posterior({"mu": np.zeros((4, 100))})
    >>> groups["posterior"].dims
    {'mu': ('chain', 'draw')}
    """
    if isinstance(data, Draws):
        return data
    is_path = isinstance(data, str | Path)
    groups: Mapping[str, Group]
    attrs: Mapping[str, Any] = {}
    if isinstance(data, dict):
        groups = label_groups({"posterior": _read_arrays(data, name)})
    elif is_path:
        groups, attrs = read_cmdstan(data) if Path(data).suffix == CSV else read_groups(data)
    else:
        groups, attrs = split_groups(data)
    if SCHEMA in attrs:
        with name_file(data) if is_path else nullcontext():
            return from_groups(groups, attrs, any_variables=True)
    return _name_log_weights(groups, name, log_weights), attrs


def _read_arrays(data: Mapping[Any, Any], name: str) -> dict[str, Any]:
    """Return arrays by name.

    Raises:
        DataError: if one has no chains.
    """
    arrays = {str(key): np.asarray(values) for key, values in data.items()}
    for key, values in arrays.items():
        if values.ndim < 2:
            problem = f"{key} of {name} has the shape {values.shape}: it must begin with"
            remedy = f'join chains by np.array([chain["{key}"] for chain in chains]), or take'
            problem = f"{problem} (chains, draws): {remedy} {GROUPED}"
            raise DataError(problem, code="wrong-length")
    return arrays


def _name_log_weights(
    groups: Mapping[str, Group], name: str, log_weights: str | None
) -> Mapping[str, Group]:
    """Return groups with importance weights where `from_groups` reads them, or without any.

    Named weights have the sum 1, so that runs with other constants count alike.

    Raises:
        DataError: if a variable has the name of weights, and it is not known whether it is.
    """
    statistics = groups.get("sample_stats", Group({}, {}, {}, {}))
    if log_weights == NO_WEIGHTS:
        return {**groups, "sample_stats": _without(statistics, LOG_WEIGHT)}
    drawn = {
        title: {v: x for v, x in find_draws(groups[title]).items() if x.ndim == 2}
        for title in ("posterior", "sample_stats")
        if title in groups
    }
    if found := [of[log_weights] for of in drawn.values() if log_weights in of]:
        parts = {title: _without(groups[title], str(log_weights)) for title in drawn}
        with np.errstate(divide="ignore", invalid="ignore"):  # a weight of 0; NaN is refused later
            logs = np.log(importance_weights(found[0]))
        statistics = parts.get("sample_stats", statistics)
        arrays, dims = statistics.arrays, statistics.dims
        parts["sample_stats"] = statistics._replace(
            arrays={**arrays, LOG_WEIGHT: logs}, dims={**dims, LOG_WEIGHT: SAMPLE_DIMS}
        )
        return {**groups, **parts}
    suspected = [v for of in drawn.values() for v in of if v != WEIGHTS and _IS_WEIGHT.search(v)]
    if suspected and LOG_WEIGHT not in drawn.get("sample_stats", {}):
        problem = f"{suspected[0]} of {name} may be importance weights of the draws"
        remedy = (
            f"if it has their logarithms, name it by log_weights={suspected[0]!r}, otherwise say "
            f"log_weights={NO_WEIGHTS!r} (of the command: --log-weights)"
        )
        raise DataError(f"{problem}: {remedy}", parameter="log_weights", code="missing-argument")
    return groups


def _without(group: Group, name: str) -> Group:
    return group._replace(arrays={v: x for v, x in group.arrays.items() if v != name})
