"""The common continuous variables of any ArviZ data, as draws that can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, compress, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.errors import DataError, UsageError, list_names
from bpa_ppl.names import find_positions
from bpa_ppl.posterior.adapter import SCHEMA, as_draws, find_draws, from_groups, to_groups
from bpa_ppl.posterior.arviz_functions import split_groups
from bpa_ppl.posterior.draws import WEIGHTS, Draws
from bpa_ppl.posterior.files import read_groups
from bpa_ppl.posterior.groups import SAMPLE_DIMS, Group, label_groups
from bpa_ppl.posterior.statistics import POOR_PARETO_K, ess, estimate_tail_shapes

#: The groups of a posterior, and the attributes of the whole.
_Groups = tuple[Mapping[str, Group], Mapping[str, Any]]


class _Variable(NamedTuple):
    """Draws of a variable, (C, D, K), its shape without chain and draw, and labels of cells."""

    values: npt.NDArray[Any]
    shape: tuple[int, ...]
    labels: list[str]
    numbered: bool  # cells have no other labels than numbers


def select_comparable(
    posteriors: Mapping[str, Sequence[Any]],
    reference: str,
    var_names: Sequence[str] | None = None,
    *,
    weights: bool = False,
) -> tuple[dict[str, list[Draws]], tuple[str, ...]]:
    """Return draws of the same variables from all posteriors, and what is left out.

    Each cell of a variable is a weight of the result, such as `theta[school=3]`. Left out are
    discrete variables, and cells that are constant, or whose mean may not exist, in the reference.
    If a posterior is one of `adapt`, the variables are its weights.

    Args:
        posteriors: the runs of each sampler by its name: InferenceData, a DataTree, a Dataset,
            `Draws`, arrays by name, (chains, draws, …), or the path of a NetCDF file.
        reference: the name of the one that the others are compared with.
        var_names: the variables to compare; None takes all that are common.
        weights: whether the variables are the weights of n-best lists.

    Returns:
        the runs by name, and a sentence on each kind of variables that are left out.

    Raises:
        DataError: if there is nothing to compare, or the posteriors differ in shapes or labels.
        UsageError: if something is not a posterior, or does not have a variable of `var_names`.
    """
    names = [name for name, runs in posteriors.items() for _ in runs]
    opened = [_open(run, name) for name, runs in posteriors.items() for run in runs]
    sentences: tuple[str, ...] = ()
    if weights or (var_names is None and any(isinstance(run, Draws) for run in opened)):
        draws = [as_draws(r if isinstance(r, Draws) else from_groups(*r)) for r in opened]
    else:
        groups = [to_groups(run) if isinstance(run, Draws) else run for run in opened]
        tables = [_find_variables(of, name) for (of, _), name in zip(groups, names, strict=True)]
        expected = tables[names.index(reference)]
        common = _find_common(names, tables, var_names)
        discrete = [v for v in common if any(_is_discrete(table[v]) for table in tables)]
        kept = [v for v in common if v not in discrete]
        values = [
            np.concatenate([_align(v, table[v], expected[v], name) for v in kept], axis=-1)
            for name, table in zip(names, tables, strict=True)
            if kept
        ]
        labels = [label for v in kept for label in expected[v].labels]
        left_out = {"discrete": discrete, **_find_unsuitable(labels, values, names, reference)}
        unsuitable = {*chain.from_iterable(left_out.values())}
        suitable = np.array([label not in unsuitable for label in labels], bool)
        sentences = tuple(
            _describe_left_out(found, why) for why, found in left_out.items() if found
        )
        if not suitable.any():
            raise DataError("; ".join(["there is nothing to compare", *sentences]), code="no-data")
        features = np.array(labels)[suitable]
        draws = [
            _build_draws(of, x[..., suitable], features)
            for of, x in zip(groups, values, strict=True)
        ]
    runs = list(zip(names, draws, strict=True))
    return {name: [run for of, run in runs if of == name] for name in posteriors}, sentences


def _open(data: Any, name: str) -> Draws | _Groups:
    """Return a posterior of `adapt` as `Draws`, and another one as groups."""
    if isinstance(data, Draws):
        return data
    if isinstance(data, dict):
        arrays = {str(key): np.asarray(values) for key, values in data.items()}
        for key, values in arrays.items():
            if values.ndim < 2:
                problem = f"{key} of {name} has the shape {values.shape}: it must begin with"
                remedy = f'join chains by np.array([chain["{key}"] for chain in chains])'
                raise DataError(f"{problem} (chains, draws): {remedy}", code="wrong-length")
        return label_groups({"posterior": arrays}), {}
    groups, attrs = read_groups(data) if isinstance(data, str | Path) else split_groups(data)
    return from_groups(groups, attrs) if SCHEMA in attrs else (groups, attrs)


def _find_variables(groups: Mapping[str, Group], name: str) -> dict[str, _Variable]:
    """Return the variables of a posterior that have chains and draws.

    Raises:
        DataError: if there are more chains than draws.
    """
    group, result = groups.get("posterior", Group({}, {}, {}, {})), {}
    for variable, array in find_draws(group).items():
        chains, draws, *shape = array.shape
        if chains > draws:
            problem = f"{name} has {chains} chains of {draws} draws: are chain and draw exchanged?"
            raise DataError(problem, code="wrong-length")
        dims = [dim for dim in group.dims[variable] if dim not in SAMPLE_DIMS]
        sizes = zip(dims, shape, strict=True)
        coords = {dim: np.asarray(group.coords.get(dim, range(size))) for dim, size in sizes}
        # ArviZ names dimensions without a name `theta_dim_0` or `dim_0`.
        parts = [
            [str(x) if "dim_" in dim else f"{dim}={x}" for x in of_dim.tolist()]
            for dim, of_dim in coords.items()
        ]
        labels = [f"{variable}[{', '.join(cell)}]" for cell in product(*parts)]
        numbered = all(of_dim.dtype.kind in "iu" for of_dim in coords.values())
        flat, labels = array.reshape(chains, draws, -1), labels if dims else [variable]
        result[variable] = _Variable(flat, tuple(shape), labels, numbered)
    return result


def _find_common(
    names: Sequence[str],
    tables: Sequence[Mapping[str, _Variable]],
    var_names: Sequence[str] | None,
) -> list[str]:
    """Return the names of the variables to compare, which all posteriors have.

    Raises:
        DataError: if there is none.
        UsageError: if one of `var_names` is missing.
    """
    has = {name: ", ".join(tables[names.index(name)]) or "none" for name in names}
    described = "; ".join(f"{name} has {variables}" for name, variables in has.items())
    common = [v for v in tables[0] if all(v in table for table in tables)]
    if missing := [v for v in var_names or () if v not in common]:
        problem = f"not all posteriors have the variable {missing[0]}: {described}"
        raise UsageError(problem, parameter="var_names", code="bad-name")
    if not common:
        raise DataError(f"the posteriors have no variable in common: {described}", code="no-data")
    return common if var_names is None else list(dict.fromkeys(var_names))


def _is_discrete(variable: _Variable) -> bool:
    """Return whether all values are whole numbers, and not all the same in each cell."""
    x = variable.values
    if x.dtype.kind != "f":
        return True
    return bool(np.all(x == np.floor(x)) and np.ptp(x, axis=(0, 1)).any())


def _align(name: str, variable: _Variable, expected: _Variable, posterior: str) -> Float64:
    """Return the draws of a variable, (C, D, K), with its cells in the order of the reference.

    Raises:
        DataError: if shapes or labels differ.
    """
    if variable.shape != expected.shape:
        problem = f"{name} has the shape {variable.shape} in {posterior}, and {expected.shape}"
        raise DataError(f"{problem} in the others", code="mismatch")
    values = variable.values.astype(np.float64)
    if {*variable.labels} == {*expected.labels}:
        return values[..., find_positions(expected.labels, variable.labels)]
    if not (variable.numbered or expected.numbered):
        ours, theirs = (one.labels[0] for one in (variable, expected))
        problem = f"the cells of {name} have other labels in {posterior}, such as {ours}, than in"
        raise DataError(f"{problem} the others, such as {theirs}", code="mismatch")
    return values


def _find_unsuitable(
    labels: Sequence[str], values: Sequence[Float64], names: Sequence[str], reference: str
) -> dict[str, list[str]]:
    """Return the cells that have no comparable means in the reference, by the reason.

    Raises:
        DataError: if a constant of the reference has another value elsewhere.
    """
    if not labels:
        return {}
    runs = [x for name, x in zip(names, values, strict=True) if name == reference]
    length = min(x.shape[1] for x in runs)
    x = np.concatenate([run[:, :length] for run in runs])
    constant = np.ptp(x, axis=(0, 1)) == 0
    for name, run in zip(names, values, strict=True):
        differs = constant & (run != x[0, 0]).any(axis=(0, 1))
        for k in np.flatnonzero(differs).tolist():
            problem = f"{labels[k]} is {x[0, 0, k]:g} in all draws of {reference}, and not in"
            raise DataError(f"{problem} {name}: they differ in their model", code="mismatch")
    share = np.nan_to_num(np.minimum(ess(x), ess(x, "tail"))) / x[..., 0].size
    heavy = ~constant & (estimate_tail_shapes(x, share) > POOR_PARETO_K)
    cells = {"constant": constant, "too heavy in the tails, so that a mean may not exist": heavy}
    return {why: list(compress(labels, of)) for why, of in cells.items()}


def _describe_left_out(names: Sequence[str], why: str) -> str:
    they = "it is" if len(names) == 1 else "they are"
    return f"not compared, because {they} {why}: {list_names(names)}"


def _build_draws(recorded: _Groups, weights: Float64, features: npt.NDArray[Any]) -> Draws:
    """Return draws of cells as weights, with the statistics of the sampler and the data."""
    groups, attrs = recorded
    dims, labels = {WEIGHTS: (*SAMPLE_DIMS, "feature")}, {"feature": features}
    parts = {"posterior": Group({WEIGHTS: weights}, dims, labels, groups["posterior"].attrs)}
    for name in {"sample_stats", "observed_data"} & groups.keys():
        arrays = groups[name].arrays.items()
        numbers = {key: x for key, x in arrays if x.dtype.kind in "biuf"}
        parts[name] = groups[name]._replace(arrays=numbers)
    without_sites = {key: value for key, value in attrs.items() if key != "sites"}
    return as_draws(from_groups(parts, without_sites))
