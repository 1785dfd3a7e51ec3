"""The common continuous variables of any ArviZ data, as draws that can be compared."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain, compress, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.errors import DataError, UsageError, list_names
from bpa_ppl.lists.labels import find_positions
from bpa_ppl.posterior.adapter import (
    LOG_WEIGHT,
    SCHEMA,
    as_draws,
    describe_dims,
    find_draws,
    from_groups,
    to_groups,
)
from bpa_ppl.posterior.arviz_functions import split_groups
from bpa_ppl.posterior.draws import WEIGHTS, Draws, importance_weights, kish
from bpa_ppl.posterior.files import name_file, read_groups
from bpa_ppl.posterior.groups import SAMPLE_DIMS, Group, label_groups
from bpa_ppl.posterior.stan import CSV, read_cmdstan
from bpa_ppl.posterior.statistics import POOR_PARETO_K, ess, estimate_tail_shapes
from bpa_ppl.weights import Weights

#: The groups of a posterior, and the attributes of the whole.
_Groups = tuple[Mapping[str, Group], Mapping[str, Any]]
#: A variable that is one cell of an array: `theta[1]`, `theta[1,2]`, `theta.1.2`.
_CELL = re.compile(r"(.+?)(?:\[(\d+(?:, ?\d+)*)\]|\.(\d+(?:\.\d+)*))")

#: Says that draws have no importance weights, although a variable has the name of weights.
NO_WEIGHTS = "none"
#: A name that says weight: importance_weights, logwt, log_w, lw.
_IS_WEIGHT = re.compile(r"weight|(?<![a-z])(log_?wt?|lw)s?(?![a-z])", re.IGNORECASE)
#: Why a variable is left out of which a draw is not a finite number.
_INFINITE = "not finite"
#: How samples of NumPyro keep their chains.
_GROUPED = "mcmc.get_samples(group_by_chain=True) of NumPyro"


class _Variable(NamedTuple):
    """Draws of a variable, (C, D, K), its shape without chain and draw, and labels of cells."""

    values: npt.NDArray[Any]
    shape: tuple[int, ...]
    labels: list[str]
    numbered: bool  # cells have no other labels than numbers


class _Run(NamedTuple):
    """A posterior: the name of its sampler, its variables, and all that it records.

    All variables are functions of the `parameters`; None if these are not recorded.
    """

    name: str
    variables: dict[str, _Variable]
    parameters: set[str] | None
    recorded: Draws | _Groups
    log_weight: Float64 | None = None


class Selection(NamedTuple):
    """Draws of the same variables from all posteriors.

    Attributes:
        runs: by sampler; each cell of a variable is a weight, such as `theta[school=3]`.
        recorded: by sampler, draws with all that is recorded of their data and model: of the
            weights of lists, if one of the posteriors is from `adapt`.
        left_out: a sentence on each kind of variables that are not compared.
        incomplete: how many variables are compared, and which ones only some posteriors have; empty
            if the compared ones were chosen, or determine all others.
    """

    runs: dict[str, list[Draws]]
    recorded: dict[str, list[Draws]]
    left_out: tuple[str, ...]
    incomplete: str


def select_comparable(
    posteriors: Mapping[str, Sequence[Any]],
    reference: str,
    var_names: Sequence[str] | None = None,
    *,
    weights: bool = False,
    log_weights: str | None = None,
) -> Selection:
    """Return draws of the same variables from all posteriors, and what is left out.

    Variables are matched by name. The cells of an array may be variables of their own in another
    posterior, such as `theta[1]` or `theta.1`, numbered from 0 or from 1, if all of them are there.

    A posterior of `adapt` records its parameters, of which all its variables are functions. If
    there is one, the weights are compared by feature, and all parameters.

    Left out are variables that not all posteriors have, discrete variables, cells that are not
    finite in all draws, and cells that are constant, or whose mean may not exist, in the reference.

    Args:
        posteriors: the runs of each sampler by its name: InferenceData, a DataTree, a Dataset,
            `Draws`, arrays by name, (chains, draws, …), the path of a NetCDF file, or the path or
            pattern of CSV files of CmdStan.
        reference: the name of the one that the others are compared with.
        var_names: the variables to compare; None takes all that are common.
        weights: whether all posteriors must have the weights of n-best lists.
        log_weights: the variable with the logarithms of the importance weights of draws; `none`
            if there are no such weights.

    Raises:
        DataError: if there is nothing to compare, the posteriors differ in shapes or labels, or a
            variable has the name of weights and `log_weights` is None.
        UsageError: if something is not a posterior, or does not have a variable of `var_names`, or
            none has `log_weights`.
    """
    pairs_of_runs = [(name, one) for name, several in posteriors.items() for one in several]
    runs = [_open(one, name, log_weights) for name, one in pairs_of_runs]
    named = log_weights not in (None, NO_WEIGHTS)
    if named and all(run.log_weight is None for run in runs):
        problem = f"no posterior has the variable {log_weights} with one number for each draw"
        raise UsageError(problem, parameter="log_weights", code="bad-name")
    _gather_cells([run.variables for run in runs])
    place = [run.name for run in runs].index(reference)
    recorded: list[Draws] = []
    features: tuple[str, ...] = ()
    if weights or (var_names is None and any(run.parameters for run in runs)):
        sources = (run.recorded for run in runs)
        recorded = [
            as_draws(r if isinstance(r, Draws) else from_groups(*r, any_variables=not weights))
            for r in sources
        ]
        if var_names is None:
            features = recorded[place].features
            runs = [_split_weights(run, draws) for run, draws in zip(runs, recorded, strict=True)]
    expected = runs[place].variables
    common = _find_common(runs, expected, var_names)
    # Weights are not left out: the check refuses constant ones.
    others = [v for v in common if v not in features]
    discrete = [v for v in others if any(_is_discrete(run.variables[v]) for run in runs)]
    others = [v for v in others if v not in discrete]
    infinite = _find_infinite(others, runs, expected)
    if var_names and infinite:
        why, (label, *_) = next(iter(infinite.items()))
        problem = f"{label} is {why}: fix the sampler that drew it, or leave it out of var_names"
        raise DataError(problem, code="bad-number")
    without = {*chain.from_iterable(infinite.values())}
    unsuitable = _find_unsuitable(others, runs, reference, without)
    left_out = {"discrete": discrete, **infinite, **unsuitable}
    one_sided = {} if var_names else _find_one_sided(runs)
    sentences = [_describe_left_out(found, why) for why, found in left_out.items() if found]
    sentences += [
        f"not compared, because only {owner} {'it' if len(found) == 1 else 'them'}: "
        + ", ".join(found)
        for owner, found in one_sided.items()
    ]
    excluded = {*chain.from_iterable(left_out.values())}
    kept = [v for v in common if v not in discrete]
    labels = [label for v in kept for label in expected[v].labels]
    chosen = [k for k, label in enumerate(labels) if label not in excluded]
    if not chosen:
        raise DataError("; ".join(["there is nothing to compare", *sentences]), code="no-data")
    cells = tuple(labels[k] for k in chosen)
    draws = recorded
    if not features or cells != features:
        values = [_stack(kept, run, expected)[..., chosen] for run in runs]
        if features:
            draws = [_replace_weights(of, x, cells) for of, x in zip(recorded, values, strict=True)]
        else:
            draws = [_build_draws(run, x, cells) for run, x in zip(runs, values, strict=True)]
    incomplete = ""
    # What is not finite anywhere is as a constant; otherwise the posteriors differ in it.
    uneven = {why: of for why, of in infinite.items() if why != _INFINITE}
    finite = {v for v in common if {*chain(*uneven.values())}.isdisjoint(expected[v].labels)}
    determined = any(run.parameters and run.parameters <= finite for run in runs)
    if (one_sided or uneven) and not determined:
        sizes = {v: len(of.labels) for run in runs for v, of in run.variables.items()}
        total = sum(sizes[v] for v in {*common, *chain.from_iterable(one_sided.values())})
        reasons = [f"only {owner} {list_names(of)}" for owner, of in one_sided.items()]
        reasons += [f"{list_names(of)} is {why}" for why, of in uneven.items()]
        why = " and ".join(reasons)
        incomplete = f"{len(cells)} of {total} variables were compared, because {why}"
    pairs = list(zip(runs, draws, recorded or draws, strict=True))
    return Selection(
        {name: [one for run, one, _ in pairs if run.name == name] for name in posteriors},
        {name: [one for run, _, one in pairs if run.name == name] for name in posteriors},
        tuple(sentences),
        incomplete,
    )


def _open(data: Any, name: str, log_weights: str | None) -> _Run:
    """Return a posterior in any form with its variables, and its parameters if it records them."""
    if isinstance(data, Draws):
        variables = _find_variables(to_groups(data)[0], name)
        return _Run(name, variables, {*data.sites}, data, data.log_weight)
    groups: Mapping[str, Group]
    attrs: Mapping[str, Any] = {}
    if isinstance(data, dict):
        arrays = {str(key): np.asarray(values) for key, values in data.items()}
        for key, values in arrays.items():
            if values.ndim < 2:
                problem = f"{key} of {name} has the shape {values.shape}: it must begin with"
                remedy = f'join chains by np.array([chain["{key}"] for chain in chains]), or take'
                problem = f"{problem} (chains, draws): {remedy} {_GROUPED}"
                raise DataError(problem, code="wrong-length")
        groups = label_groups({"posterior": arrays})
    else:
        groups, attrs = _read(data) if isinstance(data, str | Path) else split_groups(data)
    if SCHEMA in attrs:
        with name_file(data) if isinstance(data, str | Path) else nullcontext():
            draws = from_groups(groups, attrs, any_variables=True)
        return _open(draws, name, log_weights)
    groups = _name_log_weights(groups, name, log_weights)
    statistics = groups["sample_stats"].arrays if "sample_stats" in groups else {}
    logs = statistics.get(LOG_WEIGHT)
    return _Run(name, _find_variables(groups, name), None, (groups, attrs), logs)


def _read(path: str | Path) -> _Groups:
    return read_cmdstan(path) if Path(path).suffix == CSV else read_groups(path)


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


def _gather_cells(tables: Sequence[dict[str, _Variable]]) -> None:
    """Replace cells such as `theta[1]` by the array that they make, if others have this array.

    They stay variables of their own unless each table has an array of the same shape, or all its
    cells: nothing says which cells of another shape correspond.
    """
    cells = [_find_cells(table) for table in tables]
    for base in dict.fromkeys(chain.from_iterable(cells)):
        pairs = [(table, of.get(base, {})) for table, of in zip(tables, cells, strict=True)]
        arrays = [_join_cells(of, table) if of else table.get(base) for table, of in pairs]
        shapes = {None if array is None else array.shape for array in arrays}
        is_same = all(of == pairs[0][1] for _, of in pairs)
        if is_same or len(shapes) > 1 or any(of and base in table for table, of in pairs):
            continue
        for (table, of), array in zip(pairs, arrays, strict=True):
            for name in of:
                del table[name]
            if array is not None:
                table[base] = array


def _find_cells(table: Mapping[str, _Variable]) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the index of each scalar whose name is that of a cell, by name, by array."""
    result: dict[str, dict[str, tuple[int, ...]]] = {}
    for name, variable in table.items():
        if not variable.shape and (parts := _CELL.fullmatch(name)):
            base, with_commas, with_dots = parts.groups()
            index = re.split(r", ?|\.", with_commas or with_dots)
            result.setdefault(base, {})[name] = tuple(map(int, index))
    return result


def _join_cells(
    cells: Mapping[str, tuple[int, ...]], table: Mapping[str, _Variable]
) -> _Variable | None:
    """Return the array of cells that are numbered from 0 or 1; None if one is missing."""
    names = sorted(cells, key=lambda name: cells[name])
    first, last = cells[names[0]], cells[names[-1]]
    shape = tuple(b - a + 1 for a, b in zip(first, last, strict=False))
    if {*first} not in ({0}, {1}) or math.prod(shape) != len(names):
        return None
    grid = product(*(range(a, b + 1) for a, b in zip(first, last, strict=False)))
    if [cells[name] for name in names] != list(grid):
        return None
    values = np.concatenate([table[name].values for name in names], axis=-1)
    return _Variable(values, shape, names, numbered=True)


def _split_weights(run: _Run, draws: Draws) -> _Run:
    """Return a run with the weight of each feature, by its name, as a variable of its own."""
    weights = enumerate(draws.features)
    variables = {f: _Variable(draws.weights[..., k, None], (), [f], True) for k, f in weights}
    renamed = {}
    for name, of in run.variables.items():
        if name != WEIGHTS:
            clash = not variables.keys().isdisjoint([name, *of.labels])
            renamed[name] = f"{name} (site)" if clash else name
            labels = [f"{label} (site)" for label in of.labels] if clash else of.labels
            variables[renamed[name]] = of._replace(labels=labels)
    parameters = run.parameters
    if parameters is not None:
        parameters = {*draws.features, *(renamed[site] for site in parameters - {WEIGHTS})}
    return run._replace(variables=variables, parameters=parameters)


def _find_variables(groups: Mapping[str, Group], name: str) -> dict[str, _Variable]:
    """Return the variables of a posterior that have chains and draws.

    Raises:
        DataError: if there are more chains than draws, or no variable has both.
    """
    group, result = groups.get("posterior", Group({}, {}, {}, {})), {}
    drawn = find_draws(group)
    if group.arrays and not drawn:
        problem = describe_dims(group, next(iter(group.arrays)))
        raise DataError(f"in {name}, {problem}", code="wrong-length")
    for variable, array in drawn.items():
        chains, draws, *shape = array.shape
        if chains > draws:
            problem = f"{variable} of {name} has {chains} chains of {draws} draws: are chain and "
            problem += f"draw exchanged, or are its chains one array? Then take {_GROUPED}"
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
    runs: Sequence[_Run], expected: Mapping[str, _Variable], var_names: Sequence[str] | None
) -> list[str]:
    """Return the names of the variables to compare, which all posteriors have.

    Functions of the parameters are left out, if all posteriors record what these are.

    Raises:
        DataError: if there is none.
        UsageError: if one of `var_names` is missing.
    """
    common = [v for v in expected if all(v in run.variables for run in runs)]
    if var_names is not None and {*var_names} <= {*common}:
        return list(dict.fromkeys(var_names))
    has = {run.name: ", ".join(run.variables) or "none" for run in runs}
    described = "; ".join(f"{name} has {variables}" for name, variables in has.items())
    for missing in (v for v in var_names or () if v not in common):
        problem = f"not all posteriors have the variable {missing}: {described}"
        raise UsageError(problem, parameter="var_names", code="bad-name")
    if not common:
        raise DataError(f"the posteriors have no variable in common: {described}", code="no-data")
    return [v for v in common if any(run.parameters is None or v in run.parameters for run in runs)]


def _find_one_sided(runs: Sequence[_Run]) -> dict[str, list[str]]:
    """Return the variables that only some posteriors have, by those: `a has`, `a and b have`."""
    result: dict[str, list[str]] = {}
    for name in dict.fromkeys(chain.from_iterable(run.variables for run in runs)):
        owners = list(dict.fromkeys(run.name for run in runs if name in run.variables))
        if not all(name in run.variables for run in runs):
            verb = "has" if len(owners) == 1 else "have"
            result.setdefault(f"{' and '.join(owners)} {verb}", []).append(name)
    return result


def _is_discrete(variable: _Variable) -> bool:
    """Return whether all values are whole numbers, and not all the same in each cell."""
    x = variable.values
    if x.dtype.kind != "f":
        return True
    return bool(np.all(x == np.floor(x)) and np.ptp(x, axis=(0, 1)).any())


def _stack(names: Sequence[str], run: _Run, expected: Mapping[str, _Variable]) -> Float64:
    """Return the draws of variables, (C, D, K), with their cells in the order of the reference.

    Raises:
        DataError: if shapes or labels differ.
    """
    return np.concatenate([_align(v, run, expected[v]) for v in names], axis=-1)


def _align(name: str, run: _Run, expected: _Variable) -> Float64:
    variable = run.variables[name]
    if variable.shape != expected.shape:
        problem = f"{name} has the shape {variable.shape} in {run.name}, and {expected.shape}"
        raise DataError(f"{problem} in the others", code="mismatch")
    values = variable.values.astype(np.float64)
    if {*variable.labels} == {*expected.labels}:
        return values[..., find_positions(expected.labels, variable.labels)]
    if not (variable.numbered or expected.numbered):
        ours, theirs = (one.labels[0] for one in (variable, expected))
        problem = f"the cells of {name} have other labels in {run.name}, such as {ours}, than in"
        raise DataError(f"{problem} the others, such as {theirs}", code="mismatch")
    return values


def _find_infinite(
    names: Sequence[str], runs: Sequence[_Run], expected: Mapping[str, _Variable]
) -> dict[str, list[str]]:
    """Return the cells of which a draw is not a finite number, by the reason.

    Raises:
        DataError: if shapes or labels differ.
    """
    result: dict[str, list[str]] = {}
    every = dict.fromkeys(run.name for run in runs)
    for v in names:
        wrong = [(run.name, ~np.isfinite(_align(v, run, expected[v]))) for run in runs]
        for k, label in enumerate(expected[v].labels):
            owners = list(dict.fromkeys(name for name, of in wrong if of[..., k].any()))
            if owners:
                where = "" if len(owners) == len(every) else f" in {' and '.join(owners)}"
                result.setdefault(f"{_INFINITE}{where}", []).append(label)
    return result


def _find_unsuitable(
    names: Sequence[str], runs: Sequence[_Run], reference: str, without: Collection[str]
) -> dict[str, list[str]]:
    """Return the cells that have no comparable means in the reference, by the reason.

    Args:
        names: of variables.
        runs: of all posteriors.
        reference: the name of the one that the others are compared with.
        without: cells that are left out already.

    Raises:
        DataError: if a constant of the reference has another value elsewhere, or shapes or labels
            differ.
    """
    expected = next(run.variables for run in runs if run.name == reference)
    labels = [label for v in names for label in expected[v].labels]
    places = [k for k, label in enumerate(labels) if label not in without]
    if not places:
        return {}
    labels = [labels[k] for k in places]
    values = [(run.name, _stack(names, run, expected)[..., places]) for run in runs]
    of_reference = [x for name, x in values if name == reference]
    length = min(x.shape[1] for x in of_reference)
    x = np.concatenate([run[:, :length] for run in of_reference])
    constant = np.ptp(x, axis=(0, 1)) == 0
    for name, run in values:
        differs = constant & (run != x[0, 0]).any(axis=(0, 1))
        for k in np.flatnonzero(differs).tolist():
            problem = f"{labels[k]} is {x[0, 0, k]:g} in all draws of {reference}, and not in"
            raise DataError(f"{problem} {name}: they differ in their model", code="mismatch")
    weights = [run.log_weight for run in runs if run.name == reference]
    logs = [of[:, :length] for of in weights if of is not None]
    if len(logs) == len(weights):
        weighted = Draws({WEIGHTS: x}, tuple(labels), "weighted", np.concatenate(logs))
        x = weighted.resampled().weights
        share = np.full(len(labels), kish(weighted.importance) / len(weighted.flat))
    else:
        share = np.nan_to_num(np.minimum(ess(x), ess(x, "tail"))) / x[..., 0].size
    heavy = ~constant & (estimate_tail_shapes(x, share) > POOR_PARETO_K)
    cells = {"constant": constant, "too heavy in the tails, so that a mean may not exist": heavy}
    return {why: list(compress(labels, of)) for why, of in cells.items()}


def _describe_left_out(names: Sequence[str], why: str) -> str:
    they = "it is" if len(names) == 1 else "they are"
    return f"not compared, because {they} {why}: {list_names(names)}"


def _build_draws(run: _Run, values: Float64, cells: tuple[str, ...]) -> Draws:
    """Return draws of cells as weights, with the statistics of the sampler and the data."""
    recorded = run.recorded
    groups, attrs = to_groups(recorded) if isinstance(recorded, Draws) else recorded
    dims, labels = {WEIGHTS: (*SAMPLE_DIMS, "feature")}, {"feature": np.array(cells)}
    parts = {"posterior": Group({WEIGHTS: values}, dims, labels, groups["posterior"].attrs)}
    for name in {"sample_stats", "observed_data"} & groups.keys():
        arrays = groups[name].arrays.items()
        numbers = {key: x for key, x in arrays if x.dtype.kind in "biuf"}
        parts[name] = groups[name]._replace(arrays=numbers)
    without_sites = {key: value for key, value in attrs.items() if key != "sites"}
    return as_draws(from_groups(parts, without_sites))


def stack_sites(draws: Draws) -> Draws:
    """Return draws whose weights are all cells of the sampled sites, if they have no weights.

    >>> draws = Draws({"weights": np.zeros((1, 2, 0)), "mu": np.ones((1, 2))}, (), sites=("mu",))
    >>> stack_sites(draws).features, stack_sites(draws).weights.shape
    (('mu',), (1, 2, 1))
    """
    if draws.features:
        return draws
    cells = draws.components()
    return _replace_weights(draws, np.stack(list(cells.values()), axis=-1), tuple(cells))


def _replace_weights(draws: Draws, values: Float64, cells: tuple[str, ...]) -> Draws:
    """Return draws with cells as weights, without anything that belongs to the features."""
    names = "constants", "dims", "coords", "prior", "log_prior"
    parts: dict[str, Any] = {name: {} for name in names}
    parts |= {"values": {WEIGHTS: values}, "sites": (WEIGHTS,), "fixed": Weights({})}
    return replace(draws, features=cells, **parts)
